//! A request in its bytes on the wire (RFC 9112 §3).

use crate::reactor::WireRequest;
use knee_load::session::{Fills, MadeRequest};
use knee_load::spec::{Cut, Hole, HttpRequest, Part, Proxy, Target};

/// How a request goes over its connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestForm<'a> {
    keep_alive: bool,
    /// The proxy that forwards it. It takes the whole URL (RFC 9112 §3.2.2), and its own
    /// authorization unless the request has one.
    forwarder: Option<&'a Proxy>,
}

impl RequestForm<'_> {
    /// The form of a request of a target.
    pub(super) fn of(target: &Target, request: usize) -> RequestForm<'_> {
        let forwarder = target.forwarder_of(request);
        RequestForm { keep_alive: target.keep_alive, forwarder }
    }

    /// What stands before the path in the request line.
    fn before_path(&self, request: &HttpRequest) -> String {
        self.forwarder.map_or(String::new(), |_| format!("http://{}", request.host))
    }
}

/// The bytes of `request`: the request line, Host, User-Agent and Accept unless given, the given
/// headers as they are, and the body. Content-Length is added where there is a body or the method
/// implies one (RFC 9110 §8.6). `Connection: close` is added unless `keep_alive`.
pub fn serialise(request: &HttpRequest, keep_alive: bool) -> Vec<u8> {
    let mut bytes = serialise_head(request, RequestForm { keep_alive, forwarder: None });
    bytes.extend_from_slice(&request.body);
    bytes
}

/// The requests of a target.
pub(in crate::exchange) fn wire_requests(target: &Target) -> Vec<WireRequest> {
    let all = target.requests.iter().enumerate();
    let heads = all.map(|(n, r)| (serialise_head(r, RequestForm::of(target, n)), &r.body));
    heads.map(|(head, body)| WireRequest::new(head, body)).collect()
}

/// The same without the body.
fn serialise_head(request: &HttpRequest, form: RequestForm<'_>) -> Vec<u8> {
    let before_path = form.before_path(request);
    let line = format!("{} {before_path}{} HTTP/1.1\r\n", request.method, request.path);
    let mut bytes = line.into_bytes();
    implied_lines(request, form, |name, value| {
        bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    });
    for (name, value) in &request.headers {
        bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes
}

/// The header lines that a request has without being asked for.
fn implied_lines(request: &HttpRequest, form: RequestForm<'_>, mut line: impl FnMut(&str, &str)) {
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
    if !form.keep_alive {
        unless_given("Connection", "close");
    }
    if let Some(value) = form.forwarder.and_then(Proxy::authorization) {
        unless_given("Proxy-Authorization", &value);
    }
}

/// How requests that are made at run time go to one server.
pub(super) struct MadeForm {
    keep_alive: bool,
    /// The proxy's authorization, where a proxy forwards them.
    forwarder: Option<Option<String>>,
}

impl MadeForm {
    /// The forms for the servers of a target, by their numbers.
    pub(super) fn of(target: &Target) -> Box<[MadeForm]> {
        let servers = 0..=target.further.len() as u16;
        let form = |server| MadeForm {
            keep_alive: target.keep_alive,
            forwarder: target.forwarder_to(server).map(Proxy::authorization),
        };
        servers.map(form).collect()
    }

    /// Puts a request.
    pub(super) fn put(&self, made: &MadeRequest, out: &mut Vec<u8>) {
        out.extend_from_slice(made.method.as_bytes());
        out.push(b' ');
        if self.forwarder.is_some() {
            out.extend_from_slice(b"http://");
            out.extend_from_slice(made.authority.as_bytes());
        }
        let mut line = |parts: [&[u8]; 3]| {
            parts.iter().for_each(|part| out.extend_from_slice(part));
            out.extend_from_slice(b"\r\n");
        };
        line([&made.path, b" ", b"HTTP/1.1"]);
        let has = |name: &str| made.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        if !has("host") {
            line([b"Host", b": ", made.authority.as_bytes()]);
        }
        if !has("user-agent") {
            line([b"User-Agent", b": ", concat!("knee/", env!("CARGO_PKG_VERSION")).as_bytes()]);
        }
        if let Some(length) = made.content_length() {
            line([b"Content-Length", b": ", length.to_string().as_bytes()]);
        }
        if !self.keep_alive && !has("connection") {
            line([b"Connection", b": ", b"close"]);
        }
        if let Some(Some(value)) = &self.forwarder
            && !has("proxy-authorization")
        {
            line([b"Proxy-Authorization", b": ", value.as_bytes()]);
        }
        for (name, value) in &made.headers {
            line([name.as_bytes(), b": ", value.as_bytes()]);
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&made.body);
    }
}

/// A part of a request that has holes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Segment {
    /// A text or a hole.
    Part(Cut),
    /// This, the hole and the end of the line, unless the hole is filled with nothing.
    Line(Vec<u8>, usize),
    /// Length of the body: fixed bytes, and those of the holes from this one on.
    Length(usize, usize),
}

/// Cuts a request with holes into what is copied when it is sent.
pub(super) fn segments(request: &HttpRequest, form: RequestForm<'_>) -> Vec<Segment> {
    let mut made = Segments::default();
    made.text(request.method.as_bytes());
    made.text(b" ");
    made.text(form.before_path(request).as_bytes());
    made.part(request.cut(Part::Path));
    made.text(b" HTTP/1.1\r\n");
    let in_body = |hole: &&Hole| hole.part == Part::Body;
    let first_of_body = request.holes.len() - request.holes.iter().filter(in_body).count();
    let mut length_is_open = first_of_body < request.holes.len();
    implied_lines(request, form, |name, value| {
        made.text(format!("{name}: ").as_bytes());
        if name == "Content-Length" && length_is_open {
            made.all.push(Segment::Length(request.body.len(), first_of_body));
            length_is_open = false;
        } else {
            made.text(value.as_bytes());
        }
        made.text(b"\r\n");
    });
    if length_is_open {
        made.text(b"Content-Length: ");
        made.all.push(Segment::Length(request.body.len(), first_of_body));
        made.text(b"\r\n");
    }
    for (number, (name, _)) in request.headers.iter().enumerate() {
        let value = request.cut(Part::Header(number as u16));
        let line = format!("{name}: ").into_bytes();
        if let [Cut::Hole(hole)] = value[..] {
            made.all.push(Segment::Line(line, hole));
            continue;
        }
        made.text(&line);
        made.part(value);
        made.text(b"\r\n");
    }
    made.text(b"\r\n");
    made.part(request.cut(Part::Body));
    made.all
}

#[derive(Default)]
struct Segments {
    all: Vec<Segment>,
}

impl Segments {
    fn text(&mut self, text: &[u8]) {
        match self.all.last_mut() {
            _ if text.is_empty() => {}
            Some(Segment::Part(Cut::Text(before))) => before.extend_from_slice(text),
            _ => self.all.push(Segment::Part(Cut::Text(text.to_vec()))),
        }
    }

    /// A part of the request with its holes.
    fn part(&mut self, cuts: Vec<Cut>) {
        for cut in cuts {
            match cut {
                Cut::Text(text) => self.text(&text),
                Cut::Hole(_) => self.all.push(Segment::Part(cut)),
            }
        }
    }
}

/// Puts a request whose holes are filled.
pub(super) fn put_filled(segments: &[Segment], fills: &Fills, out: &mut Vec<u8>) {
    for segment in segments {
        match segment {
            Segment::Part(cut) => cut.put(fills, out),
            Segment::Line(name, hole) => {
                let value = fills.get(*hole);
                if !value.is_empty() {
                    out.extend_from_slice(name);
                    out.extend_from_slice(value);
                    out.extend_from_slice(b"\r\n");
                }
            }
            Segment::Length(fixed, first) => {
                put_decimal(fixed + fills.length_from(*first), out);
            }
        }
    }
}

/// Puts a number in decimal digits.
pub(in crate::exchange) fn put_decimal(number: usize, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let (mut at, mut left) = (digits.len(), number);
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_load::spec::{Url, parse_header};

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
            &["host: x", "USER-AGENT: y", "Accept: z", "Connection: upgrade"],
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
    fn holes_are_filled_and_lengths_follow() {
        let url = Url::parse("http://h/a?q=&r").unwrap();
        let headers = ["X: []", "Cookie:"].map(|h| parse_header(h).unwrap());
        let body = b"{\"n\":}".to_vec();
        let mut request = HttpRequest::new("POST", &url, headers.to_vec(), body, 1).unwrap();
        let hole = |part, at| Hole { part, at };
        request.holes = vec![
            hole(Part::Path, 5),
            hole(Part::Path, 7),
            hole(Part::Header(0), 1),
            hole(Part::Header(1), 0),
            hole(Part::Body, 5),
        ];
        for (cookie, line) in [("c=1", "Cookie: c=1\r\n"), ("", "")] {
            let mut fills = Fills::new();
            for value in ["Q", "R", "X", cookie, "12345"] {
                fills.push(value.as_bytes());
            }
            let mut out = Vec::new();
            let form = RequestForm { keep_alive: true, forwarder: None };
            put_filled(&segments(&request, form), &fills, &mut out);
            let want = format!(
                "POST /a?q=Q&rR HTTP/1.1\r\nHost: h\r\n{AGENT}Accept: */*\r\n\
                 Content-Length: 11\r\nX: [X]\r\n{line}\r\n{{\"n\":12345}}"
            );
            assert_eq!(String::from_utf8(out).unwrap(), want);
        }
    }

    /// Tables of proxied requests as curl sends them, those with holes too.
    #[test]
    fn a_proxy_gets_the_whole_url_and_its_authorization() {
        let proxy = Proxy::parse("u:pw@p", "--proxy").unwrap();
        let rows = [
            ("http://h:81/a?b", &[][..], "GET http://h:81/a?b", "Host: h:81", true),
            ("http://h", &[], "GET http://h/", "Host: h", true),
            ("http://[::1]:81/", &[], "GET http://[::1]:81/", "Host: [::1]:81", true),
            ("http://[fe80::1%25eth0]/x", &[], "GET http://[fe80::1]/x", "Host: [fe80::1]", true),
            ("http://h/a", &["Host: other"], "GET http://h/a", "Host: other", true),
            (
                "http://h/a",
                &["Proxy-Authorization: Basic eA=="],
                "GET http://h/a",
                "Host: h",
                false,
            ),
            ("http://h/?u=http://x/", &[], "GET http://h/?u=http://x/", "Host: h", true),
            (
                "http://bücher.example/",
                &[],
                "GET http://xn--bcher-kva.example/",
                "Host: xn--",
                true,
            ),
        ];
        for (url, headers, line, host, has_own) in rows {
            let url = Url::parse(url).unwrap();
            let headers = headers.iter().map(|h| parse_header(h).unwrap()).collect();
            let request = HttpRequest::new("GET", &url, headers, Vec::new(), 1).unwrap();
            let form = RequestForm { keep_alive: true, forwarder: Some(&proxy) };
            let head = String::from_utf8(serialise_head(&request, form)).unwrap();
            assert!(head.starts_with(&format!("{line} HTTP/1.1\r\n")), "{head}");
            assert!(head.contains(&format!("\r\n{host}")), "{head}");
            assert_eq!(head.contains("\r\nProxy-Authorization: Basic dTpwdw=="), has_own, "{head}");
            let mut filled = Vec::new();
            put_filled(&segments(&request, form), &Fills::new(), &mut filled);
            assert_eq!(String::from_utf8(filled).unwrap(), head);
        }
    }

    #[test]
    fn methods_that_imply_a_body_say_when_there_is_none() {
        for method in ["POST", "PUT", "PATCH"] {
            let want = "/a?b HTTP/1.1\r\nHost: h:81\r\n<agent>Accept: */*\r\nContent-Length: 0";
            check(method, method, &[], "", true, &format!("{method} {want}\r\n\r\n"));
        }
    }
}
