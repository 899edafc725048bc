//! Servers that answer before they have read the request, in pieces, or more than was asked.

use crate::support::{KneeServer, TempPath, backends, measured, run_load, unless_disturbed};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// Longer than what fits into the buffers of both ends.
const BODY_BYTES: usize = 24 << 20;

/// A server in this process, ended with it. `serve` has each connection.
fn server(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            thread::spawn(move || serve(stream));
        }
    });
    url
}

/// Reads up to the end of a request's head; the bytes of the body that came with it, `None` at the
/// end of the connection.
fn read_head(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some(at) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            assert!(bytes.starts_with(b"POST /"), "no request begins so");
            return Some(bytes.split_off(at + 4));
        }
        match stream.read(&mut buffer) {
            Ok(n @ 1..) => bytes.extend_from_slice(&buffer[..n]),
            _ => return None,
        }
    }
}

/// Answers each request once it has its head, then reads its body on. Counts the bytes in a body
/// that were not of it.
fn answers_early(header: &'static str, foreign: &Arc<AtomicU64>) -> String {
    let foreign = foreign.clone();
    server(move |mut stream| {
        let response =
            format!("HTTP/1.1 413 Content Too Large\r\n{header}Content-Length: 0\r\n\r\n");
        while let Some(mut body) = read_head(&mut stream) {
            if stream.write_all(response.as_bytes()).is_err() {
                return;
            }
            // So that the answer is there long before the body is sent.
            thread::sleep(Duration::from_millis(30));
            let mut buffer = vec![0; 1 << 20];
            while body.len() < BODY_BYTES {
                match stream.read(&mut buffer) {
                    Ok(n @ 1..) => body.extend_from_slice(&buffer[..n]),
                    _ => break,
                }
            }
            let others = body.iter().filter(|&&b| b != b'x').count();
            foreign.fetch_add(others as u64, Ordering::Relaxed);
        }
    })
}

#[test]
fn early_answer_leaves_no_half_body_behind() {
    let body = TempPath::with("large-body", &"x".repeat(BODY_BYTES));
    let file = format!("@{}", body.str());
    for backend in backends(&KneeServer::start(&[]).url()) {
        for header in ["", "Connection: close\r\n"] {
            let foreign = Arc::new(AtomicU64::new(0));
            let url = answers_early(header, &foreign);
            let options = ["-b", &file, "-c", "2", "-n", "6", "--backend", backend];
            let report = run_load(&url, &options).json();
            let trial = &report["trials"][0];
            let what = format!("{backend} {header}: {:#}", trial["outcomes"]);
            assert_eq!(trial["outcomes"]["http_4xx"], 6, "{what}");
            assert_eq!(trial["status_codes"]["413"], 6, "{what}");
            assert_eq!(trial["connections_opened"], 6, "{what}");
            assert_eq!(foreign.load(Ordering::Relaxed), 0, "{what}");
        }
    }
}

#[test]
fn a_body_that_is_read_first_keeps_its_connection() {
    let body = TempPath::with("whole-body", &"x".repeat(BODY_BYTES));
    let file = format!("@{}", body.str());
    for backend in backends(&KneeServer::start(&[]).url()) {
        let url = server(|mut stream| {
            while let Some(mut body) = read_head(&mut stream) {
                let mut rest = vec![0; BODY_BYTES - body.len()];
                if stream.read_exact(&mut rest).is_err() {
                    return;
                }
                body.append(&mut rest);
                assert!(body.iter().all(|&b| b == b'x'));
                let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n");
            }
        });
        let run = ["run", &url, "-b", &file, "-c", "2", "-n", "6"];
        let report = measured(&[&run[..], &["--backend", backend]].concat());
        let trial = &report["trials"][0];
        assert_eq!(trial["status_codes"]["204"], 6, "{backend}");
        assert_eq!(trial["connections_opened"], 2, "{backend}");
        let sent = trial["bytes_sent"].as_u64().unwrap();
        assert!(sent > 6 * BODY_BYTES as u64, "{backend}: {sent}");
    }
}

/// The response is whole, whatever follows it, and however that comes.
#[test]
fn surplus_bytes_are_found_and_end_the_connection_alone() {
    for backend in backends(&KneeServer::start(&[]).url()) {
        for pause_ms in [0, 5] {
            let url = server(move |mut stream| {
                let _ = stream.set_nodelay(true);
                while read_head(&mut stream).is_some() {
                    let response = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
                    let _ = match pause_ms {
                        0 => stream.write_all(&[&response[..], b"more"].concat()),
                        _ => stream.write_all(response).and_then(|()| {
                            thread::sleep(Duration::from_millis(pause_ms));
                            stream.write_all(b"more")
                        }),
                    };
                }
            });
            let load = ["-m", "POST", "--vusers", "1", "-n", "5", "--think", "200ms"];
            let attempt = || run_load(&url, &[&load[..], &["--backend", backend]].concat());
            unless_disturbed(attempt, |report| {
                let trial = &report["trials"][0];
                let what = format!("{backend} {pause_ms}: {:#}", trial["outcomes"]);
                assert_eq!(trial["outcomes"]["ok"], 5, "{what}");
                let surplus = trial["surplus_responses"].as_u64().unwrap();
                // What follows the last response may come after the end.
                assert!((4..=5).contains(&surplus), "{what}: {surplus}");
                assert_eq!(trial["connections_opened"], 5, "{what}");
                let findings = report["findings"].as_array().unwrap();
                assert!(findings.iter().any(|f| f["code"] == "surplus_bytes"), "{what}");
            });
        }
    }
}

/// A server that writes each response in three pieces; whether it waits with them for
/// acknowledgements.
fn in_pieces(waits: bool) -> String {
    server(move |mut stream| {
        stream.set_nodelay(!waits).unwrap();
        let mut buffer = [0; 4096];
        while let Ok(1..) = stream.read(&mut buffer) {
            for piece in ["HTTP/1.1 200 OK\r\n", "Content-Length: 5\r\n\r\n", "hello"] {
                if stream.write_all(piece.as_bytes()).is_err() {
                    return;
                }
            }
        }
    })
}

#[test]
fn waiting_for_acknowledgements_is_a_finding() {
    let found = |waits| {
        let report = measured(&["run", &in_pieces(waits), "--vusers", "2", "-n", "60"]);
        let codes = report["findings"].as_array().unwrap().iter();
        codes.filter(|f| f["code"] == "delayed_ack").count()
    };
    assert_eq!(found(false), 0);
    // A busy machine may acknowledge even later.
    assert!((0..5).any(|_| found(true) == 1));
}
