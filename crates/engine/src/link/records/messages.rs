//! Messages of the handshake protocol after the handshake: tickets and new keys (RFC 8446 §4.6).

use super::violation::alert;
use super::{Direction, KEY_UPDATES_MAX, Records, Upkeep, Version, Violation, WARNING};
use super::{WARNINGS_MAX, count, kind};

/// Bytes before a message: kind and length.
const HEADER: usize = 4;

/// Most bytes of a message, as with rustls.
const MESSAGE_MAX: usize = 0xffff;

const HELLO_REQUEST: u8 = 0;
const NEW_SESSION_TICKET: u8 = 4;
const UPDATE: u8 = 24;

/// A new key of ours, without asking for one of the peer's (RFC 8446 §4.6.3).
pub(super) const KEY_UPDATE: [u8; 5] = [UPDATE, 0, 0, 1, 0];

impl<U: Upkeep> Records<U> {
    /// Takes what a record holds of messages; one that is not whole is kept.
    pub(super) fn on_messages(&mut self, content: &[u8]) -> Result<(), Violation> {
        if content.is_empty() {
            return Err(Violation::Unexpected("an empty handshake record"));
        }
        let mut all = std::mem::take(&mut self.message);
        all.extend_from_slice(content);
        let mut at = 0;
        while let Some((kind, length)) = header(&all[at..])? {
            let begin = at + HEADER;
            let Some(payload) = all.get(begin..begin + length) else {
                break;
            };
            at = begin + length;
            self.on_message(kind, payload, at == all.len())?;
        }
        all.drain(..at);
        self.message = all;
        Ok(())
    }

    fn on_message(&mut self, kind: u8, payload: &[u8], is_last: bool) -> Result<(), Violation> {
        match (self.version, kind) {
            (Version::Tls13, NEW_SESSION_TICKET) => {
                let kept = self.upkeep.keep_ticket(payload);
                kept.map_err(|_| Violation::Malformed("a ticket that cannot be read"))
            }
            (Version::Tls13, UPDATE) => self.on_key_update(payload, is_last),
            (Version::Tls12, HELLO_REQUEST) => {
                count(
                    &mut self.warnings,
                    WARNINGS_MAX,
                    "renegotiation without end",
                )?;
                let refusal = [WARNING, alert::NO_RENEGOTIATION];
                if self.sends {
                    self.send.seal(kind::ALERT, &refusal, &mut self.answers);
                }
                Ok(())
            }
            _ => Err(Violation::Unexpected(
                "a handshake message after the handshake",
            )),
        }
    }

    fn on_key_update(&mut self, payload: &[u8], is_last: bool) -> Result<(), Violation> {
        let asks = match payload {
            [0] => false,
            [1] => true,
            [_] => return Err(Violation::Illegal("a KeyUpdate of an unknown kind")),
            _ => return Err(Violation::Malformed("a KeyUpdate that is not 1 byte long")),
        };
        // What follows in the same record would be of the old key (RFC 8446 §5.1).
        if !is_last {
            return Err(Violation::Unexpected("a message behind a KeyUpdate"));
        }
        let what = "KeyUpdates without end";
        count(&mut self.key_updates, KEY_UPDATES_MAX, what)?;
        let next = self.upkeep.next_key(Direction::Receive);
        self.receive = next.map_err(Violation::Internal)?;
        if asks && self.sends {
            let next = self.upkeep.next_key(Direction::Send);
            self.send
                .seal(kind::HANDSHAKE, &KEY_UPDATE, &mut self.answers);
            self.send = next.map_err(Violation::Internal)?;
        }
        Ok(())
    }
}

/// Kind and length of the message that `bytes` begin with.
fn header(bytes: &[u8]) -> Result<Option<(u8, usize)>, Violation> {
    let Some(&[kind, a, b, c]) = bytes.first_chunk::<HEADER>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes([0, a, b, c]) as usize;
    match length > MESSAGE_MAX {
        true => Err(Violation::Oversized),
        false => Ok(Some((kind, length))),
    }
}
