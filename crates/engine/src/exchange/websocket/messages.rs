//! Messages of a load: what is sent, and how an echo is known.

use super::frame::{self, opcode};
use crate::exchange::RequestRef;
use crate::reactor::WireRequest;
use knee_load::spec::{Body, Cut, Matching, Part, Target, WebSocketSettings};

/// What stands before a number, so that it is found wherever a server puts it.
const NUMBER_MARK: &[u8] = b"knee-";

/// Digits of a number.
const NUMBER_DIGITS: usize = 10;

/// Bytes of a number with its mark.
const NUMBER_BYTES: usize = NUMBER_MARK.len() + NUMBER_DIGITS;

/// Appends the number of a message: `knee-0000000042`.
fn put_number(out: &mut Vec<u8>, number: u32) {
    out.extend_from_slice(NUMBER_MARK);
    put_digits::<NUMBER_DIGITS>(out, number.into());
}

/// The first number in a message. It is looked for at `hint` first.
pub(super) fn number_in(message: &[u8], hint: usize) -> Option<u32> {
    number_at(message, hint).or_else(|| {
        let last = message.len().checked_sub(NUMBER_BYTES)?;
        (0..=last).find_map(|at| number_at(message, at))
    })
}

#[inline]
fn number_at(message: &[u8], at: usize) -> Option<u32> {
    let digits = message.get(at..at + NUMBER_BYTES)?.strip_prefix(NUMBER_MARK)?;
    let digits = std::str::from_utf8(digits).ok()?;
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// What stands before the time at which a message left.
const TIME_MARK: &[u8] = b"knee-at-";

/// Digits of a time in nanoseconds.
const TIME_DIGITS: usize = 20;

/// Appends the time at which a message leaves, in nanoseconds since 1970.
pub fn put_time(out: &mut Vec<u8>, realtime_ns: u64) {
    out.extend_from_slice(TIME_MARK);
    put_digits::<TIME_DIGITS>(out, realtime_ns);
}

/// The first time in a message, in nanoseconds since 1970.
pub fn time_in(message: &[u8]) -> Option<u64> {
    let at = message.windows(TIME_MARK.len()).position(|window| window == TIME_MARK)?;
    let digits = message.get(at + TIME_MARK.len()..)?.get(..TIME_DIGITS)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Appends a number in digits, zeros first.
fn put_digits<const DIGITS: usize>(out: &mut Vec<u8>, mut left: u64) {
    let mut digits = [b'0'; DIGITS];
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
    }
    out.extend_from_slice(&digits);
}

/// A message of the load.
#[derive(Debug)]
pub(super) struct MessageTemplate {
    pieces: Vec<MessagePiece>,
    /// Place of the number, as far as the text before it tells.
    pub(super) number_at: usize,
}

#[derive(Debug)]
enum MessagePiece {
    Cut(Cut),
    Number,
    Time,
}

impl MessageTemplate {
    /// The messages of a target, by request.
    pub(super) fn all(target: &Target, settings: &WebSocketSettings) -> Vec<MessageTemplate> {
        let one = |request| MessageTemplate::of(request, settings.matching);
        target.requests.iter().map(|r| r.cut(Part::Body)).map(one).collect()
    }

    /// The number stands where the content says, or at its end.
    fn of(cuts: Vec<Cut>, matching: Matching) -> MessageTemplate {
        let mut template = MessageTemplate { pieces: Vec::new(), number_at: 0 };
        for cut in cuts {
            match cut {
                Cut::Hole(_) => template.pieces.push(MessagePiece::Cut(cut)),
                Cut::Text(text) => template.add_text(&text),
            }
        }
        if matching == Matching::Number && !template.has_number() {
            if !template.pieces.is_empty() {
                template.push_text(b" ");
            }
            template.pieces.push(MessagePiece::Number);
        }
        template
    }

    fn has_number(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, MessagePiece::Number))
    }

    /// Adds a text, whose places for the number and the time are filled with each message.
    fn add_text(&mut self, mut rest: &[u8]) {
        let marks = [
            (WebSocketSettings::NUMBER.as_bytes(), false),
            (WebSocketSettings::TIME.as_bytes(), true),
        ];
        let mut at = 0;
        while at < rest.len() {
            let found = marks.iter().find(|(mark, _)| rest[at..].starts_with(mark));
            let Some((mark, is_time)) = found else {
                at += 1;
                continue;
            };
            self.push_text(&rest[..at]);
            self.pieces.push(if *is_time { MessagePiece::Time } else { MessagePiece::Number });
            if *is_time && !self.has_number() {
                self.number_at += TIME_MARK.len() + TIME_DIGITS;
            }
            rest = &rest[at + mark.len()..];
            at = 0;
        }
        self.push_text(rest);
    }

    fn push_text(&mut self, text: &[u8]) {
        if text.is_empty() {
            return;
        }
        if !self.has_number() {
            self.number_at += text.len();
        }
        self.pieces.push(MessagePiece::Cut(Cut::Text(text.to_vec())));
    }

    /// Appends the payload of a message with this number that leaves at this time.
    pub(super) fn put(
        &self,
        request: RequestRef<'_>,
        (number, time_ns): (u32, u64),
        out: &mut Vec<u8>,
    ) {
        for piece in &self.pieces {
            match piece {
                MessagePiece::Cut(cut) => cut.put(request.fills, out),
                MessagePiece::Number => put_number(out, number),
                MessagePiece::Time => put_time(out, time_ns),
            }
        }
    }
}

/// The frames of a target's messages with their holes empty: their lengths on the wire.
pub(super) fn wire_requests(target: &Target, settings: &WebSocketSettings) -> Vec<WireRequest> {
    let templates = MessageTemplate::all(target, settings);
    let wires = templates.iter().enumerate().map(|(number, template)| {
        let (mut payload, mut wire) = (Vec::new(), Vec::new());
        template.put(RequestRef::from(number), (0, 0), &mut payload);
        frame::put(&mut wire, opcode::TEXT, true, Some([0; 4]), &payload);
        WireRequest::new(wire, &Body::default())
    });
    wires.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(content: &str, matching: Matching) -> (String, usize) {
        let template = MessageTemplate::of(vec![Cut::Text(content.as_bytes().to_vec())], matching);
        let mut out = Vec::new();
        template.put(RequestRef::from(0), (42, 7), &mut out);
        (String::from_utf8(out).unwrap(), template.number_at)
    }

    #[test]
    fn a_number_stands_where_the_content_says() {
        let placed = r#"{"id":"{seq}"}"#;
        let want = (r#"{"id":"knee-0000000042"}"#.to_owned(), 7);
        assert_eq!(message(placed, Matching::Number), want);
        assert_eq!(message(placed, Matching::Order), want);
        assert_eq!(message("x", Matching::Number), ("x knee-0000000042".to_owned(), 2));
        assert_eq!(message("x", Matching::Order), ("x".to_owned(), 1));
        let timed = "knee-at-00000000000000000007,knee-0000000042".to_owned();
        assert_eq!(time_in(timed.as_bytes()), Some(7));
        assert_eq!(message("{time},{seq}", Matching::Order), (timed, 29));
        assert_eq!(time_in(b"knee-at-1"), None);
    }

    #[test]
    fn a_number_is_found_wherever_it_stands() {
        for (text, want) in [
            ("knee-0000000007", Some(7)),
            ("echo: knee-4294967295!", Some(u32::MAX)),
            ("knee-9999999999", None),
            ("knee-00000000x7 knee-000000000", None),
            ("", None),
        ] {
            for hint in [0, 6, 100] {
                assert_eq!(number_in(text.as_bytes(), hint), want, "{text}");
            }
        }
    }
}
