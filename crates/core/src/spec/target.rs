//! What the load is sent to.

use serde::{Deserialize, Serialize};

/// An HTTP/1.1 server and what it is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpTarget {
    /// Where to connect.
    pub endpoint: Endpoint,
    /// The requests, at least one; all go to `endpoint`.
    pub requests: Vec<HttpRequest>,
    /// How the next one is picked.
    pub pick: Pick,
    /// Whether a connection serves more than one request.
    pub keep_alive: bool,
}

/// Where a connection goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Endpoint {
    /// A host name or address (an IPv6 address without brackets) and a port.
    Tcp {
        /// Name or address.
        host: String,
        /// Port, 1 to 65535.
        port: u16,
    },
    /// A Unix stream socket.
    Unix {
        /// Its path.
        path: String,
    },
}

/// One request, ready to be serialised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpRequest {
    /// `GET`, `POST`, ….
    pub method: String,
    /// Path and query, beginning with `/` (or `*`).
    pub path: String,
    /// The Host header's value.
    pub host: String,
    /// Further headers in the order given. One named `Host` replaces `host`.
    pub headers: Vec<(String, String)>,
    /// The body; a Content-Length is sent where it is not empty or the method implies one.
    pub body: Vec<u8>,
    /// Relative weight where requests are picked at random, at least 1.
    pub weight: u32,
}

/// How the next of several requests is picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pick {
    /// One after the other, again from the first after the last.
    InOrder,
    /// At random by weight.
    Weighted,
}
