//! TLS of the server's connections, and the certificate with its key. All uses of rustls by the
//! server. Reads no socket; writes all records in one call.

use knee_engine::input;
use knee_engine::sys::clock;
use knee_engine::sys::socket::Socket;
use knee_load::spec::{TlsResume, TlsVersion};
use quinn_proto::crypto::rustls::QuicServerConfig;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{
    NoServerSessionStorage, ServerConfig, ServerConnection, ServerSessionMemoryCache,
};
use rustls::version::{TLS12, TLS13};
use rustls::{HandshakeKind, SupportedProtocolVersion};
use std::fmt;
use std::io::{self, IoSlice, Read, Write};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Most sealed bytes read at once. Their content fits a connection's buffer.
pub(super) const SEALED_MAX: usize = 16 * 1024;

/// Most plain bytes sealed before they are sent. Bounds the memory of large bodies.
const SEAL_MAX: usize = 64 * 1024;

/// Most bytes of early data, if permitted.
const EARLY_DATA_MAX: u32 = 16 * 1024;

/// ALPN name of HTTP/2 (RFC 9113 §3.2).
const HTTP2: &[u8] = b"h2";

/// ALPN name of HTTP/3 (RFC 9114 §3.1).
const HTTP3: &[u8] = b"h3";

/// Most remembered sessions if each may be resumed only once, so that early data is never served
/// twice (RFC 8446 §8.1).
const SESSIONS_MAX: usize = 64 * 1024;

/// TLS settings of a server.
#[derive(Clone)]
pub struct ServerTls(Arc<ServerConfig>);

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerTls")
    }
}

impl ServerTls {
    /// Settings with this identity, these versions, and these ways to resume.
    ///
    /// # Errors
    /// The key does not fit the certificate, or is of an unknown kind: a line of text.
    pub fn new(
        identity: Identity,
        (min, max): (TlsVersion, TlsVersion),
        resume: TlsResume,
    ) -> Result<ServerTls, String> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let within = |version| min <= version && version <= max;
        let versions = [(TlsVersion::Tls13, &TLS13), (TlsVersion::Tls12, &TLS12)];
        let versions: Vec<&'static SupportedProtocolVersion> = versions
            .into_iter()
            .filter_map(|(version, supported)| within(version).then_some(supported))
            .collect();
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)
            .map_err(|e| e.to_string())?
            .with_no_client_auth()
            .with_single_cert(identity.chain, identity.key)
            .map_err(|e| match e {
                rustls::Error::InconsistentKeys(_) => {
                    "the key is not that of the certificate".to_owned()
                }
                other => other.to_string(),
            })?;
        config.alpn_protocols = vec![HTTP2.to_vec(), b"http/1.1".to_vec()];
        match resume {
            TlsResume::Ticket => {
                config.ticketer = aws_lc_rs::Ticketer::new().map_err(|e| e.to_string())?;
            }
            TlsResume::Off => {
                config.session_storage = Arc::new(NoServerSessionStorage {});
                config.send_tls13_tickets = 0;
            }
            TlsResume::EarlyData => {
                config.session_storage = ServerSessionMemoryCache::new(SESSIONS_MAX);
                config.max_early_data_size = EARLY_DATA_MAX;
                // What was asked early is answered early.
                config.send_half_rtt_data = true;
            }
        }
        Ok(ServerTls(Arc::new(config)))
    }

    /// The same settings for QUIC, which bounds early data by the windows of its streams.
    ///
    /// # Errors
    /// TLS 1.3 is off: a line of text.
    pub(super) fn for_quic(&self) -> Result<QuicServerConfig, String> {
        let mut config = ServerConfig::clone(&self.0);
        config.alpn_protocols = vec![HTTP3.to_vec()];
        if config.max_early_data_size > 0 {
            config.max_early_data_size = u32::MAX;
        }
        QuicServerConfig::try_from(config).map_err(|_| "HTTP/3 needs TLS 1.3".to_owned())
    }

    /// Starts a connection.
    ///
    /// # Errors
    /// None in correct use.
    pub(super) fn accept(&self) -> io::Result<Secure> {
        let mut tls = ServerConnection::new(Arc::clone(&self.0)).map_err(io::Error::other)?;
        // Bounded by what is sealed at once instead.
        tls.set_buffer_limit(None);
        Ok(Secure {
            tls,
            is_begun: false,
            is_done: false,
            is_failed: false,
            is_cut: false,
            is_ended: false,
            is_early: false,
        })
    }
}

/// Result of a successful handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handshake {
    /// An earlier session was resumed.
    pub(super) is_resumed: bool,
    /// Early data of the client was accepted.
    pub(super) is_early: bool,
}

/// The client broke the rules of TLS, or gave up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken;

/// State of one secured connection.
pub(super) struct Secure {
    tls: ServerConnection,
    /// Bytes have been received.
    is_begun: bool,
    /// The end of the handshake has been reported.
    is_done: bool,
    is_failed: bool,
    /// The connection is closed without `close_notify`.
    is_cut: bool,
    /// The client has sent `close_notify`.
    pub(super) is_ended: bool,
    is_early: bool,
}

impl fmt::Debug for Secure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secure").field("is_done", &self.is_done).finish_non_exhaustive()
    }
}

impl Secure {
    /// Opens received bytes, at most [`SEALED_MAX`], into `into`, which has room for their content.
    /// Returns its length.
    ///
    /// # Errors
    /// No TLS, or a broken rule. An alert for the client waits to be sent.
    pub(super) fn open(&mut self, sealed: &[u8], into: &mut [u8]) -> Result<usize, Broken> {
        self.is_begun = true;
        let (mut rest, mut opened) = (sealed, 0);
        while !rest.is_empty() {
            // At most a few kilobytes each time; none of it fails or waits.
            let taken = self.tls.read_tls(&mut rest);
            let state = match taken {
                Ok(count) if count > 0 => self.tls.process_new_packets(),
                _ => return Err(self.fail()),
            };
            opened += self.take(&mut into[opened..]);
            match state {
                Ok(state) => self.is_ended |= state.peer_has_closed(),
                Err(_) => return Err(self.fail()),
            }
            if self.is_ended {
                break;
            }
        }
        Ok(opened)
    }

    fn fail(&mut self) -> Broken {
        self.is_failed = true;
        Broken
    }

    /// Reads opened data.
    fn take(&mut self, into: &mut [u8]) -> usize {
        let mut taken = 0;
        if !self.is_done
            && let Some(mut early) = self.tls.early_data()
        {
            while let Ok(count @ 1..) = early.read(&mut into[taken..]) {
                self.is_early = true;
                taken += count;
            }
        }
        while let Ok(count @ 1..) = self.tls.reader().read(&mut into[taken..]) {
            taken += count;
        }
        taken
    }

    /// The result of the handshake, once.
    pub(super) fn handshake(&mut self) -> Option<Handshake> {
        if self.is_done || self.tls.is_handshaking() {
            return None;
        }
        self.is_done = true;
        Some(Handshake {
            is_resumed: self.tls.handshake_kind() == Some(HandshakeKind::Resumed),
            is_early: self.is_early,
        })
    }

    /// Whether HTTP/2 was agreed on.
    pub(super) fn is_http2(&self) -> bool {
        self.tls.alpn_protocol() == Some(HTTP2)
    }

    /// Whether a handshake has begun and not ended.
    pub(super) fn in_handshake(&self) -> bool {
        self.is_begun && !self.is_done
    }

    /// Seals the front of `plain`. Returns the number of bytes.
    pub(super) fn seal(&mut self, plain: &[u8]) -> usize {
        let first = &plain[..plain.len().min(SEAL_MAX)];
        // Into memory, without a limit: it takes all.
        self.tls.writer().write(first).unwrap_or(0)
    }

    /// Whether sealed bytes wait to be sent.
    pub(super) fn is_pending(&self) -> bool {
        self.tls.wants_write()
    }

    /// Sends sealed bytes as far as they fit. Returns their number.
    ///
    /// # Errors
    /// `WouldBlock` if nothing fits; reset, broken pipe.
    pub(super) fn send(&mut self, socket: &Socket) -> io::Result<usize> {
        self.tls.write_tls(&mut Outlet(socket))
    }

    /// Marks the connection to be closed without `close_notify`.
    pub(super) fn cut(&mut self) {
        self.is_cut = true;
    }

    /// Sends `close_notify`, unless an alert was sent or nothing yet.
    pub(super) fn end(&mut self) {
        let is_silent = self.is_failed || self.is_cut;
        if !is_silent && (self.is_done || self.is_early) {
            self.tls.send_close_notify();
        }
    }
}

/// A socket that takes many records in one call.
struct Outlet<'a>(&'a Socket);

impl Write for Outlet<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send(bytes)
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match pieces {
            [piece] => self.0.send(piece),
            _ => self.0.send_pieces(pieces),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How long a certificate that was made here is valid.
const VALIDITY: Duration = Duration::from_secs(7 * 86_400);
/// Validity before the time at which it was made: clients' clocks may be behind.
const BEFORE: Duration = Duration::from_secs(3_600);

/// A certificate with those between it and its root, and its private key.
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    authority: Option<String>,
}

/// The key stays out of it.
impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Identity of {} certificates", self.chain.len())
    }
}

/// What is wrong with the files of an identity, as a line for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdentityError {
    /// With that of the certificate.
    Certificate(String),
    /// With that of the key.
    Key(String),
}

impl Identity {
    /// Makes one for `localhost`, its addresses, the name of this host and `address`, valid for a
    /// week. An authority that exists for this alone signs it; its key is gone when this returns.
    ///
    /// # Errors
    /// The library cannot, as a line for people.
    pub fn make(address: Option<IpAddr>) -> Result<Identity, String> {
        make(names(address)).map_err(|e| format!("no certificate can be made: {e}"))
    }

    /// Reads one from PEM files: the certificate first, behind it those that lead to its root.
    ///
    /// # Errors
    /// A file cannot be read, or has no such thing in it.
    pub fn read(certificate: &Path, key: &Path) -> Result<Identity, IdentityError> {
        let chain = read_chain(certificate).map_err(IdentityError::Certificate)?;
        let key = read_key(key).map_err(IdentityError::Key)?;
        Ok(Identity { chain, key, authority: None })
    }

    /// The certificate of the authority that signed a certificate made here, as PEM: what clients
    /// have to trust.
    pub fn authority(&self) -> Option<&str> {
        self.authority.as_deref()
    }

    /// Puts the key of another in the place of this one's.
    #[cfg(test)]
    pub(in crate::http) fn set_key(&mut self, other: Identity) {
        self.key = other.key;
    }
}

fn read_chain(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let pem = read_pem(file)?;
    let chain = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    let chain = chain.and_then(|chain| {
        if chain.is_empty() {
            return Err(pem::Error::NoItemsFound);
        }
        Ok(chain)
    });
    chain.map_err(|e| wrong_file(file, "certificate", &e))
}

fn read_key(file: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let key = PrivateKeyDer::from_pem_slice(&read_pem(file)?);
    key.map_err(|e| wrong_file(file, "private key", &e))
}

fn read_pem(file: &Path) -> Result<Vec<u8>, String> {
    input::read(file, input::SECRETS_MAX).map_err(|why| format!("'{}' {why}", file.display()))
}

fn wrong_file(path: &Path, what: &str, error: &pem::Error) -> String {
    let path = path.display();
    match error {
        pem::Error::NoItemsFound => format!("'{path}' has no {what} in PEM format"),
        other => format!("'{path}' is not valid PEM: {other}"),
    }
}

fn names(address: Option<IpAddr>) -> Vec<String> {
    let mut names = ["localhost", "127.0.0.1", "::1"].map(String::from).to_vec();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let address = address.filter(|a| !a.is_unspecified());
    let others = [host.trim().to_owned()].into_iter();
    for name in others.chain(address.map(|a| a.to_string())) {
        if !name.is_empty() && name.is_ascii() && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn make(names: Vec<String>) -> Result<Identity, rcgen::Error> {
    let now = Duration::from_nanos(clock::realtime_ns());
    let from = rcgen::date_time_ymd(1970, 1, 1) + now.saturating_sub(BEFORE);
    let until = from + BEFORE + VALIDITY;
    let params = |names: Vec<String>, common_name: &str| {
        let mut params = CertificateParams::new(names)?;
        (params.not_before, params.not_after) = (from, until);
        params.distinguished_name.push(DnType::CommonName, common_name);
        Ok::<_, rcgen::Error>(params)
    };
    let mut authority = params(Vec::new(), "knee serve, made on the spot")?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority_key = KeyPair::generate()?;
    let authority_pem = authority.self_signed(&authority_key)?.pem();
    let issuer = Issuer::new(authority, authority_key);

    let mut leaf = params(names, "localhost")?;
    leaf.use_authority_key_identifier_extension = true;
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    let certificate = leaf.signed_by(&key, &issuer)?;
    Ok(Identity {
        chain: vec![certificate.der().clone()],
        key: PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
        authority: Some(authority_pem),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_this_host_once_each() {
        let all = names(Some([192, 0, 2, 7].into()));
        assert_eq!(&all[..3], ["localhost", "127.0.0.1", "::1"]);
        assert!(all.contains(&"192.0.2.7".to_owned()));
        assert_eq!(names(Some([127, 0, 0, 1].into())), names(None));
        assert_eq!(names(Some([0, 0, 0, 0].into())), names(None));
    }

    #[test]
    fn files_that_are_none_are_named() {
        let nowhere = Path::new("/nonexistent/a.pem");
        let error = Identity::read(nowhere, nowhere).unwrap_err();
        let IdentityError::Certificate(line) = error else {
            panic!("{error:?}");
        };
        assert!(line.starts_with("'/nonexistent/a.pem' cannot be read"), "{line}");
    }

    #[test]
    fn the_key_is_never_shown() {
        let identity = Identity::make(None).unwrap();
        assert_eq!(format!("{identity:?}"), "Identity of 1 certificates");
        let pem = identity.authority().unwrap();
        assert!(pem.starts_with("-----BEGIN CERTIFICATE-----"));
        assert!(!pem.contains("KEY"));
    }
}
