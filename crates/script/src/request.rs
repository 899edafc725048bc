//! Requests of a script: from what it calls to what goes out, redirections, and back.

use crate::shared::Shared;
use knee_load::session::{MadeRequest, Origin, encode_path, remove_dot_segments};
use knee_load::spec::Url;
use knee_load::time::Nanos;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Ranges of statuses, both ends included.
pub(crate) type Statuses = Rc<[(u16, u16)]>;

/// A request that goes out.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptRequest {
    /// The request.
    pub made: MadeRequest,
    /// Its row in the report.
    pub row: u32,
    /// When the script called it, by the user's time; [`Nanos::MAX`] where it follows a redirection.
    pub called_at: Nanos,
    /// Its time limit; `None`: that of the run.
    pub timeout: Option<Nanos>,
    /// Statuses that are no failure, both ends included; `None`: those below 400.
    pub expects: Option<Rc<[(u16, u16)]>>,
}

/// What came for a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScriptResponse {
    /// The status; 0 without a response.
    pub status: u16,
    /// The header lines, each with CR LF at its end.
    pub head: Vec<u8>,
    /// The body, transfer codings undone.
    pub body: Vec<u8>,
    /// Why there is no response, and k6's number for that.
    pub error: Option<(String, u16)>,
    /// Where the time went.
    pub timings: ScriptTimings,
    /// `HTTP/1.1` or `HTTP/2.0`.
    pub version: &'static str,
}

/// Where the time of a request went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScriptTimings {
    /// Until a connection was free for it.
    pub blocked: Nanos,
    /// Until that was established.
    pub connecting: Nanos,
    /// Until that was secured.
    pub tls_handshaking: Nanos,
    /// Until the kernel had the request.
    pub sending: Nanos,
    /// Until the first byte of the response.
    pub waiting: Nanos,
    /// Until the last one.
    pub receiving: Nanos,
}

/// What a script reads of a response's body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reads {
    Nothing,
    Bytes,
    #[default]
    Text,
}

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
}

/// A request under way, with the redirections that it follows.
pub(crate) struct Operation {
    sent: ScriptRequest,
    url: String,
    headers: Vec<(String, String)>,
    cookies: Vec<(String, String, bool)>,
    redirects_left: u32,
    jar: usize,
    reads: Reads,
    asked: String,
    tags: BTreeMap<String, String>,
}

/// A response for the script.
pub(crate) struct RawResponse {
    pub(crate) response: ScriptResponse,
    /// The URL that it came from.
    pub(crate) url: String,
    /// The URL that was asked for.
    pub(crate) asked: String,
    /// The request that it answers.
    pub(crate) sent: MadeRequest,
    pub(crate) reads: Reads,
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

/// Sends a request. The number of its operation.
pub(crate) fn send(shared: &Shared, asked: Asked) -> Result<u32, String> {
    let mut parts = UrlParts::parse(&asked.url)?;
    let server = shared.server(&parts.origin()).ok_or_else(|| unknown(&parts.authority))?;
    for (name, value) in &asked.headers {
        let is_bad = |text: &str| text.bytes().any(|b| b.is_ascii_control() && b != b'\t');
        if !knee_load::spec::is_token(name) || is_bad(value) {
            return Err(format!("invalid header '{}'", name.escape_debug()));
        }
    }
    let mut headers = asked.headers;
    if let Some(user) = parts.user.take()
        && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
    {
        let user = percent_encoding::percent_decode_str(&user).collect::<Vec<u8>>();
        headers
            .push(("Authorization".to_owned(), format!("Basic {}", crate::natives::base64(&user))));
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
        timeout: asked.timeout,
        expects: asked.expects,
    };
    let number = shared.next_operation.get();
    shared.next_operation.set(number.wrapping_add(1));
    let mut operation = Operation {
        sent,
        url,
        headers,
        cookies: asked.cookies,
        redirects_left: asked.redirects,
        jar: asked.jar,
        reads: asked.reads,
        asked: asked.url,
        tags,
    };
    operation.go_out(shared, number);
    shared.operations.borrow_mut().insert(number, operation);
    shared.reset_computed();
    Ok(number)
}

impl Operation {
    /// Hands the request out, with the cookies that it has now.
    fn go_out(&mut self, shared: &Shared, number: u32) {
        let made = &mut self.sent.made;
        made.headers.clone_from(&self.headers);
        let jars = shared.jars.borrow();
        let place = (made.server, &made.path[..]);
        let of_jar = jars.get(self.jar).map(|jar| jar.sent(place, shared.realtime_ns()));
        let is_replaced = |name: &[u8]| {
            self.cookies.iter().any(|(own, _, replaces)| *replaces && own.as_bytes() == name)
        };
        let kept = of_jar.into_iter().flatten().filter(|(name, _)| !is_replaced(name));
        let mut line = String::new();
        let mut put = |name: &str, value: &str| {
            if !line.is_empty() {
                line.push_str("; ");
            }
            line.push_str(name);
            line.push('=');
            line.push_str(value);
        };
        self.cookies.iter().for_each(|(name, value, _)| put(name, value));
        for (name, value) in kept {
            put(&String::from_utf8_lossy(name), &String::from_utf8_lossy(value));
        }
        if !line.is_empty() {
            match made.headers.iter_mut().find(|(name, _)| name.eq_ignore_ascii_case("cookie")) {
                Some((_, own)) => *own = format!("{own}; {line}"),
                None => made.headers.push(("Cookie".to_owned(), line)),
            }
        }
        drop(jars);
        shared.out.borrow_mut().push_back((number, self.sent.clone()));
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

    /// Where a response redirects to, if that is followed (RFC 9110 §15.4).
    fn redirected(&mut self, shared: &Shared, response: &ScriptResponse) -> Option<()> {
        let keeps = match response.status {
            301..=303 => false,
            307 | 308 => true,
            _ => return None,
        };
        let location = header(&response.head, "location")?;
        if self.redirects_left == 0 {
            return None;
        }
        let to = UrlParts::parse(&join(&self.url, location)).ok()?;
        let server = shared.server(&to.origin())?;
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
        Some(())
    }
}

/// See [`crate::User::respond`].
pub(crate) fn respond(shared: &Shared, number: u32, response: ScriptResponse) -> bool {
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
    if operation.redirected(shared, &response).is_some() {
        operation.sent.called_at = Nanos::MAX;
        operation.go_out(shared, number);
        shared.operations.borrow_mut().insert(number, operation);
        return false;
    }
    let Operation { sent, url, reads, asked, .. } = operation;
    let raw = RawResponse { response, url, asked, sent: sent.made, reads };
    shared.arrived.borrow_mut().insert(number, raw);
    true
}

/// The value of the first header of this name.
pub(crate) fn header<'a>(head: &'a [u8], name: &str) -> Option<&'a str> {
    all_of(head, name).next()
}

/// The values of all headers of this name.
pub(crate) fn all_of<'a>(head: &'a [u8], name: &str) -> impl Iterator<Item = &'a str> {
    head.split(|byte| *byte == b'\n').filter_map(move |line| {
        let line = std::str::from_utf8(line).ok()?.trim_end_matches('\r');
        let (own, value) = line.split_once(':')?;
        own.eq_ignore_ascii_case(name).then_some(value.trim())
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
