//! The record layer of TLS, from the end of the handshake on: records in, plain bytes out, and back
//! (RFC 8446 §5, RFC 5246 §6.2).
//!
//! Nothing is allocated per record. A whole record is decrypted from where it was read into a
//! buffer that all connections of a worker share; only one that came in parts is kept until it is
//! whole. Nothing here knows of rustls: what is left to it is behind [`Upkeep`].

mod key;
mod messages;
#[cfg(test)]
mod tests;
mod violation;

pub(super) use key::kind;
pub use key::{Cipher, Key, Version};
pub use violation::Violation;

use key::{HEADER, PLAIN_MAX, SEALED_MAX};
use violation::alert;

/// Bytes that a record's content needs at most, once it is decrypted.
pub const ROOM: usize = SEALED_MAX;

/// A peer may send so many of each one after another before it sends data, as with rustls.
const EMPTY_MAX: u8 = 32;
const KEY_UPDATES_MAX: u8 = 32;
const WARNINGS_MAX: u8 = 4;

const WARNING: u8 = 1;
const FATAL: u8 = 2;

/// Which way records go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the peer.
    Send,
    /// From the peer.
    Receive,
}

/// What a connection needs of its handshake later on.
pub trait Upkeep {
    /// The key that follows the one in use (RFC 8446 §7.2).
    ///
    /// # Errors
    /// There is none, as in TLS 1.2: a line for people.
    fn next_key(&mut self, direction: Direction) -> Result<Key, String>;

    /// Keeps a ticket, of which `payload` is the message without its header (RFC 8446 §4.6.1).
    ///
    /// # Errors
    /// It is no ticket: a line for people.
    fn keep_ticket(&mut self, payload: &[u8]) -> Result<(), String>;
}

/// One connection's records, both ways.
pub struct Records<U> {
    version: Version,
    send: Key,
    receive: Key,
    upkeep: U,
    /// A key seals no more than so many records.
    sealed_max: u64,
    /// The begin of a record that is not whole yet.
    part: Vec<u8>,
    /// The begin of a message of the handshake protocol that is not whole yet.
    message: Vec<u8>,
    /// Records for the peer that nobody asked for: answers and alerts.
    answers: Vec<u8>,
    sends: bool,
    receives: bool,
    empty: u8,
    key_updates: u8,
    warnings: u8,
}

impl<U: Upkeep> Records<U> {
    /// Records of this version, sealed by the first key and opened by the second. A key seals no
    /// more than `sealed_max` records.
    pub fn new(version: Version, [send, receive]: [Key; 2], upkeep: U, sealed_max: u64) -> Self {
        Records {
            version,
            send,
            receive,
            upkeep,
            sealed_max,
            part: Vec::new(),
            message: Vec::new(),
            answers: Vec::new(),
            sends: true,
            receives: true,
            empty: 0,
            key_updates: 0,
            warnings: 0,
        }
    }

    /// Opens the records in `wire`, the next bytes that came, and hands over the data in each, with
    /// how many bytes of `wire` are behind it. `plain` has [`ROOM`].
    ///
    /// # Errors
    /// What the peer did wrong, after the data before it was handed over. What it is to be told of
    /// it is in [`Records::answers`]; nothing else is sent or received from then on.
    #[inline]
    pub fn open(
        &mut self,
        wire: &[u8],
        plain: &mut [u8],
        take: &mut impl FnMut(&[u8], usize),
    ) -> Result<(), Violation> {
        let opened = self.open_all(wire, plain, take);
        if let Err(violation) = &opened {
            self.give_up(violation);
        }
        opened
    }

    #[inline]
    fn open_all(
        &mut self,
        wire: &[u8],
        plain: &mut [u8],
        take: &mut impl FnMut(&[u8], usize),
    ) -> Result<(), Violation> {
        let mut rest = wire;
        if self.receives && !self.part.is_empty() && !self.open_part(&mut rest, plain, take)? {
            return Ok(());
        }
        while self.receives
            && let Some(end) = whole(rest)?
        {
            let (record, after) = rest.split_at(end);
            rest = after;
            self.open_one(record, plain, &mut |data| take(data, after.len()))?;
        }
        if self.receives {
            self.part.extend_from_slice(rest);
        }
        Ok(())
    }

    /// Completes the record that came in parts, and opens it if it is whole now.
    fn open_part(
        &mut self,
        rest: &mut &[u8],
        plain: &mut [u8],
        take: &mut impl FnMut(&[u8], usize),
    ) -> Result<bool, Violation> {
        for _ in 0..2 {
            let end = whole(&self.part)?.unwrap_or_else(|| wanted(&self.part));
            let (more, after) = rest.split_at(rest.len().min(end - self.part.len()));
            self.part.extend_from_slice(more);
            *rest = after;
        }
        if whole(&self.part)?.is_none() {
            return Ok(false);
        }
        let mut record = std::mem::take(&mut self.part);
        let opened = self.open_one(&record, plain, &mut |data| take(data, rest.len()));
        record.clear();
        self.part = record;
        opened.map(|()| true)
    }

    #[inline]
    fn open_one(
        &mut self,
        record: &[u8],
        plain: &mut [u8],
        take: &mut impl FnMut(&[u8]),
    ) -> Result<(), Violation> {
        let (kind, content) = self.receive.open(record, plain)?;
        if kind != kind::DATA || content.is_empty() || !self.message.is_empty() {
            return self.on_other(kind, content);
        }
        (self.empty, self.key_updates) = (0, 0);
        take(content);
        Ok(())
    }

    /// Whatever is no data.
    #[cold]
    fn on_other(&mut self, kind: u8, content: &[u8]) -> Result<(), Violation> {
        // Messages are not interrupted (RFC 8446 §5.1).
        if kind != kind::HANDSHAKE && !self.message.is_empty() {
            return Err(Violation::Unexpected(
                "a record in the middle of a handshake message",
            ));
        }
        match kind {
            kind::DATA => count(&mut self.empty, EMPTY_MAX, "empty records without end"),
            kind::ALERT => self.on_alert(content),
            kind::HANDSHAKE => self.on_messages(content),
            kind::CHANGE_CIPHER_SPEC => Err(Violation::Unexpected(
                "a ChangeCipherSpec after the handshake",
            )),
            _ => Err(Violation::Unexpected("a record of an unknown kind")),
        }
    }

    fn on_alert(&mut self, content: &[u8]) -> Result<(), Violation> {
        let &[level, what] = content else {
            return Err(Violation::Malformed("an alert that is not 2 bytes long"));
        };
        let is_13 = self.version == Version::Tls13;
        match (level, what) {
            (WARNING | FATAL, alert::CLOSE_NOTIFY) => {
                self.receives = false;
                Ok(())
            }
            // TLS 1.3 has no warnings but these (RFC 8446 §6).
            (WARNING, _) if !is_13 || what == alert::USER_CANCELED => {
                count(&mut self.warnings, WARNINGS_MAX, "warnings without end")
            }
            (WARNING | FATAL, _) => Err(Violation::Told(what)),
            _ => Err(Violation::Illegal("an alert of an unknown level")),
        }
    }

    /// Whether the peer announced the end of its side, or broke a rule.
    #[inline]
    pub fn is_ended(&self) -> bool {
        !self.receives
    }

    /// Seals data into records, and puts them behind what is in `wire`; not if either side gave up.
    #[inline]
    pub fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) {
        for piece in plain.chunks(PLAIN_MAX) {
            if self.send.sequence() >= self.sealed_max {
                self.renew(wire);
            }
            if !self.sends {
                return;
            }
            self.send.seal(kind::DATA, piece, wire);
        }
    }

    /// The key has sealed as many records as it may: another takes its place. TLS 1.2 has no way to
    /// agree on one, so nothing more is sent.
    #[cold]
    fn renew(&mut self, wire: &mut Vec<u8>) {
        if !self.sends {
            return;
        }
        match self.upkeep.next_key(Direction::Send) {
            Ok(key) => {
                self.send.seal(kind::HANDSHAKE, &messages::KEY_UPDATE, wire);
                self.send = key;
            }
            Err(_) => {
                let notice = [WARNING, alert::CLOSE_NOTIFY];
                self.send.seal(kind::ALERT, &notice, wire);
                self.sends = false;
            }
        }
    }

    /// Records for the peer that nobody asked for: to be sent before any that are sealed from now
    /// on, and taken out.
    #[inline]
    pub fn answers(&mut self) -> &mut Vec<u8> {
        &mut self.answers
    }

    /// Whether there are any.
    #[inline]
    pub fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    fn give_up(&mut self, violation: &Violation) {
        if let Some(what) = violation.alert().filter(|_| self.sends) {
            let notice = [FATAL, what];
            self.send.seal(kind::ALERT, &notice, &mut self.answers);
        }
        (self.sends, self.receives) = (false, false);
    }
}

/// Counts what a peer may not do without end.
fn count(so_far: &mut u8, most: u8, what: &'static str) -> Result<(), Violation> {
    *so_far += 1;
    match *so_far > most {
        true => Err(Violation::Unexpected(what)),
        false => Ok(()),
    }
}

/// Where the record that `bytes` begin with ends, if it is whole.
#[inline]
fn whole(bytes: &[u8]) -> Result<Option<usize>, Violation> {
    let Some(&[kind, major, _, high, low]) = bytes.first_chunk::<HEADER>() else {
        return Ok(None);
    };
    if !(kind::CHANGE_CIPHER_SPEC..=kind::DATA).contains(&kind) || major != 3 {
        return Err(Violation::Malformed("bytes that are no record of TLS"));
    }
    let length = usize::from(u16::from_be_bytes([high, low]));
    if length > SEALED_MAX {
        return Err(Violation::Oversized);
    }
    let end = HEADER + length;
    Ok((bytes.len() >= end).then_some(end))
}

/// How many bytes of a record that is not whole must be there, to know more of it.
pub(super) fn wanted(bytes: &[u8]) -> usize {
    match bytes.first_chunk::<HEADER>() {
        Some(&[.., high, low]) => HEADER + usize::from(u16::from_be_bytes([high, low])),
        None => HEADER,
    }
}
