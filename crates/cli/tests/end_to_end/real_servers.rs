//! knee against servers that others wrote: no errors, and every byte.

use crate::support::http_servers::{HttpServer, Kind, LARGE, SMALL};
use crate::support::{backends, measured};
use serde_json::Value;

const REQUESTS: u64 = 60;

/// A trial of [`REQUESTS`] requests over four connections, as in the report.
fn trial(url: &str, options: &[&str]) -> Value {
    let count = REQUESTS.to_string();
    let mut arguments = vec!["run", url, "-c", "4", "-t", "1", "-n", &count, "-d", "60s"];
    arguments.extend(["--warmup", "0s"]);
    arguments.extend(options);
    measured(&arguments)["trials"][0].clone()
}

/// The bytes received by a trial in which every request must end as `outcome`.
fn bytes(url: &str, options: &[&str], outcome: &str) -> u64 {
    let trial = trial(url, options);
    let context = || format!("{url} {options:?}: {:#}", trial["outcomes"]);
    assert_eq!(trial["outcomes"][outcome], REQUESTS, "{}", context());
    assert_eq!(trial["attempted"], REQUESTS, "{}", context());
    trial["bytes_received"].as_u64().unwrap()
}

/// Both files whole over every backend, with and without keep-alive; HEAD; what is not there.
fn check(server: &HttpServer) {
    let (small, large) = (server.url("small"), server.url("large"));
    for backend in backends(&small) {
        for options in [vec!["--backend", backend], vec!["--backend", backend, "--no-keepalive"]] {
            let of_small = bytes(&small, &options, "ok");
            let of_large = bytes(&large, &options, "ok");
            // The heads are equally long, so that only the bodies differ.
            assert_eq!(of_large - of_small, REQUESTS * (LARGE - SMALL), "{options:?}");
            let heads = of_small - REQUESTS * SMALL;
            assert!(heads > REQUESTS * 50 && heads < REQUESTS * 1_000, "{options:?}: {heads}");
            let with = |more: &[&'static str]| [options.as_slice(), more].concat();
            let of_head = bytes(&large, &with(&["-m", "HEAD"]), "ok");
            assert!(of_head < REQUESTS * 1_000, "{options:?}: {of_head}");
            bytes(&server.url("nothing-there"), &options, "http_4xx");
        }
    }
}

#[test]
fn nginx() {
    if let Some(server) = Kind::Nginx(100_000).start() {
        check(&server);
    }
}

#[test]
fn nginx_that_closes_after_seven_requests() {
    let Some(server) = Kind::Nginx(7).start() else {
        return;
    };
    let url = server.url("small");
    for backend in backends(&url) {
        let trial = trial(&url, &["--backend", backend]);
        assert_eq!(trial["outcomes"]["ok"], REQUESTS, "{:#}", trial["outcomes"]);
        let opened = trial["connections_opened"].as_u64().unwrap();
        assert!(opened >= REQUESTS / 7, "{opened} connections");
    }
}

#[test]
fn apache_httpd() {
    if let Some(server) = Kind::Apache.start() {
        check(&server);
    }
}

#[test]
fn lighttpd() {
    if let Some(server) = Kind::Lighttpd.start() {
        check(&server);
    }
}

#[test]
fn haproxy_before_nginx() {
    let Some(behind) = Kind::Nginx(100_000).start() else {
        return;
    };
    if let Some(server) = Kind::Haproxy(behind.port).start() {
        check(&server);
    }
}

#[test]
fn python_that_ends_bodies_by_closing() {
    if let Some(server) = Kind::Python("HTTP/1.0").start() {
        check(&server);
    }
}

#[test]
fn python_that_keeps_connections() {
    if let Some(server) = Kind::Python("HTTP/1.1").start() {
        check(&server);
    }
}

#[test]
fn node() {
    if let Some(server) = Kind::Node.start() {
        check(&server);
    }
}

#[test]
fn node_that_sends_chunks() {
    let Some(server) = Kind::Node.start() else {
        return;
    };
    let url = server.url("chunked");
    for backend in backends(&url) {
        let received = bytes(&url, &["--backend", backend], "ok");
        // Ten chunks and the last, each with its length and line ends.
        assert!(received > REQUESTS * (SMALL + 10 * 8) && received < REQUESTS * (SMALL + 1_000));
        assert_eq!(received % REQUESTS, 0, "every response is as long");
    }
}
