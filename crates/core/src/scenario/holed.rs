//! Text with holes: what a request has where its template has pieces that only the run knows.

use crate::session::{Escape, Fill, Function, Piece, Template, is_bare_json};
use std::fmt::Write;

/// A text, and what is put in before which of its bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Holed {
    pub(super) text: String,
    pub(super) holes: Vec<(usize, Fill)>,
}

impl Holed {
    /// The text of a template, made fit for a place.
    pub(super) fn of(template: &Template, escape: Escape) -> Holed {
        let mut holed = Holed::default();
        holed.put(template, escape);
        holed
    }

    /// Only what a hole is filled with.
    pub(super) fn hole(value: Template, escape: Escape) -> Holed {
        Holed {
            text: String::new(),
            holes: vec![(0, Fill { value, escape })],
        }
    }

    /// Puts text to it as it is.
    pub(super) fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Puts a template to it: its text made fit, and a hole for what comes between.
    pub(super) fn put(&mut self, template: &Template, escape: Escape) {
        let own = self.holes.len();
        for piece in &template.0 {
            let raw = match piece {
                Piece::Call(function) => match &**function {
                    Function::Raw(of) => Some(&of.0),
                    _ => None,
                },
                _ => None,
            };
            match raw {
                Some(pieces) => {
                    let escape = raw_of(escape);
                    for piece in pieces {
                        self.put_piece(piece, escape, own);
                    }
                }
                None => self.put_piece(piece, escape, own),
            }
        }
    }

    /// Puts a piece to it. Neighbours share a hole, if it is one of those from number `own` on.
    pub(super) fn put_piece(&mut self, piece: &Piece, escape: Escape, own: usize) {
        if let Piece::Text(text) = piece {
            return escaped(text, escape, &mut self.text);
        }
        let at = self.text.len();
        match self.holes[own..].last_mut() {
            Some((last, fill)) if *last == at && fill.escape == escape => {
                fill.value.0.push(piece.clone());
            }
            _ => {
                let value = Template(vec![piece.clone()]);
                self.holes.push((at, Fill { value, escape }));
            }
        }
    }

    /// With a letter in the place of each hole, so that what is checked is the text around them.
    pub(super) fn with_letters(&self) -> String {
        let mut text = String::with_capacity(self.text.len() + self.holes.len());
        let mut from = 0;
        for (at, _) in &self.holes {
            text.push_str(&self.text[from..*at]);
            text.push('x');
            from = *at;
        }
        text.push_str(&self.text[from..]);
        text
    }
}

/// How `raw(…)` is put into a place: unchanged, and still in one line where that is a header.
fn raw_of(escape: Escape) -> Escape {
    match escape {
        Escape::Header | Escape::Cookie => Escape::Header,
        _ => Escape::None,
    }
}

/// The text as the place takes it. What a URL or a header does not take is refused, not changed.
fn escaped(text: &str, escape: Escape, into: &mut String) {
    match escape {
        Escape::None
        | Escape::Component
        | Escape::Segment
        | Escape::UrlPiece
        | Escape::Link
        | Escape::Header
        | Escape::Cookie => into.push_str(text),
        Escape::Json => {
            let quoted = serde_json::to_string(text).unwrap_or_default();
            into.push_str(quoted.get(1..quoted.len() - 1).unwrap_or_default());
        }
        Escape::JsonValue if is_bare_json(text.as_bytes()) => into.push_str(text),
        Escape::JsonValue => into.push_str(&serde_json::to_string(text).unwrap_or_default()),
        Escape::Form => form_text(text, into),
    }
}

/// As a name or a value of `application/x-www-form-urlencoded`.
pub(super) fn form_text(text: &str, into: &mut String) {
    for byte in text.bytes() {
        match byte {
            b' ' => into.push('+'),
            b if b.is_ascii_alphanumeric() || b"*-._".contains(&b) => into.push(char::from(b)),
            b => {
                // Writing to a text cannot fail.
                let _ = write!(into, "%{b:02X}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_a_hole_and_text_is_made_fit() {
        let text = |text: &str| Piece::Text(text.to_owned());
        let template = Template(vec![
            text("a\""),
            Piece::Variable(0),
            Piece::Variable(1),
            text("é"),
        ]);
        let mut holed = Holed::default();
        holed.push("{");
        holed.put(&template, Escape::Json);
        holed.put(&Template(vec![Piece::Variable(2)]), Escape::Form);
        assert_eq!(holed.text, "{a\\\"é");
        let holes: Vec<_> = holed
            .holes
            .iter()
            .map(|(at, fill)| (*at, fill.value.0.len()))
            .collect();
        assert_eq!(holes, [(4, 2), (6, 1)]);
        assert_eq!(holed.with_letters(), "{a\\\"xéx");
        let mut form = String::new();
        form_text("a b&ü", &mut form);
        assert_eq!(form, "a+b%26%C3%BC");
    }
}
