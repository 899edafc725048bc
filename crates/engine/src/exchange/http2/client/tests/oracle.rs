//! Whole exchanges with `h2`, over a pipe in memory.

use super::super::{Http2, Http2Shared};
use crate::exchange::{EventQueue, Exchange, OpEvent, Outbox};
use bytes::Bytes;
use h2::server;
use http::{Request, Response};
use knee_load::spec::{HttpRequest, HttpTarget, Pick, Url, parse_header};
use std::collections::{HashMap, VecDeque};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

/// A request as the server saw it.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    head: String,
    body_bytes: usize,
}

fn request(method: &str, path: &str, headers: &[&str], body: Vec<u8>) -> HttpRequest {
    let url = Url::parse(&format!("http://example.test:81{path}")).unwrap();
    let headers = headers.iter().map(|h| parse_header(h).unwrap()).collect();
    HttpRequest::new(method, &url, headers, body, 1).unwrap()
}

fn target(requests: Vec<HttpRequest>) -> HttpTarget {
    let url = Url::parse("http://example.test:81/").unwrap();
    HttpTarget::new(url.endpoint().clone(), requests, Pick::InOrder, true).unwrap()
}

/// Answers each request with `x-bytes` bytes and keeps how it looked.
async fn serve(pipe: DuplexStream, builder: server::Builder) -> Vec<Seen> {
    let mut connection = builder.handshake::<_, Bytes>(pipe).await.unwrap();
    let mut answers = Vec::new();
    while let Some(Ok((request, respond))) = connection.accept().await {
        answers.push(tokio::task::spawn_local(answer(request, respond)));
    }
    let mut all = Vec::new();
    for answer in answers {
        all.push(answer.await.unwrap());
    }
    all
}

async fn answer(
    request: Request<h2::RecvStream>,
    mut respond: server::SendResponse<Bytes>,
) -> Seen {
    let (parts, mut body) = request.into_parts();
    let mut body_bytes = 0;
    while let Some(data) = body.data().await {
        let data = data.unwrap();
        body_bytes += data.len();
        body.flow_control().release_capacity(data.len()).unwrap();
    }
    let mut head = format!("{} {}", parts.method, parts.uri);
    for (name, value) in &parts.headers {
        head.push_str(&format!(" {name}: {}", String::from_utf8_lossy(value.as_bytes())));
    }
    let bytes = parts.headers.get("x-bytes").map(|v| v.to_str().unwrap().parse().unwrap());
    let bytes: usize = bytes.unwrap_or(0);
    let response = Response::builder()
        .header("content-length", bytes)
        .header("server", "oracle")
        .body(())
        .unwrap();
    let mut stream = respond.send_response(response, bytes == 0).unwrap();
    if bytes > 0 {
        stream.send_data(Bytes::from(vec![b'x'; bytes]), true).unwrap();
    }
    Seen { head, body_bytes }
}

/// Sends `count` operations, at most `at_once` under way, until all have ended.
async fn drive(
    mut pipe: DuplexStream,
    target: &HttpTarget,
    count: u32,
    at_once: u32,
) -> HashMap<u32, Vec<OpEvent>> {
    let mut shared = Http2Shared::new(target);
    let mut out = Outbox::default();
    let mut events = EventQueue::default();
    let mut http2 = Http2::established(&mut shared, &mut out);
    let mut waiting: VecDeque<u32> = (0..count).collect();
    let mut under_way = 0;
    let mut all: HashMap<u32, Vec<OpEvent>> = HashMap::new();
    let mut buffer = vec![0; 70_000];
    while under_way > 0 || !waiting.is_empty() {
        while under_way < at_once
            && http2.room(&shared).operations > 0
            && let Some(op) = waiting.pop_front()
        {
            let request = op as usize % target.requests.len();
            http2.begin(op, request.into(), &mut shared, &mut out, &mut events);
            under_way += 1;
        }
        let has_told = !events.is_empty();
        for one in events.drain(..) {
            let (op, ends) = match one {
                OpEvent::Written(op) | OpEvent::Received { op, .. } => (op, false),
                OpEvent::Answered { op, .. } | OpEvent::Failed { op, .. } => (op, true),
                // More than the server permits, as it had not said so yet.
                OpEvent::Unprocessed(op) => {
                    all.remove(&op);
                    waiting.push_back(op);
                    under_way -= 1;
                    continue;
                }
                other => panic!("{other:?}"),
            };
            under_way -= u32::from(ends);
            all.entry(op).or_default().push(one);
        }
        if has_told {
            continue;
        }
        if !out.is_empty() {
            let bytes = std::mem::take(out.bytes());
            pipe.write_all(&bytes).await.unwrap();
            http2.sent(&mut shared, &mut out, &mut events);
            continue;
        }
        let read = pipe.read(&mut buffer).await.unwrap();
        assert!(read > 0, "the server closed");
        http2.feed(&buffer[..read], &mut shared, &mut out, &mut events);
    }
    all
}

fn exchange(
    target: HttpTarget,
    builder: server::Builder,
    count: u32,
    at_once: u32,
) -> (HashMap<u32, Vec<OpEvent>>, Vec<Seen>) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async move {
        let (near, far) = tokio::io::duplex(1 << 20);
        let server = tokio::task::spawn_local(serve(far, builder));
        let events = drive(near, &target, count, at_once).await;
        (events, server.await.unwrap())
    })
}

/// Every operation was written, received something, and was answered with 200, in this order; the
/// bytes are those of its frames.
fn check_told(all: &HashMap<u32, Vec<OpEvent>>, content_bytes: impl Fn(u32) -> u64) {
    for (&op, events) in all {
        assert_eq!(events[0], OpEvent::Written(op));
        assert_eq!(events.last(), Some(&OpEvent::Answered { op, status: 200 }));
        let mut received = 0;
        for one in &events[1..events.len() - 1] {
            match one {
                OpEvent::Received { op: of, bytes } if *of == op => received += bytes,
                other => panic!("{other:?}"),
            }
        }
        let content = content_bytes(op);
        let frames = content.div_ceil(16_384);
        let least = content + frames * 9 + 9;
        assert!((least..least + 1000).contains(&received), "{received} of {content}");
    }
}

#[test]
fn requests_arrive_as_they_were_meant() {
    let requests = vec![
        request("GET", "/a?b", &["Host: other", "X-A: Ä b", "Connection: close"], Vec::new()),
        request("POST", "/c", &["TE: trailers", "Upgrade: x", "Cookie: d=e"], b"body".to_vec()),
        request("PUT", "/f", &["TE: gzip", "User-Agent: g", "Accept: h"], Vec::new()),
    ];
    let agent = concat!("knee/", env!("CARGO_PKG_VERSION"));
    let want = [
        format!("GET http://other/a?b user-agent: {agent} accept: */* x-a: Ä b"),
        format!(
            "POST http://example.test:81/c user-agent: {agent} accept: */* content-length: 4 \
             te: trailers cookie: d=e"
        ),
        "PUT http://example.test:81/f content-length: 0 user-agent: g accept: h".to_owned(),
    ];
    let (events, seen) = exchange(target(requests), server::Builder::new(), 9, 1);
    check_told(&events, |_| 0);
    assert_eq!(seen.len(), 9);
    for (n, seen) in seen.iter().enumerate() {
        assert_eq!(seen.head, want[n % 3], "request {n}");
        assert_eq!(seen.body_bytes, if n % 3 == 1 { 4 } else { 0 });
    }
}

#[test]
fn many_at_once_with_bodies_both_ways() {
    let requests = vec![
        request("POST", "/up", &["X-Bytes: 0"], vec![7; 300_000]),
        request("GET", "/down", &["X-Bytes: 200000"], Vec::new()),
        request("GET", "/small", &["X-Bytes: 5"], Vec::new()),
    ];
    let mut builder = server::Builder::new();
    builder.max_concurrent_streams(7);
    let (events, seen) = exchange(target(requests), builder, 60, 30);
    check_told(&events, |op| [0, 200_000, 5][op as usize % 3]);
    let uploads = seen.iter().filter(|seen| seen.body_bytes == 300_000).count();
    assert_eq!((seen.len(), uploads), (60, 20));
}

#[test]
fn more_paths_than_the_table_holds() {
    let path = |n: usize| format!("/{n:04}/{}", "p".repeat(100));
    let requests: Vec<_> = (0..500).map(|n| request("GET", &path(n), &[], Vec::new())).collect();
    let (events, seen) = exchange(target(requests), server::Builder::new(), 1500, 50);
    check_told(&events, |_| 0);
    let mut paths: Vec<String> = seen.iter().map(|s| s.head[26..].to_owned()).collect();
    paths.sort();
    for (n, path_seen) in paths.iter().enumerate() {
        assert!(path_seen.contains(&format!("/{:04}/", n / 3)), "{path_seen}");
    }
}
