//! Any bytes, however they are cut, are the same requests to the reference server.

use knee_serve::http::request::{HEAD_MAX, LastHead, Refusal, Request, RequestRead, RequestReader};

/// What came out of a whole stream.
#[derive(Debug, PartialEq, Eq)]
struct Read {
    /// Each request, and how many bytes into the stream it ended.
    requests: Vec<(Request, usize)>,
    /// How many bytes were consumed, and whether a body was being read.
    rest: Result<(usize, bool), Refusal>,
}

/// The first byte says how to cut; the rest is what a client sends.
pub fn check(data: &[u8]) {
    let Some((&choice, stream)) = data.split_first() else {
        return;
    };
    let (mut warm, cold) = (LastHead::default(), LastHead::default);
    let whole = read(stream, &mut warm, |left| left);
    let mut state = u32::from(choice) << 8 | 1;
    let mut piece = |left: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as usize % 24 % left + 1
    };
    let cuts = [
        ("whole, warm", read(stream, &mut warm, |left| left)),
        ("byte by byte", read(stream, &mut cold(), |_| 1)),
        ("byte by byte, warm", read(stream, &mut warm, |_| 1)),
        ("in pieces", read(stream, &mut cold(), &mut piece)),
        ("in pieces, warm", read(stream, &mut warm, &mut piece)),
    ];
    // Beyond it, a part may be too long before it turns out to be wrong in another way.
    if stream.len() < HEAD_MAX {
        for (cut, read) in cuts {
            assert_eq!(read, whole, "{cut}");
        }
    }
}

/// Reads request after request off one connection; `piece` says how many of the bytes left come at
/// once, at least one. What was not consumed is offered again, as the server does.
fn read(stream: &[u8], last: &mut LastHead, mut piece: impl FnMut(usize) -> usize) -> Read {
    let mut reader = RequestReader::default();
    let mut requests = Vec::new();
    let (mut from, mut to) = (0, 0);
    while to < stream.len() {
        to += piece(stream.len() - to);
        while from < to {
            let (used, step) = match reader.feed(&stream[from..to], last) {
                Ok(progress) => progress,
                Err(refusal) => {
                    let rest = Err(refusal);
                    return Read { requests, rest };
                }
            };
            assert!(used <= to - from, "no byte is consumed before it came");
            from += used;
            match step {
                RequestRead::NeedMore => break,
                RequestRead::Continue => assert!(reader.in_body(), "only a body is waited for"),
                RequestRead::Request(request) => {
                    assert!(used > 0 && !reader.in_body());
                    requests.push((request, from));
                }
            }
        }
        assert!(to - from <= HEAD_MAX, "what is kept has a limit");
    }
    let rest = Ok((from, reader.in_body()));
    Read { requests, rest }
}
