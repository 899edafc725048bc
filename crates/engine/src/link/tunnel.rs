//! The tunnel that a proxy makes to a target: CONNECT (RFC 9110 §9.3.6).

use crate::error::reason;
use httparse::{EMPTY_HEADER, Response, Status};
use knee_load::spec::{Endpoint, Proxy, Target};
use std::io::{Read, Write};

/// Longest head of an answer to CONNECT, in bytes.
const HEAD_MAX: usize = 64 << 10;

/// Most header lines of it.
const HEADERS_MAX: usize = 128;

/// A proxy's way to a server.
#[derive(Clone, Debug)]
pub(crate) struct Tunnel {
    proxy: Proxy,
    /// `HOST:PORT` of the server.
    to: String,
}

impl Tunnel {
    /// The tunnel to the first server of a target; `None` if connections need none.
    pub(crate) fn of(target: &Target) -> Option<Tunnel> {
        let proxy = target.proxy.as_deref().filter(|_| target.is_tunnelled())?;
        let to = match &target.endpoint {
            Endpoint::Tcp { .. } => target.endpoint.to_string(),
            Endpoint::Unix { .. } => return None,
        };
        Some(Tunnel { proxy: proxy.clone(), to })
    }

    /// The request for it.
    pub(crate) fn request(&self) -> Vec<u8> {
        let authorization = self.proxy.authorization();
        let authorization = authorization
            .map_or(String::new(), |value| format!("Proxy-Authorization: {value}\r\n"));
        let (to, version) = (&self.to, env!("CARGO_PKG_VERSION"));
        let request = format!(
            "CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n{authorization}User-Agent: knee/{version}\r\n\r\n"
        );
        request.into_bytes()
    }

    /// Reads the answer, which comes in pieces. Returns its length once the tunnel is there, and
    /// `None` while its end is still to come.
    ///
    /// # Errors
    /// The proxy refuses, or does not answer in HTTP.
    pub(crate) fn read(&self, answer: &[u8]) -> Result<Option<usize>, String> {
        let mut headers = [EMPTY_HEADER; HEADERS_MAX];
        let mut response = Response::new(&mut headers);
        match response.parse(answer) {
            Ok(Status::Complete(length)) => {
                let status = response.code.unwrap_or(0);
                match status {
                    100..200 if status != 101 => {
                        Ok(self.read(&answer[length..])?.map(|rest| length + rest))
                    }
                    200..300 => Ok(Some(length)),
                    _ => Err(self.refused(status, response.reason.unwrap_or(""))),
                }
            }
            Ok(Status::Partial) if answer.len() < HEAD_MAX => Ok(None),
            Ok(Status::Partial) | Err(_) => Err(self.failed("it does not answer in HTTP/1.1")),
        }
    }

    fn refused(&self, status: u16, reason: &str) -> String {
        let shown: String = reason.chars().filter(|c| !c.is_control()).take(60).collect();
        let next = match (status, &self.proxy.user) {
            (407, None) => ": give it a user with --proxy-user USER:PASSWORD",
            (407, Some(_)) => ": it does not take this user and password",
            _ => "",
        };
        let blank = if shown.is_empty() { "" } else { " " };
        self.failed(&format!("it answered {status}{blank}{shown}{next}"))
    }

    /// Says that the proxy has not connected to the server.
    pub(crate) fn failed(&self, why: &str) -> String {
        format!("the proxy {:?} did not connect to {}: {why}", self.proxy, self.to)
    }

    /// Has the proxy make the tunnel over a connection to it.
    ///
    /// # Errors
    /// It does not, in words that name the proxy.
    pub(crate) fn open(&self, stream: &mut (impl Read + Write)) -> Result<(), String> {
        let failed = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => {
                self.failed("it has not answered in time")
            }
            _ => self.failed(&reason(&error)),
        };
        stream.write_all(&self.request()).map_err(failed)?;
        let (mut answer, mut byte) = (Vec::new(), [0]);
        // What follows the answer is the server's.
        loop {
            match stream.read(&mut byte) {
                Ok(0) => return Err(self.failed(HUNG_UP)),
                Ok(_) => answer.push(byte[0]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
            if byte == *b"\n" && self.read(&answer)?.is_some() {
                return Ok(());
            }
        }
    }
}

/// The proxy closed the connection.
pub(crate) const HUNG_UP: &str = "it closed the connection before it had answered";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tunnel(user: Option<&str>) -> Tunnel {
        let mut proxy = Proxy::parse("p:3128", "--proxy").unwrap();
        proxy.user = user.map(str::to_owned);
        Tunnel { proxy, to: "h:443".to_owned() }
    }

    #[test]
    fn a_request_names_the_server_and_the_user() {
        let text = String::from_utf8(tunnel(None).request()).unwrap();
        assert!(text.starts_with("CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\nUser-Agent: knee/"));
        assert!(text.ends_with("\r\n\r\n"));
        let text = String::from_utf8(tunnel(Some("u:pw")).request()).unwrap();
        assert!(text.contains("\r\nProxy-Authorization: Basic dTpwdw==\r\n"), "{text}");
    }

    #[test]
    fn answers_in_any_pieces() {
        let ok = "HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n";
        let rows = [
            (ok.to_owned(), Ok(ok.len())),
            (format!("{ok}from the server"), Ok(ok.len())),
            ("HTTP/1.0 204 \r\nContent-Length: 5\r\n\r\n".to_owned(), Ok(36)),
            (format!("HTTP/1.1 100 Continue\r\n\r\n{ok}"), Ok(25 + ok.len())),
            (
                "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n".to_owned(),
                Err("it answered 407 Proxy Authentication Required: give it a user with"),
            ),
            ("HTTP/1.1 502 Bad Gateway\r\n\r\n".to_owned(), Err("it answered 502 Bad Gateway")),
            ("HTTP/1.1 503\r\n\r\n".to_owned(), Err("it answered 503")),
            ("HTTP/1.1 301 Moved\r\n\r\n".to_owned(), Err("it answered 301 Moved")),
            ("SSH-2.0-x\r\n\r\n".to_owned(), Err("it does not answer in HTTP/1.1")),
            ("x".repeat(HEAD_MAX), Err("it does not answer in HTTP/1.1")),
        ];
        for (answer, expected) in rows {
            let tunnel = tunnel(None);
            let mut ends = (0..=answer.len()).map(|end| tunnel.read(&answer.as_bytes()[..end]));
            let end = ends.find(|read| !matches!(read, Ok(None))).unwrap();
            match (end, expected) {
                (Ok(length), Ok(expected)) => assert_eq!(length, Some(expected), "{answer}"),
                (Err(why), Err(expected)) => {
                    let whole = "the proxy http://p:3128 (--proxy) did not connect to h:443: ";
                    assert!(why.starts_with(&format!("{whole}{expected}")), "{why}");
                }
                other => panic!("{answer}: {other:?}"),
            }
        }
        let refused = "HTTP/1.1 407 No\r\n\r\n".as_bytes();
        let why = tunnel(Some("u:pw")).read(refused).unwrap_err();
        assert!(why.ends_with("407 No: it does not take this user and password"), "{why}");
    }

    proptest! {
        #[test]
        fn any_answer_is_read_within_its_bytes(
            bytes: Vec<u8>,
            text in "(HTTP/1.1 (100|200|407) ?[a-z\r\n]{0,9}\r\n){0,3}[ -~\r\n]{0,30}",
        ) {
            for answer in [bytes.as_slice(), text.as_bytes()] {
                if let Ok(Some(length)) = tunnel(None).read(answer) {
                    prop_assert!(length <= answer.len());
                }
            }
        }
    }
}
