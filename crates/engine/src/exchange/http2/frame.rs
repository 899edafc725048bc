//! Frames (RFC 9113 §4.1, §6), read and written. Client and server use the same.

use super::{ErrorCode, Violation};

/// The bytes of a frame's head.
pub const HEAD_BYTES: usize = 9;

/// Largest payload unless the receiver permits more (RFC 9113 §4.2).
pub const FRAME_BYTES_DEFAULT: u32 = 16_384;

/// First bytes of a client, before its SETTINGS (RFC 9113 §3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The largest stream identifier and the largest window.
pub const MAX_31: u32 = (1 << 31) - 1;

/// The types of frames (RFC 9113 §6).
pub mod kind {
    /// Bytes of a body (§6.1).
    pub const DATA: u8 = 0;
    /// Begin of a header block (§6.2).
    pub const HEADERS: u8 = 1;
    /// Priority of a stream, which is not used (§6.3).
    pub const PRIORITY: u8 = 2;
    /// The end of a stream (§6.4).
    pub const RST_STREAM: u8 = 3;
    /// Settings of the sender, or their acknowledgement (§6.5).
    pub const SETTINGS: u8 = 4;
    /// A request that the server answers unasked (§6.6).
    pub const PUSH_PROMISE: u8 = 5;
    /// A question whether the peer is there, or its answer (§6.7).
    pub const PING: u8 = 6;
    /// No new streams (§6.8).
    pub const GOAWAY: u8 = 7;
    /// More may be sent (§6.9).
    pub const WINDOW_UPDATE: u8 = 8;
    /// More of a header block (§6.10).
    pub const CONTINUATION: u8 = 9;
}

/// The flags of frames (RFC 9113 §6).
pub mod flag {
    /// The stream ends: DATA and HEADERS.
    pub const END_STREAM: u8 = 1;
    /// An answer: SETTINGS and PING.
    pub const ACK: u8 = 1;
    /// The header block ends: HEADERS and CONTINUATION.
    pub const END_HEADERS: u8 = 4;
    /// Padding follows: DATA and HEADERS.
    pub const PADDED: u8 = 8;
    /// A priority follows: HEADERS.
    pub const PRIORITY: u8 = 0x20;
}

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    /// The bytes that follow, up to 2²⁴ − 1.
    pub length: u32,
    /// One of [`kind`].
    pub kind: u8,
    /// Several of [`flag`].
    pub flags: u8,
    /// The stream's identifier, without the reserved bit; 0 is the connection.
    pub stream: u32,
}

impl FrameHead {
    /// Reads the head at the front of `bytes`. Returns the rest as well.
    #[inline]
    pub fn read(bytes: &[u8]) -> Option<(FrameHead, &[u8])> {
        let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let [a, b, c, kind, flags, stream @ ..] = *head;
        let head = FrameHead {
            length: u32::from_be_bytes([0, a, b, c]),
            kind,
            flags,
            stream: u32::from_be_bytes(stream) & MAX_31,
        };
        Some((head, rest))
    }

    /// Whether this flag is set.
    #[inline]
    pub fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The head's bytes.
    #[inline]
    pub fn bytes(self) -> [u8; HEAD_BYTES] {
        let [_, a, b, c] = self.length.to_be_bytes();
        let [s0, s1, s2, s3] = self.stream.to_be_bytes();
        [a, b, c, self.kind, self.flags, s0, s1, s2, s3]
    }
}

/// Appends a frame.
#[inline]
pub fn put(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let head = FrameHead { length: payload.len() as u32, kind, flags, stream };
    out.extend_from_slice(&head.bytes());
    out.extend_from_slice(payload);
}

/// Appends a header block as HEADERS and, where it is longer than `frame_max`, CONTINUATION.
#[inline]
pub fn put_headers(out: &mut Vec<u8>, stream: u32, end_stream: bool, block: &[u8], frame_max: u32) {
    let end = if end_stream { flag::END_STREAM } else { 0 };
    if block.len() <= frame_max as usize {
        return put(out, kind::HEADERS, end | flag::END_HEADERS, stream, block);
    }
    let (first, mut rest) = block.split_at(frame_max as usize);
    put(out, kind::HEADERS, end, stream, first);
    while rest.len() > frame_max as usize {
        let piece;
        (piece, rest) = rest.split_at(frame_max as usize);
        put(out, kind::CONTINUATION, 0, stream, piece);
    }
    put(out, kind::CONTINUATION, flag::END_HEADERS, stream, rest);
}

/// Appends RST_STREAM.
pub fn put_reset(out: &mut Vec<u8>, stream: u32, code: ErrorCode) {
    put(out, kind::RST_STREAM, 0, stream, &code.0.to_be_bytes());
}

/// Appends WINDOW_UPDATE; stream 0 is the connection.
pub fn put_window_update(out: &mut Vec<u8>, stream: u32, increment: u32) {
    put(out, kind::WINDOW_UPDATE, 0, stream, &increment.to_be_bytes());
}

/// Appends GOAWAY with a reason in words.
pub fn put_goaway(out: &mut Vec<u8>, last_stream: u32, code: ErrorCode, reason: &str) {
    let mut payload = Vec::with_capacity(8 + reason.len());
    payload.extend_from_slice(&last_stream.to_be_bytes());
    payload.extend_from_slice(&code.0.to_be_bytes());
    payload.extend_from_slice(reason.as_bytes());
    put(out, kind::GOAWAY, 0, 0, &payload);
}

/// Content of DATA or HEADERS, without padding and priority (RFC 9113 §6.1, §6.2).
///
/// # Errors
/// A payload shorter than its flags announce.
#[inline]
pub fn content(head: FrameHead, payload: &[u8]) -> Result<&[u8], Violation> {
    if head.flags & (flag::PADDED | flag::PRIORITY) == 0 {
        return Ok(payload);
    }
    content_among_extras(head, payload)
}

#[cold]
fn content_among_extras(head: FrameHead, payload: &[u8]) -> Result<&[u8], Violation> {
    let mut content = payload;
    let mut padding = 0;
    if head.has(flag::PADDED) {
        let (&length, rest) = content.split_first().ok_or(Violation::FrameCut)?;
        (padding, content) = (usize::from(length), rest);
    }
    if head.kind == kind::HEADERS && head.has(flag::PRIORITY) {
        content = content.get(5..).ok_or(Violation::FrameCut)?;
    }
    let length = content.len().checked_sub(padding);
    Ok(&content[..length.ok_or(Violation::Padding)?])
}

/// Reads a payload of exactly four bytes.
///
/// # Errors
/// Another length.
pub fn read_number(payload: &[u8]) -> Result<u32, Violation> {
    let bytes = payload.try_into().map_err(|_| Violation::FrameLength)?;
    Ok(u32::from_be_bytes(bytes))
}

/// Checks a PING frame. Whether it is to be answered.
///
/// # Errors
/// PING on a stream or of a wrong length.
pub fn wants_pong(head: FrameHead, payload: &[u8]) -> Result<bool, Violation> {
    match (head.stream, payload.len()) {
        (0, 8) => Ok(!head.has(flag::ACK)),
        (0, _) => Err(Violation::FrameLength),
        _ => Err(Violation::NotOnStream),
    }
}

/// Reads a GOAWAY frame: the last stream that the peer processes, and why the connection ends.
///
/// # Errors
/// GOAWAY on a stream or of fewer than 8 bytes.
pub fn read_goaway(head: FrameHead, payload: &[u8]) -> Result<(u32, ErrorCode), Violation> {
    if head.stream != 0 {
        return Err(Violation::NotOnStream);
    }
    let Some(([last, code], _)) = payload.as_chunks::<4>().0.split_first_chunk::<2>() else {
        return Err(Violation::GoawayLength);
    };
    let last = u32::from_be_bytes(*last) & MAX_31;
    Ok((last, ErrorCode(u32::from_be_bytes(*code))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_read_as_they_are_written() {
        let head = FrameHead {
            length: 0x01_02_03,
            kind: kind::DATA,
            flags: flag::END_STREAM | flag::PADDED,
            stream: 0x7fff_fffe,
        };
        let mut bytes = head.bytes().to_vec();
        bytes.push(7);
        assert_eq!(FrameHead::read(&bytes), Some((head, &[7][..])));
        bytes[5] |= 0x80;
        assert_eq!(FrameHead::read(&bytes), Some((head, &[7][..])), "the reserved bit");
        for cut in 0..HEAD_BYTES {
            assert_eq!(FrameHead::read(&bytes[..cut]), None);
        }
    }

    #[test]
    fn long_blocks_continue() {
        for (length, frames) in [(0, 1), (10, 1), (11, 2), (20, 2), (21, 3)] {
            let mut out = Vec::new();
            let block: Vec<u8> = (0..length).collect();
            put_headers(&mut out, 1, true, &block, 10);
            let (mut rest, mut whole, mut count) = (out.as_slice(), Vec::new(), 0);
            while let Some((head, after)) = FrameHead::read(rest) {
                let (payload, next) = after.split_at(head.length as usize);
                let is_first = count == 0;
                assert_eq!(head.kind == kind::HEADERS, is_first);
                assert_eq!(head.has(flag::END_STREAM), is_first);
                assert_eq!(head.has(flag::END_HEADERS), next.is_empty());
                (rest, count) = (next, count + 1);
                whole.extend_from_slice(payload);
            }
            assert_eq!((whole, count), (block, frames));
        }
    }
}
