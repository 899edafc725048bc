//! Requests of a script: from what it calls to what goes out, redirections, and back.

use crate::message::{Operation, RawResponse, Reads, ScriptRequest, ScriptResponse, Statuses};
use crate::shared::{Record, Shared};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use knee_load::session::{MadeRequest, Origin, encode_path, remove_dot_segments};
use knee_load::spec::Url;
use knee_load::time::Nanos;
use std::borrow::Cow;
use std::collections::BTreeMap;

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

/// A URL, taken apart.
struct UrlParts {
    is_secure: bool,
    authority: String,
    path: Vec<u8>,
    /// User and password, if given.
    user: Option<String>,
}

impl UrlParts {
    fn parse(text: &str) -> Result<UrlParts, String> {
        let wrong = |why: &str| format!("invalid URL '{text}': {why}");
        let text = text.split_once('#').map_or(text, |(before, _)| before).trim();
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(wrong("expected http://HOST/PATH or https://HOST/PATH"));
        };
        let is_secure = match &*scheme.to_ascii_lowercase() {
            "http" => false,
            "https" => true,
            _ => return Err(wrong("its scheme is not http or https")),
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user.to_owned()), host),
            None => (None, authority),
        };
        let url = Url::parse(&format!("{scheme}://{host}")).map_err(|error| error.to_string())?;
        let slash = if path.starts_with('/') { "" } else { "/" };
        let mut path = format!("{slash}{path}").into_bytes();
        if path.iter().any(u8::is_ascii_control) {
            return Err(wrong("it holds a control character"));
        }
        encode_target(&mut path);
        Ok(UrlParts { is_secure, authority: url.host().to_owned(), path, user })
    }

    /// The URL without user information.
    fn text(&self) -> String {
        let scheme = if self.is_secure { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority, String::from_utf8_lossy(&self.path))
    }

    fn origin(&self) -> Origin {
        Origin::new(self.is_secure, &self.authority)
    }
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
    let parts = UrlParts::parse(url)?;
    let server = shared.server(&parts.origin()).ok_or_else(|| unknown(&parts.authority))?;
    Ok((server, parts.path))
}

fn unknown(host: &str) -> String {
    format!(
        "{host} was not known before the load: write its URL into the script as text, or give it \
         with --script-host"
    )
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
    let (url, reads) = (asked.url.clone(), asked.reads);
    let parts = asked.refused.take().map_or_else(|| UrlParts::parse(&url), Err);
    let sent = match parts {
        Ok(parts) => {
            let mut operation = operation(shared, asked, parts)?;
            let sent = operation.go_out(shared, number);
            sent.map(|()| drop(shared.operations.borrow_mut().insert(number, operation)))
        }
        Err(why) => Err(why),
    };
    if let Err(why) = sent {
        shared.warn(&format!("no request was sent: {why}"));
        let response =
            ScriptResponse { error: Some((why, INVALID_REQUEST)), ..ScriptResponse::default() };
        let raw =
            RawResponse { response, asked: url.clone(), url, sent: MadeRequest::default(), reads };
        shared.arrived.borrow_mut().insert(number, raw);
    }
    Ok(number)
}

/// Requests that a user may have under way at once, with those that nobody has asked for yet.
const UNDER_WAY_MAX: usize = 10_000;

/// k6's number for a request that cannot be sent.
const INVALID_REQUEST: u16 = 1000;

/// The operation of a request to this URL.
fn operation(shared: &Shared, asked: Asked, mut parts: UrlParts) -> Result<Operation, String> {
    let server = shared.server(&parts.origin()).ok_or_else(|| unknown(&parts.authority))?;
    let mut headers = asked.headers;
    if let Some(user) = parts.user.take()
        && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
    {
        let user = percent_encoding::percent_decode_str(&user).collect::<Vec<u8>>();
        headers.push(("Authorization".to_owned(), format!("Basic {}", STANDARD.encode(&user))));
    }
    let path_end = parts.path.iter().position(|b| *b == b'?').unwrap_or(parts.path.len());
    let mut tags = BTreeMap::new();
    if shared.setup.script.has_tagged() {
        tags = shared.tags(asked.tags);
        tags.entry("name".to_owned())
            .or_insert_with(|| asked.name.clone().unwrap_or(asked.url.clone()));
    }
    let row = shared.row(asked.name.unwrap_or_else(|| {
        format!("{} {}", asked.method, String::from_utf8_lossy(&parts.path[..path_end]))
    }));
    let url = parts.text();
    let sent = ScriptRequest {
        made: MadeRequest {
            server,
            is_secure: parts.is_secure,
            method: asked.method,
            authority: parts.authority,
            path: parts.path,
            headers: Vec::new(),
            body: asked.body.into(),
            reads_body: asked.reads != Reads::Nothing,
        },
        row,
        called_at: shared.now(),
        made_within: Nanos::ZERO,
        timeout: asked.timeout,
        expects: asked.expects,
    };
    Ok(Operation {
        sent,
        url,
        headers,
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
        let made = &mut self.sent.made;
        made.headers.clone_from(&self.headers);
        let jars = shared.jars.borrow();
        let place = (made.server, &made.path[..]);
        let of_jar = jars.get(self.jar).map(|jar| jar.sent(place, shared.realtime_ns()));
        let is_replaced = |name: &[u8]| {
            self.cookies.iter().any(|(own, _, replaces)| *replaces && own.as_bytes() == name)
        };
        let kept = of_jar.into_iter().flatten().filter(|(name, _)| !is_replaced(name));
        let own = self.cookies.iter().map(|(name, value, _)| cookie_pair(name, value));
        let text = String::from_utf8_lossy;
        let pairs = own.chain(kept.map(|(name, value)| cookie_pair(&text(name), &text(value))));
        let line = pairs.collect::<Vec<_>>().join("; ");
        if !line.is_empty() {
            match made.headers.iter_mut().find(|(name, _)| name.eq_ignore_ascii_case("cookie")) {
                Some((_, own)) => *own = format!("{own}; {line}"),
                None => made.headers.push(("Cookie".to_owned(), line)),
            }
        }
        drop(jars);
        check_head(made)?;
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
            ("url", self.url.clone()),
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
        let url = join(&self.url, &location);
        let not = |why: String| format!("a redirection to {url} was not followed: {why}");
        if location.contains(char::REPLACEMENT_CHARACTER) {
            return Err(not("it is not UTF-8".to_owned()));
        }
        let to = UrlParts::parse(&url).map_err(not)?;
        let server = shared.server(&to.origin()).ok_or_else(|| not(unknown(&to.authority)))?;
        self.redirects_left -= 1;
        let before = self.url.clone();
        let made = &mut self.sent.made;
        if !keeps {
            if made.method != "HEAD" {
                made.method = "GET".to_owned();
            }
            made.body = std::sync::Arc::default();
            self.headers.retain(|(name, _)| !name.to_ascii_lowercase().starts_with("content-"));
        }
        if (server, &to.authority) != (made.server, &made.authority) {
            let stays =
                |name: &str| !["authorization", "www-authenticate", "cookie"].contains(&name);
            self.headers.retain(|(name, _)| stays(&name.to_ascii_lowercase()));
        }
        // As Go's client does, which k6 sends with.
        self.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("referer"));
        if to.is_secure || !made.is_secure {
            self.headers.push(("Referer".to_owned(), before));
        }
        self.url = to.text();
        (made.server, made.is_secure, made.authority, made.path) =
            (server, to.is_secure, to.authority, to.path);
        self.sent.called_at = Nanos::MAX;
        Ok(true)
    }
}

/// See [`crate::User::respond`].
pub(crate) fn respond(shared: &Shared, number: u32, mut response: ScriptResponse) -> bool {
    let Some(mut operation) = shared.operations.borrow_mut().remove(&number) else {
        return false;
    };
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
            shared.operations.borrow_mut().insert(number, operation);
            return false;
        }
        Ok(false) => {}
        Err(why) => {
            shared.warn(&why);
            shared.record(Record::LedAway);
            response.error = Some((why, INVALID_REQUEST));
        }
    }
    let Operation { sent, url, reads, asked, .. } = operation;
    let raw = RawResponse { response, url, asked, sent: sent.made, reads };
    shared.arrived.borrow_mut().insert(number, raw);
    true
}

/// The value of the first header of this name.
pub(crate) fn header<'a>(head: &'a [u8], name: &str) -> Option<Cow<'a, str>> {
    all_of(head, name).next()
}

/// The values of all headers of this name.
pub(crate) fn all_of<'a>(head: &'a [u8], name: &str) -> impl Iterator<Item = Cow<'a, str>> {
    head.split(|byte| *byte == b'\n').filter_map(move |line| {
        let at = line.iter().position(|byte| *byte == b':')?;
        let is_it = line[..at].eq_ignore_ascii_case(name.as_bytes());
        is_it.then(|| String::from_utf8_lossy(line[at + 1..].trim_ascii()))
    })
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
        let parts = UrlParts::parse("http://u:p@H.test:80/a b?c=d e#f").unwrap();
        assert_eq!((&*parts.authority, parts.user.as_deref()), ("H.test", Some("u:p")));
        assert_eq!(parts.path, b"/a%20b?c=d%20e");
        assert_eq!(UrlParts::parse("https://h:444").unwrap().text(), "https://h:444/");
        for bad in ["", "/a", "ftp://h", "http://", "http://h/\n\0"] {
            assert!(UrlParts::parse(bad).is_err(), "{bad:?}");
        }
    }
}
