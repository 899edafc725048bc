//! What is put into the holes of a request.

use super::plan::{Escape, Fill, Function, Moment, Piece, Template};
use super::users::Users;
use super::walk::Learnt;
use crate::date::put_rfc3339_ms;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::fmt::Write as _;

/// What the holes of one request are filled with, in their order; kept and used again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fills {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl Fills {
    /// No hole is filled.
    pub const fn new() -> Fills {
        Fills {
            bytes: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// What is put into hole number `hole`; nothing where there is no such hole.
    #[inline]
    pub fn get(&self, hole: usize) -> &[u8] {
        let Some(&end) = self.ends.get(hole) else {
            return &[];
        };
        let from = match hole {
            0 => 0,
            _ => self.ends[hole - 1],
        };
        &self.bytes[from as usize..end as usize]
    }

    /// How many holes are filled.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// The bytes of all holes from number `hole` on, together.
    #[inline]
    pub fn length_from(&self, hole: usize) -> usize {
        let before = match hole {
            0 => 0,
            _ => self
                .ends
                .get(hole - 1)
                .map_or(self.bytes.len(), |end| *end as usize),
        };
        self.bytes.len() - before
    }

    /// Fills the next hole with `value` as it is.
    pub fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len() as u32);
    }
}

/// What templates are filled from.
pub(super) struct Scope<'a> {
    pub(super) learnt: &'a Learnt,
    pub(super) users: &'a mut Users,
    /// The path that is asked for, where it is known: which cookies are sent depends on it.
    pub(super) path: &'a [u8],
    pub(super) realtime_ns: u64,
}

impl Scope<'_> {
    /// Fills the next hole.
    pub(super) fn fill(&mut self, fill: &Fill, fills: &mut Fills) {
        let from = fills.bytes.len();
        self.put(&fill.value.0, &mut fills.bytes);
        escape(&mut fills.bytes, from, fill.escape);
        fills.ends.push(fills.bytes.len() as u32);
    }

    /// A template, filled.
    pub(super) fn text(&mut self, template: &Template) -> Vec<u8> {
        let mut text = Vec::new();
        self.put(&template.0, &mut text);
        text
    }

    pub(super) fn put(&mut self, pieces: &[Piece], out: &mut Vec<u8>) {
        for piece in pieces {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Variable(variable) => {
                    out.extend_from_slice(self.learnt.variable(*variable));
                }
                Piece::Column { data, column } => {
                    let row = self.learnt.row(*data);
                    out.extend_from_slice(self.users.cell(row, *column).as_bytes());
                }
                Piece::Cookies => self.learnt.jar.put(self.path, self.realtime_ns, out),
                Piece::Call(function) => self.call(function, out),
            }
        }
    }

    fn call(&mut self, function: &Function, out: &mut Vec<u8>) {
        match function {
            Function::Random { low, high } => put_number(self.users.random(*low, *high), out),
            Function::Uuid => put_uuid(self.users.bits(), out),
            Function::Now(moment) => put_moment(self.realtime_ns, *moment, out),
            Function::Seq => put_number(self.users.seq(), out),
            Function::Base64(of) => {
                let text = self.text(of);
                out.extend_from_slice(BASE64.encode(text).as_bytes());
            }
            Function::HmacSha256 { key, message } => {
                let (key, message) = (self.text(key), self.text(message));
                // A key of any length is taken (RFC 2104 §2).
                if let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&key) {
                    mac.update(&message);
                    put_hex(&mac.finalize().into_bytes(), out);
                }
            }
            Function::UrlEncode(of) => {
                let from = out.len();
                self.put(&of.0, out);
                percent_encode(out, from, is_unreserved);
            }
        }
    }
}

fn put_number(number: i64, out: &mut Vec<u8>) {
    let mut text = String::new();
    let _ = write!(text, "{number}");
    out.extend_from_slice(text.as_bytes());
}

fn put_hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
}

/// A UUID of version 4 (RFC 9562 §5.4) of random bits.
fn put_uuid(bits: u128, out: &mut Vec<u8>) {
    let version = 0x4 << 76;
    let variant = 0x2 << 62;
    let bits = bits & !(0xF << 76) & !(0x3 << 62) | version | variant;
    let mut hex = Vec::with_capacity(32);
    put_hex(&bits.to_be_bytes(), &mut hex);
    for (at, digit) in hex.into_iter().enumerate() {
        if matches!(at, 8 | 12 | 16 | 20) {
            out.push(b'-');
        }
        out.push(digit);
    }
}

fn put_moment(realtime_ns: u64, moment: Moment, out: &mut Vec<u8>) {
    let ms = (realtime_ns / 1_000_000) as i64;
    match moment {
        Moment::UnixS => put_number(ms / 1_000, out),
        Moment::UnixMs => put_number(ms, out),
        Moment::Rfc3339 => put_rfc3339_ms(realtime_ns, out),
    }
}

/// Makes what lies in `out` from `from` on fit for its place.
fn escape(out: &mut Vec<u8>, from: usize, escape: Escape) {
    match escape {
        Escape::None => {}
        Escape::Path => percent_encode(out, from, is_of_request_line),
        Escape::Header => {
            let mut at = 0;
            out.retain(|byte| {
                at += 1;
                at <= from || !byte.is_ascii_control() || *byte == b'\t'
            });
        }
        Escape::Json => escape_json(out, from),
        Escape::JsonValue => {
            if !is_bare_json(&out[from..]) {
                out.insert(from, b'"');
                escape_json(out, from + 1);
                out.push(b'"');
            }
        }
        Escape::Form => percent_encode(out, from, is_unreserved),
    }
}

/// Whether a text is a number, `true`, `false` or `null` of JSON (RFC 8259 §3, §6).
pub(crate) fn is_bare_json(text: &[u8]) -> bool {
    if matches!(text, b"true" | b"false" | b"null") {
        return true;
    }
    let rest = text.strip_prefix(b"-").unwrap_or(text);
    let digits = |text: &[u8]| text.iter().take_while(|b| b.is_ascii_digit()).count();
    let whole = digits(rest);
    if whole == 0 || whole > 1 && rest[0] == b'0' {
        return false;
    }
    let mut rest = &rest[whole..];
    if let Some(fraction) = rest.strip_prefix(b".") {
        let count = digits(fraction);
        if count == 0 {
            return false;
        }
        rest = &fraction[count..];
    }
    if let [b'e' | b'E', power @ ..] = rest {
        let power = power
            .strip_prefix(b"-")
            .unwrap_or(power.strip_prefix(b"+").unwrap_or(power));
        return !power.is_empty() && digits(power) == power.len();
    }
    rest.is_empty()
}

/// The characters that stand for themselves everywhere in a URI (RFC 3986 §2.3).
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// What a path with its query may have as it is.
fn is_of_request_line(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'#' | b'"' | b'<' | b'>' | b'\\' | b'^' | b'`')
}

fn percent_encode(out: &mut Vec<u8>, from: usize, stays: impl Fn(u8) -> bool) {
    if out[from..].iter().all(|byte| stays(*byte)) {
        return;
    }
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in out.split_off(from) {
        match stays(byte) {
            true => out.push(byte),
            false => {
                let digits = [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]);
                out.push(b'%');
                out.extend_from_slice(&digits);
            }
        }
    }
}

fn escape_json(out: &mut Vec<u8>, from: usize) {
    let is_plain = |byte: &u8| *byte >= 0x20 && !matches!(byte, b'"' | b'\\');
    if out[from..].iter().all(is_plain) {
        return;
    }
    for byte in out.split_off(from) {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..0x20 => {
                out.extend_from_slice(b"\\u00");
                put_hex(&[byte], out);
            }
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::SessionPlan;
    use std::sync::Arc;

    const NOON: u64 = 1_795_348_800_123_456_789;

    fn filled(pieces: Vec<Piece>, how: Escape) -> String {
        let mut users = Users::new(Arc::new(SessionPlan::default()), (0, 1), 7);
        let mut learnt = Learnt::default();
        learnt.set(0, b"a b\"\r\n\xc3\xa4".to_vec());
        let mut scope = Scope {
            learnt: &learnt,
            users: &mut users,
            path: b"/",
            realtime_ns: NOON,
        };
        let mut fills = Fills::default();
        let value = Template(pieces);
        scope.fill(&Fill { value, escape: how }, &mut fills);
        assert_eq!(fills.count(), 1);
        String::from_utf8(fills.get(0).to_vec()).unwrap()
    }

    fn text(text: &str) -> Template {
        Template(vec![Piece::Text(text.to_owned())])
    }

    #[test]
    fn values_are_made_fit_for_their_place() {
        let value = || vec![Piece::Variable(0)];
        for (how, want) in [
            (Escape::None, "a b\"\r\nä"),
            (Escape::Path, "a%20b%22%0D%0A%C3%A4"),
            (Escape::Header, "a b\"ä"),
            (Escape::Json, "a b\\\"\\r\\nä"),
            (Escape::JsonValue, "\"a b\\\"\\r\\nä\""),
            (Escape::Form, "a%20b%22%0D%0A%C3%A4"),
        ] {
            assert_eq!(filled(value(), how), want, "{how:?}");
        }
        let stays = vec![Piece::Text("/a?b=c&d=%20".to_owned())];
        assert_eq!(filled(stays, Escape::Path), "/a?b=c&d=%20");
    }

    #[test]
    fn a_bare_value_is_one_that_json_reads_as_no_text() {
        for text in [
            "0", "-0", "7", "10.25", "-1e9", "2E+3", "1.0e-7", "true", "false", "null",
        ] {
            assert!(is_bare_json(text.as_bytes()), "{text}");
            assert!(serde_json::from_str::<serde_json::Value>(text).is_ok());
        }
        for text in [
            "", "-", "007", "1.", ".5", "+1", "1e", "1e+", "0x10", "1 ", " 1", "1,2", "{}", "True",
            "NaN", "1.5.2", "--1", "1}", "٣",
        ] {
            assert!(!is_bare_json(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn functions() {
        let call = |function| filled(vec![Piece::Call(Box::new(function))], Escape::None);
        assert_eq!(call(Function::Now(Moment::UnixS)), "1795348800");
        assert_eq!(call(Function::Now(Moment::UnixMs)), "1795348800123");
        let rfc = call(Function::Now(Moment::Rfc3339));
        assert_eq!(rfc, "2026-11-22T12:00:00.123Z");
        assert_eq!(call(Function::Seq), "1");
        assert_eq!(call(Function::Base64(text("user:pass"))), "dXNlcjpwYXNz");
        assert_eq!(call(Function::UrlEncode(text("a b/c"))), "a%20b%2Fc");
        // RFC 4231, test case 2
        let signed = call(Function::HmacSha256 {
            key: text("Jefe"),
            message: text("what do ya want for nothing?"),
        });
        assert_eq!(
            signed,
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        let uuid = call(Function::Uuid);
        let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert_eq!(&uuid[14..15], "4");
        assert!(matches!(&uuid[19..20], "8" | "9" | "a" | "b"), "{uuid}");
    }

    #[test]
    fn random_numbers_keep_to_their_range_and_reach_both_ends() {
        let mut users = Users::new(Arc::new(SessionPlan::default()), (0, 1), 7);
        let drawn: Vec<i64> = (0..1_000).map(|_| users.random(-2, 2)).collect();
        assert_eq!(
            (drawn.iter().min(), drawn.iter().max()),
            (Some(&-2), Some(&2))
        );
        assert_eq!(users.random(5, 5), 5);
        users.random(i64::MIN, i64::MAX);
    }
}
