//! Protocols of connections: HTTP and TLS.

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
    /// Most concurrent streams of a connection by default.
    pub const STREAMS_DEFAULT: u32 = 100;

    /// Most concurrent streams that a connection is used for, whatever the target permits.
    pub fn streams(&self) -> u32 {
        self.streams_max.unwrap_or(Http2Limits::STREAMS_DEFAULT)
    }
}

/// How the connections to a target are secured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsSpec {
    /// The name that is asked for (SNI, RFC 6066 §3) and that the certificate has to be for;
    /// `None`: the host of the URL.
    pub server_name: Option<String>,
    /// A PEM file of the certificates to trust; `None`: those of this system.
    pub roots: Option<String>,
    /// Whether the target's certificate is accepted unverified.
    pub is_insecure: bool,
    /// The client's certificate, if the target asks for one.
    pub certificate: Option<ClientCertificate>,
    /// The oldest version of TLS to be offered; `None`: 1.2.
    pub version_min: Option<TlsVersion>,
    /// The newest; `None`: 1.3.
    pub version_max: Option<TlsVersion>,
    /// The key exchange groups to be offered, the preferred first; empty: the library's choice.
    pub groups: Vec<TlsGroup>,
    /// Resumption of earlier sessions.
    pub resume: TlsResume,
}

/// A certificate and its key, in PEM files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientCertificate {
    /// The file of the certificate and of those between it and its root.
    pub certificate: String,
    /// The file of its private key.
    pub key: String,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TlsVersion {
    /// RFC 5246.
    #[serde(rename = "1.2")]
    Tls12,
    /// RFC 8446.
    #[serde(rename = "1.3")]
    Tls13,
}

/// A group for the key exchange, by its name in the registry of IANA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TlsGroup {
    /// RFC 7748.
    #[serde(rename = "x25519")]
    X25519,
    /// NIST P-256.
    #[serde(rename = "secp256r1")]
    Secp256r1,
    /// NIST P-384.
    #[serde(rename = "secp384r1")]
    Secp384r1,
    /// X25519 and ML-KEM-768 together (draft-ietf-tls-ecdhe-mlkem).
    #[serde(rename = "X25519MLKEM768")]
    X25519MlKem768,
}

/// Resumption of earlier sessions with the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TlsResume {
    /// They are resumed by ticket, as browsers do (RFC 8446 §2.2, RFC 5077).
    #[default]
    #[serde(rename = "ticket")]
    Ticket,
    /// Every handshake is a full one.
    #[serde(rename = "off")]
    Off,
    /// As by ticket, and requests of safe methods come with the handshake where the target permits
    /// that (RFC 8446 §2.3, RFC 8470).
    #[serde(rename = "0rtt")]
    EarlyData,
}
