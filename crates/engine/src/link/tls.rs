//! TLS by rustls: the client's side. All of rustls that the client uses is here and in `config`.

use super::Link;
use knee_core::measure::{Agreed, Handshakes};
use knee_core::spec::TlsResume;
use knee_core::time::Nanos;
use rustls::client::ClientConnection;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, HandshakeKind, ProtocolVersion};
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::Instant;

/// With whom connections are secured, and how.
#[derive(Clone)]
pub(crate) struct TlsTarget {
    pub(super) config: Arc<ClientConfig>,
    pub(super) name: ServerName<'static>,
    pub(super) own: Arc<super::config::Own>,
    pub(super) resume: TlsResume,
}

/// One connection's TLS. Boxed, as a pool has room for many connections that are not open.
pub(crate) struct Tls {
    session: Box<ClientConnection>,
    /// What this process spent on the handshake.
    spent: Nanos,
}

impl Link for Tls {
    type Shared = Option<TlsTarget>;

    const IS_CLEAR: bool = false;

    fn new(target: &mut Option<TlsTarget>) -> Result<Tls, String> {
        let Some(TlsTarget { config, name, .. }) = target else {
            return Err("nothing is known of how to secure it".to_owned());
        };
        let begun = Instant::now();
        let session = ClientConnection::new(Arc::clone(config), name.clone());
        let mut session = session.map_err(|error| error.to_string())?;
        // What is sent is bounded by those who send it.
        session.set_buffer_limit(None);
        Ok(Tls {
            session: Box::new(session),
            spent: since(begun),
        })
    }

    fn take_in(&mut self, wire: &mut &[u8]) -> Result<(), String> {
        let handshake = self.session.is_handshaking().then(Instant::now);
        let taken = self.session.read_tls(wire).map_err(|e| e.to_string())?;
        if taken == 0 {
            // It has said that it sends no more: what follows means nothing.
            *wire = &[];
        }
        let processed = self.session.process_new_packets();
        if let Some(begun) = handshake {
            self.spent += since(begun);
        }
        processed
            .map(drop)
            .map_err(|error| super::failure::words(&error))
    }

    #[inline]
    fn drain(&mut self, mut take: impl FnMut(&[u8])) {
        while let Ok(chunk @ [_, ..]) = self.session.reader().into_first_chunk() {
            let length = chunk.len();
            take(chunk);
            self.session.reader().consume(length);
        }
    }

    #[inline]
    fn is_secured(&self) -> bool {
        !self.session.is_handshaking()
    }

    #[inline]
    fn seal(&mut self, plain: &[u8]) {
        // A session without a limit of its buffer takes all.
        let sealed = self.session.writer().write_all(plain);
        debug_assert!(sealed.is_ok());
    }

    #[inline]
    fn has_wire(&self) -> bool {
        self.session.wants_write()
    }

    #[inline]
    fn take_wire(&mut self, into: &mut Vec<u8>) {
        while self.session.wants_write() && self.session.write_tls(into).is_ok() {}
    }

    fn note(&self, of: &mut Handshakes) {
        match self.session.handshake_kind() {
            Some(HandshakeKind::Resumed) => of.resumed += 1,
            _ => of.full += 1,
        }
        of.generator += self.spent;
        if of.agreed.is_none() {
            of.agreed = Some(self.agreed());
        }
    }
}

impl Tls {
    /// Whether the server tells only after the handshake that it refuses the client.
    pub(super) fn is_told_later(&self) -> bool {
        self.session.protocol_version() == Some(ProtocolVersion::TLSv1_3)
    }

    /// What both sides agreed on.
    pub(super) fn agreed(&self) -> Agreed {
        let session = &self.session;
        let cipher = session.negotiated_cipher_suite().map(|suite| suite.suite());
        let group = session.negotiated_key_exchange_group();
        let protocol = session.alpn_protocol();
        Agreed {
            version: version_name(session.protocol_version()).to_owned(),
            cipher: cipher.and_then(|c| c.as_str()).unwrap_or("?").to_owned(),
            group: group.and_then(|g| g.name().as_str()).map(str::to_owned),
            protocol: protocol.map(|p| String::from_utf8_lossy(p).into_owned()),
        }
    }
}

fn version_name(version: Option<ProtocolVersion>) -> &'static str {
    match version {
        Some(ProtocolVersion::TLSv1_2) => "1.2",
        Some(ProtocolVersion::TLSv1_3) => "1.3",
        _ => "?",
    }
}

fn since(begun: Instant) -> Nanos {
    Nanos(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
}
