//! What keeps knee from a server over TLS is one line before the load.

use crate::support::http2_servers::{Http2Kind, Nginx};
use crate::support::{Certificates, KneeServer, TempPath, measured, run};
use std::io::{Read, Write};
use std::net::TcpListener;

/// It ends with this status before the load, and its one line says so.
fn refused(url: &str, options: &[impl AsRef<str>], status: i32, says: &str) {
    let load = ["run", url, "-n", "8", "-c", "2", "--quiet"];
    let options: Vec<&str> = options.iter().map(AsRef::as_ref).collect();
    let ended = run(&[&load[..], &options].concat());
    let context = format!("{url} {options:?}: {ended:?}");
    assert_eq!(ended.status, Some(status), "{context}");
    assert!(ended.stderr.contains(says), "{says:?}: {context}");
    assert!(ended.stderr.starts_with("error: "), "{context}");
    assert_eq!(ended.stderr.lines().count(), 1, "{context}");
    assert_eq!(ended.stdout, "", "{context}");
}

/// Eight requests succeed.
fn served(url: &str, options: &[&str]) {
    outcomes(url, options, "ok");
}

/// Eight requests end as this.
fn outcomes(url: &str, options: &[impl AsRef<str>], outcome: &str) {
    let load = ["run", url, "-n", "8", "-c", "2", "-d", "60s", "--warmup", "0s"];
    let options = options.iter().map(AsRef::as_ref);
    let report = measured(&load.into_iter().chain(options).collect::<Vec<_>>());
    let counts = &report["trials"][0]["outcomes"];
    assert_eq!(counts[outcome], 8, "{url}: {counts}");
}

const UNKNOWN_ISSUER: &str = "its certificate is of an issuer that is not trusted here";
const NO_COMMON_VERSION: &str = "it speaks none of the versions of TLS that were offered";
const NO_COMMON_PROTOCOL: &str = "it speaks none of the protocols that were offered (ALPN)";

#[test]
fn certificates_that_are_not_the_servers() {
    let certificates = Certificates::new();
    let known = KneeServer::start(&["--tls"]);
    let stranger = KneeServer::start(&["--tls"]);
    // An issuer of the same name as that of knee's server.
    let stranger = stranger.certificate.as_deref().unwrap();
    let of_knee = known.certificate.clone().unwrap();
    let nginx = Nginx::PLAIN.start(&certificates);
    let mut servers = vec![(known.url(), of_knee)];
    if let Some(nginx) = &nginx {
        let authority = certificates.authority.str().to_string();
        servers.push((nginx.secure_url("small"), authority));
    }
    for (url, authority) in &servers {
        served(url, &["--cacert", authority]);
        served(url, &["--insecure"]);
        refused(url, &["--tls-resume", "off"], 4, UNKNOWN_ISSUER);
        refused(url, &["--cacert", stranger], 4, "its certificate is ");
        let misnamed = ["--cacert", authority, "--sni", "other"];
        refused(url, &misnamed, 4, "and not for other");
        served(url, &["--cacert", authority, "--sni", "localhost"]);
        served(url, &["--insecure", "--sni", "other"]);
    }
}

#[test]
fn a_certificate_that_has_expired() {
    let expired = Certificates::expired();
    let (certificate, key) = (expired.server.str(), expired.server_key.str());
    let known = KneeServer::start(&["--tls", "--cert", certificate, "--key", key]);
    let mut urls = vec![format!("https://{}/", known.address)];
    let nginx = Nginx::PLAIN.start(&expired);
    urls.extend(nginx.as_ref().map(|nginx| nginx.secure_url("small")));
    for url in &urls {
        let trust = ["--cacert", expired.authority.str()];
        refused(url, &trust, 4, "expired");
        served(url, &["--insecure"]);
    }
}

#[test]
fn versions_of_tls_that_only_one_side_speaks() {
    let old = KneeServer::start(&["--tls", "--tls-max", "1.2"]);
    let new = KneeServer::start(&["--tls", "--tls-min", "1.3"]);
    for (server, refusing, taking) in [
        (&old, ["--tls-min", "1.3"], ["--tls-max", "1.2"]),
        (&new, ["--tls-max", "1.2"], ["--tls-min", "1.3"]),
    ] {
        let url = server.url();
        refused(&url, &[&["-k"], &refusing[..]].concat(), 4, NO_COMMON_VERSION);
        served(&url, &[&["-k"], &taking[..]].concat());
    }
    let certificates = Certificates::new();
    let only = |versions| Nginx { versions, ..Nginx::PLAIN }.start(&certificates);
    for (versions, refusing) in
        [("TLSv1.2", ["--tls-min", "1.3"]), ("TLSv1.3", ["--tls-max", "1.2"])]
    {
        if let Some(nginx) = only(versions) {
            let url = nginx.secure_url("small");
            refused(&url, &[&["-k"], &refusing[..]].concat(), 4, NO_COMMON_VERSION);
            served(&url, &["-k"]);
        }
    }
}

#[test]
fn protocols_that_the_server_does_not_speak() {
    let certificates = Certificates::new();
    let nginx = Nginx { http2: false, ..Nginx::PLAIN };
    if let Some(nginx) = nginx.start(&certificates) {
        let url = nginx.secure_url("small");
        refused(&url, &["-k", "--http2"], 4, NO_COMMON_PROTOCOL);
        served(&url, &["-k"]);
        served(&url, &["-k", "--http1.1"]);
    }
}

fn secured(address: &str) -> String {
    format!("https://{address}/")
}

#[test]
fn servers_that_do_not_answer_in_tls() {
    let plain = KneeServer::start(&[]);
    let hint = "it does not answer in TLS: if it speaks cleartext, use http://";
    refused(&secured(&plain.address), &["--http1.1"], 4, hint);
    refused(&secured(&plain.address), &["--http2"], 4, hint);

    // Taken, so that no one else listens there, and let go of.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let dead = taken.local_addr().unwrap().to_string();
    drop(taken);
    refused(&secured(&dead), &["--http2"], 4, "connection refused");

    // The kernel accepts, and nobody reads.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let patience = ["--connect-timeout", "300ms"];
    refused(&secured(&address), &patience, 4, "does not answer in TLS in time");
}

#[test]
fn close_notify_in_the_handshake_is_an_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let held = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&[0x15, 3, 3, 0, 2, 2, 0]).unwrap();
        // The connection stays open until the client closes it.
        stream.read_to_end(&mut Vec::new()).map(|_| ())
    });
    let says = "it closed the connection during the TLS handshake";
    refused(&secured(&address), &["-k"], 4, says);
    held.join().unwrap().unwrap();
}

#[test]
fn files_that_are_not_what_they_should_be() {
    let certificates = Certificates::new();
    let (client, key) = (certificates.client.str(), certificates.client_key.str());
    let other = certificates.server_key.str();
    let nonsense = TempPath::with("secure-nonsense.pem", "no certificate\n");
    let nonsense = nonsense.str();
    let missing = "/nonexistent/a.pem";
    let server = KneeServer::start(&["--tls"]);
    for (options, says) in [
        (vec!["--cacert", missing], "--cacert /nonexistent/a.pem: cannot be read: No such file"),
        (vec!["--cacert", nonsense], "holds no certificate in PEM form"),
        (vec!["--cacert", key], "holds no certificate in PEM form"),
        (vec!["--cert", client, "--key", other], "--cert and --key do not fit together"),
        (vec!["--cert", client], "--key"),
        (vec!["--key", key], "--cert"),
        (
            vec!["--cert", missing, "--key", key],
            "--cert /nonexistent/a.pem: cannot be read: No such file",
        ),
        (
            vec!["--cert", client, "--key", missing],
            "--key /nonexistent/a.pem: cannot be read: No such file",
        ),
        (vec!["--cert", nonsense, "--key", key], "holds no certificate in PEM form"),
        (vec!["--cert", client, "--key", nonsense], "--key "),
        (vec!["--tls-min", "1.3", "--tls-max", "1.2"], "--tls-m"),
    ] {
        refused(&server.url(), &options, 2, says);
    }
}

#[test]
fn a_certificate_that_the_server_asks_of_the_client() {
    let (certificates, other) = (Certificates::new(), Certificates::new());
    let trust = ["--cacert", certificates.authority.str()];
    let own = |of: &'static str, from: &Certificates| {
        let files = [from.client.str(), from.client_key.str()];
        [of, files[0], "--key", files[1]].map(String::from)
    };
    let (fits, misfits) = (own("--cert", &certificates), own("--cert", &other));
    for (tls, http) in
        [("1.2", "--http1.1"), ("1.2", "--http2"), ("1.3", "--http1.1"), ("1.3", "--http2")]
    {
        let with = |own: &[String]| {
            let common = [&trust[..], &[http, "--tls-min", tls, "--tls-max", tls]].concat();
            let words = common.into_iter().map(String::from);
            words.chain(own.iter().cloned()).collect::<Vec<_>>()
        };
        // nginx ends the handshake all the same, and says so with a status.
        let nginx = Nginx { more: "ssl_verify_client on;", ..Nginx::PLAIN };
        if let Some(nginx) = nginx.start(&certificates) {
            let url = nginx.secure_url("small");
            outcomes(&url, &with(&fits), "ok");
            outcomes(&url, &with(&[]), "http_4xx");
            outcomes(&url, &with(&misfits), "http_4xx");
        }
        // HAProxy does not; in TLS 1.3 it says so after knee's end of the handshake.
        if let Some(haproxy) = Http2Kind::HaproxyAsking.start(Some(&certificates)) {
            let url = haproxy.secure_url("");
            outcomes(&url, &with(&fits), "ok");
            refused(&url, &with(&[]), 4, "certificate");
            refused(&url, &with(&misfits), 4, "certificate of the client");
        }
    }
}
