//! A server of WebSocket.

use super::{Acts, ServerTraits, answers, breaks_off, cuts_off, ends, floods, pick, sends};
use crate::exchange::websocket::frame::{opcode, put, put_close};
use crate::exchange::websocket::handshake::{UpgradeRequest, read_request};
use crate::exchange::websocket::{MessageItem, MessageReader, ReaderSide};
use knee_load::rng::Rng;

/// Finds the messages of a client.
pub(in super::super) struct Peer {
    traits: ServerTraits,
    /// The client's part of the handshake so far; `None` once it is over.
    asked: Option<Vec<u8>>,
    reader: MessageReader,
}

impl Peer {
    pub(super) fn new(traits: ServerTraits) -> Peer {
        let reader = MessageReader::new(ReaderSide::Server, 1 << 20);
        Peer { traits, asked: Some(Vec::new()), reader }
    }

    pub(super) fn receive(&mut self, bytes: &[u8], rng: &mut Rng) -> Acts {
        let mut rest = bytes;
        let mut acts = Acts::new();
        if let Some(asked) = &mut self.asked {
            asked.extend_from_slice(bytes);
            let UpgradeRequest::Upgrade(length, answer) = read_request(asked) else {
                return acts;
            };
            rest = &bytes[bytes.len() - (asked.len() - length)..];
            self.asked = None;
            acts = match pick(rng, 20) {
                0 => Acts::new(),
                1 => breaks_off(&answer, rng),
                2 => sends(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", rng),
                3 => sends(b"HTTP/1.1 101 Switching Protocols\r\n\r\n", rng),
                4 => floods(b"HTTP/1.1 101 x\r\n", rng),
                _ => sends(&answer, rng),
            };
        }
        while let Ok(Some(item)) = self.reader.read(&mut rest) {
            if let MessageItem::Message { .. } = item {
                let message = self.reader.payload().to_vec();
                acts.extend(self.traits.draw(rng, |rng| answer(&message, rng)));
            }
        }
        acts
    }
}

fn answer(message: &[u8], rng: &mut Rng) -> Acts {
    let mut out = Vec::new();
    let half = message.len() / 2;
    match pick(rng, 24) {
        0 => return Acts::new(),
        1 => return ends(rng),
        2 => {
            put(&mut out, opcode::TEXT, true, None, message);
            return cuts_off(&out, rng);
        }
        3 => {
            put(&mut out, opcode::PING, true, None, b"x");
            return floods(&out, rng);
        }
        4 => {
            put(&mut out, opcode::PONG, true, None, &[7; 125]);
            return floods(&out, rng);
        }
        5 => put_close(&mut out, 1000 + pick(rng, 16) as u16, None),
        6 => put(&mut out, opcode::TEXT, true, Some([1, 2, 3, 4]), message),
        7 => put(&mut out, opcode::TEXT, true, None, &[message, b"\xff"].concat()),
        8 => put(&mut out, opcode::TEXT, true, None, b"x knee-4294967295"),
        9 => put(&mut out, opcode::TEXT, true, None, &message[..message.len().saturating_sub(1)]),
        10 => {
            put(&mut out, opcode::TEXT, false, None, message);
            return cuts_off(&out, rng);
        }
        11 => put(&mut out, opcode::CONTINUATION, true, None, message),
        12 => put(&mut out, 3, true, None, message),
        13 => {
            put(&mut out, opcode::TEXT, true, None, message);
            out[0] |= 0x40;
        }
        14 => {
            put(&mut out, opcode::TEXT, false, None, message);
            put(&mut out, opcode::TEXT, true, None, message);
        }
        15 => return sends(&[0x81, 127, 0xFF, 0, 0, 0, 0, 0, 0, 0], rng),
        16 => return floods(b"\x01\x05hello", rng),
        17 => {
            put(&mut out, opcode::TEXT, false, None, &message[..half]);
            put(&mut out, opcode::PING, true, None, b"between");
            put(&mut out, opcode::CONTINUATION, true, None, &message[half..]);
            return answers(&out, 1, rng);
        }
        18 => {
            put(&mut out, opcode::BINARY, true, None, message);
            return answers(&out, 1, rng);
        }
        _ => {
            put(&mut out, opcode::TEXT, true, None, message);
            return answers(&out, 1, rng);
        }
    }
    sends(&out, rng)
}
