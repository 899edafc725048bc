//! The head of a response: status line and header lines, and the framing that follows from them.

use super::Http1Violation;
use crate::exchange::decimal;
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
    /// Whether the body is server-sent events, and not compressed.
    pub(super) is_events: bool,
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
    let mut head = Head { status, framing, keep_alive: false, is_events: false };
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
        _ => Http1Violation::Header,
    }
}

impl Head {
    /// Framing and persistence, from all header lines together; `minor` is the 0 or 1 of HTTP/1.x.
    fn read_headers(&mut self, headers: &[Header], minor: u8) -> Result<(), Http1Violation> {
        let mut length = None;
        let mut encoding = Encoding::default();
        let mut connection = Connection::default();
        let mut is_encoded = false;
        for header in headers {
            if header.name.eq_ignore_ascii_case("content-length") {
                length = Some(content_length(header.value, length)?);
            } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                encoding.read(header.value)?;
            } else if header.name.eq_ignore_ascii_case("connection") {
                connection.read(header.value);
            } else if header.name.eq_ignore_ascii_case("content-type") {
                self.is_events = is_event_stream(header.value);
            } else if header.name.eq_ignore_ascii_case("content-encoding") {
                is_encoded = true;
            }
        }
        self.is_events &= !is_encoded && self.status < 300;
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
        for element in list(value) {
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
struct Connection {
    close: bool,
    keep_alive: bool,
}

impl Connection {
    fn read(&mut self, value: &[u8]) {
        for option in list(value) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }
}

/// The elements of a comma-separated list (RFC 9110 §5.6.1).
fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&b| b == b',').map(|e| e.trim_ascii())
}
