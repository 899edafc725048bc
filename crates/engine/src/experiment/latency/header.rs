//! The head of a record: what a flow's payload is made of.
//!
//! A sender cuts its payload into records, each with a head that says how long the record is and
//! when it was handed to the socket. The rest of a record means nothing, so that its receiver need
//! not look at it.

/// A head's length in bytes.
pub const HEADER_BYTES: usize = 24;

/// The shortest record with its head, in bytes.
pub const RECORD_MIN: u32 = 4 << 10;

/// The longest.
pub const RECORD_MAX: u32 = 64 << 20;

/// Marks a head, so that a receiver that lost its place notices.
const MAGIC: u32 = 0x6b6e_6565;

/// A record's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The record's length with its head, from [`RECORD_MIN`] to [`RECORD_MAX`].
    pub length: u32,
    /// Which of the flow's records, from 0.
    pub number: u64,
    /// When its first byte was handed to the socket, in nanoseconds of the service's
    /// CLOCK_MONOTONIC.
    pub sent_ns: u64,
}

impl Header {
    /// As it travels: little-endian, one field after the other.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.number.to_le_bytes());
        bytes[16..].copy_from_slice(&self.sent_ns.to_le_bytes());
        bytes
    }

    /// Reads the head of record `number`; `None` where it is none.
    pub fn decode(bytes: &[u8; HEADER_BYTES], number: u64) -> Option<Header> {
        let four = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
        let eight = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
        let header = Header {
            length: four(4),
            number: eight(8),
            sent_ns: eight(16),
        };
        let whole = four(0) == MAGIC && (RECORD_MIN..=RECORD_MAX).contains(&header.length);
        (whole && header.number == number).then_some(header)
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
            let header = Header { length, number, sent_ns };
            prop_assert_eq!(Header::decode(&header.encode(), number), Some(header));
            prop_assert_eq!(Header::decode(&header.encode(), number ^ 1), None);
        }

        #[test]
        fn any_bytes_are_a_head_or_none(bytes: [u8; HEADER_BYTES], number: u64) {
            if let Some(header) = Header::decode(&bytes, number) {
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
            let header = Header {
                length,
                number: 0,
                sent_ns: 1,
            };
            assert_eq!(Header::decode(&header.encode(), 0).is_some(), fits);
        }
    }
}
