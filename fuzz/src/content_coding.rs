//! A compressed body decodes to the same text, or to none, however it is cut. No body decodes to
//! more than its bound. Nothing panics.

use knee_engine::exchange::content_coding::{BodyDecoder, BodyDecoders};

/// Content-Encoding by the first byte of an input.
const LINES: [&str; 8] =
    ["gzip", "deflate", "br", "zstd", "gzip, br", "zstd, gzip", "deflate, zstd", "br, deflate"];

/// Bound of the text of a body as short as an input.
const TEXT_BYTES_MAX: usize = 16 << 20;

/// The first byte chooses the codings; the rest is the body.
pub fn check(data: &[u8]) {
    let Some((&choice, body)) = data.split_first() else {
        return;
    };
    let line = LINES[usize::from(choice) % LINES.len()];
    let whole = decoded(line, body, |left| left);
    assert!(whole.0.len() <= TEXT_BYTES_MAX || body.len() > TEXT_BYTES_MAX / 100);
    check_alike(&whole, &decoded(line, body, |_| 1));
    let mut state = u32::from(choice) << 8 | 1;
    let piece = |left: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as usize % 24 % left + 1
    };
    check_alike(&whole, &decoded(line, body, piece));
}

/// The text, and whether it is all.
fn decoded(line: &str, body: &[u8], mut piece: impl FnMut(usize) -> usize) -> (Vec<u8>, bool) {
    let mut decoders = BodyDecoders::default();
    decoders.announce(0, line.as_bytes());
    let mut text = Vec::new();
    let mut rest = body;
    while !rest.is_empty() {
        let (bytes, after) = rest.split_at(piece(rest.len()));
        let decoder = decoders.get(0).expect("announced");
        decoder.feed(bytes, &mut |piece| text.extend_from_slice(piece));
        rest = after;
    }
    let is_whole = decoders.get(0).is_some_and(BodyDecoder::end);
    assert_eq!(decoders.end(0).is_none(), is_whole);
    (text, is_whole)
}

/// Of a body with a fault, more or less may have been decoded before that was seen.
fn check_alike((text, is_whole): &(Vec<u8>, bool), (other, other_is): &(Vec<u8>, bool)) {
    assert_eq!(is_whole, other_is);
    if *is_whole {
        assert!(text == other);
    } else {
        assert!(text.starts_with(other) || other.starts_with(text));
    }
}
