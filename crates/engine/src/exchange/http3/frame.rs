//! Frames (RFC 9114 §7) and integers of variable length (RFC 9000 §16).

use super::Http3Violation;

/// Longest payload of a frame that is kept whole: a field section, or a frame of the connection.
pub const KEPT_BYTES_MAX: u64 = 64 << 10;

/// Most frames in a row that say nothing: empty DATA frames, and frames of unknown types.
pub const IDLE_FRAMES_MAX: u32 = 1000;

/// The room for a frame in pieces that a reader keeps; more is given back.
const SCRATCH_KEPT_BYTES: usize = 1024;

/// Types of frames (RFC 9114 §7.2).
pub mod kind {
    /// Content.
    pub const DATA: u64 = 0;
    /// A field section.
    pub const HEADERS: u64 = 1;
    /// A promise is taken back.
    pub const CANCEL_PUSH: u64 = 3;
    /// Settings of the sender.
    pub const SETTINGS: u64 = 4;
    /// A promised request.
    pub const PUSH_PROMISE: u64 = 5;
    /// No further requests.
    pub const GOAWAY: u64 = 7;
    /// Pushes that the client permits.
    pub const MAX_PUSH_ID: u64 = 13;
}

/// Largest integer of variable length.
pub const VARINT_MAX: u64 = (1 << 62) - 1;

/// Most bytes of the head of a frame: two integers.
const HEAD_BYTES_MAX: usize = 16;

/// Appends an integer in its shortest form. Larger ones than [`VARINT_MAX`] do not exist.
pub fn put_varint(out: &mut Vec<u8>, value: u64) {
    match value {
        0..0x40 => out.push(value as u8),
        0x40..0x4000 => out.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        0x4000..0x4000_0000 => out.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend_from_slice(&(value & VARINT_MAX | 0xC0 << 56).to_be_bytes()),
    }
}

/// The integer that `bytes` begin with, and what follows it; `None`: it is not whole.
#[inline]
pub fn read_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let &first = bytes.first()?;
    let (own, rest) = bytes.split_at_checked(1 << (first >> 6))?;
    let value = own[1..].iter().fold(u64::from(first & 0x3F), |sum, &b| sum << 8 | u64::from(b));
    Some((value, rest))
}

/// Appends the head of a frame.
pub fn put_head(out: &mut Vec<u8>, kind: u64, length: usize) {
    put_varint(out, kind);
    put_varint(out, length as u64);
}

/// Appends a frame.
pub fn put(out: &mut Vec<u8>, kind: u64, payload: &[u8]) {
    put_head(out, kind, payload.len());
    out.extend_from_slice(payload);
}

/// The kind of stream that frames come on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameStream {
    /// A request, from a client.
    Request,
    /// A response, from a server.
    Response,
    /// The control stream of a peer.
    Control,
}

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handling {
    /// Its payload is kept until it is whole.
    Keep,
    /// Its payload is passed on as it comes.
    Pass,
    /// Its payload means nothing (RFC 9114 §9).
    Skip,
}

/// Where frames of each type may come (RFC 9114 §7, table 1).
fn handling(kind: u64, on: FrameStream) -> Result<Handling, Http3Violation> {
    match (kind, on) {
        (kind::DATA | kind::HEADERS | kind::PUSH_PROMISE, FrameStream::Control) => {
            Err(Http3Violation::MessageOnControl)
        }
        (kind::DATA, _) => Ok(Handling::Pass),
        (kind::HEADERS, _) => Ok(Handling::Keep),
        (kind::PUSH_PROMISE, FrameStream::Request) => Err(Http3Violation::PromiseByClient),
        (kind::PUSH_PROMISE, FrameStream::Response) => Err(Http3Violation::PushPromise),
        (kind::CANCEL_PUSH | kind::SETTINGS | kind::GOAWAY | kind::MAX_PUSH_ID, on) => match on {
            FrameStream::Control => Ok(Handling::Keep),
            FrameStream::Request | FrameStream::Response => Err(Http3Violation::ControlOnRequest),
        },
        // Types of HTTP/2 (§7.2.8).
        (2 | 6 | 8 | 9, _) => Err(Http3Violation::FrameOfHttp2),
        _ => Ok(Handling::Skip),
    }
}

/// A part of a stream of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FramePiece<'a> {
    /// A frame whose payload is whole.
    Whole {
        /// Its type.
        kind: u64,
        /// Its payload.
        payload: &'a [u8],
    },
    /// Content of a DATA frame, possibly none.
    Data {
        /// The bytes.
        bytes: &'a [u8],
        /// Whether the frame ends behind them.
        is_end: bool,
    },
}

/// Reads the frames of one stream, wherever its bytes are cut.
#[derive(Debug)]
pub struct FrameReader {
    on: FrameStream,
    /// The beginning of a head that is not whole, or of a payload that is kept.
    pending: Vec<u8>,
    /// The frame that is coming: its type, how it is handled, and the bytes still to come.
    frame: Option<(u64, Handling, u64)>,
    /// Frames in a row that said nothing.
    idle: u32,
    /// The last piece lies in `pending`.
    is_taken: bool,
    /// A frame has come.
    has_begun: bool,
}

impl FrameReader {
    /// At the beginning of a stream.
    pub fn new(on: FrameStream) -> FrameReader {
        FrameReader {
            on,
            pending: Vec::new(),
            frame: None,
            idle: 0,
            is_taken: false,
            has_begun: false,
        }
    }

    /// Whether the bytes so far end between two frames.
    pub fn is_between(&self) -> bool {
        self.frame.is_none() && (self.pending.is_empty() || self.is_taken)
    }

    /// The next piece of `bytes`, which are taken off their front; `None` once all are taken.
    ///
    /// # Errors
    /// A frame that may not come here, or is too long.
    #[inline]
    pub fn next<'s, 'b: 's>(
        &'s mut self,
        bytes: &mut &'b [u8],
    ) -> Result<Option<FramePiece<'s>>, Http3Violation> {
        if std::mem::take(&mut self.is_taken) {
            self.pending.clear();
            self.pending.shrink_to(SCRATCH_KEPT_BYTES);
        }
        loop {
            let Some((kind, handling, left)) = self.frame else {
                if !self.read_head(bytes)? {
                    return Ok(None);
                }
                continue;
            };
            if bytes.is_empty() && left > 0 {
                return Ok(None);
            }
            let (taken, rest) = bytes.split_at((bytes.len() as u64).min(left) as usize);
            *bytes = rest;
            let left = left - taken.len() as u64;
            self.frame = (left > 0).then_some((kind, handling, left));
            match handling {
                Handling::Skip => {}
                Handling::Pass => {
                    return Ok(Some(FramePiece::Data { bytes: taken, is_end: left == 0 }));
                }
                Handling::Keep if left == 0 && self.pending.is_empty() => {
                    return Ok(Some(FramePiece::Whole { kind, payload: taken }));
                }
                Handling::Keep => {
                    self.pending.extend_from_slice(taken);
                    if left == 0 {
                        self.is_taken = true;
                        return Ok(Some(FramePiece::Whole { kind, payload: &self.pending }));
                    }
                }
            }
        }
    }

    /// Reads the head of a frame. Returns whether it is whole.
    fn read_head(&mut self, bytes: &mut &[u8]) -> Result<bool, Http3Violation> {
        let (kind, length) = if self.pending.is_empty() {
            if let Some((kind, length, rest)) = split_head(bytes) {
                *bytes = rest;
                (kind, length)
            } else {
                self.pending.extend_from_slice(bytes);
                *bytes = &[];
                return Ok(false);
            }
        } else {
            let before = self.pending.len();
            let more = bytes.len().min(HEAD_BYTES_MAX - before);
            self.pending.extend_from_slice(&bytes[..more]);
            let Some((kind, length, rest)) = split_head(&self.pending) else {
                *bytes = &bytes[more..];
                return Ok(false);
            };
            let used = self.pending.len() - rest.len();
            *bytes = &bytes[used - before..];
            self.pending.clear();
            (kind, length)
        };
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        if is_first && self.on == FrameStream::Control && kind != kind::SETTINGS {
            return Err(Http3Violation::NoSettings);
        }
        let handling = handling(kind, self.on)?;
        if handling == Handling::Keep && length > KEPT_BYTES_MAX {
            return Err(match kind {
                kind::HEADERS => Http3Violation::SectionTooLarge,
                _ => Http3Violation::FrameTooLarge,
            });
        }
        let says_nothing =
            handling == Handling::Skip || (handling == Handling::Pass && length == 0);
        self.idle = if says_nothing { self.idle + 1 } else { 0 };
        if self.idle > IDLE_FRAMES_MAX {
            return Err(Http3Violation::IdleFrames);
        }
        self.frame = Some((kind, handling, length));
        Ok(true)
    }
}

/// Type and length that `bytes` begin with, and what follows them.
#[inline]
fn split_head(bytes: &[u8]) -> Option<(u64, u64, &[u8])> {
    let (kind, rest) = read_varint(bytes)?;
    let (length, rest) = read_varint(rest)?;
    Some((kind, length, rest))
}

/// The one integer that a payload is.
///
/// # Errors
/// It is none, or bytes follow it.
pub fn only_varint(payload: &[u8]) -> Result<u64, Http3Violation> {
    match read_varint(payload) {
        Some((value, [])) => Ok(value),
        _ => Err(Http3Violation::FrameLength),
    }
}

/// Settings by their identifiers (RFC 9114 §7.2.4.1, RFC 9204 §5).
pub mod id {
    /// Most bytes of a dynamic table.
    pub const QPACK_MAX_TABLE_CAPACITY: u64 = 1;
    /// Most bytes of a field section.
    pub const MAX_FIELD_SECTION_SIZE: u64 = 6;
    /// Most streams that wait for the dynamic table.
    pub const QPACK_BLOCKED_STREAMS: u64 = 7;
}

/// Appends a SETTINGS frame.
pub fn put_settings(out: &mut Vec<u8>, settings: &[(u64, u64)]) {
    let mut payload = Vec::new();
    for (id, value) in settings {
        put_varint(&mut payload, *id);
        put_varint(&mut payload, *value);
    }
    put(out, kind::SETTINGS, &payload);
}

/// Hands each setting of a payload to `each`.
///
/// # Errors
/// The payload ends within a setting; a setting comes twice, or is one of HTTP/2 alone (§7.2.4.1).
pub fn read_settings(
    payload: &[u8],
    each: &mut impl FnMut(u64, u64),
) -> Result<(), Http3Violation> {
    let mut rest = payload;
    let mut seen = Vec::new();
    while !rest.is_empty() {
        let (id, value, after) = split_head(rest).ok_or(Http3Violation::FrameLength)?;
        if matches!(id, 2..=5) {
            return Err(Http3Violation::SettingOfHttp2);
        }
        seen.push(id);
        each(id, value);
        rest = after;
    }
    // The payload has at most 64 KiB.
    seen.sort_unstable();
    if seen.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Http3Violation::SettingTwice);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn examples_of_integers_in_the_rfc() {
        for (bytes, value) in [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ] {
            assert_eq!(read_varint(bytes), Some((value, &[][..])));
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!(out, bytes);
        }
        assert_eq!(read_varint(&[0x40, 0x25]), Some((37, &[][..])), "not the shortest form");
        assert_eq!(read_varint(&[0x7b]), None);
        assert_eq!(read_varint(&[]), None);
    }

    proptest! {
        #[test]
        fn integers_read_back(value in 0..=VARINT_MAX, after: [u8; 3]) {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            out.extend(after);
            prop_assert_eq!(read_varint(&out), Some((value, &after[..])));
        }

        /// Frames mean the same wherever the stream is cut.
        #[test]
        fn frames_read_back_however_they_are_cut(
            frames in prop::collection::vec(
                (prop::sample::select(vec![0_u64, 1, 0x21, 0x4242]),
                 prop::collection::vec(any::<u8>(), 0..300)), 0..8),
            cuts in prop::collection::vec(1_usize..80, 1..40),
        ) {
            let mut stream = Vec::new();
            frames.iter().for_each(|(kind, payload)| put(&mut stream, *kind, payload));
            let mut reader = FrameReader::new(FrameStream::Request);
            let (mut whole, mut content) = (Vec::new(), Vec::new());
            let (mut rest, mut cuts) = (&stream[..], cuts.iter().cycle());
            while !rest.is_empty() {
                let (mut piece, after) = rest.split_at(rest.len().min(*cuts.next().unwrap()));
                rest = after;
                while let Some(piece) = reader.next(&mut piece).unwrap() {
                    match piece {
                        FramePiece::Whole { kind, payload } => {
                            prop_assert_eq!(kind, kind::HEADERS);
                            whole.push(payload.to_vec());
                        }
                        FramePiece::Data { bytes, .. } => content.extend_from_slice(bytes),
                    }
                }
            }
            prop_assert!(reader.is_between());
            let of = |wanted: u64| frames.iter().filter(move |(kind, _)| *kind == wanted);
            let sections: Vec<_> = of(kind::HEADERS).map(|(_, payload)| payload.clone()).collect();
            prop_assert_eq!(whole, sections);
            let sent: Vec<u8> = of(kind::DATA).flat_map(|(_, payload)| payload.clone()).collect();
            prop_assert_eq!(content, sent);
        }
    }
}
