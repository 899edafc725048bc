//! A server of DNS, over UDP or TCP.

use super::{Act, Acts, ServerTraits, answers, chance, cuts_off, ends, floods, pick, sends, soon};
use crate::sys::socket::SocketKind;
use knee_load::rng::Rng;

/// Finds the queries of a client.
pub(in super::super) struct Peer {
    traits: ServerTraits,
    kind: SocketKind,
    pending: Vec<u8>,
}

impl Peer {
    pub(super) fn new(traits: ServerTraits, kind: SocketKind) -> Peer {
        Peer { traits, kind, pending: Vec::new() }
    }

    pub(super) fn receive(&mut self, bytes: &[u8], rng: &mut Rng) -> Acts {
        self.pending.extend_from_slice(bytes);
        let mut acts = Acts::new();
        while let Some((length, rest)) = self.pending.split_first_chunk::<2>()
            && let Some(query) = rest.get(..usize::from(u16::from_be_bytes(*length)))
        {
            let (query, kind) = (query.to_vec(), self.kind);
            self.pending.drain(..2 + query.len());
            acts.extend(self.traits.draw(rng, |rng| answer(kind, &query, rng)));
        }
        acts
    }
}

/// An answer to a query: one record with this name, type and data.
fn record(query: &[u8], name: &[u8], kind: u8, data: &[u8]) -> Vec<u8> {
    let mut bytes = query.to_vec();
    (bytes[2], bytes[3], bytes[7]) = (0x81, 0x80, 1);
    bytes.extend_from_slice(name);
    bytes.extend_from_slice(&[0, kind, 0, 1, 0, 0, 0, 60, 0, data.len() as u8]);
    bytes.extend_from_slice(data);
    bytes
}

fn answer(kind: SocketKind, query: &[u8], rng: &mut Rng) -> Acts {
    const ASKED: &[u8] = &[0xC0, 12];
    const ADDRESS: &[u8] = &[192, 0, 2, 1];
    let mut message = record(query, ASKED, 1, ADDRESS);
    let at = query.len() as u8;
    let mut is_whole = false;
    match pick(rng, 32) {
        0 => return Acts::new(),
        1 => return ends(rng),
        2 if kind == SocketKind::Stream => return cuts_off(&framed(kind, message), rng),
        3 => return floods_of(kind, &message[..12], rng),
        4 => message[0] ^= 1,
        5 => message[13] ^= 1,
        6 => message[2] = 1,
        7 => message[2] |= 0x78,
        8 => message[3] |= 1 + pick(rng, 15) as u8,
        9 => message[2] |= 2,
        10 => message.truncate(pick(rng, message.len() as u64) as usize),
        11 => message.push(0),
        12 => message[7] = 2,
        13 => message = record(query, &[0xC0, at], 1, ADDRESS),
        14 => message = record(query, &[0xFF, 0xFF], 1, ADDRESS),
        15 => message = record(query, &[0xC0, at + 2], 1, ADDRESS),
        16 => message = record(query, &[0xC0, 3], 1, ADDRESS),
        17 => message = record(query, &[1, b'a', 0xC0, at], 1, ADDRESS),
        18 => message = record(query, ASKED, 5, &[0xC0, at + 12]),
        19 => message = record(query, ASKED, 5, &[3, b'a', 0]),
        20 => message = record(query, ASKED, 1, b"abc"),
        21 => message = record(query, ASKED, 15, &[0]),
        22 => message = record(query, &[0x80, 1], 1, ADDRESS),
        23 => message.truncate(12),
        24 => {
            message = record(query, &[1, b'a', 0xC0, 12], 5, &[1, b'b', 0xC0, 12]);
            is_whole = true;
        }
        _ => is_whole = true,
    }
    let bytes = framed(kind, message);
    let whole = u32::from(is_whole);
    match kind {
        SocketKind::Stream => answers(&bytes, whole, rng),
        SocketKind::Datagram | SocketKind::CoalescedDatagrams => {
            vec![(soon(rng), Act::Sends(bytes, whole))]
        }
    }
}

/// A message as it stands on the wire.
fn framed(kind: SocketKind, message: Vec<u8>) -> Vec<u8> {
    match kind {
        SocketKind::Stream => [&(message.len() as u16).to_be_bytes()[..], &message].concat(),
        SocketKind::Datagram | SocketKind::CoalescedDatagrams => message,
    }
}

/// Messages that nothing asked for.
fn floods_of(kind: SocketKind, message: &[u8], rng: &mut Rng) -> Acts {
    let mut message = message.to_vec();
    message[0] ^= 0x55;
    if chance(rng, 50) {
        return sends(b"\xff\xff", rng);
    }
    match kind {
        SocketKind::Stream => floods(&framed(kind, message), rng),
        SocketKind::Datagram | SocketKind::CoalescedDatagrams => {
            (0..300).map(|_| (soon(rng), Act::Sends(message.clone(), 0))).collect()
        }
    }
}
