//! The bare cost of quinn-proto, beside knee over HTTP/3: a closed loop with one thread, epoll, one
//! UDP socket per connection and nothing else. It counts responses and measures no time; any
//! certificate is accepted.
//!
//! `closed_quinn PORT CONNECTIONS STREAMS SECONDS [PATH]`: one line of JSON, as of the loops in
//! `bench/`.

use bytes::BytesMut;
use knee_engine::exchange::http3::frame::{self, kind};
use knee_engine::exchange::http3::{CriticalStreams, qpack, quic};
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig,
    Event, StreamEvent,
};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Accepts every certificate, and no wrong signature.
#[derive(Debug)]
struct AnyCertificate(CryptoProvider);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("only TLS 1.3 is offered".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// A connection and its socket.
struct Loop {
    socket: UdpSocket,
    peer: SocketAddr,
    endpoint: Endpoint,
    handle: ConnectionHandle,
    connection: Connection,
    streams: usize,
    /// Responses so far.
    answered: u64,
}

impl Loop {
    fn open(
        config: &ClientConfig,
        peer: SocketAddr,
        streams: usize,
    ) -> Result<Loop, std::io::Error> {
        let socket = UdpSocket::bind(("127.0.0.1", 0))?;
        socket.connect(peer)?;
        socket.set_nonblocking(true)?;
        let mut endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), None, false, None);
        let (handle, connection) = endpoint
            .connect(Instant::now(), config.clone(), peer, "localhost")
            .map_err(std::io::Error::other)?;
        Ok(Loop { socket, peer, endpoint, handle, connection, streams, answered: 0 })
    }

    /// Takes what has come, and asks again for each response.
    fn go_on(&mut self, request: &[u8], buffer: &mut [u8], out: &mut Vec<u8>) {
        while let Ok(count) = self.socket.recv(buffer) {
            let bytes = BytesMut::from(&buffer[..count]);
            let now = Instant::now();
            let event = self.endpoint.handle(now, self.peer, None, None, bytes, out);
            if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
                self.connection.handle_event(event);
            }
        }
        self.serve(request);
        self.transmit(out);
    }

    fn serve(&mut self, request: &[u8]) {
        while let Some(event) = self.connection.poll_endpoint_events() {
            if let Some(answer) = self.endpoint.handle_event(self.handle, event) {
                self.connection.handle_event(answer);
            }
        }
        while let Some(event) = self.connection.poll() {
            match event {
                Event::Connected => {
                    CriticalStreams::open(&mut self.connection);
                    (0..self.streams).for_each(|_| self.ask(request));
                }
                Event::Stream(StreamEvent::Readable { id }) => {
                    let mut receiver = self.connection.recv_stream(id);
                    let Ok(mut chunks) = receiver.read(true) else {
                        continue;
                    };
                    let is_whole = loop {
                        match chunks.next(usize::MAX) {
                            Ok(Some(_)) => {}
                            Ok(None) => break true,
                            Err(_) => break false,
                        }
                    };
                    drop(chunks);
                    if is_whole && id.dir() == Dir::Bi {
                        self.answered += 1;
                        self.ask(request);
                    }
                }
                _ => {}
            }
        }
    }

    fn ask(&mut self, request: &[u8]) {
        if let Some(id) = self.connection.streams().open(Dir::Bi) {
            let mut sender = self.connection.send_stream(id);
            let _ = sender.write(request);
            let _ = sender.finish();
        }
    }

    fn transmit(&mut self, out: &mut Vec<u8>) {
        let now = Instant::now();
        out.clear();
        while let Some(transmit) = self.connection.poll_transmit(now, 1, out) {
            let _ = self.socket.send(&out[..transmit.size]);
            out.clear();
        }
    }

    fn fire(&mut self, now: Instant, out: &mut Vec<u8>) {
        if self.connection.poll_timeout().is_some_and(|at| at <= now) {
            self.connection.handle_timeout(now);
            self.transmit(out);
        }
    }
}

/// Time of this process on a processor.
fn cpu_s() -> f64 {
    // SAFETY: all zeroes are a valid rusage, which the call fills.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [port, count, streams, seconds, path @ ..] = &arguments[..] else {
        return Err("usage: closed_quinn PORT CONNECTIONS STREAMS SECONDS [PATH]".into());
    };
    let peer = SocketAddr::from(([127, 0, 0, 1], port.parse()?));
    let (count, streams): (usize, usize) = (count.parse()?, streams.parse()?);
    let length = Duration::from_secs_f64(seconds.parse()?);
    let provider = aws_lc_rs::default_provider();
    let mut tls = rustls::ClientConfig::builder_with_provider(Arc::new(provider.clone()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(Arc::new(quic::transport(quic::STREAM_WINDOW, 16, 0)));
    let mut section = qpack::PREFIX.to_vec();
    let authority = format!("localhost:{port}");
    let path = path.first().map_or("/", String::as_str);
    let fields = [(":method", "GET"), (":scheme", "https"), (":authority", &authority)];
    for (name, value) in fields.into_iter().chain([(":path", path), ("user-agent", "bare")]) {
        qpack::put_field(&mut section, name.as_bytes(), value.as_bytes());
    }
    let mut request = Vec::new();
    frame::put(&mut request, kind::HEADERS, &section);

    let opened = (0..count).map(|_| Loop::open(&config, peer, streams));
    let mut loops = opened.collect::<Result<Vec<_>, _>>()?;
    // SAFETY: the call has no memory of ours.
    let epoll = unsafe { libc::epoll_create1(0) };
    let (mut buffer, mut out) = (vec![0; 1 << 16], Vec::new());
    for (number, one) in loops.iter_mut().enumerate() {
        let mut event = libc::epoll_event {
            events: (libc::EPOLLIN | libc::EPOLLET) as u32,
            u64: number as u64,
        };
        // SAFETY: the event is ours, and read within the call.
        unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, one.socket.as_raw_fd(), &mut event) };
        one.transmit(&mut out);
    }
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; 256];
    let (begun, cpu) = (Instant::now(), cpu_s());
    let mut swept = begun;
    while begun.elapsed() < length {
        // SAFETY: the events are ours, as many as we say.
        let ready = unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), 256, 1) };
        for event in &events[..usize::try_from(ready).unwrap_or(0)] {
            loops[event.u64 as usize].go_on(&request, &mut buffer, &mut out);
        }
        let now = Instant::now();
        if now - swept > Duration::from_millis(1) {
            swept = now;
            loops.iter_mut().for_each(|one| one.fire(now, &mut out));
        }
    }
    let requests: u64 = loops.iter().map(|one| one.answered).sum();
    let elapsed = begun.elapsed().as_secs_f64();
    let cpu_s = cpu_s() - cpu;
    println!("{{\"requests\":{requests},\"seconds\":{elapsed:.6},\"cpu_s\":{cpu_s:.6}}}");
    Ok(())
}
