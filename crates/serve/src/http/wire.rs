//! The bytes of one connection, in clear or through TLS, and the events that it waits for.

use super::context::Context;
use super::drive::{DRAIN_MAX, DriveStop, Tools};
use super::log::ConnectionLog;
use super::secure::Secure;
use super::stats::{ServerTally, Trouble};
use knee_engine::exchange::http2::frame::PREFACE;
use knee_engine::sys::epoll::{Epoll, flags};
use knee_engine::sys::socket::Socket;
use std::io;

/// The version of HTTP, as the first bytes show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HttpGuess {
    /// A request of HTTP/1.1, or something that is no HTTP.
    Http1,
    /// HTTP/2: it was agreed on with the handshake of TLS, or begins as none but HTTP/2 does.
    Http2,
    /// More bytes are needed.
    Unclear,
}

/// The bytes of one accepted connection.
#[derive(Debug)]
pub(super) struct Wire {
    socket: Socket,
    /// Token of its timers and events.
    pub(super) token: u64,
    /// TLS, if the connection is secured.
    secure: Option<Box<Secure>>,
    /// Whether a read may find something: an event said so and no read has come up short since.
    pub(super) readable: bool,
    /// Whether any byte of a request has come. From then on it occupies a worker.
    pub(super) has_request_bytes: bool,
    /// Whether the peer has ended its direction: a short read does not mean that nothing follows.
    pub(super) ended: bool,
    watched: bool,
    watches_write: bool,
    /// Log of the connection, if requests are logged.
    line: Option<Box<ConnectionLog>>,
}

impl Wire {
    /// Wire of a connection just accepted.
    pub(super) fn new(socket: Socket, token: u64, secure: Option<Box<Secure>>) -> Wire {
        Wire {
            socket,
            token,
            secure,
            readable: true,
            has_request_bytes: false,
            ended: false,
            watched: false,
            watches_write: false,
            line: None,
        }
    }

    /// Which version of HTTP begins with `input`, the first bytes that came.
    pub(super) fn opening(&self, input: &[u8]) -> HttpGuess {
        let is_agreed = self.secure.as_ref().is_some_and(|s| s.is_http2());
        if is_agreed || input.starts_with(PREFACE) {
            HttpGuess::Http2
        } else if PREFACE.starts_with(input) {
            HttpGuess::Unclear
        } else {
            HttpGuess::Http1
        }
    }

    /// Handles an event of the socket.
    pub(super) fn on_event(&mut self, event_flags: u32) {
        use flags::{ERROR, HANG_UP, READ, READ_CLOSED};
        self.readable |= event_flags & (READ | READ_CLOSED | ERROR | HANG_UP) != 0;
        self.ended |= event_flags & (READ_CLOSED | ERROR | HANG_UP) != 0;
    }

    /// Asks epoll for events once there is one to wait for. A connection whose request came with it
    /// and that is closed after its response never needs any. Returns `false` if it cannot.
    pub(super) fn watch(&mut self, wants_read: bool, epoll: &Epoll) -> bool {
        if self.is_pending() {
            return self.watch_write(epoll).is_ok();
        }
        if !wants_read || self.watched {
            return true;
        }
        self.watched = true;
        epoll.add(&self.socket, self.token, flags::READ | flags::READ_CLOSED | flags::EDGE).is_ok()
    }

    /// Waits for room to write. Returns why driving stops.
    pub(super) fn wait_for_room(&mut self, epoll: &Epoll) -> DriveStop {
        if self.watch_write(epoll).is_ok() { DriveStop::Wait } else { DriveStop::Close }
    }

    /// Asks epoll also for room to write.
    fn watch_write(&mut self, epoll: &Epoll) -> io::Result<()> {
        if self.watches_write {
            return Ok(());
        }
        self.watches_write = true;
        let interest = flags::READ | flags::READ_CLOSED | flags::WRITE | flags::EDGE;
        if std::mem::replace(&mut self.watched, true) {
            epoll.modify(&self.socket, self.token, interest)
        } else {
            epoll.add(&self.socket, self.token, interest)
        }
    }

    /// Reads into `tools.buffer` behind its first `carry` bytes. Returns the bytes of requests
    /// read; 0 at the end.
    pub(super) fn read(&mut self, carry: usize, tools: &mut Tools<'_>) -> Result<usize, DriveStop> {
        let context = &mut *tools.context;
        let into = &mut tools.buffer[carry..];
        let read = match self.secure {
            None => self.receive(into, context)?,
            Some(_) => self.read_secured(tools.sealed, into, context)?,
        };
        if read > 0 {
            self.has_request_bytes = true;
            context.tally.stats.bytes_received += read as u64;
        }
        Ok(read)
    }

    /// Reads until there are bytes of a request, or nothing is there.
    fn read_secured(
        &mut self,
        sealed: &mut [u8],
        into: &mut [u8],
        context: &mut Context,
    ) -> Result<usize, DriveStop> {
        loop {
            let count = self.receive(sealed, context);
            let Some(secure) = &mut self.secure else {
                return Err(DriveStop::Close);
            };
            if matches!(count, Ok(0) | Err(DriveStop::Close)) {
                context.tally.tls.failed += u64::from(secure.in_handshake());
            }
            let sealed = &sealed[..count?];
            if sealed.is_empty() || secure.is_ended {
                return Ok(0);
            }
            context.tally.tls.bytes_received += sealed.len() as u64;
            let opened = secure.open(sealed, into);
            if let Some(handshake) = secure.handshake() {
                context.tally.tls.on_handshake(handshake);
            }
            // A peer that has ended TLS may leave the socket open.
            self.ended |= secure.is_ended;
            self.readable |= self.ended;
            match opened {
                Ok(0) if self.readable => {}
                Ok(0) => return Err(DriveStop::Wait),
                Ok(opened) => return Ok(opened),
                Err(_) => {
                    if secure.in_handshake() {
                        context.tally.tls.failed += 1;
                    } else {
                        context.tally.on_trouble(Trouble::Malformed);
                    }
                    return Err(DriveStop::Close);
                }
            }
        }
    }

    /// Reads from the socket, once.
    fn receive(&mut self, into: &mut [u8], context: &mut Context) -> Result<usize, DriveStop> {
        match self.receive_logged(into, context) {
            Ok(read) => {
                // epoll(7): after a short read the next event tells of whatever comes next.
                self.readable = read == into.len() || self.ended;
                Ok(read)
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.readable = false;
                Err(DriveStop::Wait)
            }
            Err(_) => {
                context.tally.on_trouble(Trouble::ClientReset);
                Err(DriveStop::Close)
            }
        }
    }

    fn receive_logged(&mut self, into: &mut [u8], context: &mut Context) -> io::Result<usize> {
        if context.log.is_none() {
            return self.socket.read(into);
        }
        let (read, came_ns) = self.socket.receive(into)?;
        let now = context.read_clock();
        if let Some(log) = &mut context.log {
            let new = || Box::new(ConnectionLog::new(&self.socket, log));
            self.line.get_or_insert_with(new).on_read(now, came_ns);
        }
        Ok(read)
    }

    /// Log of the connection, if requests are logged.
    pub(super) fn log(&mut self) -> Option<&mut ConnectionLog> {
        self.line.as_deref_mut()
    }

    /// Reads and drops input, after `dropped` bytes before. Returns the new total. Stops at the end
    /// of input, or once enough was dropped.
    pub(super) fn drain(&mut self, dropped: usize, buffer: &mut [u8]) -> Result<usize, DriveStop> {
        if !self.readable {
            return Err(DriveStop::Wait);
        }
        match self.socket.read(buffer) {
            Ok(0) => Err(DriveStop::Close),
            Ok(read) if dropped + read >= DRAIN_MAX => Err(DriveStop::Close),
            Ok(read) => Ok(dropped + read),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.readable = false;
                Err(DriveStop::Wait)
            }
            Err(_) => Err(DriveStop::Close),
        }
    }

    /// Sends as many of `bytes` as fit, and returns their number; `None`: there is no room. They
    /// may still be pending: see [`Wire::is_pending`].
    #[inline]
    pub(super) fn send(
        &mut self,
        bytes: &[u8],
        tally: &mut ServerTally,
    ) -> Result<Option<usize>, DriveStop> {
        match self.try_send(bytes, tally) {
            Ok(count) => Ok(Some(count)),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(_) => {
                tally.on_trouble(Trouble::Write);
                Err(DriveStop::Close)
            }
        }
    }

    #[inline]
    fn try_send(&mut self, bytes: &[u8], tally: &mut ServerTally) -> io::Result<usize> {
        let count = match &mut self.secure {
            None => self.socket.send(bytes)?,
            Some(secure) => {
                flush(secure, &self.socket, tally)?;
                let count = secure.seal(bytes);
                match flush(secure, &self.socket, tally) {
                    Err(e) if e.kind() != io::ErrorKind::WouldBlock => return Err(e),
                    _ => count,
                }
            }
        };
        tally.stats.bytes_sent += count as u64;
        Ok(count)
    }

    /// Whether a handshake has begun and not ended.
    pub(super) fn in_handshake(&self) -> bool {
        self.secure.as_ref().is_some_and(|s| s.in_handshake())
    }

    /// Whether something that was handed over is not with the kernel yet.
    #[inline]
    pub(super) fn is_pending(&self) -> bool {
        self.secure.as_ref().is_some_and(|s| s.is_pending())
    }

    /// Sends what is pending, as far as it fits.
    ///
    /// # Errors
    /// Reset, broken pipe.
    pub(super) fn flush(&mut self, tally: &mut ServerTally) -> io::Result<()> {
        let Some(secure) = &mut self.secure else {
            return Ok(());
        };
        match flush(secure, &self.socket, tally) {
            Err(e) if e.kind() != io::ErrorKind::WouldBlock => Err(e),
            _ => Ok(()),
        }
    }

    /// Makes closing reset the connection.
    pub(super) fn reset(&mut self) {
        // Where that fails the connection is closed in order, and the peer sees no response.
        let _ = self.socket.set_reset_on_close();
        self.secure = None;
    }

    /// Lets the response end in the middle, without the end of TLS.
    pub(super) fn cut(&mut self) {
        if let Some(secure) = &mut self.secure {
            secure.cut();
        }
    }

    /// Sends the end of TLS, as far as there is room for it.
    pub(super) fn end(&mut self, tally: &mut ServerTally) {
        if let Some(secure) = &mut self.secure {
            secure.end();
            // A client that is gone needs no end.
            let _ = flush(secure, &self.socket, tally);
        }
    }

    /// Ends this side's direction; the other may go on.
    pub(super) fn end_write(&mut self, tally: &mut ServerTally) {
        self.end(tally);
        let _ = self.socket.shutdown_write();
    }
}

fn flush(secure: &mut Secure, socket: &Socket, tally: &mut ServerTally) -> io::Result<()> {
    while secure.is_pending() {
        let sent = secure.send(socket)?;
        tally.tls.bytes_sent += sent as u64;
    }
    Ok(())
}
