//! Where bodies end.

use super::*;

#[test]
fn responses_without_a_body() {
    let rows = [
        ("a HEAD's length", true, "200 OK", "Content-Length: 5", End::Done(200, true, 0)),
        (
            "a HEAD's encoding",
            true,
            "200 OK",
            "Transfer-Encoding: chunked",
            End::Done(200, true, 0),
        ),
        ("a HEAD without either", true, "200 OK", "A: b", End::Done(200, true, 0)),
        ("no content", false, "204 No Content", "A: b", End::Done(204, true, 0)),
        ("no content, with a length", false, "204 x", "Content-Length: 5", End::Done(204, true, 0)),
        ("not modified", false, "304 x", "Content-Length: 5", End::Done(304, true, 0)),
        (
            "not modified, chunked",
            false,
            "304 x",
            "Transfer-Encoding: chunked",
            End::Done(304, true, 0),
        ),
        ("reset content has one", false, "205 x", "Content-Length: 0", End::Done(205, true, 0)),
        ("another protocol follows", false, "101 x", "Upgrade: y", End::Done(101, false, 0)),
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
fn chunks() {
    let size = End::Malformed(V::ChunkSize);
    let chunk_end = End::Malformed(V::ChunkEnd);
    let trailer = End::Malformed(V::Trailer);
    let rows = [
        ("no data", "0\r\n\r\n", KEPT),
        ("several chunks", "2\r\nhi\r\n1\r\n!\r\n0\r\n\r\n", KEPT),
        ("data that look like framing", "7\r\n0\r\n\r\n1\r\r\n0\r\n\r\n", KEPT),
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
        ("bytes beyond the end", "0\r\n\r\nxyz", End::Done(200, true, 3)),
        ("an end that does not come", "2\r\nhi\r\n", TRUNCATED),
        ("a last line that does not come", "0\r\nA: b\r\n", TRUNCATED),
        ("no size", "\r\nhi", size),
        ("a size below 0", "-2\r\nhi", size),
        ("a size with a prefix", "0x2\r\nhi", size),
        ("a blank before a size", " 2\r\nhi", size),
        ("a blank within a size", "1 2\r\n", size),
        ("a size of 64 bits", "ffffffffffffffff\r\nhi", TRUNCATED),
        ("a size of 65 bits", "10000000000000000\r\nhi", size),
        ("a size line that ends in LF", "2\nhi\r\n0\r\n\r\n", chunk_end),
        ("an extension that ends in LF", "2;a\nhi\r\n0\r\n\r\n", chunk_end),
        ("a control character in an extension", "2;a\0\r\nhi\r\n0\r\n\r\n", chunk_end),
        ("CR without LF after a size", "2\rhi", chunk_end),
        ("more data than the size says", "2\r\nhi!\r\n0\r\n\r\n", chunk_end),
        ("less data than the size says", "3\r\nhi\r\n0\r\n\r\n", chunk_end),
        ("LF alone after the data", "2\r\nhi\n0\r\n\r\n", chunk_end),
        ("a trailer without ':'", "0\r\nA\r\n\r\n", trailer),
        ("a trailer without a name", "0\r\n: b\r\n\r\n", trailer),
        ("a folded trailer", "0\r\nA: b\r\n c\r\n\t\r\n\r\n", KEPT),
        ("a fold before the first trailer", "0\r\n c\r\n\r\n", trailer),
        ("a blank before ':'", "0\r\nA : b\r\n\r\n", trailer),
        ("CR alone in a trailer", "0\r\nA: b\rc\r\n\r\n", trailer),
        ("CR alone at the end", "0\r\n\rx", trailer),
    ];
    for (name, body, want) in rows {
        check_rows(&[(name, &format!("Transfer-Encoding: chunked\r\n\r\n{body}"), want)]);
    }
}

#[test]
fn interim_responses_are_passed_over() {
    let last = "HTTP/1.1 201 x\r\nContent-Length: 2\r\n\r\nhi";
    let rows = [
        ("one", "HTTP/1.1 100 Continue\r\n\r\n".to_owned(), End::Done(201, true, 0)),
        ("many", "HTTP/1.1 103 x\r\nLink: </a>\r\n\r\n".repeat(5), End::Done(201, true, 0)),
        (
            "what they say of framing and persistence does not count",
            "HTTP/1.1 102 x\r\nContent-Length: y\r\nConnection: close\r\n\r\n".to_owned(),
            End::Done(201, true, 0),
        ),
    ];
    for (name, interim, want) in rows {
        check(name, format!("{interim}{last}").as_bytes(), false, want);
    }
    check("nothing after them", b"HTTP/1.1 100 Continue\r\n\r\n", false, TRUNCATED);
}

/// What comes before and after the limits of framing that no server needs.
#[test]
fn framing_has_limits() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let extension = |bytes: usize| format!("{chunked}0;{}\r\n\r\n", "a".repeat(bytes));
    let last = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let interims = |count| "HTTP/1.1 100 Continue\r\n\r\n".repeat(count) + last;
    let lines = |bytes: usize| "\r\n".repeat(bytes / 2) + last;
    for (name, bytes, want) in [
        ("a long extension", extension(4_000), KEPT),
        ("too long", extension(5_000), End::Malformed(V::ChunkLineTooLarge)),
        ("100 interim responses", interims(100), KEPT),
        ("101", interims(101), End::Malformed(V::InterimFlood)),
        ("256 bytes of empty lines", lines(256), KEPT),
        ("258", lines(258), End::Malformed(V::EmptyLines)),
    ] {
        check(name, bytes.as_bytes(), false, want);
    }
    let trailer = |lines| format!("{chunked}0\r\n{}\r\n", "a: b\r\n".repeat(lines));
    for (name, bytes, want) in [
        ("a long trailer", trailer(10_000), KEPT),
        ("too long", trailer(11_000), End::Malformed(V::TrailerTooLarge)),
    ] {
        let pieces: Vec<&[u8]> = bytes.as_bytes().chunks(1_000).collect();
        assert_eq!(end(&pieces, false, &mut HeadCache::default()), want, "{name}");
    }
    // Each chunk may have an extension.
    let many = format!("{chunked}{}0\r\n\r\n", "1;x=y\r\na\r\n".repeat(1_000));
    assert_eq!(end(&[many.as_bytes()], false, &mut HeadCache::default()), KEPT);
}
