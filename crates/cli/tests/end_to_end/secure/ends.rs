//! How servers end a stream over TLS, and what becomes of the response and the connection.

use crate::support::{Certificates, KneeServer, backends, measured};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

type Stream = StreamOwned<ServerConnection, TcpStream>;

/// What a server does after its response.
#[derive(Clone, Copy, Debug)]
enum End {
    /// Ends without a word in TLS.
    Fin,
    /// Says in TLS that nothing follows, then ends.
    CloseNotify,
    /// Says so, and waits for the client to close.
    CloseNotifyOnly,
    /// Says so, and sends bytes that mean nothing.
    CloseNotifyAndMore,
}

impl End {
    fn of(self, stream: &mut Stream) -> std::io::Result<()> {
        if !matches!(self, End::Fin) {
            stream.conn.send_close_notify();
            stream.flush()?;
        }
        match self {
            End::Fin | End::CloseNotify => stream.sock.shutdown(Shutdown::Write)?,
            End::CloseNotifyAndMore => stream.sock.write_all(&[0x17, 3, 3, 0, 2, 1, 1])?,
            End::CloseNotifyOnly => {}
        }
        // Until the client closes.
        stream.sock.read_to_end(&mut Vec::new()).map(|_| ())
    }
}

/// A server that answers the first request of each connection with this, and ends it so.
fn server(certificates: &Certificates, response: &'static [u8], end: End) -> String {
    let chain = vec![CertificateDer::from_pem_file(certificates.server.str()).unwrap()];
    let key = PrivateKeyDer::from_pem_file(certificates.server_key.str()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let tls = ServerConnection::new(Arc::clone(&config)).unwrap();
            thread::spawn(move || serve(StreamOwned::new(tls, stream), response, end));
        }
    });
    format!("https://127.0.0.1:{port}/")
}

/// Ends when the client does; an error is an end as well.
fn serve(mut stream: Stream, response: &[u8], end: End) {
    let mut request = [0; 4_096];
    if stream.read(&mut request).is_ok_and(|count| count > 0)
        && stream.write_all(response).and_then(|()| stream.flush()).is_ok()
    {
        let _ = end.of(&mut stream);
    }
}

const REQUESTS: u64 = 12;

/// What a trial of these requests counts.
fn trial(certificates: &Certificates, url: &str, more: &[&str]) -> Value {
    let count = REQUESTS.to_string();
    let trust = certificates.authority.str();
    let load = ["run", url, "-n", &count, "-c", "2", "--cacert", trust];
    let limits = ["--timeout", "20s", "-d", "60s", "--warmup", "0s"];
    measured(&[&load[..], &limits, more].concat())["trials"][0].take()
}

const UNTIL_CLOSE: &[u8] = b"HTTP/1.1 200 OK\r\n\r\nhello";
const KEPT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\
    Connection: close\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
const PART: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello";

#[test]
fn only_close_notify_ends_a_response_without_length() {
    let certificates = Certificates::new();
    for backend in backends(&KneeServer::start(&[]).url()) {
        for (response, end, outcome) in [
            (UNTIL_CLOSE, End::Fin, "truncated"),
            (UNTIL_CLOSE, End::CloseNotify, "ok"),
            (UNTIL_CLOSE, End::CloseNotifyOnly, "ok"),
            (CHUNKED, End::Fin, "ok"),
            (CHUNKED, End::CloseNotify, "ok"),
            (PART, End::Fin, "truncated"),
            (PART, End::CloseNotifyOnly, "truncated"),
        ] {
            let url = server(&certificates, response, end);
            let trial = trial(&certificates, &url, &["--backend", backend]);
            let counts = &trial["outcomes"];
            assert_eq!(counts[outcome], REQUESTS, "{backend} {end:?}: {counts}");
        }
    }
}

#[test]
fn connection_is_not_used_after_close_notify() {
    let certificates = Certificates::new();
    for backend in backends(&KneeServer::start(&[]).url()) {
        for end in [End::CloseNotify, End::CloseNotifyOnly, End::CloseNotifyAndMore] {
            for method in ["GET", "POST"] {
                let url = server(&certificates, KEPT, end);
                let more = ["--backend", backend, "-X", method];
                let trial = trial(&certificates, &url, &more);
                let counts = &trial["outcomes"];
                let context = format!("{backend} {end:?} {method}: {trial:#}");
                assert_eq!(counts["ok"], REQUESTS, "{context}");
                assert_eq!(trial["connections_opened"], REQUESTS, "{context}");
            }
        }
    }
}
