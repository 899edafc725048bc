//! What is wrong with a scenario file, and where.

use knee_load::quantity::quoted;
use knee_load::spec::ParseError;

/// A place in a file; both count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Position {
    /// A place further on in the same line.
    pub(super) fn right(self, characters: usize) -> Position {
        Position { column: self.column + characters, ..self }
    }
}

/// A mistake in a scenario file, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScenarioError {
    pub(super) at: Position,
    pub(super) what: String,
}

/// A part of a scenario, or the first mistake in it.
pub(super) type Read<T> = Result<T, ScenarioError>;

impl ScenarioError {
    /// The line that a user sees. Whatever the file holds, it has no control characters.
    pub(super) fn in_file(&self, file: &str) -> ParseError {
        let Position { line, column } = self.at;
        let line = format!("{file}:{line}:{column}: {}", self.what);
        ParseError(line.replace(char::is_control, " "))
    }
}

/// A mistake at a place.
pub(super) fn fault<T>(at: Position, what: impl Into<String>) -> Read<T> {
    Err(ScenarioError { at, what: what.into() })
}

/// Returns a mistake at a place, described as by `format!`.
macro_rules! bail {
    ($at:expr, $($what:tt)+) => {
        return $crate::fault::fault($at, format!($($what)+))
    };
}
pub(super) use bail;

/// `unknown WHAT 'word'`, with the known word that is nearest, or else with all of them.
pub(super) fn unknown<'a>(
    what: &str,
    word: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> String {
    if let Some(near) = nearest(word, known.clone()) {
        return format!("unknown {what} {}: did you mean '{near}'?", quoted(word));
    }
    let names: Vec<String> = known.take(LISTED_MAX + 1).map(quoted).collect();
    let all = match names.len() {
        0 => return format!("unknown {what} {}: there is none", quoted(word)),
        1..=LISTED_MAX => names.join(", "),
        _ => format!("{}, …", names[..LISTED_MAX].join(", ")),
    };
    format!("unknown {what} {}: expected {all}", quoted(word))
}

/// The most words that an error lists.
const LISTED_MAX: usize = 30;

/// The most characters of a word that is looked for among the known ones.
const WORD_MAX: usize = 64;

/// The known word that is spelt most alike, if one is near enough to be meant.
pub(super) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace(['_', ' '], "-");
    let length = word.chars().take(WORD_MAX + 1).count();
    if length > WORD_MAX {
        return None;
    }
    let word = plain(word);
    let apart_max = (length / 3).max(1);
    let near = known.take(CANDIDATES_MAX).filter_map(|other| {
        let is_short = other.len() <= 4 * WORD_MAX;
        let apart = is_short.then(|| strsim::damerau_levenshtein(&word, &plain(other)))?;
        // A word of one or two letters is near to every other.
        (apart == 0 || (length > 2 && apart <= apart_max)).then_some((apart, other))
    });
    near.min_by_key(|&(apart, _)| apart).map(|(_, other)| other)
}

/// The most known words that are compared.
const CANDIDATES_MAX: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_meant_is_found() {
        let known = ["expect", "extract", "json", "body", "body_file", "on_failure"];
        for (word, want) in [
            ("expct", Some("expect")),
            ("Extract", Some("extract")),
            ("body-file", Some("body_file")),
            ("onfailure", Some("on_failure")),
            ("bdoy", Some("body")),
            ("js", None),
            ("something", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known.into_iter()), want, "{word}");
        }
    }

    #[test]
    fn an_unknown_word_is_told_with_those_that_are_known() {
        let known = || ["a", "b"].into_iter();
        assert_eq!(unknown("key", "long", known()), "unknown key 'long': expected 'a', 'b'");
        assert_eq!(unknown("key", "A", known()), "unknown key 'A': did you mean 'a'?");
        let none = unknown("variable", "x", std::iter::empty());
        assert_eq!(none, "unknown variable 'x': there is none");
        assert_eq!(nearest(&"x".repeat(1_000), known()), None);
    }
}
