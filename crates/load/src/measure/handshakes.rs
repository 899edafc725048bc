//! How connections were established and secured.

use super::Histogram;
use super::sums::merged;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// The parameters of a connection on which client and server agreed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreed {
    /// The version of TLS, such as `1.3`.
    pub version: String,
    /// The cipher suite, by its name in IANA's registry.
    pub cipher: String,
    /// The group of the key exchange, by its name there; `None` where there was none, as the
    /// session was resumed without one.
    pub group: Option<String>,
    /// The application protocol by ALPN, such as `h2`; `None`: none was agreed on.
    pub protocol: Option<String>,
}

merged! {
/// The connections of one worker, or of several together, that were secured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Handshakes {
    /// Handshakes with certificate and key exchange.
    pub full: u64 => add,
    /// Handshakes that resumed an earlier session.
    pub resumed: u64 => add,
    /// Handshakes that failed; those that were not over in time are not among them.
    pub failed: u64 => add,
    /// Handshakes with early data.
    pub early_data: EarlyData => by_hand,
    /// From a connection's establishment until it was secured.
    pub time: Histogram => merge,
    /// From the beginning to connect until the connection was established.
    pub connect: Histogram => merge,
    /// From then, or from when it was secured, until a WebSocket was open.
    pub opening: Histogram => merge,
    /// The generator's own time for the cryptography of all handshakes.
    pub generator: Nanos => add,
    /// The parameters of the first secured connection.
    pub agreed: Option<Agreed> => first,
    /// Why the first handshake failed.
    pub failed_because: Option<String> => first,
}
}

/// Handshakes whose first bytes a request came with (RFC 8446 §2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlyData {
    /// The target took the request so.
    pub taken: u64,
    /// It did not, and got the request once more after the handshake.
    pub refused: u64,
}

impl Handshakes {
    /// Counts one that failed, for this reason.
    pub fn fail(&mut self, because: String) {
        self.failed += 1;
        self.failed_because.get_or_insert(because);
    }

    /// Adds another's.
    pub fn merge(&mut self, mut other: Handshakes) {
        self.merge_fields(&mut other);
        self.early_data.taken += other.early_data.taken;
        self.early_data.refused += other.early_data.refused;
    }
}
