//! What there is to say about waiting.

use knee_core::spec::ParseError;
use std::time::{SystemTime, UNIX_EPOCH};

/// The most characters that a quote has (RFC 865), the line end that is sent behind it included.
pub const QUOTE_MAX: usize = 512;

/// One for each day of the week.
const QUOTES: [&str; 7] = [
    "A queue is a debt: it grows in an instant and is paid off one by one.",
    "Nobody ever waited for an average.",
    "Whoever sleeps for a millisecond should be glad to wake within two.",
    "Busy all day and never behind: one of the two is not true.",
    "The last tenth of the load costs more waiting than the nine before it.",
    "A schedule that forgives its delays has forgotten them.",
    "If everyone waits for you, you are the measurement.",
];

/// The quote of this day.
pub fn of_the_day() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let day = since.map_or(0, |time| time.as_secs() / 86_400);
    QUOTES[(day % QUOTES.len() as u64) as usize].to_owned()
}

/// A quote as the service may send it: printable ASCII and line ends, not empty, at most
/// [`QUOTE_MAX`] characters. Line ends become CR LF, and one is added at the end.
///
/// # Errors
/// It is none of that.
pub fn parse_quote(text: &str) -> Result<String, ParseError> {
    let mut quote = String::with_capacity(text.len() + 2);
    for line in text.trim_end_matches(['\r', '\n']).split('\n') {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if let Some(other) = line.chars().find(|c| !matches!(c, ' '..='~')) {
            return Err(ParseError(format!(
                "a quote has printable ASCII characters and line ends (RFC 865), not {other:?}"
            )));
        }
        quote.push_str(line);
        quote.push_str("\r\n");
    }
    match quote.len() {
        0..=2 => Err(ParseError("a quote has to say something".to_owned())),
        3..=QUOTE_MAX => Ok(quote),
        length => Err(ParseError(format!(
            "a quote has at most {QUOTE_MAX} characters with its line ends (RFC 865), not {length}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_is_short_printable_and_ends_its_lines() {
        assert_eq!(parse_quote("a\nb\r\n").unwrap(), "a\r\nb\r\n");
        assert_eq!(parse_quote("x").unwrap(), "x\r\n");
        for bad in ["", "\n", "é", "a\tb", "a\rb", &"x".repeat(511)] {
            assert!(parse_quote(bad).is_err(), "{bad:?}");
        }
        assert!(parse_quote(&"x".repeat(510)).is_ok());
    }

    #[test]
    fn every_day_has_a_quote() {
        assert!(QUOTES.iter().all(|quote| parse_quote(quote).is_ok()));
        assert!(QUOTES.contains(&of_the_day().as_str()));
    }
}
