//! A request in its bytes on the wire (RFC 9112 §3).

use knee_core::spec::HttpRequest;

/// The bytes of `request`: request line; Host, User-Agent and Accept unless given; the headers
/// given, as they are; Content-Length where there is a body or the method implies one (RFC 9110
/// §8.6); `Connection: close` unless `keep_alive`; the body.
pub fn serialise(request: &HttpRequest, keep_alive: bool) -> Vec<u8> {
    let mut bytes = serialise_head(request, keep_alive);
    bytes.extend_from_slice(&request.body);
    bytes
}

/// The same without the body.
pub fn serialise_head(request: &HttpRequest, keep_alive: bool) -> Vec<u8> {
    let mut bytes = format!("{} {} HTTP/1.1\r\n", request.method, request.path).into_bytes();
    let mut line = |name: &str, value: &str| {
        bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    };
    let mut unless_given = |name: &str, value: &str| {
        if !request.has_header(name) {
            line(name, value);
        }
    };
    unless_given("Host", &request.host);
    unless_given("User-Agent", concat!("knee/", env!("CARGO_PKG_VERSION")));
    unless_given("Accept", "*/*");
    let implied = matches!(request.method.as_str(), "POST" | "PUT" | "PATCH");
    if implied || !request.body.is_empty() {
        unless_given("Content-Length", &request.body.len().to_string());
    }
    if !keep_alive {
        unless_given("Connection", "close");
    }
    for (name, value) in &request.headers {
        line(name, value);
    }
    bytes.extend_from_slice(b"\r\n");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_core::spec::{Url, parse_header};

    const AGENT: &str = concat!("User-Agent: knee/", env!("CARGO_PKG_VERSION"), "\r\n");

    fn check(name: &str, method: &str, headers: &[&str], body: &str, keep: bool, want: &str) {
        let url = Url::parse("http://h:81/a?b").unwrap();
        let headers = headers.iter().map(|h| parse_header(h).unwrap()).collect();
        let request = HttpRequest::new(method, &url, headers, body.as_bytes().to_vec(), 1).unwrap();
        let bytes = String::from_utf8(serialise(&request, keep)).unwrap();
        assert_eq!(bytes, want.replace("<agent>", AGENT), "{name}");
    }

    #[test]
    fn requests_on_the_wire() {
        check(
            "a plain request",
            "GET",
            &[],
            "",
            true,
            "GET /a?b HTTP/1.1\r\nHost: h:81\r\n<agent>Accept: */*\r\n\r\n",
        );
        check(
            "a connection for one request",
            "GET",
            &[],
            "",
            false,
            "GET /a?b HTTP/1.1\r\nHost: h:81\r\n<agent>Accept: */*\r\nConnection: close\r\n\r\n",
        );
        check(
            "headers given replace those of the same name",
            "GET",
            &[
                "host: x",
                "USER-AGENT: y",
                "Accept: z",
                "Connection: upgrade",
            ],
            "",
            false,
            "GET /a?b HTTP/1.1\r\nhost: x\r\nUSER-AGENT: y\r\nAccept: z\r\n\
             Connection: upgrade\r\n\r\n",
        );
        check(
            "a body has its length",
            "DELETE",
            &["A: ä"],
            "äb",
            true,
            "DELETE /a?b HTTP/1.1\r\nHost: h:81\r\n<agent>Accept: */*\r\nContent-Length: 3\r\n\
             A: ä\r\n\r\näb",
        );
        check(
            "a length given stays alone",
            "PUT",
            &["content-length: 1"],
            "b",
            true,
            "PUT /a?b HTTP/1.1\r\nHost: h:81\r\n<agent>Accept: */*\r\ncontent-length: 1\r\n\r\nb",
        );
    }

    #[test]
    fn methods_that_imply_a_body_say_when_there_is_none() {
        for method in ["POST", "PUT", "PATCH"] {
            let want = "/a?b HTTP/1.1\r\nHost: h:81\r\n<agent>Accept: */*\r\nContent-Length: 0";
            check(
                method,
                method,
                &[],
                "",
                true,
                &format!("{method} {want}\r\n\r\n"),
            );
        }
    }
}
