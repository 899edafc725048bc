//! `knee serve http --tls` with the clients of others.

use crate::support::{KneeServer, TempPath, curl, program, run};
use std::io::Write;
use std::process::{Command, Stdio};

#[test]
fn curl_trusts_the_made_certificate_and_gets_every_byte() {
    let server = KneeServer::start(&["--tls", "--size", "100000"]);
    let certificate = server.certificate.clone().unwrap();
    let body = TempPath::new("secured-body");
    let (_, port) = server.address.rsplit_once(':').unwrap();
    let by_name = format!("https://localhost:{port}/");
    let mut requests = 0;
    for version in [["--tls-max", "1.2"], ["--tlsv1.3", "--http1.1"]] {
        for url in [server.url(), by_name.clone()] {
            let trust = ["--http1.1", "--cacert", &certificate];
            let twice = ["-o", body.str(), &url, "-o", body.str(), &url];
            let Some(told) = curl(&[&version[..], &trust, &twice].concat()) else {
                return;
            };
            assert_eq!(told, "200 100000 1 1.1\n200 100000 0 1.1\n");
            let bytes = std::fs::read(&body.0).unwrap();
            assert!(bytes.starts_with(b"The knee of a curve is where more load"));
            requests += 2;
        }
    }
    let served = server.served();
    assert_eq!(served["responses"], requests);
    assert_eq!(served["tls"]["full"], requests / 2);
    assert_eq!(served["tls"]["failed"], 0);
    assert!(!std::fs::exists(&certificate).unwrap(), "it goes with the server");
}

#[test]
fn sessions_are_resumed_by_openssl() {
    let server = KneeServer::start(&["--tls"]);
    let session = TempPath::new("session");
    for version in ["-tls1_2", "-tls1_3"] {
        for (option, begins) in [("-sess_out", "New, "), ("-sess_in", "Reused, ")] {
            let Some(openssl) = program("openssl") else {
                return;
            };
            let mut client = Command::new(openssl)
                .args(["s_client", "-connect", &server.address, version, "-ign_eof"])
                .args(["-verify_return_error", "-CAfile"])
                .arg(server.certificate.as_ref().unwrap())
                .args([option, session.str()])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let request = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
            client.stdin.take().unwrap().write_all(request).unwrap();
            let output = client.wait_with_output().unwrap();
            let told = String::from_utf8_lossy(&output.stdout);
            assert!(told.lines().any(|l| l.starts_with(begins)), "{told}");
            assert!(told.contains("HTTP/1.1 200 OK"), "{told}");
        }
    }
    let tls = &server.served()["tls"];
    assert_eq!((&tls["full"], &tls["resumed"]), (&2.into(), &2.into()));
}

#[test]
fn a_certificate_of_the_users_is_served() {
    let (certificate, key) = (TempPath::new("own.pem"), TempPath::new("own.key"));
    let Some(openssl) = program("openssl") else {
        return;
    };
    let made = Command::new(openssl)
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-keyout", key.str(), "-out", certificate.str()])
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let server = KneeServer::start(&["--tls", "--cert", certificate.str(), "--key", key.str()]);
    assert_eq!(server.certificate, None, "there is none to be told");
    let url = format!("https://{}/", server.address);
    let options = ["--http1.1", "--cacert", certificate.str(), "-o", "/dev/null", &url];
    if let Some(told) = curl(&options) {
        assert_eq!(told, "200 1294 1 1.1\n");
    }
}

#[test]
fn bad_certificates_and_keys_are_one_line_and_exit_2() {
    let nonsense = TempPath::with("nonsense.pem", "no certificate\n");
    let nonsense = nonsense.str();
    let missing = "/nonexistent/a.pem";
    for (options, says) in [
        (vec!["--tls", "--cert", nonsense, "--key", nonsense], "has no certificate in PEM format"),
        (vec!["--tls", "--cert", missing, "--key", missing], "--cert: '/nonexistent/a.pem'"),
        (vec!["--tls", "--cert", nonsense], "--key"),
        (vec!["--tls", "--key", nonsense], "--cert"),
        (vec!["--cert", nonsense, "--key", nonsense], "--tls"),
        (vec!["--tls-resume", "off"], "--tls"),
        (vec!["--tls", "--tls-min", "1.3", "--tls-max", "1.2"], "--tls-max: is below --tls-min"),
    ] {
        let listen = ["serve", "http", "--listen", "127.0.0.1:0"];
        let ended = run(&[&listen[..], &options].concat());
        assert_eq!(ended.status, Some(2), "{options:?}: {ended:?}");
        assert!(ended.stderr.contains(says), "{options:?}: {ended:?}");
        assert_eq!(ended.stdout, "", "{options:?}");
    }
}
