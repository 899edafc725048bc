//! Text with holes, for the pieces of a template whose values only the run knows.

use knee_load::percent;
use knee_load::session::TemplatePiece;
use knee_load::session::{Escape, Fill, Function, Template, is_bare_json};

/// A text, and the fills that go in before some of its bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TextWithHoles {
    pub(super) text: String,
    pub(super) holes: Vec<(usize, Fill)>,
}

impl TextWithHoles {
    /// A template, escaped for its place.
    pub(super) fn of(template: &Template, escape: Escape) -> TextWithHoles {
        let mut holed = TextWithHoles::default();
        holed.put(template, escape);
        holed
    }

    /// A hole without text around it.
    pub(super) fn hole(value: Template, escape: Escape) -> TextWithHoles {
        TextWithHoles { text: String::new(), holes: vec![(0, Fill { value, escape })] }
    }

    /// Appends text as it is.
    pub(super) fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Appends a template: its text escaped, its other pieces as holes.
    pub(super) fn put(&mut self, template: &Template, escape: Escape) {
        let own = self.holes.len();
        for piece in &template.0 {
            if let TemplatePiece::Call(function) = piece
                && let Function::Raw(of) = &**function
            {
                let escape = raw_of(escape);
                of.0.iter().for_each(|piece| self.put_piece(piece, escape, own));
            } else {
                self.put_piece(piece, escape, own);
            }
        }
    }

    /// Appends a piece. Neighbours share a hole if its number is `own` or higher.
    pub(super) fn put_piece(&mut self, piece: &TemplatePiece, escape: Escape, own: usize) {
        if let TemplatePiece::Text(text) = piece {
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

    /// The text with a letter in the place of each hole, to check the text around them.
    pub(super) fn with_letters(&self) -> String {
        let mut text = self.text.clone();
        for (at, _) in self.holes.iter().rev() {
            text.insert(*at, 'x');
        }
        text
    }
}

/// How `raw(…)` is escaped: not at all, but in a header it stays on one line.
fn raw_of(escape: Escape) -> Escape {
    match escape {
        Escape::Header | Escape::Cookie => Escape::Header,
        _ => Escape::None,
    }
}

/// Appends text escaped for its place. Characters that a URL or header cannot have are refused
/// later, not changed.
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
        Escape::Form => into.push_str(&percent::form(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_a_hole_and_text_is_made_fit() {
        let text = |text: &str| TemplatePiece::Text(text.to_owned());
        let template = Template(vec![
            text("a\""),
            TemplatePiece::Variable(0),
            TemplatePiece::Variable(1),
            text("é"),
        ]);
        let mut holed = TextWithHoles::default();
        holed.push("{");
        holed.put(&template, Escape::Json);
        holed.put(&Template(vec![TemplatePiece::Variable(2)]), Escape::Form);
        assert_eq!(holed.text, "{a\\\"é");
        let holes: Vec<_> =
            holed.holes.iter().map(|(at, fill)| (*at, fill.value.0.len())).collect();
        assert_eq!(holes, [(4, 2), (6, 1)]);
        assert_eq!(holed.with_letters(), "{a\\\"xéx");
        assert_eq!(percent::form("a b&ü"), "a+b%26%C3%BC");
    }
}
