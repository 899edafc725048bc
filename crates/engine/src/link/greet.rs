//! The first connection to a target, before any load. Reports in one line why a load cannot work.

use super::{HUNG_UP, Link, Tls, TlsTarget, fault_words};
use crate::error::{RunError, reason};
use crate::exchange::{
    CallContext, Conversation, EventQueue, OpEvent, Outbox, Received, SocketKind,
    TargetConversation, WithConversation, WorkerSetup, with_conversation,
};
use knee_load::measure::{Agreed, Handshakes};
use knee_load::spec::{HttpVersion, Target};
use knee_load::time::Nanos;
use std::io::{self, ErrorKind, Read, Write};
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::vec::Drain;

/// Result of the first connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Greeting {
    /// The version of HTTP in use; never `Auto`.
    pub version: HttpVersion,
    /// Parameters of TLS, if any.
    pub agreed: Option<Agreed>,
}

/// Performs the handshakes of TLS and of the protocol over `stream`, as the target asks. Reads and
/// writes of the stream end after `patience`.
///
/// # Errors
/// [`RunError::Unreachable`]: the target speaks another protocol, or its identity is wrong.
pub(crate) fn greet(
    stream: &mut (impl Read + Write + ?Sized),
    target: &Target,
    tls: Option<TlsTarget>,
    patience: Duration,
) -> Result<Greeting, RunError> {
    let unreachable = |why: String| RunError::Unreachable(format!("{}: {why}", target.endpoint));
    let Some(tls) = tls else {
        open(stream, target, patience).map_err(unreachable)?;
        return Ok(Greeting { version: target.version(), agreed: None });
    };
    let (tls, agreed) = secure(stream, tls, patience).map_err(unreachable)?;
    let is_h2 = agreed.protocol.as_deref() == Some("h2");
    let version = match (target.version(), is_h2) {
        (HttpVersion::Http2, false) => {
            let why = "it does not choose HTTP/2 (ALPN): use --http1.1, or leave --http2 out";
            return Err(unreachable(why.to_owned()));
        }
        (_, true) => HttpVersion::Http2,
        (_, false) => HttpVersion::Http11,
    };
    // A target that chose a protocol in TLS speaks it.
    if agreed.protocol.is_none() {
        open(&mut SecuredStream::new(stream, tls), target, patience).map_err(unreachable)?;
    }
    Ok(Greeting { version, agreed: Some(agreed) })
}

/// Performs the handshake that the conversation of a target has over datagrams. `socket` is
/// connected.
///
/// # Errors
/// [`RunError::Unreachable`]: nothing answers in this protocol, or its identity is wrong.
pub(crate) fn greet_in_datagrams(
    socket: &UdpSocket,
    target: &Target,
    tls: Option<&TlsTarget>,
    patience: Duration,
) -> Result<Greeting, RunError> {
    let first = FirstDatagrams { socket, target, tls, patience };
    let agreed = with_conversation(target, first)
        .map_err(|why| RunError::Unreachable(format!("{}: {why}", target.endpoint)))?;
    Ok(Greeting { version: target.version(), agreed })
}

struct FirstDatagrams<'a> {
    socket: &'a UdpSocket,
    target: &'a Target,
    tls: Option<&'a TlsTarget>,
    patience: Duration,
}

/// Largest datagram over IP, in bytes.
const DATAGRAM_BYTES_MAX: usize = 64 << 10;

impl WithConversation for FirstDatagrams<'_> {
    type Output = Result<Option<Agreed>, String>;

    fn with<X: TargetConversation>(self, settings: &X::Settings) -> Self::Output {
        let FirstDatagrams { socket, target, tls, patience } = self;
        let tls = tls.map(TlsTarget::setup);
        let worker = WorkerSetup { tls, ..only_connection(target, patience) };
        let begun = Instant::now();
        let (mut out, mut events) = (Outbox::default(), EventQueue::default());
        let shared = &mut X::shared(settings, &worker);
        let cx = &mut CallContext { now: Nanos(1), shared, out: &mut out, events: &mut events };
        let mut conversation = X::established(cx);
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        while !conversation.is_open() {
            for event in cx.events.drain(..) {
                match event {
                    OpEvent::NotSecured(fault) => return Err(fault_words(&fault)),
                    OpEvent::Violated(why) | OpEvent::Reset(why) => return Err(why),
                    _ => {}
                }
            }
            send_datagrams(socket, &mut conversation, cx)?;
            let Some(left) = patience.checked_sub(begun.elapsed()).filter(|left| !left.is_zero())
            else {
                return Err(SILENT_IN_DATAGRAMS.to_owned());
            };
            let until = conversation.poll_timeout().0.saturating_sub(cx.now.0);
            let wait = Duration::from_nanos(until)
                .clamp(Duration::from_millis(1), left.max(Duration::from_millis(1)));
            socket.set_read_timeout(Some(wait)).map_err(|error| reason(&error))?;
            let received = socket.recv(&mut buffer);
            cx.now = Nanos(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX).max(1));
            match received {
                Ok(count) => {
                    conversation.receive(Received { bytes: &buffer[..count], at: cx.now }, cx)
                }
                Err(error) if is_no_datagram(&error) => conversation.handle_timeout(cx),
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    return Err(
                        "no server listens on this UDP port (connection refused)".to_owned()
                    );
                }
                Err(error) => return Err(reason(&error)),
            }
        }
        let mut handshakes = Handshakes::default();
        conversation.note(&mut handshakes);
        conversation.close(cx);
        // Whether it still listens says nothing of the load.
        let _ = send_datagrams(socket, &mut conversation, cx);
        Ok(handshakes.agreed)
    }
}

/// Sends what a conversation puts out.
fn send_datagrams<X: Conversation>(
    socket: &UdpSocket,
    conversation: &mut X,
    cx: &mut CallContext<'_, X::Shared>,
) -> Result<(), String> {
    conversation.flush(cx);
    let mut rest = &cx.out.bytes()[..];
    while !rest.is_empty() {
        let (border, datagram) = SocketKind::Datagram.first_of(rest);
        match socket.send(datagram) {
            // What an earlier datagram brought back comes with the next one that is received.
            Ok(_) | Err(_) => rest = &rest[border + datagram.len()..],
        }
    }
    cx.out.clear();
    Ok(())
}

/// Whether a wait for a datagram ended without one.
fn is_no_datagram(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

const SILENT_IN_DATAGRAMS: &str = "it does not answer in QUIC in time: it may have no HTTP/3, or \
     UDP to its port may be blocked";

/// Has the conversation of a load open a connection, and closes that.
fn open(
    stream: &mut (impl Read + Write + ?Sized),
    target: &Target,
    patience: Duration,
) -> Result<(), String> {
    with_conversation(target, FirstConversation { stream, target, patience })
}

struct FirstConversation<'a, S: ?Sized> {
    stream: &'a mut S,
    target: &'a Target,
    patience: Duration,
}

impl<S: Read + Write + ?Sized> WithConversation for FirstConversation<'_, S> {
    type Output = Result<(), String>;

    fn with<X: TargetConversation>(self, settings: &X::Settings) -> Result<(), String> {
        let FirstConversation { stream, target, patience } = self;
        let worker = only_connection(target, patience);
        let (mut out, mut events) = (Outbox::default(), EventQueue::default());
        let shared = &mut X::shared(settings, &worker);
        let cx = &mut CallContext { now: Nanos::ZERO, shared, out: &mut out, events: &mut events };
        let mut conversation = X::established(cx);
        if !conversation.is_open() {
            let opened = converse(stream, &mut conversation, cx, patience, |is, _, mut events| {
                let violated = events.find_map(|event| match event {
                    OpEvent::Violated(why) => Some(Err(why)),
                    _ => None,
                });
                violated.or(is.is_open().then_some(Ok(())))
            });
            opened.map_err(X::not_spoken)?;
        }
        conversation.close(cx);
        // Whether it still listens says nothing of the load.
        let _ = stream.write_all(cx.out.bytes());
        Ok(())
    }
}

/// What a connection before any load needs to know. It is the only one, so any seed will do.
pub(super) fn only_connection(target: &Target, patience: Duration) -> WorkerSetup<'_> {
    let limit = Nanos(patience.as_nanos().try_into().unwrap_or(u64::MAX));
    WorkerSetup {
        target,
        tls: None,
        streams_max: 1,
        timeout: limit,
        open_timeout: limit,
        seed: (0, 0),
    }
}

/// Exchanges bytes with a target until `ends` has a result, which is called with what was received
/// and with the events that follow from it.
///
/// # Errors
/// `ends` returned an error, the connection failed or ended, or `patience` is over.
pub(super) fn converse<X: Conversation, T>(
    stream: &mut (impl Read + Write + ?Sized),
    conversation: &mut X,
    cx: &mut CallContext<'_, X::Shared>,
    patience: Duration,
    mut ends: impl FnMut(&X, &[u8], Drain<'_, OpEvent>) -> Option<Result<T, String>>,
) -> Result<T, String> {
    let begun = Instant::now();
    let mut buffer = vec![0; 16 << 10];
    loop {
        stream.write_all(cx.out.bytes()).map_err(|e| reason(&e))?;
        cx.out.clear();
        if begun.elapsed() > patience {
            return Err("it has not answered in time".to_owned());
        }
        let count = read_some(stream, &mut buffer).map_err(|e| reason(&e))?;
        if count == 0 {
            return Err("it closed the connection before it had answered".to_owned());
        }
        let (bytes, at) = (&buffer[..count], Nanos::ZERO);
        conversation.receive(Received { bytes, at }, cx);
        if let Some(result) = ends(conversation, bytes, cx.events.drain(..)) {
            return result;
        }
    }
}

/// A stream over TLS, after the handshake.
pub(super) struct SecuredStream<'a, S: ?Sized> {
    stream: &'a mut S,
    tls: Tls,
    /// Received, and not read yet.
    plain: Vec<u8>,
}

impl<'a, S: ?Sized> SecuredStream<'a, S> {
    pub(super) fn new(stream: &'a mut S, tls: Tls) -> SecuredStream<'a, S> {
        SecuredStream { stream, tls, plain: Vec::new() }
    }
}

impl<S: Read + Write + ?Sized> Read for SecuredStream<'_, S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut wire = vec![0; 16 << 10];
        while self.plain.is_empty() && !self.tls.is_ended() {
            let count = read_some(self.stream, &mut wire)?;
            if count == 0 {
                break;
            }
            let opened =
                self.tls.open(&wire[..count], |plain, _| self.plain.extend_from_slice(plain));
            opened.map_err(io::Error::other)?;
        }
        let count = self.plain.len().min(into.len());
        into[..count].copy_from_slice(&self.plain[..count]);
        self.plain.drain(..count);
        Ok(count)
    }
}

impl<S: Read + Write + ?Sized> Write for SecuredStream<'_, S> {
    fn write(&mut self, plain: &[u8]) -> io::Result<usize> {
        let mut wire = Vec::new();
        self.tls.seal(plain, &mut wire);
        self.stream.write_all(&wire)?;
        Ok(plain.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

pub(super) fn secure(
    stream: &mut (impl Read + Write + ?Sized),
    target: TlsTarget,
    patience: Duration,
) -> Result<(Tls, Agreed), String> {
    let begun = Instant::now();
    let own = Arc::clone(&target.client_certificate);
    let mut target = target;
    let mut tls = Tls::new(&mut target)?;
    let mut buffer = vec![0; 16 << 10];
    loop {
        let mut wire = Vec::new();
        tls.take_wire(&mut wire);
        stream.write_all(&wire).map_err(|error| lost(&error))?;
        if let Some(agreed) = tls.agreed() {
            if own.was_asked_for() && tls.may_refuse_client_later() {
                takes_the_client(stream, &mut tls)?;
            }
            return Ok((tls, agreed));
        }
        if begun.elapsed() > patience {
            return Err(SILENT.to_owned());
        }
        let count = read_some(stream, &mut buffer).map_err(|error| lost(&error))?;
        if count == 0 {
            return Err(format!("{HUNG_UP}: if it speaks cleartext, use http://"));
        }
        if let Err(why) = take_in(&mut tls, &buffer[..count]) {
            let mut alert = Vec::new();
            tls.take_wire(&mut alert);
            // The alert, if it still listens.
            let _ = stream.write_all(&alert);
            return Err(why);
        }
    }
}

/// Reads what has come. A wait that a stop of the process broke off (signal(7)) begins again.
fn read_some(stream: &mut (impl Read + ?Sized), into: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(into) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// Processes bytes of the handshake and of what follows it.
fn take_in(tls: &mut Tls, bytes: &[u8]) -> Result<(), String> {
    let mut rest = bytes;
    while !rest.is_empty() && !tls.is_secured() {
        tls.secure(&mut rest)?;
    }
    tls.open(rest, |_, _| {})
}

/// A TLS 1.3 server refuses the client's certificate only after the handshake (RFC 8446 §4.4.2.4).
/// One that accepts it sends tickets or SETTINGS, or nothing.
fn takes_the_client(stream: &mut (impl Read + ?Sized), tls: &mut Tls) -> Result<(), String> {
    let mut buffer = vec![0; 16 << 10];
    match read_some(stream, &mut buffer) {
        Ok(count @ 1..) => take_in(tls, &buffer[..count])?,
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            return Ok(());
        }
        Ok(0) | Err(_) => return Err(NOT_TAKEN.to_owned()),
    }
    if tls.is_ended() {
        return Err(NOT_TAKEN.to_owned());
    }
    Ok(())
}

const NOT_TAKEN: &str =
    "it asks for a certificate of the client and closed the connection: see --cert and --key";

const SILENT: &str = "it does not answer in TLS in time: if it speaks cleartext, use http://";

fn lost(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => SILENT.to_owned(),
        _ => format!("the TLS handshake failed: {}", reason(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Results of its reads, one after another.
    struct BrokenOff(Vec<io::Result<&'static [u8]>>);

    impl Read for BrokenOff {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let next = self.0.remove(0)?;
            into[..next.len()].copy_from_slice(next);
            Ok(next.len())
        }
    }

    #[test]
    fn a_wait_that_a_stop_broke_off_begins_again() {
        let broken_off = || Err(ErrorKind::Interrupted.into());
        let reads =
            vec![broken_off(), broken_off(), Ok(&b"abc"[..]), Err(ErrorKind::TimedOut.into())];
        let mut stream = BrokenOff(reads);
        let mut buffer = [0; 8];
        assert_eq!(read_some(&mut stream, &mut buffer).unwrap(), 3);
        let error = read_some(&mut stream, &mut buffer).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "the limit of a wait is one");
    }
}
