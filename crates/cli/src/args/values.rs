//! Small values of the command line that core does not parse: counts and lists of levels.

use knee_core::spec::{ParseError, Rate, parse_duration, parse_rates};
use knee_core::time::Nanos;

/// The levels of a sweep: chosen as it goes, or given.
#[derive(Clone, Debug, PartialEq)]
pub enum Levels<T> {
    /// Chosen from what the earlier levels showed.
    Auto,
    /// Just these.
    List(Vec<T>),
}

/// A whole number from 1 to 4,294,967,295.
pub fn parse_count(text: &str) -> Result<u32, ParseError> {
    match parse_whole(text)? {
        0 => Err(ParseError(format!("'{text}' is too few: at least 1"))),
        n => u32::try_from(n)
            .map_err(|_| ParseError(format!("'{text}' is too many: at most {}", u32::MAX))),
    }
}

/// A whole number from 0 on; digits may be grouped by `_`.
pub fn parse_whole(text: &str) -> Result<u64, ParseError> {
    let digits = text.trim().replace('_', "");
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(ParseError(format!(
            "'{text}' is not a whole number such as 100"
        )));
    }
    digits
        .parse()
        .map_err(|_| ParseError(format!("'{text}' is too large: at most {}", u64::MAX)))
}

/// A duration that is not zero.
pub fn parse_positive(text: &str) -> Result<Nanos, ParseError> {
    match parse_duration(text)? {
        Nanos::ZERO => Err(ParseError(format!(
            "'{text}' is no time at all: it takes more than 0, such as 500ms"
        ))),
        t => Ok(t),
    }
}

/// `auto`, or numbers of users separated by commas.
pub fn vuser_levels(text: &str) -> Result<Levels<u32>, ParseError> {
    if text == "auto" {
        return Ok(Levels::Auto);
    }
    let parts: Result<Vec<u32>, ParseError> = text.split(',').map(parse_count).collect();
    parts.map(Levels::List).map_err(|ParseError(wrong)| {
        ParseError(format!(
            "{wrong}; levels are 'auto' or a list such as 1,10,50"
        ))
    })
}

/// `auto`, or rates separated by commas.
pub fn rate_levels(text: &str) -> Result<Levels<Rate>, ParseError> {
    match text {
        "auto" => Ok(Levels::Auto),
        list => parse_rates(list).map(Levels::List),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        for (text, expected) in [
            ("1", Ok(1)),
            ("10_000", Ok(10_000)),
            ("0", Err("'0' is too few: at least 1")),
            ("", Err("'' is not a whole number such as 100")),
            ("-5", Err("'-5' is not a whole number such as 100")),
            ("1.5", Err("'1.5' is not a whole number such as 100")),
            ("ten", Err("'ten' is not a whole number such as 100")),
            (
                "4294967296",
                Err("'4294967296' is too many: at most 4294967295"),
            ),
            (
                "99999999999999999999",
                Err("'99999999999999999999' is too large: at most 18446744073709551615"),
            ),
        ] {
            let expected = expected.map_err(|e: &str| ParseError(e.to_string()));
            assert_eq!(parse_count(text), expected, "{text}");
        }
    }

    #[test]
    fn levels_of_users() {
        assert_eq!(vuser_levels("auto"), Ok(Levels::Auto));
        assert_eq!(vuser_levels("1, 10,50"), Ok(Levels::List(vec![1, 10, 50])));
        let wrong = vuser_levels("1,,3").unwrap_err().0;
        assert!(
            wrong.ends_with("levels are 'auto' or a list such as 1,10,50"),
            "{wrong}"
        );
    }
}
