//! Compressed bodies: read where a step looks into them or a stream is split, and nowhere else.

use crate::support::http_servers::launch;
use crate::support::{TempPath, measured};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread;

const JSON: &[u8] = br#"{"token": "abc"}"#;
const EVENTS: &[u8] = b"data: one\n\ndata: two\n\ndata: [DONE]\n\n";

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// The fields and the body at a path.
fn page(path: &str) -> (&'static str, Vec<u8>) {
    let sse = "content-type: text/event-stream\r\ncontent-encoding: gzip\r\n";
    match path {
        "/gzip" => ("content-encoding: gzip\r\n", gzip(JSON)),
        "/twice" => ("Content-Encoding: gzip\r\nContent-Encoding: x-gzip\r\n", gzip(&gzip(JSON))),
        "/cut" => ("content-encoding: gzip\r\n", gzip(JSON)[..20].to_vec()),
        "/bomb" => ("content-encoding: gzip\r\n", gzip(&vec![b' '; 32 << 20])),
        "/compress" => ("content-encoding: compress\r\n", JSON.to_vec()),
        "/events" => (sse, gzip(EVENTS)),
        "/events-cut" => (sse, gzip(EVENTS)[..30].to_vec()),
        _ => ("", JSON.to_vec()),
    }
}

/// A server that answers each connection once, by the path. Its URL, without a path.
fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let first = lines.next().and_then(Result::ok).unwrap_or_default();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let (fields, body) = page(first.split(' ').nth(1).unwrap_or_default());
            let length = body.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\n{fields}content-length: {length}\r\nconnection: close\r\n\r\n"
            );
            // The client may be gone already.
            let _ = stream.write_all(&[head.into_bytes(), body].concat());
        }
    });
    url
}

/// The only trial of a load of two operations.
fn trial(arguments: &[&str]) -> Value {
    let report = measured(&[&["run"], arguments, &["--vusers", "1", "-n", "2"]].concat());
    report["trials"][0].clone()
}

/// The trial of a session that extracts a token at this path.
fn extracting(url: &str, path: &str, version: &str) -> Value {
    let step = format!("{{get: {path}, extract: {{token: {{json: /token}}}}}}");
    let file = TempPath::new(&format!("compressed{}.yaml", url.replace(['/', ':'], "-")));
    let text = format!("target: \"{url}\"\nsessions:\n  a:\n    steps:\n      - {step}\n");
    std::fs::write(&file.0, text).unwrap();
    trial(&[file.str(), version])
}

#[test]
fn values_and_messages_come_from_compressed_bodies() {
    let url = server();
    for path in ["/plain", "/gzip", "/twice"] {
        let trial = extracting(&url, path, "--http1.1");
        assert_eq!(trial["outcomes"]["ok"], 2, "{path}: {trial}");
    }
    for (path, because) in [
        ("/cut", "the gzip body is cut off"),
        ("/bomb", "the gzip body decodes to more than 16 MiB and 100 times its size"),
        ("/compress", "knee does not read the content coding 'compress'"),
    ] {
        let trial = extracting(&url, path, "--http1.1");
        assert_eq!(trial["outcomes"]["undecodable"], 2, "{path}: {trial}");
        assert_eq!(trial["undecodable_because"], because, "{path}");
        // Where nobody looks into a body, it is none of knee's business.
        let plain = self::trial(&[&format!("{url}{path}")]);
        assert_eq!(plain["outcomes"]["ok"], 2, "{path}: {plain}");
    }
    for options in [&[][..], &["--messages", "sse"]] {
        let events = format!("{url}/events");
        let trial = self::trial(&[&[&events[..]], options].concat());
        assert_eq!(trial["outcomes"]["ok"], 2, "{options:?}: {trial}");
        assert_eq!(trial["messages"]["count"], 4, "{options:?}: {trial}");
        let cut = self::trial(&[&[&format!("{events}-cut")[..]], options].concat());
        assert_eq!(cut["outcomes"]["undecodable"], 2, "{options:?}: {cut}");
    }
}

/// Answers `/CODING` with the JSON in it, over HTTP/1.1 or, where that is asked for, HTTP/2.
const COMPRESSING: &str = r#"
const [, , version, port, text] = process.argv;
const zlib = require('zlib');
const raw = zlib.deflateRawSync(text);
const codings = {
  gzip: ['gzip', zlib.gzipSync(text)],
  deflate: ['deflate', zlib.deflateSync(text)],
  raw: ['deflate', raw],
  br: ['br', zlib.brotliCompressSync(text)],
  'gzip-br': ['gzip, br', zlib.brotliCompressSync(zlib.gzipSync(text))],
};
if (zlib.zstdCompressSync) codings.zstd = ['zstd', zlib.zstdCompressSync(text)];
require(version).createServer((request, response) => {
  const found = codings[request.url.slice(1)];
  response.writeHead(found ? 200 : 404, found && { 'content-encoding': found[0] });
  // In pieces, so that it has no length.
  if (found) for (const byte of found[1]) response.write(Buffer.of(byte));
  response.end();
}).listen(port, '127.0.0.1');
"#;

#[test]
fn bodies_of_nodes_zlib_are_read_over_both_versions() {
    for (module, version) in [("http", "--http1.1"), ("http2", "--http2-prior-knowledge")] {
        let started = launch("node", |site, port| {
            let text = String::from_utf8_lossy(JSON).into_owned();
            vec![site.write("s.js", COMPRESSING), module.to_owned(), port.to_string(), text]
        });
        let Some(node) = started else {
            return;
        };
        for coding in ["gzip", "deflate", "raw", "br", "zstd", "gzip-br"] {
            let trial =
                extracting(node.url("").trim_end_matches('/'), &format!("/{coding}"), version);
            // An older Node has no zstd.
            let is_known = coding != "zstd" || trial["outcomes"]["http_4xx"].is_null();
            assert!(!is_known || trial["outcomes"]["ok"] == 2, "{version} {coding}: {trial}");
        }
    }
}
