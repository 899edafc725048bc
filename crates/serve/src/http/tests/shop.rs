//! The shop over real sockets: the same answers over HTTP/1.1 and HTTP/2, with faults and a
//! station.

use super::http2::with_client;
use super::*;
use bytes::Bytes;
use http::Request;

fn shop() -> HttpServerSpec {
    HttpServerSpec { app: Some(App::Shop), ..spec() }
}

const LOGIN: &str = r#"{"name":"ann","password":"p"}"#;

fn request(head: &str, body: &str) -> String {
    let length = body.len();
    format!("{head} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{body}")
}

/// Sends it byte by byte or at once; status, head and body of what comes back.
fn ask(stream: &mut TcpStream, request: &str, split: bool) -> (u16, String, String) {
    let pieces = request.as_bytes().chunks(if split { 1 } else { 4096 });
    pieces.for_each(|piece| stream.write_all(piece).unwrap());
    let (status, head, body) = read_response(stream, !request.starts_with("HEAD"));
    (status, head, String::from_utf8(body).unwrap())
}

fn token_of(body: &str) -> String {
    let document: serde_json::Value = serde_json::from_str(body).unwrap();
    document["token"].as_str().unwrap().to_owned()
}

#[test]
fn a_user_shops_over_http1() {
    for (spec, split) in [
        (shop(), false),
        (shop(), true),
        (HttpServerSpec { app: Some(App::Shop), ..with_station(2, 1) }, false),
    ] {
        let server = start(spec).unwrap();
        let mut stream = connect(&server);
        let (status, head, body) = ask(&mut stream, &request("POST /login", LOGIN), split);
        assert_eq!(status, 200, "{head}");
        assert!(head.contains("\r\nSet-Cookie: session=") && head.contains("\r\nX-Csrf: "));
        let put = format!(
            "POST /cart HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\n",
            token_of(&body)
        );
        let form = format!("{put}Content-Length: 5\r\n\r\nid=i7");
        let chunked =
            format!("{put}Transfer-Encoding: chunked\r\n\r\n3\r\nid=\r\n2\r\ni8\r\n0\r\n\r\n");
        for (request, items) in [(form, 1), (chunked, 2)] {
            let (status, _, body) = ask(&mut stream, &request, split);
            assert_eq!((status, body), (201, format!(r#"{{"items":{items},"ok":true}}"#)));
        }
        let (status, head, _) = ask(&mut stream, &request("GET /old", ""), split);
        assert!(status == 302 && head.contains("\r\nLocation: /items\r\n"), "{head}");
        let (status, head, _) = ask(&mut stream, "HEAD /items HTTP/1.1\r\nHost: a\r\n\r\n", split);
        assert!(status == 200 && head.contains("Content-Length: "), "{head}");
        assert_eq!(ask(&mut stream, &request("GET /nothing", ""), split).0, 404);
        let stats = server.stop();
        assert_eq!((stats.requests, stats.responses), (6, 6));
        assert!(stats.errors.is_empty() && stats.faults.is_empty(), "{stats}");
    }
}

#[test]
fn pipelined_requests_have_answers_of_their_own() {
    let server = start(shop()).unwrap();
    let mut stream = connect(&server);
    let all: String = (1..=20).map(|n| request(&format!("GET /items/i{n}"), "")).collect();
    stream.write_all(all.as_bytes()).unwrap();
    for n in 1..=20 {
        let (status, _, body) = read_response(&mut stream, true);
        let body = String::from_utf8(body).unwrap();
        assert!(status == 200 && body.contains(&format!(r#""id":"i{n}""#)), "{body}");
    }
}

#[test]
fn a_body_that_is_too_large_is_read_and_refused() {
    let server = start(shop()).unwrap();
    let mut stream = connect(&server);
    let large = "x".repeat(70_000);
    assert_eq!(ask(&mut stream, &request("POST /login", &large), false).0, 413);
    assert_eq!(ask(&mut stream, &request("POST /login", LOGIN), false).0, 200);
}

#[test]
fn faults_take_the_place_of_its_answers() {
    let with = |fault| start(HttpServerSpec { faults: vec![fault], ..shop() }).unwrap();
    let server = with(Fault::Error(1.0, 503));
    assert_eq!(ask(&mut connect(&server), &request("GET /items", ""), false).0, 503);
    let server = with(Fault::Truncate(1.0));
    let whole = exchange(&start(shop()).unwrap(), b"GET /items HTTP/1.0\r\n\r\n");
    let half = exchange(&server, b"GET /items HTTP/1.0\r\n\r\n");
    assert!(half.len() < whole.len() && whole.starts_with(&half), "{half}");
    let server = with(Fault::Slow(1_000_000));
    assert_eq!(exchange(&server, b"GET /items HTTP/1.0\r\n\r\n"), whole);
}

#[test]
fn a_user_shops_over_http2() {
    let server = start(shop()).unwrap();
    let told = with_client(&server, &h2::client::Builder::new(), async |mut client| {
        let mut token = String::new();
        let mut told = Vec::new();
        for (method, path, body) in [
            ("POST", "/login", LOGIN),
            ("POST", "/cart", "id=i7"),
            ("POST", "/cart", "id=i8"),
            ("GET", "/items/i3", ""),
            ("HEAD", "/items/i3", ""),
            ("GET", "/old", ""),
        ] {
            let request = Request::builder().method(method).uri(format!("http://a{path}"));
            let request = request.header("authorization", format!("Bearer {token}")).body(());
            client = client.ready().await.unwrap();
            let (response, mut sender) =
                client.send_request(request.unwrap(), body.is_empty()).unwrap();
            // In two frames.
            if let Some((first, rest)) = body.split_at_checked(3) {
                sender.send_data(Bytes::copy_from_slice(first.as_bytes()), false).unwrap();
                sender.send_data(Bytes::copy_from_slice(rest.as_bytes()), true).unwrap();
            }
            let response = response.await.unwrap();
            let (status, fields) = (response.status().as_u16(), response.headers().clone());
            let (mut incoming, mut all) = (response.into_body(), Vec::new());
            while let Some(data) = incoming.data().await {
                all.extend_from_slice(&data.unwrap());
            }
            let body = String::from_utf8(all).unwrap();
            if path == "/login" {
                assert!(fields.contains_key("x-csrf") && fields.contains_key("set-cookie"));
                token = token_of(&body);
            }
            told.push((status, body));
        }
        told
    });
    let statuses: Vec<u16> = told.iter().map(|(status, _)| *status).collect();
    assert_eq!(statuses, [200, 201, 201, 200, 200, 302]);
    assert_eq!(told[2].1, r#"{"items":2,"ok":true}"#);
    assert!(told[3].1.contains(r#""id":"i3""#) && told[4].1.is_empty());
    let stats = server.stop();
    assert_eq!((stats.requests, stats.responses), (6, 6));
    assert!(stats.errors.is_empty(), "{:?}", stats.errors);
}
