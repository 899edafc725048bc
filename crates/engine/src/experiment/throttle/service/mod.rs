//! The quote of the day service, RFC 865: a short text to whoever connects or sends a datagram.
//!
//! What a datagram says of its sender can be forged, so a service that answers each is a means to
//! send traffic to others. Beyond loopback this one answers only those it was told of.

use crate::sys::epoll::{Epoll, EpollEvent, EventFd, flags};
use crate::sys::socket::is_exhaustion;
use crate::threads::{self, RunningServer, StoppableThread};
use knee_load::spec::ParseError;
use knee_load::time::Nanos;
use serde::Serialize;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Configuration of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QotdSpec {
    /// Address of both UDP and TCP; port 0 picks one that is free for both.
    pub listen: SocketAddr,
    /// The quote: see [`parse_quote`].
    pub quote: String,
    /// Senders whose datagrams are answered, unless it listens on loopback.
    pub allow: Vec<IpAddr>,
}

impl Default for QotdSpec {
    fn default() -> QotdSpec {
        QotdSpec {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 1717)),
            quote: of_the_day(),
            allow: Vec::new(),
        }
    }
}

/// Counts of the service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct QotdStats {
    /// Datagrams received.
    pub datagrams: u64,
    /// Datagrams answered.
    pub answered: u64,
    /// Of them, those not answered on purpose. The sender is not one of those allowed. Or its port
    /// is below 1024 or the service's own: an answer might be answered again, for ever.
    pub refused: u64,
    /// Connections. Each was sent the quote.
    pub connections: u64,
}

/// A running quote of the day service; it ends when it is stopped or dropped.
pub type QotdServer = RunningServer<SocketAddr, QotdStats>;

impl QotdServer {
    /// Listens and serves in a thread of its own.
    ///
    /// # Errors
    /// The address is in use, not permitted (ports below 1024 need a right) or not this machine's.
    pub fn start(spec: QotdSpec) -> io::Result<QotdServer> {
        let wake = Arc::new(EventFd::new()?);
        let server = QuoteServer::bind(spec, &wake)?;
        let address = server.udp.local_addr()?;
        let thread = StoppableThread::start("serve-qotd", Some(wake), |_| server.run());
        Ok(QotdServer::new(address, thread.map_err(|e| threads::error(&e))?))
    }
}

/// Tokens of epoll.
const WAKE: u64 = 0;
const UDP: u64 = 1;
const TCP: u64 = 2;

/// Datagrams or connections taken per pass.
const PER_PASS: u32 = 64;

/// Attempts to find a port that is free for both protocols.
const PORT_TRIES: u32 = 16;

/// Ports below are those of services.
const SERVICE_PORTS: u16 = 1024;

/// A service that listens and is ready to run.
struct QuoteServer {
    udp: UdpSocket,
    tcp: TcpListener,
    epoll: Epoll,
    quote: String,
    /// `None`: whoever asks is allowed.
    allow: Option<Vec<IpAddr>>,
    own_port: u16,
    stats: QotdStats,
}

impl QuoteServer {
    /// Listens. `wake` has to outlive the run.
    ///
    /// # Errors
    /// The quote is none; in use, not permitted, not this machine's.
    fn bind(spec: QotdSpec, wake: &EventFd) -> io::Result<QuoteServer> {
        let quote = parse_quote(&spec.quote)
            .map_err(|e| io::Error::new(ErrorKind::InvalidInput, e.to_string()))?;
        let (tcp, udp) = bind_both(spec.listen)?;
        tcp.set_nonblocking(true)?;
        udp.set_nonblocking(true)?;
        let epoll = Epoll::new()?;
        epoll.add(wake, WAKE, flags::READ)?;
        epoll.add(&udp, UDP, flags::READ)?;
        epoll.add(&tcp, TCP, flags::READ)?;
        let own_port = udp.local_addr()?.port();
        let is_loopback = spec.listen.ip().to_canonical().is_loopback();
        Ok(QuoteServer {
            udp,
            tcp,
            epoll,
            quote,
            allow: (!is_loopback).then_some(spec.allow),
            own_port,
            stats: QotdStats::default(),
        })
    }

    /// Serves until it is woken.
    fn run(mut self) -> QotdStats {
        let mut events = [EpollEvent::EMPTY; 3];
        // Accept ran out of descriptors: try again later, not at once.
        let mut is_exhausted = false;
        loop {
            let patience = is_exhausted.then_some(Nanos::from_millis(50));
            let ready = self.epoll.wait(&mut events, patience);
            let ready = ready.expect("epoll_wait fails for wrong arguments alone");
            let is_ready = |token| ready.iter().any(|event| event.token() == token);
            if is_ready(WAKE) {
                return self.stats;
            }
            if is_ready(UDP) {
                self.answer_datagrams();
            }
            if is_ready(TCP) || is_exhausted {
                let was_exhausted = is_exhausted;
                is_exhausted = self.accept();
                if is_exhausted != was_exhausted {
                    let watched = if is_exhausted { 0 } else { flags::READ };
                    // Where it cannot be changed it goes on as it is, only busier.
                    let _ = self.epoll.modify(&self.tcp, TCP, watched);
                }
            }
        }
    }

    fn answer_datagrams(&mut self) {
        for _ in 0..PER_PASS {
            // The content does not matter.
            let from = match self.udp.recv_from(&mut [0; 1]) {
                Ok((_, from)) => from,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                // An earlier answer was refused, which is reported here once.
                Err(_) => continue,
            };
            self.stats.datagrams += 1;
            if !self.may_answer(from) {
                self.stats.refused += 1;
            } else if self.udp.send_to(self.quote.as_bytes(), from).is_ok() {
                self.stats.answered += 1;
            }
        }
    }

    fn may_answer(&self, from: SocketAddr) -> bool {
        let is_service = from.port() < SERVICE_PORTS || from.port() == self.own_port;
        let ip = from.ip().to_canonical();
        // The kernel lets no datagram in from elsewhere that says it comes from the loopback.
        let is_allowed =
            |allow: &Vec<IpAddr>| ip.is_loopback() || allow.iter().any(|a| a.to_canonical() == ip);
        !is_service && self.allow.as_ref().is_none_or(is_allowed)
    }

    /// Sends the quote to those who have connected; whether descriptors or memory ran out.
    fn accept(&mut self) -> bool {
        for _ in 0..PER_PASS {
            match self.tcp.accept() {
                Ok((stream, _)) => {
                    self.stats.connections += 1;
                    // Whoever has gone already needs no quote.
                    let _ = quote_to(&stream, &self.quote);
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return false,
                Err(e) if is_exhaustion(&e) => return true,
                Err(_) => {}
            }
        }
        false
    }
}

/// Sends the quote, which fits into any new connection's buffer, and ends the connection.
fn quote_to(mut stream: &TcpStream, quote: &str) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    stream.write_all(quote.as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    // What came is thrown away (RFC 865); left unread it would turn the close into a reset.
    let _ = stream.read(&mut [0; 4096]);
    Ok(())
}

/// Binds both protocols to one port.
fn bind_both(listen: SocketAddr) -> io::Result<(TcpListener, UdpSocket)> {
    let mut tries = if listen.port() == 0 { PORT_TRIES } else { 1 };
    loop {
        let tcp = TcpListener::bind(listen)?;
        tries -= 1;
        match UdpSocket::bind(tcp.local_addr()?) {
            Err(e) if e.kind() == ErrorKind::AddrInUse && tries > 0 => {}
            udp => return Ok((tcp, udp?)),
        }
    }
}

/// The most characters that a quote has (RFC 865), the line end that is sent behind it included.
pub const QUOTE_MAX: usize = 512;

/// One for each day of the week.
const QUOTES: [&str; 7] = [
    "A queue is a debt: it grows in an instant and is paid off one by one.",
    "Nobody ever waited for an average.",
    "Whoever sleeps for a millisecond should be glad to wake within two.",
    "Busy all day and never behind: one of the two is not true.",
    "The last tenth of the load costs more waiting than the nine before it.",
    "A schedule that forgives its delays has forgotten them.",
    "If everyone waits for you, you are the measurement.",
];

/// The quote of this day.
pub fn of_the_day() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let day = since.map_or(0, |time| time.as_secs() / 86_400);
    QUOTES[(day % QUOTES.len() as u64) as usize].to_owned()
}

/// A quote as the service may send it: printable ASCII and line ends, not empty, at most
/// [`QUOTE_MAX`] characters. Line ends become CR LF, and one is added at the end.
///
/// # Errors
/// The text is no such quote.
pub fn parse_quote(text: &str) -> Result<String, ParseError> {
    let mut quote = String::with_capacity(text.len() + 2);
    for line in text.trim_end_matches(['\r', '\n']).split('\n') {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if let Some(other) = line.chars().find(|c| !matches!(c, ' '..='~')) {
            return Err(ParseError(format!(
                "a quote has printable ASCII characters and line ends (RFC 865), not {other:?}"
            )));
        }
        quote.push_str(line);
        quote.push_str("\r\n");
    }
    match quote.len() {
        0..=2 => Err(ParseError("a quote has to say something".to_owned())),
        3..=QUOTE_MAX => Ok(quote),
        length => Err(ParseError(format!(
            "a quote has at most {QUOTE_MAX} characters with its line ends (RFC 865), not {length}"
        ))),
    }
}

/// A UDP socket that nobody reads, for sends whose arrival does not matter. What comes fills its
/// buffer, beyond which the kernel drops it; without it each datagram would come back as an error
/// (ICMP port unreachable). It is closed when dropped.
#[derive(Debug)]
pub struct UdpSink {
    _socket: UdpSocket,
    address: SocketAddr,
}

impl UdpSink {
    /// Binds it; port 0 picks a free one.
    ///
    /// # Errors
    /// The address is in use, not permitted or not this machine's; out of descriptors.
    pub fn bind(address: SocketAddr) -> io::Result<UdpSink> {
        let socket = UdpSocket::bind(address)?;
        let address = socket.local_addr()?;
        Ok(UdpSink { _socket: socket, address })
    }

    /// Address that it is bound to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

#[cfg(test)]
mod tests;
