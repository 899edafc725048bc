//! The handshake, and what is left to rustls after it. All of rustls's interfaces that let others
//! encrypt are used here: the unbuffered connection and the one made for the kernel.

use super::super::records::{Cipher, Direction, Key, Records, Upkeep, Version, kind, wanted};
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::crypto::SupportedKxGroup;
use rustls::kernel::KernelConnection;
use rustls::pki_types::ServerName;
use rustls::unbuffered::{ConnectionState, EncodeError, EncodeTlsData, UnbufferedStatus};
use rustls::{ClientConfig, ConnectionTrafficSecrets, Error, HandshakeKind};
use rustls::{ProtocolVersion, SupportedCipherSuite};
use std::sync::Arc;

/// A handshake under way.
pub(super) struct Handshake {
    session: UnbufferedClientConnection,
    /// Records that rustls has not taken yet, and the begin of the next.
    held: Vec<u8>,
    /// Where in `held` the record begins that is not whole.
    begin: usize,
    /// What goes out with the handshake, where the session that is resumed permits that.
    early: Option<Box<EarlyData>>,
}

/// Data that go out with the handshake (RFC 8446 §2.3).
#[derive(Default)]
struct EarlyData {
    plain: Vec<u8>,
    /// So many bytes of it did go out.
    sent: usize,
    /// No more may.
    is_closed: bool,
    is_taken: bool,
}

/// What became of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Early {
    /// There were none.
    None,
    /// The server has taken all of them.
    Taken,
    /// It has not; or they were more than it takes.
    Refused,
}

/// No record holds more (RFC 8446 §5.1).
const PLAIN_MAX: usize = 1 << 14;

/// What a record of TLS 1.3 adds to that: its header, its type and the tag, which all ciphers have
/// of this length.
const ADDED: usize = 5 + 1 + 16;

/// The record that ends early data (RFC 8446 §4.5). No other message of a client is as short.
const END_OF_EARLY_DATA: usize = ADDED + 4;

/// Where a handshake stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// More is to come.
    Waits,
    /// It is over, and went well.
    Over,
    /// The peer says that it sends no more.
    Ended,
}

/// What both sides agreed on.
pub(super) struct Facts {
    pub(super) kind: Option<HandshakeKind>,
    pub(super) version: ProtocolVersion,
    pub(super) suite: SupportedCipherSuite,
    pub(super) group: Option<&'static dyn SupportedKxGroup>,
    pub(super) protocol: Option<Vec<u8>>,
    pub(super) early: Early,
}

impl Handshake {
    /// Begins a handshake, and puts what goes out first into `out`.
    pub(super) fn new(
        config: &Arc<ClientConfig>,
        name: &ServerName<'static>,
        out: &mut Vec<u8>,
    ) -> Result<Handshake, Error> {
        let session = UnbufferedClientConnection::new(Arc::clone(config), name.clone())?;
        let mut handshake = Handshake {
            session,
            held: Vec::new(),
            begin: 0,
            early: None,
        };
        handshake.advance(out, true)?;
        Ok(handshake)
    }

    /// Whether data may go out with the handshake.
    pub(super) fn takes_early(&self) -> bool {
        self.early.as_ref().is_some_and(|early| !early.is_closed)
    }

    /// Puts data behind what goes out first, as far as the session permits, and keeps them until
    /// the server has said whether it takes them.
    pub(super) fn seal_early(&mut self, plain: &[u8], out: &mut Vec<u8>) {
        let Some(early) = &mut self.early else {
            return;
        };
        early.plain.extend_from_slice(plain);
        for piece in plain.chunks(PLAIN_MAX) {
            if early.is_closed {
                return;
            }
            let state = self.session.process_tls_records(&mut self.held).state;
            let from = out.len();
            out.resize(from + piece.len() + ADDED, 0);
            let sealed = match state {
                Ok(ConnectionState::TransmitTlsData(mut data)) => data
                    .may_encrypt_early_data()
                    .and_then(|mut may| may.encrypt(piece, &mut out[from..]).ok())
                    .unwrap_or(0),
                _ => 0,
            };
            out.truncate(from + sealed);
            let taken = sealed.saturating_sub(ADDED);
            early.sent += taken;
            early.is_closed = taken < piece.len();
        }
    }

    /// Takes bytes off the front of `wire`, none behind the end of a record: what follows the
    /// handshake is not for rustls.
    pub(super) fn take_in(
        &mut self,
        wire: &mut &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Progress, Error> {
        if let Some(early) = &mut self.early {
            early.is_closed = true;
        }
        // Its header, and then what that says.
        for _ in 0..2 {
            let end = wanted(&self.held[self.begin..]);
            self.fill(wire, end);
        }
        let record = &self.held[self.begin..];
        if record.len() == wanted(record) {
            self.begin = self.held.len();
        }
        self.advance(out, false)
    }

    /// Completes the first `end` bytes of the record that is not whole, as far as they are there.
    fn fill(&mut self, wire: &mut &[u8], end: usize) {
        let missing = (self.begin + end).saturating_sub(self.held.len());
        let (more, after) = wire.split_at(wire.len().min(missing));
        self.held.extend_from_slice(more);
        *wire = after;
    }

    /// Goes on as far as what is held permits; at first not beyond where early data may follow.
    fn advance(&mut self, out: &mut Vec<u8>, is_first: bool) -> Result<Progress, Error> {
        loop {
            let UnbufferedStatus { discard, state } =
                self.session.process_tls_records(&mut self.held);
            let progress = match state {
                Ok(ConnectionState::EncodeTlsData(data)) => {
                    let from = out.len();
                    let encoded = encode(data, out);
                    if let Some(early) = &mut self.early {
                        early.is_taken |= out.len() - from == END_OF_EARLY_DATA;
                    }
                    encoded.map(|()| None)
                }
                Ok(ConnectionState::TransmitTlsData(mut data)) => {
                    if is_first && data.may_encrypt_early_data().is_some() {
                        self.early = Some(Box::default());
                        Ok(Some(Progress::Waits))
                    } else {
                        data.done();
                        Ok(None)
                    }
                }
                Ok(ConnectionState::WriteTraffic(_)) => Ok(Some(Progress::Over)),
                Ok(ConnectionState::BlockedHandshake) => Ok(Some(Progress::Waits)),
                Ok(_) => Ok(Some(Progress::Ended)),
                Err(error) => Err(error),
            };
            self.held.drain(..discard);
            self.begin = self.begin.saturating_sub(discard);
            match progress {
                Ok(None) => {}
                Ok(Some(progress)) => return Ok(progress),
                Err(error) => {
                    self.say_why(out);
                    return Err(error);
                }
            }
        }
    }

    /// What the peer is to be told of an error: an alert, sealed or in clear, is the last that
    /// rustls has to say. It must not be asked again: it would find the same error once more.
    fn say_why(&mut self, out: &mut Vec<u8>) {
        let mut said = kind::HANDSHAKE;
        while matches!(said, kind::CHANGE_CIPHER_SPEC | kind::HANDSHAKE)
            && let Ok(ConnectionState::EncodeTlsData(data)) =
                self.session.process_tls_records(&mut self.held).state
        {
            let from = out.len();
            let encoded = encode(data, out);
            said = out
                .get(from)
                .copied()
                .filter(|_| encoded.is_ok())
                .unwrap_or(0);
        }
    }

    /// What was agreed on, and the records of a connection whose handshake is over. What was to go
    /// out early and was not taken is put into `out`.
    pub(super) fn finish(self, out: &mut Vec<u8>) -> Result<(Facts, Records<Kept>), Error> {
        let Handshake { session, early, .. } = self;
        let (kind, group) = (
            session.handshake_kind(),
            session.negotiated_key_exchange_group(),
        );
        let protocol = session.alpn_protocol().map(<[u8]>::to_vec);
        let (secrets, connection) = session.dangerous_into_kernel_connection()?;
        let facts = Facts {
            kind,
            version: connection.protocol_version(),
            suite: connection.negotiated_cipher_suite(),
            group,
            protocol,
            early: match &early {
                Some(early) if early.is_all_taken() => Early::Taken,
                Some(early) if !early.plain.is_empty() => Early::Refused,
                _ => Early::None,
            },
        };
        let version = match facts.version {
            ProtocolVersion::TLSv1_3 => Version::Tls13,
            _ => Version::Tls12,
        };
        let sealed_max = match facts.suite {
            SupportedCipherSuite::Tls12(suite) => suite.common.confidentiality_limit,
            SupportedCipherSuite::Tls13(suite) => suite.common.confidentiality_limit,
        };
        let keys = [key(version, &secrets.tx)?, key(version, &secrets.rx)?];
        let mut records = Records::new(version, keys, Kept(connection), sealed_max);
        if let Some(early) = early.filter(|early| !early.plain.is_empty()) {
            let taken = if early.is_taken { early.sent } else { 0 };
            records.seal(&early.plain[taken..], out);
        }
        Ok((facts, records))
    }
}

impl EarlyData {
    /// There were some, all of them went out, and the server took them.
    fn is_all_taken(&self) -> bool {
        self.is_taken && !self.plain.is_empty() && self.sent == self.plain.len()
    }
}

fn encode(
    mut data: EncodeTlsData<'_, ClientConnectionData>,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let from = out.len();
    // The first call tells how much room is needed.
    if let Err(EncodeError::InsufficientSize(short)) = data.encode(&mut []) {
        out.resize(from + short.required_size, 0);
    }
    match data.encode(&mut out[from..]) {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::General(error.to_string())),
    }
}

fn key(version: Version, of: &(u64, ConnectionTrafficSecrets)) -> Result<Key, Error> {
    let (sequence, secret) = of;
    let (cipher, key, iv) = match secret {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (Cipher::Aes128Gcm, key, iv),
        ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (Cipher::Aes256Gcm, key, iv),
        ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => {
            (Cipher::Chacha20Poly1305, key, iv)
        }
        _ => return Err(Error::General("a cipher that is not known here".to_owned())),
    };
    <[u8; 12]>::try_from(iv.as_ref())
        .ok()
        .and_then(|iv| Key::new((version, cipher), key.as_ref(), iv, *sequence))
        .ok_or_else(|| Error::General("a key of another length".to_owned()))
}

/// What of a connection stays with rustls after its handshake: tickets and the next keys.
pub(super) struct Kept(KernelConnection<ClientConnectionData>);

impl Upkeep for Kept {
    fn next_key(&mut self, direction: Direction) -> Result<Key, String> {
        let next = match direction {
            Direction::Send => self.0.update_tx_secret(),
            Direction::Receive => self.0.update_rx_secret(),
        };
        next.and_then(|secret| key(Version::Tls13, &secret))
            .map_err(|error| error.to_string())
    }

    fn keep_ticket(&mut self, payload: &[u8]) -> Result<(), String> {
        let kept = self.0.handle_new_session_ticket(payload);
        kept.map_err(|error| error.to_string())
    }
}
