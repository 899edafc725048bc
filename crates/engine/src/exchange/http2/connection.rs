//! State that both ends of a connection keep alike: the peer's settings, the connection's windows,
//! and the header block that arrives in several frames.

use super::Violation;
use super::flow::{ReceiveWindow, SendWindow, WINDOW_DEFAULT};
use super::frame::{self, FRAME_BYTES_DEFAULT, FrameHead, flag, kind};
use super::settings::Settings;

/// The longest header block, in bytes as they are sent.
const BLOCK_BYTES_MAX: usize = 64 << 10;

/// The most frames of a header block.
const BLOCK_FRAMES_MAX: u32 = 128;

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// Connection state that does not depend on streams.
#[derive(Debug)]
pub(crate) struct ConnectionCore {
    peer_side: Side,
    /// Settings of the peer; the defaults until its first SETTINGS frame.
    pub(crate) peer: Settings,
    pub(crate) has_settings: bool,
    pub(crate) send_window: SendWindow,
    pub(crate) receive_window: ReceiveWindow,
    block: HeaderBlock,
}

/// A header block in several frames.
#[derive(Debug, Default)]
pub(crate) struct HeaderBlock {
    /// Its stream; 0 for no block.
    pub(crate) stream: u32,
    pub(crate) ends_stream: bool,
    pub(crate) bytes: Vec<u8>,
    frames: u32,
}

impl ConnectionCore {
    /// A connection to a peer that may send `receive_window` bytes over all streams.
    pub(crate) fn new(peer_side: Side, receive_window: u32) -> ConnectionCore {
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
    pub(crate) fn check(&self, head: FrameHead) -> Result<(), Violation> {
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
    pub(crate) fn in_block(&self) -> bool {
        self.block.stream != 0
    }

    /// Keeps the first fragment of a header block that continues in other frames.
    pub(crate) fn begin_block(&mut self, head: FrameHead, fragment: &[u8]) {
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
    pub(crate) fn continue_block(
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
    pub(crate) fn apply_settings(
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
    pub(crate) fn window_update(
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
