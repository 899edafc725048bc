//! A server's end of one connection: what it does is drawn.

mod dns;
mod http1;
mod http2;
mod websocket;

use super::{chance, pick};
use crate::sys::socket::SocketKind;
use knee_load::rng::Rng;
use knee_load::time::Nanos;

/// What a server does. With bytes or an end goes how many answers are whole with it, of those that
/// make an operation a success.
#[derive(Clone)]
pub(super) enum Act {
    Sends(Vec<u8>, u32),
    /// Its last bytes come with its FIN.
    SendsLast(Vec<u8>, u32),
    /// A FIN.
    Ends(u32),
    /// The connection fails with this error of the operating system.
    Fails(i32),
}

impl Act {
    /// How many answers are whole with it.
    pub(super) fn whole(&self) -> u32 {
        match self {
            Act::Sends(_, whole) | Act::SendsLast(_, whole) | Act::Ends(whole) => *whole,
            Act::Fails(_) => 0,
        }
    }
}

/// What a server does, each after a delay from the one before.
pub(super) type Acts = Vec<(Nanos, Act)>;

/// What a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spoken {
    Http1,
    Http2,
    Grpc,
    WebSocket,
    Dns,
}

/// What the servers of a load are like.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerTraits {
    pub(super) speaks: Spoken,
    /// Whether answers are streams of messages, of server-sent events over HTTP.
    pub(super) streams: bool,
    /// Whether no answer is ever a whole one: any success is a wrong one.
    pub(super) never_whole: bool,
}

impl ServerTraits {
    /// Draws an answer, once more where it must not be a whole one.
    fn draw(self, rng: &mut Rng, mut answer: impl FnMut(&mut Rng) -> Acts) -> Acts {
        loop {
            let acts = answer(rng);
            if !self.never_whole || acts.iter().all(|(_, act)| act.whole() == 0) {
                return acts;
            }
        }
    }
}

/// One connection.
pub(super) enum Peer {
    Http1(http1::Peer),
    Http2(http2::Peer),
    WebSocket(websocket::Peer),
    Dns(dns::Peer),
}

impl Peer {
    pub(super) fn new(traits: ServerTraits, kind: SocketKind, rng: &mut Rng) -> Peer {
        match traits.speaks {
            Spoken::Http1 => Peer::Http1(http1::Peer::new(traits)),
            Spoken::Http2 | Spoken::Grpc => Peer::Http2(http2::Peer::new(traits, rng)),
            Spoken::WebSocket => Peer::WebSocket(websocket::Peer::new(traits)),
            Spoken::Dns => Peer::Dns(dns::Peer::new(traits, kind)),
        }
    }

    /// The connection is established.
    pub(super) fn accept(&mut self, rng: &mut Rng) -> Acts {
        match self {
            Peer::Http2(peer) => peer.accept(rng),
            Peer::Http1(_) | Peer::WebSocket(_) if chance(rng, 3) => ends(rng),
            Peer::Http1(_) | Peer::WebSocket(_) | Peer::Dns(_) => Acts::new(),
        }
    }

    /// These bytes came.
    pub(super) fn receive(&mut self, bytes: &[u8], rng: &mut Rng) -> Acts {
        match self {
            Peer::Http1(peer) => peer.receive(bytes, rng),
            Peer::Http2(peer) => peer.receive(bytes, rng),
            Peer::WebSocket(peer) => peer.receive(bytes, rng),
            Peer::Dns(peer) => peer.receive(bytes, rng),
        }
    }
}

/// A server's time for an answer.
fn soon(rng: &mut Rng) -> Nanos {
    Nanos(50_000 + pick(rng, 10_000_000))
}

/// The connection ends in one of the ways there are.
fn ends(rng: &mut Rng) -> Acts {
    let act = match pick(rng, 3) {
        0 => Act::Fails(libc::ECONNRESET),
        1 => Act::Fails(libc::ETIMEDOUT),
        _ => Act::Ends(0),
    };
    vec![(soon(rng), act)]
}

/// These bytes, whole or in pieces.
fn sends(bytes: &[u8], rng: &mut Rng) -> Acts {
    let mut acts = Acts::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let whole = acts.len() > 8 || chance(rng, 70);
        let here = if whole { rest.len() } else { 1 + pick(rng, rest.len() as u64) as usize };
        acts.push((soon(rng), Act::Sends(rest[..here].to_vec(), 0)));
        rest = &rest[here..];
    }
    acts
}

/// The same, of which the last makes this many answers whole.
fn answers(bytes: &[u8], count: u32, rng: &mut Rng) -> Acts {
    let mut acts = sends(bytes, rng);
    if let Some((_, Act::Sends(_, whole))) = acts.last_mut() {
        *whole = count;
    }
    acts
}

/// A part of these bytes, then an end or silence.
fn breaks_off(bytes: &[u8], rng: &mut Rng) -> Acts {
    let here = pick(rng, bytes.len() as u64) as usize;
    let Some((last, before)) = bytes[..here].split_last() else {
        return ends(rng);
    };
    let mut acts = sends(before, rng);
    match pick(rng, 3) {
        0 => acts.push((soon(rng), Act::SendsLast(vec![*last], 0))),
        1 => acts.extend(ends(rng)),
        _ => {}
    }
    acts
}

/// A part of these bytes, then an end: nothing that follows makes a whole of it.
fn cuts_off(bytes: &[u8], rng: &mut Rng) -> Acts {
    let mut acts = breaks_off(bytes, rng);
    acts.extend(ends(rng));
    acts
}

/// The same over and over, for longer than any time limit.
fn floods(piece: &[u8], rng: &mut Rng) -> Acts {
    let piece = piece.repeat(1 + 2_048 / piece.len());
    let gap = Nanos(100_000 + pick(rng, 2_000_000));
    (0..300).map(|_| (gap, Act::Sends(piece.clone(), 0))).collect()
}

/// A body of server-sent events, and whether it is a whole stream: it ends with its end message.
fn events(rng: &mut Rng) -> (&'static [u8], bool) {
    const BODIES: [(&[u8], bool); 8] = [
        (b"data: a\n\ndata: [DONE]\n\n", true),
        (b"\xef\xbb\xbfdata: a\r\n\r\n:x\r\ndata: [DONE]\r\n\r\n", true),
        (b"data: [DONE]\n\ndata: x", true),
        (b"data: a\n\n", false),
        (b"data: a\n\ndata: [DONE]\n", false),
        (b"data: a\n\ndata: [DONE", false),
        (b"data: a\n\nevent: [DONE]\n\n", false),
        (b"hello", false),
    ];
    BODIES[pick(rng, 8) as usize]
}
