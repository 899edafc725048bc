//! State that both ends of a connection keep alike: the peer's settings (RFC 9113 §6.5) and the
//! connection's windows (§5.2, §6.9). It also has the header block that arrives in several frames.

use super::Violation;
use super::frame::{self, FRAME_BYTES_DEFAULT, FrameHead, MAX_31, flag, kind};
use super::hpack::TABLE_BYTES_DEFAULT;

/// The longest header block, in bytes as they are sent.
const BLOCK_BYTES_MAX: usize = 64 << 10;

/// The most frames of a header block.
const BLOCK_FRAMES_MAX: u32 = 128;

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It opens streams with odd numbers.
    Client,
    /// It answers on the streams of the client.
    Server,
}

/// Connection state that does not depend on streams.
#[derive(Debug)]
pub struct ConnectionCore {
    peer_side: Side,
    /// Settings of the peer; the defaults until its first SETTINGS frame.
    pub peer: Settings,
    /// Whether the peer's first SETTINGS frame has come.
    pub has_settings: bool,
    /// What may be sent over all streams.
    pub send_window: SendWindow,
    /// What the peer may send over all streams.
    pub receive_window: ReceiveWindow,
    block: HeaderBlock,
}

/// A header block in several frames.
#[derive(Debug, Default)]
pub struct HeaderBlock {
    /// Its stream; 0 for no block.
    pub stream: u32,
    /// Whether its stream ends with it.
    pub ends_stream: bool,
    /// What has come of it.
    pub bytes: Vec<u8>,
    frames: u32,
}

impl ConnectionCore {
    /// A connection to a peer that may send `receive_window` bytes over all streams.
    pub fn new(peer_side: Side, receive_window: u32) -> ConnectionCore {
        ConnectionCore {
            peer_side,
            peer: Settings::default(),
            has_settings: false,
            send_window: SendWindow::new(WINDOW_DEFAULT),
            receive_window: ReceiveWindow::new(receive_window),
            block: HeaderBlock::default(),
        }
    }

    /// Checks a frame by its head alone.
    ///
    /// # Errors
    /// A first frame that is not SETTINGS, a payload over the limit, a frame within a header block,
    /// or CONTINUATION outside of one.
    #[inline]
    pub fn check(&self, head: FrameHead) -> Result<(), Violation> {
        if !self.has_settings && (head.kind != kind::SETTINGS || head.has(flag::ACK)) {
            return Err(Violation::Preface);
        }
        if head.length > FRAME_BYTES_DEFAULT {
            return Err(Violation::FrameTooLarge);
        }
        match (self.block.stream, head.kind == kind::CONTINUATION) {
            (0, false) => Ok(()),
            (0, true) => Err(Violation::ContinuationAlone),
            (stream, true) if stream == head.stream => Ok(()),
            _ => Err(Violation::BlockInterrupted),
        }
    }

    /// Whether a header block is incomplete.
    pub fn in_block(&self) -> bool {
        self.block.stream != 0
    }

    /// Keeps the first fragment of a header block that continues in other frames.
    pub fn begin_block(&mut self, head: FrameHead, fragment: &[u8]) {
        self.block = HeaderBlock {
            stream: head.stream,
            ends_stream: head.has(flag::END_STREAM),
            bytes: fragment.to_vec(),
            frames: 1,
        };
    }

    /// Adds a CONTINUATION frame to the block that it continues. The block, once it is whole.
    ///
    /// # Errors
    /// A block of too many frames or bytes.
    pub fn continue_block(
        &mut self,
        head: FrameHead,
        fragment: &[u8],
    ) -> Result<Option<HeaderBlock>, Violation> {
        let block = &mut self.block;
        block.frames += 1;
        if block.frames > BLOCK_FRAMES_MAX {
            return Err(Violation::ContinuationFlood);
        }
        if block.bytes.len() + fragment.len() > BLOCK_BYTES_MAX {
            return Err(Violation::BlockTooLarge);
        }
        block.bytes.extend_from_slice(fragment);
        Ok(head.has(flag::END_HEADERS).then(|| std::mem::take(block)))
    }

    /// Applies a SETTINGS frame, to be acknowledged. The change of the window that streams begin
    /// with; `None` for an acknowledgement.
    ///
    /// # Errors
    /// SETTINGS on a stream, of a wrong length, or with a value out of its range.
    pub fn apply_settings(
        &mut self,
        head: FrameHead,
        payload: &[u8],
    ) -> Result<Option<i64>, Violation> {
        if head.stream != 0 {
            return Err(Violation::NotOnStream);
        }
        if head.has(flag::ACK) {
            return match payload {
                [] => Ok(None),
                _ => Err(Violation::SettingsAckLength),
            };
        }
        let before = self.peer.window;
        self.peer.apply(payload, self.peer_side == Side::Server)?;
        self.has_settings = true;
        Ok(Some(i64::from(self.peer.window) - i64::from(before)))
    }

    /// Applies a WINDOW_UPDATE frame of the connection. The increment, where it is of a stream.
    ///
    /// # Errors
    /// A wrong length, an increment of 0, a window beyond 2³¹ − 1.
    pub fn window_update(
        &mut self,
        head: FrameHead,
        payload: &[u8],
    ) -> Result<Option<u32>, Violation> {
        let increment = frame::read_number(payload)? & frame::MAX_31;
        if head.stream != 0 {
            return Ok(Some(increment));
        }
        self.send_window.update(increment).map(|()| None)
    }
}

/// The identifiers of settings (RFC 9113 §6.5.2).
pub mod id {
    /// Bytes of the decoder's dynamic table.
    pub const HEADER_TABLE_SIZE: u16 = 1;
    /// Whether a server may push: 0 or 1.
    pub const ENABLE_PUSH: u16 = 2;
    /// The most streams that the peer may have open.
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    /// The window of a new stream, in bytes.
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
    /// The largest payload of a frame, in bytes.
    pub const MAX_FRAME_SIZE: u16 = 5;
    /// The largest list of fields, in bytes with 32 more for each.
    pub const MAX_HEADER_LIST_SIZE: u16 = 6;
}

/// Settings of the peer that matter for sending to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Most bytes of its decoder's dynamic table.
    pub table_bytes: u32,
    /// Least value of this within the last SETTINGS frame: entries beyond it are evicted (RFC 7541
    /// §4.2).
    pub table_bytes_least: u32,
    /// Most concurrent streams; `None` for no limit.
    pub streams_max: Option<u32>,
    /// Window of new streams.
    pub window: u32,
    /// Largest payload of a frame.
    pub frame_bytes: u32,
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
    pub fn apply(&mut self, payload: &[u8], from_server: bool) -> Result<(), Violation> {
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
pub fn put_settings(out: &mut Vec<u8>, settings: &[(u16, u32)]) {
    let mut payload = Vec::with_capacity(settings.len() * 6);
    for (id, value) in settings {
        payload.extend_from_slice(&id.to_be_bytes());
        payload.extend_from_slice(&value.to_be_bytes());
    }
    frame::put(out, kind::SETTINGS, 0, 0, &payload);
}

/// Appends the acknowledgement of one.
pub fn put_settings_ack(out: &mut Vec<u8>) {
    frame::put(out, kind::SETTINGS, flag::ACK, 0, &[]);
}

/// Initial window of a stream and of the connection (§6.9.2).
pub const WINDOW_DEFAULT: u32 = 65_535;

/// Bytes that may still be sent. Below 0 if the receiver has made the window smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendWindow(i64);

impl SendWindow {
    /// A window of this many bytes.
    pub fn new(bytes: u32) -> SendWindow {
        SendWindow(i64::from(bytes))
    }

    /// Adds the increment of a WINDOW_UPDATE frame.
    ///
    /// # Errors
    /// An increment of 0, or a window beyond 2³¹ − 1.
    pub fn update(&mut self, increment: u32) -> Result<(), Violation> {
        match increment {
            0 => Err(Violation::IncrementZero),
            _ if self.grow(i64::from(increment)) => Ok(()),
            _ => Err(Violation::WindowOverflow),
        }
    }

    /// Bytes that may be sent now.
    #[inline]
    pub fn left(self) -> usize {
        self.0.max(0) as usize
    }

    /// Subtracts sent bytes, at most [`SendWindow::left`].
    #[inline]
    pub fn take(&mut self, bytes: usize) {
        self.0 -= bytes as i64;
    }

    /// Changes the window by `by`. Whether it stays within 2³¹ − 1.
    #[must_use]
    pub fn grow(&mut self, by: i64) -> bool {
        self.0 += by;
        self.0 <= i64::from(MAX_31)
    }
}

/// Bytes that the peer may still send. The window is refilled once half of it is used. So updates
/// are few, and the peer waits for none unless half a window is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveWindow {
    left: u32,
    full: u32,
}

impl ReceiveWindow {
    /// A full window of this many bytes.
    pub fn new(bytes: u32) -> ReceiveWindow {
        ReceiveWindow { left: bytes, full: bytes }
    }

    /// Subtracts received bytes. Whether they were permitted.
    #[inline]
    #[must_use]
    pub fn take(&mut self, bytes: u32) -> bool {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }

    /// The increment to announce now, if any.
    #[inline]
    pub fn due(&mut self) -> Option<u32> {
        if self.left > self.full / 2 {
            return None;
        }
        let increment = self.full - self.left;
        self.left = self.full;
        (increment > 0).then_some(increment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(settings: &[(u16, u32)]) -> Result<Settings, Violation> {
        let mut out = Vec::new();
        put_settings(&mut out, settings);
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

    #[test]
    fn what_may_be_sent() {
        let mut window = SendWindow::new(10);
        window.take(10);
        assert_eq!(window.left(), 0);
        assert!(window.grow(-5));
        assert_eq!(window.left(), 0, "below 0 (RFC 9113 §6.9.2)");
        assert!(window.grow(6));
        assert_eq!(window.left(), 1);
        assert!(window.grow(i64::from(MAX_31) - 1));
        assert!(!window.grow(1), "beyond 2³¹ − 1");
    }

    #[test]
    fn updates_come_at_half() {
        let mut window = ReceiveWindow::new(10);
        assert!(window.take(4));
        assert_eq!(window.due(), None);
        assert!(window.take(1));
        assert_eq!(window.due(), Some(5));
        assert!(window.take(10));
        assert!(!window.take(1));
        let mut least = ReceiveWindow::new(1);
        assert_eq!(least.due(), None);
        assert!(least.take(1));
        assert_eq!(least.due(), Some(1));
    }
}
