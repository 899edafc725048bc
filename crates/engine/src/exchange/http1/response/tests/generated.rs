//! Generated responses, cut anywhere.

use super::*;
use proptest::prelude::*;

/// How the body of a generated response is framed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Framed {
    Length,
    Chunked,
    Close,
}

/// A valid response and how it ends.
fn valid() -> impl Strategy<Value = (Vec<u8>, End)> {
    let framed = prop_oneof![Just(Framed::Length), Just(Framed::Chunked), Just(Framed::Close)];
    let chunk = ("[\\PC\\r\\n0]{1,12}", "(;[a-z]{1,3}(=\"[a-z;]{0,4}\")?)?", any::<bool>());
    let chunks = prop::collection::vec(chunk, 0..4);
    let headers = prop::collection::vec("[A-Z][a-z-]{1,6}:[ \\t]?[!-~ä]{0,8}", 0..4);
    let trailers = prop::collection::vec("X-[a-z]{1,4}: [!-~]{0,6}", 0..3);
    (framed, 200u16..204, any::<bool>(), 0usize..3, headers, chunks, trailers).prop_map(
        |(framed, status, close, interim, headers, chunks, trailers)| {
            let mut bytes = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(interim);
            bytes += &format!("HTTP/1.1 {status} Fine\r\n");
            headers.iter().for_each(|h| bytes += &format!("{h}\r\n"));
            if close {
                bytes += "Connection: close\r\n";
            }
            let body: String = chunks.iter().map(|(data, ..)| data.as_str()).collect();
            match framed {
                Framed::Length => bytes += &format!("Content-Length: {}\r\n\r\n{body}", body.len()),
                Framed::Close => bytes += &format!("\r\n{body}"),
                Framed::Chunked => {
                    bytes += "Transfer-Encoding: chunked\r\n\r\n";
                    for (data, extension, upper) in &chunks {
                        let n = data.len();
                        let size = if *upper { format!("{n:X}") } else { format!("0{n:x}") };
                        bytes += &format!("{size}{extension}\r\n{data}\r\n");
                    }
                    bytes += "0\r\n";
                    trailers.iter().for_each(|t| bytes += &format!("{t}\r\n"));
                    bytes += "\r\n";
                }
            }
            let end = match framed {
                Framed::Close => End::Eof(Eof::Done { status }),
                _ => End::Done(status, !close, 0),
            };
            (bytes.into_bytes(), end)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn valid_responses_are_read_however_they_are_cut((bytes, want) in valid()) {
        check("generated", &bytes, false, want);
    }

    #[test]
    fn valid_responses_in_random_pieces(
        (bytes, want) in valid(),
        mut cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        cuts.sort_by_key(|cut| cut.index(bytes.len()));
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in cuts {
            pieces.push(&bytes[from..cut.index(bytes.len())]);
            from = cut.index(bytes.len());
        }
        pieces.push(&bytes[from..]);
        let mut cache = HeadCache::default();
        for _ in 0..2 {
            prop_assert_eq!(end(&pieces, false, &mut cache), want);
        }
    }
}
