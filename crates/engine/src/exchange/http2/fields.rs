//! Header sections: the reader that remembers recent blocks, rules of fields, and the section of a
//! response.

use super::Violation;
use super::hpack::{Additions, Decoder, Error};
use crate::exchange::content_coding::ContentCoding;
use crate::exchange::decimal;
use knee_load::messages::is_event_stream;

/// The most bytes of a section's fields, each counted with 32 bytes more (RFC 9113 §10.5.1).
pub const LIST_BYTES_MAX: usize = 64 << 10;

/// Sections whose blocks are remembered. Two, as a peer may send two blocks in turn.
const REMEMBERED: usize = 2;

/// Longer blocks are not remembered per connection.
const REMEMBERED_BYTES_MAX: usize = 1024;

/// What a section says, built up field by field.
pub trait Section: Copy + Default {
    /// Takes the next field.
    fn take(&mut self, name: &[u8], value: &[u8]);
}

/// Reads all header blocks of a connection. A peer under load sends the same block over and over,
/// so the last ones are remembered. Equal bytes mean the same where the table is in the same state,
/// or where they refer to none of its entries. Some servers add the same entries with each block.
#[derive(Debug, Default)]
pub struct SectionReader<S> {
    decoder: Decoder,
    remembered: [Remembered<S>; REMEMBERED],
    oldest: usize,
}

#[derive(Debug, Default)]
struct Remembered<S> {
    block: Vec<u8>,
    /// The state of the table, which the block left as it was; `None`: any.
    changes: Option<u32>,
    additions: Additions,
    section: S,
}

impl<S: Section> SectionReader<S> {
    /// Reads a whole block.
    ///
    /// # Errors
    /// Errors of HPACK, after which the connection cannot go on. Violations of the rules for
    /// messages are reported in the section.
    #[inline]
    pub fn read(&mut self, block: &[u8]) -> Result<S, Error> {
        let changes = self.decoder.changes();
        for known in &self.remembered {
            let is_known = known.changes.is_none_or(|of| of == changes)
                && known.block == block
                && !block.is_empty();
            if is_known && self.decoder.repeat(&known.additions) {
                return Ok(known.section);
            }
        }
        self.decode(block)
    }

    /// Reads a whole block, and hands each field to `tell` with the section so far.
    ///
    /// # Errors
    /// See [`SectionReader::read`].
    pub fn read_into(
        &mut self,
        block: &[u8],
        tell: &mut impl FnMut(&S, &[u8], &[u8]),
    ) -> Result<S, Error> {
        let mut section = S::default();
        let mut each = |name: &[u8], value: &[u8]| {
            section.take(name, value);
            tell(&section, name, value);
        };
        self.decoder.decode(block, LIST_BYTES_MAX, &mut each)?;
        Ok(section)
    }

    fn decode(&mut self, block: &[u8]) -> Result<S, Error> {
        let before = self.decoder.changes();
        let mut section = S::default();
        let mut each = |name: &[u8], value: &[u8]| section.take(name, value);
        self.decoder.decode(block, LIST_BYTES_MAX, &mut each)?;
        let is_same = self.decoder.changes() == before;
        if block.len() > REMEMBERED_BYTES_MAX {
            return Ok(section);
        }
        let known = &mut self.remembered[self.oldest];
        match self.decoder.additions() {
            Some(additions) => {
                known.changes = None;
                known.additions.clone_from(additions);
            }
            None if is_same => {
                known.changes = Some(before);
                known.additions = Additions::default();
            }
            None => return Ok(section),
        }
        known.block.clear();
        known.block.extend_from_slice(block);
        known.section = section;
        self.oldest = (self.oldest + 1) % REMEMBERED;
        Ok(section)
    }
}

/// The status of a call as its section says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CallStatus {
    /// There is none.
    #[default]
    Missing,
    /// No number, or two that differ.
    Invalid,
    /// A number.
    Code(u16),
}

/// What a header section of a response says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResponseSection {
    /// The status; 0 where there is none.
    pub(crate) status: u16,
    /// The content-length.
    pub(crate) length: Option<u64>,
    /// The status of a call of gRPC.
    pub(super) grpc_status: CallStatus,
    /// Whether the content type is that of gRPC.
    pub(super) is_call: bool,
    /// Whether messages of gRPC may be compressed.
    pub(super) has_grpc_encoding: bool,
    /// The first rule of messages that it breaks.
    pub(crate) fault: Option<Violation>,
    /// Whether there is any pseudo-header field.
    pub(crate) has_pseudo: bool,
    /// Whether the content is server-sent events.
    is_events: bool,
    /// How the content is compressed.
    coding: ContentCoding,
    /// Whether there is any other field.
    has_regular: bool,
}

impl Section for ResponseSection {
    fn take(&mut self, name: &[u8], value: &[u8]) {
        if let Err(fault) = self.take_field(name, value) {
            self.fault = self.fault.or(Some(fault));
        }
    }
}

impl ResponseSection {
    /// The coding of the body of server-sent events that it begins, if that can be read.
    pub(crate) fn opens_events(&self) -> Option<ContentCoding> {
        let is_read = self.is_events && self.coding != ContentCoding::Other;
        (is_read && matches!(self.status, 200..300)).then_some(self.coding)
    }

    fn take_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), Violation> {
        if name.first() == Some(&b':') {
            return self.take_pseudo(name, value);
        }
        self.has_regular = true;
        check_name(name)?;
        check_value(value)?;
        match name {
            b"content-length" => {
                let length = decimal(value).ok_or(Violation::ContentLength)?;
                if self.length.is_some_and(|other| other != length) {
                    return Err(Violation::ContentLength);
                }
                self.length = Some(length);
                Ok(())
            }
            b"content-type" => {
                self.is_events = is_event_stream(value);
                self.is_call = is_call(value);
                Ok(())
            }
            b"content-encoding" => {
                self.coding = self.coding.and(value);
                Ok(())
            }
            b"grpc-status" => {
                let code = decimal(value).and_then(|code| u16::try_from(code).ok());
                let status = code.map_or(CallStatus::Invalid, CallStatus::Code);
                self.grpc_status = match self.grpc_status {
                    CallStatus::Missing => status,
                    other if other == status => other,
                    _ => CallStatus::Invalid,
                };
                Ok(())
            }
            b"grpc-encoding" => {
                self.has_grpc_encoding = value != b"identity";
                Ok(())
            }
            _ if is_of_connection(name) => Err(Violation::ConnectionField),
            b"te" if value != b"trailers" => Err(Violation::ConnectionField),
            _ => Ok(()),
        }
    }

    fn take_pseudo(&mut self, name: &[u8], value: &[u8]) -> Result<(), Violation> {
        self.has_pseudo = true;
        if self.has_regular {
            return Err(Violation::PseudoLate);
        }
        match (name, self.status) {
            (b":status", 0) => {
                self.status = status(value).ok_or(Violation::Status)?;
                Ok(())
            }
            (b":status", _) => Err(Violation::StatusTwice),
            _ => Err(Violation::PseudoUnknown),
        }
    }
}

/// Whether a content type is that of gRPC: `application/grpc`, `application/grpc+proto`,
/// `application/grpc;…`.
fn is_call(value: &[u8]) -> bool {
    let rest = value.strip_prefix(b"application/grpc");
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';')))
}

fn status(value: &[u8]) -> Option<u16> {
    match value {
        [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
            let digit = |byte: &u8| u16::from(byte - b'0');
            Some(digit(a) * 100 + digit(b) * 10 + digit(c))
        }
        _ => None,
    }
}

/// Whether a field belongs to a connection of HTTP/1.1, `te` apart (RFC 9113 §8.2.2).
pub fn is_of_connection(name: &[u8]) -> bool {
    matches!(
        name,
        b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade"
    )
}

/// Checks a field's name (RFC 9113 §8.2.1).
pub fn check_name(name: &[u8]) -> Result<(), Violation> {
    if name.is_empty() {
        return Err(Violation::FieldName);
    }
    for &byte in name {
        match byte {
            b'A'..=b'Z' => return Err(Violation::FieldNameCase),
            0..=b' ' | b':' | 0x7f.. => return Err(Violation::FieldName),
            _ => {}
        }
    }
    Ok(())
}

/// Checks a field's value (RFC 9113 §8.2.1).
fn check_value(value: &[u8]) -> Result<(), Violation> {
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let is_control = |byte: &u8| matches!(byte, 0 | b'\r' | b'\n');
    if value.iter().any(is_control) || is_blank(value.first()) || is_blank(value.last()) {
        return Err(Violation::FieldValue);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::hpack::Encoder;
    use super::*;

    #[test]
    fn what_is_remembered_holds_only_for_the_same_table() {
        let mut sections = SectionReader::<ResponseSection>::default();
        let mut encoder = Encoder::default();
        let block = |encoder: &mut Encoder, fields: &[(&str, &str)]| {
            let mut block = Vec::new();
            for (name, value) in fields {
                encoder.encode(name.as_bytes(), value.as_bytes(), &mut block);
            }
            block
        };
        let first = block(&mut encoder, &[(":status", "200"), ("content-length", "7")]);
        let again = block(&mut encoder, &[(":status", "200"), ("content-length", "7")]);
        assert_eq!(again.len(), 2, "both from tables");
        for block in [&first, &again, &again] {
            let section = sections.read(block).unwrap();
            assert_eq!((section.status, section.length), (200, Some(7)));
        }
        let other = block(&mut encoder, &[(":status", "200"), ("content-length", "8")]);
        assert_eq!(sections.read(&other).unwrap().length, Some(8));
        assert_eq!(sections.read(&again).unwrap().length, Some(8), "the same bytes");
    }

    /// As nginx does it: each block adds its fields again, and refers to none that was added.
    #[test]
    fn blocks_that_add_the_same_each_time_keep_the_table_true() {
        let mut block = vec![0x88];
        for (index, value) in [(28, "1294"), (33, "Mon, 23 Nov 2026 08:00:00 GMT")] {
            // Literal with incremental indexing, the name from the static table.
            block.push(0x40 | index);
            block.push(value.len() as u8);
            block.extend_from_slice(value.as_bytes());
        }
        let (mut sections, mut plain) =
            (SectionReader::<ResponseSection>::default(), Decoder::default());
        for round in 0..200 {
            let section = sections.read(&block).unwrap();
            assert_eq!((section.status, section.length), (200, Some(1_294)));
            assert!(sections.remembered.iter().any(|known| known.block == block));
            plain.decode(&block, LIST_BYTES_MAX, &mut |_, _| {}).unwrap();
            assert_eq!(sections.decoder.changes(), plain.changes(), "{round}");
            // What was added can be referred to: the newest entry, and the one before it.
            if round % 50 == 49 {
                let section = sections.read(&[0x88, 0xbf, 0xbe]).unwrap();
                assert_eq!((section.status, section.length), (200, Some(1_294)));
            }
        }
        let mut of_plain = Vec::new();
        let mut of_sections = Vec::new();
        let all: Vec<u8> = (62..62 + 40).map(|index| 0x80 | index).collect();
        plain.decode(&all, LIST_BYTES_MAX, &mut |n, v| of_plain.push([n, v].concat())).unwrap();
        sections
            .decoder
            .decode(&all, LIST_BYTES_MAX, &mut |n, v| of_sections.push([n, v].concat()))
            .unwrap();
        assert_eq!(of_plain, of_sections);
    }
}
