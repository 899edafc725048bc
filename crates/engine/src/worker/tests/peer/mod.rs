//! A server's end of one connection: what it does is drawn.

mod http1;
mod http2;

use super::{chance, pick};
use knee_load::rng::Rng;
use knee_load::time::Nanos;

/// What a server does.
pub(super) enum Act {
    Sends(Vec<u8>),
    /// Its last bytes come with its FIN.
    SendsLast(Vec<u8>),
    /// A FIN.
    Ends,
    /// The connection fails with this error of the operating system.
    Fails(i32),
}

/// What a server does, each after a delay from the one before.
pub(super) type Acts = Vec<(Nanos, Act)>;

/// One connection.
pub(super) enum Peer {
    Http1(http1::Peer),
    Http2(http2::Peer),
}

impl Peer {
    pub(super) fn new(is_multiplexed: bool, rng: &mut Rng) -> Peer {
        if is_multiplexed {
            Peer::Http2(http2::Peer::new(rng))
        } else {
            Peer::Http1(http1::Peer::default())
        }
    }

    /// The connection is established.
    pub(super) fn accept(&mut self, rng: &mut Rng) -> Acts {
        match self {
            Peer::Http1(_) if chance(rng, 3) => ends(rng),
            Peer::Http1(_) => Acts::new(),
            Peer::Http2(peer) => peer.accept(rng),
        }
    }

    /// These bytes came.
    pub(super) fn receive(&mut self, bytes: &[u8], rng: &mut Rng) -> Acts {
        match self {
            Peer::Http1(peer) => peer.receive(bytes, rng),
            Peer::Http2(peer) => peer.receive(bytes, rng),
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
        _ => Act::Ends,
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
        acts.push((soon(rng), Act::Sends(rest[..here].to_vec())));
        rest = &rest[here..];
    }
    acts
}

/// A part of these bytes, then an end or silence.
fn breaks_off(bytes: &[u8], rng: &mut Rng) -> Acts {
    let here = pick(rng, bytes.len() as u64) as usize;
    let mut acts = sends(&bytes[..here], rng);
    match pick(rng, 3) {
        0 => acts.extend(ends(rng)),
        1 if here > 0 => {
            acts.push((soon(rng), Act::SendsLast(bytes[here - 1..here].to_vec())));
        }
        _ => {}
    }
    acts
}

/// The same over and over, for longer than any time limit.
fn floods(piece: &[u8], rng: &mut Rng) -> Acts {
    let piece = piece.repeat(1 + 2_048 / piece.len());
    let gap = Nanos(100_000 + pick(rng, 2_000_000));
    (0..300).map(|_| (gap, Act::Sends(piece.clone()))).collect()
}
