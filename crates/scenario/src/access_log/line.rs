//! One line of a log.

use knee_load::percent;
use knee_load::spec::is_recordable_path;
use serde_json::Value;
use std::fmt::Write;
use std::sync::LazyLock;
use time::OffsetDateTime;
use time::format_description::{BorrowedFormatItem, parse_borrowed, well_known::Rfc3339};

/// How the lines of a log are written.
#[derive(Clone, Debug, PartialEq)]
pub enum LogFormat {
    /// The combined and the common log format, with whatever follows them:
    /// `HOST IDENT USER [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 …`.
    Combined,
    /// A JSON object.
    Json(LogKeys),
}

/// Where a JSON object has what is looked for. A dot leads into an object. `None`: at the first of
/// the keys that servers use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogKeys {
    /// The time.
    pub time: Option<String>,
    /// The method.
    pub method: Option<String>,
    /// Path and query, or a whole URL.
    pub path: Option<String>,
    /// Who asked.
    pub user: Option<String>,
    /// How long it took, in seconds: then the time is that of its end.
    pub took: Option<String>,
}

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
}

const TIMES: &[&str] =
    &["time", "ts", "timestamp", "@timestamp", "time_iso8601", "msec", "time_local", "StartUTC"];
const METHODS: &[&str] = &["method", "request_method", "request.method", "RequestMethod", "verb"];
const PATHS: &[&str] =
    &["request_uri", "uri", "request.uri", "path", "url", "RequestPath", "target"];
const USERS: &[&str] =
    &["remote_addr", "remote_ip", "request.remote_ip", "client_ip", "clientip", "ClientHost"];
const TOOK: &[&str] = &["request_time", "duration"];

/// From here on a number is no seconds since 1970 but a smaller unit.
const SECONDS_MAX: f64 = 1e11;

impl LogFormat {
    /// The format of this line.
    pub(super) fn of_line(line: &str) -> LogFormat {
        if line.starts_with('{') {
            LogFormat::Json(LogKeys::default())
        } else {
            LogFormat::Combined
        }
    }

    /// Reads a line.
    ///
    /// # Errors
    /// It is no request that can be sent again; why, in words.
    pub(super) fn read(&self, line: &str) -> Result<LoggedRequest, String> {
        match self {
            LogFormat::Combined => read_combined(line),
            LogFormat::Json(keys) => keys.read(line),
        }
    }
}

fn read_combined(line: &str) -> Result<LoggedRequest, String> {
    let (before, rest) = line.split_once('[').ok_or("no time in brackets")?;
    let (date, rest) = rest.split_once(']').ok_or("no time in brackets")?;
    let (_, rest) = rest.split_once('"').ok_or("no request in quotes")?;
    let end = end_of_quoted(rest).ok_or("no request in quotes")?;
    let (at_ns, is_of_second) = time_of(date)?;
    let (method, path) = of_request_line(&rest[..end])?;
    let (method, path) = (method.to_owned(), path_of(&unescaped(path))?);
    let mut names = before.split_whitespace();
    let host = names.next();
    // A name that the server checked says more than an address, behind which many may be.
    let user = names.nth(1).filter(|user| *user != "-").or(host);
    let user = user.map(str::to_owned);
    checked(LoggedRequest { at_ns, is_of_second, method, path, user })
}

impl LogKeys {
    fn read(&self, line: &str) -> Result<LoggedRequest, String> {
        let object: Value = serde_json::from_str(line).map_err(|e| format!("no JSON: {e}"))?;
        let find = |asked: &Option<String>, known: &[&str]| match asked {
            Some(key) => at(&object, key),
            None => known.iter().find_map(|key| at(&object, key)),
        };
        let time = find(&self.time, TIMES).ok_or("no time")?;
        let (mut at_ns, is_of_second) = match time {
            Value::Number(number) => {
                time_of_number(number.as_f64().unwrap_or(f64::NAN), number.is_f64())?
            }
            Value::String(text) => time_of(text)?,
            _ => return Err("no time".to_owned()),
        };
        if let Some(took) = find(&self.took, TOOK).and_then(seconds) {
            // A duration says nothing about the part of a second at which a request ended. On
            // average it is the middle.
            let took = if is_of_second { took.round() } else { took };
            at_ns -= (took * 1e9) as i64;
        }
        let path = find(&self.path, PATHS).and_then(Value::as_str);
        let line = at(&object, "request").and_then(Value::as_str);
        let (method, path) = match (path, line) {
            (Some(path), _) => {
                let method = find(&self.method, METHODS).and_then(Value::as_str).unwrap_or("GET");
                (method, path)
            }
            (None, Some(line)) => of_request_line(line)?,
            (None, None) => return Err("no path".to_owned()),
        };
        let (method, path) = (method.to_owned(), path_of(path)?);
        let user = find(&self.user, USERS).map(|user| match user {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        checked(LoggedRequest { at_ns, is_of_second, method, path, user })
    }
}

/// The value at a key: of that name, or on the way that its dots give.
fn at<'a>(object: &'a Value, key: &str) -> Option<&'a Value> {
    let direct = object.get(key);
    direct.or_else(|| key.split('.').try_fold(object, |value, name| value.get(name)))
}

/// A number of seconds, which some servers write as a text.
fn seconds(value: &Value) -> Option<f64> {
    let seconds = value.as_f64().or_else(|| value.as_str()?.parse().ok())?;
    (0.0..1e6).contains(&seconds).then_some(seconds)
}

/// Where the quote is that ends a text. One behind a backslash is a part of it.
fn end_of_quoted(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    })
}

/// The text that Apache and nginx wrote with escapes: `\"`, `\\` and `\xHH`. Bytes that no path has
/// are percent-encoded.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, escape)) = rest.split_once('\\') {
        out.push_str(before);
        let (byte, length) = match escape.as_bytes() {
            [sign @ (b'"' | b'\\'), ..] => (*sign, 1),
            [b'b', ..] => (0x08, 1),
            [b't', ..] => (b'\t', 1),
            [b'n', ..] => (b'\n', 1),
            [b'v', ..] => (0x0b, 1),
            [b'r', ..] => (b'\r', 1),
            [b'x', a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => {
                (u8::from_str_radix(&escape[1..3], 16).unwrap_or_default(), 3)
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
fn of_request_line(line: &str) -> Result<(&str, &str), String> {
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

/// The latest time of a log, in nanoseconds since 1970: in the year 2128.
const TIME_MAX_NS: i64 = 5_000_000_000_000_000_000;

/// `10/Oct/2000:13:55:36 -0700`.
static CLF: LazyLock<Vec<BorrowedFormatItem<'static>>> = LazyLock::new(|| {
    let form = "[day]/[month repr:short]/[year]:[hour]:[minute]:[second] \
                [offset_hour sign:mandatory][offset_minute]";
    parse_borrowed::<2>(form).unwrap_or_default()
});

/// A time in words: nanoseconds since 1970, and whether it is known to the second only.
fn time_of(text: &str) -> Result<(i64, bool), String> {
    if let Ok(number) = text.parse::<f64>() {
        return time_of_number(number, text.contains('.'));
    }
    let wrong = || format!("'{text}' is no time");
    let parsed = OffsetDateTime::parse(text, &Rfc3339)
        .or_else(|_| OffsetDateTime::parse(text, &CLF[..]))
        .or_else(|_| OffsetDateTime::parse(&text.replacen(' ', "T", 1), &Rfc3339));
    let ns = i64::try_from(parsed.map_err(|_| wrong())?.unix_timestamp_nanos());
    let ns = ns.ok().filter(|ns| (0..TIME_MAX_NS).contains(ns)).ok_or_else(wrong)?;
    Ok((ns, !text.contains(['.', ','])))
}

/// Seconds since 1970, or milliseconds, microseconds or nanoseconds where that is too many.
/// `has_fraction`: it was written with one, be it 0.
fn time_of_number(number: f64, has_fraction: bool) -> Result<(i64, bool), String> {
    let mut seconds = number;
    let mut units = 0;
    while seconds >= SECONDS_MAX && units < 3 {
        seconds /= 1_000.0;
        units += 1;
    }
    let is_time = (0.0..SECONDS_MAX / 20.0).contains(&seconds);
    let is_of_second = units == 0 && !has_fraction;
    is_time
        .then(|| ((seconds * 1e9).round() as i64, is_of_second))
        .ok_or_else(|| format!("{number} is no time"))
}
