//! Pushes to collectors that take them, refuse them, are slow or away.

use super::*;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

/// A collector that answers each request with the next of these texts, and the last one again.
struct Collector {
    address: SocketAddr,
    requests: Receiver<String>,
}

impl Collector {
    fn start(answers: &[&str]) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (told, requests) = channel();
        let answers: Vec<String> = answers.iter().map(|text| (*text).to_owned()).collect();
        let _: JoinHandle<()> = thread::spawn(move || serve(&listener, &answers, &told));
        Collector { address, requests }
    }

    fn url(&self) -> String {
        format!("http://{}/v1/metrics", self.address)
    }
}

fn serve(listener: &TcpListener, answers: &[String], told: &Sender<String>) {
    for (number, stream) in listener.incoming().enumerate() {
        let mut stream = stream.unwrap();
        let mut request = Vec::new();
        let mut piece = [0; 4096];
        while !request.ends_with(b"document") {
            match stream.read(&mut piece) {
                Ok(n) if n > 0 => request.extend_from_slice(&piece[..n]),
                _ => break,
            }
        }
        if told.send(String::from_utf8_lossy(&request).into_owned()).is_err() {
            return;
        }
        let answer = answers.get(number).or(answers.last()).unwrap();
        let _ = stream.write_all(answer.as_bytes());
    }
}

fn answer(status: &str, headers: &str) -> String {
    format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 0\r\n{headers}\r\n")
}

/// Always the same document.
struct Constant;

impl PushSource for Constant {
    const CONTENT_TYPE: &'static str = "application/x-test";

    fn document(&mut self) -> Vec<u8> {
        b"document".to_vec()
    }

    fn accepted(&mut self, answer: &[u8]) -> Option<String> {
        (!answer.is_empty()).then(|| "it complains".to_owned())
    }
}

fn pusher(url: &str, period: Duration) -> Pusher {
    let headers = [("X-Key".to_owned(), "k1".to_owned())];
    let target = PushTarget::new(url).unwrap().with_headers(&headers).unwrap();
    Pusher::start(target, period, Constant).unwrap()
}

/// The first fault, however long it takes.
fn fault(pusher: &Pusher) -> String {
    pusher.faults.recv().unwrap()
}

const LONG: Duration = Duration::from_secs(3_600);
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn documents_come_at_once_again_and_at_the_end() {
    let collector = Collector::start(&[&answer("200 OK", "")]);
    let pusher = pusher(&collector.url(), Duration::from_millis(1));
    for _ in 0..3 {
        let request = collector.requests.recv().unwrap().to_ascii_lowercase();
        assert!(request.starts_with("post /v1/metrics http/1.1\r\n"), "{request}");
        for header in ["content-type: application/x-test\r\n", "x-key: k1\r\n", "user-agent: knee/"]
        {
            assert!(request.contains(header), "{request}");
        }
    }
    assert!(pusher.end(LIMIT, || false));
    assert_eq!(pusher.fault(), None);
}

#[test]
fn what_a_collector_answers_is_told_once() {
    for (status, headers, told) in [
        (
            "404 Not Found",
            "",
            "it answered 404 Not Found: expected a receiver of OTLP at this path",
        ),
        (
            "415 Unsupported Media Type",
            "",
            "it answered 415 Unsupported Media Type: expected a receiver that takes OTLP in \
             protobuf",
        ),
        ("500 Internal Server Error", "", "it answered 500 Internal Server Error"),
        (
            "302 Found",
            "Location: http://127.0.0.1:1/\r\n",
            "it answered 302 Found: expected no redirect, but the URL that it leads to",
        ),
    ] {
        let collector = Collector::start(&[&answer(status, headers)]);
        let pusher = pusher(&collector.url(), Duration::from_millis(1));
        let then = "; the run goes on, knee tries again when it ends";
        assert_eq!(fault(&pusher), format!("{told}{then}"));
        assert!(!pusher.end(LIMIT, || false));
        assert_eq!(pusher.fault(), None);
        assert_eq!(collector.requests.try_iter().count(), 2, "{status}");
    }
}

#[test]
fn retry_after_is_kept() {
    let busy = answer("429 Too Many Requests", "Retry-After: 7\r\n");
    let collector = Collector::start(&[&busy, &answer("200 OK", "")]);
    let pusher = pusher(&collector.url(), Duration::from_millis(1));
    let told = "it answered 429 Too Many Requests; the run goes on, knee tries again in 7 s";
    assert_eq!(fault(&pusher), told);
    // No push may be that early.
    assert!(!pusher.end(Duration::from_secs(1), || false));
    assert_eq!(collector.requests.try_iter().count(), 1);
}

#[test]
fn a_collector_that_recovers_takes_the_rest() {
    let away = answer("503 Service Unavailable", "");
    let collector = Collector::start(&[&away, &answer("200 OK", "")]);
    let pusher = pusher(&collector.url(), Duration::from_millis(1));
    assert!(fault(&pusher).starts_with("it answered 503 Service Unavailable; the run goes on"));
    assert!(pusher.end(LIMIT, || false));
}

#[test]
fn a_complaint_in_an_answer_is_a_fault() {
    let body = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx";
    let collector = Collector::start(&[body]);
    assert!(fault(&pusher(&collector.url(), LONG)).starts_with("it complains; the run goes on"));
}

#[test]
fn what_speaks_no_http_is_told() {
    let collector = Collector::start(&["\0\0\u{12}\u{4}\0\0\0\0\0\r\n\r\n"]);
    let told = fault(&pusher(&collector.url(), LONG));
    assert!(told.starts_with("no answer in HTTP; the run goes on"), "{told}");
}

#[test]
fn refused_connection_is_told_with_the_port_of_grpc() {
    let told = fault(&pusher("http://127.0.0.1:1/v1/metrics", LONG));
    assert!(told.starts_with("connection refused; the run goes on"), "{told}");
    let refusal = Refusal::of_error(&Error::HostNotFound, "http://x:4317/v1/metrics", LIMIT);
    let hint = "(port 4317 is for gRPC; OTLP over HTTP is at port 4318)";
    assert_eq!(refusal.why, format!("its host is not known {hint}"));
}

#[test]
fn a_silent_collector_keeps_nobody_beyond_the_limit() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1/metrics", listener.local_addr().unwrap());
    for (limit, is_hurried) in [(Duration::from_millis(50), false), (LONG, true)] {
        let pusher = pusher(&url, LONG);
        let begin = Instant::now();
        assert!(!pusher.end(limit, || is_hurried));
        // The push under way alone would take longer.
        assert!(begin.elapsed() < PUSH_LIMIT);
    }
}

#[test]
fn urls_and_headers_that_cannot_be_are_named() {
    let expected = "expected http://HOST:PORT or https://HOST:PORT";
    for url in ["collector:4318", "", "ftp://collector/", "http://", "/v1/metrics", "http://a b/"] {
        let told = PushTarget::new(url).map(|_| ()).unwrap_err();
        assert_eq!(told, format!("is no URL of HTTP: {expected}"), "{url}");
    }
    let told = PushTarget::new("http://u:secret@host/").map(|_| ()).unwrap_err();
    assert!(told.contains("visible in 'ps'") && !told.contains("secret"), "{told}");
    for (name, value, wrong) in
        [("a b", "x", "invalid name of header 'a b'"), ("a", "x\ny", "invalid value of header 'a'")]
    {
        let headers = [(name.to_owned(), value.to_owned())];
        let told = PushTarget::new("http://host/")
            .unwrap()
            .with_headers(&headers)
            .map(|_| ())
            .unwrap_err();
        assert_eq!(told, wrong);
    }
}

#[test]
fn what_speaks_no_tls_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/v1/metrics", listener.local_addr().unwrap());
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(answer("400 Bad Request", "").as_bytes());
    });
    let told = fault(&pusher(&url, LONG));
    assert!(told.starts_with("TLS failed: "), "{told}");
}
