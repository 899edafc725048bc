//! The bare cost of rustls, for `cargo xtask bench`: a closed loop of HTTP/1.1 over TLS 1.3 with
//! one thread, epoll, rustls's buffered connections and nothing else. It counts bytes and measures
//! no time; any certificate is accepted, once its signature is verified.
//!
//! `closed_rustls PORT CONNECTIONS SECONDS`: one line of JSON, as of the loops in `bench/`.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";

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

/// A secured connection and how many bytes of the present response have come.
struct Connection {
    tls: ClientConnection,
    tcp: TcpStream,
    got: usize,
}

impl Connection {
    fn open(
        config: &Arc<ClientConfig>,
        port: u16,
    ) -> Result<Connection, Box<dyn std::error::Error>> {
        let mut tcp = TcpStream::connect(("127.0.0.1", port))?;
        tcp.set_nodelay(true)?;
        let mut tls = ClientConnection::new(config.clone(), ServerName::try_from("127.0.0.1")?)?;
        while tls.is_handshaking() {
            tls.complete_io(&mut tcp)?;
        }
        Ok(Connection { tls, tcp, got: 0 })
    }

    fn ask(&mut self) -> io::Result<()> {
        self.tls.writer().write_all(REQUEST)?;
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.tcp)?;
        }
        Ok(())
    }

    /// Reads what there is, and returns it; nothing where nothing more is there.
    fn read<'b>(&mut self, buffer: &'b mut [u8]) -> Result<&'b [u8], Box<dyn std::error::Error>> {
        match self.tls.read_tls(&mut self.tcp) {
            Ok(0) => return Err("the server closed a connection".into()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(&[]),
            other => other?,
        };
        let plain = self.tls.process_new_packets()?.plaintext_bytes_to_read();
        let plain = plain.min(buffer.len());
        self.tls.reader().read_exact(&mut buffer[..plain])?;
        Ok(&buffer[..plain])
    }
}

/// The length of a response, header and body, learnt by asking once.
fn response_length(connection: &mut Connection) -> Result<usize, Box<dyn std::error::Error>> {
    connection.ask()?;
    let (mut response, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        response.extend_from_slice(connection.read(&mut buffer)?);
        let text = String::from_utf8_lossy(&response).to_ascii_lowercase();
        if let Some((head, _)) = text.split_once("\r\n\r\n") {
            let mut lines = head.lines();
            let length = lines.find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.ok_or("no content-length")?.trim().parse()?;
            let whole = head.len() + 4 + length;
            if response.len() >= whole {
                return Ok(whole);
            }
        }
    }
}

/// An epoll set of these connections, by their index, edge-triggered.
fn watch(connections: &[Connection]) -> io::Result<i32> {
    // SAFETY: no pointer is passed.
    let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    for (index, connection) in connections.iter().enumerate() {
        let mut event =
            libc::epoll_event { events: (libc::EPOLLIN | libc::EPOLLET) as u32, u64: index as u64 };
        let fd = connection.tcp.as_raw_fd();
        // SAFETY: the event is ours, and the call only reads it.
        if unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &raw mut event) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(epoll)
}

/// Processor time of this process, in seconds: in user mode and in the kernel.
fn processor_s() -> [f64; 2] {
    // SAFETY: all zeroes are a valid rusage, and the call fills ours.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    [usage.ru_utime, usage.ru_stime].map(|t| t.tv_sec as f64 + t.tv_usec as f64 / 1e6)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [port, count, seconds] = &arguments[..] else {
        return Err("usage: closed_rustls PORT CONNECTIONS SECONDS".into());
    };
    let (port, count): (u16, usize) = (port.parse()?, count.parse()?);
    let length = Duration::from_secs_f64(seconds.parse()?);
    let provider = aws_lc_rs::default_provider();
    let builder = ClientConfig::builder_with_provider(Arc::new(provider.clone()));
    let config = builder
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        .with_no_client_auth();
    let config = Arc::new(config);
    let opened = (0..count).map(|_| Connection::open(&config, port));
    let mut connections = opened.collect::<Result<Vec<_>, _>>()?;
    let whole = response_length(connections.first_mut().ok_or("no connections")?)?;
    let epoll = watch(&connections)?;
    for connection in &mut connections {
        connection.tcp.set_nonblocking(true)?;
        connection.ask()?;
    }
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; 256];
    let mut buffer = vec![0; 1 << 16];
    let (mut requests, begun) = (0_u64, Instant::now());
    while begun.elapsed() < length {
        // SAFETY: the events are ours, as many as we say.
        let ready = unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), 256, 100) };
        for event in &events[..usize::try_from(ready).unwrap_or(0)] {
            let connection = &mut connections[event.u64 as usize];
            // The read that finds nothing arms the edge again.
            loop {
                let plain = connection.read(&mut buffer)?.len();
                connection.got += plain;
                if connection.got < whole {
                    break;
                }
                connection.got = 0;
                requests += 1;
                connection.ask()?;
            }
        }
    }
    let [user_s, system_s] = processor_s();
    println!(
        "{{\"requests\":{requests},\"seconds\":{:.6},\"cpu_user_s\":{user_s:.6},\
         \"cpu_system_s\":{system_s:.6}}}",
        begun.elapsed().as_secs_f64()
    );
    Ok(())
}
