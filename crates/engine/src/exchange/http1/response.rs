//! One response on a connection: bytes in, its end out.

use super::framing::{Chunked, Framing, Head, HeadCache, empty_lines, end_of_head};
use crate::exchange::content_coding::ContentCoding;
use crate::exchange::{INTERIMS_MAX, ResponseSink};
use std::fmt;

/// Bytes of empty lines before a response, or on a connection that nobody uses, at most. Servers
/// that send any send one.
const EMPTY_BYTES_MAX: u16 = 256;

/// The capacity that a connection keeps for heads that arrive in pieces; more is given back.
const PENDING_KEPT_BYTES: usize = 1024;

/// Reads one HTTP/1.1 response at a time off a connection. The caller passes each request
/// ([`begin`](Self::begin)), all bytes that arrive ([`feed`](Self::feed)) and the end of the stream
/// ([`at_eof`](Self::at_eof)). Both latter calls return whether the response is complete.
///
/// The body is counted through, not kept. Nothing is allocated unless a head arrives in pieces.
/// However the bytes are cut, the answer is the same.
#[derive(Debug, Default)]
pub struct ResponseParser {
    state: State,
    /// The head so far, where it did not arrive whole.
    pending: Vec<u8>,
    status: u16,
    keep_alive: bool,
    head_only: bool,
    begun: bool,
    /// Interim responses so far.
    interims: u8,
    /// Bytes of empty lines before the response so far.
    empty_bytes: u16,
}

// Ten thousand connections have one each.
const _: () = assert!(size_of::<ResponseParser>() <= 64);

/// Bytes of empty lines, once `more` have come; `None` where that is too many.
pub(super) fn count_empty(before: u16, more: usize) -> Option<u16> {
    let all = u16::try_from(more).ok()?.checked_add(before)?;
    (all <= EMPTY_BYTES_MAX).then_some(all)
}

/// What became of the bytes fed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The response goes on.
    NeedMore,
    /// It is complete.
    Done {
        /// Its status, 100 to 999 (RFC 9110 §15 asks clients to read 600 and more as 5xx).
        status: u16,
        /// Whether the connection may carry another request.
        keep_alive: bool,
        /// Bytes after its end, which nobody asked for. They say nothing about the response, which
        /// is whole; but the connection must not be used again, unless they are empty lines.
        surplus: usize,
    },
    /// Its head says that its body is server-sent events, and nothing takes that. The body begins
    /// after `used` bytes: the caller goes on with [`ResponseParser::feed_body`].
    Events {
        /// Bytes up to the body.
        used: usize,
        /// The content coding of the body, which can be read.
        coding: ContentCoding,
    },
    /// It is not an HTTP/1.1 response; the connection must not be used again.
    Malformed(Http1Violation),
}

/// What the end of the stream meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eof {
    /// It ended a body that only the end of the stream delimits: the response is complete.
    Done {
        /// Its status.
        status: u16,
    },
    /// It came in the middle of a response.
    Truncated,
    /// It came before any byte of a response.
    Closed,
}

/// What makes a response malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http1Violation {
    /// Bytes came although nothing was asked.
    Unasked,
    /// It does not begin with `HTTP/1.`.
    NotHttp,
    /// The status is not three digits from 100 on.
    Status,
    /// A header line is not `name: value`.
    Header,
    /// The value of a header has a control character.
    HeaderValue,
    /// More than [`HEADERS_MAX`](super::HEADERS_MAX) header lines.
    TooManyHeaders,
    /// A head over [`HEAD_BYTES_MAX`](super::HEAD_BYTES_MAX).
    HeadTooLarge,
    /// A Content-Length that is no number, too large, or two that differ.
    ContentLength,
    /// `chunked` more than once, or not the name of a coding.
    TransferEncoding,
    /// A chunk size that is no hexadecimal number or too large.
    ChunkSize,
    /// A chunk that does not end where its size says, or a line that does not end in CRLF.
    ChunkEnd,
    /// A trailer line that is not `name: value`.
    Trailer,
    /// A line with a chunk's size over 4 KiB.
    ChunkLineTooLarge,
    /// A trailer over 64 KiB.
    TrailerTooLarge,
    /// More interim responses than any server sends.
    InterimFlood,
    /// More empty lines before a response than any server sends.
    EmptyLines,
    /// 101 although the request did not ask for another protocol.
    Switching,
}

impl fmt::Display for Http1Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Http1Violation::Unasked => "bytes came although nothing was asked",
            Http1Violation::NotHttp => "the answer does not begin with HTTP/1.",
            Http1Violation::Status => "the status is not a number from 100 to 999",
            Http1Violation::Header => "a header line is not 'name: value'",
            Http1Violation::HeaderValue => "a header has a control character (RFC 9110 §5.5)",
            Http1Violation::TooManyHeaders => "more than 128 header lines",
            Http1Violation::HeadTooLarge => "a response head over 64 KiB",
            Http1Violation::ContentLength => {
                "Content-Length is no number, or there are two different"
            }
            Http1Violation::TransferEncoding => "Transfer-Encoding names chunked more than once",
            Http1Violation::ChunkSize => "a chunk size is no hexadecimal number or too large",
            Http1Violation::ChunkEnd => "a chunk does not end where its size says",
            Http1Violation::Trailer => "a trailer line is not 'name: value'",
            Http1Violation::ChunkLineTooLarge => "a line with a chunk size is over 4 KiB",
            Http1Violation::TrailerTooLarge => "a trailer is over 64 KiB",
            Http1Violation::InterimFlood => "more than 100 interim responses to one request",
            Http1Violation::EmptyLines => "more than 256 bytes of empty lines before a response",
            Http1Violation::Switching => {
                "101 Switching Protocols although the request has no Upgrade (RFC 9110 §7.8)"
            }
        })
    }
}

/// Hands the fields of a head that was parsed to `sink`. A line that is folded counts without its
/// fold.
#[inline]
fn pass_fields<S: ResponseSink>(head: Head, bytes: &[u8], sink: &mut S) {
    if !S::READS || head.is_interim() {
        return;
    }
    for line in bytes.split(|byte| *byte == b'\n').skip(1) {
        let is_folded = matches!(line.first(), Some(b' ' | b'\t'));
        if let (false, Some(at)) = (is_folded, line.iter().position(|byte| *byte == b':')) {
            sink.field(&line[..at], line[at + 1..].trim_ascii());
        }
    }
}

#[derive(Debug, Default)]
enum State {
    /// No response is expected.
    #[default]
    Idle,
    Head,
    Length {
        left: u64,
    },
    Chunked(Chunked),
    UntilClose,
    Broken(Http1Violation),
}

impl ResponseParser {
    /// A request was sent; its response comes next. `method_is_head` since a response to HEAD has
    /// no body whatever its head says. A response still unfinished is forgotten.
    pub fn begin(&mut self, method_is_head: bool) {
        self.state = State::Head;
        self.pending.clear();
        self.head_only = method_is_head;
        self.begun = false;
        (self.interims, self.empty_bytes) = (0, 0);
    }

    /// The next bytes of the stream, all that have arrived.
    pub fn feed(&mut self, bytes: &[u8], cache: &mut HeadCache) -> Progress {
        self.feed_into(bytes, cache, &mut ())
    }

    /// The same, and hands what the final response says to `sink`.
    pub fn feed_into<S: ResponseSink>(
        &mut self,
        bytes: &[u8],
        cache: &mut HeadCache,
        sink: &mut S,
    ) -> Progress {
        if bytes.is_empty() {
            return Progress::NeedMore;
        }
        let mut at = 0;
        while matches!(self.state, State::Head) {
            match self.next_head(&bytes[at..], cache, sink) {
                Err(violation) => return self.refuse(violation),
                Ok(None) => return Progress::NeedMore,
                Ok(Some((head, used))) => {
                    at += used;
                    if let (Some(coding), false) = (head.events, S::READS) {
                        return Progress::Events { used: at, coding };
                    }
                }
            }
        }
        self.feed_body(&bytes[at..], sink)
    }

    /// Bytes of the body, and what comes after it.
    pub fn feed_body<S: ResponseSink>(&mut self, bytes: &[u8], sink: &mut S) -> Progress {
        match self.body(bytes, sink) {
            Ok(None) => Progress::NeedMore,
            Ok(Some(used)) => {
                self.state = State::Idle;
                Progress::Done {
                    status: self.status,
                    keep_alive: self.keep_alive,
                    surplus: bytes.len() - used,
                }
            }
            Err(violation) => self.refuse(violation),
        }
    }

    #[cold]
    fn refuse(&mut self, violation: Http1Violation) -> Progress {
        self.state = State::Broken(violation);
        Progress::Malformed(violation)
    }

    /// The peer closed its side of the stream in an orderly way. (A reset is not this.)
    pub fn at_eof(&mut self) -> Eof {
        let eof = match self.state {
            State::Idle => Eof::Closed,
            State::UntilClose => Eof::Done { status: self.status },
            _ if self.begun => Eof::Truncated,
            _ => Eof::Closed,
        };
        self.state = State::Idle;
        eof
    }

    /// Whether any byte of the response that [`begin`](Self::begin) announced has arrived, empty
    /// lines before it apart.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// The next head, entered, and how many of `bytes` it took.
    #[inline]
    fn next_head<S: ResponseSink>(
        &mut self,
        bytes: &[u8],
        cache: &mut HeadCache,
        sink: &mut S,
    ) -> Result<Option<(Head, usize)>, Http1Violation> {
        let Some((head, used)) = self.head(bytes, cache, sink)? else {
            return Ok(None);
        };
        // Interim responses only announce the final one (RFC 9110 §15.2).
        if !head.is_interim() {
            self.enter_body(head);
        } else if self.interims == INTERIMS_MAX {
            return Err(Http1Violation::InterimFlood);
        } else {
            self.interims += 1;
        }
        Ok(Some((head, used)))
    }

    /// The next head and how many of `bytes` it took.
    fn head<S: ResponseSink>(
        &mut self,
        bytes: &[u8],
        cache: &mut HeadCache,
        sink: &mut S,
    ) -> Result<Option<(Head, usize)>, Http1Violation> {
        let before_it = self.empty_lines(bytes)?;
        if self.pending.is_empty() {
            let bytes = &bytes[before_it..];
            if matches!(bytes, [] | [b'\r']) {
                self.pending.extend_from_slice(bytes);
                return Ok(None);
            }
            self.begun = true;
            if let Some((head, len)) = cache.lookup(bytes) {
                pass_fields(head, &bytes[..len], sink);
                return Ok(Some((head, before_it + len)));
            }
            if let Some(len) = end_of_head(bytes, 0)? {
                let head = cache.parse(&bytes[..len])?;
                pass_fields(head, &bytes[..len], sink);
                return Ok(Some((head, before_it + len)));
            }
            self.pending.extend_from_slice(bytes);
            return Ok(None);
        }
        self.begun = true;
        let before = self.pending.len();
        self.pending.extend_from_slice(bytes);
        let Some(len) = end_of_head(&self.pending, before)? else {
            return Ok(None);
        };
        let head = cache.parse(&self.pending[..len])?;
        pass_fields(head, &self.pending[..len], sink);
        self.pending.clear();
        self.pending.shrink_to(PENDING_KEPT_BYTES);
        Ok(Some((head, len - before)))
    }

    /// Takes empty lines before a status line away, also one that was cut in two; how many of
    /// `bytes` belong to them.
    fn empty_lines(&mut self, bytes: &[u8]) -> Result<usize, Http1Violation> {
        let (mut at, mut before) = (0, 0);
        if self.pending == *b"\r" && bytes.first() == Some(&b'\n') {
            self.pending.clear();
            (at, before) = (1, 1);
        }
        if !self.pending.is_empty() {
            return Ok(0);
        }
        at += empty_lines(&bytes[at..]);
        if at > 0 {
            let count = count_empty(self.empty_bytes, before + at);
            self.empty_bytes = count.ok_or(Http1Violation::EmptyLines)?;
        }
        Ok(at)
    }

    fn enter_body(&mut self, head: Head) {
        self.status = head.status;
        self.keep_alive = head.keep_alive;
        self.state = match head.framing {
            _ if self.head_only => State::Length { left: 0 },
            Framing::Length(left) => State::Length { left },
            Framing::Chunked => State::Chunked(Chunked::default()),
            Framing::UntilClose => State::UntilClose,
        };
    }

    fn body<S: ResponseSink>(
        &mut self,
        bytes: &[u8],
        sink: &mut S,
    ) -> Result<Option<usize>, Http1Violation> {
        match &mut self.state {
            State::Length { left } => match bytes.len() as u64 {
                here if here < *left => {
                    *left -= here;
                    sink.body(bytes);
                    Ok(None)
                }
                _ => {
                    let length = *left as usize;
                    sink.body(&bytes[..length]);
                    Ok(Some(length))
                }
            },
            State::Chunked(chunked) => chunked.feed(bytes, sink),
            State::UntilClose => {
                sink.body(bytes);
                Ok(None)
            }
            State::Head => Ok(None),
            State::Idle => Err(Http1Violation::Unasked),
            State::Broken(violation) => Err(*violation),
        }
    }
}

#[cfg(test)]
mod tests;
