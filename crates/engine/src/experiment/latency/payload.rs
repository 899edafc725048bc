//! Formats of what travels over flows (records) and as UDP probes.
//!
//! A sender cuts its payload into records. Each has a head with its length and the time at which it
//! was handed to the socket. The rest of a record means nothing, so that its receiver need not read
//! it.

/// A head's length in bytes.
pub const HEADER_BYTES: usize = 24;

/// The shortest record with its head, in bytes.
pub const RECORD_MIN: u32 = 4 << 10;

/// Longest record, in bytes.
pub const RECORD_MAX: u32 = 64 << 20;

/// Marks a head, so that a receiver notices when it is out of step.
const RECORD_MAGIC: u32 = 0x6b6e_6565;

/// A record's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// The record's length with its head, from [`RECORD_MIN`] to [`RECORD_MAX`].
    pub length: u32,
    /// Which of the flow's records, from 0.
    pub number: u64,
    /// Time at which its first byte was handed to the socket, in nanoseconds of the service's
    /// CLOCK_MONOTONIC.
    pub sent_ns: u64,
}

impl RecordHeader {
    /// Encodes it: little-endian, one field after the other.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&RECORD_MAGIC.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.number.to_le_bytes());
        bytes[16..].copy_from_slice(&self.sent_ns.to_le_bytes());
        bytes
    }

    /// Reads the head of record `number`; `None`: it is none.
    pub fn decode(bytes: &[u8; HEADER_BYTES], number: u64) -> Option<RecordHeader> {
        let four = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
        let eight = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
        let header = RecordHeader { length: four(4), number: eight(8), sent_ns: eight(16) };
        let whole = four(0) == RECORD_MAGIC && (RECORD_MIN..=RECORD_MAX).contains(&header.length);
        (whole && header.number == number).then_some(header)
    }
}

/// A probe's length in bytes.
pub const PROBE_BYTES: usize = 48;

/// Marks a probe.
const PROBE_MAGIC: u64 = 0x6b6e_6565_7072_6f62;

/// A UDP probe. It has the same length both ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeDatagram {
    /// Session number, drawn at random by the client.
    pub session: u64,
    /// Number of the probe in the session, from 0.
    pub number: u64,
    /// Time at which it reached the service, in nanoseconds of the service's CLOCK_MONOTONIC; 0 on
    /// the way to the service.
    pub reached_ns: u64,
    /// Time at which it left the service; 0 on the way to the service.
    pub left_ns: u64,
}

impl ProbeDatagram {
    /// Encodes it: little-endian, one field after the other.
    pub fn encode(&self) -> [u8; PROBE_BYTES] {
        let mut bytes = [0; PROBE_BYTES];
        let fields = [PROBE_MAGIC, self.session, self.number, self.reached_ns, self.left_ns];
        for (to, field) in bytes.chunks_exact_mut(8).zip(fields) {
            to.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    /// Decodes a datagram; `None`: it is no probe.
    pub fn decode(bytes: &[u8]) -> Option<ProbeDatagram> {
        if bytes.len() != PROBE_BYTES {
            return None;
        }
        let field = |n: usize| {
            let bytes = bytes[n * 8..][..8].try_into().expect("eight bytes");
            u64::from_le_bytes(bytes)
        };
        (field(0) == PROBE_MAGIC && field(5) == 0).then(|| ProbeDatagram {
            session: field(1),
            number: field(2),
            reached_ns: field(3),
            left_ns: field(4),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_head_is_read_as_it_was_written(
            length in RECORD_MIN..=RECORD_MAX,
            number: u64,
            sent_ns: u64,
        ) {
            let header = RecordHeader { length, number, sent_ns };
            prop_assert_eq!(RecordHeader::decode(&header.encode(), number), Some(header));
            prop_assert_eq!(RecordHeader::decode(&header.encode(), number ^ 1), None);
        }

        #[test]
        fn any_bytes_are_a_head_or_none(bytes: [u8; HEADER_BYTES], number: u64) {
            if let Some(header) = RecordHeader::decode(&bytes, number) {
                prop_assert_eq!(header.encode(), bytes);
            }
        }
    }

    #[test]
    fn lengths_have_bounds() {
        for (length, fits) in [
            (RECORD_MIN - 1, false),
            (RECORD_MIN, true),
            (RECORD_MAX, true),
            (RECORD_MAX + 1, false),
        ] {
            let header = RecordHeader { length, number: 0, sent_ns: 1 };
            assert_eq!(RecordHeader::decode(&header.encode(), 0).is_some(), fits);
        }
    }

    proptest! {
        #[test]
        fn a_probe_is_read_as_it_was_written(
            session: u64,
            number: u64,
            reached_ns: u64,
            left_ns: u64,
        ) {
            let probe = ProbeDatagram { session, number, reached_ns, left_ns };
            prop_assert_eq!(ProbeDatagram::decode(&probe.encode()), Some(probe));
            prop_assert_eq!(ProbeDatagram::decode(&probe.encode()[1..]), None);
        }
    }

    #[test]
    fn what_is_no_probe_is_none() {
        assert_eq!(ProbeDatagram::decode(&[]), None);
        assert_eq!(ProbeDatagram::decode(&[0; PROBE_BYTES]), None);
    }
}
