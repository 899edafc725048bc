//! How connections are secured.

use serde::{Deserialize, Serialize};

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
