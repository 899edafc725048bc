//! How a run of the history is named: by its id, as a baseline, or as the latest.

use std::fmt;

/// Names one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunReference {
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

impl RunReference {
    /// Reads `12`, `main` or `last`.
    ///
    /// # Errors
    /// What is wrong with it and what would be right.
    pub fn parse(text: &str) -> Result<RunReference, String> {
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
            return text
                .parse()
                .map(RunReference::Id)
                .map_err(|_| "no run has such an id".to_string());
        }
        if text == LAST {
            return Ok(RunReference::Last);
        }
        parse_name(text)
            .map(RunReference::Baseline)
            .map_err(|_| "is no run: give its id, a baseline's name or 'last'".to_string())
    }
}

impl fmt::Display for RunReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunReference::Id(id) => write!(f, "{id}"),
            RunReference::Baseline(name) => f.write_str(name),
            RunReference::Last => f.write_str(LAST),
        }
    }
}

/// Reads the name of a baseline: `main`, `v1.2`, `feature/cache`.
///
/// # Errors
/// What is wrong with it and what would be right.
pub fn parse_name(text: &str) -> Result<String, String> {
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic());
    let goes_on = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-/".contains(&b));
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
        let name = |text: &str| RunReference::Baseline(text.to_string());
        for (text, expected) in [
            ("12", Some(RunReference::Id(12))),
            ("007", Some(RunReference::Id(7))),
            ("last", Some(RunReference::Last)),
            ("main", Some(name("main"))),
            ("feature/cache-2_b.1", Some(name("feature/cache-2_b.1"))),
            ("", None),
            ("-1", None),
            ("1a", None),
            ("99999999999999999999", None),
            ("a b", None),
            ("häh", None),
        ] {
            assert_eq!(RunReference::parse(text).ok(), expected, "{text}");
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
