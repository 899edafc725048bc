use super::*;
use proptest::prelude::*;

/// What is read of these bytes in pieces of these lengths, in turn.
fn read(
    side: ReaderSide,
    bytes: &[u8],
    mut cut: impl FnMut() -> usize,
) -> (Vec<String>, Option<WebSocketViolation>) {
    let mut reader = MessageReader::new(side, 1000);
    let (mut all, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        let (mut piece, after) = rest.split_at(cut().clamp(1, rest.len()));
        rest = after;
        loop {
            match reader.read(&mut piece) {
                Ok(None) => break,
                Ok(Some(item)) => {
                    let payload = match item {
                        MessageItem::Message { .. } => reader.payload(),
                        _ => reader.control(),
                    };
                    all.push(format!("{item:?} {}", payload.escape_ascii()));
                }
                Err(violation) => return (all, Some(violation)),
            }
        }
    }
    (all, None)
}

fn whole(side: ReaderSide, bytes: &[u8]) -> (Vec<String>, Option<WebSocketViolation>) {
    read(side, bytes, || usize::MAX)
}

/// Frames of a message in fragments with a ping between them, as one side sends them.
fn conversation(mask: Option<[u8; 4]>, lengths: &[usize]) -> Vec<u8> {
    let mut out = Vec::new();
    for (at, length) in lengths.iter().enumerate() {
        let payload = vec![b'a' + (at % 26) as u8; *length];
        put(&mut out, opcode::TEXT, false, mask, &payload);
        put(&mut out, opcode::PING, true, mask, b"between");
        put(&mut out, opcode::CONTINUATION, true, mask, &payload);
        put(&mut out, opcode::BINARY, true, mask, &payload);
    }
    put_close(&mut out, close_code::NORMAL, mask);
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn cuts_do_not_matter(
        lengths in prop::collection::vec(prop_oneof![0_usize..130, 120_usize..500], 1..4),
        cuts in prop::collection::vec(1_usize..40, 1..20),
        mask in prop::option::of(any::<[u8; 4]>()),
    ) {
        let side = if mask.is_some() { ReaderSide::Server } else { ReaderSide::Client };
        let bytes = conversation(mask, &lengths);
        let want = whole(side, &bytes);
        prop_assert_eq!(want.0.len(), 3 * lengths.len() + 1);
        prop_assert_eq!(want.1.clone(), None);
        prop_assert_eq!(read(side, &bytes, || 1), want.clone());
        let mut cuts = cuts.iter().cycle();
        prop_assert_eq!(read(side, &bytes, || *cuts.next().unwrap()), want);
    }

    #[test]
    fn any_bytes_mean_the_same_in_pieces(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        for side in [ReaderSide::Client, ReaderSide::Server] {
            prop_assert_eq!(read(side, &bytes, || 1), whole(side, &bytes));
        }
    }
}

#[test]
fn lengths_are_in_the_fewest_bytes() {
    for (length, head) in [(125, 2), (126, 4), (65_535, 4), (65_536, 10)] {
        let mut out = Vec::new();
        put(&mut out, opcode::BINARY, true, None, &vec![0; length]);
        assert_eq!(out.len(), head + length);
        let mut reader = MessageReader::new(ReaderSide::Client, length);
        let read = reader.read(&mut &out[..]);
        assert_eq!(read, Ok(Some(MessageItem::Message { is_text: false })), "{length}");
        let mut small = MessageReader::new(ReaderSide::Client, length - 1);
        let too_long = WebSocketViolation::MessageTooLong(length - 1);
        assert_eq!(small.read(&mut &out[..]), Err(too_long));
    }
}

#[test]
fn each_rule_has_its_violation() {
    use WebSocketViolation::*;
    let client: &[(&[u8], WebSocketViolation)] = &[
        (b"\xC1\x00", ReservedBits),
        (b"\x83\x00", Opcode(3)),
        (b"\x8B\x00", Opcode(11)),
        (b"\x09\x00", ControlFragmented),
        (b"\x89\x7E\x00\x7E", ControlLong),
        (b"\x81\x80", Masked),
        (b"\x82\x7E\x00\x7D", LengthNotMinimal),
        (b"\x82\x7F\x00\x00\x00\x00\x00\x00\xFF\xFF", LengthNotMinimal),
        (b"\x82\x7F\x80\x00\x00\x00\x00\x00\x00\x00", LengthTooLarge),
        (b"\x80\x00", ContinuationAlone),
        (b"\x01\x01a\x81\x01b", Interleaved),
        (b"\x81\x01\xFF", NotUtf8),
        (b"\x01\x02\xC3\xA4\x80\x01\xC3", NotUtf8),
        (b"\x88\x01a", CloseCut),
        (b"\x88\x02\x03\xED", CloseCode(1005)),
        (b"\x88\x02\x03\xEE", CloseCode(1006)),
        (b"\x88\x02\x07\xD0", CloseCode(2000)),
        (b"\x88\x03\x03\xE8\xFF", CloseReason),
        (b"\x88\x00\x81\x00", AfterClose),
    ];
    for (bytes, want) in client {
        let (_, got) = whole(ReaderSide::Client, bytes);
        assert_eq!(got.as_ref(), Some(want), "{}", bytes.escape_ascii());
        let (_, in_pieces) = read(ReaderSide::Client, bytes, || 1);
        assert_eq!(in_pieces.as_ref(), Some(want));
        assert!(want.to_string().contains("(RFC 6455 §"), "{want}");
    }
    assert_eq!(whole(ReaderSide::Server, b"\x81\x00").1, Some(Unmasked));
    // A character that two fragments share is whole.
    let shared = whole(ReaderSide::Client, b"\x01\x01\xC3\x80\x01\xA4");
    assert_eq!(shared.1, None);
}

#[test]
fn fragments_count_towards_the_limit() {
    let mut out = Vec::new();
    put(&mut out, opcode::BINARY, false, None, &[0; 600]);
    put(&mut out, opcode::CONTINUATION, true, None, &[0; 401]);
    assert_eq!(whole(ReaderSide::Client, &out).1, Some(WebSocketViolation::MessageTooLong(1000)));
}
