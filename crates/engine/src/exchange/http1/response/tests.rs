use super::super::{HEAD_BYTES_MAX, HEADERS_MAX};
use super::*;
use Http1Violation as V;

mod body;
mod generated;
mod head;
mod read;

/// How one response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Status, whether the connection persists, bytes left over.
    Done(u16, bool, usize),
    Malformed(Http1Violation),
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
            Progress::NeedMore | Progress::Events { .. } => {}
            Progress::Done { status, keep_alive, surplus } => {
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
    assert_eq!(end(&single, head_only, &mut cold()), want, "{name}: byte by byte");
    let mut warm = cold();
    for at in 0..=bytes.len().min(600) {
        let (first, second) = bytes.split_at(at);
        assert_eq!(end(&[first, second], head_only, &mut cold()), want, "{name}: cut at {at}");
        assert_eq!(end(&[first, second], head_only, &mut warm), want, "{name}: warm, cut at {at}");
    }
    assert_eq!(end(&[bytes], head_only, &mut warm), want, "{name}: whole, warm");
}

/// Rows of a name, what follows the status line `HTTP/1.1 200 OK`, and how it ends.
fn check_rows(rows: &[(&str, &str, End)]) {
    for (name, rest, want) in rows {
        check(name, format!("HTTP/1.1 200 OK\r\n{rest}").as_bytes(), false, *want);
    }
}

const KEPT: End = End::Done(200, true, 0);
const CLOSED: End = End::Done(200, false, 0);
const UNTIL_CLOSE: End = End::Eof(Eof::Done { status: 200 });
const TRUNCATED: End = End::Eof(Eof::Truncated);

#[test]
fn limits_of_the_head() {
    let ok = b"Content-Length: 0\r\n";
    let with_lines =
        |n: usize| [b"HTTP/1.1 200 OK\r\n", &b"A: b\r\n".repeat(n)[..], ok, b"\r\n"].concat();
    let cold = || HeadCache::default();
    assert_eq!(end(&[&with_lines(HEADERS_MAX - 1)], false, &mut cold()), KEPT);
    let too_many = End::Malformed(V::TooManyHeaders);
    assert_eq!(end(&[&with_lines(HEADERS_MAX)], false, &mut cold()), too_many);

    let of_length = |n: usize| {
        let around = b"HTTP/1.1 200 OK\r\nA: \r\n\r\n".len() + ok.len();
        let filler = vec![b'x'; n - around];
        [b"HTTP/1.1 200 OK\r\nA: ", &filler[..], b"\r\n", ok, b"\r\n"].concat()
    };
    let too_large = End::Malformed(V::HeadTooLarge);
    for (bytes, want) in
        [(of_length(HEAD_BYTES_MAX), KEPT), (of_length(HEAD_BYTES_MAX + 1), too_large)]
    {
        assert_eq!(end(&[&bytes], false, &mut cold()), want);
        for piece in [1, 1000, HEAD_BYTES_MAX - 1] {
            let pieces: Vec<_> = bytes.chunks(piece).collect();
            assert_eq!(end(&pieces, false, &mut cold()), want, "in pieces of {piece}");
        }
    }
}

#[test]
fn what_comes_when_nothing_is_expected() {
    let mut cache = HeadCache::default();
    let mut parser = ResponseParser::default();
    assert_eq!(parser.at_eof(), Eof::Closed, "before any request");
    assert_eq!(parser.feed(b"HTTP/1.1 408 x\r\n", &mut cache), Progress::Malformed(V::Unasked));

    parser.begin(false);
    assert_eq!(parser.at_eof(), Eof::Closed, "before any byte");

    parser.begin(false);
    assert!(!parser.has_begun());
    assert_eq!(parser.feed(b"", &mut cache), Progress::NeedMore);
    assert!(!parser.has_begun(), "no byte is none");
    assert_eq!(parser.feed(b"H", &mut cache), Progress::NeedMore);
    assert!(parser.has_begun());
    assert_eq!(parser.feed(b"X", &mut cache), Progress::Malformed(V::NotHttp));
    assert_eq!(parser.feed(b"X", &mut cache), Progress::Malformed(V::NotHttp), "it stays so");

    parser.begin(false);
    assert!(!parser.has_begun(), "another response, another begin");
    let whole = b"HTTP/1.1 204 x\r\n\r\n";
    let done = Progress::Done { status: 204, keep_alive: true, surplus: 0 };
    assert_eq!(parser.feed(whole, &mut cache), done, "nothing is left of the one before");
    assert_eq!(parser.feed(b"x", &mut cache), Progress::Malformed(V::Unasked));
}

#[test]
fn the_cache_tells_apart_what_differs() {
    let mut cache = HeadCache::default();
    let rows: [(&str, &[u8], bool, End); 7] = [
        ("a head", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", false, KEPT),
        ("the same to HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", true, KEPT),
        ("a digit more", b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhi", false, TRUNCATED),
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
        ("the first again", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", false, KEPT),
    ];
    for (name, bytes, head_only, want) in rows {
        assert_eq!(end(&[bytes], head_only, &mut cache), want, "{name}");
    }
}
