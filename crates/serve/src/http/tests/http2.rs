//! The server over HTTP/2, with another implementation of it as the client.

use super::*;
use bytes::Bytes;
use h2::client::SendRequest;
use h2::{Error, Reason};
use http::Request;
use std::future::Future;

/// What became of one request: status and body, or the error that ended it and what came before.
type Answered = Result<(u16, Vec<u8>), (Error, Vec<u8>)>;

/// A client on a connection of its own.
pub(super) fn with_client<T, F: Future<Output = T>>(
    server: &HttpServer,
    builder: &h2::client::Builder,
    act: impl FnOnce(SendRequest<Bytes>) -> F,
) -> T {
    let Address::Tcp(address) = *server.address() else {
        panic!("a TCP server");
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let (client, connection) = builder.handshake(stream).await.unwrap();
        tokio::spawn(connection);
        let patience = tokio::time::timeout(Duration::from_secs(60), act(client));
        patience.await.expect("an end in time")
    })
}

/// Sends a request; its answer may be awaited later.
async fn begin(
    client: &mut SendRequest<Bytes>,
    method: &str,
    body: Vec<u8>,
) -> impl Future<Output = Answered> + use<> {
    let request = Request::builder().method(method).uri("http://a/").body(());
    *client = client.clone().ready().await.unwrap();
    let (response, mut sender) = client.send_request(request.unwrap(), body.is_empty()).unwrap();
    if !body.is_empty() {
        sender.send_data(body.into(), true).unwrap();
    }
    async move {
        let response = response.await.map_err(|e| (e, Vec::new()))?;
        let status = response.status().as_u16();
        let (mut incoming, mut all) = (response.into_body(), Vec::new());
        while let Some(data) = incoming.data().await {
            let Ok(data) = data else {
                return Err((data.unwrap_err(), all));
            };
            incoming.flow_control().release_capacity(data.len()).unwrap();
            all.extend_from_slice(&data);
        }
        Ok((status, all))
    }
}

/// As many GETs as `count`, all at once over one connection.
fn get_at_once(server: &HttpServer, count: usize) -> Vec<Answered> {
    let mut builder = h2::client::Builder::new();
    // It would open any number before it knows how many are permitted.
    builder.initial_max_send_streams(100);
    with_client(server, &builder, async |mut client| {
        let mut under_way = Vec::new();
        for _ in 0..count {
            under_way.push(tokio::spawn(begin(&mut client, "GET", Vec::new()).await));
        }
        let mut answers = Vec::new();
        for answer in under_way {
            answers.push(answer.await.unwrap());
        }
        answers
    })
}

fn is_body(body: &[u8], length: usize) -> bool {
    let pattern = b"The knee of a curve is where more load buys more waiting than work.\n";
    let is_pattern = body.iter().zip(pattern.iter().cycle()).all(|(a, b)| a == b);
    body.len() == length && is_pattern
}

#[test]
fn many_streams_share_a_connection_and_each_is_whole() {
    let body_size = 100_000;
    let server = start(HttpServerSpec { body_size, ..spec() }).unwrap();
    for answer in get_at_once(&server, 300) {
        let (status, body) = answer.unwrap();
        assert_eq!(status, 200);
        assert!(is_body(&body, 100_000));
    }
    let stats = server.stop();
    assert_eq!((stats.requests, stats.responses), (300, 300));
    let http2 = stats.http2.unwrap();
    assert_eq!((http2.connections, http2.streams), (1, 300));
    assert!(http2.streams_max > 1 && http2.streams_max <= 128);
    assert!(stats.errors.is_empty(), "{:?}", stats.errors);
}

#[test]
fn small_windows_only_slow_a_response_down() {
    let body_size = 50_000;
    let server = start(HttpServerSpec { body_size, ..spec() }).unwrap();
    let mut builder = h2::client::Builder::new();
    builder.initial_window_size(1_000);
    let answers = with_client(&server, &builder, async |mut client| {
        let a = tokio::spawn(begin(&mut client, "GET", Vec::new()).await);
        let b = tokio::spawn(begin(&mut client, "HEAD", Vec::new()).await);
        [a.await.unwrap(), b.await.unwrap()]
    });
    let [(200, body), (200, none)] = answers.map(Result::unwrap) else {
        panic!("two responses");
    };
    assert!(is_body(&body, 50_000) && none.is_empty());
    assert_eq!(server.stop().responses, 2);
}

#[test]
fn long_bodies_of_requests_are_consumed() {
    let server = start(spec()).unwrap();
    let body = vec![b'x'; 5_000_000];
    let answer = with_client(&server, &h2::client::Builder::new(), async |mut client| {
        begin(&mut client, "POST", body).await.await
    });
    assert_eq!(answer.unwrap().0, 200);
    let stats = server.stop();
    assert_eq!((stats.requests, stats.responses), (1, 1));
    assert!(stats.bytes_received > 5_000_000);
}

#[test]
fn streams_queue_at_the_station_as_connections_do() {
    let spec = HttpServerSpec { log_max: 100, arrivals_max: 100, ..with_station(2, 20) };
    let server = start(spec).unwrap();
    let begin = Instant::now();
    let answers = get_at_once(&server, 8);
    // Eight of 20 ms each, two at a time.
    assert!(begin.elapsed() >= Duration::from_millis(80));
    assert!(answers.iter().all(|a| a.as_ref().is_ok_and(|a| a.0 == 200)));
    let stats = server.stop();
    let station = stats.station.unwrap();
    assert_eq!((station.arrivals, station.sojourn.max_ns > 0), (8, true));
    assert_eq!(stats.arrivals.len(), 8);
    let mut entries = stats.log.entries;
    assert_eq!(entries.len(), 8);
    entries.sort_by_key(|entry| entry.request);
    for (number, entry) in entries.iter().enumerate() {
        assert_eq!((entry.connection, entry.request), (0, number as u32));
        assert!(entry.arrival <= entry.read && entry.read <= entry.start, "{entry:?}");
        assert_eq!(entry.end - entry.start, Nanos::from_millis(20));
        assert!(entry.written.unwrap() >= entry.end);
    }
}

fn answers_with(fault: Fault, count: usize) -> (Vec<Answered>, HttpServerStats) {
    let server = with_fault(fault);
    let answers = get_at_once(&server, count);
    (answers, server.stop())
}

#[test]
fn a_reset_fault_ends_its_stream_alone() {
    let (answers, stats) = answers_with(Fault::Reset(0.5), 60);
    let reset = answers.iter().filter(|answer| match answer {
        Err((error, _)) => {
            assert_eq!(error.reason(), Some(Reason::INTERNAL_ERROR));
            assert!(error.is_reset());
            true
        }
        Ok((status, body)) => {
            assert!(*status == 200 && is_body(body, 100));
            false
        }
    });
    let reset = reset.count() as u64;
    assert!(reset > 0 && reset < 60);
    assert_eq!(stats.faults["reset"], reset);
    assert_eq!((stats.connections, stats.responses), (1, 60 - reset));
}

#[test]
fn a_truncate_fault_sends_half_and_resets_the_stream() {
    let (answers, stats) = answers_with(Fault::Truncate(1.0), 3);
    for answer in answers {
        let (error, body) = answer.unwrap_err();
        assert_eq!(error.reason(), Some(Reason::INTERNAL_ERROR));
        assert!(is_body(&body, 50));
    }
    assert_eq!((stats.faults["truncate"], stats.responses), (3, 0));
}

#[test]
fn a_garbage_fault_ends_the_connection_without_sense() {
    let (answers, stats) = answers_with(Fault::Garbage(1.0), 1);
    assert!(answers[0].is_err());
    assert_eq!((stats.faults["garbage"], stats.responses), (1, 0));
}

#[test]
fn an_error_fault_has_its_status() {
    let (answers, stats) = answers_with(Fault::Error(1.0, 503), 2);
    for answer in answers {
        let (status, body) = answer.unwrap();
        assert!(status == 503 && is_body(&body, 100));
    }
    assert_eq!((stats.faults["error"], stats.responses), (2, 2));
    let (answers, _) = answers_with(Fault::Error(1.0, 204), 1);
    assert_eq!(answers[0].as_ref().unwrap(), &(204, Vec::new()));
}

#[test]
fn a_slow_fault_never_sends_ahead_of_its_speed() {
    let begin = Instant::now();
    let (answers, stats) = answers_with(Fault::Slow(1_000), 5);
    assert!(begin.elapsed() >= Duration::from_millis(100));
    assert!(answers.iter().all(|a| is_body(&a.as_ref().unwrap().1, 100)));
    assert_eq!(stats.responses, 5);
}
