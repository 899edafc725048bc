//! SETTINGS (RFC 9113 §6.5).

use super::Violation;
use super::flow::WINDOW_DEFAULT;
use super::frame::{self, FRAME_BYTES_DEFAULT, MAX_31, flag, kind};
use super::hpack::TABLE_BYTES_DEFAULT;

/// The identifiers of settings.
pub(crate) mod id {
    pub(crate) const HEADER_TABLE_SIZE: u16 = 1;
    pub(crate) const ENABLE_PUSH: u16 = 2;
    pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
    pub(crate) const MAX_FRAME_SIZE: u16 = 5;
    pub(crate) const MAX_HEADER_LIST_SIZE: u16 = 6;
}

/// Settings of the peer that matter for sending to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Most bytes of its decoder's dynamic table.
    pub(crate) table_bytes: u32,
    /// Least value of this within the last SETTINGS frame: entries beyond it are evicted (RFC 7541
    /// §4.2).
    pub(crate) table_bytes_least: u32,
    /// Most concurrent streams; `None` for no limit.
    pub(crate) streams_max: Option<u32>,
    /// Window of new streams.
    pub(crate) window: u32,
    /// Largest payload of a frame.
    pub(crate) frame_bytes: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            table_bytes: TABLE_BYTES_DEFAULT as u32,
            table_bytes_least: TABLE_BYTES_DEFAULT as u32,
            streams_max: None,
            window: WINDOW_DEFAULT,
            frame_bytes: FRAME_BYTES_DEFAULT,
        }
    }
}

impl Settings {
    /// Applies the payload of a SETTINGS frame in order.
    ///
    /// # Errors
    /// A length that is no multiple of 6; a value out of its range. Only a client may turn push on.
    pub(crate) fn apply(&mut self, payload: &[u8], from_server: bool) -> Result<(), Violation> {
        let (entries, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(Violation::SettingsLength);
        }
        self.table_bytes_least = self.table_bytes;
        for [a, b, value @ ..] in entries {
            let value = u32::from_be_bytes(*value);
            match u16::from_be_bytes([*a, *b]) {
                id::HEADER_TABLE_SIZE => {
                    self.table_bytes = value;
                    self.table_bytes_least = self.table_bytes_least.min(value);
                }
                id::ENABLE_PUSH if value > 1 => return Err(Violation::PushValue),
                id::ENABLE_PUSH if from_server && value == 1 => {
                    return Err(Violation::PushByServer);
                }
                id::MAX_CONCURRENT_STREAMS => self.streams_max = Some(value),
                id::INITIAL_WINDOW_SIZE if value > MAX_31 => return Err(Violation::InitialWindow),
                id::INITIAL_WINDOW_SIZE => self.window = value,
                id::MAX_FRAME_SIZE => {
                    if !(FRAME_BYTES_DEFAULT..1 << 24).contains(&value) {
                        return Err(Violation::MaxFrameSize);
                    }
                    self.frame_bytes = value;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Appends a SETTINGS frame.
pub(crate) fn put(out: &mut Vec<u8>, settings: &[(u16, u32)]) {
    let mut payload = Vec::with_capacity(settings.len() * 6);
    for (id, value) in settings {
        payload.extend_from_slice(&id.to_be_bytes());
        payload.extend_from_slice(&value.to_be_bytes());
    }
    frame::put(out, kind::SETTINGS, 0, 0, &payload);
}

/// Appends the acknowledgement of one.
pub(crate) fn put_ack(out: &mut Vec<u8>) {
    frame::put(out, kind::SETTINGS, flag::ACK, 0, &[]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(settings: &[(u16, u32)]) -> Result<Settings, Violation> {
        let mut out = Vec::new();
        put(&mut out, settings);
        let mut peer = Settings::default();
        peer.apply(&out[frame::HEAD_BYTES..], true).map(|()| peer)
    }

    #[test]
    fn the_last_of_each_counts_and_unknown_ones_do_not() {
        let given = [(1, 7), (3, 5), (4, MAX_31), (5, 16_384), (5, (1 << 24) - 1), (3, 6)];
        let peer = Settings {
            table_bytes: 7,
            table_bytes_least: 7,
            streams_max: Some(6),
            window: MAX_31,
            frame_bytes: (1 << 24) - 1,
        };
        assert_eq!(applied(&given), Ok(peer));
        assert_eq!(applied(&[(2, 0), (6, 1), (0x99, 9)]), Ok(Settings::default()));
    }

    #[test]
    fn least_table_size_is_that_of_one_frame() {
        for (given, least, last) in [
            (&[(1, 0), (1, 4_096)][..], 0, 4_096),
            (&[(1, 9_000), (1, 100), (1, 2_000)], 100, 2_000),
            (&[(1, 9_000)], 4_096, 9_000),
            (&[(3, 1)], 4_096, 4_096),
        ] {
            let peer = applied(given).unwrap();
            assert_eq!((peer.table_bytes_least, peer.table_bytes), (least, last));
        }
        let mut peer = applied(&[(1, 0), (1, 4_096)]).unwrap();
        peer.apply(&[], true).unwrap();
        assert_eq!(peer.table_bytes_least, 4_096, "no more of the frame before");
    }

    #[test]
    fn values_out_of_range() {
        for (setting, want) in [
            ((2, 2), Violation::PushValue),
            ((2, 1), Violation::PushByServer),
            ((4, 1 << 31), Violation::InitialWindow),
            ((5, 16_383), Violation::MaxFrameSize),
            ((5, 1 << 24), Violation::MaxFrameSize),
        ] {
            assert_eq!(applied(&[setting]), Err(want));
        }
        let mut peer = Settings::default();
        assert_eq!(peer.apply(&[0, 2, 0, 0, 0, 1], false), Ok(()), "a client may");
        assert_eq!(peer.apply(&[0; 7], true), Err(Violation::SettingsLength));
    }
}
