//! A request as an application sees it, of either version of HTTP.

use httparse::{EMPTY_HEADER, Status};
use percent_encoding::percent_decode;

/// Most header fields that are taken.
pub(super) const HEADERS_MAX: usize = 100;

/// Bytes of a body that are kept.
pub(super) const BODY_MAX: usize = 64 * 1024;

/// A request as an application sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AppRequest {
    /// `GET`, `POST`, ….
    pub(super) method: String,
    /// The path with its query.
    pub(super) target: String,
    /// The fields that applications look at, empty if they are not given.
    pub(super) authorization: String,
    pub(super) cookie: String,
    pub(super) content_type: String,
    /// The first [`BODY_MAX`] bytes of the body.
    pub(super) body: Vec<u8>,
    /// Whether the body had more.
    pub(super) is_cut: bool,
}

impl AppRequest {
    /// Reads a whole head of HTTP/1.1 that was parsed before.
    pub(super) fn of_head(head: &[u8]) -> AppRequest {
        let mut request = AppRequest::default();
        let mut headers = [EMPTY_HEADER; HEADERS_MAX];
        let mut parsed = httparse::Request::new(&mut headers);
        if !matches!(parsed.parse(head), Ok(Status::Complete(_))) {
            return request;
        }
        request.method = parsed.method.unwrap_or_default().to_owned();
        request.target = parsed.path.unwrap_or_default().to_owned();
        for header in parsed.headers.iter() {
            request.add_header(header.name.to_ascii_lowercase().as_bytes(), header.value);
        }
        request
    }

    /// Adds a field of HTTP/2, or of HTTP/1.1 with its name in lower case.
    pub(super) fn add_header(&mut self, name: &[u8], value: &[u8]) {
        let text = String::from_utf8_lossy(value);
        let text = text.trim();
        match name {
            b":method" => self.method = text.to_owned(),
            b":path" => self.target = text.to_owned(),
            b"authorization" => self.authorization = text.to_owned(),
            b"content-type" => self.content_type = text.to_owned(),
            // HTTP/2 may cut it into several fields (RFC 9113 8.2.3).
            b"cookie" if self.cookie.is_empty() => self.cookie = text.to_owned(),
            b"cookie" => self.cookie = format!("{}; {text}", self.cookie),
            _ => {}
        }
    }

    /// Adds bytes of the body.
    pub(super) fn add_body(&mut self, bytes: &[u8]) {
        let room = BODY_MAX - self.body.len().min(BODY_MAX);
        self.is_cut |= bytes.len() > room;
        self.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// The path without the query.
    pub(super) fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// A parameter of the query.
    pub(super) fn parameter(&self, name: &str) -> Option<String> {
        let (_, query) = self.target.split_once('?')?;
        form_value(query.as_bytes(), name)
    }

    /// A cookie.
    pub(super) fn cookie(&self, name: &str) -> Option<&str> {
        let pairs = self.cookie.split(';').filter_map(|c| c.split_once('='));
        pairs
            .map(|(key, value)| (key.trim(), value.trim()))
            .find_map(|(key, value)| (key == name).then_some(value))
    }

    /// A value that the body holds as text: of a JSON object, or of form data.
    pub(super) fn value(&self, name: &str) -> Option<String> {
        let is_json = self.content_type.contains("json") || self.body.starts_with(b"{");
        if !is_json {
            return form_value(&self.body, name);
        }
        let document: serde_json::Value = serde_json::from_slice(&self.body).ok()?;
        document.get(name)?.as_str().map(str::to_owned)
    }
}

/// One value of `application/x-www-form-urlencoded` data.
fn form_value(data: &[u8], name: &str) -> Option<String> {
    let pairs = data.split(|&b| b == b'&');
    pairs
        .map(|pair| match pair.iter().position(|&b| b == b'=') {
            Some(at) => (&pair[..at], &pair[at + 1..]),
            None => (pair, &[][..]),
        })
        .find_map(|(key, value)| (decoded(key) == name).then(|| decoded(value)))
}

/// `a+b%20c` is `a b c`; a `%` without two hexadecimal digits stands for itself.
fn decoded(text: &[u8]) -> String {
    let spaced: Vec<u8> = text.iter().map(|&b| if b == b'+' { b' ' } else { b }).collect();
    percent_decode(&spaced).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_again() {
        let request = AppRequest::of_head(
            b"POST /cart?a=1&b=x%20y HTTP/1.1\r\nHost: h\r\nAUTHORIZATION: Bearer t\r\n\
              Cookie: a=1; session=s.1\r\nContent-Type: text/plain\r\n\r\n",
        );
        assert_eq!((request.method.as_str(), request.path()), ("POST", "/cart"));
        assert_eq!(request.parameter("b").as_deref(), Some("x y"));
        assert_eq!(request.parameter("c"), None);
        assert_eq!(request.authorization, "Bearer t");
        assert_eq!(request.cookie("session"), Some("s.1"));
        assert_eq!(request.cookie("sess"), None);
    }

    #[test]
    fn values_come_from_json_and_from_forms() {
        let of = |content_type: &str, body: &str, name: &str| {
            let mut request =
                AppRequest { content_type: content_type.to_owned(), ..AppRequest::default() };
            request.add_body(body.as_bytes());
            request.value(name)
        };
        let json = "application/json; charset=utf-8";
        assert_eq!(of(json, r#"{"a":"b c"}"#, "a").as_deref(), Some("b c"));
        assert_eq!(of("", r#"{"a":"b"}"#, "a").as_deref(), Some("b"));
        for (body, name) in [(r#"{"a":1}"#, "a"), ("{", "a"), ("", "a"), ("[]", "a")] {
            assert_eq!(of(json, body, name), None, "{body}");
        }
        assert_eq!(of("", "x=1&a=b+c%21%", "a").as_deref(), Some("b c!%"));
        assert_eq!(of("", "a&b=2", "a").as_deref(), Some(""));
    }

    #[test]
    fn no_more_of_a_body_is_kept_than_there_is_room_for() {
        let mut request = AppRequest::default();
        request.add_body(&[b'a'; BODY_MAX]);
        assert!(!request.is_cut);
        request.add_body(b"b");
        assert!(request.is_cut && request.body.len() == BODY_MAX);
    }
}
