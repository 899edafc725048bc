//! Messages as they stand on the wire (RFC 1035 §4.1).

use knee_load::spec::DnsQuestion;
use std::fmt;

/// Length of the header (RFC 1035 §4.1.1).
pub(crate) const HEADER_BYTES: usize = 12;

/// The class of the Internet (RFC 1035 §3.2.4).
const CLASS_IN: u16 = 1;

/// What is read of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DnsHeader {
    /// The number that an answer has in common with its query.
    pub id: u16,
    /// Whether it is an answer (QR).
    pub is_answer: bool,
    /// Whether it was cut to the size of a datagram (TC).
    pub is_truncated: bool,
    /// The response code: 0 to 15.
    pub rcode: u16,
    /// Entries of the sections: questions, answers, authorities, additional records.
    pub counts: [u16; 4],
}

impl DnsHeader {
    /// The header at the begin of `message`; `None` where that is shorter.
    pub fn read(message: &[u8]) -> Option<DnsHeader> {
        let header = message.first_chunk::<HEADER_BYTES>()?;
        let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let flags = word(2);
        Some(DnsHeader {
            id: word(0),
            is_answer: flags & 0x8000 != 0,
            is_truncated: flags & 0x0200 != 0,
            rcode: flags & 0xF,
            counts: [word(4), word(6), word(8), word(10)],
        })
    }
}

/// Appends a query that asks for recursion (RD), with the id 0.
pub fn put_query(question: &DnsQuestion, out: &mut Vec<u8>) {
    out.extend_from_slice(&[0, 0, 0x01, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    out.extend_from_slice(&question.name);
    out.extend_from_slice(&question.kind.to_be_bytes());
    out.extend_from_slice(&CLASS_IN.to_be_bytes());
}

/// Whether a message repeats the question of a query, whose name has no case (RFC 4343).
pub(super) fn has_question(message: &[u8], query: &[u8]) -> bool {
    let Some((asked, repeated)) =
        query.get(HEADER_BYTES..).zip(message.get(HEADER_BYTES..query.len()))
    else {
        return false;
    };
    // Type and class are numbers, and have no letters.
    let name = asked.len() - 4;
    asked[name..] == repeated[name..] && asked[..name].eq_ignore_ascii_case(&repeated[..name])
}

/// A rule that an answer breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DnsViolation {
    /// It ends within a name or a record.
    Short,
    /// A label has a type that does not exist.
    Label,
    /// Bytes follow its last record.
    Surplus,
}

/// With the section that has the rule.
impl fmt::Display for DnsViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DnsViolation::Short => "it ends within a record (RFC 1035 §4.1.3)",
            DnsViolation::Label => "a label is neither text nor pointer (RFC 1035 §4.1.4)",
            DnsViolation::Surplus => "bytes follow its last record (RFC 1035 §4.1)",
        })
    }
}

/// Checks that a message holds all that its header counts, and no more. Pointers in names are not
/// followed.
///
/// # Errors
/// The first rule that it breaks.
pub fn check_answer(message: &[u8], header: &DnsHeader) -> Result<(), DnsViolation> {
    let mut rest = message.get(HEADER_BYTES..).ok_or(DnsViolation::Short)?;
    let [questions, records @ ..] = header.counts;
    for _ in 0..questions {
        rest = after_name(rest)?.get(4..).ok_or(DnsViolation::Short)?;
    }
    for _ in 0..records.into_iter().map(u32::from).sum::<u32>() {
        let fixed = after_name(rest)?;
        let length = fixed.get(8..10).ok_or(DnsViolation::Short)?;
        let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
        rest = fixed.get(10 + length..).ok_or(DnsViolation::Short)?;
    }
    if rest.is_empty() { Ok(()) } else { Err(DnsViolation::Surplus) }
}

/// What follows a name.
pub(crate) fn after_name(mut rest: &[u8]) -> Result<&[u8], DnsViolation> {
    loop {
        let &length = rest.first().ok_or(DnsViolation::Short)?;
        let (skip, is_last) = match length {
            0 => (1, true),
            1..=63 => (1 + usize::from(length), false),
            0xC0.. => (2, true),
            _ => return Err(DnsViolation::Label),
        };
        rest = rest.get(skip..).ok_or(DnsViolation::Short)?;
        if is_last {
            return Ok(rest);
        }
    }
}
