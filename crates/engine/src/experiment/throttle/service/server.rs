//! The service's thread.

use super::quotes::parse_quote;
use super::{QotdSpec, QotdStats};
use crate::sys::epoll::{Epoll, Event, flags};
use crate::sys::eventfd::EventFd;
use crate::sys::socket::is_exhaustion;
use knee_core::time::Nanos;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};

/// Tokens of epoll.
const WAKE: u64 = 0;
const UDP: u64 = 1;
const TCP: u64 = 2;

/// So many datagrams or connections are taken in a row before the others get their turn.
const PER_PASS: u32 = 64;

/// So many free ports are tried for one that both protocols have free.
const PORT_TRIES: u32 = 16;

/// Ports below are those of services.
const SERVICE_PORTS: u16 = 1024;

/// A service that listens and is ready to run.
pub(super) struct Server {
    udp: UdpSocket,
    tcp: TcpListener,
    epoll: Epoll,
    quote: String,
    /// `None`: whoever asks is allowed.
    allow: Option<Vec<IpAddr>>,
    own_port: u16,
    stats: QotdStats,
}

impl Server {
    /// Listens. `wake` has to outlive the run.
    ///
    /// # Errors
    /// The quote is none; in use, not permitted, not this machine's.
    pub(super) fn bind(spec: QotdSpec, wake: &EventFd) -> io::Result<Server> {
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
        Ok(Server {
            udp,
            tcp,
            epoll,
            quote,
            allow: (!is_loopback).then_some(spec.allow),
            own_port,
            stats: QotdStats::default(),
        })
    }

    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        self.udp.local_addr()
    }

    /// Serves until it is woken.
    pub(super) fn run(mut self) -> QotdStats {
        let mut events = [Event::EMPTY; 3];
        // Accept ran out of descriptors: tried again after a moment rather than at once.
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
            // What it says does not matter.
            let from = match self.udp.recv_from(&mut [0; 1]) {
                Ok((_, from)) => from,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                // An earlier answer was refused; that is told once, here.
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

    pub(super) fn may_answer(&self, from: SocketAddr) -> bool {
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

/// Both protocols at one port.
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
