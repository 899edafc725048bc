//! Text that others wrote, such as the strings of a report file, made safe to show.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a character has no shape of its own and may change what stands around it. C0 and C1
/// controls begin escape sequences of a terminal. Controls of the direction of writing reorder a
/// line (Unicode TR 36, §3.5). Line separators, joiners, marks and tags are not seen.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// The text with hidden characters spelt out: `\u{1b}`. Line ends and tabs become spaces.
pub fn shown(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    text.chars().for_each(|c| push_shown(&mut out, c));
    Cow::Owned(out)
}

/// Adds one character as [`shown`] does.
pub fn push_shown(out: &mut String, c: char) {
    match c {
        '\n' | '\r' | '\t' => out.push(' '),
        c if is_hidden(c) => {
            // A String takes whatever it is given.
            let _ = write!(out, "{}", c.escape_unicode());
        }
        c => out.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_spelt_and_others_stay() {
        for (text, expected) in [
            ("\u{1b}[31mred\u{7}", "\\u{1b}[31mred\\u{7}"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("gpj.\u{202e}exe", "gpj.\\u{202e}exe"),
            ("a\u{2066}b\u{2069}\u{200b}", "a\\u{2066}b\\u{2069}\\u{200b}"),
            ("\u{e0041}", "\\u{e0041}"),
            ("two\r\nlines\tof", "two  lines of"),
        ] {
            assert_eq!(shown(text), expected);
        }
        for text in ["", "plain", "µs – ±5 %, 10\u{a0}ms", "Ünïcode 日本 עברית 🚀", "\\u{1b}"]
        {
            assert!(matches!(shown(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }
}
