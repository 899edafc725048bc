//! TLS of a connection of QUIC (RFC 9001): rustls behind the interface of quinn-proto, which keeps
//! what reports need: cipher, group, resumption, and why a handshake failed.

use knee_load::measure::Agreed;
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::crypto::{
    self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};
use rustls::pki_types::ServerName;
use rustls::quic::{ClientConnection, DirectionalKeys, KeyChange, Secrets, Suite, Version};
use rustls::{CipherSuite, HandshakeKind, SupportedCipherSuite};
use std::any::Any;
use std::io::Cursor;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The version of QUIC that is spoken (RFC 9000 §15).
pub const VERSION: u32 = 1;

/// What a server proved and agreed on, or why it did not.
#[derive(Clone, Debug)]
pub(super) struct HandshakeResult {
    /// The parameters, once the handshake is over.
    pub(super) agreed: Option<Agreed>,
    /// Whether it went on from an earlier session.
    pub(super) is_resumed: bool,
    /// Why TLS refused the server.
    pub(super) error: Option<rustls::Error>,
    /// Time that this process spent in TLS.
    pub(super) spent: Duration,
}

/// With whom connections are secured, and how.
pub(super) struct SessionConfig {
    config: Arc<rustls::ClientConfig>,
    name: ServerName<'static>,
    /// The suite of Initial packets (RFC 9001 §5.2).
    initial: Suite,
    /// Checks the integrity of Retry packets (RFC 9001 §5.8).
    retries: Arc<QuicClientConfig>,
}

impl SessionConfig {
    /// # Errors
    /// The provider has no AES-128-GCM, or TLS 1.3 is off.
    pub(super) fn new(
        config: &Arc<rustls::ClientConfig>,
        name: &ServerName<'static>,
    ) -> Result<SessionConfig, String> {
        let missing = || "QUIC needs TLS 1.3 with TLS_AES_128_GCM_SHA256".to_owned();
        let suites = config.crypto_provider().cipher_suites.iter();
        let mut initial = suites.filter_map(|suite| match suite {
            SupportedCipherSuite::Tls13(suite)
                if suite.common.suite == CipherSuite::TLS13_AES_128_GCM_SHA256 =>
            {
                suite.quic_suite()
            }
            _ => None,
        });
        let retries = QuicClientConfig::try_from(Arc::clone(config)).map_err(|_| missing())?;
        Ok(SessionConfig {
            config: Arc::clone(config),
            name: name.clone(),
            initial: initial.next().ok_or_else(missing)?,
            retries: Arc::new(retries),
        })
    }
}

impl crypto::ClientConfig for SessionConfig {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        _: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        if version != VERSION {
            return Err(UnsupportedVersion.into());
        }
        let begun = Instant::now();
        let mut encoded = Vec::new();
        params.write(&mut encoded);
        let (config, name) = (Arc::clone(&self.config), self.name.clone());
        let connection = ClientConnection::new(config, Version::V1, name, encoded)
            .map_err(|error| ConnectError::InvalidServerName(error.to_string()))?;
        Ok(Box::new(QuicSession {
            connection,
            params: *params,
            config: self,
            next: None,
            is_told: false,
            error: None,
            spent: begun.elapsed(),
        }))
    }
}

struct QuicSession {
    config: Arc<SessionConfig>,
    connection: ClientConnection,
    params: TransportParameters,
    /// Secrets of the next key update (RFC 9001 §6).
    next: Option<Secrets>,
    /// Whether the library knows that the handshake's data are here.
    is_told: bool,
    error: Option<rustls::Error>,
    spent: Duration,
}

impl QuicSession {
    fn agreed(&self) -> Option<Agreed> {
        let connection = Some(&self.connection).filter(|c| !c.is_handshaking())?;
        let group = connection.negotiated_key_exchange_group();
        let suite = connection.negotiated_cipher_suite()?.suite();
        Some(Agreed {
            version: "1.3".to_owned(),
            cipher: suite.as_str().unwrap_or("?").to_owned(),
            group: group.and_then(|group| group.name().as_str()).map(str::to_owned),
            protocol: connection.alpn_protocol().map(|p| String::from_utf8_lossy(p).into_owned()),
        })
    }
}

/// Keys of both directions, as the library takes them.
fn keys(local: DirectionalKeys, remote: DirectionalKeys) -> Keys {
    Keys {
        header: KeyPair { local: Box::new(local.header), remote: Box::new(remote.header) },
        packet: KeyPair { local: Box::new(local.packet), remote: Box::new(remote.packet) },
    }
}

impl crypto::Session for QuicSession {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        let side = match side {
            Side::Client => rustls::Side::Client,
            Side::Server => rustls::Side::Server,
        };
        let initial = self.config.initial.keys(dst_cid, side, Version::V1);
        keys(initial.local, initial.remote)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        Some(Box::new(HandshakeResult {
            agreed: self.agreed(),
            is_resumed: self.connection.handshake_kind() == Some(HandshakeKind::Resumed),
            error: self.error.clone(),
            spent: self.spent,
        }))
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let keys = self.connection.zero_rtt_keys()?;
        Some((Box::new(keys.header), Box::new(keys.packet)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        Some(self.connection.is_early_data_accepted())
    }

    fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        let begun = Instant::now();
        let read = self.connection.read_hs(bytes);
        self.spent += begun.elapsed();
        if let Err(error) = read {
            // Without an alert of its own it is internal_error (RFC 8446 §6).
            let alert = self.connection.alert().map_or(80, u8::from);
            self.error = Some(error);
            return Err(TransportErrorCode::crypto(alert).into());
        }
        let is_known = self.connection.alpn_protocol().is_some() || !self.is_handshaking();
        Ok(is_known && !std::mem::replace(&mut self.is_told, true))
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let Some(encoded) = self.connection.quic_transport_parameters() else {
            return Ok(None);
        };
        let params = TransportParameters::read(Side::Client, &mut Cursor::new(encoded));
        Ok(Some(params?))
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        let begun = Instant::now();
        let change = self.connection.write_hs(out);
        self.spent += begun.elapsed();
        let new = match change? {
            KeyChange::Handshake { keys } => keys,
            KeyChange::OneRtt { keys, next } => {
                self.next = Some(next);
                keys
            }
        };
        Some(keys(new.local, new.remote))
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let next = self.next.as_mut()?.next_packet_keys();
        Some(KeyPair { local: Box::new(next.local), remote: Box::new(next.remote) })
    }

    fn is_valid_retry(&self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        use quinn_proto::crypto::ClientConfig as _;
        let retries = Arc::clone(&self.config.retries);
        let session = retries.start_session(VERSION, "retry.invalid", &self.params);
        session.is_ok_and(|session| session.is_valid_retry(orig_dst_cid, header, payload))
    }

    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        // HTTP/3 has no use for it.
        Err(ExportKeyingMaterialError)
    }
}
