//! One line of a log.

use super::moment::LoggedTime;
use core::net::{IpAddr, SocketAddr};
use knee_load::percent;
use knee_load::spec::is_recordable_path;
use std::fmt::Write;

/// A request of a log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LoggedRequest {
    /// When it came, in nanoseconds since 1970.
    pub(super) at_ns: i64,
    /// Its time is known to the second only.
    pub(super) is_of_second: bool,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) user: Option<String>,
    /// When it ended, where that is what the log has and its begin follows from how long it took.
    pub(super) end_ns: Option<i64>,
}

/// What a line says of a request, as it stands there.
#[derive(Debug, Default)]
pub(super) struct LineFields<'a> {
    pub(super) time: Option<LoggedTime>,
    /// The time is that of the begin, whatever else the line says.
    pub(super) is_begin: bool,
    /// How long it took, in seconds.
    pub(super) took_s: Option<f64>,
    /// `GET /path HTTP/1.1`.
    pub(super) line: Option<&'a str>,
    pub(super) method: Option<&'a str>,
    pub(super) path: Option<&'a str>,
    /// A query that the path does not have.
    pub(super) query: Option<&'a str>,
    /// A name that the server checked.
    pub(super) name: Option<String>,
    /// An address, with a port or without, or the first of several.
    pub(super) client: Option<&'a str>,
    /// What begins an escape in the path: `\` of Apache and nginx, `#` of HAProxy, `%` of CloudFront.
    pub(super) escape: Option<char>,
}

impl LineFields<'_> {
    /// The request that they are of.
    pub(super) fn request(self) -> Result<LoggedRequest, String> {
        let LoggedTime { mut ns, is_of_second, .. } = self.time.ok_or("no time")?;
        let mut end_ns = None;
        if let Some(took) = self.took_s.filter(|_| !self.is_begin) {
            // A duration says nothing about the part of a second at which a request ended. On
            // average it is the middle.
            let took = if is_of_second { took.round() } else { took };
            end_ns = Some(ns);
            ns -= (took * 1e9) as i64;
        }
        let query = self.query.map(|query| query.trim_start_matches('?'));
        let query = query.filter(|query| !query.is_empty() && *query != "-");
        let (method, path) = match (self.line.map(of_request_line), self.path, query) {
            (Some(Ok((method, path))), ..) => (method, path.to_owned()),
            (_, Some(path), None) => (self.method.unwrap_or("GET"), path.to_owned()),
            (_, Some(path), Some(query)) => {
                (self.method.unwrap_or("GET"), format!("{path}?{query}"))
            }
            (Some(Err(why)), None, _) => return Err(why),
            (None, None, _) => return Err("no request".to_owned()),
        };
        let path = self.escape.map(|sign| unescaped(&path, sign)).unwrap_or(path);
        let path = path_of(&path)?;
        let client = self.client.filter(|client| !client.is_empty() && *client != "-");
        let user = self.name.filter(|name| !name.is_empty() && name != "-");
        // A name that the server checked says more than an address, behind which many may be.
        let user =
            user.or_else(|| client.map(|client| address_of(client).unwrap_or(client).to_owned()));
        let method = method.to_owned();
        checked(LoggedRequest { at_ns: ns, is_of_second, method, path, user, end_ns })
    }
}

/// The first of several addresses, without a port, which is another one for each connection.
pub(super) fn address_of(text: &str) -> Option<&str> {
    let first = text.split(',').next().unwrap_or_default().trim();
    let bare = first.trim_matches(['[', ']']);
    if bare.parse::<IpAddr>().is_ok() {
        return Some(bare);
    }
    first.parse::<SocketAddr>().ok()?;
    Some(first.rsplit_once(':')?.0.trim_matches(['[', ']']))
}

/// Where the quote is that ends a text. One behind a backslash is a part of it.
pub(super) fn end_of_quoted(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    })
}

/// A text that was written with escapes: `\"`, `\\` and `\xHH` of Apache and nginx, `\u00HH` in JSON,
/// `#HH` of HAProxy, `%HH` of CloudFront. Bytes that no path has are percent-encoded.
fn unescaped(text: &str, sign: char) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, escape)) = rest.split_once(sign) {
        out.push_str(before);
        let (byte, length) = match escape.as_bytes() {
            [a, b, ..] if sign != '\\' && a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => {
                (u8::from_str_radix(&escape[..2], 16).unwrap_or_default(), 2)
            }
            _ if sign != '\\' => (sign as u8, 0),
            [sign @ (b'"' | b'\\'), ..] => (*sign, 1),
            [b'b', ..] => (0x08, 1),
            [b't', ..] => (b'\t', 1),
            [b'n', ..] => (b'\n', 1),
            [b'v', ..] => (0x0b, 1),
            [b'r', ..] => (b'\r', 1),
            [b'x', a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => {
                (u8::from_str_radix(&escape[1..3], 16).unwrap_or_default(), 3)
            }
            [b'u', b'0', b'0', a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => {
                (u8::from_str_radix(&escape[3..5], 16).unwrap_or_default(), 5)
            }
            _ => (b'\\', 0),
        };
        push_byte(&mut out, byte);
        rest = &escape[length..];
    }
    out.push_str(rest);
    out
}

fn push_byte(path: &mut String, byte: u8) {
    if byte.is_ascii_graphic() {
        path.push(char::from(byte));
    } else {
        // A String takes whatever it is given.
        let _ = write!(path, "%{byte:02X}");
    }
}

/// `GET /path HTTP/1.1` as method and path. Blanks within the path are a part of it.
pub(super) fn of_request_line(line: &str) -> Result<(&str, &str), String> {
    let split = line.split_once(' ').filter(|(method, _)| !method.is_empty());
    let (method, rest) = split.ok_or_else(|| format!("'{line}' is no request"))?;
    let path = match rest.rsplit_once(' ') {
        Some((path, version)) if version.starts_with("HTTP/") => path,
        _ => rest,
    };
    Ok((method, path.trim_matches(' ')))
}

/// The path of a URL, or what is a path already, without characters that no path has.
fn path_of(url: &str) -> Result<String, String> {
    if url.contains(char::REPLACEMENT_CHARACTER) {
        return Err(format!("'{url}' is not UTF-8"));
    }
    let is_scheme = |text: &str| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(is_part)
    };
    let path = match url.split_once("://") {
        Some((scheme, rest)) if is_scheme(scheme) => {
            let path = rest.find(['/', '?', '#']).map_or("", |end| &rest[end..]);
            let slash = if path.starts_with('/') { "" } else { "/" };
            format!("{slash}{path}")
        }
        _ => url.to_owned(),
    };
    Ok(percent::url(&path))
}

/// A request that can be sent again.
fn checked(request: LoggedRequest) -> Result<LoggedRequest, String> {
    let LoggedRequest { method, path, .. } = &request;
    if method.is_empty() || !method.bytes().all(|b| b.is_ascii_uppercase()) || method == "CONNECT" {
        return Err(format!("'{method}' is no method that can be sent again"));
    }
    if !is_recordable_path(path) {
        return Err(format!("'{path}' is no path that can be sent again"));
    }
    Ok(request)
}
