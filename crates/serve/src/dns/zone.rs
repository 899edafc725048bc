//! The zone: what each query is answered with.

use knee_engine::exchange::dns::{DnsHeader, HEADER_BYTES, after_name};

/// The zone's name in its wire form.
const APEX: &[u8] = b"\x07example\x03com\0";

/// Length of an answer over UDP to a query that permits no more (RFC 1035 §4.2.1).
const UDP_BYTES: u16 = 512;

/// Longest answer over UDP to any query: it passes most paths whole.
const UDP_BYTES_MAX: u16 = 1232;

/// How long records hold, in seconds.
const TTL_S: u32 = 60;

const CLASS_IN: u16 = 1;

/// Types of records (RFC 1035 §3.2.2, RFC 3596 §2.1, RFC 6891 §6.1.2).
mod kind {
    pub(super) const A: u16 = 1;
    pub(super) const NS: u16 = 2;
    pub(super) const SOA: u16 = 6;
    pub(super) const AAAA: u16 = 28;
    pub(super) const OPT: u16 = 41;
    pub(super) const ANY: u16 = 255;
}

/// Response codes (RFC 1035 §4.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rcode {
    Noerror = 0,
    Formerr = 1,
    Nxdomain = 3,
    Notimp = 4,
    Refused = 5,
}

impl Rcode {
    /// Its name in reports.
    pub(super) fn name(self) -> &'static str {
        match self {
            Rcode::Noerror => "NOERROR",
            Rcode::Formerr => "FORMERR",
            Rcode::Nxdomain => "NXDOMAIN",
            Rcode::Notimp => "NOTIMP",
            Rcode::Refused => "REFUSED",
        }
    }
}

/// What a query came over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Udp,
    Tcp,
}

/// What was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ZoneAnswer {
    pub(super) rcode: Rcode,
    /// Whether the records were left out, as they do not fit into a datagram.
    pub(super) is_truncated: bool,
}

/// `example.com` and every name in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Zone {
    /// Addresses of each kind that a name has.
    pub(super) records: u8,
}

/// A question, and how long its answer may be.
struct Question<'a> {
    /// Name, type and class as they stand in the query.
    bytes: &'a [u8],
    /// Bytes of the name.
    name_bytes: usize,
    kind: u16,
    class: u16,
    /// The limit over UDP that an OPT record states.
    stated_limit: Option<u16>,
}

impl Zone {
    /// Appends the answer to a query. `None` for a message that is no query: it has no answer.
    pub(super) fn answer(
        self,
        query: &[u8],
        over: Transport,
        out: &mut Vec<u8>,
    ) -> Option<ZoneAnswer> {
        let header = DnsHeader::read(query).filter(|header| !header.is_answer)?;
        let begin = out.len();
        // QR and AA; opcode and RD are those of the query.
        out.extend_from_slice(&query[..2]);
        out.extend_from_slice(&[0x84 | query[2] & 0x79, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let question = match read_question(query, &header) {
            Some(question) if query[2] & 0x78 == 0 => question,
            Some(_) => return Some(finish(out, begin, Rcode::Notimp)),
            None => return Some(finish(out, begin, Rcode::Formerr)),
        };
        out.extend_from_slice(question.bytes);
        out[begin + 5] = 1;
        let head = out.len();
        let (rcode, records) = self.put_records(&question, out);
        out[begin + 7] = records.answers;
        out[begin + 9] = records.authorities;
        let limit = question.stated_limit.unwrap_or(0).clamp(UDP_BYTES, UDP_BYTES_MAX);
        let opt_bytes = if question.stated_limit.is_some() { OPT.len() } else { 0 };
        let is_truncated =
            over == Transport::Udp && out.len() - begin + opt_bytes > usize::from(limit);
        if is_truncated {
            out.truncate(head);
            out[begin + 2] |= 2;
            (out[begin + 7], out[begin + 9]) = (0, 0);
        }
        if question.stated_limit.is_some() {
            out.extend_from_slice(&OPT);
            out[begin + 11] = 1;
        }
        Some(ZoneAnswer { is_truncated, ..finish(out, begin, rcode) })
    }

    /// Appends the records that answer a question, or the SOA record if there are none.
    fn put_records(self, question: &Question<'_>, out: &mut Vec<u8>) -> (Rcode, RecordCounts) {
        let name = &question.bytes[..question.name_bytes];
        let mut counts = RecordCounts::default();
        if ![CLASS_IN, kind::ANY].contains(&question.class) {
            return (Rcode::Refused, counts);
        }
        let Some(apex_at) = apex_in(name) else {
            return (Rcode::Nxdomain, counts);
        };
        // All names are pointers into the question.
        let [owner, apex] = [0, apex_at].map(|at| (HEADER_BYTES + at) as u8);
        counts.answers = match question.kind {
            kind::A | kind::ANY => {
                (1..=self.records).for_each(|n| put(out, owner, kind::A, &[192, 0, 2, n]));
                self.records
            }
            kind::AAAA => {
                let mut address = [0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
                for n in 1..=self.records {
                    address[15] = n;
                    put(out, owner, kind::AAAA, &address);
                }
                self.records
            }
            kind::NS if apex_at == 0 => {
                put(out, owner, kind::NS, &[2, b'n', b's', 0xC0, apex]);
                1
            }
            kind::SOA if apex_at == 0 => {
                put(out, owner, kind::SOA, &soa(apex));
                1
            }
            _ => {
                put(out, apex, kind::SOA, &soa(apex));
                counts.authorities = 1;
                0
            }
        };
        (Rcode::Noerror, counts)
    }
}

/// Records by section.
#[derive(Clone, Copy, Debug, Default)]
struct RecordCounts {
    answers: u8,
    authorities: u8,
}

/// An OPT record (RFC 6891 §6.1.2) of the root: the type, the longest query, version 0, nothing.
const OPT: [u8; 11] = {
    let [high, low] = UDP_BYTES_MAX.to_be_bytes();
    [0, 0, kind::OPT as u8, high, low, 0, 0, 0, 0, 0, 0]
};

fn finish(out: &mut [u8], begin: usize, rcode: Rcode) -> ZoneAnswer {
    out[begin + 3] = rcode as u8;
    ZoneAnswer { rcode, is_truncated: false }
}

/// Appends a record whose name stands at an offset of the message.
fn put(out: &mut Vec<u8>, name_at: u8, kind: u16, data: &[u8]) {
    out.extend_from_slice(&[0xC0, name_at]);
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&CLASS_IN.to_be_bytes());
    out.extend_from_slice(&TTL_S.to_be_bytes());
    out.extend_from_slice(&(data.len() as u16).to_be_bytes());
    out.extend_from_slice(data);
}

/// Data of the SOA record: `ns` and `host` in the zone, the serial number 1, and times in seconds.
fn soa(apex: u8) -> [u8; 32] {
    let names = [2, b'n', b's', 0xC0, apex, 4, b'h', b'o', b's', b't', 0xC0, apex];
    let numbers = [1, 3_600, 600, 86_400, TTL_S].map(u32::to_be_bytes);
    let mut bytes = names.into_iter().chain(numbers.into_iter().flatten());
    std::array::from_fn(|_| bytes.next().unwrap_or(0))
}

/// Reads a query with one question; `None` for any other message.
fn read_question<'a>(query: &'a [u8], header: &DnsHeader) -> Option<Question<'a>> {
    let [1, 0, 0, additional] = header.counts else {
        return None;
    };
    let question = &query[HEADER_BYTES..];
    let name_bytes = after_name(query, HEADER_BYTES).ok()? - HEADER_BYTES;
    // A name of a pointer would point to itself or into the header.
    let is_plain = question[name_bytes - 1] == 0 && name_bytes <= 255;
    let (bytes, mut rest) = question.split_at_checked(name_bytes + 4).filter(|_| is_plain)?;
    let word = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let mut stated_limit = None;
    for _ in 0..additional {
        let is_root = rest.first() == Some(&0);
        let fixed = query.get(after_name(query, query.len() - rest.len()).ok()?..)?;
        let (&[high, low, limit @ .., _, _, _, _], data) = fixed.split_first_chunk::<8>()?;
        let (length, data) = data.split_first_chunk::<2>()?;
        rest = data.get(usize::from(u16::from_be_bytes(*length))..)?;
        if u16::from_be_bytes([high, low]) == kind::OPT {
            let is_first = stated_limit.replace(u16::from_be_bytes(limit)).is_none();
            (is_first && is_root).then_some(())?;
        }
    }
    let (kind, class) = (word(name_bytes), word(name_bytes + 2));
    rest.is_empty().then_some(Question { bytes, name_bytes, kind, class, stated_limit })
}

/// Where the zone's name begins in a name of the zone; `None` for another name.
fn apex_in(name: &[u8]) -> Option<usize> {
    let mut at = 0;
    while name.len() - at >= APEX.len() {
        // Names have no case (RFC 4343).
        if name[at..].eq_ignore_ascii_case(APEX) {
            return Some(at);
        }
        at += 1 + usize::from(name[at]);
    }
    None
}

#[cfg(test)]
mod tests;
