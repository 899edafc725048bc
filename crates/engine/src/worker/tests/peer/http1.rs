//! A server of HTTP/1.1.

use super::{
    Act, Acts, ServerTraits, answers, breaks_off, chance, ends, events, floods, pick, sends, soon,
};
use knee_load::rng::Rng;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const CHUNKED: &[u8] =
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nx: y\r\n\r\n";
const CLOSES: &[u8] = b"HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
const UNTIL_CLOSE: &[u8] = b"HTTP/1.1 200 OK\r\n\r\nbytes";
const SWITCHES: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n";
const CONTINUES: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
const EMPTY: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const ENDLESS: [&[u8]; 4] = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nx",
    b"HTTP/1.1 200 OK\r\nx",
];

/// Finds the ends of requests.
pub(in super::super) struct Peer {
    traits: ServerTraits,
    head: Vec<u8>,
    /// Bytes of a body that are still to come.
    body_left: usize,
    is_answered: bool,
}

impl Peer {
    pub(super) fn new(traits: ServerTraits) -> Peer {
        Peer { traits, head: Vec::new(), body_left: 0, is_answered: false }
    }

    pub(super) fn receive(&mut self, bytes: &[u8], rng: &mut Rng) -> Acts {
        let streams = self.traits.streams;
        let mut acts = Acts::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.body_left > 0 {
                let here = self.body_left.min(rest.len());
                self.body_left -= here;
                rest = &rest[here..];
                if self.body_left == 0 && !self.is_answered {
                    acts.extend(self.traits.draw(rng, |rng| answer(streams, rng)));
                }
                continue;
            }
            self.head.push(rest[0]);
            rest = &rest[1..];
            if self.head.ends_with(b"\r\n\r\n") {
                self.body_left = if self.head.starts_with(b"POST") { 90_000 } else { 0 };
                self.head.clear();
                // Before the body has come, or once it has. Two would make a whole of each other.
                self.is_answered = self.body_left == 0 || chance(rng, 10);
                if self.is_answered {
                    acts.extend(self.traits.draw(rng, |rng| answer(streams, rng)));
                }
            }
        }
        acts
    }
}

/// A response whose body is server-sent events, with its length or in chunks.
fn stream(rng: &mut Rng) -> Acts {
    let (body, is_whole) = events(rng);
    let mut bytes = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n".to_vec();
    if chance(rng, 50) {
        bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
        bytes.extend_from_slice(body);
    } else {
        bytes.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
        for piece in body.chunks(5) {
            bytes.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            bytes.extend_from_slice(&[piece, b"\r\n"].concat());
        }
        bytes.extend_from_slice(b"0\r\n\r\n");
    }
    if chance(rng, 20) {
        return breaks_off(&bytes, rng);
    }
    answers(&bytes, u32::from(is_whole), rng)
}

fn answer(streams: bool, rng: &mut Rng) -> Acts {
    if streams && chance(rng, 60) {
        return stream(rng);
    }
    // What is a whole response need not be a whole stream.
    let whole = u32::from(!streams);
    let with = |bytes: &[u8], more: Acts, rng: &mut Rng| {
        let mut acts = sends(bytes, rng);
        acts.extend(more);
        acts
    };
    let ok_with = |more: Acts, rng: &mut Rng| {
        let mut acts = answers(OK, whole, rng);
        acts.extend(more);
        acts
    };
    match pick(rng, 40) {
        0 => Acts::new(),
        1 => ends(rng),
        2 => breaks_off(OK, rng),
        3 => breaks_off(CHUNKED, rng),
        4 => sends(b"\x15\x03\x03\x00\x02\x02\x46", rng),
        5 => sends(b"220 smtp.example ESMTP\r\n", rng),
        6 => floods(CONTINUES, rng),
        7 => floods(b"\r\n", rng),
        8 => with(ENDLESS[pick(rng, 4) as usize], floods(b"aaaaaaaa", rng), rng),
        9 => with(CLOSES, vec![(soon(rng), Act::Ends(0))], rng),
        10 => sends(CLOSES, rng),
        11 => with(UNTIL_CLOSE, vec![(soon(rng), Act::Ends(whole))], rng),
        12 => sends(UNTIL_CLOSE, rng),
        13 => {
            let mut acts = answers(EMPTY, whole, rng);
            acts.extend(sends(b"HTTP/1.1 200 OK\r\n", rng));
            acts
        }
        14 => sends(SWITCHES, rng),
        15 => ok_with(ends(rng), rng),
        16 => ok_with(floods(b"\n", rng), rng),
        17 => vec![(soon(rng), Act::SendsLast(OK.to_vec(), whole))],
        18..22 => with(CONTINUES, answers(OK, whole, rng), rng),
        22..27 => answers(CHUNKED, whole, rng),
        _ => answers(OK, whole, rng),
    }
}
