//! Conditions of steps, and what values have to be.

use super::template::Template;
use crate::quantity::{ParseError, error, quoted};
use memchr::memmem::find;
use regex::bytes::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Something that is so or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// Two texts compare so.
    Compared {
        /// The left side.
        left: Template,
        /// What is asked of them.
        relation: Relation,
        /// The right side.
        right: Template,
    },
    /// A regular expression matches a part of a text.
    Matches {
        /// The text.
        text: Template,
        /// The expression.
        pattern: Pattern,
    },
    /// All of these are so.
    All(Vec<Condition>),
    /// At least one of these is so.
    Any(Vec<Condition>),
    /// This is not so.
    Not(Box<Condition>),
}

impl Condition {
    /// Whether it is so, where `fill` fills templates.
    pub(super) fn is_so(&self, fill: &mut impl FnMut(&Template) -> Vec<u8>) -> bool {
        match self {
            Condition::Compared { left, relation, right } => {
                relation.holds(&fill(left), &fill(right))
            }
            Condition::Matches { text, pattern } => pattern.regex.is_match(&fill(text)),
            Condition::All(all) => all.iter().all(|condition| condition.is_so(fill)),
            Condition::Any(any) => any.iter().any(|condition| condition.is_so(fill)),
            Condition::Not(condition) => !condition.is_so(fill),
        }
    }
}

/// How two texts compare: as numbers where both are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// Equal.
    Equal,
    /// Not equal.
    NotEqual,
    /// The left is less.
    Less,
    /// The left is greater.
    Greater,
    /// The left is not greater.
    AtMost,
    /// The left is not less.
    AtLeast,
    /// The right is a part of the left.
    Contains,
}

impl Relation {
    fn holds(self, left: &[u8], right: &[u8]) -> bool {
        let order = match (number(left), number(right)) {
            (Some(left), Some(right)) => left.total_cmp(&right),
            _ => left.cmp(right),
        };
        match self {
            Relation::Equal => order.is_eq(),
            Relation::NotEqual => order.is_ne(),
            Relation::Less => order.is_lt(),
            Relation::Greater => order.is_gt(),
            Relation::AtMost => order.is_le(),
            Relation::AtLeast => order.is_ge(),
            Relation::Contains => find(left, right).is_some(),
        }
    }
}

/// The number that a text is.
pub(super) fn number(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    // 0 and -0 are the same number.
    text.trim().parse::<f64>().ok().filter(|n| n.is_finite()).map(|n| n + 0.0)
}

/// What a value has to be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Match {
    /// There is one.
    Exists,
    /// There is one, and this text is it.
    Equals(Template),
    /// There is one, and this text is in it.
    Contains(Template),
    /// There is one, and this regular expression matches a part of it.
    Matches(Pattern),
    /// It is a number, and so is the text, and they compare so.
    Number(Relation, Template),
    /// It is not this, or there is none.
    Not(Box<Match>),
}

impl Match {
    /// Whether `value` is so, where `fill` fills templates.
    pub(super) fn is_met(
        &self,
        value: Option<&[u8]>,
        fill: &mut impl FnMut(&Template) -> Vec<u8>,
    ) -> bool {
        match (self, value) {
            (Match::Not(of), value) => !of.is_met(value, fill),
            (_, None) => false,
            (Match::Exists, Some(_)) => true,
            (Match::Equals(to), Some(value)) => fill(to) == value,
            (Match::Contains(part), Some(value)) => find(value, &fill(part)).is_some(),
            (Match::Matches(pattern), Some(value)) => pattern.regex.is_match(value),
            (Match::Number(relation, to), Some(value)) => {
                let to = fill(to);
                number(value).is_some() && number(&to).is_some() && relation.holds(value, &to)
            }
        }
    }

    /// What is expected of `source`, in words. `show` shows a template, filled.
    pub(super) fn description(
        &self,
        source: &str,
        show: &mut impl FnMut(&Template) -> String,
    ) -> String {
        let (is, not) = match self {
            Match::Not(of) => (&**of, " not"),
            is => (is, ""),
        };
        match is {
            Match::Exists if not.is_empty() => source.to_owned(),
            Match::Exists => format!("{source} not to be there"),
            Match::Equals(to) => format!("{source}{not} to be {}", show(to)),
            Match::Contains(part) => format!("{source}{not} to contain {}", show(part)),
            Match::Matches(pattern) => format!("{source}{not} to match /{pattern}/"),
            Match::Number(relation, to) => {
                let words = match relation {
                    Relation::Less => "below",
                    Relation::Greater => "above",
                    Relation::AtMost => "at most",
                    _ => "at least",
                };
                format!("{source}{not} to be {words} {}", show(to))
            }
            Match::Not(of) => of.description(source, show),
        }
    }
}

/// A regular expression of the crate `regex`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern {
    text: String,
    pub(super) regex: Regex,
}

impl Pattern {
    /// The largest compiled expression, in bytes.
    const SIZE_MAX: usize = 1 << 20;

    /// Reads an expression.
    ///
    /// # Errors
    /// It is none, or too large.
    pub fn parse(text: &str) -> Result<Pattern, ParseError> {
        let regex = RegexBuilder::new(text).size_limit(Self::SIZE_MAX).build();
        let regex = regex.map_err(|wrong| {
            let why = match &wrong {
                regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
                // The last line of several says what is wrong; the others show where.
                wrong => {
                    let text = wrong.to_string();
                    let last = text.lines().last().unwrap_or_default().trim();
                    last.strip_prefix("error: ").unwrap_or(last).to_owned()
                }
            };
            error(format!("{} is no regular expression: {why}", quoted(text)))
        })?;
        Ok(Pattern { text: text.to_owned(), regex })
    }

    /// The number of its groups, without the whole match.
    pub fn groups(&self) -> usize {
        self.regex.captures_len() - 1
    }

    /// Whether it matches a part of a text.
    pub fn is_in(&self, text: &str) -> bool {
        self.regex.is_match(text.as_bytes())
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.text == other.text
    }
}

impl TryFrom<String> for Pattern {
    type Error = ParseError;

    fn try_from(text: String) -> Result<Pattern, ParseError> {
        Pattern::parse(&text)
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> String {
        pattern.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::TemplatePiece;

    fn text(text: &str) -> Template {
        Template(vec![TemplatePiece::Text(text.to_owned())])
    }

    fn fill(template: &Template) -> Vec<u8> {
        match template.0.first() {
            Some(TemplatePiece::Text(text)) => text.clone().into_bytes(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn relations_compare_numbers_as_numbers_and_texts_as_texts() {
        use Relation::*;
        for (left, holds, fails, right) in [
            ("10", &[Greater, AtLeast, NotEqual][..], &[Less, AtMost, Equal][..], "9"),
            ("1.0", &[Equal, AtLeast, AtMost], &[Less, Greater, NotEqual], "1"),
            ("-0", &[Equal, AtLeast, AtMost], &[Less, Greater, NotEqual], "0"),
            ("a10", &[Less, AtMost, NotEqual], &[Greater, Equal], "a9"),
            ("", &[Less, NotEqual], &[Equal], "0"),
            ("nan", &[Equal, Contains], &[Less], "nan"),
            ("abc", &[Contains], &[Equal], "b"),
            ("abc", &[Contains, Greater], &[], ""),
        ] {
            for relation in holds {
                assert!(relation.holds(left.as_bytes(), right.as_bytes()), "{left} {relation:?}");
            }
            for relation in fails {
                assert!(!relation.holds(left.as_bytes(), right.as_bytes()), "{left} {relation:?}");
            }
        }
    }

    #[test]
    fn conditions_are_joined() {
        let is = |is| Condition::Compared {
            left: text("a"),
            relation: if is { Relation::Equal } else { Relation::NotEqual },
            right: text("a"),
        };
        let matches = |pattern| Condition::Matches {
            text: text("order-17"),
            pattern: Pattern::parse(pattern).unwrap(),
        };
        for (condition, want) in [
            (Condition::All(vec![is(true), is(true)]), true),
            (Condition::All(vec![is(true), is(false)]), false),
            (Condition::Any(vec![is(false), is(true)]), true),
            (Condition::Any(vec![is(false), is(false)]), false),
            (Condition::Not(Box::new(is(false))), true),
            (matches(r"^order-\d+$"), true),
            (matches("^17"), false),
        ] {
            assert_eq!(condition.is_so(&mut fill), want, "{condition:?}");
        }
    }

    #[test]
    fn matches_and_what_is_said_of_them() {
        let number = |relation, to| Match::Number(relation, text(to));
        let not = |is| Match::Not(Box::new(is));
        let pattern = |text| Match::Matches(Pattern::parse(text).unwrap());
        for (is, value, want, words) in [
            (Match::Exists, Some("a"), true, "X"),
            (Match::Exists, None, false, "X"),
            (not(Match::Exists), None, true, "X not to be there"),
            (Match::Equals(text("7")), Some("7.0"), false, "X to be '7'"),
            (not(Match::Equals(text("a"))), Some("b"), true, "X not to be 'a'"),
            (not(Match::Contains(text("b"))), Some("abc"), false, "X not to contain 'b'"),
            (not(Match::Contains(text("b"))), None, true, "X not to contain 'b'"),
            (pattern("b.d"), Some("abcde"), true, "X to match /b.d/"),
            (not(pattern("b.d")), Some("abcde"), false, "X not to match /b.d/"),
            (number(Relation::Greater, "9"), Some("10"), true, "X to be above '9'"),
            (number(Relation::Less, "9"), Some("10"), false, "X to be below '9'"),
            (number(Relation::AtMost, "10"), Some("10"), true, "X to be at most '10'"),
            (number(Relation::AtLeast, "10"), Some("ten"), false, "X to be at least '10'"),
            (number(Relation::AtLeast, "b"), Some("c"), false, "X to be at least 'b'"),
        ] {
            assert_eq!(is.is_met(value.map(str::as_bytes), &mut fill), want, "{is:?} {value:?}");
            let show = &mut |template: &Template| {
                format!("'{}'", String::from_utf8_lossy(&fill(template)))
            };
            assert_eq!(is.description("X", show), words);
        }
    }

    #[test]
    fn what_is_no_pattern_is_told_on_one_line() {
        for (text, want) in [
            ("a(b", "'a(b' is no regular expression: unclosed group"),
            ("*", "'*' is no regular expression: repetition operator missing expression"),
            ("(?:a{1000}){1000}", "'(?:a{1000}){1000}' is no regular expression: it is too large"),
        ] {
            assert_eq!(Pattern::parse(text).unwrap_err().0, want);
        }
        let pattern = Pattern::parse("a(b)(c)?").unwrap();
        assert_eq!(pattern.groups(), 2);
        let json = serde_json::to_string(&pattern).unwrap();
        assert_eq!(serde_json::from_str::<Pattern>(&json).unwrap(), pattern);
        assert!(serde_json::from_str::<Pattern>("\"(\"").is_err());
    }
}
