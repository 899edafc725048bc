//! What is spoken over a connection.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A version of HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum HttpVersion {
    /// What the target chooses by ALPN (RFC 7301), HTTP/2 offered first; HTTP/1.1 in cleartext.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// HTTP/1.1 (RFC 9112).
    #[serde(rename = "1.1")]
    Http11,
    /// HTTP/2 (RFC 9113): by ALPN over TLS, by prior knowledge in cleartext.
    #[serde(rename = "2")]
    Http2,
}

/// `HTTP/1.1`, `HTTP/2`.
impl fmt::Display for HttpVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HttpVersion::Auto => "HTTP by ALPN",
            HttpVersion::Http11 => "HTTP/1.1",
            HttpVersion::Http2 => "HTTP/2",
        })
    }
}

/// The limits of HTTP/2 connections on the generator's side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Http2Limits {
    /// Most concurrent streams of a connection, at least 1; `None`: as many as the target permits,
    /// up to [`Http2Limits::STREAMS_DEFAULT`].
    pub streams_max: Option<u32>,
    /// Connections that the virtual users of a closed loop share, at least 1; `None`: each has one
    /// of its own.
    pub connections_max: Option<u32>,
    /// The flow-control window of a stream in bytes, 1 to 2³¹ − 1 (RFC 9113 §6.9.1); `None`: so
    /// large that it never limits.
    pub window_bytes: Option<u32>,
}

impl Http2Limits {
    /// Most concurrent streams of a connection where nothing is said.
    pub const STREAMS_DEFAULT: u32 = 100;

    /// Most concurrent streams that a connection is used for, whatever the target permits.
    pub fn streams(&self) -> u32 {
        self.streams_max.unwrap_or(Http2Limits::STREAMS_DEFAULT)
    }
}
