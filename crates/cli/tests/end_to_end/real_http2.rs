//! knee over HTTP/2 against servers that others wrote: no errors, and every byte.

use crate::support::http_servers::{HttpServer, Kind, LARGE, SMALL};
use crate::support::http2_servers::{self, Http2Kind};
use crate::support::{Certificates, KneeServer, backends, measured};

const REQUESTS: u64 = 200;

/// The bytes received by a trial in which every request must succeed over HTTP/2.
fn bytes(url: &str, options: &[&str]) -> u64 {
    let count = REQUESTS.to_string();
    let load = ["-n", &count, "-d", "60s", "--warmup", "0s", "--vusers", "4"];
    let report = measured(&[&["run", url], &load[..], options].concat());
    let trial = &report["trials"][0];
    let context = || format!("{url} {options:?}: {trial:#}");
    assert_eq!(trial["outcomes"], serde_json::json!({ "ok": REQUESTS }), "{}", context());
    assert_eq!(trial["attempted"], REQUESTS, "{}", context());
    assert_eq!(trial["protocol"]["http"], "2", "{}", context());
    trial["bytes_received"].as_u64().unwrap()
}

/// Four users over one connection and over four; both files whole, each stream with its head and
/// the heads of its frames and nothing else.
fn check(server: &HttpServer, options: &[&str]) {
    let is_secure = options.contains(&"--cacert");
    let url = |path: &str| if is_secure { server.secure_url(path) } else { server.url(path) };
    // No more is to be found out than what this machine permits, so that any server will do.
    let other = KneeServer::start(&[]);
    for backend in backends(&other.url()) {
        for connections in ["1", "4"] {
            let more = ["-c", connections, "--backend", backend];
            let options = [options, &more].concat();
            for (file, size) in [("small", SMALL), ("large", LARGE)] {
                let beside = bytes(&url(file), &options) - REQUESTS * size;
                // A head, and nine bytes for each frame. Even small frames are few.
                assert!(beside > REQUESTS * 20 && beside < REQUESTS * 1_500, "{beside}");
            }
        }
    }
}

/// Over TLS and in cleartext.
fn check_both(kind: Http2Kind) {
    let certificates = Certificates::new();
    if let Some(server) = kind.start(Some(&certificates)) {
        check(&server, &["--http2", "--cacert", certificates.authority.str()]);
    }
    if let Some(server) = kind.start(None) {
        check(&server, &["--http2-prior-knowledge"]);
    }
}

#[test]
fn nghttpd() {
    check_both(Http2Kind::Nghttpd);
}

#[test]
fn apache_httpd() {
    check_both(Http2Kind::Apache);
}

#[test]
fn haproxy_before_nginx() {
    if let Some(behind) = Kind::Nginx(100_000).start() {
        check_both(Http2Kind::Haproxy(behind.port));
    }
}

#[test]
fn caddy() {
    check_both(Http2Kind::Caddy);
}

#[test]
fn node() {
    check_both(Http2Kind::Node);
}

#[test]
fn hypercorn() {
    check_both(Http2Kind::Hypercorn);
}

/// Over TLS only: older versions of Go speak HTTP/2 no other way.
#[test]
fn go() {
    let certificates = Certificates::new();
    if let Some(server) = http2_servers::go(&certificates) {
        check(&server, &["--http2", "--cacert", certificates.authority.str()]);
    }
}
