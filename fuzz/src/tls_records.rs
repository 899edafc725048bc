//! No bytes of a peer make the record layer of TLS panic or hand over what was not sealed as data;
//! however the bytes are split, the same comes out.

use knee_engine::link::records::{
    Cipher, Direction, Key, ROOM, Records, Upkeep, Version, Violation,
};

/// The kind of records that carry data.
const DATA: u8 = 23;

/// Keys that follow one another without end.
struct Keys(Version, u8);

impl Upkeep for Keys {
    fn next_key(&mut self, _: Direction) -> Result<Key, String> {
        self.1 = self.1.wrapping_add(1);
        Ok(key(self.0, self.1))
    }

    fn keep_ticket(&mut self, payload: &[u8]) -> Result<(), String> {
        match payload.len() {
            ..4 => Err("it is short".to_owned()),
            _ => Ok(()),
        }
    }
}

fn key(version: Version, byte: u8) -> Key {
    let key = Key::new((version, Cipher::Aes128Gcm), &[byte; 16], [3; 12], 0);
    key.expect("a key of 16 bytes")
}

/// What is handed over, and how it ends, where so many bytes come at once.
fn open(version: Version, wire: &[u8], piece: usize) -> (Vec<u8>, Result<(), Violation>) {
    let keys = [key(version, 1), key(version, 0)];
    let mut records = Records::new(version, keys, Keys(version, 1), 100);
    let (mut plain, mut got) = (vec![0; ROOM], Vec::new());
    for piece in wire.chunks(piece) {
        let opened = records.open(piece, &mut plain, &mut |bytes, left| {
            assert!(left < piece.len());
            assert!(!bytes.is_empty() && bytes.len() <= 1 << 14);
            got.extend_from_slice(bytes);
        });
        if opened.is_err() {
            return (got, opened);
        }
    }
    (got, Ok(()))
}

/// The version, how the bytes are split, where one is flipped, then records: kind, length, content.
pub fn check(data: &[u8]) {
    let Some((&[how, piece, flip], rest)) = data.split_first_chunk() else {
        return;
    };
    let version = match how % 2 {
        0 => Version::Tls12,
        _ => Version::Tls13,
    };
    let piece = usize::from(piece) + 1;
    // As it is, it is no record that anybody sealed.
    let (got, _) = open(version, rest, piece);
    assert!(got.is_empty());

    let (mut wire, mut sent, mut peer) = (Vec::new(), Vec::new(), key(version, 0));
    let mut rest = rest;
    while let Some((&[kind, length], after)) = rest.split_first_chunk() {
        let (content, after) = after.split_at(after.len().min(length.into()));
        // Half of them are data.
        let kind = if kind < 128 { DATA } else { kind - 108 };
        peer.seal(kind, content, &mut wire);
        if kind == DATA {
            sent.extend_from_slice(content);
        }
        rest = after;
    }
    let at = usize::from(flip);
    if how & 4 != 0 && at < wire.len() {
        wire[at] ^= 1 << (how >> 5);
    }
    let (got, ended) = open(version, &wire, piece);
    assert!(sent.starts_with(&got));
    assert_eq!((got, ended), open(version, &wire, usize::MAX));
}
