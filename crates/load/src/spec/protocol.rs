//! Protocols of connections: their URLs, their settings, how they are secured, and what the rest of
//! knee has to know of each.

mod dns;
mod websocket;

use crate::time::Nanos;
pub use dns::{DnsNames, DnsQuestion, DnsSettings, SkippedLines, parse_names};
use serde::{Deserialize, Serialize};
use std::fmt;
pub use websocket::{DeflateOffer, DeflateParameter, WEBSOCKET_HEADERS};

/// What is spoken with a target, and the settings that only this protocol has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// HTTP.
    Http(HttpSettings),
    /// WebSocket (RFC 6455). An operation is a message and its echo.
    WebSocket(WebSocketSettings),
    /// gRPC over HTTP/2. An operation is a call; requests hold its encoded messages.
    Grpc(Http2Limits),
    /// DNS (RFC 1035). An operation is a query and its answer.
    Dns(DnsSettings),
}

impl Default for Protocol {
    fn default() -> Protocol {
        Protocol::Http(HttpSettings::default())
    }
}

impl Protocol {
    /// The settings of HTTP: those of the load, or those of the handshake that opens a connection.
    pub fn http(&self) -> HttpSettings {
        match self {
            Protocol::Http(settings) => *settings,
            Protocol::WebSocket(_) | Protocol::Dns(_) => {
                HttpSettings { version: HttpVersion::Http11, ..HttpSettings::default() }
            }
            Protocol::Grpc(http2) => HttpSettings { version: HttpVersion::Http2, http2: *http2 },
        }
    }

    /// Fixes the version of HTTP, if the protocol leaves a choice.
    pub fn set_version(&mut self, version: HttpVersion) {
        match self {
            Protocol::Http(settings) => settings.version = version,
            Protocol::WebSocket(_) | Protocol::Grpc(_) | Protocol::Dns(_) => {}
        }
    }

    /// What operations are carried by, if that is not HTTP itself.
    pub fn application(&self) -> Option<&'static str> {
        match self {
            Protocol::Http(_) => None,
            Protocol::WebSocket(_) => Some("WebSocket"),
            Protocol::Grpc(_) => Some("gRPC"),
            Protocol::Dns(settings) if settings.over_tcp => Some("DNS over TCP"),
            Protocol::Dns(_) => Some("DNS over UDP"),
        }
    }

    /// Whether a handshake of its own opens each connection.
    pub fn has_opening(&self) -> bool {
        matches!(self, Protocol::WebSocket(_))
    }

    /// Whether it is spoken in datagrams.
    pub fn is_in_datagrams(&self) -> bool {
        match self {
            Protocol::Dns(settings) => !settings.over_tcp,
            Protocol::Http(settings) => settings.version == HttpVersion::Http3,
            Protocol::WebSocket(_) | Protocol::Grpc(_) => false,
        }
    }

    /// Whether its connections begin in HTTP.
    pub fn begins_in_http(&self) -> bool {
        !matches!(self, Protocol::Dns(_))
    }

    /// Whether operations are what the target sends by itself.
    pub fn subscribes(&self) -> bool {
        matches!(self, Protocol::WebSocket(WebSocketSettings { subscribes: true, .. }))
    }

    /// Whether all connections are opened at the start, and each is used in turn.
    pub fn keeps_all_open(&self) -> bool {
        matches!(self, Protocol::WebSocket(_) | Protocol::Dns(_))
    }

    /// Most operations under way on a connection of this version of HTTP. `None`: a connection has
    /// one at a time.
    pub fn shared_by(&self, version: HttpVersion) -> Option<u32> {
        match self {
            Protocol::Http(settings) => version.has_streams().then(|| settings.http2.streams()),
            Protocol::WebSocket(settings) => Some(settings.messages_max),
            Protocol::Grpc(http2) => Some(http2.streams()),
            Protocol::Dns(settings) => Some(settings.queries_max),
        }
    }
}

/// The scheme of a URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheme {
    /// `http` (RFC 9110 §4.2.1).
    #[default]
    Http,
    /// `https` (RFC 9110 §4.2.2).
    Https,
    /// `ws` (RFC 6455 §3).
    Ws,
    /// `wss`.
    Wss,
    /// `grpc`.
    Grpc,
    /// `grpcs`.
    Grpcs,
    /// `dns`: over UDP.
    Dns,
    /// `dns+tcp`.
    DnsTcp,
    /// `dns+tls` (RFC 7858).
    DnsTls,
}

/// What a scheme stands for.
struct SchemeRow {
    scheme: Scheme,
    name: &'static str,
    port: u16,
    is_secure: bool,
}

const SCHEMES: &[SchemeRow] = &[
    SchemeRow { scheme: Scheme::Http, name: "http", port: 80, is_secure: false },
    SchemeRow { scheme: Scheme::Https, name: "https", port: 443, is_secure: true },
    SchemeRow { scheme: Scheme::Ws, name: "ws", port: 80, is_secure: false },
    SchemeRow { scheme: Scheme::Wss, name: "wss", port: 443, is_secure: true },
    SchemeRow { scheme: Scheme::Grpc, name: "grpc", port: 50_051, is_secure: false },
    SchemeRow { scheme: Scheme::Grpcs, name: "grpcs", port: 443, is_secure: true },
    SchemeRow { scheme: Scheme::Dns, name: "dns", port: 53, is_secure: false },
    SchemeRow { scheme: Scheme::DnsTcp, name: "dns+tcp", port: 53, is_secure: false },
    SchemeRow { scheme: Scheme::DnsTls, name: "dns+tls", port: 853, is_secure: true },
];

impl Scheme {
    /// The scheme of this name, in any case of letters.
    pub fn named(name: &str) -> Option<Scheme> {
        let row = SCHEMES.iter().find(|row| name.eq_ignore_ascii_case(row.name));
        row.map(|row| row.scheme)
    }

    /// All schemes, or the secured ones: `http://, https:// or ws://`.
    pub fn list(only_secure: bool) -> String {
        let rows = SCHEMES.iter().filter(|row| row.is_secure || !only_secure);
        let mut names: Vec<String> = rows.map(|row| format!("{}://", row.name)).collect();
        let last = names.pop().unwrap_or_default();
        format!("{} or {last}", names.join(", "))
    }

    /// Its name, as in a URL.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The port of URLs that give none.
    pub fn port(self) -> u16 {
        self.row().port
    }

    /// Whether connections are to be secured.
    pub fn is_secure(self) -> bool {
        self.row().is_secure
    }

    fn row(self) -> &'static SchemeRow {
        &SCHEMES[self as usize]
    }
}

/// Settings of HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpSettings {
    /// The version.
    pub version: HttpVersion,
    /// The limits of connections of HTTP/2 and HTTP/3.
    pub http2: Http2Limits,
}

/// Settings of WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebSocketSettings {
    /// How an echo is matched with its message.
    pub matching: Matching,
    /// Most messages under way on a connection, at least 1.
    pub messages_max: u32,
    /// Whether messages are sent as bytes, and not as text.
    pub is_binary: bool,
    /// Time between two pings of a connection; `None`: no pings.
    pub ping_every: Option<Nanos>,
    /// Longest message that is accepted, in bytes.
    pub message_bytes_max: u32,
    /// Whether the server sends by itself: an operation is a message of the server, from the time
    /// that it carries.
    pub subscribes: bool,
}

impl WebSocketSettings {
    /// Stands in a message for its number.
    pub const NUMBER: &str = "{seq}";

    /// Stands in a message for the time at which it leaves.
    pub const TIME: &str = "{time}";

    /// The content of messages by default.
    pub const CONTENT: &str = "knee";

    /// Longest message that is accepted by default: 16 MiB.
    pub const MESSAGE_BYTES_MAX: u32 = 16 << 20;
}

/// How the echo of a message is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Matching {
    /// By the number that the message carries.
    Number,
    /// By its place: echoes come in the order of messages.
    Order,
    /// Not at all. An operation ends once the kernel has the message.
    None,
}

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
    /// HTTP/3 (RFC 9114): over QUIC, without asking.
    #[serde(rename = "3")]
    Http3,
    /// HTTP/3 if the target offers it by `Alt-Svc` (RFC 7838), and otherwise as `Auto`. Settled
    /// before the load.
    #[serde(rename = "3 if offered")]
    Http3IfOffered,
}

impl HttpVersion {
    /// Whether a connection has streams, and so many operations at a time.
    pub fn has_streams(self) -> bool {
        matches!(self, HttpVersion::Http2 | HttpVersion::Http3)
    }
}

/// `HTTP/1.1`, `HTTP/2`, `HTTP/3`.
impl fmt::Display for HttpVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HttpVersion::Auto => "HTTP by ALPN",
            HttpVersion::Http11 => "HTTP/1.1",
            HttpVersion::Http2 => "HTTP/2",
            HttpVersion::Http3 => "HTTP/3",
            HttpVersion::Http3IfOffered => "HTTP/3 if offered",
        })
    }
}

/// The limits of connections of HTTP/2 and HTTP/3 on the generator's side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Http2Limits {
    /// Most concurrent streams of a connection, at least 1; `None`: as many as the target permits,
    /// up to [`Http2Limits::STREAMS_DEFAULT`].
    pub streams_max: Option<u32>,
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

/// A certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientCertificate {
    /// The certificate and those between it and its root.
    pub certificate: Pem,
    /// Its private key.
    pub key: Pem,
}

/// Where something in PEM form is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Pem {
    /// In a file of this name.
    File(String),
    /// Here.
    Text {
        /// What messages call it.
        name: String,
        /// The PEM form itself.
        pem: String,
    },
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_stand_in_their_rows() {
        for row in SCHEMES {
            assert_eq!(row.scheme.name(), row.name);
            assert_eq!(Scheme::named(&row.name.to_uppercase()), Some(row.scheme));
        }
        assert_eq!(Scheme::list(true), "https://, wss://, grpcs:// or dns+tls://");
    }
}
