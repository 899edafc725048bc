//! Both backends keep the same promises, shown against sockets of the standard library.

use super::*;
use crate::sys::socket::Address;
use knee_load::spec::Body;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

#[derive(Debug, PartialEq)]
enum Seen {
    Connected(u32),
    Received(u32, usize),
    Ended(u32),
    Failed(u32, io::ErrorKind),
}

#[derive(Default)]
struct Log(Vec<Seen>);

impl Sink for Log {
    fn on_event(&mut self, _: &mut dyn Backend, slot: u32, event: Event<'_>) {
        match event {
            Event::Received(b) => self.received(slot, b.bytes),
            Event::ReceivedLast(b) => {
                self.received(slot, b.bytes);
                self.0.push(Seen::Ended(slot));
            }
            Event::Connected => self.0.push(Seen::Connected(slot)),
            Event::Written => {}
            Event::Ended => self.0.push(Seen::Ended(slot)),
            Event::Failed(e) => self.0.push(Seen::Failed(slot, e.kind())),
        }
    }
}

impl Log {
    /// Bytes that come in pieces count as one.
    fn received(&mut self, slot: u32, bytes: &[u8]) {
        match self.0.last_mut() {
            Some(Seen::Received(s, n)) if *s == slot => *n += bytes.len(),
            _ => self.0.push(Seen::Received(slot, bytes.len())),
        }
    }
}

fn requests() -> WireRequests {
    let long = Body::from(vec![b'x'; 2_999_999]);
    let ping = WireRequest::new(b"ping".to_vec(), &Body::default());
    WireRequests::new([ping, WireRequest::new(b"x".to_vec(), &long)])
}

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(20);

/// Polls until `enough`.
fn poll_until<B: Backend>(io: &mut B, enough: impl Fn(&[Seen]) -> bool) -> Vec<Seen> {
    let mut log = Log::default();
    let begin = Instant::now();
    while !enough(&log.0) && begin.elapsed() < PATIENCE {
        io.poll(Nanos::from_millis(10), &mut log).unwrap();
    }
    log.0
}

fn raw(address: SocketAddr) -> RawAddress {
    RawAddress::new(&Address::Tcp(address)).unwrap()
}

fn listener() -> (TcpListener, RawAddress) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = raw(listener.local_addr().unwrap());
    (listener, address)
}

fn exchange<B: Backend>(mut io: B) {
    let (listener, address) = listener();
    io.open(3, ConnectOptions::to(&address)).unwrap();
    assert_eq!(poll_until(&mut io, |s| !s.is_empty()), [Seen::Connected(3)]);
    let (mut peer, _) = listener.accept().unwrap();
    io.send(3, Payload::Registered(0)).unwrap();
    let mut ping = [0; 4];
    io.poll(Nanos::ZERO, &mut Log::default()).unwrap();
    peer.read_exact(&mut ping).unwrap();
    assert_eq!(&ping, b"ping");
    peer.write_all(&[7; 500]).unwrap();
    assert_eq!(poll_until(&mut io, |s| !s.is_empty()), [Seen::Received(3, 500)]);
    peer.write_all(&vec![7; 700_000]).unwrap();
    drop(peer);
    let seen = poll_until(&mut io, |s| s.last() == Some(&Seen::Ended(3)));
    assert_eq!(seen, [Seen::Received(3, 700_000), Seen::Ended(3)], "the end comes after the bytes");
}

/// Datagrams of these contents, as a payload has them.
fn datagrams(contents: &[&[u8]]) -> Payload {
    let behind_lengths =
        |content: &&[u8]| [&(content.len() as u16).to_be_bytes(), *content].concat();
    Payload::Owned(contents.iter().flat_map(behind_lengths).collect())
}

fn datagrams_keep_their_borders<B: Backend>(mut io: B) {
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    peer.set_read_timeout(Some(PATIENCE)).unwrap();
    let address = raw(peer.local_addr().unwrap());
    io.open(3, ConnectOptions::to(&address).of_kind(SocketKind::Datagram)).unwrap();
    assert_eq!(poll_until(&mut io, |s| !s.is_empty()), [Seen::Connected(3)]);
    io.send(3, datagrams(&[b"one", b"", b"three"])).unwrap();
    assert!(!io.is_sending(3));
    let mut into = [0; 16];
    let mut from = None;
    for want in [&b"one"[..], b"", b"three"] {
        let (count, sender) = peer.recv_from(&mut into).unwrap();
        assert_eq!(&into[..count], want);
        from = Some(sender);
    }
    // An empty one is no end.
    for content in [&b"four"[..], b"", b"fifth"] {
        peer.send_to(content, from.unwrap()).unwrap();
    }
    let mut pieces = Pieces::default();
    let begin = Instant::now();
    while pieces.0.len() < 2 && begin.elapsed() < PATIENCE {
        io.poll(Nanos::from_millis(10), &mut pieces).unwrap();
    }
    assert_eq!(pieces.0, [&b"four"[..], b"fifth"]);
    assert!(pieces.1, "each has the time at which the kernel had it");
    drop(peer);
    io.send(3, datagrams(&[b"six"])).unwrap();
    let refused = [Seen::Failed(3, io::ErrorKind::ConnectionRefused)];
    assert_eq!(poll_until(&mut io, |s| !s.is_empty()), refused);
    io.close(3, Close::Orderly);
}

fn many_datagrams<B: Backend>(mut io: B) {
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = raw(peer.local_addr().unwrap());
    io.open(0, ConnectOptions::to(&address).of_kind(SocketKind::Datagram)).unwrap();
    poll_until(&mut io, |s| !s.is_empty());
    let to = SocketAddr::from(([127, 0, 0, 1], io.local_port(0).unwrap()));
    // As many as any receive buffer holds; the kernel drops further ones.
    for _ in 0..150 {
        peer.send_to(b"x", to).unwrap();
    }
    let mut pieces = Pieces::default();
    let begin = Instant::now();
    while pieces.0.len() < 150 && begin.elapsed() < PATIENCE {
        io.poll(Nanos::from_millis(10), &mut pieces).unwrap();
    }
    assert_eq!(pieces.0.len(), 150);
}

/// One call of the peer sends three datagrams (UDP_SEGMENT, udp(7)).
fn coalesced_datagrams<B: Backend>(mut io: B) {
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    crate::sys::set_option(&peer, libc::SOL_UDP, libc::UDP_SEGMENT, &1_000_i32).unwrap();
    let address = raw(peer.local_addr().unwrap());
    io.open(0, ConnectOptions::to(&address).of_kind(SocketKind::CoalescedDatagrams)).unwrap();
    poll_until(&mut io, |s| !s.is_empty());
    let to = SocketAddr::from(([127, 0, 0, 1], io.local_port(0).unwrap()));
    let content: Vec<u8> = (0..2_500_u32).map(|n| n as u8).collect();
    for content in [&content[..], b"one"] {
        peer.send_to(content, to).unwrap();
    }
    let mut pieces = Pieces::default();
    let begin = Instant::now();
    while pieces.0.len() < 4 && begin.elapsed() < PATIENCE {
        io.poll(Nanos::from_millis(10), &mut pieces).unwrap();
    }
    let borders = [&content[..1_000], &content[1_000..2_000], &content[2_000..], b"one"];
    assert_eq!(pieces.0, borders);
    assert!(pieces.1, "each has the time at which the kernel had it");
    io.send(0, datagrams(&[b"two"])).unwrap();
    let mut into = [0; 16];
    peer.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(peer.recv(&mut into).unwrap(), 3);
}

/// Each piece, and whether all have a time of the kernel.
#[derive(Default)]
struct Pieces(Vec<Vec<u8>>, bool);

impl Sink for Pieces {
    fn on_event(&mut self, _: &mut dyn Backend, _: u32, event: Event<'_>) {
        if let Event::Received(piece) = event {
            self.1 = piece.realtime_ns.is_some() && (self.1 || self.0.is_empty());
            self.0.push(piece.bytes.to_vec());
        }
    }
}

/// Counts the events of each kind.
#[derive(Default)]
struct Kinds {
    received: u32,
    last: u32,
    ended: u32,
}

impl Sink for Kinds {
    fn on_event(&mut self, _: &mut dyn Backend, _: u32, event: Event<'_>) {
        match event {
            Event::Received(_) => self.received += 1,
            Event::ReceivedLast(_) => self.last += 1,
            Event::Ended => self.ended += 1,
            Event::Connected | Event::Written | Event::Failed(_) => {}
        }
    }
}

#[test]
fn epoll_tells_the_end_with_the_last_bytes_where_both_are_there() {
    let mut io = EpollBackend::new(1, requests(), true).unwrap();
    let (listener, address) = listener();
    io.open(0, ConnectOptions::to(&address)).unwrap();
    poll_until(&mut io, |s| !s.is_empty());
    let (mut peer, _) = listener.accept().unwrap();
    peer.write_all(b"bye").unwrap();
    drop(peer);
    // On the loopback both have arrived once the peer's calls return.
    let mut kinds = Kinds::default();
    io.poll(Nanos::from_secs(20), &mut kinds).unwrap();
    assert_eq!((kinds.received, kinds.last, kinds.ended), (0, 1, 0));
}

fn long_request<B: Backend>(mut io: B) {
    let (listener, address) = listener();
    io.open(0, ConnectOptions::to(&address)).unwrap();
    poll_until(&mut io, |s| !s.is_empty());
    let (mut peer, _) = listener.accept().unwrap();
    io.send(0, Payload::Registered(1)).unwrap();
    let reader = std::thread::spawn(move || {
        let mut got = vec![0; 3_000_000];
        peer.read_exact(&mut got).unwrap();
        peer.write_all(b"thanks").unwrap();
        got.iter().all(|&b| b == b'x')
    });
    let seen = poll_until(&mut io, |s| !s.is_empty());
    // Its end may come in the same pass.
    assert_eq!(seen[0], Seen::Received(0, 6));
    assert!(reader.join().unwrap(), "whole, though no socket buffer holds it");
}

fn failures<B: Backend>(mut io: B) {
    let (gone, address) = listener();
    drop(gone);
    io.open(0, ConnectOptions::to(&address)).unwrap();
    let seen = poll_until(&mut io, |s| !s.is_empty());
    assert_eq!(seen, [Seen::Failed(0, io::ErrorKind::ConnectionRefused)]);
    io.close(0, Close::Orderly);
    let (listener, address) = self::listener();
    io.open(0, ConnectOptions::to(&address)).unwrap();
    assert_eq!(poll_until(&mut io, |s| !s.is_empty()), [Seen::Connected(0)]);
    io.send(0, Payload::Registered(0)).unwrap();
    io.poll(Nanos::ZERO, &mut Log::default()).unwrap();
    let (peer, _) = listener.accept().unwrap();
    // Closing with a byte unread resets the connection.
    while peer.peek(&mut [0; 4]).unwrap() == 0 {}
    drop(peer);
    let seen = poll_until(&mut io, |s| !s.is_empty());
    assert_eq!(seen, [Seen::Failed(0, io::ErrorKind::ConnectionReset)]);
}

fn a_closed_slot_is_silent<B: Backend>(mut io: B) {
    let (listener, address) = listener();
    io.open(1, ConnectOptions::to(&address)).unwrap();
    poll_until(&mut io, |s| !s.is_empty());
    let (mut first, _) = listener.accept().unwrap();
    first.write_all(b"late").unwrap();
    io.close(1, Close::Orderly);
    io.open(1, ConnectOptions::to(&address)).unwrap();
    assert_eq!(poll_until(&mut io, |s| !s.is_empty()), [Seen::Connected(1)]);
    let (mut second, _) = listener.accept().unwrap();
    let mut rest = Vec::new();
    let _ = first.read_to_end(&mut rest);
    assert_eq!(rest, b"", "the first peer sees the end");
    io.close(1, Close::Reset);
    io.poll(Nanos::ZERO, &mut Log::default()).unwrap();
    let error = second.read_to_end(&mut rest).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}

fn many_at_once<B: Backend>(mut io: B, slots: u32) {
    let (listener, address) = listener();
    let echo = std::thread::spawn(move || {
        let peers: Vec<_> = (0..slots).map(|_| listener.accept().unwrap().0).collect();
        for mut peer in peers {
            let mut ping = [0; 4];
            peer.read_exact(&mut ping).unwrap();
            peer.write_all(&[9; 20_000]).unwrap();
        }
    });
    struct Greets(u32, u64, u32);
    impl Sink for Greets {
        fn on_event(&mut self, io: &mut dyn Backend, slot: u32, event: Event<'_>) {
            match event {
                Event::Connected => {
                    self.0 += 1;
                    io.send(slot, Payload::Registered(0)).unwrap();
                }
                Event::Received(piece) => self.1 += piece.bytes.len() as u64,
                Event::ReceivedLast(piece) => {
                    self.1 += piece.bytes.len() as u64;
                    self.on_event(io, slot, Event::Ended);
                }
                Event::Written => {}
                Event::Ended => {
                    self.2 += 1;
                    io.close(slot, Close::Orderly);
                }
                Event::Failed(error) => panic!("{error}"),
            }
        }
    }
    let mut seen = Greets(0, 0, 0);
    for slot in 0..slots {
        io.open(slot, ConnectOptions::to(&address)).unwrap();
    }
    let begin = Instant::now();
    while seen.2 < slots && begin.elapsed() < PATIENCE {
        io.poll(Nanos::from_millis(10), &mut seen).unwrap();
    }
    assert_eq!((seen.0, seen.1, seen.2), (slots, u64::from(slots) * 20_000, slots));
    echo.join().unwrap();
}

fn over_a_unix_socket<B: Backend>(mut io: B) {
    let path = std::env::temp_dir().join(format!("knee-{}-{}", io.name(), std::process::id()));
    let listener = UnixListener::bind(&path).unwrap();
    let address = RawAddress::new(&Address::Unix(path.clone())).unwrap();
    io.open(0, ConnectOptions::to(&address)).unwrap();
    assert_eq!(poll_until(&mut io, |s| !s.is_empty()), [Seen::Connected(0)]);
    let (mut peer, _) = listener.accept().unwrap();
    peer.write_all(b"hello").unwrap();
    assert_eq!(poll_until(&mut io, |s| !s.is_empty()), [Seen::Received(0, 5)]);
    std::fs::remove_file(path).unwrap();
}

/// A listener that is slow to accept is no listener that refuses.
fn over_a_full_unix_listener<B: Backend>(mut io: B) {
    let path = std::env::temp_dir().join(format!("knee-full-{}-{}", io.name(), std::process::id()));
    let listener = UnixListener::bind(&path).unwrap();
    rustix::net::listen(&listener, 1).unwrap();
    let address = RawAddress::new(&Address::Unix(path.clone())).unwrap();
    for slot in 0..10 {
        io.open(slot, ConnectOptions::to(&address)).unwrap();
    }
    let seen = poll_until(&mut io, |s| s.len() == 2);
    assert_eq!(seen, [Seen::Connected(0), Seen::Connected(1)]);
    io.close(9, Close::Orderly);
    let accepts = std::thread::spawn(move || {
        let accept = |_| {
            std::thread::sleep(Duration::from_millis(3));
            listener.accept().unwrap()
        };
        ((0..9).map(accept).collect::<Vec<_>>(), listener)
    });
    let seen = poll_until(&mut io, |s| s.len() == 7);
    assert_eq!(seen.len(), 7, "{seen:?}");
    for slot in 2..9 {
        assert!(seen.contains(&Seen::Connected(slot)), "{slot}: {seen:?}");
    }
    let (mut peers, listener) = accepts.join().unwrap();
    // The one that was closed may have come in time, in the place of another.
    listener.set_nonblocking(true).unwrap();
    peers.extend(listener.accept());
    drop(listener);
    // Without a listener it is refused at once, with and without a file.
    for kind in [io::ErrorKind::ConnectionRefused, io::ErrorKind::NotFound] {
        let failed = match io.open(9, ConnectOptions::to(&address)) {
            Err(error) => vec![Seen::Failed(9, error.kind())],
            Ok(()) => poll_until(&mut io, |s| !s.is_empty()),
        };
        assert_eq!(failed, [Seen::Failed(9, kind)]);
        io.close(9, Close::Orderly);
        let _ = std::fs::remove_file(&path);
    }
}

/// A peer that sends more whenever some of it is read, up to a limit that only an endless call of
/// `poll` reaches.
struct Flood {
    peer: TcpStream,
    bytes: usize,
    others: usize,
}

impl Flood {
    const BYTES_MAX: usize = 64 << 20;

    fn send(&mut self) {
        while self.bytes < Flood::BYTES_MAX && self.peer.write(&[7; 64 << 10]).is_ok() {}
    }
}

impl Sink for Flood {
    fn on_event(&mut self, _: &mut dyn Backend, slot: u32, event: Event<'_>) {
        if let Event::Received(piece) = event {
            if slot == 0 {
                self.bytes += piece.bytes.len();
                self.send();
            } else {
                self.others += piece.bytes.len();
            }
        }
    }
}

fn a_flood_is_read_in_turns<B: Backend>(mut io: B) {
    let (listener, address) = listener();
    let mut peers = [0, 1].map(|slot| {
        io.open(slot, ConnectOptions::to(&address)).unwrap();
        poll_until(&mut io, |s| s == [Seen::Connected(slot)]);
        listener.accept().unwrap().0
    });
    peers[1].write_all(b"ping").unwrap();
    let [peer, _other] = peers;
    peer.set_nonblocking(true).unwrap();
    let mut flood = Flood { peer, bytes: 0, others: 0 };
    flood.send();
    let begin = Instant::now();
    while (flood.bytes < 4 * POLL_BYTES_MAX || flood.others < 4) && begin.elapsed() < PATIENCE {
        let before = flood.bytes;
        io.poll(Nanos::from_millis(10), &mut flood).unwrap();
        let read = flood.bytes - before;
        assert!(read <= POLL_BYTES_MAX + (128 << 10), "{read} in one call");
    }
    assert_eq!(flood.others, 4, "the other connection has its turn");
}

/// Reads a byte at a time of what is watched, up to its end.
struct Watches(UnixStream, Vec<u8>, bool);

impl Sink for Watches {
    fn on_event(&mut self, _: &mut dyn Backend, slot: u32, event: Event<'_>) {
        panic!("{slot}: {event:?}");
    }

    fn on_readable(&mut self, _: &mut dyn Backend, source: u32) -> bool {
        assert_eq!(source, 3);
        let mut byte = [0];
        let count = self.0.read(&mut byte).unwrap();
        self.1.extend_from_slice(&byte[..count]);
        assert!(!self.2, "it was to be watched no more");
        self.2 = count == 0;
        count > 0
    }
}

fn watches_what_is_no_connection<B: Backend>(mut io: B) {
    let (watched, mut other) = UnixStream::pair().unwrap();
    watched.set_nonblocking(true).unwrap();
    let mut sink = Watches(watched, Vec::new(), false);
    io.watch(3, sink.0.try_clone().unwrap().into()).unwrap();
    assert_eq!(io.poll(Nanos::from_millis(5), &mut sink).unwrap(), 0);
    let begin = Instant::now();
    for text in ["ab", "cde"] {
        other.write_all(text.as_bytes()).unwrap();
        let want = sink.1.len() + text.len();
        while sink.1.len() < want && begin.elapsed() < PATIENCE {
            io.poll(Nanos::from_millis(10), &mut sink).unwrap();
        }
    }
    drop(other);
    while !sink.2 && begin.elapsed() < PATIENCE {
        io.poll(Nanos::from_millis(10), &mut sink).unwrap();
    }
    assert_eq!((&sink.1[..], sink.2), (&b"abcde"[..], true));
    // Its end is reported once, although the condition stays.
    assert_eq!(io.poll(Nanos::from_millis(5), &mut sink).unwrap(), 0);
}

macro_rules! promises {
    ($($name:ident => $call:expr),* $(,)?) => {
        mod epoll_backend {
            use super::*;
            $(#[test] fn $name() {
                #[allow(clippy::redundant_closure_call)]
                $call(EpollBackend::new(128, requests(), true).unwrap());
            })*
        }
        mod io_uring_backend {
            use super::*;
            $(#[test] fn $name() {
                match UringBackend::new(128, requests(), true) {
                    Ok(io) => {
                        #[allow(clippy::redundant_closure_call)]
                        $call(io);
                    }
                    Err(error) => eprintln!("skipped: io_uring is not permitted here ({error})"),
                }
            })*
        }
    };
}

promises! {
    bytes_go_both_ways_and_the_end_comes_last => exchange,
    a_request_longer_than_a_socket_buffer_goes_whole => long_request,
    refused_and_reset_are_told => failures,
    nothing_is_heard_of_a_closed_connection => a_closed_slot_is_silent,
    many_connections_share_the_buffers => |io| many_at_once(io, 100),
    a_fast_peer_is_read_in_turns => a_flood_is_read_in_turns,
    unix_sockets_carry_the_same => over_a_unix_socket,
    full_queue_of_a_unix_listener_is_waited_for => over_a_full_unix_listener,
    datagrams_keep_their_borders_both_ways => datagrams_keep_their_borders,
    many_datagrams_are_all_handed_over => many_datagrams,
    datagrams_that_come_together_are_taken_apart => coalesced_datagrams,
    what_is_no_connection_is_watched_up_to_its_end => watches_what_is_no_connection,
}
