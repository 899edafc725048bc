//! A line of text whose pieces have roles; colours are added when it is written.

use crate::number::TIE;
use knee_load::shown::{is_hidden, push_shown};
use std::io;

/// The role of a piece of text, which decides its colour. Colour is never the only sign of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    /// Ordinary text.
    Plain,
    /// Headings and the answer.
    Strong,
    /// Evidence, axes, remarks.
    Dim,
    /// A good result.
    Good,
    /// A warning.
    Warn,
    /// An error.
    Bad,
    /// Measured points of a plot.
    Data,
    /// Reference lines of a plot.
    Guide,
}

impl Ink {
    /// The parameters of its SGR sequence (ECMA-48), of the sixteen colours every terminal has.
    fn sgr(self) -> Option<&'static str> {
        match self {
            Ink::Plain => None,
            Ink::Strong => Some("1"),
            Ink::Dim => Some("2"),
            Ink::Good => Some("1;32"),
            Ink::Warn => Some("1;33"),
            Ink::Bad => Some("1;31"),
            Ink::Data => Some("36"),
            Ink::Guide => Some("35"),
        }
    }
}

/// A line of text in pieces. Each character counts as one column.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    pieces: Vec<(Ink, String)>,
}

impl Line {
    /// The pieces in order.
    pub(crate) fn pieces(&self) -> &[(Ink, String)] {
        &self.pieces
    }

    /// A line of one piece.
    pub(crate) fn of(ink: Ink, text: impl Into<String>) -> Line {
        Line::default().with(ink, text)
    }

    /// An ordinary line.
    pub(crate) fn plain(text: impl Into<String>) -> Line {
        Line::of(Ink::Plain, text)
    }

    /// Adds a piece at the end of an owned line.
    pub(crate) fn with(mut self, ink: Ink, text: impl Into<String>) -> Line {
        self.push(ink, text);
        self
    }

    /// Adds a piece at the end.
    pub(crate) fn push(&mut self, ink: Ink, text: impl Into<String>) {
        let text = text.into();
        match self.pieces.last_mut() {
            Some((last, end)) if *last == ink => end.push_str(&text),
            _ if text.is_empty() => {}
            _ => self.pieces.push((ink, text)),
        }
    }

    /// Adds another line at the end.
    pub(crate) fn append(&mut self, other: Line) {
        for (ink, text) in other.pieces {
            self.push(ink, text);
        }
    }

    /// Fills with spaces up to a width.
    pub(crate) fn pad_to(&mut self, width: usize) {
        let missing = width.saturating_sub(self.width());
        self.push(Ink::Plain, " ".repeat(missing));
    }

    /// The text, with ordinary spaces in place of no-break spaces.
    pub(crate) fn text(&self) -> String {
        let text: String = self.pieces.iter().map(|(_, t)| t.as_str()).collect();
        text.replace(TIE, " ")
    }

    /// Width in columns.
    pub(crate) fn width(&self) -> usize {
        self.pieces.iter().map(|(_, t)| t.chars().count()).sum()
    }

    /// A copy with control characters escaped, as a report may come from anywhere. Unless
    /// `unicode`, other characters beyond ASCII are spelt in ASCII.
    pub(crate) fn cleaned(&self, unicode: bool) -> Line {
        let mut line = Line::default();
        for (ink, text) in &self.pieces {
            line.push(*ink, cleaned(text, unicode));
        }
        line
    }

    /// Breaks the line between words into lines of at most `width` columns. Lines after the first
    /// begin with `hang` spaces. A longer word is cut.
    pub(crate) fn wrapped(&self, width: usize, hang: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut line = Line::default();
        let mut empty = true;
        for (ink, word) in self.words() {
            let mut word: Vec<char> = word.chars().collect();
            if word.is_empty() {
                line.push(Ink::Plain, " ");
                continue;
            }
            if !empty && line.width() + word.len() > width {
                lines.push(std::mem::replace(&mut line, Line::plain(" ".repeat(hang))));
            }
            while line.width() + word.len() > width && hang < width {
                let rest = word.split_off(width.saturating_sub(line.width()).max(1));
                line.push(ink, word.into_iter().collect::<String>());
                lines.push(std::mem::replace(&mut line, Line::plain(" ".repeat(hang))));
                word = rest;
            }
            line.push(ink, word.into_iter().collect::<String>());
            empty = false;
        }
        lines.push(line);
        lines
    }

    /// Writes the line and a newline, without trailing spaces, with SGR colours if `color`.
    pub(crate) fn write(&self, color: bool, out: &mut dyn io::Write) -> io::Result<()> {
        let text: String = self.pieces.iter().map(|(_, t)| t.as_str()).collect();
        let mut left = text.trim_end_matches([' ', TIE]).chars().count();
        for (ink, piece) in &self.pieces {
            let shown: String = piece.chars().take(left).collect();
            left -= shown.chars().count();
            let shown = shown.replace(TIE, " ");
            match ink.sgr().filter(|_| color && !shown.trim().is_empty()) {
                Some(sgr) => write!(out, "\x1b[{sgr}m{shown}\x1b[0m")?,
                None => out.write_all(shown.as_bytes())?,
            }
        }
        out.write_all(b"\n")
    }

    /// The words with their inks; an empty word stands for the gap between two words.
    fn words(&self) -> Vec<(Ink, String)> {
        let mut words = Vec::new();
        for (ink, text) in &self.pieces {
            for (i, word) in text.split(' ').enumerate() {
                if i > 0 {
                    words.push((*ink, String::new()));
                }
                if !word.is_empty() {
                    words.push((*ink, word.to_string()));
                }
            }
        }
        words
    }
}

impl From<String> for Line {
    fn from(text: String) -> Line {
        Line::plain(text)
    }
}

impl From<&str> for Line {
    fn from(text: &str) -> Line {
        Line::plain(text)
    }
}

/// See [`Line::cleaned`].
pub(crate) fn cleaned(text: &str, unicode: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            TIE => out.push(TIE),
            c if is_hidden(c) => push_shown(&mut out, c),
            c if unicode || c.is_ascii() => out.push(c),
            c => out.push_str(spelt(c)),
        }
    }
    out
}

/// A character in ASCII.
fn spelt(c: char) -> &'static str {
    match c {
        'µ' | 'μ' => "u",
        '–' | '—' | '−' | '‑' => "-",
        '±' => "+-",
        '×' => "x",
        '·' => "*",
        '≤' => "<=",
        '≥' => ">=",
        '≈' => "~",
        '→' => "->",
        '←' => "<-",
        '…' => "...",
        '₀' => "0",
        '₁' => "1",
        '₂' => "2",
        '²' => "^2",
        'λ' => "lambda",
        'ρ' => "rho",
        'σ' => "sigma",
        '◀' => "<",
        '✓' => "+",
        '✗' => "x",
        '•' | '†' => "*",
        '‡' => "<",
        '●' | '○' | '◆' | '◇' => "o",
        '“' | '”' => "\"",
        '‘' | '’' => "'",
        _ => "?",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(line: &Line, color: bool) -> String {
        let mut bytes = Vec::new();
        line.write(color, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn words_are_not_torn_apart_and_units_stay_with_their_numbers() {
        let line = Line::plain(format!("one two 3{TIE}ms four"));
        let lines: Vec<String> = line.wrapped(8, 2).iter().map(|l| written(l, false)).collect();
        assert_eq!(lines, ["one two\n", "  3 ms\n", "  four\n"]);
    }

    #[test]
    fn a_word_in_two_inks_and_one_too_wide() {
        let line = Line::of(Ink::Strong, "ab").with(Ink::Dim, "cdefghij kl");
        let text: String = line.wrapped(6, 1).iter().map(|l| written(l, false)).collect();
        assert_eq!(text, "ab\n cdefg\n hij\n kl\n");
    }

    #[test]
    fn colour_only_when_asked_and_never_a_space_at_the_end() {
        let line = Line::of(Ink::Bad, "no").with(Ink::Plain, "  ");
        assert_eq!(written(&line, false), "no\n");
        assert_eq!(written(&line, true), "\x1b[1;31mno\x1b[0m\n");
    }

    #[test]
    fn control_characters_and_what_is_not_ascii() {
        let line = Line::plain("a\x1b[31mb\n 5 µs ± 2 → ☃");
        assert_eq!(written(&line.cleaned(true), false), "a\\u{1b}[31mb  5 µs ± 2 → ☃\n");
        assert_eq!(written(&line.cleaned(false), false), "a\\u{1b}[31mb  5 us +- 2 -> ?\n");
    }
}
