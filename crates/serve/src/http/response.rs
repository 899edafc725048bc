//! Responses, built before the first request comes.

use super::batch;
use super::fault::Mishap;
use super::request::{Persistence, Refusal};
use knee_engine::exchange::http2::hpack::{self, Indexing};
use knee_engine::exchange::http3::qpack;
use knee_load::rng;

/// Response of an application, before it is encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
    /// Further fields, their names in lower case.
    fields: Vec<(&'static str, String)>,
    pub(super) body: String,
}

impl Reply {
    pub(super) fn new(status: u16, content_type: &'static str, body: String) -> Reply {
        Reply { status, content_type, fields: Vec::new(), body }
    }

    /// The same with one field more.
    pub(super) fn with(mut self, name: &'static str, value: &str) -> Reply {
        self.fields.push((name, value.to_owned()));
        self
    }

    /// The value of a field.
    #[cfg(test)]
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        fields.find_map(|(other, value)| (*other == name).then_some(value.as_str()))
    }
}

/// One response as it goes over the wire.
#[derive(Debug)]
pub(super) struct Response {
    /// Head and body.
    pub(super) bytes: Box<[u8]>,
    /// Length of the head, with its empty line.
    pub(super) head_length: usize,
    /// The head as a block of HPACK, the same for every connection; empty if it has none.
    pub(super) block: Box<[u8]>,
    /// The same as a field section of QPACK.
    pub(super) section: Box<[u8]>,
}

impl Response {
    /// The body.
    pub(super) fn body(&self) -> &[u8] {
        &self.bytes[self.head_length..]
    }
}

/// Selects a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponseKind {
    /// Status 200.
    Ok(Persistence),
    /// What the application answers, which belongs to the request.
    Own(Persistence),
    /// Status 200, and a stream of messages.
    Stream(Persistence),
    /// Another status, by its index among those of the faults.
    Error(usize, Persistence),
    /// Status 503, as the queue is full.
    QueueFull(Persistence),
    /// Status 100.
    Continue,
    /// Status 400, 431, 501 or 505; the connection is then closed.
    Refused(Refusal),
    /// No HTTP at all.
    Garbage,
}

/// The response to one request, as it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServerResponse {
    pub(super) kind: ResponseKind,
    pub(super) head_only: bool,
    /// Half of it, then the connection is closed.
    pub(super) halved: bool,
    /// Nothing of it, the connection is reset.
    pub(super) reset: bool,
}

impl ServerResponse {
    /// All of a response.
    pub(super) fn whole(kind: ResponseKind) -> ServerResponse {
        ServerResponse { kind, head_only: false, halved: false, reset: false }
    }

    /// The response to a request, with a fault if one was drawn.
    pub(super) fn with(mishap: Option<Mishap>, persistence: Persistence) -> ServerResponse {
        let ok = ServerResponse::whole(ResponseKind::Ok(persistence));
        match mishap {
            None => ok,
            Some(Mishap::Reset) => ServerResponse { reset: true, ..ok },
            Some(Mishap::Truncate) => ServerResponse { halved: true, ..ok },
            Some(Mishap::Garbage) => ServerResponse::whole(ResponseKind::Garbage),
            Some(Mishap::Error(i)) => ServerResponse::whole(ResponseKind::Error(i, persistence)),
        }
    }

    /// The response to the same request if the queue is full.
    pub(super) fn rejected(self) -> ServerResponse {
        let persistence = match self.kind {
            ResponseKind::Ok(p) | ResponseKind::Own(p) | ResponseKind::Error(_, p) => p,
            _ => Persistence::Close,
        };
        let whole = ServerResponse::whole(ResponseKind::QueueFull(persistence));
        ServerResponse { head_only: self.head_only, ..whole }
    }

    /// Number of bytes of `response` that are sent.
    pub(super) fn length(self, response: &Response) -> usize {
        let (head, whole) = (response.head_length, response.bytes.len());
        let length = if self.head_only && head > 0 { head } else { whole };
        match length - head.min(length) {
            _ if !self.halved => length,
            0 => length / 2,
            body => head + body / 2,
        }
    }

    /// Whether the connection ends with it.
    pub(super) fn closes(self) -> bool {
        match self.kind {
            ResponseKind::Ok(p)
            | ResponseKind::Own(p)
            | ResponseKind::Stream(p)
            | ResponseKind::QueueFull(p)
            | ResponseKind::Error(_, p) => self.halved || p == Persistence::Close,
            ResponseKind::Continue => false,
            ResponseKind::Refused(_) | ResponseKind::Garbage => true,
        }
    }
}

/// All prepared responses.
#[derive(Debug)]
pub(super) struct Responses {
    ok: [Response; 3],
    streams: [Response; 3],
    errors: Vec<[Response; 3]>,
    queue_full: [Response; 3],
    go_on: Response,
    refused: [Response; 4],
    garbage: Response,
}

impl Responses {
    /// With bodies of `body_size` bytes, the error `statuses` of the faults, and garbage by `seed`.
    pub(super) fn new(body_size: u32, statuses: &[u16], seed: u64) -> Responses {
        let build_each = |status| PERSISTENCES.map(|p| build(status, p, body_size as usize));
        let queue_full = PERSISTENCES.map(|p| build(503, p, 0));
        let refused = [400, 431, 501, 505].map(|s| build(s, Persistence::Close, 0));
        Responses {
            ok: build_each(200),
            streams: PERSISTENCES.map(build_stream),
            errors: statuses.iter().map(|&s| build_each(s)).collect(),
            queue_full,
            go_on: Response {
                block: encoded(head_fields(&["100", ""], 100)).into(),
                section: section(head_fields(&["100", ""], 100)).into(),
                ..bare(b"HTTP/1.1 100 Continue\r\n\r\n".to_vec())
            },
            refused,
            garbage: garbage(seed),
        }
    }

    /// Picks a response. `app_response` is the application's, if it answered.
    #[inline]
    pub(super) fn pick<'a>(
        &'a self,
        kind: ResponseKind,
        app_response: Option<&'a Response>,
    ) -> &'a Response {
        match (kind, app_response) {
            (ResponseKind::Own(_), Some(response)) => response,
            _ => self.of(kind),
        }
    }

    /// Picks a prepared response.
    #[inline]
    pub(super) fn of(&self, kind: ResponseKind) -> &Response {
        match kind {
            ResponseKind::Ok(p) | ResponseKind::Own(p) => &self.ok[p as usize],
            ResponseKind::Stream(p) => &self.streams[p as usize],
            ResponseKind::Error(i, p) => &self.errors[i][p as usize],
            ResponseKind::QueueFull(p) => &self.queue_full[p as usize],
            ResponseKind::Continue => &self.go_on,
            ResponseKind::Refused(refusal) => &self.refused[refusal as usize],
            ResponseKind::Garbage => &self.garbage,
        }
    }
}

/// In the order of their numbers, which are indices of the arrays above.
const PERSISTENCES: [Persistence; 3] =
    [Persistence::KeepAlive, Persistence::KeepAlive10, Persistence::Close];

/// A response without Date, which a server without a clock for it leaves out (RFC 9110 6.6.1).
fn build(status: u16, persistence: Persistence, body_size: usize) -> Response {
    let connection = connection(persistence);
    // These two never have a body (RFC 9110 15.3.5, 15.4.5), nor may 204 speak of its length.
    let body_size = if matches!(status, 204 | 304) { 0 } else { body_size };
    let length = match status {
        204 | 304 => String::new(),
        _ => format!("Content-Type: text/plain\r\nContent-Length: {body_size}\r\n"),
    };
    let reason = reason(status);
    let head = format!("HTTP/1.1 {status} {reason}\r\nServer: knee\r\n{connection}{length}\r\n");
    let mut bytes = head.into_bytes();
    let head_length = bytes.len();
    bytes.extend(BODY.iter().cycle().take(body_size));
    let texts = [status.to_string(), body_size.to_string()];
    let texts = texts.each_ref().map(String::as_str);
    Response {
        bytes: bytes.into(),
        head_length,
        block: encoded(head_fields(&texts, status)).into(),
        section: section(head_fields(&texts, status)).into(),
    }
}

/// The head of a stream of messages, whose body follows in pieces.
fn build_stream(persistence: Persistence) -> Response {
    let head = format!("{}{}\r\n", batch::HEAD, connection(persistence));
    let fields = [
        (":status", "200"),
        ("server", "knee"),
        ("content-type", "text/event-stream"),
        ("cache-control", "no-cache"),
    ];
    let head_length = head.len();
    Response {
        bytes: head.into_bytes().into(),
        head_length,
        block: encoded(fields).into(),
        section: section(fields).into(),
    }
}

fn connection(persistence: Persistence) -> &'static str {
    match persistence {
        Persistence::KeepAlive => "",
        Persistence::KeepAlive10 => "Connection: keep-alive\r\n",
        Persistence::Close => "Connection: close\r\n",
    }
}

/// Encodes the response of an application.
pub(super) fn build_reply(reply: &Reply, persistence: Persistence) -> Response {
    let (status, length) = (reply.status, reply.body.len().to_string());
    let (reason, connection) = (reason(status), connection(persistence));
    let mut head = format!("HTTP/1.1 {status} {reason}\r\nServer: knee\r\n{connection}");
    let status = status.to_string();
    let always = [(":status", status.as_str()), ("server", "knee")];
    let content = [("content-type", reply.content_type), ("content-length", &length)];
    let further = reply.fields.iter().map(|(n, v)| (*n, v.as_str()));
    let fields = content.into_iter().chain(further);
    for (name, value) in fields.clone() {
        head.push_str(&format!("{}: {value}\r\n", in_title_case(name)));
    }
    let all = always.into_iter().chain(fields);
    let (block, section) = (encoded(all.clone()), section(all));
    head.push_str("\r\n");
    let head_length = head.len();
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(reply.body.as_bytes());
    Response { bytes: bytes.into(), head_length, block: block.into(), section: section.into() }
}

/// `set-cookie` is `Set-Cookie`, as HTTP/1.1 mostly has it.
fn in_title_case(name: &str) -> String {
    let parts = name.split('-').map(|part| {
        let (first, rest) = part.split_at(part.len().min(1));
        first.to_ascii_uppercase() + rest
    });
    parts.collect::<Vec<_>>().join("-")
}

/// The same head for HTTP/2 and HTTP/3. `texts` are the status and the length of the body.
fn head_fields<'a>(texts: &[&'a str; 2], status: u16) -> Vec<(&'static str, &'a str)> {
    let [status_text, length] = *texts;
    let mut fields = vec![(":status", status_text)];
    if status >= 200 {
        fields.push(("server", "knee"));
    }
    if !matches!(status, 100..200 | 204 | 304) {
        fields.extend([("content-type", "text/plain"), ("content-length", length)]);
    }
    fields
}

/// A field section of QPACK.
fn section<'a>(fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
    let mut section = qpack::PREFIX.to_vec();
    for (name, value) in fields {
        qpack::put_field(&mut section, name.as_bytes(), value.as_bytes());
    }
    section
}

/// A header block of HPACK, without anything of a dynamic table.
pub(super) fn encoded<'a>(fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        hpack::put_field(&mut block, name.as_bytes(), value.as_bytes(), Indexing::Without);
    }
    block
}

/// Content of bodies, repeated.
const BODY: &[u8] = b"The knee of a curve is where more load buys more waiting than work.\n";

/// The reason phrase; empty if there is none of note, which RFC 9112 4 permits.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        302 => "Found",
        204 => "No Content",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}

fn bare(bytes: Vec<u8>) -> Response {
    Response { bytes: bytes.into(), head_length: 0, block: Box::default(), section: Box::default() }
}

/// Random bytes. No HTTP response begins with the first of them.
fn garbage(seed: u64) -> Response {
    let mut rng = rng::stream(seed, 3);
    let mut bytes: Vec<u8> = (0..256).map(|_| (rng::unit(&mut rng) * 256.0) as u8).collect();
    bytes[0] = 0xFF;
    bare(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_say_what_they_are() {
        let responses = Responses::new(5, &[503, 204], 1);
        let text = |kind| String::from_utf8_lossy(&responses.of(kind).bytes).into_owned();
        let ok = text(ResponseKind::Ok(Persistence::KeepAlive));
        assert!(ok.starts_with("HTTP/1.1 200 OK\r\n") && ok.ends_with("\r\n\r\nThe k"), "{ok}");
        assert!(ok.contains("\r\nContent-Length: 5\r\n") && !ok.contains("Connection"));
        let closing = text(ResponseKind::Error(0, Persistence::Close));
        assert!(closing.starts_with("HTTP/1.1 503 "), "{closing}");
        assert!(closing.contains("\r\nConnection: close\r\n"));
        let old = text(ResponseKind::Ok(Persistence::KeepAlive10));
        assert!(old.contains("\r\nConnection: keep-alive\r\n"));
        assert!(text(ResponseKind::Error(1, Persistence::KeepAlive)).ends_with("knee\r\n\r\n"));
        for (refusal, status) in [
            (Refusal::Malformed, "400"),
            (Refusal::HeadTooLarge, "431"),
            (Refusal::UnknownCoding, "501"),
            (Refusal::Version, "505"),
        ] {
            assert_eq!(&text(ResponseKind::Refused(refusal))[9..12], status);
        }
    }

    #[test]
    fn an_answer_knows_its_length() {
        let (responses, none) = (Responses::new(10, &[], 1), Responses::new(0, &[], 1));
        let answer = ServerResponse::whole(ResponseKind::Ok(Persistence::KeepAlive));
        let head = responses.of(answer.kind).head_length;
        let halved = ServerResponse { halved: true, ..answer };
        let head_only = ServerResponse { head_only: true, ..answer };
        assert_eq!(answer.length(responses.of(answer.kind)), head + 10);
        assert_eq!(head_only.length(responses.of(answer.kind)), head);
        assert_eq!(halved.length(responses.of(answer.kind)), head + 5);
        let bodiless = none.of(answer.kind);
        assert_eq!(halved.length(bodiless), bodiless.head_length / 2);
        assert_eq!(
            ServerResponse::whole(ResponseKind::Garbage)
                .length(responses.of(ResponseKind::Garbage)),
            256
        );
    }
}
