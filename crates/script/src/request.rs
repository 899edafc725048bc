//! Requests of a script: from what it calls to what goes out, redirections, and back.

use crate::message::{
    Operation, RawResponse, Reads, ScriptRequest, ScriptResponse, Statuses, UrlOrigin,
};
use crate::shared::{Record, Shared};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use knee_load::session::{MadeRequest, Origin, encode_path, remove_dot_segments};
use knee_load::spec::Url;
use knee_load::time::Nanos;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// What a script asks for.
#[derive(Default)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Cookies of this request, and whether each takes the place of one of the jar.
    pub(crate) cookies: Vec<(String, String, bool)>,
    /// The name of its row, if it has one.
    pub(crate) name: Option<String>,
    pub(crate) timeout: Option<Nanos>,
    pub(crate) redirects: u32,
    pub(crate) jar: usize,
    pub(crate) expects: Option<Statuses>,
    pub(crate) reads: Reads,
    /// Its tags; none where no threshold asks for any.
    pub(crate) tags: BTreeMap<String, String>,
    /// Why k6 sends no such request, where it does not.
    pub(crate) refused: Option<String>,
}

impl UrlOrigin {
    /// Reads what `url` begins with.
    fn parse(shared: &Shared, text: &str, url: &str) -> Result<UrlOrigin, String> {
        let (scheme, authority) = text.split_once("://").unwrap_or_default();
        let is_secure = match &*scheme.to_ascii_lowercase() {
            "http" => false,
            "https" => true,
            _ => return Err(format!("invalid URL '{url}': its scheme is not http or https")),
        };
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user.to_owned()), host),
            None => (None, authority),
        };
        let url = Url::parse(&format!("{scheme}://{host}")).map_err(|error| error.to_string())?;
        let server = shared.server(&Origin::new(is_secure, url.host()));
        Ok(UrlOrigin { is_secure, authority: url.host().into(), user, server })
    }

    fn server(&self) -> Result<u16, String> {
        self.server.ok_or_else(|| {
            let scheme = if self.is_secure { "https" } else { "http" };
            let host = &self.authority;
            format!(
                "{host} was not known before the load: give it with --script-host {scheme}://{host}"
            )
        })
    }
}

/// Texts of origins that a user remembers.
const ORIGINS_MAX: usize = 32;

/// A URL, taken apart.
struct UrlParts {
    origin: Rc<UrlOrigin>,
    path: Vec<u8>,
}

impl UrlParts {
    fn parse(shared: &Shared, text: &str) -> Result<UrlParts, String> {
        let wrong = |why: &str| format!("invalid URL '{text}': {why}");
        let text = text.split_once('#').map_or(text, |(before, _)| before).trim();
        let mut known = shared.url_origins.borrow_mut();
        let is_it = |(origin, _): &&(String, Rc<UrlOrigin>)| {
            let rest = text.strip_prefix(&**origin);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
        };
        let (origin, path) = match known.iter().find(is_it) {
            Some((origin, made)) => (Rc::clone(made), &text[origin.len()..]),
            None => {
                let Some(scheme) = text.find("://") else {
                    return Err(wrong("expected http://HOST/PATH or https://HOST/PATH"));
                };
                let host = scheme + "://".len();
                let end = text[host..].find(['/', '?']).map_or(text.len(), |at| host + at);
                let (origin, path) = text.split_at(end);
                let made = Rc::new(UrlOrigin::parse(shared, origin, text)?);
                known.truncate(ORIGINS_MAX - 1);
                known.insert(0, (origin.to_owned(), Rc::clone(&made)));
                (made, path)
            }
        };
        let slash = if path.starts_with('/') { "" } else { "/" };
        let mut path = [slash, path].concat().into_bytes();
        if path.iter().any(u8::is_ascii_control) {
            return Err(wrong("it holds a control character"));
        }
        encode_target(&mut path);
        Ok(UrlParts { origin, path })
    }
}

/// The URL of a request, without user information.
pub(crate) fn url_of(made: &MadeRequest) -> String {
    let scheme = if made.is_secure { "https" } else { "http" };
    format!("{scheme}://{}{}", made.authority, text(&made.path))
}

/// Encodes what a request line cannot have. A query stays as it is but for blanks, as with k6.
fn encode_target(target: &mut Vec<u8>) {
    let query = target.iter().position(|byte| *byte == b'?').unwrap_or(target.len());
    let query = target.split_off(query);
    encode_path(target);
    for byte in query {
        match byte {
            b' ' => target.extend_from_slice(b"%20"),
            other => target.push(other),
        }
    }
}

/// The server and the path of a URL, for cookies.
pub(crate) fn place_of(shared: &Shared, url: &str) -> Result<(u16, Vec<u8>), String> {
    let parts = UrlParts::parse(shared, url)?;
    Ok((parts.origin.server()?, parts.path))
}

/// Sends a request. The number of its operation. Where k6 sends no such request, its response has
/// status 0 and an error.
///
/// # Errors
/// Its server was not known before the load, or too many requests are under way.
pub(crate) fn send(shared: &Shared, mut asked: Asked) -> Result<u32, String> {
    if shared.operations.borrow().len() + shared.arrived.borrow().len() >= UNDER_WAY_MAX {
        return Err(format!("more than {UNDER_WAY_MAX} requests of a user under way"));
    }
    let number = shared.next_operation.get();
    shared.next_operation.set(number.wrapping_add(1));
    shared.reset_computed();
    let reads = asked.reads;
    let parts = match asked.refused.take() {
        Some(why) => Err(why),
        None => UrlParts::parse(shared, &asked.url),
    };
    let (why, asked) = match parts {
        Ok(parts) => {
            let mut operation = operation(shared, asked, parts)?;
            match operation.go_out(shared, number) {
                Ok(()) => {
                    shared.operations.borrow_mut().push((number, operation));
                    return Ok(number);
                }
                Err(why) => (why, operation.asked),
            }
        }
        Err(why) => (why, asked.url),
    };
    shared.warn(&format!("no request was sent: {why}"));
    let response =
        ScriptResponse { error: Some((why, INVALID_REQUEST)), ..ScriptResponse::default() };
    let raw = RawResponse { response, asked, sent: None, reads };
    shared.arrived.borrow_mut().push((number, raw));
    Ok(number)
}

/// Requests that a user may have under way at once, with those that nobody has asked for yet.
const UNDER_WAY_MAX: usize = 10_000;

/// k6's number for a request that cannot be sent.
const INVALID_REQUEST: u16 = 1000;

/// The operation of a request to this URL.
fn operation(shared: &Shared, asked: Asked, parts: UrlParts) -> Result<Operation, String> {
    let UrlParts { origin, path } = parts;
    let server = origin.server()?;
    let mut headers = asked.headers;
    if let Some(user) = &origin.user
        && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
    {
        let user = percent_encoding::percent_decode_str(user).collect::<Vec<u8>>();
        headers.push(("Authorization".to_owned(), format!("Basic {}", STANDARD.encode(&user))));
    }
    let mut tags = BTreeMap::new();
    if shared.setup.script.has_tagged() {
        tags = shared.tags(asked.tags);
        tags.entry("name".to_owned())
            .or_insert_with(|| asked.name.clone().unwrap_or(asked.url.clone()));
    }
    let row = match asked.name {
        Some(name) => shared.row(&name),
        None => {
            let end = path.iter().position(|b| *b == b'?').unwrap_or(path.len());
            let path = text(&path[..end]);
            shared.row(&[&*asked.method, &*path].join(" "))
        }
    };
    let made = MadeRequest {
        server,
        is_secure: origin.is_secure,
        method: asked.method,
        authority: Arc::clone(&origin.authority),
        path,
        headers,
        body: asked.body.into(),
        reads_body: asked.reads != Reads::Nothing,
    };
    let sent = ScriptRequest {
        made: Arc::new(made),
        row,
        called_at: shared.now(),
        made_within: Nanos::ZERO,
        timeout: asked.timeout,
        expects: asked.expects,
    };
    Ok(Operation {
        sent,
        with_cookies: None,
        cookies: asked.cookies,
        redirects_left: asked.redirects,
        jar: asked.jar,
        reads: asked.reads,
        asked: asked.url,
        tags,
    })
}

/// Whether a request line and headers can be made of these: no part ends its line or begins another.
fn check_head(made: &MadeRequest) -> Result<(), String> {
    let is_bad = |text: &str| text.bytes().any(|b| b.is_ascii_control() && b != b'\t');
    if !knee_load::spec::is_token(&made.method) {
        return Err(format!("invalid method '{}'", made.method.escape_debug()));
    }
    let bad = |(name, value): &&(String, String)| !knee_load::spec::is_token(name) || is_bad(value);
    match made.headers.iter().find(bad) {
        Some((name, _)) => Err(format!("invalid header '{}'", name.escape_debug())),
        None => Ok(()),
    }
}

/// A cookie as Go's client writes it, which k6 sends with: without what would end it, and in quotes
/// where its value has a blank or a comma.
pub(crate) fn cookie_pair(name: &str, value: &str) -> String {
    let name = name.replace(['\n', '\r'], "-");
    let value = cookie_value(value);
    let quote = if value.contains([' ', ',']) { "\"" } else { "" };
    format!("{name}={quote}{value}{quote}")
}

/// A text without what the value of a cookie cannot have.
pub(crate) fn cookie_value(text: &str) -> String {
    text.chars().filter(|c| matches!(c, ' '..='~') && !['"', ';', '\\'].contains(c)).collect()
}

impl Operation {
    /// Hands the request out, with the cookies that it has now, unless its head cannot be sent.
    fn go_out(&mut self, shared: &Shared, number: u32) -> Result<(), String> {
        let jars = shared.jars.borrow();
        let jar = jars.get(self.jar).filter(|jar| !jar.is_empty());
        if jar.is_some() || !self.cookies.is_empty() {
            let made = Arc::make_mut(&mut self.sent.made);
            let place = (made.server, &made.path[..]);
            let of_jar = jar.map(|jar| jar.sent(place, shared.realtime_ns()));
            let is_replaced = |name: &[u8]| {
                self.cookies.iter().any(|(own, _, replaces)| *replaces && own.as_bytes() == name)
            };
            let kept = of_jar.into_iter().flatten().filter(|(name, _)| !is_replaced(name));
            let own = self.cookies.iter().map(|(name, value, _)| cookie_pair(name, value));
            let pairs = own.chain(kept.map(|(name, value)| cookie_pair(&text(name), &text(value))));
            let line = pairs.collect::<Vec<_>>().join("; ");
            let mut headers = made.headers.iter_mut();
            let at = headers.position(|(name, _)| name.eq_ignore_ascii_case("cookie"));
            self.with_cookies = match at {
                _ if line.is_empty() => None,
                Some(at) => {
                    let joined = format!("{}; {line}", made.headers[at].1);
                    Some((at, Some(std::mem::replace(&mut made.headers[at].1, joined))))
                }
                None => {
                    made.headers.push(("Cookie".to_owned(), line));
                    Some((made.headers.len() - 1, None))
                }
            };
        }
        check_head(&self.sent.made)?;
        shared.out.borrow_mut().push_back((number, self.sent.clone()));
        Ok(())
    }

    /// Records the response in the metrics of thresholds that ask for its tags.
    fn record(&self, shared: &Shared, response: &ScriptResponse) {
        if !shared.setup.script.has_tagged() {
            return;
        }
        let status = response.status;
        let is_expected = match &self.sent.expects {
            None => (1..400).contains(&status),
            Some(all) => all.iter().any(|(low, high)| (*low..=*high).contains(&status)),
        };
        let mut tags = self.tags.clone();
        for (name, value) in [
            ("method", self.sent.made.method.clone()),
            ("url", url_of(&self.sent.made)),
            ("status", status.to_string()),
            ("expected_response", is_expected.to_string()),
        ] {
            tags.insert(name.to_owned(), value);
        }
        let ms = |times: &[Nanos]| Some(times.iter().map(|t| t.0 as f64 / 1e6).sum());
        let t = response.timings;
        shared.record_tagged(&tags, |metric| match metric {
            "http_reqs" => Some(1.0),
            "http_req_failed" => Some(f64::from(!is_expected)),
            "http_req_duration" => ms(&[t.sending, t.waiting, t.receiving]),
            "http_req_blocked" => ms(&[t.blocked]),
            "http_req_connecting" => ms(&[t.connecting]),
            "http_req_tls_handshaking" => ms(&[t.tls_handshaking]),
            "http_req_sending" => ms(&[t.sending]),
            "http_req_waiting" => ms(&[t.waiting]),
            "http_req_receiving" => ms(&[t.receiving]),
            _ => None,
        });
    }

    /// Whether a response redirects, and that is followed (RFC 9110 §15.4): the operation is then
    /// that of the next request.
    ///
    /// # Errors
    /// It redirects to what no request goes to.
    fn redirected(&mut self, shared: &Shared, response: &ScriptResponse) -> Result<bool, String> {
        let keeps = match response.status {
            301..=303 => false,
            307 | 308 => true,
            _ => return Ok(false),
        };
        let location = header(&response.head, "location").unwrap_or_default();
        if self.redirects_left == 0 || location.is_empty() {
            return Ok(false);
        }
        let before = url_of(&self.sent.made);
        let url = join(&before, &location);
        let not = |why: String| format!("a redirection to {url} was not followed: {why}");
        if location.contains(char::REPLACEMENT_CHARACTER) {
            return Err(not("it is not UTF-8".to_owned()));
        }
        let UrlParts { origin: to, path } = UrlParts::parse(shared, &url).map_err(not)?;
        let server = to.server().map_err(not)?;
        self.redirects_left -= 1;
        let made = Arc::make_mut(&mut self.sent.made);
        match self.with_cookies.take() {
            Some((at, Some(own))) => made.headers[at].1 = own,
            Some((at, None)) => drop(made.headers.remove(at)),
            None => {}
        }
        if !keeps {
            if made.method != "HEAD" {
                made.method = "GET".to_owned();
            }
            made.body = Arc::default();
            made.headers.retain(|(name, _)| !name.to_ascii_lowercase().starts_with("content-"));
        }
        if (server, &to.authority) != (made.server, &made.authority) {
            let stays =
                |name: &str| !["authorization", "www-authenticate", "cookie"].contains(&name);
            made.headers.retain(|(name, _)| stays(&name.to_ascii_lowercase()));
        }
        // As Go's client does, which k6 sends with.
        made.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("referer"));
        if to.is_secure || !made.is_secure {
            made.headers.push(("Referer".to_owned(), before));
        }
        (made.server, made.is_secure, made.authority, made.path) =
            (server, to.is_secure, Arc::clone(&to.authority), path);
        self.sent.called_at = Nanos::MAX;
        Ok(true)
    }
}

/// See [`crate::User::respond`].
pub(crate) fn respond(shared: &Shared, number: u32, mut response: ScriptResponse) -> bool {
    let Some(mut operation) = taken(&shared.operations, number) else { return false };
    let made = &operation.sent.made;
    if let Some(jar) = shared.jars.borrow_mut().get_mut(operation.jar) {
        let origins = shared.origins.borrow();
        for cookie in all_of(&response.head, "set-cookie") {
            let place = (made.server, &made.path[..]);
            jar.take(cookie.as_bytes(), place, &origins, shared.realtime_ns());
        }
    }
    operation.record(shared, &response);
    let led = operation.redirected(shared, &response).and_then(|leads| {
        if leads {
            operation.go_out(shared, number)?;
        }
        Ok(leads)
    });
    match led {
        Ok(true) => {
            shared.operations.borrow_mut().push((number, operation));
            return false;
        }
        Ok(false) => {}
        Err(why) => {
            shared.warn(&why);
            shared.record(Record::LedAway);
            response.error = Some((why, INVALID_REQUEST));
        }
    }
    let Operation { sent, reads, asked, .. } = operation;
    let raw = RawResponse { response, asked, sent: Some(sent.made), reads };
    shared.arrived.borrow_mut().push((number, raw));
    true
}

/// Takes what has this number. There are few of them.
pub(crate) fn taken<T>(all: &RefCell<Vec<(u32, T)>>, number: u32) -> Option<T> {
    let mut all = all.borrow_mut();
    let at = all.iter().position(|(own, _)| *own == number)?;
    Some(all.swap_remove(at).1)
}

/// The value of the first header of this name.
pub(crate) fn header<'a>(head: &'a [u8], name: &str) -> Option<Cow<'a, str>> {
    all_of(head, name).next()
}

/// The values of all headers of this name.
pub(crate) fn all_of<'a>(head: &'a [u8], name: &str) -> impl Iterator<Item = Cow<'a, str>> {
    let mut rest = head;
    let lines = std::iter::from_fn(move || {
        let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
        let line = rest.split_off(..end)?;
        (!line.is_empty()).then_some(line)
    });
    lines.filter_map(move |line| {
        let (own, value) = line.split_at_checked(name.len())?;
        let value = value.strip_prefix(b":")?;
        own.eq_ignore_ascii_case(name.as_bytes()).then(|| text(value.trim_ascii()))
    })
}

/// Bytes as text. Most are that already, which is found out faster than by the library.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// The URL that a reference leads to (RFC 3986 §5.2).
pub(crate) fn join(base: &str, reference: &str) -> String {
    let reference = reference.trim();
    let Some((scheme, rest)) = base.split_once("://") else {
        return reference.to_owned();
    };
    let before_path = reference.split(['/', '?', '#']).next().unwrap_or_default();
    if before_path.contains(':') {
        return reference.to_owned();
    }
    if let Some(rest) = reference.strip_prefix("//") {
        return format!("{scheme}://{rest}");
    }
    let rest = rest.split('#').next().unwrap_or_default();
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (plain, query) = path.split_at(path.find('?').unwrap_or(path.len()));
    let mut path = match reference.chars().next() {
        None | Some('#') => format!("{plain}{query}"),
        Some('/') => reference.to_owned(),
        Some('?') => format!("{plain}{reference}"),
        Some(_) => {
            let folder = plain.rfind('/').map_or("", |at| &plain[..at]);
            format!("{folder}/{reference}")
        }
    }
    .into_bytes();
    remove_dot_segments(&mut path, 0);
    format!("{scheme}://{authority}{}", String::from_utf8_lossy(&path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user::tests::setup;

    #[test]
    fn references_are_resolved() {
        for (base, reference, want) in [
            ("http://h/a/b", "c", "http://h/a/c"),
            ("http://h", "c?x", "http://h/c?x"),
            ("http://h/a/b?q", "?r", "http://h/a/b?r"),
            ("http://h/a/b", "../../c", "http://h/c"),
            ("http://h/a/b?q", "", "http://h/a/b?q"),
            ("https://h/a", "//i/c", "https://i/c"),
            ("http://h/a", "https://i:8/c#d", "https://i:8/c#d"),
            ("http://h/a", "/x:y", "http://h/x:y"),
        ] {
            assert_eq!(join(base, reference), want, "{base} {reference}");
        }
    }

    #[test]
    fn urls_are_taken_apart() {
        let shared = Shared::new(setup(""));
        let parts = UrlParts::parse(&shared, "http://u:p@H.test:80/a b?c=d e#f").unwrap();
        let UrlOrigin { authority, user, .. } = &*parts.origin;
        assert_eq!((&**authority, user.as_deref()), ("H.test", Some("u:p")));
        assert_eq!(parts.path, b"/a%20b?c=d%20e");
        for _ in 0..2 {
            let parts = UrlParts::parse(&shared, "https://h:444").unwrap();
            assert_eq!((&*parts.origin.authority, &*parts.path), ("h:444", &b"/"[..]));
        }
        for bad in ["", "/a", "ftp://h", "http://", "http://h/\n\0"] {
            assert!(UrlParts::parse(&shared, bad).is_err(), "{bad:?}");
        }
    }
}
