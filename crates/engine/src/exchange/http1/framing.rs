//! The head of a response and the framing that follows from it. The chunked transfer coding (RFC
//! 9112 §7.1): where it ends, the data left aside.

use super::Http1Violation;
use crate::exchange::content_coding::ContentCoding;
use crate::exchange::{ResponseSink, decimal, list};
use httparse::Header;
use knee_load::messages::is_event_stream;
use std::mem::MaybeUninit;

/// The most header lines a response may have.
pub const HEADERS_MAX: usize = 128;

/// The longest head of a response, in bytes, with the empty line at its end.
pub const HEAD_BYTES_MAX: usize = 64 << 10;

/// What a head says that matters for reading on. It does not depend on the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) framing: Framing,
    /// Whether the connection persists once the body has ended (RFC 9112 §9.3). A body that only
    /// the end of the stream delimits ends it all the same.
    pub(super) keep_alive: bool,
    /// The content coding of server-sent events that can be read; `None` where the body is no such.
    pub(super) events: Option<ContentCoding>,
}

/// Where the body ends (RFC 9112 §6.3), the response to HEAD left aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Length(u64),
    Chunked,
    UntilClose,
}

impl Head {
    /// Whether another head follows (1xx but 101, after which the protocol is another).
    pub(super) fn is_interim(self) -> bool {
        self.status < 200 && self.status != 101
    }
}

/// The last head seen on any connection and what it said. A server under load sends the same head
/// over and over (its `Date` changes once a second), so most heads need comparing only. Equal bytes
/// parse equally, so an answer from here is the one that parsing would give.
#[derive(Debug, Default)]
pub struct HeadCache {
    bytes: Vec<u8>,
    head: Option<Head>,
}

impl HeadCache {
    /// The head that `bytes` begins with, and its length, if it is the one remembered.
    pub(super) fn lookup(&self, bytes: &[u8]) -> Option<(Head, usize)> {
        let head = self.head?;
        bytes.starts_with(&self.bytes).then_some((head, self.bytes.len()))
    }

    /// Parses a complete head and remembers it, unless it is interim: those alternate with others.
    pub(super) fn parse(&mut self, bytes: &[u8]) -> Result<Head, Http1Violation> {
        let head = parse(bytes)?;
        if !head.is_interim() {
            self.bytes.clear();
            self.bytes.extend_from_slice(bytes);
            self.head = Some(head);
        }
        Ok(head)
    }
}

/// What a head begins with.
const START: &[u8] = b"HTTP/1.";

/// How many bytes of empty lines there are before a status line. Some servers send one after each
/// body. CR at the very end may be the half of one and is not counted.
pub(super) fn empty_lines(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        match &bytes[at..] {
            [b'\r', b'\n', ..] => at += 2,
            [b'\n', ..] => at += 1,
            _ => return at,
        }
    }
}

/// The length of the head that `bytes` begins with, if its end has come. `searched` bytes are known
/// not to hold it, so a head that arrives byte by byte is still searched only once.
///
/// A line may end in LF alone, as RFC 9112 §2.2 permits a recipient to accept.
pub(super) fn end_of_head(bytes: &[u8], searched: usize) -> Result<Option<usize>, Http1Violation> {
    let known = bytes.len().min(START.len());
    if bytes[..known] != START[..known] {
        return Err(Http1Violation::NotHttp);
    }
    let within = &bytes[..bytes.len().min(HEAD_BYTES_MAX)];
    for at in searched..within.len() {
        let line = &within[..at];
        if within[at] == b'\n' && (line.ends_with(b"\n") || line.ends_with(b"\n\r")) {
            return Ok(Some(at + 1));
        }
    }
    match within.len() {
        HEAD_BYTES_MAX => Err(Http1Violation::HeadTooLarge),
        _ => Ok(None),
    }
}

/// Parses a complete head. A folded line counts as one, its fold as a blank (RFC 9112 §5.2).
fn parse(bytes: &[u8]) -> Result<Head, Http1Violation> {
    let mut lines = [const { MaybeUninit::<Header>::uninit() }; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut []);
    let as_1_1 = later_version(bytes);
    let bytes = as_1_1.as_deref().unwrap_or(bytes);
    httparse::ParserConfig::default()
        .allow_obsolete_multiline_headers_in_responses(true)
        .parse_response_with_uninit_headers(&mut response, bytes, &mut lines)
        .map_err(violation)?;
    let (Some(status), Some(minor)) = (response.code, response.version) else {
        return Err(Http1Violation::NotHttp);
    };
    if status < 100 {
        return Err(Http1Violation::Status);
    }
    let framing = Framing::Length(0);
    let mut head = Head { status, framing, keep_alive: false, events: None };
    if !head.is_interim() {
        head.read_headers(response.headers, minor)?;
    }
    Ok(head)
}

/// A head of HTTP/1.2 or later as one of HTTP/1.1. Who knows no later version reads it so (RFC 9110
/// §2.5).
fn later_version(bytes: &[u8]) -> Option<Vec<u8>> {
    let minor = *bytes.get(START.len())?;
    matches!(minor, b'2'..=b'9').then(|| {
        let mut bytes = bytes.to_vec();
        bytes[START.len()] = b'1';
        bytes
    })
}

fn violation(error: httparse::Error) -> Http1Violation {
    match error {
        httparse::Error::TooManyHeaders => Http1Violation::TooManyHeaders,
        httparse::Error::Status => Http1Violation::Status,
        httparse::Error::Version => Http1Violation::NotHttp,
        httparse::Error::HeaderValue => Http1Violation::HeaderValue,
        _ => Http1Violation::Header,
    }
}

impl Head {
    /// Framing and persistence, from all header lines together; `minor` is the 0 or 1 of HTTP/1.x.
    fn read_headers(&mut self, headers: &[Header], minor: u8) -> Result<(), Http1Violation> {
        let mut length = None;
        let mut encoding = Encoding::default();
        let mut connection = Connection::default();
        let (mut is_events, mut coding) = (false, ContentCoding::Identity);
        for header in headers {
            if header.name.eq_ignore_ascii_case("content-length") {
                length = Some(content_length(header.value, length)?);
            } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                encoding.read(header.value)?;
            } else if header.name.eq_ignore_ascii_case("connection") {
                connection.read(header.value);
            } else if header.name.eq_ignore_ascii_case("content-type") {
                is_events = is_event_stream(header.value);
            } else if header.name.eq_ignore_ascii_case("content-encoding") {
                coding = coding.and(header.value);
            }
        }
        is_events &= coding != ContentCoding::Other && self.status < 300;
        self.events = is_events.then_some(coding);
        self.framing = match (encoding.present, length) {
            _ if matches!(self.status, 101 | 204 | 304) => Framing::Length(0),
            (true, _) if encoding.chunked_last => Framing::Chunked,
            (true, _) => Framing::UntilClose,
            (false, Some(length)) => Framing::Length(length),
            (false, None) => Framing::UntilClose,
        };
        // Both, or an encoding in HTTP/1.0, hint at framing gone wrong (RFC 9112 §6.1, §6.3).
        let suspect = encoding.present && (length.is_some() || minor == 0);
        let persists = !connection.close && (minor == 1 || connection.keep_alive);
        self.keep_alive = persists && !suspect && self.status != 101;
        Ok(())
    }
}

/// The length after one more Content-Length line, which may be a list; all numbers must be equal
/// (RFC 9112 §6.3).
fn content_length(value: &[u8], before: Option<u64>) -> Result<u64, Http1Violation> {
    let mut length = before;
    for element in list(value) {
        let number = decimal(element).ok_or(Http1Violation::ContentLength)?;
        if length.is_some_and(|other| other != number) {
            return Err(Http1Violation::ContentLength);
        }
        length = Some(number);
    }
    length.ok_or(Http1Violation::ContentLength)
}

/// What the Transfer-Encoding lines say together.
#[derive(Default)]
struct Encoding {
    present: bool,
    chunked_last: bool,
    chunked_seen: bool,
}

impl Encoding {
    fn read(&mut self, value: &[u8]) -> Result<(), Http1Violation> {
        self.present = true;
        // Empty elements are none (RFC 9110 §5.6.1.2).
        for element in list(value).filter(|element| !element.is_empty()) {
            let name = element.split(|&b| b == b';').next().unwrap_or(element);
            self.chunked_last = name.trim_ascii().eq_ignore_ascii_case(b"chunked");
            if self.chunked_last && self.chunked_seen {
                return Err(Http1Violation::TransferEncoding);
            }
            self.chunked_seen |= self.chunked_last;
        }
        Ok(())
    }
}

/// What the Connection lines say together.
#[derive(Default)]
pub(super) struct Connection {
    pub(super) close: bool,
    keep_alive: bool,
}

impl Connection {
    pub(super) fn read(&mut self, value: &[u8]) {
        for option in list(value) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }
}

/// Bytes of the line with a chunk's size, its extensions included, at most: the limit of Go's
/// reader.
const SIZE_LINE_BYTES_MAX: u32 = 4096;

/// Bytes of all trailer lines together, at most: as many as a head may have.
const TRAILER_BYTES_MAX: u32 = super::HEAD_BYTES_MAX as u32;

/// A chunked body as it comes in. Nothing of it is kept.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chunked {
    place: Place,
    /// Bytes of framing since the last data: of the line with a size, or of the trailer.
    framing_bytes: u32,
}

/// Where in a chunked body the stream is.
///
/// Lines of the framing must end in CRLF; trailer lines, as header lines, may end in LF alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Before the first digit of a chunk's size.
    #[default]
    SizeStart,
    /// In the digits.
    Size(u64),
    /// In the blanks after them, which some servers pad with.
    SizePadding(u64),
    /// In a chunk extension, which is ignored.
    Extension(u64),
    /// Before the LF that ends the line with the size.
    SizeLf(u64),
    /// In the data; bytes of it that are left.
    Data(u64),
    /// Before the CRLF after the data.
    DataCr,
    /// Before its LF.
    DataLf,
    /// At the beginning of the line after the last chunk.
    TrailerStart,
    /// At the beginning of a line after a trailer, which may be folded into it.
    TrailerNext,
    /// In the name of a trailer.
    TrailerName,
    /// In its value.
    TrailerValue,
    /// Before the LF after it.
    TrailerLf,
    /// Before the LF that ends the body.
    EndLf,
}

impl Chunked {
    /// How many of `bytes` belong to the body if it ends in them. `sink` is given the data.
    pub(super) fn feed<S: ResponseSink>(
        &mut self,
        bytes: &[u8],
        sink: &mut S,
    ) -> Result<Option<usize>, Http1Violation> {
        let mut at = 0;
        while at < bytes.len() {
            if let Place::Data(left) = self.place {
                let here = left.min((bytes.len() - at) as u64);
                sink.body(&bytes[at..at + here as usize]);
                at += here as usize;
                self.framing_bytes = 0;
                self.place = match left - here {
                    0 => {
                        sink.border();
                        Place::DataCr
                    }
                    left => Place::Data(left),
                };
                continue;
            }
            let byte = bytes[at];
            at += 1;
            match self.place.step(byte)? {
                Some(next) => self.place = next,
                None => return Ok(Some(at)),
            }
            self.framing_bytes += 1;
            if self.framing_bytes > SIZE_LINE_BYTES_MAX {
                self.check_framing()?;
            }
        }
        Ok(None)
    }

    /// Whether the framing has become too long, which never happens to a server that means well.
    #[cold]
    fn check_framing(&self) -> Result<(), Http1Violation> {
        if !self.place.is_in_trailer() {
            Err(Http1Violation::ChunkLineTooLarge)
        } else if self.framing_bytes > TRAILER_BYTES_MAX {
            Err(Http1Violation::TrailerTooLarge)
        } else {
            Ok(())
        }
    }
}

impl Place {
    /// Whether the last chunk has come.
    fn is_in_trailer(self) -> bool {
        matches!(
            self,
            Place::TrailerStart
                | Place::TrailerNext
                | Place::TrailerName
                | Place::TrailerValue
                | Place::TrailerLf
                | Place::EndLf
        )
    }

    /// What one byte of framing leads to; `None` at the end of the body.
    fn step(self, byte: u8) -> Result<Option<Place>, Http1Violation> {
        let next = match (self, byte) {
            (Place::SizeStart, _) => Place::Size(digit(0, byte)?),
            (Place::Size(n), b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                Place::Size(digit(n, byte)?)
            }
            (Place::Size(n) | Place::SizePadding(n), b' ' | b'\t') => Place::SizePadding(n),
            (Place::Size(n) | Place::SizePadding(n), b';') => Place::Extension(n),
            (Place::Size(n) | Place::SizePadding(n) | Place::Extension(n), b'\r') => {
                Place::SizeLf(n)
            }
            (Place::Size(_) | Place::SizePadding(_), b'\n') => {
                return Err(Http1Violation::ChunkEnd);
            }
            (Place::Size(_) | Place::SizePadding(_), _) => return Err(Http1Violation::ChunkSize),
            (Place::Extension(n), _) if is_text(byte) => Place::Extension(n),
            (Place::SizeLf(0), b'\n') => Place::TrailerStart,
            (Place::SizeLf(n), b'\n') => Place::Data(n),
            (Place::DataCr, b'\r') => Place::DataLf,
            (Place::DataLf, b'\n') => Place::SizeStart,
            (Place::TrailerStart | Place::TrailerNext, b'\r') => Place::EndLf,
            (Place::TrailerStart | Place::TrailerNext | Place::EndLf, b'\n') => {
                return Ok(None);
            }
            (Place::TrailerNext, b' ' | b'\t') => Place::TrailerValue,
            (Place::TrailerStart | Place::TrailerNext, _) if is_token(byte) => Place::TrailerName,
            (Place::TrailerName, b':') => Place::TrailerValue,
            (Place::TrailerName, _) if is_token(byte) => Place::TrailerName,
            (Place::TrailerValue, b'\r') => Place::TrailerLf,
            (Place::TrailerValue | Place::TrailerLf, b'\n') => Place::TrailerNext,
            (Place::TrailerValue, _) if is_text(byte) => Place::TrailerValue,
            (place, _) if place.is_in_trailer() => return Err(Http1Violation::Trailer),
            _ => return Err(Http1Violation::ChunkEnd),
        };
        Ok(Some(next))
    }
}

/// `size` with one more hexadecimal digit; 64 bits must hold it.
fn digit(size: u64, byte: u8) -> Result<u64, Http1Violation> {
    let digit = (byte as char).to_digit(16).ok_or(Http1Violation::ChunkSize)?;
    if size >> 60 != 0 {
        return Err(Http1Violation::ChunkSize);
    }
    Ok(size << 4 | u64::from(digit))
}

/// A byte of a field value: visible, blank, tab or above ASCII (RFC 9110 §5.5).
fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

/// A byte of a token (RFC 9110 §5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
