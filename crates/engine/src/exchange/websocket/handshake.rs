//! The opening handshake (RFC 6455 §4).

use super::WebSocketViolation;
use super::deflate::DeflateAgreement;
use crate::exchange::http1::{HEAD_BYTES_MAX, HEADERS_MAX};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use knee_load::spec::{DeflateOffer, HttpRequest, Part, WEBSOCKET_HEADERS};
use sha1::{Digest, Sha1};

/// What the key is joined with (RFC 6455 §1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The key of a handshake, from 16 random bytes.
pub fn key_of(random: [u8; 16]) -> String {
    BASE64.encode(random)
}

/// The Sec-WebSocket-Accept that follows from a key.
pub fn accept_of(key: &str) -> String {
    let joined = [key.as_bytes(), GUID].concat();
    BASE64.encode(Sha1::digest(&joined))
}

/// The client's part, but for the key, which follows with [`put_key`]. Headers of the request that
/// are the client's own, or whose value is only known to a user, are left out.
pub fn request_head(request: &HttpRequest) -> Vec<u8> {
    let offer = offer(request);
    let mut head = format!(
        "GET {} HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\n",
        request.path
    );
    let implied = [
        ("Host", request.host.as_str()),
        ("User-Agent", concat!("knee/", env!("CARGO_PKG_VERSION"))),
    ];
    let implied = implied.into_iter().filter(|(name, _)| !request.has_header(name));
    let offer = offer.iter().map(|offer| ("Sec-WebSocket-Extensions", offer.sent.as_str()));
    let is_given = |(number, (name, _)): &(u16, &(String, String))| {
        let is_own = WEBSOCKET_HEADERS.iter().any(|own| own.eq_ignore_ascii_case(name));
        let is_filled = request.holes.iter().any(|hole| hole.part == Part::Header(*number));
        !is_own && !is_filled && !DeflateOffer::is_header(name)
    };
    let given = (0u16..).zip(&request.headers).filter(is_given);
    let given = given.map(|(_, (name, value))| (name.as_str(), value.as_str()));
    for (name, value) in implied.chain(given).chain(offer) {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.into_bytes()
}

/// The offer to compress messages. One of other extensions is refused where the target is made.
fn offer(request: &HttpRequest) -> Option<DeflateOffer> {
    DeflateOffer::of(request).ok().flatten()
}

/// Whether a request offers to compress messages.
pub fn offers_deflate(request: &HttpRequest) -> bool {
    offer(request).is_some()
}

/// The list of subprotocols that a request offers, in one header or several (RFC 6455 §11.3.4).
pub fn offered(request: &HttpRequest) -> String {
    let headers = request.headers.iter();
    let lists = headers.filter(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-protocol"));
    Vec::from_iter(lists.map(|(_, list)| list.as_str())).join(",")
}

/// Appends the key and the end of the head.
pub fn put_key(out: &mut Vec<u8>, key: &str) {
    out.extend_from_slice(b"Sec-WebSocket-Key: ");
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(b"\r\n\r\n");
}

/// Length of the head at the beginning of `bytes`; `None` if it goes on.
///
/// # Errors
/// It is too long.
fn head_length(bytes: &[u8]) -> Result<Option<usize>, WebSocketViolation> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    match end {
        Some(at) if at + 4 <= HEAD_BYTES_MAX => Ok(Some(at + 4)),
        None if bytes.len() < HEAD_BYTES_MAX => Ok(None),
        _ => Err(WebSocketViolation::HandshakeNotHttp),
    }
}

/// What a server's part begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandshakeAnswer {
    /// A head that goes on.
    More,
    /// An interim response of this length (RFC 9110 §15.2).
    Interim(usize),
    /// The answer, of this length.
    Opened {
        /// Length of its head.
        length: usize,
        /// How messages are compressed, if they are.
        deflate: Option<DeflateAgreement>,
    },
}

/// Reads the server's part. `protocols` is the list of subprotocols that the client offered;
/// `offers_deflate`: it offered to compress messages.
///
/// # Errors
/// The rule that the server broke.
pub fn read_response(
    bytes: &[u8],
    key: &str,
    (protocols, offers_deflate): (&str, bool),
) -> Result<HandshakeAnswer, WebSocketViolation> {
    if !b"HTTP/1.1 ".starts_with(&bytes[..bytes.len().min(9)]) && !bytes.starts_with(b"HTTP/1.") {
        return Err(WebSocketViolation::HandshakeNotHttp);
    }
    let Some(length) = head_length(bytes)? else {
        return Ok(HandshakeAnswer::More);
    };
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    if !response.parse(&bytes[..length]).is_ok_and(|parsed| parsed.is_complete()) {
        return Err(WebSocketViolation::HandshakeNotHttp);
    }
    let status = response.code.unwrap_or_default();
    if matches!(status, 100 | 102..200) {
        return Ok(HandshakeAnswer::Interim(length));
    }
    if status != 101 {
        return Err(WebSocketViolation::HandshakeStatus(status));
    }
    let headers = &*response.headers;
    if !has_token(headers, "upgrade", "websocket") {
        return Err(WebSocketViolation::HandshakeUpgrade);
    }
    if !has_token(headers, "connection", "upgrade") {
        return Err(WebSocketViolation::HandshakeConnection);
    }
    if value_of(headers, "sec-websocket-accept") != Some(&accept_of(key)) {
        return Err(WebSocketViolation::HandshakeAccept);
    }
    let extensions = headers.iter().filter(|header| DeflateOffer::is_header(header.name));
    let extensions: Vec<&[u8]> = extensions.map(|header| header.value).collect();
    let deflate = match &extensions[..] {
        [] => None,
        [_] if !offers_deflate => return Err(WebSocketViolation::HandshakeExtension),
        [chosen] => {
            let agreed = std::str::from_utf8(chosen).ok().and_then(DeflateAgreement::read);
            Some(agreed.ok_or(WebSocketViolation::HandshakeDeflate)?)
        }
        _ => return Err(WebSocketViolation::HandshakeExtension),
    };
    let is_offered = |chosen: &str| protocols.split(',').any(|one| one.trim() == chosen);
    match value_of(headers, "sec-websocket-protocol") {
        Some(chosen) if !is_offered(chosen) => Err(WebSocketViolation::HandshakeProtocol),
        _ => Ok(HandshakeAnswer::Opened { length, deflate }),
    }
}

/// What a client asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpgradeRequest {
    /// Its head goes on.
    More,
    /// A WebSocket: the length of the head, and the answer.
    Upgrade(usize, Vec<u8>),
    /// Something else: the answer, after which the connection ends.
    Refused(&'static str),
}

/// Reads a client's part, and answers it.
pub fn read_request(bytes: &[u8]) -> UpgradeRequest {
    const BAD: &str = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    const UPGRADE: &str = "HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\n\
        Connection: Upgrade, close\r\nSec-WebSocket-Version: 13\r\nContent-Length: 0\r\n\r\n";
    let length = match head_length(bytes) {
        Ok(Some(length)) => length,
        Ok(None) => return UpgradeRequest::More,
        Err(_) => return UpgradeRequest::Refused(BAD),
    };
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    if !request.parse(&bytes[..length]).is_ok_and(|parsed| parsed.is_complete()) {
        return UpgradeRequest::Refused(BAD);
    }
    let headers = &*request.headers;
    let is_upgrade = request.method == Some("GET")
        && has_token(headers, "upgrade", "websocket")
        && has_token(headers, "connection", "upgrade")
        && value_of(headers, "sec-websocket-version") == Some("13");
    let key = value_of(headers, "sec-websocket-key");
    let is_key = |key: &&str| BASE64.decode(key).is_ok_and(|bytes| bytes.len() == 16);
    match key.filter(is_key) {
        Some(key) if is_upgrade => {
            let answer = format!(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                 Sec-WebSocket-Accept: {}\r\n\r\n",
                accept_of(key)
            );
            UpgradeRequest::Upgrade(length, answer.into_bytes())
        }
        _ => UpgradeRequest::Refused(UPGRADE),
    }
}

fn value_of<'h>(headers: &[httparse::Header<'h>], name: &str) -> Option<&'h str> {
    let header = headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
    std::str::from_utf8(header.value).ok().map(str::trim)
}

/// Whether a list in a header has this token, which has no case.
fn has_token(headers: &[httparse::Header<'_>], name: &str, token: &str) -> bool {
    let lists = headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
    let mut lists = lists.filter_map(|header| std::str::from_utf8(header.value).ok());
    lists.any(|list| list.split(',').any(|one| one.trim().eq_ignore_ascii_case(token)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key of RFC 6455 §1.3.
    const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

    fn answer(change: impl Fn(&str) -> String) -> Result<HandshakeAnswer, WebSocketViolation> {
        let whole = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
            Connection: keep-alive, Upgrade\r\nSec-WebSocket-Accept: \
            s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
        read_response(change(whole).as_bytes(), KEY, ("chat, v2", false))
    }

    #[test]
    fn a_server_that_breaks_a_rule_is_told_which() {
        assert!(matches!(answer(str::to_owned), Ok(HandshakeAnswer::Opened { .. })));
        let with = |line: &'static str| {
            move |whole: &str| whole.replace("\r\n\r\n", &format!("\r\n{line}\r\n\r\n"))
        };
        let chosen = answer(with("Sec-WebSocket-Protocol: v2"));
        assert!(matches!(chosen, Ok(HandshakeAnswer::Opened { .. })));
        let rows = [
            (answer(|w| w.replace("101", "200")), WebSocketViolation::HandshakeStatus(200)),
            (answer(|w| w.replace("websocket", "h2c")), WebSocketViolation::HandshakeUpgrade),
            (answer(|w| w.replace(", Upgrade", "")), WebSocketViolation::HandshakeConnection),
            (answer(|w| w.replace("s3p", "S3p")), WebSocketViolation::HandshakeAccept),
            (answer(with("Sec-WebSocket-Extensions: x")), WebSocketViolation::HandshakeExtension),
            (answer(with("Sec-WebSocket-Protocol: v3")), WebSocketViolation::HandshakeProtocol),
            (answer(|_| "SSH-2.0\r\n".to_owned()), WebSocketViolation::HandshakeNotHttp),
            (
                answer(|_| format!("HTTP/1.1 {}", "x".repeat(70_000))),
                WebSocketViolation::HandshakeNotHttp,
            ),
        ];
        for (got, want) in rows {
            assert_eq!(got, Err(want));
        }
    }

    #[test]
    fn headers_of_a_user_are_sent_once_and_those_of_knee_are_its_own() {
        let url = knee_load::spec::Url::parse("ws://h/chat?a=b").unwrap();
        let headers = [
            ("Upgrade", "websocket"),
            ("connection", "keep-alive, Upgrade"),
            ("Sec-WebSocket-Key", KEY),
            ("SEC-WEBSOCKET-VERSION", "13"),
            ("Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits"),
            ("Origin", "https://a"),
            ("user-agent", "Mozilla"),
            ("Sec-WebSocket-Protocol", "chat"),
            ("X-Upgrade", "yes"),
            ("sec-websocket-protocol", "v2, v1"),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let request = HttpRequest::new("GET", &url, headers.to_vec(), Vec::new(), 1).unwrap();
        let mut head = request_head(&request);
        put_key(&mut head, KEY);
        let want = format!(
            "GET /chat?a=b HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nHost: h\r\nOrigin: https://a\r\nuser-agent: Mozilla\r\n\
             Sec-WebSocket-Protocol: chat\r\nX-Upgrade: yes\r\n\
             sec-websocket-protocol: v2, v1\r\n\
             Sec-WebSocket-Extensions: permessage-deflate\r\nSec-WebSocket-Key: {KEY}\r\n\r\n"
        );
        assert_eq!(String::from_utf8(head).unwrap(), want);
        assert_eq!(offered(&request), "chat,v2, v1");
    }

    #[test]
    fn interim_responses_and_extensions_are_read() {
        let opened = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
            Connection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";
        let read = |text: &str, offers| read_response(text.as_bytes(), KEY, ("", offers));
        for status in ["100 Continue", "102 Processing", "103 Early Hints", "199 x"] {
            let interim = format!("HTTP/1.1 {status}\r\nLink: a\r\n\r\n");
            let length = interim.len();
            assert_eq!(read(&interim, false), Ok(HandshakeAnswer::Interim(length)));
            let both = format!("{interim}{opened}\r\n");
            assert_eq!(read(&both, false), Ok(HandshakeAnswer::Interim(length)));
        }
        let with = |lines: &str| format!("{opened}{lines}\r\n");
        let agreed = with("Sec-WebSocket-Extensions: permessage-deflate\r\n");
        let deflate = Some(DeflateAgreement::default());
        assert_eq!(
            read(&agreed, true),
            Ok(HandshakeAnswer::Opened { length: agreed.len(), deflate })
        );
        let plain = with("");
        let deflate = None;
        assert_eq!(
            read(&plain, true),
            Ok(HandshakeAnswer::Opened { length: plain.len(), deflate })
        );
        assert_eq!(read(&agreed, false), Err(WebSocketViolation::HandshakeExtension));
        let window = "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits=10\r\n";
        assert_eq!(read(&with(window), true), Err(WebSocketViolation::HandshakeDeflate));
        let twice = "Sec-WebSocket-Extensions: permessage-deflate\r\n".repeat(2);
        assert_eq!(read(&with(&twice), true), Err(WebSocketViolation::HandshakeExtension));
    }

    #[test]
    fn a_handshake_may_come_byte_by_byte() {
        let Ok(HandshakeAnswer::Opened { length: whole, deflate: None }) = answer(str::to_owned)
        else {
            panic!("it is an answer");
        };
        let mut cut = Vec::new();
        let text = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
            Connection: keep-alive, Upgrade\r\nSec-WebSocket-Accept: \
            s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
        for byte in text.bytes() {
            assert!(cut.len() < whole);
            cut.push(byte);
            let read = read_response(&cut, KEY, ("", false));
            assert_eq!(read != Ok(HandshakeAnswer::More), cut.len() == whole);
        }
    }

    #[test]
    fn a_client_is_upgraded_or_told_what_is_needed() {
        let head = |method: &str, key: &str| {
            format!(
                "{method} / HTTP/1.1\r\nHost: h\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n\
                 Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n"
            )
        };
        let UpgradeRequest::Upgrade(length, answer) = read_request(head("GET", KEY).as_bytes())
        else {
            panic!("it is a handshake");
        };
        assert_eq!(length, head("GET", KEY).len());
        let read = read_response(&answer, KEY, ("", false));
        assert!(matches!(read, Ok(HandshakeAnswer::Opened { .. })));
        for other in [head("POST", KEY), head("GET", "short"), "GET / HTTP/1.1\r\n\r\n".into()] {
            let refused = matches!(read_request(other.as_bytes()), UpgradeRequest::Refused(text)
                if text.starts_with("HTTP/1.1 426"));
            assert!(refused, "{other}");
        }
        assert_eq!(read_request(b"GET / HT"), UpgradeRequest::More);
    }
}
