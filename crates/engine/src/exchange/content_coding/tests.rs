use super::*;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use std::io::Write as _;
use zstd::stream::raw::CParameter;

const TEXT: &[u8] = br#"{"token":"abc","items":[{"id":0,"name":"the name of the item"},{"id":1,"name":"the name of the item"}]}"#;

/// What Node's zlib makes of `Hello, Hello, Hello`.
const HELLO_OF_NODE: &[u8] =
    b"\x1b\x12\x00\xf8\x8d\xd4\x4e\xf5\xd4\xa2\x6a\x10\x24\xb6\x37\xc5\x52\
    \x16\xf1\x44\x02\xb9\x06";

/// What Node's zlib makes of 64 MiB of zeros.
const BROTLI_BOMB: &[u8] =
    b"\xcb\xff\xff\x3f\xf8\x27\x00\xe2\xb1\x40\x20\xf7\xfe\x8f\xff\xff\x7f\xf0\x4f\x00\xc4\x61\
    \x11\x80\xee\xfd\x1f\xff\xff\xff\xe0\x9f\x00\x88\xc3\x02\x00\xdd\xfb\x3f\xfe\xff\xff\xc1\
    \x3f\x01\x10\x87\x05\x00\xba\xf7\x7f\xfc\xff\xff\x83\x7f\x02\x20\x0e\x0b\x00\x74\xef\xff\
    \xf8\xff\xff\x07\xff\x04\x40\x1c\x16\x00\xe8\xde\xff\xf1\xff\xff\x0f\xfe\x09\x80\x38\x2c\
    \x00\xd0\xbd\xff\xcb\xff\xff\x3f\xfc\x13\x00\x71\x58\x00\xa0\x7b\xff\x07";

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zlib(text: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn raw(text: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zstd_of(text: &[u8]) -> Vec<u8> {
    zstd::encode_all(text, 3).unwrap()
}

/// One meta-block that is not compressed, and the last, which is empty (RFC 7932 §9.2).
fn brotli(text: &[u8]) -> Vec<u8> {
    let head = (text.len() as u32 - 1) << 4 | 1 << 20;
    [&head.to_le_bytes()[..3], text, &[3]].concat()
}

/// A body with these lines of Content-Encoding, in pieces of this length: what it decodes to, and
/// why that is not all.
fn decoded(lines: &[&str], body: &[u8], piece: usize) -> (Vec<u8>, Option<String>) {
    let mut decoders = BodyDecoders::default();
    lines.iter().for_each(|line| decoders.announce(7, line.as_bytes()));
    let mut text = Vec::new();
    for piece in body.chunks(piece) {
        match decoders.get(7) {
            Some(decoder) => decoder.feed(piece, &mut |piece| text.extend_from_slice(piece)),
            None => text.extend_from_slice(piece),
        }
    }
    let is_whole = decoders.get(7).is_none_or(BodyDecoder::end);
    let fault = decoders.end(7);
    assert_eq!(is_whole, fault.is_none());
    (text, fault)
}

#[test]
fn bodies_are_read_wherever_they_are_cut() {
    let two = [gzip(b"Hello, "), gzip(b"Hello, Hello")].concat();
    let frames = [zstd_of(b"Hello, "), zstd_of(b"Hello, Hello")].concat();
    let skipped = [b"\x50\x2a\x4d\x18\x02\0\0\0ab", &frames[..]].concat();
    let named = [&b"\x1f\x8b\x08\x08\0\0\0\0\0\x03name\0"[..], &gzip(TEXT)[10..]].concat();
    let hello = b"Hello, Hello, Hello";
    for (lines, body, want) in [
        (&["gzip"][..], gzip(TEXT), TEXT),
        (&["X-GZip"], gzip(TEXT), TEXT),
        (&["deflate"], zlib(TEXT), TEXT),
        (&["deflate"], raw(TEXT), TEXT),
        (&["br"], HELLO_OF_NODE.to_vec(), hello),
        (&["zstd"], zstd_of(TEXT), TEXT),
        (&["identity"], TEXT.to_vec(), TEXT),
        (&[" identity , ,"], TEXT.to_vec(), TEXT),
        (&["gzip, identity"], gzip(TEXT), TEXT),
        (&["gzip, br"], brotli(&gzip(TEXT)), TEXT),
        (&["gzip", "zstd"], zstd_of(&gzip(TEXT)), TEXT),
        (&["br, deflate, deflate, gzip"], gzip(&zlib(&raw(HELLO_OF_NODE))), hello),
        (&["gzip"], two, hello),
        (&["gzip"], named, TEXT),
        (&["zstd"], skipped, hello),
        (&["gzip"], gzip(b""), b""),
        (&["br"], b"\x3b".to_vec(), b""),
        // Of HEAD, 204 and 304.
        (&["br"], Vec::new(), b""),
    ] {
        for piece in [1, 2, 3, 7, 4096] {
            let (text, fault) = decoded(lines, &body, piece);
            assert_eq!(fault, None, "{lines:?}, {piece} at once");
            assert_eq!(text, want, "{lines:?}, {piece} at once");
        }
    }
}

#[test]
fn the_end_is_seen_where_it_fills_a_piece() {
    for length in [PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES] {
        let text = vec![b'a'; length];
        for (line, body) in [
            ("gzip", gzip(&text)),
            ("deflate", zlib(&text)),
            ("deflate", raw(&text)),
            ("br", brotli(&text)),
            ("zstd", zstd_of(&text)),
            ("deflate, zstd", zstd_of(&raw(&text))),
        ] {
            for piece in [1, 7, 1 << 20] {
                let (whole, fault) = decoded(&[line], &body, piece);
                assert_eq!((whole == text, fault), (true, None), "{line}: {length}, {piece}");
            }
        }
    }
}

#[test]
fn what_cannot_be_decoded_is_told() {
    let wrong_check = {
        let mut body = gzip(TEXT);
        let at = body.len() - 6;
        body[at] ^= 1;
        body
    };
    let cut = |body: Vec<u8>| body[..body.len() - 1].to_vec();
    let garbage = |body: Vec<u8>| [&body[..], b"\r\n\r\n"].concat();
    let mut wide = zstd::stream::raw::Encoder::new(1).unwrap();
    wide.set_parameter(CParameter::WindowLog(24)).unwrap();
    let mut window = [0; 64];
    let begun = wide.run_on_buffers(TEXT, &mut window).unwrap().bytes_written;
    let flushed = wide.flush(&mut zstd::stream::raw::OutBuffer::around(&mut window[begun..]));
    flushed.unwrap();
    for (lines, body, want) in [
        ("compress", TEXT.to_vec(), "does not read the content coding 'compress'"),
        ("gzip, aws-chunked", TEXT.to_vec(), "does not read the content coding 'aws-chunked'"),
        ("gzip, gzip, gzip, gzip, gzip, br", TEXT.to_vec(), "more than 5 content codings"),
        ("gzip", TEXT.to_vec(), "the body is no gzip"),
        ("gzip", wrong_check, "the body is no gzip"),
        ("gzip", cut(gzip(TEXT)), "the gzip body is cut off"),
        ("gzip", gzip(TEXT)[..5].to_vec(), "the gzip body is cut off"),
        ("gzip", garbage(gzip(TEXT)), "the body is no gzip"),
        ("gzip", [gzip(TEXT), cut(gzip(TEXT))].concat(), "the gzip body is cut off"),
        ("deflate", cut(zlib(TEXT)), "the deflate body is cut off"),
        ("deflate", garbage(zlib(TEXT)), "the body is no deflate: bytes follow its end"),
        ("deflate", garbage(raw(TEXT)), "the body is no deflate: bytes follow its end"),
        ("br", cut(HELLO_OF_NODE.to_vec()), "the br body is cut off"),
        ("br", garbage(HELLO_OF_NODE.to_vec()), "the body is no br: bytes follow its end"),
        ("br", TEXT.to_vec(), "the body is no br"),
        ("zstd", cut(zstd_of(TEXT)), "the zstd body is cut off"),
        ("zstd", garbage(zstd_of(TEXT)), "the body is no zstd"),
        ("zstd", TEXT.to_vec(), "the body is no zstd"),
        ("zstd", window.to_vec(), "too much memory"),
        ("br, gzip", gzip(&cut(HELLO_OF_NODE.to_vec())), "the br body is cut off"),
    ] {
        for piece in [1, 2, 3, 7, 4096] {
            let (_, fault) = decoded(&[lines], &body, piece);
            let fault = fault.unwrap_or_default();
            assert!(fault.contains(want), "{lines}, {piece} at once: {fault}");
        }
    }
}

#[test]
fn a_bomb_is_no_longer_than_its_bound() {
    let zeros = vec![0; 64 << 20];
    let of_zstd = zstd::bulk::compress(&zeros, 3).unwrap();
    let of_gzip = gzip(&zeros);
    let twice = gzip(&of_gzip);
    assert!(of_zstd.len() < 16 << 10 && of_gzip.len() < 128 << 10 && twice.len() < 4 << 10);
    for (lines, body) in [
        ("gzip", &of_gzip[..]),
        ("gzip, gzip", &twice),
        ("gzip, br", &brotli(&of_gzip[..60 << 10])),
        ("br", BROTLI_BOMB),
        ("zstd", &of_zstd),
    ] {
        let (text, fault) = decoded(&[lines], body, 4096);
        let fault = fault.unwrap();
        assert!(fault.contains("more than 16 MiB and 100 times its size"), "{lines}: {fault}");
        assert!(text.len() as u64 <= DECODED_BYTES_FREE, "{lines}: {}", text.len());
    }
    // What stays below is read, and so is more of a body that has many bytes itself.
    let most = &zeros[..DECODED_BYTES_FREE as usize];
    assert_eq!(decoded(&["gzip"], &gzip(most), 4096), (most.to_vec(), None));
    let text: Vec<u8> =
        (0..3_000_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let long = [text.clone(), text].concat();
    assert_eq!(decoded(&["zstd"], &zstd_of(&long), 4096), (long, None));
}

#[test]
fn text_is_handed_on_as_it_comes() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let mut decoders = BodyDecoders::default();
    decoders.announce(1, b"gzip");
    for line in ["data: one\n\n", "data: two\n\n"] {
        encoder.write_all(line.as_bytes()).unwrap();
        encoder.flush().unwrap();
        let sent = std::mem::take(encoder.get_mut());
        let mut text = Vec::new();
        decoders.get(1).unwrap().feed(&sent, &mut |piece| text.extend_from_slice(piece));
        assert_eq!(text, line.as_bytes());
    }
}
