//! Requests that are made while a load runs.

use std::sync::Arc;

/// A request that a user made at run time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MadeRequest {
    /// The server of the target that it goes to.
    pub server: u16,
    /// Whether its connection is secured.
    pub is_secure: bool,
    /// `GET`, `POST`, ….
    pub method: String,
    /// The host, with the port unless the scheme implies it.
    pub authority: Arc<str>,
    /// Path and query, beginning with `/`.
    pub path: Vec<u8>,
    /// Headers in order, without Host and Content-Length.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Arc<[u8]>,
    /// Whether the body of the response is read.
    pub reads_body: bool,
}

impl MadeRequest {
    /// The value of Content-Length, where one is sent (RFC 9110 §8.6).
    pub fn content_length(&self) -> Option<usize> {
        let implied = matches!(&*self.method, "POST" | "PUT" | "PATCH");
        (implied || !self.body.is_empty()).then(|| self.body.len())
    }

    /// Its length on the wire in bytes, as HTTP/1.1 has it on a connection that stays open.
    pub fn length(&self) -> u64 {
        let has = |name: &str| self.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        let line = |name: &str, value: usize| name.len() + ": ".len() + value + "\r\n".len();
        let mut all = self.method.len() + self.path.len() + "  HTTP/1.1\r\n".len();
        all += self.headers.iter().map(|(name, value)| line(name, value.len())).sum::<usize>();
        if !has("host") {
            all += line("Host", self.authority.len());
        }
        if !has("user-agent") {
            all += line("User-Agent", concat!("knee/", env!("CARGO_PKG_VERSION")).len());
        }
        if let Some(length) = self.content_length() {
            all += line("Content-Length", length.to_string().len());
        }
        (all + "\r\n".len() + self.body.len()) as u64
    }

    /// Whether it may be sent twice (RFC 9110 §9.2.2).
    pub fn is_idempotent(&self) -> bool {
        self.is_safe() || matches!(&*self.method, "PUT" | "DELETE")
    }

    /// Whether it may be sent as early data (RFC 9110 §9.2.1, RFC 8470 §4).
    pub fn is_safe(&self) -> bool {
        matches!(&*self.method, "GET" | "HEAD" | "OPTIONS" | "TRACE")
    }
}
