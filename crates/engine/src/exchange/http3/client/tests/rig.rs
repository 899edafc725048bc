//! A connection, its server by quinn-proto, and the path between them, in virtual time.

use super::super::*;
use crate::exchange::http3::frame::{self, kind};
use crate::exchange::http3::qpack::{PREFIX, put_field};
use crate::exchange::http3::quic;
use crate::exchange::{EventQueue, Outbox, TlsSetup};
use bytes::{Bytes, BytesMut};
use knee_load::measure::Status;
use knee_load::rng::{self, Rng};
use knee_load::spec::{HttpRequest, HttpVersion, Pick, Protocol, Url};
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{
    Connection, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, ServerConfig,
};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::TLS13;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Bytes of the body of request 1.
pub(super) const BODY_BYTES: usize = 200_000;

/// Steps of a run, so that it ends whatever happens.
const STEPS_MAX: u32 = 200_000;

/// A HEADERS frame.
pub(super) fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut section = PREFIX.to_vec();
    fields.iter().for_each(|(n, v)| put_field(&mut section, n.as_bytes(), v.as_bytes()));
    frame_of(kind::HEADERS, &section)
}

pub(super) fn data(content: &[u8]) -> Vec<u8> {
    frame_of(kind::DATA, content)
}

pub(super) fn frame_of(kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::put(&mut out, kind, payload);
    out
}

pub(super) fn unknown_frame() -> Vec<u8> {
    frame_of(0x21, b"anything")
}

pub(super) fn ok_response() -> Vec<u8> {
    let length = CONTENT.len().to_string();
    let head = headers(&[(":status", "200"), ("content-length", &length), ("server", "test")]);
    [head, data(CONTENT)].concat()
}

/// The control stream of a server without settings.
pub(super) fn control() -> Vec<u8> {
    [&[0][..], &frame_of(kind::SETTINGS, &[])].concat()
}

const CONTENT: &[u8] = &[b'c'; 1294];

/// What a server does.
#[derive(Clone)]
pub(super) struct Peer {
    /// What it sends on its streams of one direction, and whether it ends them.
    pub(super) uni: Vec<(Vec<u8>, bool)>,
    /// What it answers each request.
    pub(super) response: Vec<u8>,
    /// It leaves the response open.
    pub(super) is_open: bool,
    /// It answers before the request has ended.
    pub(super) answers_early: bool,
    /// Requests that it does not answer, the first ones.
    pub(super) holds_back: usize,
    /// It sends GOAWAY once it has seen so many requests, and takes no more than those.
    pub(super) goaway_after: Option<u64>,
    pub(super) closes_with: Option<u64>,
    pub(super) resets_with: Option<u64>,
    /// Most concurrent requests, and window of a stream.
    pub(super) streams: u32,
    pub(super) window: u32,
    pub(super) alpn: &'static [u8],
}

impl Default for Peer {
    fn default() -> Peer {
        Peer {
            uni: vec![(control(), false)],
            response: ok_response(),
            is_open: false,
            answers_early: false,
            holds_back: 0,
            goaway_after: None,
            closes_with: None,
            resets_with: None,
            streams: 100,
            window: 1 << 20,
            alpn: b"h3",
        }
    }
}

/// What the path does with datagrams.
pub(super) struct Path {
    rng: Rng,
    /// Shares that are lost and doubled.
    pub(super) lost: f64,
    pub(super) doubled: f64,
    /// Delays of one direction, uniform.
    pub(super) delay: (Nanos, Nanos),
    /// Nothing passes any more.
    pub(super) is_cut: bool,
}

impl Path {
    pub(super) fn perfect() -> Path {
        let delay = (Nanos::from_millis(1), Nanos::from_millis(1));
        Path { rng: rng::stream(1, 0), lost: 0.0, doubled: 0.0, delay, is_cut: false }
    }

    pub(super) fn bad(seed: u64) -> Path {
        let mut rng = rng::stream(seed, 0);
        let lost = 0.15 * rng::unit(&mut rng);
        let delay = (Nanos::from_millis(1), Nanos::from_millis(30));
        Path { rng, lost, doubled: 0.05, delay, is_cut: false }
    }

    /// When each copy of a datagram arrives.
    fn arrivals(&mut self, now: Nanos) -> Vec<Nanos> {
        let copies = if self.is_cut || rng::unit(&mut self.rng) < self.lost {
            0
        } else {
            1 + usize::from(rng::unit(&mut self.rng) < self.doubled)
        };
        let span = (self.delay.1 - self.delay.0).0 as f64;
        let mut delay = || self.delay.0 + Nanos((rng::unit(&mut self.rng) * span) as u64);
        (0..copies).map(|_| now + delay()).collect()
    }
}

/// Where a datagram goes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum To {
    Client,
    Server,
}

pub(super) struct TestServer {
    peer: Peer,
    config: Arc<ServerConfig>,
    base: Instant,
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    requests: u64,
    control: Option<StreamId>,
    ended: Vec<StreamId>,
    unsent: Vec<(StreamId, Vec<u8>)>,
    pub(super) body_bytes: u64,
}

const CLIENT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 4433);

fn identity() -> &'static (CertificateDer<'static>, Vec<u8>) {
    static IDENTITY: OnceLock<(CertificateDer<'static>, Vec<u8>)> = OnceLock::new();
    IDENTITY.get_or_init(|| {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        (made.cert.der().clone(), made.signing_key.serialize_der())
    })
}

impl TestServer {
    fn new(peer: Peer) -> TestServer {
        let (certificate, key) = identity();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.clone()],
                PrivateKeyDer::try_from(key.clone()).unwrap(),
            )
            .unwrap();
        tls.alpn_protocols = vec![peer.alpn.to_vec()];
        tls.max_early_data_size = u32::MAX;
        let tls = QuicServerConfig::try_from(Arc::new(tls)).unwrap();
        let mut config = ServerConfig::with_crypto(Arc::new(tls));
        config.transport_config(Arc::new(quic::transport(peer.window, 16, peer.streams)));
        TestServer::of(Arc::new(config), peer)
    }

    /// A server with the sessions of others of this configuration.
    fn of(config: Arc<ServerConfig>, peer: Peer) -> TestServer {
        TestServer {
            endpoint: Endpoint::new(
                Arc::new(EndpointConfig::default()),
                Some(Arc::clone(&config)),
                false,
                Some([7; 32]),
            ),
            config,
            peer,
            base: Instant::now(),
            connection: None,
            requests: 0,
            control: None,
            ended: Vec::new(),
            unsent: Vec::new(),
            body_bytes: 0,
        }
    }

    fn instant(&self, now: Nanos) -> Instant {
        self.base + Duration::from_nanos(now.0)
    }

    /// Takes a datagram. Returns an answer that is of no connection.
    fn receive(&mut self, datagram: &[u8], now: Nanos) -> Option<Vec<u8>> {
        let at = self.instant(now);
        let mut answer = Vec::new();
        let bytes = BytesMut::from(datagram);
        match self.endpoint.handle(at, CLIENT, None, None, bytes, &mut answer)? {
            DatagramEvent::ConnectionEvent(_, event) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
                None
            }
            DatagramEvent::NewConnection(incoming) => {
                let accepted = self.endpoint.accept(incoming, at, &mut answer, None);
                match accepted {
                    Ok(accepted) => {
                        // A copy of the first datagram may come late and begin another one.
                        if self.connection.is_none() {
                            self.connection = Some(accepted);
                        }
                        None
                    }
                    Err(_) => Some(answer),
                }
            }
            DatagramEvent::Response(transmit) => Some(answer[..transmit.size].to_vec()),
        }
    }

    /// Serves what has come.
    fn serve(&mut self, now: Nanos) {
        let at = self.instant(now);
        let Some((handle, connection)) = &mut self.connection else {
            return;
        };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(answer) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(answer);
            }
        }
        let mut readable = Vec::new();
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => {
                    for (bytes, ends) in &self.peer.uni {
                        let id = connection.streams().open(Dir::Uni).unwrap();
                        let mut sender = connection.send_stream(id);
                        assert_eq!(sender.write(bytes), Ok(bytes.len()));
                        if *ends {
                            sender.finish().unwrap();
                        }
                        self.control.get_or_insert(id);
                    }
                }
                Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                    while let Some(id) = connection.streams().accept(Dir::Bi) {
                        self.requests += 1;
                        if Some(self.requests) == self.peer.goaway_after
                            && let Some(control) = self.control
                        {
                            let goaway = frame_of(kind::GOAWAY, &[self.requests as u8 * 4]);
                            connection.send_stream(control).write(&goaway).unwrap();
                        }
                        if self.peer.answers_early {
                            self.ended.push(id);
                        }
                        readable.push(id);
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) if id.dir() == Dir::Bi => {
                    readable.push(id);
                }
                _ => {}
            }
        }
        for id in readable {
            let mut receiver = connection.recv_stream(id);
            let Ok(mut chunks) = receiver.read(true) else {
                continue;
            };
            loop {
                match chunks.next(usize::MAX) {
                    // No other byte of a request is a 'b', as its names are coded.
                    Ok(Some(chunk)) => {
                        let own = chunk.bytes.iter().filter(|byte| **byte == b'b');
                        self.body_bytes += own.count() as u64;
                    }
                    Ok(None) => {
                        self.ended.push(id);
                        break;
                    }
                    Err(_) => break,
                }
            }
        }
        for id in std::mem::take(&mut self.ended) {
            let number = id.index();
            if number < self.peer.holds_back as u64 {
                continue;
            }
            if self.peer.goaway_after.is_some_and(|after| number >= after) {
                continue;
            }
            if let Some(code) = self.peer.closes_with {
                connection.close(at, VarInt::from_u64(code).unwrap(), Bytes::new());
                return;
            }
            if let Some(code) = self.peer.resets_with {
                let _ = connection.send_stream(id).reset(VarInt::from_u64(code).unwrap());
                continue;
            }
            self.unsent.push((id, self.peer.response.clone()));
        }
        self.unsent.retain_mut(|(id, bytes)| {
            let mut sender = connection.send_stream(*id);
            let written = sender.write(bytes).unwrap_or(0);
            bytes.drain(..written);
            if bytes.is_empty() && !self.peer.is_open {
                let _ = sender.finish();
            }
            !bytes.is_empty()
        });
    }

    fn transmit(&mut self, now: Nanos) -> Vec<Vec<u8>> {
        let at = self.instant(now);
        let mut all = Vec::new();
        let Some((_, connection)) = &mut self.connection else {
            return all;
        };
        let mut bytes = Vec::new();
        while connection.poll_transmit(at, 1, &mut bytes).is_some() {
            all.push(std::mem::take(&mut bytes));
        }
        all
    }

    fn next_timeout(&mut self) -> Nanos {
        let at = self.connection.as_mut().and_then(|(_, connection)| connection.poll_timeout());
        at.map_or(Nanos::MAX, |at| {
            // Rounded up, so that the time has come then.
            Nanos(at.saturating_duration_since(self.base).as_nanos() as u64 + 1)
        })
    }
}

/// Both ends and the path.
pub(super) struct Rig {
    pub(super) client: Http3,
    pub(super) shared: Http3Shared,
    pub(super) server: TestServer,
    pub(super) path: Path,
    out: Outbox,
    events: EventQueue,
    pub(super) now: Nanos,
    /// Datagrams under way by their arrival and number.
    under_way: BTreeMap<(Nanos, u64), (To, Vec<u8>)>,
    sent: u64,
    /// Requests that wait for capacity.
    waiting: Vec<usize>,
    begun: FlightId,
    open: Vec<FlightId>,
    pub(super) answered: Vec<(FlightId, Status)>,
    pub(super) failed: Vec<Outcome>,
    pub(super) unprocessed: u32,
    pub(super) violations: Vec<String>,
    pub(super) resets: Vec<String>,
    pub(super) received: u64,
    pub(super) written: u32,
    pub(super) fault: Option<HandshakeFault>,
    pub(super) under_way_max: usize,
    pub(super) was_targets_limit: bool,
}

impl Rig {
    pub(super) fn new(peer: Peer, path: Path) -> Rig {
        Rig::named("localhost", peer, path)
    }

    /// A connection to a server of this name.
    pub(super) fn named(name: &str, peer: Peer, path: Path) -> Rig {
        let url = Url::parse("https://h:81/a").unwrap();
        let request = |method, body| HttpRequest::new(method, &url, Vec::new(), body, 1).unwrap();
        let requests = vec![request("GET", Vec::new()), request("POST", vec![b'b'; BODY_BYTES])];
        let endpoint = url.endpoint().clone();
        let mut target = Target::new(endpoint, requests, Pick::InOrder, true).unwrap();
        let http2 = knee_load::spec::Http2Limits::default();
        target.protocol = Protocol::Http(HttpSettings { version: HttpVersion::Http3, http2 });
        let mut roots = rustls::RootCertStore::empty();
        roots.add(identity().0.clone()).unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h3".to_vec()];
        config.enable_early_data = true;
        let limit = Nanos::from_secs(60);
        let shared = Http3Shared::new(&WorkerSetup {
            target: &target,
            tls: Some(TlsSetup {
                config: Arc::new(config),
                name: ServerName::try_from(name.to_owned()).unwrap(),
            }),
            streams_max: 1000,
            timeout: limit,
            open_timeout: limit,
            seed: (1, 0),
        });
        Rig::connect(shared, TestServer::new(peer), path)
    }

    /// Another connection of the same client, to the same server or to one that knows no session.
    pub(super) fn again(self, is_known: bool) -> Rig {
        let TestServer { config, peer, .. } = self.server;
        let server = if is_known { TestServer::of(config, peer) } else { TestServer::new(peer) };
        Rig::connect(self.shared, server, self.path)
    }

    fn connect(mut shared: Http3Shared, server: TestServer, path: Path) -> Rig {
        let (mut out, mut events) = (Outbox::default(), EventQueue::default());
        let now = Nanos(1);
        let client = Http3::established(&mut CallContext {
            now,
            shared: &mut shared,
            out: &mut out,
            events: &mut events,
        });
        Rig {
            client,
            shared,
            server,
            path,
            out,
            events,
            now,
            under_way: BTreeMap::new(),
            sent: 0,
            waiting: Vec::new(),
            begun: 0,
            open: Vec::new(),
            answered: Vec::new(),
            failed: Vec::new(),
            unprocessed: 0,
            violations: Vec::new(),
            resets: Vec::new(),
            received: 0,
            written: 0,
            fault: None,
            under_way_max: 0,
            was_targets_limit: false,
        }
    }

    fn call<T>(
        &mut self,
        act: impl FnOnce(&mut Http3, &mut CallContext<'_, Http3Shared>) -> T,
    ) -> T {
        let Rig { client, shared, out, events, now, .. } = self;
        act(client, &mut CallContext { now: *now, shared, out, events })
    }

    /// Asks `count` times for a request once there is capacity.
    pub(super) fn ask(&mut self, count: usize, request: usize) {
        self.waiting.extend(vec![request; count]);
    }

    /// Begins a request at once.
    pub(super) fn begin(&mut self, request: usize) {
        let op = self.begun;
        self.begun += 1;
        self.open.push(op);
        self.call(|client, cx| client.start(op, RequestRef::from(request), cx));
        self.under_way_max = self.under_way_max.max(self.open.len());
    }

    pub(super) fn cancel(&mut self, op: FlightId) -> AfterCancel {
        self.open.retain(|other| *other != op);
        self.call(|client, cx| client.cancel(op, cx))
    }

    /// Runs until all operations have ended.
    pub(super) fn run(&mut self) {
        let limit = self.now + Nanos::from_secs(120);
        while (!self.waiting.is_empty() || !self.open.is_empty()) && self.now < limit {
            if !self.step(limit) {
                break;
            }
        }
        assert!(
            self.waiting.is_empty() && self.open.is_empty(),
            "{:?} at {:?}",
            self.open,
            self.now
        );
    }

    /// Runs for a time.
    pub(super) fn run_for(&mut self, time: Nanos) {
        let limit = self.now + time;
        for _ in 0..STEPS_MAX {
            if self.now >= limit || !self.step(limit) {
                break;
            }
        }
        self.now = limit;
    }

    /// Does what is possible now, then waits for the next event. Whether there is one.
    fn step(&mut self, limit: Nanos) -> bool {
        while let Some(&request) = self.waiting.first()
            && self.client.capacity(&self.shared).operations > 0
        {
            self.waiting.remove(0);
            self.begin(request);
        }
        self.was_targets_limit |=
            !self.waiting.is_empty() && self.client.capacity(&self.shared).is_targets_limit;
        self.take_events();
        while self.client.has_output() {
            self.call(|client, cx| client.flush(cx));
            self.send_out();
            self.call(|client, cx| client.sent(cx));
            self.send_out();
        }
        self.server.serve(self.now);
        for datagram in self.server.transmit(self.now) {
            self.put(To::Client, datagram);
        }
        let arrival = self.under_way.first_key_value().map_or(Nanos::MAX, |((at, _), _)| *at);
        let next = arrival.min(self.client.poll_timeout()).min(self.server.next_timeout());
        if next == Nanos::MAX {
            return false;
        }
        self.now = next.max(self.now).min(limit);
        if self.now >= limit {
            return true;
        }
        while let Some(entry) = self.under_way.first_entry()
            && entry.key().0 <= self.now
        {
            let (to, bytes) = entry.remove();
            let at = self.now;
            if to == To::Client {
                self.call(|client, cx| client.receive(Received { bytes: &bytes, at }, cx));
            } else if let Some(answer) = self.server.receive(&bytes, at) {
                self.put(To::Client, answer);
            }
        }
        if self.client.poll_timeout() <= self.now {
            self.call(|client, cx| client.handle_timeout(cx));
        }
        let at = self.server.instant(self.now);
        if self.server.next_timeout() <= self.now
            && let Some((_, connection)) = &mut self.server.connection
        {
            connection.handle_timeout(at);
        }
        self.take_events();
        true
    }

    fn send_out(&mut self) {
        let bytes = std::mem::take(self.out.bytes());
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (border, datagram) = SocketKind::Datagram.first_of(rest);
            self.put(To::Server, datagram.to_vec());
            rest = &rest[border + datagram.len()..];
        }
    }

    fn put(&mut self, to: To, datagram: Vec<u8>) {
        for at in self.path.arrivals(self.now) {
            self.sent += 1;
            self.under_way.insert((at, self.sent), (to, datagram.clone()));
        }
    }

    fn take_events(&mut self) {
        for event in self.events.drain(..) {
            let ended = match event {
                OpEvent::Answered { op, status } => {
                    self.answered.push((op, status));
                    Some(op)
                }
                OpEvent::Failed { op, outcome } => {
                    self.failed.push(outcome);
                    Some(op)
                }
                OpEvent::Unprocessed(op) => {
                    self.unprocessed += 1;
                    Some(op)
                }
                OpEvent::Violated(why) => {
                    self.violations.push(why);
                    None
                }
                OpEvent::Reset(how) => {
                    self.resets.push(how);
                    None
                }
                OpEvent::Received { bytes, op } => {
                    assert!(bytes > 0 && self.open.contains(&op));
                    self.received += bytes;
                    None
                }
                OpEvent::Written(_) => {
                    self.written += 1;
                    None
                }
                OpEvent::NotSecured(fault) => {
                    self.fault = Some(fault);
                    None
                }
                _ => None,
            };
            if let Some(op) = ended {
                assert!(self.open.contains(&op), "an operation ends once");
                self.open.retain(|other| *other != op);
            }
        }
    }

    /// Statuses of all responses, in the order of their ends.
    pub(super) fn statuses(&self) -> Vec<Status> {
        self.answered.iter().map(|(_, status)| *status).collect()
    }
}
