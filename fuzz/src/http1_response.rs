//! Any bytes, however they are cut, read as the same responses, and nothing panics.

use knee_engine::exchange::http1::{Eof, HeadCache, Http1Violation, Progress, ResponseParser};

/// How one response ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// Complete, with the bytes of the stream up to it.
    Done {
        status: u16,
        keep_alive: bool,
        at: usize,
    },
    Malformed(Http1Violation),
    Eof(Eof),
}

/// The first byte says which requests are HEAD and how to cut; the rest is what the server sends.
pub fn check(data: &[u8]) {
    let Some((&choice, stream)) = data.split_first() else {
        return;
    };
    let mut warm = HeadCache::default();
    let whole = responses(stream, choice, &mut warm, |left| left);
    let cold = &mut HeadCache::default();
    assert_eq!(responses(stream, choice, &mut warm, |left| left), whole, "whole, warm");
    assert_eq!(responses(stream, choice, cold, |_| 1), whole, "byte by byte");
    assert_eq!(responses(stream, choice, &mut warm, |_| 1), whole, "byte by byte, warm");
    let mut state = u32::from(choice) << 8 | 1;
    let mut piece = |left: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as usize % 24 % left + 1
    };
    let cold = &mut HeadCache::default();
    assert_eq!(responses(stream, choice, cold, &mut piece), whole, "in pieces");
    assert_eq!(responses(stream, choice, &mut warm, &mut piece), whole, "in pieces, warm");
}

/// Reads response after response off one connection; `piece` says how many of the bytes left come
/// at once, at least one.
fn responses(
    stream: &[u8],
    choice: u8,
    cache: &mut HeadCache,
    mut piece: impl FnMut(usize) -> usize,
) -> Vec<End> {
    let mut parser = ResponseParser::default();
    let mut ends = Vec::new();
    let mut at = 0;
    let begin = |parser: &mut ResponseParser, n: usize| parser.begin(choice >> (n % 8) & 1 == 1);
    begin(&mut parser, 0);
    while at < stream.len() {
        let here = &stream[at..][..piece(stream.len() - at)];
        at += here.len();
        let mut progress = parser.feed(here, cache);
        if let Progress::Events { used, .. } = progress {
            progress = parser.feed_body(&here[used..], &mut ());
        }
        match progress {
            Progress::Events { .. } => panic!("a body has no head"),
            Progress::NeedMore => assert!(parser.has_begun() || ends_in_empty_line(&stream[..at])),
            Progress::Malformed(violation) => {
                ends.push(End::Malformed(violation));
                return ends;
            }
            Progress::Done { status, keep_alive, surplus } => {
                assert!(surplus < here.len(), "the last byte fed ended it, or one before");
                // Read on from there as though it had been asked for.
                at -= surplus;
                ends.push(End::Done { status, keep_alive, at });
                begin(&mut parser, ends.len());
            }
        }
    }
    ends.push(End::Eof(parser.at_eof()));
    ends
}

/// Whether nothing of a response can have come yet, but perhaps empty lines before it.
fn ends_in_empty_line(stream: &[u8]) -> bool {
    stream.ends_with(b"\n") || stream.ends_with(b"\r")
}
