//! The header at the front of every datagram's payload: who sent it, when, as which.
//!
//! 40 bytes, little endian: magic (4), client (4), session (8), number (8), intended (8), sent (8).
//! What follows is filler.

use knee_core::time::Nanos;

/// Tells our datagrams from any others that come to the same port.
const MAGIC: [u8; 4] = *b"kneU";

/// What a datagram says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The run that it belongs to.
    pub session: u64,
    /// Its client, from 0.
    pub client: u32,
    /// Its place among those that its client sent, from 0 without gaps.
    pub number: u64,
    /// When it should have been sent, since the run's origin; [`Header::sent`] where its client
    /// keeps to no schedule.
    pub intended: Nanos,
    /// When it was handed to the kernel, since the run's origin; datagrams handed over in one call
    /// share the reading just before it.
    pub sent: Nanos,
}

impl Header {
    /// Its length.
    pub const BYTES: usize = 40;

    /// Writes it to the first [`Header::BYTES`] bytes.
    ///
    /// # Panics
    /// Where there are fewer.
    #[inline]
    pub fn write(&self, to: &mut [u8]) {
        let to: &mut [u8; Header::BYTES] = (&mut to[..Header::BYTES])
            .try_into()
            .expect("the slice has this length");
        to[..4].copy_from_slice(&MAGIC);
        to[4..8].copy_from_slice(&self.client.to_le_bytes());
        to[8..16].copy_from_slice(&self.session.to_le_bytes());
        to[16..24].copy_from_slice(&self.number.to_le_bytes());
        to[24..32].copy_from_slice(&self.intended.0.to_le_bytes());
        to[32..].copy_from_slice(&self.sent.0.to_le_bytes());
    }

    /// Reads it from a payload; `None` where that is too short or not one of ours.
    #[inline]
    pub fn read(from: &[u8]) -> Option<Header> {
        let from: &[u8; Header::BYTES] = from.first_chunk()?;
        if from[..4] != MAGIC {
            return None;
        }
        let word = |at: usize| {
            let bytes = from[at..].first_chunk().expect("within the header");
            u64::from_le_bytes(*bytes)
        };
        Some(Header {
            client: (word(0) >> 32) as u32,
            session: word(8),
            number: word(16),
            intended: Nanos(word(24)),
            sent: Nanos(word(32)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_layout_is_fixed() {
        let header = Header {
            session: 0x0807_0605_0403_0201,
            client: 0x0403_0201,
            number: 1,
            intended: Nanos(2),
            sent: Nanos(3),
        };
        let mut bytes = [0xff; 41];
        header.write(&mut bytes);
        let mut expected = b"kneU\x01\x02\x03\x04\x01\x02\x03\x04\x05\x06\x07\x08".to_vec();
        for number in [1, 2, 3] {
            expected.extend([number, 0, 0, 0, 0, 0, 0, 0]);
        }
        expected.push(0xff);
        assert_eq!(bytes[..], expected);
    }

    #[test]
    fn what_is_not_ours_is_not_read() {
        assert_eq!(Header::read(&[]), None);
        assert_eq!(Header::read(&MAGIC), None);
        assert_eq!(Header::read(&[0; 64]), None);
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(
            session: u64, client: u32, number: u64, intended: u64, sent: u64, more in 0usize..100,
        ) {
            let (intended, sent) = (Nanos(intended), Nanos(sent));
            let header = Header { session, client, number, intended, sent };
            let mut bytes = vec![0; Header::BYTES + more];
            header.write(&mut bytes);
            prop_assert_eq!(Header::read(&bytes), Some(header));
            prop_assert_eq!(Header::read(&bytes[..Header::BYTES - 1]), None);
        }
    }
}
