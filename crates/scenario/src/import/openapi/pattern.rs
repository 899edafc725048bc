//! A text that a regular expression matches: short, and always the same.

use knee_load::session::Pattern;
use regex_syntax::hir::{Class, Hir, HirKind};

/// The longest text, and the most parts that are looked at.
const LENGTH_MAX: usize = 1_000;
const PARTS_MAX: usize = 10_000;

/// A text of at least `least` characters that a pattern matches; `None` if none was found.
pub(super) fn text_of(pattern: &str, least: usize) -> Option<String> {
    let matches = Pattern::parse(pattern).ok()?;
    let parsed = regex_syntax::parse(pattern).ok()?;
    // More of what may be repeated makes it longer.
    for more in [0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256] {
        let mut maker = TextMaker { text: String::new(), parts: PARTS_MAX, more };
        maker.add(&parsed)?;
        if maker.text.chars().count() >= least && matches.is_in(&maker.text) {
            return Some(maker.text);
        }
    }
    None
}

struct TextMaker {
    text: String,
    /// How many parts may still be looked at.
    parts: usize,
    /// How often a repetition without an end is done beyond its least.
    more: u32,
}

impl TextMaker {
    fn add(&mut self, part: &Hir) -> Option<()> {
        self.parts = self.parts.checked_sub(1)?;
        if self.text.len() > LENGTH_MAX {
            return None;
        }
        match part.kind() {
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => self.text.push_str(std::str::from_utf8(&literal.0).ok()?),
            HirKind::Class(class) => self.text.push(letter(class)?),
            HirKind::Capture(capture) => self.add(&capture.sub)?,
            HirKind::Concat(parts) => {
                for part in parts {
                    self.add(part)?;
                }
            }
            HirKind::Alternation(parts) => self.add(parts.first()?)?,
            HirKind::Repetition(repetition) => {
                let most = repetition.max.unwrap_or(u32::MAX);
                for _ in 0..repetition.min.saturating_add(self.more).min(most) {
                    self.add(&repetition.sub)?;
                }
            }
        }
        Some(())
    }
}

/// A letter or a digit of a class, or its first character.
fn letter(class: &Class) -> Option<char> {
    let Class::Unicode(class) = class else {
        return None;
    };
    let has =
        |c: char| class.ranges().iter().any(|range| (range.start()..=range.end()).contains(&c));
    let first = class.ranges().first().map(|range| range.start());
    ('a'..='z').chain('1'..='9').chain('A'..='Z').chain(['0', '-']).find(|c| has(*c)).or(first)
}

#[cfg(test)]
mod tests {
    use super::text_of;

    #[test]
    fn texts_match_their_patterns() {
        for (pattern, least, text) in [
            (r"^[A-Z]{3}-\d{4}$", 0, Some("AAA-1111")),
            (r"^\w+$", 5, Some("aaaaa")),
            (r"^(red|green)$", 0, Some("red")),
            (r"^$", 3, None),
            (r"^(?=a)b", 0, None),
            (r"(a{1000}){1000}", 0, None),
            (r"^\+?[1-9]\d{1,14}$", 4, Some("+111")),
        ] {
            assert_eq!(text_of(pattern, least).as_deref(), text, "{pattern}");
        }
    }
}
