//! What a server offers beside the connection that it is asked over: `Alt-Svc` (RFC 7838).

use super::greet::{SecuredStream, secure};
use super::{HUNG_UP, TlsTarget};
use crate::error::reason;
use httparse::{EMPTY_HEADER, Response, Status};
use knee_load::spec::Target;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

/// Longest head of a response, in bytes.
const HEAD_MAX: usize = 64 << 10;

/// Most header lines of it.
const HEADERS_MAX: usize = 256;

/// Where a server offers HTTP/3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http3Offer {
    /// The host, an IPv6 address without brackets; `None`: that of the target.
    pub host: Option<String>,
    /// The UDP port.
    pub port: u16,
}

/// Asks the server of a target over a stream, by a request of HEAD in HTTP/1.1 over TLS, whether it
/// offers HTTP/3. `None`: it does not.
///
/// # Errors
/// It does not answer in HTTP/1.1, in words.
pub(crate) fn ask_for_http3(
    stream: &mut (impl Read + Write + ?Sized),
    target: &Target,
    tls: TlsTarget,
    patience: Duration,
) -> Result<Option<Http3Offer>, String> {
    let begun = Instant::now();
    let (tls, _) = secure(stream, tls, patience)?;
    let mut stream = SecuredStream::new(stream, tls);
    let host = &target.requests.first().ok_or("the target has no request")?.host;
    let request = format!(
        "HEAD / HTTP/1.1\r\nHost: {host}\r\nUser-Agent: knee/{}\r\nConnection: close\r\n\r\n",
        env!("CARGO_PKG_VERSION")
    );
    stream.write_all(request.as_bytes()).map_err(|error| reason(&error))?;
    let (mut answer, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        if begun.elapsed() > patience {
            return Err("it has not answered in time".to_owned());
        }
        let count = stream.read(&mut buffer).map_err(|error| reason(&error))?;
        if count == 0 {
            return Err(HUNG_UP.to_owned());
        }
        answer.extend_from_slice(&buffer[..count]);
        if let Some(offer) = offer_in(&answer)? {
            return Ok(offer);
        }
    }
}

/// The offer in the head of a response; `None` while its end is still to come.
fn offer_in(answer: &[u8]) -> Result<Option<Option<Http3Offer>>, String> {
    let mut headers = [EMPTY_HEADER; HEADERS_MAX];
    let mut response = Response::new(&mut headers);
    match response.parse(answer) {
        Ok(Status::Complete(length)) if matches!(response.code, Some(100..200)) => {
            offer_in(&answer[length..])
        }
        Ok(Status::Complete(_)) => {
            let mut values = response.headers.iter();
            Ok(Some(values.find_map(|header| {
                let is_offer = header.name.eq_ignore_ascii_case("alt-svc");
                is_offer.then(|| http3_of(header.value)).flatten()
            })))
        }
        Ok(Status::Partial) if answer.len() < HEAD_MAX => Ok(None),
        Ok(Status::Partial) | Err(_) => Err("it does not answer in HTTP/1.1".to_owned()),
    }
}

/// The first HTTP/3 alternative of a value of `Alt-Svc` (RFC 7838 §3, RFC 9114 §3.1.1):
/// `h3=":443"; ma=86400, h2="alt.example:8000"`.
fn http3_of(value: &[u8]) -> Option<Http3Offer> {
    let mut rest = std::str::from_utf8(value).ok()?;
    loop {
        let (protocol, after) = rest.trim_start_matches([' ', '\t', ',']).split_once("=\"")?;
        let mut authority = String::new();
        let mut chars = after.char_indices();
        let end = loop {
            match chars.next()? {
                (at, '"') => break at,
                (_, '\\') => authority.push(chars.next()?.1),
                (_, c) => authority.push(c),
            }
        };
        if protocol == "h3" {
            let (host, port) = authority.rsplit_once(':')?;
            let host = host.trim_matches(['[', ']']);
            let host = (!host.is_empty()).then(|| host.to_owned());
            let port = port.parse().ok().filter(|port| *port > 0)?;
            return Some(Http3Offer { host, port });
        }
        rest = next_alternative(&after[end + 1..])?;
    }
}

/// What follows the comma behind the parameters of an alternative, which may have quotes.
fn next_alternative(parameters: &str) -> Option<&str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let comma = parameters.find(|c| {
        let is_plain = !std::mem::take(&mut is_escaped);
        match c {
            '\\' if is_quoted && is_plain => is_escaped = true,
            '"' if is_plain => is_quoted = !is_quoted,
            ',' => return !is_quoted,
            _ => {}
        }
        false
    })?;
    Some(&parameters[comma + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn alternatives() {
        let here = |port| Some(Http3Offer { host: None, port });
        let rows = [
            (r#"h3=":443""#, here(443)),
            (r#"h3=":443"; ma=86400"#, here(443)),
            (r#"h2=":8000", h3=":8443"; ma=1; persist=1"#, here(8443)),
            (r#"h2="alt.example:8000";x="a,b\"c", h3=":1""#, here(1)),
            (r#"h3-29=":443", h3=":444""#, here(444)),
            (r#"h3-29=":443""#, None),
            (
                r#"h3="alt.example:8443""#,
                Some(Http3Offer { host: Some("alt.example".to_owned()), port: 8443 }),
            ),
            (r#"h3="[::1]:8443""#, Some(Http3Offer { host: Some("::1".to_owned()), port: 8443 })),
            ("clear", None),
            ("", None),
            (r#"h3=":70000""#, None),
            (r#"h3=":0""#, None),
            (r#"h3=":4"#, None),
            ("h3=:443", None),
        ];
        for (value, expected) in rows {
            assert_eq!(http3_of(value.as_bytes()), expected, "{value}");
        }
    }

    #[test]
    fn offers_in_heads() {
        let head = "HTTP/1.1 404 Not Found\r\nServer: x\r\naLT-sVC: h3=\":1\"\r\n\r\n";
        assert_eq!(offer_in(head.as_bytes()), Ok(Some(Some(Http3Offer { host: None, port: 1 }))));
        let early = format!("HTTP/1.1 103 Early Hints\r\n\r\n{head}");
        assert!(matches!(offer_in(early.as_bytes()), Ok(Some(Some(_)))));
        assert_eq!(offer_in(b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n"), Ok(Some(None)));
        assert_eq!(offer_in(&head.as_bytes()[..50]), Ok(None));
        assert!(offer_in(b"SSH-2.0\r\n\r\n").is_err());
    }

    proptest! {
        #[test]
        fn any_value_is_read(bytes: Vec<u8>, text in r#"(h[23]?=?"[:\\0-9a",; ]{0,9}){0,4}"#) {
            http3_of(&bytes);
            http3_of(text.as_bytes());
        }
    }
}
