use super::super::{HEAD_BYTES_MAX, HEADERS_MAX};
use super::*;
use Violation as V;
use proptest::prelude::*;

/// How one response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Status, whether the connection persists, bytes left over.
    Done(u16, bool, usize),
    Malformed(Violation),
    /// All bytes were taken, then the stream ended.
    Eof(Eof),
}

/// Feeds `pieces` to a parser that expects one response.
fn end(pieces: &[&[u8]], head_only: bool, cache: &mut HeadCache) -> End {
    let mut parser = ResponseParser::default();
    parser.begin(head_only);
    let mut left: usize = pieces.iter().map(|p| p.len()).sum();
    for piece in pieces {
        left -= piece.len();
        match parser.feed(piece, cache) {
            Progress::NeedMore => {}
            Progress::Done {
                status,
                keep_alive,
                surplus,
            } => {
                return End::Done(status, keep_alive, surplus + left);
            }
            Progress::Malformed(violation) => return End::Malformed(violation),
        }
    }
    End::Eof(parser.at_eof())
}

/// Whole, byte by byte, cut once at every place, with a cold cache and a warm one.
fn check(name: &str, bytes: &[u8], head_only: bool, want: End) {
    let cold = || HeadCache::default();
    assert_eq!(end(&[bytes], head_only, &mut cold()), want, "{name}: whole");
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(
        end(&single, head_only, &mut cold()),
        want,
        "{name}: byte by byte"
    );
    let mut warm = cold();
    for at in 0..=bytes.len().min(600) {
        let (first, second) = bytes.split_at(at);
        assert_eq!(
            end(&[first, second], head_only, &mut cold()),
            want,
            "{name}: cut at {at}"
        );
        assert_eq!(
            end(&[first, second], head_only, &mut warm),
            want,
            "{name}: warm, cut at {at}"
        );
    }
    assert_eq!(
        end(&[bytes], head_only, &mut warm),
        want,
        "{name}: whole, warm"
    );
}

/// Rows of a name, what follows the status line `HTTP/1.1 200 OK`, and how it ends.
fn check_rows(rows: &[(&str, &str, End)]) {
    for (name, rest, want) in rows {
        check(
            name,
            format!("HTTP/1.1 200 OK\r\n{rest}").as_bytes(),
            false,
            *want,
        );
    }
}

const KEPT: End = End::Done(200, true, 0);
const CLOSED: End = End::Done(200, false, 0);
const UNTIL_CLOSE: End = End::Eof(Eof::Done { status: 200 });
const TRUNCATED: End = End::Eof(Eof::Truncated);

#[test]
fn status_lines() {
    let rows = [
        (
            "the version that is spoken",
            "HTTP/1.1 404 Not Found",
            End::Done(404, true, 0),
        ),
        (
            "the one before closes unless told",
            "HTTP/1.0 200 OK",
            CLOSED,
        ),
        ("a reason may be missing", "HTTP/1.1 200 ", KEPT),
        ("so may the blank before it", "HTTP/1.1 200", KEPT),
        ("a reason beyond ASCII", "HTTP/1.1 200 Äh", KEPT),
        (
            "a status beyond the registered ones",
            "HTTP/1.1 799 x",
            End::Done(799, true, 0),
        ),
        (
            "a status below 100",
            "HTTP/1.1 099 x",
            End::Malformed(V::Status),
        ),
        (
            "a status of two digits",
            "HTTP/1.1 20 OK",
            End::Malformed(V::Status),
        ),
        (
            "a status of four digits",
            "HTTP/1.1 2000 OK",
            End::Malformed(V::Status),
        ),
        (
            "a status of letters",
            "HTTP/1.1 abc OK",
            End::Malformed(V::Status),
        ),
        (
            "an unknown minor version",
            "HTTP/1.2 200 OK",
            End::Malformed(V::NotHttp),
        ),
        (
            "an unknown major version",
            "HTTP/2.0 200 OK",
            End::Malformed(V::NotHttp),
        ),
        (
            "another protocol",
            "SSH-2.0-OpenSSH_9.6",
            End::Malformed(V::NotHttp),
        ),
        (
            "a blank before it",
            " HTTP/1.1 200 OK",
            End::Malformed(V::NotHttp),
        ),
        (
            "an empty line before it",
            "\r\nHTTP/1.1 200 OK",
            End::Malformed(V::NotHttp),
        ),
    ];
    for (name, line, want) in rows {
        check(
            name,
            format!("{line}\r\nContent-Length: 0\r\n\r\n").as_bytes(),
            false,
            want,
        );
    }
}

#[test]
fn lengths() {
    let bad = End::Malformed(V::ContentLength);
    check_rows(&[
        ("a body", "Content-Length: 2\r\n\r\nhi", KEPT),
        ("no body", "Content-Length: 0\r\n\r\n", KEPT),
        ("names have no case", "cOnTeNt-LeNgTh: 2\r\n\r\nhi", KEPT),
        (
            "bytes beyond the end",
            "Content-Length: 2\r\n\r\nhi\r\n",
            End::Done(200, true, 2),
        ),
        ("a body cut off", "Content-Length: 3\r\n\r\nhi", TRUNCATED),
        ("a head cut off", "Content-Length: 3\r\n", TRUNCATED),
        ("neither length nor encoding", "A: b\r\n\r\nhi", UNTIL_CLOSE),
        ("not even a body", "\r\n", UNTIL_CLOSE),
        (
            "the same length twice",
            "Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi",
            KEPT,
        ),
        (
            "the same length in a list",
            "Content-Length: 2, 2\r\n\r\nhi",
            KEPT,
        ),
        (
            "the same number written otherwise",
            "Content-Length: 2, 02\r\n\r\nhi",
            KEPT,
        ),
        (
            "two lengths",
            "Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi",
            bad,
        ),
        (
            "two lengths in a list",
            "Content-Length: 2,3\r\n\r\nhi",
            bad,
        ),
        (
            "a list with nothing in it",
            "Content-Length: 2,\r\n\r\nhi",
            bad,
        ),
        ("an empty length", "Content-Length:\r\n\r\n", bad),
        ("a length below 0", "Content-Length: -1\r\n\r\n", bad),
        ("a length with a sign", "Content-Length: +2\r\n\r\nhi", bad),
        ("a hexadecimal length", "Content-Length: 0x2\r\n\r\nhi", bad),
        (
            "a length with a blank in it",
            "Content-Length: 1 2\r\n\r\nhi",
            bad,
        ),
        (
            "the largest length",
            "Content-Length: 18446744073709551615\r\n\r\nhi",
            TRUNCATED,
        ),
        (
            "one more than that",
            "Content-Length: 18446744073709551616\r\n\r\nhi",
            bad,
        ),
    ]);
}

#[test]
fn encodings() {
    let chunks = "2\r\nhi\r\n0\r\n\r\n";
    let rows = [
        ("chunked", "Transfer-Encoding: chunked", KEPT),
        ("codings have no case", "transfer-encoding: Chunked", KEPT),
        (
            "chunked last of two",
            "Transfer-Encoding: gzip, chunked",
            KEPT,
        ),
        (
            "two lines are one list",
            "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
            KEPT,
        ),
        (
            "chunked not last",
            "Transfer-Encoding: chunked, gzip",
            UNTIL_CLOSE,
        ),
        ("not chunked at all", "Transfer-Encoding: gzip", UNTIL_CLOSE),
        (
            "not chunked but with a length",
            "Transfer-Encoding: gzip\r\nContent-Length: 1",
            UNTIL_CLOSE,
        ),
        (
            "an encoding wins over a length",
            "Content-Length: 1\r\nTransfer-Encoding: chunked",
            CLOSED,
        ),
        (
            "chunked twice",
            "Transfer-Encoding: chunked, chunked",
            End::Malformed(V::TransferEncoding),
        ),
        (
            "chunked twice in two lines",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            End::Malformed(V::TransferEncoding),
        ),
        (
            "a bad length all the same",
            "Transfer-Encoding: chunked\r\nContent-Length: x",
            End::Malformed(V::ContentLength),
        ),
    ];
    for (name, headers, want) in rows {
        check_rows(&[(name, &format!("{headers}\r\n\r\n{chunks}"), want)]);
    }
    let old =
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    check(
        "an encoding that HTTP/1.0 does not know",
        old,
        false,
        CLOSED,
    );
}

#[test]
fn chunks() {
    let size = End::Malformed(V::ChunkSize);
    let chunk_end = End::Malformed(V::ChunkEnd);
    let trailer = End::Malformed(V::Trailer);
    let rows = [
        ("no data", "0\r\n\r\n", KEPT),
        ("several chunks", "2\r\nhi\r\n1\r\n!\r\n0\r\n\r\n", KEPT),
        (
            "data that look like framing",
            "7\r\n0\r\n\r\n1\r\r\n0\r\n\r\n",
            KEPT,
        ),
        (
            "hexadecimal sizes in either case",
            "a\r\n0123456789\r\nB\r\n0123456789a\r\n0\r\n\r\n",
            KEPT,
        ),
        ("zeros before a size", "0002\r\nhi\r\n000\r\n\r\n", KEPT),
        ("extensions", "2;a;b=c;d=\"e;f\"\r\nhi\r\n0;g\r\n\r\n", KEPT),
        ("blanks after a size", "2  \r\nhi\r\n0 \t;a\r\n\r\n", KEPT),
        ("trailers", "0\r\nA: b\r\nC:\r\n\r\n", KEPT),
        ("trailers whose lines end in LF", "0\r\nA: b\n\n", KEPT),
        (
            "bytes beyond the end",
            "0\r\n\r\nxyz",
            End::Done(200, true, 3),
        ),
        ("an end that does not come", "2\r\nhi\r\n", TRUNCATED),
        ("a last line that does not come", "0\r\nA: b\r\n", TRUNCATED),
        ("no size", "\r\nhi", size),
        ("a size below 0", "-2\r\nhi", size),
        ("a size with a prefix", "0x2\r\nhi", size),
        ("a blank before a size", " 2\r\nhi", size),
        ("a blank within a size", "1 2\r\n", size),
        ("a size of 64 bits", "ffffffffffffffff\r\nhi", TRUNCATED),
        ("a size of 65 bits", "10000000000000000\r\nhi", size),
        (
            "a size line that ends in LF",
            "2\nhi\r\n0\r\n\r\n",
            chunk_end,
        ),
        (
            "an extension that ends in LF",
            "2;a\nhi\r\n0\r\n\r\n",
            chunk_end,
        ),
        (
            "a control character in an extension",
            "2;a\0\r\nhi\r\n0\r\n\r\n",
            chunk_end,
        ),
        ("CR without LF after a size", "2\rhi", chunk_end),
        (
            "more data than the size says",
            "2\r\nhi!\r\n0\r\n\r\n",
            chunk_end,
        ),
        (
            "less data than the size says",
            "3\r\nhi\r\n0\r\n\r\n",
            chunk_end,
        ),
        ("LF alone after the data", "2\r\nhi\n0\r\n\r\n", chunk_end),
        ("a trailer without ':'", "0\r\nA\r\n\r\n", trailer),
        ("a trailer without a name", "0\r\n: b\r\n\r\n", trailer),
        ("a folded trailer", "0\r\nA: b\r\n c\r\n\r\n", trailer),
        ("a blank before ':'", "0\r\nA : b\r\n\r\n", trailer),
        ("CR alone in a trailer", "0\r\nA: b\rc\r\n\r\n", trailer),
        ("CR alone at the end", "0\r\n\rx", trailer),
    ];
    for (name, body, want) in rows {
        check_rows(&[(
            name,
            &format!("Transfer-Encoding: chunked\r\n\r\n{body}"),
            want,
        )]);
    }
}

#[test]
fn header_lines() {
    let bad = End::Malformed(V::Header);
    check_rows(&[
        ("lines that end in LF", "Content-Length: 2\n\nhi", KEPT),
        ("no blank after ':'", "Content-Length:2\r\n\r\nhi", KEPT),
        (
            "tabs and blanks around a value",
            "Content-Length: \t2 \t\r\n\r\nhi",
            KEPT,
        ),
        (
            "a value beyond ASCII",
            "A: ä\r\nContent-Length: 0\r\n\r\n",
            KEPT,
        ),
        (
            "a folded line",
            "A: b\r\n c\r\nContent-Length: 0\r\n\r\n",
            bad,
        ),
        (
            "a blank before the first name",
            " A: b\r\nContent-Length: 0\r\n\r\n",
            bad,
        ),
        ("a blank before ':'", "Content-Length : 2\r\n\r\nhi", bad),
        ("no ':'", "Content-Length\r\n\r\n", bad),
        ("no name", ": b\r\n\r\n", bad),
        ("a NUL in a value", "A: \0\r\n\r\n", bad),
        ("CR alone in a value", "A: b\rc\r\n\r\n", bad),
    ]);
}

#[test]
fn persistence() {
    let rows = [
        ("1.1 persists", "1.1", "A: b", true),
        ("1.1 that closes", "1.1", "Connection: close", false),
        ("options have no case", "1.1", "connection: CLOSE", false),
        (
            "close within a list",
            "1.1",
            "Connection: upgrade , close,x",
            false,
        ),
        (
            "close in a second line",
            "1.1",
            "Connection: x\r\nConnection: close",
            false,
        ),
        ("close wins", "1.1", "Connection: keep-alive, close", false),
        (
            "a word that only contains it",
            "1.1",
            "Connection: closed",
            true,
        ),
        ("1.0 closes", "1.0", "A: b", false),
        ("1.0 that persists", "1.0", "Connection: Keep-Alive", true),
        (
            "1.0 that says both",
            "1.0",
            "Connection: keep-alive\r\nConnection: close",
            false,
        ),
    ];
    for (name, version, header, want) in rows {
        let bytes = format!("HTTP/{version} 200 OK\r\n{header}\r\nContent-Length: 2\r\n\r\nhi");
        check(name, bytes.as_bytes(), false, End::Done(200, want, 0));
    }
}

#[test]
fn responses_without_a_body() {
    let rows = [
        (
            "a HEAD's length",
            true,
            "200 OK",
            "Content-Length: 5",
            End::Done(200, true, 0),
        ),
        (
            "a HEAD's encoding",
            true,
            "200 OK",
            "Transfer-Encoding: chunked",
            End::Done(200, true, 0),
        ),
        (
            "a HEAD without either",
            true,
            "200 OK",
            "A: b",
            End::Done(200, true, 0),
        ),
        (
            "no content",
            false,
            "204 No Content",
            "A: b",
            End::Done(204, true, 0),
        ),
        (
            "no content, with a length",
            false,
            "204 x",
            "Content-Length: 5",
            End::Done(204, true, 0),
        ),
        (
            "not modified",
            false,
            "304 x",
            "Content-Length: 5",
            End::Done(304, true, 0),
        ),
        (
            "not modified, chunked",
            false,
            "304 x",
            "Transfer-Encoding: chunked",
            End::Done(304, true, 0),
        ),
        (
            "reset content has one",
            false,
            "205 x",
            "Content-Length: 0",
            End::Done(205, true, 0),
        ),
        (
            "another protocol follows",
            false,
            "101 x",
            "Upgrade: y",
            End::Done(101, false, 0),
        ),
        (
            "a bad length all the same",
            true,
            "200 OK",
            "Content-Length: x",
            End::Malformed(V::ContentLength),
        ),
    ];
    for (name, head_only, status, header, want) in rows {
        let bytes = format!("HTTP/1.1 {status}\r\n{header}\r\n\r\n");
        check(name, bytes.as_bytes(), head_only, want);
    }
}

#[test]
fn interim_responses_are_passed_over() {
    let last = "HTTP/1.1 201 x\r\nContent-Length: 2\r\n\r\nhi";
    let rows = [
        (
            "one",
            "HTTP/1.1 100 Continue\r\n\r\n".to_owned(),
            End::Done(201, true, 0),
        ),
        (
            "many",
            "HTTP/1.1 103 x\r\nLink: </a>\r\n\r\n".repeat(5),
            End::Done(201, true, 0),
        ),
        (
            "what they say of framing and persistence does not count",
            "HTTP/1.1 102 x\r\nContent-Length: y\r\nConnection: close\r\n\r\n".to_owned(),
            End::Done(201, true, 0),
        ),
    ];
    for (name, interim, want) in rows {
        check(name, format!("{interim}{last}").as_bytes(), false, want);
    }
    check(
        "nothing after them",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        false,
        TRUNCATED,
    );
}

#[test]
fn limits_of_the_head() {
    let ok = b"Content-Length: 0\r\n";
    let with_lines = |n: usize| {
        [
            b"HTTP/1.1 200 OK\r\n",
            &b"A: b\r\n".repeat(n)[..],
            ok,
            b"\r\n",
        ]
        .concat()
    };
    let cold = || HeadCache::default();
    assert_eq!(
        end(&[&with_lines(HEADERS_MAX - 1)], false, &mut cold()),
        KEPT
    );
    let too_many = End::Malformed(V::TooManyHeaders);
    assert_eq!(
        end(&[&with_lines(HEADERS_MAX)], false, &mut cold()),
        too_many
    );

    let of_length = |n: usize| {
        let around = b"HTTP/1.1 200 OK\r\nA: \r\n\r\n".len() + ok.len();
        let filler = vec![b'x'; n - around];
        [b"HTTP/1.1 200 OK\r\nA: ", &filler[..], b"\r\n", ok, b"\r\n"].concat()
    };
    let too_large = End::Malformed(V::HeadTooLarge);
    for (bytes, want) in [
        (of_length(HEAD_BYTES_MAX), KEPT),
        (of_length(HEAD_BYTES_MAX + 1), too_large),
    ] {
        assert_eq!(end(&[&bytes], false, &mut cold()), want);
        for piece in [1, 1000, HEAD_BYTES_MAX - 1] {
            let pieces: Vec<_> = bytes.chunks(piece).collect();
            assert_eq!(
                end(&pieces, false, &mut cold()),
                want,
                "in pieces of {piece}"
            );
        }
    }
}

#[test]
fn what_comes_when_nothing_is_expected() {
    let mut cache = HeadCache::default();
    let mut parser = ResponseParser::default();
    assert_eq!(parser.at_eof(), Eof::Closed, "before any request");
    assert_eq!(
        parser.feed(b"HTTP/1.1 408 x\r\n", &mut cache),
        Progress::Malformed(V::Unasked)
    );

    parser.begin(false);
    assert_eq!(parser.at_eof(), Eof::Closed, "before any byte");

    parser.begin(false);
    assert!(!parser.has_begun());
    assert_eq!(parser.feed(b"", &mut cache), Progress::NeedMore);
    assert!(!parser.has_begun(), "no byte is none");
    assert_eq!(parser.feed(b"H", &mut cache), Progress::NeedMore);
    assert!(parser.has_begun());
    assert_eq!(
        parser.feed(b"X", &mut cache),
        Progress::Malformed(V::NotHttp)
    );
    assert_eq!(
        parser.feed(b"X", &mut cache),
        Progress::Malformed(V::NotHttp),
        "it stays so"
    );

    parser.begin(false);
    assert!(!parser.has_begun(), "another response, another begin");
    let whole = b"HTTP/1.1 204 x\r\n\r\n";
    let done = Progress::Done {
        status: 204,
        keep_alive: true,
        surplus: 0,
    };
    assert_eq!(
        parser.feed(whole, &mut cache),
        done,
        "nothing is left of the one before"
    );
    assert_eq!(
        parser.feed(b"x", &mut cache),
        Progress::Malformed(V::Unasked)
    );
}

#[test]
fn the_cache_tells_apart_what_differs() {
    let mut cache = HeadCache::default();
    let rows: [(&str, &[u8], bool, End); 7] = [
        (
            "a head",
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
            false,
            KEPT,
        ),
        (
            "the same to HEAD",
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n",
            true,
            KEPT,
        ),
        (
            "a digit more",
            b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhi",
            false,
            TRUNCATED,
        ),
        (
            "cut off where it is the same",
            b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n",
            false,
            TRUNCATED,
        ),
        (
            "a header more",
            b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\nA: b\r\n\r\n",
            false,
            TRUNCATED,
        ),
        (
            "another status",
            b"HTTP/1.1 500 OK\r\nContent-Length: 0\r\n\r\n",
            false,
            End::Done(500, true, 0),
        ),
        (
            "the first again",
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
            false,
            KEPT,
        ),
    ];
    for (name, bytes, head_only, want) in rows {
        assert_eq!(end(&[bytes], head_only, &mut cache), want, "{name}");
    }
}

/// How the body of a generated response is framed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Framed {
    Length,
    Chunked,
    Close,
}

/// A valid response and how it ends.
fn valid() -> impl Strategy<Value = (Vec<u8>, End)> {
    let framed = prop_oneof![
        Just(Framed::Length),
        Just(Framed::Chunked),
        Just(Framed::Close)
    ];
    let chunk = (
        "[\\PC\\r\\n0]{1,12}",
        "(;[a-z]{1,3}(=\"[a-z;]{0,4}\")?)?",
        any::<bool>(),
    );
    let chunks = prop::collection::vec(chunk, 0..4);
    let headers = prop::collection::vec("[A-Z][a-z-]{1,6}:[ \\t]?[!-~ä]{0,8}", 0..4);
    let trailers = prop::collection::vec("X-[a-z]{1,4}: [!-~]{0,6}", 0..3);
    (
        framed,
        200u16..204,
        any::<bool>(),
        0usize..3,
        headers,
        chunks,
        trailers,
    )
        .prop_map(
            |(framed, status, close, interim, headers, chunks, trailers)| {
                let mut bytes = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(interim);
                bytes += &format!("HTTP/1.1 {status} Fine\r\n");
                headers.iter().for_each(|h| bytes += &format!("{h}\r\n"));
                if close {
                    bytes += "Connection: close\r\n";
                }
                let body: String = chunks.iter().map(|(data, ..)| data.as_str()).collect();
                match framed {
                    Framed::Length => {
                        bytes += &format!("Content-Length: {}\r\n\r\n{body}", body.len())
                    }
                    Framed::Close => bytes += &format!("\r\n{body}"),
                    Framed::Chunked => {
                        bytes += "Transfer-Encoding: chunked\r\n\r\n";
                        for (data, extension, upper) in &chunks {
                            let n = data.len();
                            let size = if *upper {
                                format!("{n:X}")
                            } else {
                                format!("0{n:x}")
                            };
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
