//! The decoder and the encoder against the examples of RFC 7541 and against each other.

use super::table::STATIC;
use super::*;
use proptest::prelude::*;

const NO_LIMIT: usize = usize::MAX;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let (pairs, _) = digits.as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    pairs.iter().map(byte).collect()
}

fn decoded(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<String>, Error> {
    let mut fields = Vec::new();
    decoder.decode(block, NO_LIMIT, &mut |name, value| {
        fields.push(format!("{}: {}", name.escape_ascii(), value.escape_ascii()));
    })?;
    Ok(fields)
}

/// Blocks of one direction, in order, each with its fields as `name: value` lines and the sizes of
/// the entries that the dynamic table then has.
type Example = (&'static str, usize, &'static [(&'static str, &'static str, usize)]);

const EXAMPLES: [Example; 9] = [
    (
        "C.2.1",
        4096,
        &[(
            "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
            "custom-key: custom-header",
            55,
        )],
    ),
    ("C.2.2", 4096, &[("040c 2f73 616d 706c 652f 7061 7468", ":path: /sample/path", 0)]),
    ("C.2.3", 4096, &[("1008 7061 7373 776f 7264 0673 6563 7265 74", "password: secret", 0)]),
    ("C.2.4", 4096, &[("82", ":method: GET", 0)]),
    (
        "C.3",
        4096,
        &[
            (
                "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
                ":method: GET|:scheme: http|:path: /|:authority: www.example.com",
                57,
            ),
            (
                "8286 84be 5808 6e6f 2d63 6163 6865",
                ":method: GET|:scheme: http|:path: /|:authority: www.example.com|\
                 cache-control: no-cache",
                110,
            ),
            (
                "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
                ":method: GET|:scheme: https|:path: /index.html|:authority: www.example.com|\
                 custom-key: custom-value",
                164,
            ),
        ],
    ),
    (
        "C.4",
        4096,
        &[
            (
                "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
                ":method: GET|:scheme: http|:path: /|:authority: www.example.com",
                57,
            ),
            (
                "8286 84be 5886 a8eb 1064 9cbf",
                ":method: GET|:scheme: http|:path: /|:authority: www.example.com|\
                 cache-control: no-cache",
                110,
            ),
            (
                "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
                ":method: GET|:scheme: https|:path: /index.html|:authority: www.example.com|\
                 custom-key: custom-value",
                164,
            ),
        ],
    ),
    (
        "C.5",
        256,
        &[
            (
                "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 \
                 3133 2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 \
                 7861 6d70 6c65 2e63 6f6d",
                ":status: 302|cache-control: private|date: Mon, 21 Oct 2013 20:13:21 GMT|\
                 location: https://www.example.com",
                222,
            ),
            (
                "4803 3330 37c1 c0bf",
                ":status: 307|cache-control: private|date: Mon, 21 Oct 2013 20:13:21 GMT|\
                 location: https://www.example.com",
                222,
            ),
            (
                "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 \
                 474d 54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 \
                 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 \
                 6572 7369 6f6e 3d31",
                ":status: 200|cache-control: private|date: Mon, 21 Oct 2013 20:13:22 GMT|\
                 location: https://www.example.com|content-encoding: gzip|\
                 set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
                215,
            ),
        ],
    ),
    (
        "C.6",
        256,
        &[
            (
                "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 \
                 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
                ":status: 302|cache-control: private|date: Mon, 21 Oct 2013 20:13:21 GMT|\
                 location: https://www.example.com",
                222,
            ),
            (
                "4883 640e ffc1 c0bf",
                ":status: 307|cache-control: private|date: Mon, 21 Oct 2013 20:13:21 GMT|\
                 location: https://www.example.com",
                222,
            ),
            (
                "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b \
                 d9ab 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 \
                 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
                ":status: 200|cache-control: private|date: Mon, 21 Oct 2013 20:13:22 GMT|\
                 location: https://www.example.com|content-encoding: gzip|\
                 set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
                215,
            ),
        ],
    ),
    ("nothing", 4096, &[("", "", 0)]),
];

#[test]
fn examples_of_the_rfc_decode() {
    for (name, limit, blocks) in EXAMPLES {
        let mut decoder = Decoder::default();
        decoder.set_limit(limit);
        decoder.table.set_max(limit);
        decoder.must_shrink = false;
        for (hex, fields, size) in blocks {
            let got = decoded(&mut decoder, &bytes(hex)).unwrap();
            assert_eq!(got.join("|"), *fields, "{name}");
            assert_eq!(decoder.table.size(), *size, "{name}");
        }
    }
}

/// The requests of C.4 encode to the very bytes of the RFC: both index every field. (In C.6 it
/// codes a string that is no shorter for it.)
#[test]
fn examples_of_the_rfc_encode() {
    for (name, _, blocks) in EXAMPLES.into_iter().filter(|e| e.0 == "C.4") {
        let mut encoder = Encoder::default();
        for (hex, fields, _) in blocks {
            let mut block = Vec::new();
            for field in fields.split('|') {
                let at = field[1..].find(": ").unwrap() + 1;
                let (n, v) = (&field[..at], &field[at + 2..]);
                encoder.encode(n.as_bytes(), v.as_bytes(), &mut block);
            }
            assert_eq!(block, bytes(hex), "{name}: {fields}");
        }
    }
}

#[test]
fn faults() {
    for (name, hex, want) in [
        ("index 0", "80", Error::Index),
        ("an index beyond the static table", "be", Error::Index),
        ("a name by an index beyond", "7e 0161", Error::Index),
        ("a huge index", "ff ffffff0f", Error::Index),
        ("an index beyond 32 bits", "ff ffffffff7f", Error::Integer),
        ("an index that is cut", "ff", Error::Cut),
        ("a literal without a name", "40", Error::Cut),
        ("a name that is cut", "4002 61", Error::Cut),
        ("a literal without a value", "4001 61", Error::Cut),
        ("a value that is cut", "4001 6105 61", Error::Cut),
        ("a value that is cut, unindexed", "0001 6105 61", Error::Cut),
        ("a length beyond 32 bits", "0001 617f ffffffff7f", Error::Integer),
        ("padding of zeros", "0001 6181 00", Error::HuffmanPadding),
        ("padding of 8 bits", "0001 6182 07ff", Error::HuffmanPadding),
        ("EOS", "0001 6184 ffffffff", Error::HuffmanEos),
        ("a name of EOS", "0084 ffffffff 00", Error::HuffmanEos),
        ("a table above the limit", "3fe2 1f", Error::TableSize),
        ("a change after a field", "82 20", Error::TableSizeLate),
    ] {
        let got = decoded(&mut Decoder::default(), &bytes(hex));
        assert_eq!(got, Err(want), "{name}");
        assert!(want.to_string().contains("(RFC 7541 §"), "{want}");
    }
}

#[test]
fn allowed_if_unusual() {
    for (name, hex, want) in [
        ("never indexed", "1001 6101 62", "a: b"),
        ("an empty name and value", "0000 00", ": "),
        ("Huffman code of nothing", "0001 6180", "a: "),
        ("a table at the limit", "3fe1 1f 82", ":method: GET"),
        ("two changes", "20 3fe1 1f 82", ":method: GET"),
        ("a change alone", "20", ""),
        ("an index with zeros behind", "ff80 8000", "an entry"),
    ] {
        let mut decoder = Decoder::default();
        for _ in 0..66 {
            decoder.table.insert(b"an entry", b"");
        }
        let got = decoded(&mut decoder, &bytes(hex)).unwrap().join("|");
        assert_eq!(got.trim_end_matches(": "), want.trim_end_matches(": "), "{name}");
    }
}

#[test]
fn the_list_is_bounded() {
    let block = bytes("82 82 82");
    let size = 3 * (":methodGET".len() + 32);
    let decode = |max| Decoder::default().decode(&block, max, &mut |_, _| {});
    assert_eq!(decode(size), Ok(()));
    assert_eq!(decode(size - 1), Err(Error::ListTooLarge));
}

#[test]
fn a_lowered_limit_has_to_be_followed() {
    let mut decoder = Decoder::default();
    decoder.set_limit(100);
    assert_eq!(decoded(&mut decoder, &[0x82]), Err(Error::TableSizeMissing));
    let mut decoder = Decoder::default();
    decoder.set_limit(100);
    assert_eq!(decoded(&mut decoder, &bytes("3f46")), Err(Error::TableSize), "101");
    assert!(decoded(&mut decoder, &bytes("3f45 82")).is_ok(), "100");
    assert!(decoded(&mut decoder, &bytes("82")).is_ok(), "once");
    decoder.set_limit(4096);
    assert!(decoded(&mut decoder, &bytes("82")).is_ok(), "raised: it may stay");
}

/// An entry that is named by one which its own insertion evicts (§4.4).
#[test]
fn a_new_entry_may_be_named_by_the_one_it_evicts() {
    let mut decoder = Decoder::default();
    decoded(&mut decoder, &bytes("3f0f")).unwrap();
    assert_eq!(decoder.table.max(), 46);
    assert_eq!(decoded(&mut decoder, &bytes("4003 616161 0162")).unwrap(), ["aaa: b"]);
    assert_eq!(decoded(&mut decoder, &bytes("7e02 6363")).unwrap(), ["aaa: cc"]);
    assert_eq!(decoded(&mut decoder, &bytes("be")).unwrap(), ["aaa: cc"]);
    assert_eq!(decoded(&mut decoder, &bytes("bf")), Err(Error::Index));
}

fn field() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let name = prop_oneof![
        (0..STATIC.len()).prop_map(|n| STATIC[n].0.as_bytes().to_vec()),
        "[a-d]{1,2}".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..300),
    ];
    let value = prop_oneof![
        (0..STATIC.len()).prop_map(|n| STATIC[n].1.as_bytes().to_vec()),
        "[a-c]{0,2}".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..300),
    ];
    (name, value)
}

proptest! {
    /// Whatever is encoded decodes, with limits that change in between; both tables stay equal.
    #[test]
    fn what_is_encoded_decodes(blocks in proptest::collection::vec(
        (proptest::option::of(0_u16..5000), proptest::collection::vec(field(), 0..12)), 0..12,
    )) {
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
        for (limit, fields) in blocks {
            if let Some(limit) = limit && !fields.is_empty() {
                encoder.set_limit(usize::from(limit));
                decoder.set_limit(usize::from(limit));
            }
            let mut block = Vec::new();
            for (name, value) in &fields {
                encoder.encode(name, value, &mut block);
            }
            let mut got = Vec::new();
            decoder
                .decode(&block, NO_LIMIT, &mut |n, v| got.push((n.to_vec(), v.to_vec())))
                .unwrap();
            prop_assert_eq!(got, fields);
            prop_assert_eq!(encoder.table.size(), decoder.table.size());
        }
    }

    /// Any bytes lead to fields or to an error, and to a table within its size.
    #[test]
    fn anything_is_read_or_refused(blocks: Vec<Vec<u8>>) {
        let mut decoder = Decoder::default();
        for block in blocks {
            let fine = decoder.decode(&block, 64 << 10, &mut |_, _| {}).is_ok();
            prop_assert!(decoder.table.size() <= decoder.table.max());
            if !fine {
                break;
            }
        }
    }
}
