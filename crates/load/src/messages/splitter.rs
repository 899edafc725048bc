//! A body to messages, wherever its bytes are cut. Nothing of it is kept.

use super::MessageFormat;
use memchr::{memchr, memchr2};

/// The byte order mark that a stream of server-sent events may begin with.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// A part of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessagePiece<'a> {
    /// Bytes of the message that is coming.
    Data(&'a [u8]),
    /// Bytes of the name of the event that is coming. Without any, the name begins anew.
    Name(&'a [u8]),
    /// Bytes of a field `error`, in which llama.cpp sent errors until September 2025. No standard
    /// knows it.
    Error(&'a [u8]),
    /// That message is complete.
    End,
}

/// A field of server-sent events that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventField {
    Data,
    Name,
    Error,
}

impl EventField {
    /// The fields with their names. A set of them has a bit for each.
    const NAMES: [(EventField, &'static [u8]); 3] =
        [(EventField::Data, b"data"), (EventField::Name, b"event"), (EventField::Error, b"error")];

    const ALL: u8 = 0b111;

    /// The fields of a set whose names have `byte` at position `at`.
    fn with_byte(set: u8, at: u8, byte: u8) -> u8 {
        let all = EventField::NAMES.iter().enumerate();
        all.filter(|(_, (_, name))| name.get(usize::from(at)) == Some(&byte))
            .fold(0, |found, (bit, _)| found | set & 1 << bit)
    }

    /// The one of a set whose name has this length.
    fn whole(set: u8, length: u8) -> Option<EventField> {
        let mut all = EventField::NAMES.iter().enumerate();
        all.find(|(bit, (_, name))| set & 1 << bit != 0 && name.len() == usize::from(length))
            .map(|(_, (field, _))| *field)
    }

    fn piece(self, bytes: &[u8]) -> MessagePiece<'_> {
        match self {
            EventField::Data => MessagePiece::Data(bytes),
            EventField::Name => MessagePiece::Name(bytes),
            EventField::Error => MessagePiece::Error(bytes),
        }
    }
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
    /// An array has what none has between its elements.
    is_other: bool,
    array: ArrayPlace,
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

/// Where in a JSON array the bytes so far have led.
#[derive(Clone, Copy, Debug, Default)]
struct ArrayPlace {
    /// Arrays and objects that are open.
    depth: u32,
    /// Of which the first is the array of messages; 0 where the body is one object.
    base: u32,
    in_text: bool,
    is_escaped: bool,
    between: Between,
}

/// Where between the elements of an array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Between {
    #[default]
    Start,
    /// Behind `[`.
    First,
    /// Behind an element.
    After,
    /// Behind a comma.
    Next,
    /// Behind `]`.
    Over,
}

/// Where in a line the bytes so far have led.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinePlace {
    /// In the byte order mark, or before it.
    Bom(u8),
    /// In the name of a field: its bytes so far, and the fields that agree with them.
    Name(u8, u8),
    /// After the colon of a field, before a blank that is no part of its value.
    Colon(EventField),
    /// In the value of a field, or in a line of text.
    Value(EventField),
    /// In a field that is not read.
    Other,
    /// In a comment.
    Comment,
}

/// The begin of a line of an event.
const LINE_START: LinePlace = LinePlace::Name(0, EventField::ALL);

impl Splitter {
    /// A splitter at the begin of a body.
    pub fn new(format: MessageFormat) -> Splitter {
        let place = match format {
            MessageFormat::Sse => LinePlace::Bom(0),
            _ => LinePlace::Value(EventField::Data),
        };
        Splitter {
            format,
            place,
            after_cr: false,
            has_data: false,
            is_other: false,
            array: ArrayPlace::default(),
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
            MessageFormat::Array if self.is_other => {}
            MessageFormat::Array => self.feed_array(bytes, &mut each),
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

    /// The body has ended. `is_json`: the bytes of the message that is coming are whole JSON.
    pub fn end(&mut self, is_json: bool, mut each: impl FnMut(MessagePiece<'_>)) {
        let ends_message = match self.format {
            MessageFormat::Lines | MessageFormat::Chunks => true,
            MessageFormat::Ndjson => is_json,
            _ => false,
        };
        if ends_message && std::mem::take(&mut self.has_data) {
            each(MessagePiece::End);
        }
    }

    /// Whether a message has begun that is not complete.
    #[inline]
    pub fn is_within(&self) -> bool {
        let is_between =
            matches!(self.place, LinePlace::Bom(0) | LinePlace::Name(0, _) | LinePlace::Comment);
        let is_within_event = self.format == MessageFormat::Sse && !is_between;
        self.has_data || self.array.depth > 0 || self.grpc.is_within() || is_within_event
    }

    /// Whether the body is no array of messages.
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
            if matches!(self.place, LinePlace::Value(_) | LinePlace::Other | LinePlace::Comment) {
                let rest = &bytes[at..];
                let length = memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
                if let LinePlace::Value(field) = self.place
                    && length > 0
                {
                    each(field.piece(&rest[..length]));
                }
                at += length;
                if length < rest.len() {
                    self.after_cr = rest[length] == b'\r';
                    self.place = LINE_START;
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
                self.place = if n == 2 { LINE_START } else { LinePlace::Bom(n + 1) };
                return 1;
            }
            (LinePlace::Bom(n), _) => {
                // A part of the mark alone is the name of some field.
                self.place = if n == 0 { LINE_START } else { LinePlace::Other };
                return 0;
            }
            (LinePlace::Name(n, fields), b'\r' | b'\n') => {
                self.after_cr = byte == b'\r';
                self.place = LINE_START;
                if n > 0 {
                    self.begin_field(EventField::whole(fields, n), each);
                } else if std::mem::take(&mut self.has_data) {
                    each(MessagePiece::End);
                } else {
                    // An event without data is none, whatever its name.
                    each(MessagePiece::Name(b""));
                }
            }
            (LinePlace::Name(0, _), b':') => self.place = LinePlace::Comment,
            (LinePlace::Name(n, fields), b':') => {
                let field = EventField::whole(fields, n);
                self.begin_field(field, each);
                self.place = field.map_or(LinePlace::Other, LinePlace::Colon);
            }
            (LinePlace::Name(n, fields), _) => {
                self.place = match EventField::with_byte(fields, n, byte) {
                    0 => LinePlace::Other,
                    fields => LinePlace::Name(n + 1, fields),
                };
            }
            (LinePlace::Colon(field), _) => {
                self.place = LinePlace::Value(field);
                return usize::from(byte == b' ');
            }
            (LinePlace::Value(_) | LinePlace::Other | LinePlace::Comment, _) => {}
        }
        1
    }

    /// A line of a field begins. Further data is set off by a newline, a further name replaces the
    /// one before.
    fn begin_field(&mut self, field: Option<EventField>, each: &mut impl FnMut(MessagePiece<'_>)) {
        match field {
            Some(EventField::Data) => {
                if std::mem::replace(&mut self.has_data, true) {
                    each(MessagePiece::Data(b"\n"));
                }
            }
            Some(EventField::Name) => each(MessagePiece::Name(b"")),
            Some(EventField::Error) | None => {}
        }
    }

    fn feed_array(&mut self, bytes: &[u8], each: &mut impl FnMut(MessagePiece<'_>)) {
        let mut from = 0;
        for (at, &byte) in bytes.iter().enumerate() {
            let place = &mut self.array;
            if !self.has_data {
                place.between = match (place.between, byte) {
                    (between, b' ' | b'\t' | b'\r' | b'\n') => between,
                    (Between::Start, b'[') => {
                        (place.depth, place.base) = (1, 1);
                        Between::First
                    }
                    (Between::First | Between::After, b']') if place.base > 0 => {
                        place.depth = 0;
                        Between::Over
                    }
                    (Between::After, b',') if place.base > 0 => Between::Next,
                    (Between::Start, b'{')
                    | (Between::First | Between::Next, b'"' | b'-' | b'0'..=b'9' | b'[' | b'{')
                    | (Between::First | Between::Next, b'a'..=b'z') => {
                        (self.has_data, from) = (true, at);
                        Between::After
                    }
                    _ => {
                        self.is_other = true;
                        return;
                    }
                };
                if !self.has_data {
                    continue;
                }
            }
            let mut end = None;
            if place.in_text {
                place.in_text = byte != b'"' || place.is_escaped;
                place.is_escaped = byte == b'\\' && !place.is_escaped;
            } else {
                match byte {
                    b'"' => place.in_text = true,
                    b'{' | b'[' => place.depth += 1,
                    b'}' | b']' if place.depth > place.base => {
                        place.depth -= 1;
                        end = (place.depth == place.base).then_some(at + 1);
                    }
                    // A number or word ends where something else begins.
                    b']' => (end, place.depth, place.between) = (Some(at), 0, Between::Over),
                    b',' if place.depth == place.base => {
                        (end, place.between) = (Some(at), Between::Next);
                    }
                    _ => {}
                }
            }
            if let Some(end) = end {
                each(MessagePiece::Data(&bytes[from..end]));
                each(MessagePiece::End);
                self.has_data = false;
            }
        }
        if self.has_data {
            each(MessagePiece::Data(&bytes[from..]));
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

    fn put(&mut self, mut text: &[u8], each: &mut impl FnMut(MessagePiece<'_>)) {
        if !self.has_data && self.format == MessageFormat::Ndjson {
            // Blanks before a value belong to no message (RFC 8259 §2).
            while let [b' ' | b'\t' | b'\r', rest @ ..] = text {
                text = rest;
            }
            if text.is_empty() {
                return;
            }
        }
        self.has_data = true;
        each(MessagePiece::Data(text));
    }
}
