//! The UDP probe: as long on its way back as on its way there.

/// A probe's length in bytes.
pub const PROBE_BYTES: usize = 48;

/// Marks a probe.
const MAGIC: u64 = 0x6b6e_6565_7072_6f62;

/// A probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeDatagram {
    /// Of the session that the client drew at random.
    pub session: u64,
    /// Which of the session's probes, from 0.
    pub number: u64,
    /// When it reached the service, in nanoseconds of its CLOCK_MONOTONIC; 0 on its way there.
    pub reached_ns: u64,
    /// When it left it again; 0 on its way there.
    pub left_ns: u64,
}

impl ProbeDatagram {
    /// As it travels: little-endian, one field after the other.
    pub fn encode(&self) -> [u8; PROBE_BYTES] {
        let mut bytes = [0; PROBE_BYTES];
        let fields = [
            MAGIC,
            self.session,
            self.number,
            self.reached_ns,
            self.left_ns,
        ];
        for (to, field) in bytes.chunks_exact_mut(8).zip(fields) {
            to.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    /// Reads one; `None` where it is none.
    pub fn decode(bytes: &[u8]) -> Option<ProbeDatagram> {
        if bytes.len() != PROBE_BYTES {
            return None;
        }
        let field = |n: usize| {
            let bytes = bytes[n * 8..][..8].try_into().expect("eight bytes");
            u64::from_le_bytes(bytes)
        };
        (field(0) == MAGIC && field(5) == 0).then(|| ProbeDatagram {
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
