//! A body to messages, wherever its bytes are cut. Nothing of it is kept.

use super::MessageFormat;
use memchr::{memchr, memchr2};

/// The byte order mark that a stream of server-sent events may begin with.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// The name of the field that holds the data of an event.
const DATA: &[u8] = b"data";

/// A part of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessagePiece<'a> {
    /// Bytes of the message that is coming.
    Data(&'a [u8]),
    /// That message is complete.
    End,
}

/// Splits one body into messages.
#[derive(Clone, Copy, Debug)]
pub struct Splitter {
    format: MessageFormat,
    place: LinePlace,
    /// The last byte was CR: it ended a line, and an LF that follows belongs to it.
    after_cr: bool,
    /// The message that is coming has data.
    has_data: bool,
    /// A line of JSON began with what no JSON value begins with.
    is_other: bool,
    grpc: GrpcFraming,
}

/// Bytes before a message of gRPC: whether it is compressed, and its length (gRPC over HTTP2,
/// Length-Prefixed-Message).
pub const GRPC_PREFIX: usize = 5;

/// Appends a message of gRPC that is not compressed, its prefix first.
pub fn put_grpc_message(message: &[u8], out: &mut Vec<u8>) {
    out.push(0);
    out.extend_from_slice(&(message.len() as u32).to_be_bytes());
    out.extend_from_slice(message);
}

/// Cuts a body of gRPC into its messages, each after its prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GrpcFraming {
    /// Bytes of the message that are to come.
    left: u32,
    /// Bytes of the prefix so far.
    prefix: u8,
    /// The Compressed-Flags of all messages, bit by bit.
    flags: u8,
}

impl GrpcFraming {
    /// Takes the next bytes of the body.
    #[inline]
    pub fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(MessagePiece<'_>)) {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            if usize::from(self.prefix) < GRPC_PREFIX {
                if self.prefix == 0 {
                    self.flags |= byte;
                } else {
                    self.left = self.left << 8 | u32::from(byte);
                }
                self.prefix += 1;
                rest = after;
            } else {
                let (here, after) = rest.split_at(rest.len().min(self.left as usize));
                self.left -= here.len() as u32;
                each(MessagePiece::Data(here));
                rest = after;
            }
            if usize::from(self.prefix) == GRPC_PREFIX && self.left == 0 {
                self.prefix = 0;
                each(MessagePiece::End);
            }
        }
    }

    /// Whether a message has begun that is not complete.
    #[inline]
    pub fn is_within(&self) -> bool {
        self.prefix > 0
    }

    /// The Compressed-Flags of all messages so far, bit by bit: 1 where one is compressed.
    #[inline]
    pub fn flags(&self) -> u8 {
        self.flags
    }
}

/// Where in a line the bytes so far have led.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinePlace {
    /// In the byte order mark, or before it.
    Bom(u8),
    /// In the name of a field, which agrees with `data` so far.
    Name(u8),
    /// After the colon of a field `data`, before a blank that is no part of its value.
    Colon,
    /// In the value of a field `data`, or in a line of text.
    Value,
    /// In a field that is no data.
    Other,
    /// In a comment.
    Comment,
}

impl Splitter {
    /// A splitter at the begin of a body.
    pub fn new(format: MessageFormat) -> Splitter {
        let place = if format == MessageFormat::Sse { LinePlace::Bom(0) } else { LinePlace::Value };
        Splitter {
            format,
            place,
            after_cr: false,
            has_data: false,
            is_other: false,
            grpc: GrpcFraming::default(),
        }
    }

    /// How the body is split.
    #[inline]
    pub fn format(&self) -> MessageFormat {
        self.format
    }

    /// Takes the next bytes of the body.
    pub fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(MessagePiece<'_>)) {
        match self.format {
            MessageFormat::Sse => self.feed_events(bytes, &mut each),
            MessageFormat::Ndjson | MessageFormat::Lines => self.feed_lines(bytes, &mut each),
            MessageFormat::Grpc => self.grpc.feed(bytes, each),
            MessageFormat::Chunks if !bytes.is_empty() => {
                self.has_data = true;
                each(MessagePiece::Data(bytes));
            }
            MessageFormat::Chunks | MessageFormat::None => {}
        }
    }

    /// A chunk or frame of the body has ended.
    #[inline]
    pub fn on_border(&mut self, mut each: impl FnMut(MessagePiece<'_>)) {
        if self.format == MessageFormat::Chunks && std::mem::take(&mut self.has_data) {
            each(MessagePiece::End);
        }
    }

    /// The body has ended.
    pub fn end(&mut self, mut each: impl FnMut(MessagePiece<'_>)) {
        let ends_message = matches!(self.format, MessageFormat::Lines | MessageFormat::Chunks);
        if ends_message && std::mem::take(&mut self.has_data) {
            each(MessagePiece::End);
        }
    }

    /// Whether a message has begun that is not complete.
    #[inline]
    pub fn is_within(&self) -> bool {
        let is_between =
            matches!(self.place, LinePlace::Bom(0) | LinePlace::Name(0) | LinePlace::Comment);
        let is_within_event = self.format == MessageFormat::Sse && !is_between;
        self.has_data || self.grpc.is_within() || is_within_event
    }

    /// Whether a line was no JSON, where all are to be.
    pub fn is_other(&self) -> bool {
        self.is_other
    }

    fn feed_events(&mut self, bytes: &[u8], each: &mut impl FnMut(MessagePiece<'_>)) {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            if std::mem::take(&mut self.after_cr) && byte == b'\n' {
                at += 1;
                continue;
            }
            if matches!(self.place, LinePlace::Value | LinePlace::Other | LinePlace::Comment) {
                let rest = &bytes[at..];
                let length = memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
                if self.place == LinePlace::Value && length > 0 {
                    each(MessagePiece::Data(&rest[..length]));
                }
                at += length;
                if length < rest.len() {
                    self.after_cr = rest[length] == b'\r';
                    self.place = LinePlace::Name(0);
                    at += 1;
                }
                continue;
            }
            at += self.step(byte, each);
        }
    }

    /// A byte before the value of a field. Returns how many bytes that took.
    fn step(&mut self, byte: u8, each: &mut impl FnMut(MessagePiece<'_>)) -> usize {
        match (self.place, byte) {
            (LinePlace::Bom(n), _) if BOM.get(usize::from(n)) == Some(&byte) => {
                self.place = if n == 2 { LinePlace::Name(0) } else { LinePlace::Bom(n + 1) };
                return 1;
            }
            (LinePlace::Bom(n), _) => {
                // A part of the mark alone is the name of some field.
                self.place = if n == 0 { LinePlace::Name(0) } else { LinePlace::Other };
                return 0;
            }
            (LinePlace::Name(n), b'\r' | b'\n') => {
                self.after_cr = byte == b'\r';
                self.place = LinePlace::Name(0);
                if n == 0 && std::mem::take(&mut self.has_data) {
                    each(MessagePiece::End);
                } else if usize::from(n) == DATA.len() {
                    self.begin_data(each);
                }
            }
            (LinePlace::Name(0), b':') => self.place = LinePlace::Comment,
            (LinePlace::Name(n), b':') if usize::from(n) == DATA.len() => {
                self.begin_data(each);
                self.place = LinePlace::Colon;
            }
            (LinePlace::Name(n), _) if DATA.get(usize::from(n)) == Some(&byte) => {
                self.place = LinePlace::Name(n + 1);
            }
            (LinePlace::Name(_), _) => self.place = LinePlace::Other,
            _ => {
                self.place = LinePlace::Value;
                return usize::from(byte == b' ');
            }
        }
        1
    }

    /// A line of data begins: a further one is set off by a newline.
    fn begin_data(&mut self, each: &mut impl FnMut(MessagePiece<'_>)) {
        if std::mem::replace(&mut self.has_data, true) {
            each(MessagePiece::Data(b"\n"));
        }
    }

    fn feed_lines(&mut self, bytes: &[u8], each: &mut impl FnMut(MessagePiece<'_>)) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let end = memchr(b'\n', rest);
            let mut line = &rest[..end.unwrap_or(rest.len())];
            // CR belongs to the end of the line only where LF follows.
            if !line.is_empty() && std::mem::take(&mut self.after_cr) {
                self.put(b"\r", each);
            }
            if let Some(before) = line.strip_suffix(b"\r") {
                self.after_cr = true;
                line = before;
            }
            if !line.is_empty() {
                self.put(line, each);
            }
            let Some(end) = end else {
                return;
            };
            self.after_cr = false;
            if std::mem::take(&mut self.has_data) {
                each(MessagePiece::End);
            }
            rest = &rest[end + 1..];
        }
    }

    fn put(&mut self, text: &[u8], each: &mut impl FnMut(MessagePiece<'_>)) {
        if !self.has_data && self.format == MessageFormat::Ndjson {
            let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
            let Some(first) = first else {
                return;
            };
            let is_json = matches!(first, b'{' | b'[' | b'"' | b'-' | b't' | b'f' | b'n');
            self.is_other |= !is_json && !first.is_ascii_digit();
        }
        self.has_data = true;
        each(MessagePiece::Data(text));
    }
}
