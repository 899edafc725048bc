//! One HTTP request.

use super::{ParseError, Url};
use crate::messages::{MessageRules, TimedMessages};
use crate::quantity::quoted;
use crate::session::{Fill, Fills};
use serde::{Deserialize, Serialize};
use std::ops::Deref;
use std::sync::Arc;

/// A request's body: held once, however many requests, specs and workers have it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<u8>", into = "Vec<u8>")]
pub struct Body(Arc<Vec<u8>>);

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Body {
        Body(Arc::new(bytes))
    }
}

impl From<Body> for Vec<u8> {
    fn from(body: Body) -> Vec<u8> {
        Arc::unwrap_or_clone(body.0)
    }
}

impl Body {
    /// Whether it is held where another is.
    pub fn shares(&self, other: &Body) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Deref for Body {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// One request, ready to be serialised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpRequest {
    /// `GET`, `POST`, ….
    pub method: String,
    /// Path and query, beginning with `/`.
    pub path: String,
    /// The Host header's value.
    pub host: String,
    /// Further headers in the order given. One named `Host` replaces `host`.
    pub headers: Vec<(String, String)>,
    /// The body; a Content-Length is sent where it is not empty or the method implies one.
    pub body: Body,
    /// Relative weight where requests are picked at random, at least 1.
    pub weight: u32,
    /// Where something is put in each time it is sent: in the order of the parts, and within a part
    /// from its begin on. What is put in is up to the sessions that send it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holes: Vec<Hole>,
    /// Rules for the messages of its responses; `None`: those by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<Box<MessageRules>>,
    /// How its own messages leave; `None`: its body is sent at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timed: Option<Box<TimedMessages>>,
    /// Whether a call of gRPC is answered by any number of messages, and not by exactly one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub answers_stream: bool,
}

/// A place in a request where something is put in each time it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hole {
    /// In which part.
    pub part: Part,
    /// Before which byte of it, at a border of characters; its length: at its end.
    pub at: u32,
}

/// A part of a request that may have holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The path, with the query.
    Path,
    /// The value of the header of this number. A header that has a hole and nothing else is left
    /// out where nothing is put in.
    Header(u16),
    /// The body.
    Body,
}

/// A piece of a part of a request: text or a hole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Bytes, at least one.
    Text(Vec<u8>),
    /// The filling of the hole with this number.
    Hole(usize),
}

impl Cut {
    /// Puts it, its hole filled.
    #[inline]
    pub fn put(&self, fills: &Fills, out: &mut Vec<u8>) {
        out.extend_from_slice(match self {
            Cut::Text(text) => text,
            Cut::Hole(hole) => fills.get(*hole),
        });
    }
}

impl HttpRequest {
    /// A part of the request, cut at its holes.
    pub fn cut(&self, part: Part) -> Vec<Cut> {
        let text: &[u8] = match part {
            Part::Path => self.path.as_bytes(),
            Part::Header(number) => self.headers[usize::from(number)].1.as_bytes(),
            Part::Body => &self.body,
        };
        let mut cuts = Vec::new();
        let put_text = |text: &[u8], cuts: &mut Vec<Cut>| {
            if !text.is_empty() {
                cuts.push(Cut::Text(text.to_vec()));
            }
        };
        let mut from = 0;
        let all = self.holes.iter().enumerate();
        for (number, hole) in all.filter(|(_, hole)| hole.part == part) {
            let at = (hole.at as usize).clamp(from, text.len());
            put_text(&text[from..at], &mut cuts);
            cuts.push(Cut::Hole(number));
            from = at;
        }
        put_text(&text[from..], &mut cuts);
        cuts
    }

    /// A request that cannot break the framing of the connection that carries it.
    ///
    /// # Errors
    /// A method that is no token (RFC 9110 §9.1) or is CONNECT, a header that [`parse_header`]
    /// would refuse, or two Host headers. Also a Transfer-Encoding, a Content-Length other than the
    /// body's, or a weight of 0.
    pub fn new(
        method: &str,
        url: &Url,
        headers: Vec<(String, String)>,
        body: impl Into<Body>,
        weight: u32,
    ) -> Result<HttpRequest, ParseError> {
        check_method(method)?;
        if weight == 0 {
            return error("a weight of 0: give 1 or more, or leave the request out");
        }
        let mut request = HttpRequest {
            method: method.to_owned(),
            path: url.path().to_owned(),
            host: url.host().to_owned(),
            headers: Vec::with_capacity(headers.len()),
            body: body.into(),
            weight,
            holes: Vec::new(),
            messages: None,
            timed: None,
            answers_stream: false,
        };
        for (name, value) in headers {
            request.add_header(name, value)?;
        }
        Ok(request)
    }

    /// The same request with those of `common` that it does not name itself, after its own.
    ///
    /// # Errors
    /// As [`HttpRequest::new`].
    pub fn with_common_headers(
        mut self,
        common: &[(String, String)],
    ) -> Result<HttpRequest, ParseError> {
        let own = self.clone();
        for (name, value) in common {
            if !own.has_header(name) {
                self.add_header(name.clone(), value.clone())?;
            }
        }
        Ok(self)
    }

    /// Leaves out headers, by their numbers and names, with their holes and what fills these.
    pub fn leave_out_headers(
        &mut self,
        fills: &mut Vec<Fill>,
        is_left_out: impl Fn(u16, &str) -> bool,
    ) {
        let mut kept = Vec::new();
        for (number, header) in (0u16..).zip(std::mem::take(&mut self.headers)) {
            let is_kept = !is_left_out(number, &header.0);
            kept.push(is_kept.then_some(self.headers.len() as u16));
            self.headers.extend(is_kept.then_some(header));
        }
        let holes = std::mem::take(&mut self.holes).into_iter();
        for (hole, fill) in holes.zip(std::mem::take(fills)) {
            let part = match hole.part {
                Part::Header(number) => kept[usize::from(number)].map(Part::Header),
                part => Some(part),
            };
            if let Some(part) = part {
                self.holes.push(Hole { part, ..hole });
                fills.push(fill);
            }
        }
    }

    /// Whether one of `headers` has this name; names have no case.
    pub fn has_header(&self, name: &str) -> bool {
        self.headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
    }

    fn add_header(&mut self, name: String, value: String) -> Result<(), ParseError> {
        check_header(&name, &value)?;
        if name.eq_ignore_ascii_case("transfer-encoding") {
            return error("Transfer-Encoding: a body is sent whole, with its Content-Length");
        }
        if name.eq_ignore_ascii_case("host") && self.has_header("host") {
            return error("two Host headers: a request has one");
        }
        if name.eq_ignore_ascii_case("content-length") {
            let bytes = self.body.len();
            if value != bytes.to_string() || self.has_header("content-length") {
                return error(&format!(
                    "Content-Length {}: the body has {bytes} bytes; leave the header out",
                    quoted(&value)
                ));
            }
        }
        self.headers.push((name, value));
        Ok(())
    }
}

/// `Name: value` as name and value, the blanks around the value left out.
///
/// # Errors
/// No `:`, a name that is no token (RFC 9110 §5.1), control characters in the value.
pub fn parse_header(text: &str) -> Result<(String, String), ParseError> {
    let Some((name, value)) = text.split_once(':') else {
        return error(&format!("{} is no header: write 'Name: value'", quoted(text)));
    };
    let value = value.trim_matches([' ', '\t']);
    check_header(name, value)?;
    Ok((name.to_owned(), value.to_owned()))
}

fn check_method(method: &str) -> Result<(), ParseError> {
    if !is_token(method) {
        return error(&format!(
            "{} is no method: write a word such as GET or POST",
            quoted(method)
        ));
    }
    if method.eq_ignore_ascii_case("connect") {
        return error("CONNECT asks a proxy for a tunnel, which is not supported: use GET or POST");
    }
    Ok(())
}

fn check_header(name: &str, value: &str) -> Result<(), ParseError> {
    if !is_token(name) {
        return error(&format!(
            "{} is no header name: letters, digits and '-' without blanks",
            quoted(name)
        ));
    }
    if value.chars().any(|c| c.is_ascii_control() && c != '\t') {
        return error(&format!(
            "the value of {name} holds a control character: a header is one line of text"
        ));
    }
    if value.starts_with([' ', '\t']) || value.ends_with([' ', '\t']) {
        return error(&format!("the value of {name} begins or ends with a blank: leave it out"));
    }
    Ok(())
}

/// Whether a text is a token, as names of headers and cookies are (RFC 9110 §5.6.2).
pub fn is_token(text: &str) -> bool {
    let is_token_byte = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !text.is_empty() && text.bytes().all(is_token_byte)
}

fn error<T>(what: &str) -> Result<T, ParseError> {
    Err(ParseError(what.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Headers<'a> = &'a [(&'a str, &'a str)];

    fn request(method: &str, headers: Headers, body: &str) -> Result<HttpRequest, String> {
        let url = Url::parse("http://h:81/a").unwrap();
        let headers = headers.iter().map(|&(n, v)| (n.to_owned(), v.to_owned())).collect();
        HttpRequest::new(method, &url, headers, body.as_bytes().to_vec(), 1).map_err(|e| e.0)
    }

    #[test]
    fn takes_path_and_host_from_the_url() {
        let request = request("GET", &[("X-A", "1")], "").unwrap();
        assert_eq!((request.path.as_str(), request.host.as_str()), ("/a", "h:81"));
        assert!(request.has_header("x-a") && !request.has_header("x"));
    }

    #[test]
    fn refused() {
        let rows: [(&str, &str, Headers, &str); 14] = [
            ("no method", "", &[], "'' is no method"),
            ("a method with a blank", "GE T", &[], "is no method"),
            ("a method with a line end", "GET /\r\n", &[], "is no method"),
            ("a tunnel", "CONNECT", &[], "tunnel"),
            ("a name with a blank", "GET", &[("A B", "")], "'A B' is no header name"),
            ("an empty name", "GET", &[("", "x")], "'' is no header name"),
            ("a second header smuggled in", "GET", &[("A", "b\r\nC: d")], "value of A"),
            ("a bare LF", "GET", &[("A", "b\nc")], "control character"),
            ("a NUL", "GET", &[("A", "b\0c")], "control character"),
            ("two hosts", "GET", &[("Host", "a"), ("host", "b")], "two Host headers"),
            ("an encoding", "POST", &[("Transfer-Encoding", "chunked")], "sent whole"),
            ("too long a length", "POST", &[("Content-Length", "3")], "has 2 bytes"),
            ("a length that is no number", "POST", &[("content-length", "+2")], "has 2 bytes"),
            ("a blank at the end", "GET", &[("A", "b ")], "ends with a blank"),
        ];
        for (name, method, headers, want) in rows {
            let error = request(method, headers, "ab").expect_err(name);
            assert!(error.contains(want), "{name}: {error}");
            assert!(!error.contains('\n'), "{name}: one line");
        }
        let url = Url::parse("h").unwrap();
        assert!(HttpRequest::new("GET", &url, Vec::new(), Vec::new(), 0).is_err(), "a weight of 0");
    }

    #[test]
    fn accepted() {
        let rows: [(&str, &str, Headers); 5] = [
            ("the body's own length", "POST", &[("Content-Length", "2")]),
            ("another host", "GET", &[("Host", "other")]),
            ("a header twice", "GET", &[("A", "b"), ("A", "c")]),
            ("an empty value", "GET", &[("A", "")]),
            ("text beyond ASCII and a tab", "PURGE", &[("A", "ä\tb")]),
        ];
        for (name, method, headers) in rows {
            assert_eq!(request(method, headers, "ab").map(|_| ()), Ok(()), "{name}");
        }
    }

    #[test]
    fn headers_parse() {
        let rows = [
            ("name and value", "A: b", Ok(("A", "b"))),
            ("no blank after ':'", "A:b", Ok(("A", "b"))),
            ("blanks around the value", "A: \t b c\t ", Ok(("A", "b c"))),
            ("':' in the value", "A: b:c", Ok(("A", "b:c"))),
            ("no value", "A:", Ok(("A", ""))),
            ("no ':'", "A b", Err("'A b' is no header: write 'Name: value'")),
            ("a blank before ':'", "A : b", Err("'A ' is no header name")),
            ("no name", ": b", Err("'' is no header name")),
        ];
        for (name, text, want) in rows {
            match (parse_header(text), want) {
                (Ok((n, v)), Ok(want)) => assert_eq!((n.as_str(), v.as_str()), want, "{name}"),
                (Err(e), Err(want)) => assert!(e.0.contains(want), "{name}: {e}"),
                (got, _) => panic!("{name}: {got:?}"),
            }
        }
    }

    #[test]
    fn common_headers_yield_to_the_requests_own() {
        let common = [("A", "common"), ("B", "1"), ("B", "2")].map(|(n, v)| (n.into(), v.into()));
        let request = request("GET", &[("a", "own")], "").unwrap();
        let request = request.with_common_headers(&common).unwrap();
        let lines: Vec<_> = request.headers.iter().map(|(n, v)| format!("{n}={v}")).collect();
        assert_eq!(lines, ["a=own", "B=1", "B=2"]);
    }
}
