use super::violation::alert;
use super::*;

const CIPHERS: [(Cipher, usize); 3] = [
    (Cipher::Aes128Gcm, 16),
    (Cipher::Aes256Gcm, 32),
    (Cipher::Chacha20Poly1305, 32),
];
const VERSIONS: [Version; 2] = [Version::Tls12, Version::Tls13];
const NEVER: u64 = u64::MAX;

/// The keys of one side, one after another, as numbers; and the tickets that came.
struct Keys {
    version: Version,
    is_client: bool,
    /// The numbers of the keys in use, to send and to receive.
    numbers: [u8; 2],
    tickets: Vec<Vec<u8>>,
}

/// The key of this number that the client seals with, or the server.
fn key(version: Version, of_client: bool, number: u8) -> Key {
    let bytes = [number * 2 + u8::from(of_client); 16];
    Key::new((version, Cipher::Aes128Gcm), &bytes, [7; 12], 0).unwrap()
}

impl Upkeep for Keys {
    fn next_key(&mut self, direction: Direction) -> Result<Key, String> {
        if self.version == Version::Tls12 {
            return Err("none".to_owned());
        }
        let sends = direction == Direction::Send;
        let number = &mut self.numbers[usize::from(!sends)];
        *number += 1;
        Ok(key(self.version, sends == self.is_client, *number))
    }

    fn keep_ticket(&mut self, payload: &[u8]) -> Result<(), String> {
        match payload {
            [] => Err("it is empty".to_owned()),
            _ => {
                self.tickets.push(payload.to_vec());
                Ok(())
            }
        }
    }
}

fn keys(version: Version, is_client: bool) -> Keys {
    Keys {
        version,
        is_client,
        numbers: [0; 2],
        tickets: Vec::new(),
    }
}

fn side(version: Version, is_client: bool, sealed_max: u64) -> Records<Keys> {
    let both = [key(version, is_client, 0), key(version, !is_client, 0)];
    Records::new(version, both, keys(version, is_client), sealed_max)
}

/// What the records of `wire` hold, of which so many bytes come at once.
fn opened(of: &mut Records<Keys>, wire: &[u8], piece: usize) -> (Vec<u8>, Result<(), Violation>) {
    let (mut plain, mut got) = (vec![0; ROOM], Vec::new());
    for piece in wire.chunks(piece) {
        let result = of.open(piece, &mut plain, &mut |bytes, _| {
            got.extend_from_slice(bytes)
        });
        if result.is_err() {
            return (got, result);
        }
    }
    (got, Ok(()))
}

/// Records of these kinds and contents.
fn sealed(mut key: Key, records: &[(u8, &[u8])]) -> Vec<u8> {
    let mut wire = Vec::new();
    for (kind, content) in records {
        key.seal(*kind, content, &mut wire);
    }
    wire
}

#[test]
fn what_one_side_seals_the_other_opens_however_it_is_split() {
    let text: Vec<u8> = (0..40_000_u32).map(|n| (n % 251) as u8).collect();
    for version in VERSIONS {
        for (cipher, length) in CIPHERS {
            let made = |byte| Key::new((version, cipher), &vec![byte; length], [3; 12], 9);
            assert!(Key::new((version, cipher), &[1; 5], [3; 12], 0).is_none());
            let pair = |[a, b]: [u8; 2]| {
                let both = [made(a).unwrap(), made(b).unwrap()];
                Records::new(version, both, keys(version, true), NEVER)
            };
            let mut wire = Vec::new();
            pair([1, 2]).seal(&text, &mut wire);
            for piece in [1, 2, 5, 6, 997, 16_384, usize::MAX] {
                let (got, result) = opened(&mut pair([2, 1]), &wire, piece);
                assert_eq!(result, Ok(()), "{version:?} {cipher:?} {piece}");
                assert!(got == text, "{version:?} {cipher:?} {piece}");
            }
        }
    }
}

/// A server that sends whatever it may.
fn everything() -> Vec<u8> {
    let ticket = [&[4, 0, 0, 9][..], b"one ticke"].concat();
    let behind = [&ticket[6..], &[4, 0, 0, 3], b"tw"].concat();
    let of = |number, records: &[(u8, &[u8])]| sealed(key(Version::Tls13, false, number), records);
    [
        of(
            0,
            &[
                (kind::DATA, b"a"),
                (kind::DATA, b""),
                // Content, kind, zeros; the last of them stands where the kind is put.
                (0, b"padded\x17\0\0\0\0"),
                (kind::HANDSHAKE, &ticket[..6]),
                (kind::HANDSHAKE, &behind),
                (kind::HANDSHAKE, b"o"),
                (kind::ALERT, &[WARNING, alert::USER_CANCELED]),
                // A new key of the server, which wants one of the client.
                (kind::HANDSHAKE, &[24, 0, 0, 1, 1]),
            ],
        ),
        of(
            1,
            &[(kind::DATA, b"b"), (kind::HANDSHAKE, &[24, 0, 0, 1, 0])],
        ),
        of(
            2,
            &[
                (kind::DATA, b"c"),
                (kind::ALERT, &[WARNING, alert::CLOSE_NOTIFY]),
            ],
        ),
        b"what means nothing any more".to_vec(),
    ]
    .concat()
}

#[test]
fn all_that_may_come_is_taken_at_every_split() {
    let wire = everything();
    for piece in 1..=wire.len() {
        let mut client = side(Version::Tls13, true, NEVER);
        let (got, result) = opened(&mut client, &wire, piece);
        assert_eq!((got, result), (b"apaddedbc".to_vec(), Ok(())), "{piece}");
        assert!(client.is_ended(), "{piece}");
        let tickets = &client.upkeep.tickets;
        assert_eq!(tickets, &[b"one ticke".to_vec(), b"two".to_vec()]);
        assert_eq!(client.upkeep.numbers, [1, 2]);
        // The server is given a new key, once, before what is sealed with it.
        assert!(client.has_answers());
        let mut wire = std::mem::take(client.answers());
        client.seal(b"data", &mut wire);
        let mut server = side(Version::Tls13, false, NEVER);
        let (got, result) = opened(&mut server, &wire, usize::MAX);
        assert_eq!((got, result), (b"data".to_vec(), Ok(())));
        assert_eq!(server.upkeep.numbers, [0, 1]);
        assert!(!server.has_answers());
    }
}

#[test]
fn a_key_that_has_sealed_enough_is_replaced_or_nothing_more_is_sent() {
    let piece = [b'x'; PLAIN_MAX];
    let text = piece.repeat(7);
    for (version, numbers, sent) in [
        (Version::Tls13, [0, 3], text.len()),
        (Version::Tls12, [0, 0], 2 * PLAIN_MAX),
    ] {
        let mut wire = Vec::new();
        side(version, true, 2).seal(&text, &mut wire);
        let mut server = side(version, false, NEVER);
        let (got, result) = opened(&mut server, &wire, usize::MAX);
        assert_eq!((got.len(), result), (sent, Ok(())), "{version:?}");
        assert_eq!(server.upkeep.numbers, numbers, "{version:?}");
        assert_eq!(server.receives, version == Version::Tls13);
    }
}

#[test]
fn a_server_that_wants_to_renegotiate_is_refused_and_goes_on() {
    let hello_request: (u8, &[u8]) = (kind::HANDSHAKE, &[0, 0, 0, 0]);
    let records = [hello_request, (kind::DATA, b"data")];
    let mut client = side(Version::Tls12, true, NEVER);
    let wire = sealed(key(Version::Tls12, false, 0), &records);
    assert_eq!(opened(&mut client, &wire, 3), (b"data".to_vec(), Ok(())));
    let refusal = sealed(
        key(Version::Tls12, true, 0),
        &[(kind::ALERT, &[WARNING, alert::NO_RENEGOTIATION])],
    );
    assert_eq!(client.answers(), &refusal);
    let wire = sealed(key(Version::Tls12, false, 0), &[hello_request; 9]);
    let (_, result) = opened(&mut side(Version::Tls12, true, NEVER), &wire, usize::MAX);
    assert_eq!(
        result,
        Err(Violation::Unexpected("renegotiation without end"))
    );
}

/// What a server must not send over TLS 1.3, and the alert that it gets for it.
fn refused() -> Vec<(Vec<u8>, Violation)> {
    let of = |records: &[(u8, &[u8])]| sealed(key(Version::Tls13, false, 0), records);
    let mut tampered = of(&[(kind::DATA, b"data")]);
    *tampered.last_mut().unwrap() ^= 1;
    let mut longer = of(&[(kind::DATA, b"data")]);
    longer[4] += 1;
    longer.push(0);
    let unexpected = Violation::Unexpected;
    let message = "a handshake message after the handshake";
    let interrupted = "a record in the middle of a handshake message";
    let long = vec![b'x'; PLAIN_MAX + 1];
    let empty: (u8, &[u8]) = (kind::DATA, b"");
    vec![
        (tampered, Violation::Unauthentic),
        (longer, Violation::Unauthentic),
        (b"\x17\x03\x03\0\x05short".to_vec(), Violation::Unauthentic),
        (b"\x17\x03\x03\x41\x01".to_vec(), Violation::Oversized),
        (of(&[(kind::DATA, &long)]), Violation::Oversized),
        (
            of(&[(kind::HANDSHAKE, &[4, 1, 0, 0])]),
            Violation::Oversized,
        ),
        (
            b"HTTP/".to_vec(),
            Violation::Malformed("bytes that are no record of TLS"),
        ),
        (
            b"\x14\x03\x03\0\x01\x01".to_vec(),
            unexpected("a record that is not encrypted"),
        ),
        (of(&[(0, b"\0\0")]), unexpected("a record of zeros only")),
        (of(&[(99, b"a")]), unexpected("a record of an unknown kind")),
        (
            of(&[(kind::CHANGE_CIPHER_SPEC, &[1])]),
            unexpected("a ChangeCipherSpec after the handshake"),
        ),
        (of(&[empty; 33]), unexpected("empty records without end")),
        (
            of(&[(kind::HANDSHAKE, b"")]),
            unexpected("an empty handshake record"),
        ),
        (of(&[(kind::HANDSHAKE, &[0, 0, 0, 0])]), unexpected(message)),
        (
            of(&[(kind::HANDSHAKE, &[4, 0, 0, 2, 1]), (kind::DATA, b"a")]),
            unexpected(interrupted),
        ),
        (
            of(&[(kind::HANDSHAKE, &[4, 0, 0, 2, 1]), (kind::DATA, b"")]),
            unexpected(interrupted),
        ),
        (
            of(&[(kind::HANDSHAKE, &[24, 0, 0, 1, 0, 4])]),
            unexpected("a message behind a KeyUpdate"),
        ),
        (
            of(&[(kind::HANDSHAKE, &[24, 0, 0, 1, 2])]),
            Violation::Illegal("a KeyUpdate of an unknown kind"),
        ),
        (
            of(&[(kind::HANDSHAKE, &[24, 0, 0, 2, 0, 0])]),
            Violation::Malformed("a KeyUpdate that is not 1 byte long"),
        ),
        (
            of(&[(kind::HANDSHAKE, &[4, 0, 0, 0])]),
            Violation::Malformed("a ticket that cannot be read"),
        ),
        (
            of(&[(kind::ALERT, &[1])]),
            Violation::Malformed("an alert that is not 2 bytes long"),
        ),
        (
            of(&[(kind::ALERT, &[3, 40])]),
            Violation::Illegal("an alert of an unknown level"),
        ),
        (of(&[(kind::ALERT, &[FATAL, 40])]), Violation::Told(40)),
        (of(&[(kind::ALERT, &[WARNING, 41])]), Violation::Told(41)),
    ]
}

#[test]
fn each_violation_has_its_name_and_alert_and_ends_the_connection() {
    for (wire, violation) in refused() {
        for piece in [1, usize::MAX] {
            let mut client = side(Version::Tls13, true, NEVER);
            let (got, result) = opened(&mut client, &wire, piece);
            assert_eq!((got, result), (Vec::new(), Err(violation.clone())));
            let notice = violation.alert().map(|what| {
                let content = [FATAL, what];
                sealed(key(Version::Tls13, true, 0), &[(kind::ALERT, &content)])
            });
            assert_eq!(client.answers(), &notice.unwrap_or_default());
            // Nothing goes out or comes in any more.
            client.answers().clear();
            let mut out = Vec::new();
            client.seal(b"data", &mut out);
            let after = sealed(key(Version::Tls13, false, 0), &[(kind::DATA, b"data")]);
            let (got, _) = opened(&mut client, &after, usize::MAX);
            assert!(got.is_empty() && out.is_empty() && !client.has_answers());
        }
    }
}

#[test]
fn new_keys_without_data_between_them_end() {
    let mut wire = Vec::new();
    for number in 0..=KEY_UPDATES_MAX {
        let update: (u8, &[u8]) = (kind::HANDSHAKE, &[24, 0, 0, 1, 0]);
        wire.extend(sealed(key(Version::Tls13, false, number), &[update]));
    }
    let (_, result) = opened(&mut side(Version::Tls13, true, NEVER), &wire, usize::MAX);
    assert_eq!(result, Err(Violation::Unexpected("KeyUpdates without end")));
}
