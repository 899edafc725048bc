//! TLS: the client's side of a connection. The handshake and the records are rustls's.

#[cfg(test)]
mod tests;

use super::{HUNG_UP, Link, failure};
use crate::exchange::TlsSetup;
use knee_load::measure::{Agreed, Handshakes};
use knee_load::spec::TlsResume;
use knee_load::time::Nanos;
use rustls::client::ResolvesClientCert;
use rustls::pki_types::ServerName;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ClientConnection, HandshakeKind, ProtocolVersion, SignatureScheme};
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// With whom connections are secured, and how.
#[derive(Clone)]
pub(crate) struct TlsTarget {
    pub(super) config: Arc<ClientConfig>,
    pub(super) name: ServerName<'static>,
    pub(super) client_certificate: Arc<CertificateResolver>,
    pub(super) resume: TlsResume,
}

impl TlsTarget {
    /// What a conversation needs that secures its connections by itself.
    pub(crate) fn setup(&self) -> TlsSetup {
        TlsSetup { config: Arc::clone(&self.config), name: self.name.clone() }
    }
}

/// The client's certificate, if any, and whether a server has requested it.
#[derive(Debug)]
pub(super) struct CertificateResolver {
    key: Option<Arc<CertifiedKey>>,
    is_asked_for: AtomicBool,
}

impl CertificateResolver {
    pub(super) fn new(key: Option<Arc<CertifiedKey>>) -> CertificateResolver {
        CertificateResolver { key, is_asked_for: AtomicBool::new(false) }
    }

    /// Whether a server has requested it since the last call.
    pub(super) fn was_asked_for(&self) -> bool {
        self.is_asked_for.swap(false, Ordering::Relaxed)
    }
}

impl ResolvesClientCert for CertificateResolver {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.is_asked_for.store(true, Ordering::Relaxed);
        self.key.clone()
    }

    /// True also without a certificate, so that requests for one are noticed.
    fn has_certs(&self) -> bool {
        true
    }
}

/// One connection's TLS. Boxed, as a pool has room for many connections that are not open.
pub(crate) struct Tls(Box<Session>);

struct Session {
    connection: ClientConnection,
    stage: Stage,
    record: RecordPosition,
    early: Option<EarlyData>,
    /// The peer has sent `close_notify`.
    is_ended: bool,
    /// Time that this process spent on the handshake.
    spent: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Handshake,
    Secured,
    /// A rule was broken, or the peer ended the handshake. Received bytes are dropped.
    Failed,
}

/// Data sent with the handshake (RFC 8446 §2.3). Kept until the server accepts or refuses them.
#[derive(Default)]
struct EarlyData {
    plain: Vec<u8>,
    /// Bytes of `plain` that the session permitted to send.
    sent: usize,
    /// No further early data is possible.
    is_closed: bool,
    is_accepted: bool,
}

/// Bytes of a record's header: type, version, length (RFC 8446 §5.1).
const HEADER: usize = 5;

/// Position in the record that is being received. Records are passed to rustls one at a time. So
/// the caller learns which bytes a piece of data came in, and a handshake takes nothing that
/// follows it.
#[derive(Default)]
struct RecordPosition {
    header: [u8; HEADER],
    header_bytes: usize,
    body_left: usize,
}

impl RecordPosition {
    /// Takes bytes off the front of `wire`, up to the end of the record at most.
    fn take<'a>(&mut self, wire: &mut &'a [u8]) -> &'a [u8] {
        let of_header = wire.len().min(HEADER - self.header_bytes);
        let end = self.header_bytes + of_header;
        self.header[self.header_bytes..end].copy_from_slice(&wire[..of_header]);
        if of_header > 0 && end == HEADER {
            self.body_left = usize::from(u16::from_be_bytes([self.header[3], self.header[4]]));
        }
        self.header_bytes = end;
        let of_body = self.body_left.min(wire.len() - of_header);
        self.body_left -= of_body;
        let (taken, rest) = wire.split_at(of_header + of_body);
        *wire = rest;
        if self.header_bytes == HEADER && self.body_left == 0 {
            self.header_bytes = 0;
        }
        taken
    }
}

impl Link for Tls {
    type Shared = TlsTarget;

    fn new(target: &mut TlsTarget) -> Result<Tls, String> {
        let begun = Instant::now();
        let connection = ClientConnection::new(Arc::clone(&target.config), target.name.clone());
        let mut connection = connection.map_err(|error| failure::words(&error))?;
        // The pool bounds what is sealed at once.
        connection.set_buffer_limit(None);
        let early = connection.early_data().map(|_| EarlyData::default());
        Ok(Tls(Box::new(Session {
            connection,
            stage: Stage::Handshake,
            record: RecordPosition::default(),
            early,
            is_ended: false,
            spent: since(begun),
        })))
    }

    fn secure(&mut self, wire: &mut &[u8]) -> Result<(), String> {
        let begun = Instant::now();
        let secured = self.0.secure(wire);
        self.0.spent += since(begun);
        secured.inspect_err(|_| self.0.stage = Stage::Failed)
    }

    #[inline]
    fn is_secured(&self) -> bool {
        self.0.stage == Stage::Secured
    }

    fn takes_early(&self) -> bool {
        (self.0.early.as_ref()).is_some_and(|early| !early.is_closed)
    }

    fn is_early_taken(&self) -> bool {
        self.is_secured() && (self.0.early.as_ref()).is_some_and(EarlyData::is_all_accepted)
    }

    #[inline]
    fn open(&mut self, wire: &[u8], take: impl FnMut(&[u8], usize)) -> Result<(), String> {
        if self.0.stage != Stage::Secured {
            return Ok(());
        }
        let opened = self.0.open(wire, take);
        opened.inspect_err(|_| self.0.stage = Stage::Failed)
    }

    #[inline]
    fn is_ended(&self) -> bool {
        self.0.is_ended
    }

    #[inline]
    fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) {
        match self.0.stage {
            // Memory takes all of it, so neither call fails.
            Stage::Secured => {
                let _ = self.0.connection.writer().write_all(plain);
            }
            Stage::Handshake => self.0.seal_early(plain),
            Stage::Failed => {}
        }
        self.take_wire(wire);
    }

    #[inline]
    fn has_wire(&self) -> bool {
        self.0.connection.wants_write()
    }

    #[inline]
    fn take_wire(&mut self, into: &mut Vec<u8>) {
        while self.0.connection.wants_write() {
            let _ = self.0.connection.write_tls(into);
        }
    }

    fn note(&self, of: &mut Handshakes) {
        match self.0.connection.handshake_kind() {
            Some(HandshakeKind::Resumed) => of.resumed += 1,
            _ => of.full += 1,
        }
        match &self.0.early {
            Some(early) if early.is_all_accepted() => of.early_data.taken += 1,
            Some(early) if !early.plain.is_empty() => of.early_data.refused += 1,
            _ => {}
        }
        of.generator += self.0.spent;
        if of.agreed.is_none() {
            of.agreed = self.agreed();
        }
    }
}

impl Session {
    /// Continues the handshake with bytes off the front of `wire`, none behind its last record.
    fn secure(&mut self, wire: &mut &[u8]) -> Result<(), String> {
        if self.stage != Stage::Handshake {
            *wire = &[];
            return Ok(());
        }
        if let Some(early) = &mut self.early {
            early.is_closed = true;
        }
        self.receive(wire).map_err(|error| failure::words(&error))?;
        if self.is_ended {
            return Err(HUNG_UP.to_owned());
        }
        if !self.connection.is_handshaking() {
            self.stage = Stage::Secured;
            self.send_refused_early_data();
        }
        Ok(())
    }

    /// Passes the bytes of one record at most to rustls.
    #[inline]
    fn receive(&mut self, wire: &mut &[u8]) -> Result<(), rustls::Error> {
        let mut piece = self.record.take(wire);
        while !piece.is_empty() {
            // It takes a few kilobytes at a time, and nothing of a record that is too long.
            match self.connection.read_tls(&mut piece) {
                Ok(1..) => {}
                Ok(0) | Err(_) => break,
            }
        }
        let state = self.connection.process_new_packets()?;
        self.is_ended = state.peer_has_closed();
        Ok(())
    }

    #[inline]
    fn open(&mut self, wire: &[u8], mut take: impl FnMut(&[u8], usize)) -> Result<(), String> {
        let mut rest = wire;
        while !rest.is_empty() && !self.is_ended {
            let received = self.receive(&mut rest);
            received.map_err(|error| failure::after_handshake(&error))?;
            let mut reader = self.connection.reader();
            while let Ok(plain @ [_, ..]) = reader.fill_buf() {
                take(plain, rest.len());
                let count = plain.len();
                reader.consume(count);
            }
        }
        Ok(())
    }

    fn seal_early(&mut self, plain: &[u8]) {
        let Some(early) = &mut self.early else {
            return;
        };
        early.plain.extend_from_slice(plain);
        if early.is_closed {
            return;
        }
        let permitted = self.connection.early_data();
        let sent = permitted.map_or(0, |mut data| data.write(plain).unwrap_or(0));
        early.sent += sent;
        early.is_closed = sent < plain.len();
    }

    /// Sends early data that the server refused, or that the session did not permit, once more.
    fn send_refused_early_data(&mut self) {
        let Some(early) = &mut self.early else {
            return;
        };
        early.is_accepted = self.connection.is_early_data_accepted();
        let accepted = if early.is_accepted { early.sent } else { 0 };
        let _ = (self.connection.writer()).write_all(&early.plain[accepted..]);
    }
}

impl EarlyData {
    /// There were some, and the server has accepted all of them.
    fn is_all_accepted(&self) -> bool {
        self.is_accepted && !self.plain.is_empty() && self.sent == self.plain.len()
    }
}

impl Tls {
    /// Whether a server refuses the client only after the handshake (RFC 8446 §4.4.2.4).
    pub(super) fn may_refuse_client_later(&self) -> bool {
        self.is_secured() && self.0.connection.protocol_version() == Some(ProtocolVersion::TLSv1_3)
    }

    /// Parameters that both sides agreed on, once secured.
    pub(super) fn agreed(&self) -> Option<Agreed> {
        let connection = Some(&self.0.connection).filter(|_| self.is_secured())?;
        let group = connection.negotiated_key_exchange_group();
        let protocol = connection.alpn_protocol();
        let suite = connection.negotiated_cipher_suite()?.suite();
        Some(Agreed {
            version: version_name(connection.protocol_version()?).to_owned(),
            cipher: suite.as_str().unwrap_or("?").to_owned(),
            group: group.and_then(|group| group.name().as_str()).map(str::to_owned),
            protocol: protocol.map(|p| String::from_utf8_lossy(p).into_owned()),
        })
    }
}

fn version_name(version: ProtocolVersion) -> &'static str {
    match version {
        ProtocolVersion::TLSv1_2 => "1.2",
        ProtocolVersion::TLSv1_3 => "1.3",
        _ => "?",
    }
}

fn since(begun: Instant) -> Nanos {
    Nanos(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
}
