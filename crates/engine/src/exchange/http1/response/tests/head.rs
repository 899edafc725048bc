//! What status line and header lines say.

use super::*;

#[test]
fn status_lines() {
    let rows = [
        ("the version that is spoken", "HTTP/1.1 404 Not Found", End::Done(404, true, 0)),
        ("the one before closes unless told", "HTTP/1.0 200 OK", CLOSED),
        ("a reason may be missing", "HTTP/1.1 200 ", KEPT),
        ("so may the blank before it", "HTTP/1.1 200", KEPT),
        ("a reason beyond ASCII", "HTTP/1.1 200 Äh", KEPT),
        ("a status beyond the registered ones", "HTTP/1.1 799 x", End::Done(799, true, 0)),
        ("a status below 100", "HTTP/1.1 099 x", End::Malformed(V::Status)),
        ("a status of two digits", "HTTP/1.1 20 OK", End::Malformed(V::Status)),
        ("a status of four digits", "HTTP/1.1 2000 OK", End::Malformed(V::Status)),
        ("a status of letters", "HTTP/1.1 abc OK", End::Malformed(V::Status)),
        ("a later minor version", "HTTP/1.2 200 OK", KEPT),
        ("the last of them", "HTTP/1.9 200 OK", KEPT),
        ("a minor version of two digits", "HTTP/1.10 200 OK", End::Malformed(V::NotHttp)),
        ("a minor version that is no digit", "HTTP/1.x 200 OK", End::Malformed(V::NotHttp)),
        ("an unknown major version", "HTTP/2.0 200 OK", End::Malformed(V::NotHttp)),
        ("another protocol", "SSH-2.0-OpenSSH_9.6", End::Malformed(V::NotHttp)),
        ("a blank before it", " HTTP/1.1 200 OK", End::Malformed(V::NotHttp)),
        ("an empty line before it", "\r\nHTTP/1.1 200 OK", KEPT),
        ("several, however they end", "\n\r\n\r\n\nHTTP/1.1 200 OK", KEPT),
        ("CR alone before it", "\r\n\rHTTP/1.1 200 OK", End::Malformed(V::NotHttp)),
        ("a line with a blank before it", "\r\n \r\nHTTP/1.1 200 OK", End::Malformed(V::NotHttp)),
    ];
    for (name, line, want) in rows {
        check(name, format!("{line}\r\nContent-Length: 0\r\n\r\n").as_bytes(), false, want);
    }
}

/// What the end of the stream means after empty lines alone: no response has begun.
#[test]
fn empty_lines_are_no_response() {
    for bytes in [&b"\r\n"[..], b"\n\r\n", b"\r\n\r"] {
        check("empty lines", bytes, false, End::Eof(Eof::Closed));
    }
    check("and a byte", b"\r\nH", false, TRUNCATED);
}

#[test]
fn header_lines() {
    let bad = End::Malformed(V::Header);
    check_rows(&[
        ("lines that end in LF", "Content-Length: 2\n\nhi", KEPT),
        ("no blank after ':'", "Content-Length:2\r\n\r\nhi", KEPT),
        ("tabs and blanks around a value", "Content-Length: \t2 \t\r\n\r\nhi", KEPT),
        ("a value beyond ASCII", "A: ä\r\nContent-Length: 0\r\n\r\n", KEPT),
        ("a folded line", "A: b\r\n c\r\nContent-Length: 0\r\n\r\n", KEPT),
        (
            "a line folded several times, with nothing in between",
            "A:\r\n \r\n\tb\r\n \r\nContent-Length: 0\r\n\r\n",
            KEPT,
        ),
        ("a folded length", "Content-Length:\r\n 2\r\n\r\nhi", KEPT),
        (
            "a length folded in two",
            "Content-Length: 1\r\n 2\r\n\r\nhi",
            End::Malformed(V::ContentLength),
        ),
        (
            "a list folded behind its comma",
            "Connection: x,\r\n\tclose\r\nContent-Length: 2\r\n\r\nhi",
            CLOSED,
        ),
        ("a blank before the first name", " A: b\r\nContent-Length: 0\r\n\r\n", bad),
        ("a blank before ':'", "Content-Length : 2\r\n\r\nhi", bad),
        ("no ':'", "Content-Length\r\n\r\n", bad),
        ("no name", ": b\r\n\r\n", bad),
        ("a NUL in a value", "A: \0\r\n\r\n", End::Malformed(V::HeaderValue)),
        ("CR alone in a value", "A: b\rc\r\n\r\n", End::Malformed(V::HeaderValue)),
    ]);
}

#[test]
fn lengths() {
    let bad = End::Malformed(V::ContentLength);
    check_rows(&[
        ("a body", "Content-Length: 2\r\n\r\nhi", KEPT),
        ("no body", "Content-Length: 0\r\n\r\n", KEPT),
        ("names have no case", "cOnTeNt-LeNgTh: 2\r\n\r\nhi", KEPT),
        ("bytes beyond the end", "Content-Length: 2\r\n\r\nhi\r\n", End::Done(200, true, 2)),
        ("a body cut off", "Content-Length: 3\r\n\r\nhi", TRUNCATED),
        ("a head cut off", "Content-Length: 3\r\n", TRUNCATED),
        ("neither length nor encoding", "A: b\r\n\r\nhi", UNTIL_CLOSE),
        ("not even a body", "\r\n", UNTIL_CLOSE),
        ("the same length twice", "Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi", KEPT),
        ("the same length in a list", "Content-Length: 2, 2\r\n\r\nhi", KEPT),
        ("the same number written otherwise", "Content-Length: 2, 02\r\n\r\nhi", KEPT),
        ("two lengths", "Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi", bad),
        ("two lengths in a list", "Content-Length: 2,3\r\n\r\nhi", bad),
        ("a list with nothing in it", "Content-Length: 2,\r\n\r\nhi", bad),
        ("an empty length", "Content-Length:\r\n\r\n", bad),
        ("a length below 0", "Content-Length: -1\r\n\r\n", bad),
        ("a length with a sign", "Content-Length: +2\r\n\r\nhi", bad),
        ("a hexadecimal length", "Content-Length: 0x2\r\n\r\nhi", bad),
        ("a length with a blank in it", "Content-Length: 1 2\r\n\r\nhi", bad),
        ("the largest length", "Content-Length: 18446744073709551615\r\n\r\nhi", TRUNCATED),
        ("one more than that", "Content-Length: 18446744073709551616\r\n\r\nhi", bad),
    ]);
}

#[test]
fn encodings() {
    let chunks = "2\r\nhi\r\n0\r\n\r\n";
    let rows = [
        ("chunked", "Transfer-Encoding: chunked", KEPT),
        ("codings have no case", "transfer-encoding: Chunked", KEPT),
        ("chunked last of two", "Transfer-Encoding: gzip, chunked", KEPT),
        ("two lines are one list", "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked", KEPT),
        ("empty elements are none", "Transfer-Encoding: , chunked ,", KEPT),
        ("an empty line is none", "Transfer-Encoding: chunked\r\nTransfer-Encoding:", KEPT),
        ("chunked not last", "Transfer-Encoding: chunked, gzip", UNTIL_CLOSE),
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
    check("an encoding that HTTP/1.0 does not know", old, false, CLOSED);
}

#[test]
fn persistence() {
    let rows = [
        ("1.1 persists", "1.1", "A: b", true),
        ("1.1 that closes", "1.1", "Connection: close", false),
        ("options have no case", "1.1", "connection: CLOSE", false),
        ("close within a list", "1.1", "Connection: upgrade , close,x", false),
        ("close in a second line", "1.1", "Connection: x\r\nConnection: close", false),
        ("close wins", "1.1", "Connection: keep-alive, close", false),
        ("a word that only contains it", "1.1", "Connection: closed", true),
        ("1.0 closes", "1.0", "A: b", false),
        ("1.0 that persists", "1.0", "Connection: Keep-Alive", true),
        ("1.0 that says both", "1.0", "Connection: keep-alive\r\nConnection: close", false),
    ];
    for (name, version, header, want) in rows {
        let bytes = format!("HTTP/{version} 200 OK\r\n{header}\r\nContent-Length: 2\r\n\r\nhi");
        check(name, bytes.as_bytes(), false, End::Done(200, want, 0));
    }
}
