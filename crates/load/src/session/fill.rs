//! Values that fill the holes of a request.

use super::escape::{Place, UnfitReason, encode, escape, put_hex};
use super::made::MadeRequest;
use super::template::{Fill, Function, Template, TemplatePiece, TimeFormat};
use super::user_state::UserState;
use super::users::Users;
use crate::percent::COMPONENT;
use crate::time::put_rfc3339_ms;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::fmt::Write as _;
use std::sync::Arc;

/// Most bytes of a variable, and of all that is filled into a request. A value that is put together
/// of itself doubles with each step.
pub(super) const FILLED_BYTES_MAX: usize = 16 << 20;

/// What the holes of one request are filled with, in their order; kept and used again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fills {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    /// The whole request, where it was made at run time.
    made: Option<Arc<MadeRequest>>,
}

impl Fills {
    /// No hole is filled.
    pub const fn new() -> Fills {
        Fills { bytes: Vec::new(), ends: Vec::new(), made: None }
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

    /// Takes the place of the whole request.
    pub fn set_made(&mut self, made: Arc<MadeRequest>) {
        self.made = Some(made);
    }

    /// The whole request, where it was made at run time.
    #[inline]
    pub fn made(&self) -> Option<&MadeRequest> {
        self.made.as_deref()
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
            _ => self.ends.get(hole - 1).map_or(self.bytes.len(), |end| *end as usize),
        };
        self.bytes.len() - before
    }

    /// The value for the next hole, which was refused there.
    pub(super) fn refused(&self) -> &[u8] {
        let from = self.ends.last().map_or(0, |end| *end as usize);
        &self.bytes[from..]
    }

    /// Fills the next hole with `value` as it is.
    pub fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len() as u32);
    }
}

/// What templates are filled from.
pub(super) struct FillScope<'a> {
    pub(super) learnt: &'a UserState,
    pub(super) users: &'a mut Users,
    /// The path that is asked for, where it is known: which cookies are sent depends on it.
    pub(super) path: &'a [u8],
    /// The server that is asked, which a value may change.
    pub(super) server: u16,
    /// What the holes of the step were filled with, where its redirections are followed.
    pub(super) sent: &'a Fills,
    /// The server and the path of the request before.
    pub(super) before: (u16, &'a [u8]),
    pub(super) realtime_ns: u64,
}

impl FillScope<'_> {
    /// Fills the next hole.
    ///
    /// # Errors
    /// Its place cannot have the value.
    pub(super) fn fill(&mut self, fill: &Fill, fills: &mut Fills) -> Result<(), UnfitReason> {
        let from = fills.bytes.len();
        self.put(&fill.value.0, &mut fills.bytes);
        if fills.bytes.len() > FILLED_BYTES_MAX {
            return Err(UnfitReason::TooLong);
        }
        let (before, origins) = (self.before, self.users.origins());
        let mut place = Place { before, origins, server: self.server };
        escape(&mut fills.bytes, from, fill.escape, &mut place)?;
        self.server = place.server;
        fills.ends.push(fills.bytes.len() as u32);
        Ok(())
    }

    /// A template, filled.
    pub(super) fn text(&mut self, template: &Template) -> Vec<u8> {
        let mut text = Vec::new();
        self.put(&template.0, &mut text);
        text
    }

    pub(super) fn put(&mut self, pieces: &[TemplatePiece], out: &mut Vec<u8>) {
        for piece in pieces {
            if out.len() > FILLED_BYTES_MAX {
                return;
            }
            match piece {
                TemplatePiece::Text(text) => out.extend_from_slice(text.as_bytes()),
                TemplatePiece::Variable(variable) => {
                    out.extend_from_slice(self.learnt.variable(*variable));
                }
                TemplatePiece::Column { data, column } => {
                    let row = self.learnt.row(*data);
                    out.extend_from_slice(self.users.cell(row, *column).as_bytes());
                }
                TemplatePiece::Setup(number) => {
                    let given = self.users.plan().given.get(usize::from(*number));
                    out.extend_from_slice(given.map_or(&[], Vec::as_slice));
                }
                TemplatePiece::Sent(hole) => {
                    out.extend_from_slice(self.sent.get(usize::from(*hole)));
                }
                TemplatePiece::Cookies => {
                    self.learnt.jar.put((self.server, self.path), self.realtime_ns, out);
                }
                TemplatePiece::Call(function) => self.call(function, out),
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
                encode(out, from, COMPONENT);
            }
            Function::Raw(of) => self.put(&of.0, out),
        }
    }
}

fn put_number(number: i64, out: &mut Vec<u8>) {
    let mut text = String::new();
    let _ = write!(text, "{number}");
    out.extend_from_slice(text.as_bytes());
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

fn put_moment(realtime_ns: u64, moment: TimeFormat, out: &mut Vec<u8>) {
    let ms = (realtime_ns / 1_000_000) as i64;
    match moment {
        TimeFormat::UnixS => put_number(ms / 1_000, out),
        TimeFormat::UnixMs => put_number(ms, out),
        TimeFormat::Rfc3339 => put_rfc3339_ms(realtime_ns, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Escape, SessionPlan};

    const NOON: u64 = 1_795_348_800_123_456_789;

    fn filled(pieces: Vec<TemplatePiece>, how: Escape) -> String {
        let mut users = Users::new(Arc::new(SessionPlan::default()), (0, 1), 7);
        let mut learnt = UserState::default();
        learnt.set(0, b"a b\"\r\n\xc3\xa4".to_vec());
        let mut scope = FillScope {
            learnt: &learnt,
            users: &mut users,
            path: b"/",
            server: 0,
            sent: &Fills::new(),
            before: (0, b"/"),
            realtime_ns: NOON,
        };
        let mut fills = Fills::default();
        let value = Template(pieces);
        scope.fill(&Fill { value, escape: how }, &mut fills).unwrap();
        assert_eq!(fills.count(), 1);
        String::from_utf8(fills.get(0).to_vec()).unwrap()
    }

    fn text(text: &str) -> Template {
        Template(vec![TemplatePiece::Text(text.to_owned())])
    }

    #[test]
    fn functions() {
        let call = |function| filled(vec![TemplatePiece::Call(Box::new(function))], Escape::None);
        assert_eq!(call(Function::Now(TimeFormat::UnixS)), "1795348800");
        assert_eq!(call(Function::Now(TimeFormat::UnixMs)), "1795348800123");
        let rfc = call(Function::Now(TimeFormat::Rfc3339));
        assert_eq!(rfc, "2026-11-22T12:00:00.123Z");
        assert_eq!(call(Function::Seq), "1");
        assert_eq!(call(Function::Base64(text("user:pass"))), "dXNlcjpwYXNz");
        assert_eq!(call(Function::UrlEncode(text("a b/c"))), "a%20b%2Fc");
        // RFC 4231, test case 2
        let signed = call(Function::HmacSha256 {
            key: text("Jefe"),
            message: text("what do ya want for nothing?"),
        });
        assert_eq!(signed, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
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
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&-2), Some(&2)));
        assert_eq!(users.random(5, 5), 5);
        users.random(i64::MIN, i64::MAX);
    }
}
