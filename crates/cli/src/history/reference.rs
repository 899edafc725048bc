//! How a run of the history is named: by its id, as a baseline, or as the latest.

use std::fmt;

/// Names one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// By its id.
    Id(i64),
    /// The baseline of this name.
    Baseline(String),
    /// The latest one.
    Last,
}

/// The word for the latest run.
const LAST: &str = "last";

/// No name is longer.
const NAME_MAX: usize = 100;

impl Reference {
    /// Reads `12`, `main` or `last`.
    ///
    /// # Errors
    /// What is wrong with it and what would be right.
    pub fn parse(text: &str) -> Result<Reference, String> {
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
            return text
                .parse()
                .map(Reference::Id)
                .map_err(|_| "no run has such an id".to_string());
        }
        if text == LAST {
            return Ok(Reference::Last);
        }
        parse_name(text)
            .map(Reference::Baseline)
            .map_err(|_| "is no run: give its id, a baseline's name or 'last'".to_string())
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reference::Id(id) => write!(f, "{id}"),
            Reference::Baseline(name) => f.write_str(name),
            Reference::Last => f.write_str(LAST),
        }
    }
}

/// Reads the name of a baseline: `main`, `v1.2`, `feature/cache`.
///
/// # Errors
/// What is wrong with it and what would be right.
pub fn parse_name(text: &str) -> Result<String, String> {
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic());
    let goes_on = text
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"._-/".contains(&b));
    if !begins || !goes_on || text.len() > NAME_MAX {
        return Err(format!(
            "'{}' is no name: a letter, then letters, digits, '.', '_', '-' and '/', at most \
             {NAME_MAX} in all",
            text.escape_debug()
        ));
    }
    if text == LAST {
        return Err(format!("'{LAST}' is the latest run: take another name"));
    }
    Ok(text.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references() {
        let name = |text: &str| Reference::Baseline(text.to_string());
        for (text, expected) in [
            ("12", Some(Reference::Id(12))),
            ("007", Some(Reference::Id(7))),
            ("last", Some(Reference::Last)),
            ("main", Some(name("main"))),
            ("feature/cache-2_b.1", Some(name("feature/cache-2_b.1"))),
            ("", None),
            ("-1", None),
            ("1a", None),
            ("99999999999999999999", None),
            ("a b", None),
            ("häh", None),
        ] {
            assert_eq!(Reference::parse(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn names_that_mean_something_else_are_refused() {
        for text in ["last", "12", "", "a\nb", &"x".repeat(101)] {
            let wrong = parse_name(text).unwrap_err();
            assert!(!wrong.contains('\n'), "{wrong}");
        }
    }
}
