//! The server over TLS, with rustls as the client.

use super::*;
use knee_load::spec::{TlsResume, TlsVersion};
use rustls::client::{ClientConfig, ClientConnection, Resumption};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{HandshakeKind, RootCertStore, StreamOwned};
use std::sync::Arc;

type Stream = StreamOwned<ClientConnection, TcpStream>;

const BOTH: (TlsVersion, TlsVersion) = (TlsVersion::Tls12, TlsVersion::Tls13);

/// A server with a certificate made for it, and a client that trusts it.
fn start(spec: HttpServerSpec, resume: TlsResume) -> (HttpServer, Arc<ClientConfig>) {
    start_with(spec, BOTH, resume)
}

fn start_with(
    spec: HttpServerSpec,
    versions: (TlsVersion, TlsVersion),
    resume: TlsResume,
) -> (HttpServer, Arc<ClientConfig>) {
    let identity = Identity::make(None).unwrap();
    let authority = identity.authority().unwrap().as_bytes().to_vec();
    let tls = Some(ServerTls::new(identity, versions, resume).unwrap());
    let server = crate::http::start(HttpServerSpec { tls, ..spec }).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&authority).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.enable_early_data = resume == TlsResume::EarlyData;
    client.resumption = Resumption::in_memory_sessions(8);
    (server, Arc::new(client))
}

fn secured(server: &HttpServer, client: &Arc<ClientConfig>) -> Stream {
    let name = "localhost".try_into().unwrap();
    let tls = ClientConnection::new(Arc::clone(client), name).unwrap();
    StreamOwned::new(tls, connect(server))
}

/// One request on a connection of its own; how its handshake was.
fn ask(server: &HttpServer, client: &Arc<ClientConfig>) -> Option<HandshakeKind> {
    let mut stream = secured(server, client);
    stream.write_all(GET_CLOSE.as_bytes()).unwrap();
    let (status, _, body) = read_response(&mut stream, true);
    assert_eq!((status, body.len()), (200, 100));
    // The server says in TLS that nothing follows: without that this fails.
    assert_eq!(read_to_end(&mut stream), b"");
    stream.conn.handshake_kind()
}

#[test]
fn sessions_are_resumed_by_ticket_or_not_at_all() {
    use TlsVersion::{Tls12, Tls13};
    for version in [Tls12, Tls13] {
        for (resume, again) in
            [(TlsResume::Ticket, HandshakeKind::Resumed), (TlsResume::Off, HandshakeKind::Full)]
        {
            let (server, client) = start_with(spec(), (version, version), resume);
            assert_eq!(ask(&server, &client), Some(HandshakeKind::Full));
            assert_eq!(ask(&server, &client), Some(again), "{version:?} {resume:?}");
            let stats = server.stop();
            let tls = stats.tls.unwrap();
            let resumed = u64::from(again == HandshakeKind::Resumed);
            assert_eq!((tls.full, tls.resumed), (2 - resumed, resumed));
            assert_eq!((tls.early_data, tls.failed), (0, 0));
            assert_eq!((stats.requests, stats.responses), (2, 2));
            assert_eq!(stats.bytes_received, 2 * GET_CLOSE.len() as u64);
            assert!(tls.bytes_sent > stats.bytes_sent && stats.bytes_sent > 200);
            assert!(stats.errors.is_empty(), "{:?}", stats.errors);
        }
    }
}

#[test]
fn early_data_is_a_request_as_any_other() {
    let (server, client) = start(with_station(1, 1), TlsResume::EarlyData);
    assert_eq!(ask(&server, &client), Some(HandshakeKind::Full));
    let mut stream = secured(&server, &client);
    let mut early = stream.conn.early_data().expect("a session that permits it");
    early.write_all(GET.as_bytes()).unwrap();
    let (status, _, body) = read_response(&mut stream, true);
    assert_eq!((status, body.len()), (200, 100));
    assert!(stream.conn.is_early_data_accepted());
    get_ok(&mut stream);
    let stats = server.stop();
    let tls = stats.tls.unwrap();
    assert_eq!((tls.full, tls.resumed, tls.early_data, tls.failed), (1, 1, 1, 0));
    assert_eq!((stats.requests, stats.responses), (3, 3));
}

#[test]
fn who_asks_early_for_one_response_gets_a_ticket_for_the_next() {
    let (server, client) = start(spec(), TlsResume::EarlyData);
    assert_eq!(ask(&server, &client), Some(HandshakeKind::Full));
    for _ in 0..5 {
        let mut stream = secured(&server, &client);
        let mut early = stream.conn.early_data().expect("a session that permits it");
        early.write_all(GET_CLOSE.as_bytes()).unwrap();
        let (status, _, body) = read_response(&mut stream, true);
        assert_eq!((status, body.len()), (200, 100));
        // It is not closed before the handshake is over.
        assert_eq!(read_to_end(&mut stream), b"");
        assert!(stream.conn.tls13_tickets_received() > 0);
    }
    let stats = server.stop();
    let tls = stats.tls.unwrap();
    assert_eq!((tls.full, tls.resumed, tls.early_data), (1, 5, 5));
    assert!(stats.errors.is_empty(), "{:?}", stats.errors);
}

#[test]
fn only_versions_that_are_permitted_are_spoken() {
    let tls13 = (TlsVersion::Tls13, TlsVersion::Tls13);
    let (server, _) = start_with(spec(), tls13, TlsResume::Ticket);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let mut stream = secured(&server, &Arc::new(client));
    assert!(stream.write_all(GET.as_bytes()).is_err());
    assert_eq!(server.stop().tls.unwrap().failed, 1);
}

#[test]
fn failed_handshakes_are_counted_and_disturb_nobody() {
    let (server, client) = start(spec(), TlsResume::Ticket);
    let mut good = secured(&server, &client);
    get_ok(&mut good);
    // No TLS at all; a client that goes in the middle of its first message; one that trusts nobody.
    let mut clear = connect(&server);
    clear.write_all(GET.as_bytes()).unwrap();
    assert!(!read_to_end(&mut clear).starts_with(b"HTTP"));
    let mut begun = connect(&server);
    begun.write_all(&[22, 3, 1, 2, 0, 1]).unwrap();
    begun.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_to_end(&mut begun), b"");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let distrustful = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let mut stream = secured(&server, &Arc::new(distrustful));
    assert!(stream.write_all(GET.as_bytes()).is_err());
    let _ = stream.sock.shutdown(Shutdown::Write);
    while stream.sock.read(&mut [0; 4096]).is_ok_and(|n| n > 0) {}
    // One that says nothing counts nowhere.
    let mut silent = connect(&server);
    silent.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_to_end(&mut silent), b"");
    get_ok(&mut good);
    let stats = server.stop();
    let tls = stats.tls.unwrap();
    assert_eq!((tls.full, tls.failed), (1, 3));
    assert_eq!((stats.requests, stats.responses), (2, 2));
    assert!(stats.errors.is_empty(), "{:?}", stats.errors);
}

#[test]
fn records_may_come_in_pieces_of_any_size() {
    let (server, client) = start(spec(), TlsResume::Ticket);
    let name = "localhost".try_into().unwrap();
    let mut tls = ClientConnection::new(client, name).unwrap();
    let mut socket = connect(&server);
    tls.writer().write_all(GET_CLOSE.as_bytes()).unwrap();
    let mut answer = Vec::new();
    while answer.len() < 100 {
        let mut sealed = Vec::new();
        while tls.wants_write() {
            tls.write_tls(&mut sealed).unwrap();
        }
        for byte in sealed {
            socket.write_all(&[byte]).unwrap();
        }
        tls.read_tls(&mut socket).unwrap();
        tls.process_new_packets().unwrap();
        let _ = tls.reader().read_to_end(&mut answer);
    }
    assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"));
    assert_eq!(server.stop().responses, 1);
}

#[test]
fn large_bodies_and_many_requests_in_a_row_are_whole() {
    let body_size = 300_000;
    let spec = HttpServerSpec { body_size, ..spec() };
    let (server, client) = start(spec, TlsResume::Ticket);
    let mut stream = secured(&server, &client);
    let requests = 200;
    // All of them before the first response is read: writes are partial and reads pause.
    stream.write_all(GET.repeat(requests).as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    for _ in 0..requests {
        let (status, _, body) = read_response(&mut stream, true);
        assert_eq!((status, body.len()), (200, body_size as usize));
        let pattern = b"The knee of a curve is where more load buys more waiting than work.\n";
        assert!(body.iter().zip(pattern.iter().cycle()).all(|(a, b)| a == b));
    }
    drop(stream);
    assert_eq!(server.stop().responses, requests as u64);
}

#[test]
fn faults_are_those_of_cleartext() {
    let with = |fault| {
        let faults = vec![fault];
        start(HttpServerSpec { faults, ..spec() }, TlsResume::Ticket)
    };
    let exchange = |fault| {
        let (server, client) = with(fault);
        let mut stream = secured(&server, &client);
        stream.write_all(GET.as_bytes()).unwrap();
        let mut all = Vec::new();
        let end = stream.read_to_end(&mut all);
        (all, end.map_err(|e| e.kind()), server.stop().faults)
    };
    let (all, end, faults) = exchange(Fault::Truncate(1.0));
    let head = all.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
    assert_eq!((all.len() - head, faults["truncate"]), (50, 1));
    assert_eq!(end, Err(ErrorKind::UnexpectedEof), "no close_notify");
    let (all, end, faults) = exchange(Fault::Garbage(1.0));
    assert_eq!((all.len(), faults["garbage"]), (256, 1));
    assert!(end.is_ok());
    let (_, end, faults) = exchange(Fault::Reset(1.0));
    assert_eq!((end, faults["reset"]), (Err(ErrorKind::ConnectionReset), 1));
    let (server, client) = with(Fault::Slow(1_000));
    let begin = Instant::now();
    get_ok(&mut secured(&server, &client));
    assert!(begin.elapsed() >= Duration::from_millis(100));
    drop(server);
}

#[test]
fn the_log_has_each_request_with_its_times_in_order() {
    let log_max = 10;
    let spec = HttpServerSpec { log_max, ..with_station(1, 2) };
    let (server, client) = start(spec, TlsResume::Ticket);
    let mut stream = secured(&server, &client);
    (0..3).for_each(|_| get_ok(&mut stream));
    drop(stream);
    let entries = server.stop().log.entries;
    assert_eq!(entries.len(), 3);
    for entry in entries {
        assert!(entry.arrival <= entry.read && entry.read <= entry.start);
        assert_eq!(entry.end - entry.start, Nanos::from_millis(2));
        assert!(entry.written.unwrap() >= entry.end);
    }
}

#[test]
fn a_worker_is_taken_up_by_requests_not_by_handshakes() {
    let spec = HttpServerSpec { accept: AcceptPolicy::PerWorker, ..with_station(1, 1) };
    let (server, client) = start(spec, TlsResume::Ticket);
    let mut idle = secured(&server, &client);
    idle.conn.complete_io(&mut idle.sock).unwrap();
    ask(&server, &client);
    get_ok(&mut idle);
    assert_eq!(server.stop().responses, 2);
}

#[test]
fn a_key_that_is_not_the_certificates_is_refused() {
    let (mut mine, other) = (Identity::make(None).unwrap(), Identity::make(None).unwrap());
    mine.set_key(other);
    let wrong = ServerTls::new(mine, BOTH, TlsResume::Ticket).unwrap_err();
    assert_eq!(wrong, "the key is not that of the certificate");
}
