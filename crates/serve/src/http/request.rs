//! Requests out of bytes (RFC 9112), without any I/O.

use super::app_request::{AppRequest, HEADERS_MAX};
use httparse::{EMPTY_HEADER, Header, Status};
use knee_engine::exchange::decimal;

/// Longest head, chunk-size line and trailer, in bytes. The caller has to offer at least this many
/// at once.
pub const HEAD_MAX: usize = 16 * 1024;

/// Properties of a request that its response depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Whether it asked for the head of the response alone.
    pub head_only: bool,
    /// What happens to the connection after the response.
    pub persistence: Persistence,
}

/// What happens to a connection after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// It stays open, as HTTP/1.1 has it.
    KeepAlive,
    /// It stays open because an HTTP/1.0 client asked for it.
    KeepAlive10,
    /// It is closed.
    Close,
}

/// Why a request is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is no HTTP, or contradicts itself: 400.
    Malformed,
    /// Its head is too long: 431.
    HeadTooLarge,
    /// Its body is coded in a way that is not known here: 501.
    UnknownCoding,
    /// It is another version of HTTP: 505.
    Version,
}

/// Result of reading bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestRead {
    /// More bytes are needed: offer those that were not consumed again, with more behind them.
    NeedMore,
    /// The client waits for `100 Continue` before it sends the body.
    Continue,
    /// A whole request, its body consumed.
    Request(Request),
}

/// Reads the requests of one connection.
#[derive(Debug, Default)]
pub struct RequestReader {
    /// The head that was read, while its body is being read.
    body: Option<(Request, BodyPart)>,
    /// The request that is being read, for an application.
    app_request: Option<Box<AppRequest>>,
}

impl RequestReader {
    /// A reader of one connection. `keeps`: it keeps all of each request, for an application.
    pub(super) fn new(keeps: bool) -> RequestReader {
        RequestReader { body: None, app_request: keeps.then(Box::default) }
    }

    /// The request that was read last, if it is kept.
    pub(super) fn app_request(&self) -> Option<&AppRequest> {
        self.app_request.as_deref()
    }

    /// Reads `input` and returns how many of its bytes were consumed.
    pub fn feed(
        &mut self,
        input: &[u8],
        last: &mut LastHead,
    ) -> Result<(usize, RequestRead), Refusal> {
        let mut used = 0;
        if self.body.is_none() {
            let Some((length, head)) = last.parse(input)? else {
                return Ok((0, RequestRead::NeedMore));
            };
            used = length;
            if let Some(app_request) = &mut self.app_request {
                **app_request = AppRequest::of_head(&input[..length]);
            }
            if head.body == BodyPart::Done {
                return Ok((used, RequestRead::Request(head.request)));
            }
            self.body = Some((head.request, head.body));
            if head.expects_continue && used == input.len() {
                return Ok((used, RequestRead::Continue));
            }
        }
        let Some((request, body)) = &mut self.body else {
            return Ok((used, RequestRead::NeedMore));
        };
        let request = *request;
        used += body.skip(&input[used..], self.app_request.as_deref_mut())?;
        if *body != BodyPart::Done {
            return Ok((used, RequestRead::NeedMore));
        }
        self.body = None;
        Ok((used, RequestRead::Request(request)))
    }

    /// Whether it is in the middle of a body.
    pub fn in_body(&self) -> bool {
        self.body.is_some()
    }
}

/// The last head read on any connection. Load generators send the same head again and again, so
/// that mostly one comparison replaces the parse.
#[derive(Debug, Default)]
pub struct LastHead {
    bytes: Vec<u8>,
    head: Option<RequestHead>,
}

#[derive(Clone, Copy, Debug)]
struct RequestHead {
    request: Request,
    expects_continue: bool,
    body: BodyPart,
}

impl LastHead {
    /// The head that `input` begins with and its length; `None` if it is not whole yet.
    #[inline]
    fn parse(&mut self, input: &[u8]) -> Result<Option<(usize, RequestHead)>, Refusal> {
        // A head ends with its empty line, so none is the beginning of another.
        match self.head {
            Some(head) if input.starts_with(&self.bytes) => Ok(Some((self.bytes.len(), head))),
            _ => self.parse_anew(input),
        }
    }

    fn parse_anew(&mut self, input: &[u8]) -> Result<Option<(usize, RequestHead)>, Refusal> {
        if input.is_empty() {
            return Ok(None);
        }
        let mut headers = [EMPTY_HEADER; HEADERS_MAX];
        let mut parsed = httparse::Request::new(&mut headers);
        let length = match parsed.parse(input) {
            Ok(Status::Complete(length)) if length <= HEAD_MAX => length,
            Ok(Status::Partial) if input.len() < HEAD_MAX => return Ok(None),
            Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(Refusal::HeadTooLarge),
            Err(httparse::Error::Version) => return Err(Refusal::Version),
            Err(_) => return Err(Refusal::Malformed),
        };
        let head_only = parsed.method == Some("HEAD");
        let head = RequestHead::understand(head_only, parsed.version == Some(0), parsed.headers)?;
        self.bytes.clear();
        self.bytes.extend_from_slice(&input[..length]);
        self.head = Some(head);
        Ok(Some((length, head)))
    }
}

impl RequestHead {
    fn understand(
        head_only: bool,
        is_10: bool,
        headers: &[Header<'_>],
    ) -> Result<RequestHead, Refusal> {
        let (mut close, mut keep_alive, mut expects_continue) = (false, false, false);
        let (mut hosts, mut length, mut chunked) = (0, None, false);
        for Header { name, value } in headers {
            let value = value.trim_ascii();
            if name.eq_ignore_ascii_case("connection") {
                for token in value.split(|&b| b == b',').map(<[u8]>::trim_ascii) {
                    close |= token.eq_ignore_ascii_case(b"close");
                    keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
                }
            } else if name.eq_ignore_ascii_case("host") {
                hosts += 1;
            } else if name.eq_ignore_ascii_case("content-length") {
                let this = decimal(value).ok_or(Refusal::Malformed)?;
                if length.is_some_and(|other| other != this) {
                    return Err(Refusal::Malformed);
                }
                length = Some(this);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                if chunked || !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(Refusal::UnknownCoding);
                }
                chunked = true;
            } else if name.eq_ignore_ascii_case("expect") {
                expects_continue = value.eq_ignore_ascii_case(b"100-continue");
            }
        }
        // RFC 9112: exactly one Host in HTTP/1.1 (3.2); two framings of one body are an attack
        // (6.3), and HTTP/1.0 knows no chunks (6.1).
        if hosts > 1 || (hosts == 0 && !is_10) || (chunked && (length.is_some() || is_10)) {
            return Err(Refusal::Malformed);
        }
        let persistence = match (close, is_10, keep_alive) {
            (true, _, _) | (false, true, false) => Persistence::Close,
            (false, true, true) => Persistence::KeepAlive10,
            (false, false, _) => Persistence::KeepAlive,
        };
        let body = match length {
            _ if chunked => BodyPart::ChunkSize,
            None | Some(0) => BodyPart::Done,
            Some(remaining) => BodyPart::Length { remaining },
        };
        Ok(RequestHead {
            request: Request { head_only, persistence },
            expects_continue: expects_continue && !is_10,
            body,
        })
    }
}

/// Rest of a body, which is dropped unless an application wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyPart {
    /// Bytes of a body with a length.
    Length { remaining: u64 },
    /// The line that begins a chunk.
    ChunkSize,
    /// Bytes of a chunk.
    Chunk { remaining: u64 },
    /// The line end behind a chunk.
    ChunkEnd,
    /// Trailers up to an empty line; `length` bytes were read.
    Trailers { length: usize },
    /// Nothing.
    Done,
}

impl BodyPart {
    /// Reads as far as `input` reaches and returns how far that was. Content goes to `app_request`.
    fn skip(
        &mut self,
        input: &[u8],
        mut app_request: Option<&mut AppRequest>,
    ) -> Result<usize, Refusal> {
        let mut used = 0;
        loop {
            let rest = &input[used..];
            let Some((length, next)) = self.step(rest)? else {
                return Ok(used);
            };
            if let (Some(app_request), BodyPart::Length { .. } | BodyPart::Chunk { .. }) =
                (&mut app_request, *self)
            {
                app_request.add_body(&rest[..length]);
            }
            *self = next;
            used += length;
            if next == BodyPart::Done {
                return Ok(used);
            }
        }
    }

    /// The part that `rest` begins with: its length and what follows it; `None`: more bytes are
    /// needed.
    fn step(self, rest: &[u8]) -> Result<Option<(usize, BodyPart)>, Refusal> {
        let available = rest.len() as u64;
        Ok(match self {
            BodyPart::Done => None,
            BodyPart::Length { .. } | BodyPart::Chunk { .. } if rest.is_empty() => None,
            BodyPart::Length { remaining } => Some(match remaining.checked_sub(available) {
                None | Some(0) => (remaining as usize, BodyPart::Done),
                Some(remaining) => (rest.len(), BodyPart::Length { remaining }),
            }),
            BodyPart::Chunk { remaining } => Some(match remaining.checked_sub(available) {
                None | Some(0) => (remaining as usize, BodyPart::ChunkEnd),
                Some(remaining) => (rest.len(), BodyPart::Chunk { remaining }),
            }),
            BodyPart::ChunkSize => match httparse::parse_chunk_size(rest) {
                Ok(Status::Complete((length, 0))) => {
                    Some((length, BodyPart::Trailers { length: 0 }))
                }
                Ok(Status::Complete((length, remaining))) => {
                    Some((length, BodyPart::Chunk { remaining }))
                }
                Ok(Status::Partial) if rest.len() < HEAD_MAX => None,
                Ok(Status::Partial) | Err(_) => return Err(Refusal::Malformed),
            },
            BodyPart::ChunkEnd => match rest {
                [b'\r', b'\n', ..] => Some((2, BodyPart::ChunkSize)),
                [] | [b'\r'] => None,
                _ => return Err(Refusal::Malformed),
            },
            BodyPart::Trailers { length } => match rest.iter().position(|&b| b == b'\n') {
                Some(end) if rest[..end].trim_ascii().is_empty() => Some((end + 1, BodyPart::Done)),
                Some(end) if length + end < HEAD_MAX => {
                    let length = length + end + 1;
                    Some((end + 1, BodyPart::Trailers { length }))
                }
                None if length + rest.len() < HEAD_MAX => None,
                _ => return Err(Refusal::HeadTooLarge),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Offers `input` in pieces that end at `cuts` and returns all that came out.
    fn read_in_pieces(input: &[u8], cuts: &[usize]) -> Result<Vec<RequestRead>, Refusal> {
        let (mut reader, mut last) = (RequestReader::default(), LastHead::default());
        let (mut steps, mut from) = (Vec::new(), 0);
        for &cut in cuts.iter().chain([&input.len()]) {
            while from < cut {
                let (used, step) = reader.feed(&input[from..cut], &mut last)?;
                from += used;
                if step == RequestRead::NeedMore {
                    break;
                }
                steps.push(step);
            }
        }
        assert!(from == input.len() || !steps.is_empty() || input.len() < HEAD_MAX);
        Ok(steps)
    }

    fn request(head_only: bool, persistence: Persistence) -> RequestRead {
        RequestRead::Request(Request { head_only, persistence })
    }

    #[test]
    fn requests_are_understood() {
        use Persistence::{Close, KeepAlive, KeepAlive10};
        for (input, head_only, persistence) in [
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", false, KeepAlive),
            ("GET / HTTP/1.1\nHost: a\n\n", false, KeepAlive),
            ("HEAD /x HTTP/1.1\r\nhost: a\r\n\r\n", true, KeepAlive),
            ("GET / HTTP/1.1\r\nHost: a\r\nConnection: Close\r\n\r\n", false, Close),
            ("GET / HTTP/1.1\r\nHost: a\r\nConnection: x, close\r\n\r\n", false, Close),
            ("GET / HTTP/1.0\r\n\r\n", false, Close),
            ("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", false, KeepAlive10),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", false, KeepAlive),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", false, KeepAlive),
            (
                "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                 3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nX: y\r\n\r\n",
                false,
                KeepAlive,
            ),
        ] {
            let steps = read_in_pieces(input.as_bytes(), &[]);
            assert_eq!(steps, Ok(vec![request(head_only, persistence)]), "{input:?}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let framed = |fields: &str| format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n");
        let chunked = |body: &str| framed("Transfer-Encoding: chunked") + body;
        let long = "x".repeat(HEAD_MAX);
        for (input, refusal) in [
            ("hello\r\n\r\n".to_owned(), Refusal::Malformed),
            ("\0".to_owned(), Refusal::Malformed),
            ("GET / HTTP/1.1\r\n\r\n".to_owned(), Refusal::Malformed),
            ("GET / HTTP/2.0\r\n\r\n".to_owned(), Refusal::Version),
            (framed("Host: b"), Refusal::Malformed),
            (framed("Content-Length: +3"), Refusal::Malformed),
            (framed("Content-Length: "), Refusal::Malformed),
            (framed("Content-Length: 3\r\nContent-Length: 4"), Refusal::Malformed),
            (framed("Content-Length: 3\r\nTransfer-Encoding: chunked"), Refusal::Malformed),
            (framed("Transfer-Encoding: gzip, chunked"), Refusal::UnknownCoding),
            (chunked("x\r\n"), Refusal::Malformed),
            (chunked("1\r\nabc"), Refusal::Malformed),
            (framed(&format!("X: {long}")), Refusal::HeadTooLarge),
            (format!("GET /{long}"), Refusal::HeadTooLarge),
            (chunked(&format!("0\r\nX: {long}")), Refusal::HeadTooLarge),
            (framed(&"X: y\r\n".repeat(HEADERS_MAX)), Refusal::HeadTooLarge),
        ] {
            let shown = &input[..input.len().min(80)];
            assert_eq!(read_in_pieces(input.as_bytes(), &[]), Err(refusal), "{shown:?}");
        }
    }

    #[test]
    fn a_client_that_waits_is_told_to_go_on() {
        let head =
            "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
        let done = request(false, Persistence::KeepAlive);
        let whole = format!("{head}ab");
        let (reads, length) = (whole.as_bytes(), head.len());
        assert_eq!(read_in_pieces(reads, &[length]), Ok(vec![RequestRead::Continue, done]));
        assert_eq!(read_in_pieces(reads, &[]), Ok(vec![done]), "it did not wait");
    }

    const PIPELINE: &str = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n\
        POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
        5\r\nhello\r\n0\r\nX: y\r\n\r\n\
        HEAD / HTTP/1.1\r\nHost: a\r\n\r\n\
        POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nabcd\
        GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

    #[test]
    fn a_split_at_any_byte_changes_nothing() {
        let whole = read_in_pieces(PIPELINE.as_bytes(), &[]).unwrap();
        assert_eq!(whole.len(), 5);
        for cut in 0..PIPELINE.len() {
            let steps = read_in_pieces(PIPELINE.as_bytes(), &[cut]);
            assert_eq!(steps.as_ref(), Ok(&whole), "cut at {cut}");
        }
        let every: Vec<usize> = (0..PIPELINE.len()).collect();
        assert_eq!(read_in_pieces(PIPELINE.as_bytes(), &every), Ok(whole));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn no_bytes_make_it_panic_or_stand_still(
            at in 0..PIPELINE.len(),
            noise in prop::collection::vec(any::<u8>(), 0..8),
            cut in 0..PIPELINE.len(),
        ) {
            let mut input = PIPELINE.as_bytes().to_vec();
            input.splice(at..(at + noise.len()).min(input.len()), noise);
            let _ = read_in_pieces(&input, &[cut.min(input.len())]);
        }
    }
}
