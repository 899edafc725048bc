//! The client's side against rustls's server, in memory.

use super::*;
use crate::link::config::tls_target;
use knee_load::measure::EarlyData;
use knee_load::spec::{Endpoint, Pick, Target, TlsResume, TlsSpec, TlsVersion};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{
    AlertDescription, Error, KeyLog, ServerConfig, ServerConnection, SupportedCipherSuite,
};
use std::io::{Read, Write};
use std::sync::Mutex;

fn client(tls: TlsSpec) -> TlsTarget {
    let target = Target {
        further: Vec::new(),
        endpoint: Endpoint::Tcp { host: "localhost".to_owned(), port: 1 },
        requests: Vec::new(),
        pick: Pick::InOrder,
        keep_alive: true,
        protocol: Default::default(),
        connections_max: None,
        tls: Some(Box::new(TlsSpec { is_insecure: true, ..tls })),
        proxy: None,
        route: Default::default(),
        sessions: None,
        recording: None,
        stream_bounds: None,
    };
    tls_target(&target).unwrap().unwrap()
}

fn only(version: TlsVersion) -> TlsSpec {
    TlsSpec { version_min: Some(version), version_max: Some(version), ..TlsSpec::default() }
}

fn server(provider: CryptoProvider) -> ServerConfig {
    let mut config = without_tickets(provider);
    config.ticketer = aws_lc_rs::Ticketer::new().unwrap();
    config
}

/// A server that keeps its sessions itself.
fn without_tickets(provider: CryptoProvider) -> ServerConfig {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    config
}

/// A client and a server, and what has come to each.
struct Pair {
    tls: Tls,
    server: ServerConnection,
    /// Bytes that come to the client at once.
    piece: usize,
    got: Vec<u8>,
}

impl Pair {
    fn new(shared: &mut TlsTarget, config: &Arc<ServerConfig>, piece: usize) -> Pair {
        let mut server = ServerConnection::new(Arc::clone(config)).unwrap();
        server.set_buffer_limit(None);
        Pair { tls: Tls::new(shared).unwrap(), server, piece, got: Vec::new() }
    }

    /// What the client sends, with `plain` at its end.
    fn server_takes(&mut self, plain: &[u8]) -> Result<Vec<u8>, Error> {
        let mut wire = Vec::new();
        self.tls.take_wire(&mut wire);
        self.tls.seal(plain, &mut wire);
        let (mut rest, mut got) = (&wire[..], Vec::new());
        while !rest.is_empty() {
            self.server.read_tls(&mut rest).unwrap();
            self.server.process_new_packets()?;
            if let Some(mut early) = self.server.early_data() {
                early.read_to_end(&mut got).unwrap();
            }
            let _ = self.server.reader().read_to_end(&mut got);
        }
        Ok(got)
    }

    /// What the server sends, with `plain` at its end.
    fn of_server(&mut self, plain: &[u8]) -> Vec<u8> {
        let mut wire = Vec::new();
        self.server.writer().write_all(plain).unwrap();
        while self.server.wants_write() {
            self.server.write_tls(&mut wire).unwrap();
        }
        wire
    }

    fn client_takes(&mut self, wire: &[u8]) -> Result<(), String> {
        for mut rest in wire.chunks(self.piece) {
            while !rest.is_empty() && !self.tls.is_secured() {
                self.tls.secure(&mut rest)?;
            }
            let got = &mut self.got;
            self.tls.open(rest, |plain, _| got.extend_from_slice(plain))?;
        }
        Ok(())
    }

    fn shake_hands(&mut self) {
        for _ in 0..4 {
            self.server_takes(b"").unwrap();
            let wire = self.of_server(b"");
            self.client_takes(&wire).unwrap();
        }
        assert!(self.tls.is_secured() && !self.server.is_handshaking());
    }

    fn handshakes(&self) -> Handshakes {
        let mut handshakes = Handshakes::default();
        self.tls.note(&mut handshakes);
        handshakes
    }
}

#[test]
fn every_suite_carries_data_both_ways_however_it_is_split() {
    let text: Vec<u8> = (0..40_000_u32).map(|n| (n % 251) as u8).collect();
    let all = aws_lc_rs::ALL_CIPHER_SUITES.iter();
    // The certificate's key is of an elliptic curve.
    let usable = all.filter(|suite| !format!("{suite:?}").contains("_RSA_"));
    let mut count = 0;
    for &suite in usable {
        let mut provider = aws_lc_rs::default_provider();
        provider.cipher_suites = vec![suite];
        let config = Arc::new(server(provider));
        let version = match suite {
            SupportedCipherSuite::Tls12(_) => TlsVersion::Tls12,
            SupportedCipherSuite::Tls13(_) => TlsVersion::Tls13,
        };
        let mut shared = client(only(version));
        for piece in [1, 2, 1_000, usize::MAX] {
            let mut pair = Pair::new(&mut shared, &config, piece);
            pair.shake_hands();
            assert!(pair.server_takes(&text).unwrap() == text, "{suite:?} {piece}");
            let wire = pair.of_server(&text);
            pair.client_takes(&wire).unwrap();
            assert!(pair.got == text, "{suite:?} {piece}");
            let agreed = pair.tls.agreed().unwrap();
            assert_eq!(agreed.cipher, format!("{suite:?}"));
            assert_eq!(agreed.protocol.as_deref(), Some("h2"));
        }
        count += 1;
    }
    assert_eq!(count, 6);
}

#[test]
fn tickets_after_the_handshake_resume_sessions() {
    let config = Arc::new(server(aws_lc_rs::default_provider()));
    for version in [TlsVersion::Tls12, TlsVersion::Tls13] {
        let mut shared = client(only(version));
        let kinds = [0; 3].map(|_| {
            let mut pair = Pair::new(&mut shared, &config, 100);
            pair.shake_hands();
            let noted = pair.handshakes();
            assert!(noted.generator > Nanos::ZERO);
            (noted.full, noted.resumed)
        });
        assert_eq!(kinds, [(1, 0), (0, 1), (0, 1)], "{version:?}");
    }
}

#[test]
fn data_in_the_same_bytes_as_the_servers_finished_is_data() {
    for version in [TlsVersion::Tls12, TlsVersion::Tls13] {
        let mut config = server(aws_lc_rs::default_provider());
        config.send_half_rtt_data = true;
        let config = Arc::new(config);
        for piece in [1, 33, usize::MAX] {
            let mut shared = client(only(version));
            let mut pair = Pair::new(&mut shared, &config, piece);
            if version == TlsVersion::Tls12 {
                pair.server_takes(b"").unwrap();
                let wire = pair.of_server(b"");
                pair.client_takes(&wire).unwrap();
            }
            pair.server_takes(b"").unwrap();
            let wire = pair.of_server(b"early");
            pair.client_takes(&wire).unwrap();
            assert_eq!(pair.got, b"early", "{version:?} {piece}");
            assert_eq!(pair.server_takes(b"late").unwrap(), b"late");
        }
    }
}

/// A client that has shaken hands with a server that takes this many bytes early, and the server's
/// configuration from then on.
fn early(max: u32, then: impl Fn(&mut ServerConfig)) -> (TlsTarget, Arc<ServerConfig>) {
    // Sessions that may be resumed twice permit no early data.
    let mut config = without_tickets(aws_lc_rs::default_provider());
    config.max_early_data_size = max;
    config.send_half_rtt_data = true;
    let mut shared = client(TlsSpec { resume: TlsResume::EarlyData, ..TlsSpec::default() });
    let first = Arc::new(config.clone());
    let mut pair = Pair::new(&mut shared, &first, 100);
    assert!(!pair.tls.takes_early(), "there is no session yet");
    pair.shake_hands();
    assert_eq!(pair.handshakes().early_data, EarlyData::default());
    then(&mut config);
    (shared, Arc::new(config))
}

/// Sends `text` with the handshake. What the server got, how often it was taken and refused, and
/// whether the session was resumed.
fn sent_early(shared: &mut TlsTarget, config: &Arc<ServerConfig>, text: &[u8]) -> [u64; 3] {
    let mut pair = Pair::new(shared, config, 100);
    assert!(pair.tls.takes_early() && !pair.tls.is_secured());
    let mut got = pair.server_takes(text).unwrap();
    for _ in 0..4 {
        let wire = pair.of_server(b"");
        pair.client_takes(&wire).unwrap();
        assert!(!pair.tls.takes_early(), "the server has answered");
        got.extend(pair.server_takes(b"").unwrap());
    }
    assert!(got == text, "it gets all, and once");
    let of = pair.handshakes();
    assert_eq!(pair.tls.is_early_taken(), of.early_data.taken == 1);
    // Both sides go on as ever.
    assert_eq!(pair.server_takes(b"more").unwrap(), b"more");
    let wire = pair.of_server(b"answer");
    pair.client_takes(&wire).unwrap();
    assert_eq!(pair.got, b"answer");
    [of.early_data.taken, of.early_data.refused, of.resumed]
}

#[test]
fn early_data_arrives_once_whether_accepted_or_refused() {
    let text: Vec<u8> = (0..40_000_u32).map(|n| (n % 251) as u8).collect();
    for length in [1, 500, 1 << 14, 40_000] {
        let (mut shared, config) = early(1 << 16, |_| {});
        let counts = sent_early(&mut shared, &config, &text[..length]);
        assert_eq!(counts, [1, 0, 1], "{length} bytes");
    }
    // More than the session permits: the rest follows.
    for length in [1_001, 40_000] {
        let (mut shared, config) = early(1_000, |_| {});
        let counts = sent_early(&mut shared, &config, &text[..length]);
        assert_eq!(counts, [0, 1, 1], "{length} bytes");
    }
    // One that resumes the session, and takes no early data any more.
    let (mut shared, config) = early(1 << 16, |config| config.max_early_data_size = 0);
    assert_eq!(sent_early(&mut shared, &config, &text[..500]), [0, 1, 1]);
    // One that has forgotten the session.
    let (mut shared, config) = early(1 << 16, |config| {
        config.session_storage = rustls::server::ServerSessionMemoryCache::new(8);
    });
    assert_eq!(sent_early(&mut shared, &config, &text[..500]), [0, 1, 0]);
    // One that asks for another group before it goes on.
    let (mut shared, config) = early(1 << 16, |config| {
        let mut provider = aws_lc_rs::default_provider();
        provider.kx_groups = vec![aws_lc_rs::kx_group::SECP384R1];
        *config = server(provider);
    });
    assert_eq!(sent_early(&mut shared, &config, &text[..500]), [0, 1, 0]);
}

#[test]
fn a_handshake_that_nothing_came_with_is_one_as_ever() {
    let (mut shared, config) = early(1 << 16, |_| {});
    let mut pair = Pair::new(&mut shared, &config, 100);
    assert!(pair.tls.takes_early());
    pair.shake_hands();
    assert_eq!(pair.server_takes(b"late").unwrap(), b"late");
    assert!(!pair.tls.is_early_taken());
    assert_eq!(pair.handshakes().early_data, EarlyData::default());
    assert_eq!(pair.handshakes().resumed, 1);
    // Without the option nothing goes out early, whatever the server permits.
    shared.config = client(TlsSpec::default()).config;
    for _ in 0..2 {
        let mut pair = Pair::new(&mut shared, &config, 100);
        assert!(!pair.tls.takes_early());
        pair.shake_hands();
    }
}

#[test]
fn new_keys_of_the_server_are_taken_and_answered() {
    let config = Arc::new(server(aws_lc_rs::default_provider()));
    let mut shared = client(only(TlsVersion::Tls13));
    let mut pair = Pair::new(&mut shared, &config, 7);
    pair.shake_hands();
    for _ in 0..3 {
        pair.server.refresh_traffic_keys().unwrap();
        let wire = pair.of_server(b"data");
        assert!(!pair.tls.has_wire());
        pair.client_takes(&wire).unwrap();
        assert_eq!(std::mem::take(&mut pair.got), b"data");
        // The answer comes before the next data (RFC 8446 §4.6.3): keys that differ open nothing.
        assert_eq!(pair.server_takes(b"more").unwrap(), b"more");
    }
}

#[test]
fn a_server_may_ask_for_another_group() {
    let mut provider = aws_lc_rs::default_provider();
    provider.kx_groups = vec![aws_lc_rs::kx_group::SECP384R1];
    let config = Arc::new(server(provider));
    let mut shared = client(only(TlsVersion::Tls13));
    let mut pair = Pair::new(&mut shared, &config, 5);
    pair.shake_hands();
    let kind = pair.tls.0.connection.handshake_kind();
    assert_eq!(kind, Some(HandshakeKind::FullWithHelloRetryRequest));
    assert_eq!(pair.handshakes().full, 1);
    assert_eq!(pair.server_takes(b"data").unwrap(), b"data");
}

#[test]
fn a_record_that_was_tampered_with_is_named_and_the_server_told() {
    let config = Arc::new(server(aws_lc_rs::default_provider()));
    for version in [TlsVersion::Tls12, TlsVersion::Tls13] {
        let mut shared = client(only(version));
        let mut pair = Pair::new(&mut shared, &config, usize::MAX);
        pair.shake_hands();
        let mut wire = pair.of_server(b"good");
        wire.extend(pair.of_server(b"bad"));
        *wire.last_mut().unwrap() ^= 1;
        let why = pair.client_takes(&wire).unwrap_err();
        assert!(why.contains("bad_record_mac"), "{why}");
        assert_eq!(pair.got, b"good");
        let told = pair.server_takes(b"nothing").unwrap_err();
        assert_eq!(told, Error::AlertReceived(AlertDescription::BadRecordMac));
    }
}

#[test]
fn alerts_are_named_and_close_notify_is_no_error() {
    let config = Arc::new(server(aws_lc_rs::default_provider()));
    let mut shared = client(only(TlsVersion::Tls13));
    let mut pair = Pair::new(&mut shared, &config, usize::MAX);
    pair.shake_hands();
    let mut garbage = &b"\x17\x03\x03\0\x20no record that the client sealed"[..];
    pair.server.read_tls(&mut garbage).unwrap();
    pair.server.process_new_packets().unwrap_err();
    let wire = pair.of_server(b"");
    let why = pair.client_takes(&wire).unwrap_err();
    assert_eq!(why, "it ended the connection with the TLS alert bad_record_mac");

    let mut pair = Pair::new(&mut shared, &config, 3);
    pair.shake_hands();
    pair.server.send_close_notify();
    let mut wire = pair.of_server(b"");
    wire.extend_from_slice(b"nothing");
    assert!(!pair.tls.is_ended());
    assert_eq!(pair.client_takes(&wire), Ok(()));
    assert_eq!(pair.got, b"");
    assert!(pair.tls.is_ended());
}

#[test]
fn close_notify_in_the_handshake_ends_it() {
    for version in [TlsVersion::Tls12, TlsVersion::Tls13] {
        let mut shared = client(only(version));
        let config = Arc::new(server(aws_lc_rs::default_provider()));
        let mut pair = Pair::new(&mut shared, &config, 5);
        // In clear, before the server has answered; as a warning it would be ignored.
        let close_notify = [0x15, 3, 3, 0, 2, 2, 0];
        assert_eq!(pair.client_takes(&close_notify), Err(HUNG_UP.to_owned()));
        assert!(!pair.tls.is_secured());
    }
}

#[test]
fn a_handshake_that_fails_is_named_and_the_server_told() {
    for piece in [1, usize::MAX] {
        let config = Arc::new(server(aws_lc_rs::default_provider()));
        let mut shared = client(TlsSpec::default());
        let mut pair = Pair::new(&mut shared, &config, piece);
        let answer = b"HTTP/1.1 400 Bad Request\r\n\r\n";
        let why = pair.client_takes(answer).unwrap_err();
        assert!(why.contains("does not answer in TLS"), "{why}");

        // A certificate that is trusted by nobody.
        let target = &mut shared;
        let mut strict = ClientConfig::clone(&target.config);
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = rustls::client::WebPkiServerVerifier::builder_with_provider(
            Arc::new(roots()),
            provider,
        );
        strict.dangerous().set_certificate_verifier(verifier.build().unwrap());
        target.config = Arc::new(strict);
        let mut pair = Pair::new(&mut shared, &config, piece);
        pair.server_takes(b"").unwrap();
        let wire = pair.of_server(b"");
        let why = pair.client_takes(&wire).unwrap_err();
        assert!(why.contains("not trusted here"), "{why}");
        let told = pair.server_takes(b"").unwrap_err();
        assert_eq!(told, Error::AlertReceived(AlertDescription::UnknownCA));
        // What comes then means nothing.
        assert_eq!(pair.client_takes(b"nothing"), Ok(()));
    }
}

/// Roots that have issued nothing.
fn roots() -> rustls::RootCertStore {
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name.push(rcgen::DnType::CommonName, "elsewhere");
    let made = params.self_signed(&rcgen::KeyPair::generate().unwrap());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.unwrap().der().clone()).unwrap();
    roots
}

/// The names of the secrets that were logged.
#[derive(Debug, Default)]
struct Logged(Mutex<Vec<String>>);

impl KeyLog for Logged {
    fn log(&self, label: &str, _: &[u8], _: &[u8]) {
        self.0.lock().unwrap().push(label.to_owned());
    }
}

#[test]
fn the_secrets_of_records_are_logged_where_that_is_asked_for() {
    let mut shared = client(only(TlsVersion::Tls13));
    let log = Arc::new(Logged::default());
    let mut config = ClientConfig::clone(&shared.config);
    config.key_log = Arc::clone(&log) as Arc<_>;
    shared.config = Arc::new(config);
    let server = Arc::new(server(aws_lc_rs::default_provider()));
    Pair::new(&mut shared, &server, 9).shake_hands();
    let labels = log.0.lock().unwrap();
    for side in ["CLIENT", "SERVER"] {
        assert!(labels.contains(&format!("{side}_TRAFFIC_SECRET_0")));
    }
}
