//! What a transfer of curl sends.

use super::Transfer;
use crate::import::body::FORM;
use crate::import::builder::{ScenarioBuilder, StepRequest};
use crate::import::data::{self, CurlData, DataKind, ReadFile, url_encoded};
use crate::import::url::encoded;
use crate::import::{error, wrong};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use knee_load::percent;
use knee_load::quantity::ParseError;
use knee_load::session::remove_dot_segments;
use knee_load::spec::{Endpoint, Scheme, Url};

/// The redirections that curl follows where it is asked to.
const REDIRECTS: u32 = 50;

const JSON: &str = "application/json";

/// Options that give data, and how each is read.
const DATA: [(&str, DataKind); 6] = [
    ("--data", DataKind::Data),
    ("--data-ascii", DataKind::Data),
    ("--data-raw", DataKind::Raw),
    ("--data-binary", DataKind::Binary),
    ("--data-urlencode", DataKind::Urlencode),
    ("--json", DataKind::Json),
];

/// Headers that knee sends in any case.
const ALWAYS_SENT: [&str; 3] = ["accept", "host", "user-agent"];

/// Options that say how to connect: those of a run, for which a scenario has no place.
const OF_CONNECTIONS: [&str; 21] = [
    "--proxy",
    "--proxy-user",
    "--noproxy",
    "--unix-socket",
    "--resolve",
    "--interface",
    "--ipv4",
    "--ipv6",
    "--insecure",
    "--http1.1",
    "--http2",
    "--http2-prior-knowledge",
    "--http3",
    "--http3-only",
    "--no-alpn",
    "--cacert",
    "--cert",
    "--key",
    "--tls-max",
    "--tlsv1.2",
    "--tlsv1.3",
];

/// Options by which curl proves a password without sending it.
const PROOFS: [&str; 6] =
    ["--anyauth", "--aws-sigv4", "--digest", "--negotiate", "--ntlm", "--ntlm-wb"];

/// One request of a transfer.
struct CurlRequest {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: CurlBody,
    /// What knee cannot send as curl does.
    unsupported: Vec<String>,
}

enum CurlBody {
    None,
    Data(Vec<CurlData>),
    /// Parts in the grammar of `--form`.
    Form(Vec<String>),
    File(String),
}

impl Transfer {
    /// Makes a step of each URL.
    pub(super) fn add_to(
        &self,
        all: &mut ScenarioBuilder,
        read: ReadFile,
    ) -> Result<(), ParseError> {
        for option in OF_CONNECTIONS.iter().filter(|option| self.has(option)) {
            let value = self.last(option).unwrap_or_default();
            all.leave_out(format!("option {option} {value}").trim_end());
        }
        for url in &self.urls {
            let mut request = self.request(url, read)?;
            let parsed = Url::parse(&request.url).ok();
            let moved = parsed.and_then(|url| self.moved(&url).map(|moved| (url, moved)));
            if let Some((parsed, (url, name))) = moved {
                request.url = url;
                if !request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
                    request.headers.push(("Host".to_owned(), parsed.host().to_owned()));
                }
                if let Some(name) = name {
                    all.leave_out(format!("option --connect-to: give knee run --sni {name}"));
                }
            }
            for what in request.unsupported {
                all.leave_out(what);
            }
            let body = match request.body {
                CurlBody::None => Vec::new(),
                CurlBody::Data(pieces) => data::join(&pieces, read).map_err(wrong)?,
                CurlBody::Form(parts) => {
                    let form = data::multipart(&parts, read).map_err(wrong)?;
                    let content_type = "Content-Type".to_owned();
                    request.headers.push((content_type, form.content_type));
                    form.body
                }
                CurlBody::File(file) => read(&file).map_err(wrong)?,
            };
            let headers = request.headers.into_iter().map(|(name, value)| (name, value.into()));
            all.request(StepRequest {
                method: request.method,
                url: request.url.into(),
                headers: headers.collect(),
                body,
                redirects: if self.follows() { REDIRECTS } else { 0 },
                ..StepRequest::default()
            });
        }
        Ok(())
    }

    /// The options of knee for a transfer of one URL.
    pub(super) fn as_options(&self, read: ReadFile) -> Result<Vec<String>, ParseError> {
        if let Some(what) = self.refused_options().first() {
            return error(format!("not supported: {what}"));
        }
        let [url] = &self.urls[..] else {
            let count = self.urls.len();
            return error(format!(
                "{count} URLs: a run has one; 'knee import curl' makes steps of several"
            ));
        };
        let request = self.request(url, read)?;
        if let Some(what) = request.unsupported.first() {
            return error(format!("not supported: {what}"));
        }
        let is_host = |header: &(String, String)| header.0.eq_ignore_ascii_case("host");
        let names_host = !request.headers.iter().any(is_host);
        let mut options = self.connection(&request.url, names_host)?;
        let scheme = Url::parse(&request.url)?.scheme();
        // A WebSocket opens with GET, which is no option of it.
        if request.method != "GET" || !matches!(scheme, Scheme::Ws | Scheme::Wss) {
            options.push(format!("--method={}", request.method));
        }
        options.extend(request.headers.iter().map(|(name, value)| {
            let sign = if value.is_empty() { ";" } else { ": " };
            format!("--header={name}{sign}{value}")
        }));
        match request.body {
            CurlBody::None => {}
            CurlBody::File(file) => options.push(format!("--body=@{file}")),
            CurlBody::Form(parts) => {
                options.extend(parts.iter().map(|part| format!("--form={part}")));
            }
            CurlBody::Data(pieces) => options.extend(pieces.into_iter().map(|piece| {
                let name = DATA.iter().find(|(_, kind)| *kind == piece.kind);
                match name {
                    Some((name, _)) if piece.kind != DataKind::Json => {
                        format!("{name}={}", piece.text)
                    }
                    _ => format!("--json-body={}", piece.text),
                }
            })),
        }
        Ok(options)
    }

    fn request(&self, url: &str, read: ReadFile) -> Result<CurlRequest, ParseError> {
        let mut unsupported = self.refused_options();
        let body = self.body()?;
        let (url, user) = self.url(url, read, &mut unsupported)?;
        let headers = self.headers(user, &body, read, &mut unsupported)?;
        Ok(CurlRequest { method: self.method(&body), url, headers, body, unsupported })
    }

    fn follows(&self) -> bool {
        self.has("--location") || self.has("--location-trusted")
    }

    fn method(&self, body: &CurlBody) -> String {
        let implied = match body {
            _ if self.has("--head") => "HEAD",
            CurlBody::File(_) => "PUT",
            CurlBody::Data(_) | CurlBody::Form(_) => "POST",
            CurlBody::None => "GET",
        };
        self.last("--request").unwrap_or(implied).to_owned()
    }

    /// All pieces of data, in their order.
    fn data(&self) -> Vec<CurlData> {
        let pieces = self.given.iter().filter_map(|(option, text)| {
            let (_, kind) = DATA.iter().find(|(name, _)| *name == option.name)?;
            let text = text.clone();
            Some(CurlData { kind: *kind, text })
        });
        pieces.collect()
    }

    /// The body; with `--get` data belong to the URL.
    fn body(&self) -> Result<CurlBody, ParseError> {
        let form = self.given.iter().filter_map(|(option, part)| match option.name {
            "--form" => Some(part.clone()),
            "--form-string" => Some(literal_part(part)),
            _ => None,
        });
        let form: Vec<String> = form.collect();
        let data = if self.has("--get") { Vec::new() } else { self.data() };
        let file = self.last("--upload-file");
        let given = [!data.is_empty(), !form.is_empty(), file.is_some(), self.has("--head")];
        if given.into_iter().filter(|is_given| *is_given).count() > 1 {
            return error("curl takes one of --head, --data, --form and --upload-file");
        }
        Ok(match file {
            Some(file) => CurlBody::File(file.to_owned()),
            None if !form.is_empty() => CurlBody::Form(form),
            None if !data.is_empty() => CurlBody::Data(data),
            None => CurlBody::None,
        })
    }

    /// The headers that are given, then those that other options make and that are not given.
    fn headers(
        &self,
        user: Option<String>,
        body: &CurlBody,
        read: ReadFile,
        unsupported: &mut Vec<String>,
    ) -> Result<Vec<(String, String)>, ParseError> {
        let mut lines = Vec::new();
        for line in self.all("--header") {
            match line.strip_prefix('@') {
                None => lines.push(line.to_owned()),
                Some(file) => {
                    let file = read(file).map_err(wrong)?;
                    let text = String::from_utf8_lossy(&file);
                    // A line of a file that is no header, such as a comment, means nothing.
                    let headers = text.lines().filter(|line| line.contains([':', ';']));
                    lines.extend(headers.map(str::to_owned));
                }
            }
        }
        let (mut headers, mut removed) = (Vec::new(), Vec::new());
        let is_form = matches!(body, CurlBody::Form(_));
        // A browser copies the fields of HTTP/2, which begin with a colon: curl sends none of them.
        for line in lines.iter().filter(|line| !line.starts_with(':') && !line.is_empty()) {
            match line.split_once(':') {
                Some((name, value)) if value.trim().is_empty() => {
                    removed.push(name.trim().to_ascii_lowercase());
                }
                // curl adds the boundary.
                Some((name, value)) if is_form && name.eq_ignore_ascii_case("content-type") => {
                    if value.trim() != "multipart/form-data" {
                        unsupported.push(format!("header {line} with --form"));
                    }
                }
                Some((name, value)) => headers.push((name.to_owned(), value.trim().to_owned())),
                None => match line.split_once(';') {
                    Some((name, "")) => headers.push((name.to_owned(), String::new())),
                    _ => unsupported.push(format!("header {line}: it has no ':'")),
                },
            }
        }
        for (name, value) in self.implied_headers(user, body, unsupported)? {
            let is_it = |header: &(String, String)| header.0.eq_ignore_ascii_case(name);
            if !headers.iter().any(is_it) && !removed.contains(&name.to_ascii_lowercase()) {
                headers.push((name.to_owned(), value));
            }
        }
        let has_type = matches!(body, CurlBody::Data(_) | CurlBody::Form(_));
        for name in removed {
            if ALWAYS_SENT.contains(&name.as_str()) || (has_type && name == "content-type") {
                unsupported.push(format!("header {name}: knee always sends one"));
            }
        }
        Ok(headers)
    }

    /// The headers that options and the body make.
    fn implied_headers(
        &self,
        user: Option<String>,
        body: &CurlBody,
        unsupported: &mut Vec<String>,
    ) -> Result<Vec<(&'static str, String)>, ParseError> {
        let mut headers = Vec::new();
        let has_credentials =
            user.is_some() || ["--user", "--oauth2-bearer"].iter().any(|option| self.has(option));
        let proof = PROOFS.into_iter().find(|option| has_credentials && self.has(option));
        if let Some(proof) = proof {
            unsupported.push(format!("the credentials, which go with {proof} alone"));
        } else if let Some(token) = self.last("--oauth2-bearer") {
            headers.push(("Authorization", format!("Bearer {token}")));
        } else if let Some(user) = self.last("--user").or(user.as_deref()) {
            if !user.contains(':') {
                return error("--user: curl asks for the password: write USER:PASSWORD");
            }
            headers.push(("Authorization", format!("Basic {}", BASE64.encode(user))));
        }
        match self.last("--user-agent") {
            Some("") => unsupported.push("header user-agent: knee always sends one".to_owned()),
            Some(name) => headers.push(("User-Agent", name.to_owned())),
            None => {}
        }
        if let Some(range) = self.last("--range") {
            headers.push(("Range", format!("bytes={range}")));
        }
        if self.has("--compressed") {
            headers.push(("Accept-Encoding", "deflate, gzip, br, zstd".to_owned()));
        }
        let referer = self.last("--referer").unwrap_or_default();
        let (url, is_automatic) = match referer.split_once(";auto") {
            Some((url, _)) => (url, true),
            None => (referer, false),
        };
        if is_automatic && self.follows() {
            unsupported
                .push("option --referer ;auto: each redirection names the one before".into());
        } else if !url.is_empty() {
            headers.push(("Referer", url.to_owned()));
        }
        let (cookies, files): (Vec<&str>, Vec<&str>) =
            self.all("--cookie").partition(|cookie| cookie.contains('='));
        if !cookies.is_empty() {
            headers.push(("Cookie", cookies.join(";")));
        }
        let files = files.into_iter().filter(|file| !file.is_empty());
        unsupported.extend(files.map(|file| format!("option --cookie {file}: a file of cookies")));
        // Also where the data go into the URL.
        if self.has("--json") {
            headers.push(("Content-Type", JSON.to_owned()));
            headers.push(("Accept", JSON.to_owned()));
        } else if matches!(body, CurlBody::Data(_)) {
            headers.push(("Content-Type", FORM.to_owned()));
        }
        Ok(headers)
    }

    /// The URL that is asked for, and the user information that stands in it.
    fn url(
        &self,
        given: &str,
        read: ReadFile,
        unsupported: &mut Vec<String>,
    ) -> Result<(String, Option<String>), ParseError> {
        if given.contains(|c: char| c == ' ' || c.is_ascii_control()) {
            return error(format!("'{given}': curl refuses a blank in a URL: write %20"));
        }
        if !self.has("--globoff") && has_pattern(given) {
            unsupported.push(format!(
                "a pattern in the URL {given}: write each URL out, or --globoff if it is none"
            ));
        }
        let given = encoded(given);
        let scheme = given.find("://").filter(|at| !given[..*at].contains(['/', '?']));
        let (scheme, rest) = match scheme {
            Some(at) => given.split_at(at + "://".len()),
            None => ("http://", given.as_str()),
        };
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        let user = user.map(|user| match percent::decoded(user) {
            user if user.contains(':') => user,
            user => user + ":",
        });
        let mut path = path.as_bytes().to_vec();
        if !self.has("--path-as-is") {
            remove_dot_segments(&mut path, 0);
        }
        let path = String::from_utf8_lossy(&path);
        let (path, query) = match path.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (&*path, None),
        };
        let mut path = path.to_owned();
        let mut query: Vec<String> = query.map(str::to_owned).into_iter().collect();
        let data = if self.has("--get") { self.data() } else { Vec::new() };
        if !data.is_empty() {
            let data = data::join(&data, read).map_err(wrong)?;
            query.push(encoded(&String::from_utf8_lossy(&data)));
        }
        for part in self.all("--url-query") {
            query.push(match part.strip_prefix('+') {
                Some(plain) => plain.to_owned(),
                None => url_encoded(part, read).map_err(wrong)?,
            });
        }
        if let Some(file) = self.last("--upload-file")
            && (path.is_empty() || path.ends_with('/'))
        {
            let name = file.rsplit('/').next().unwrap_or(file);
            path = format!("{}/{}", path.trim_end_matches('/'), encoded(name));
        }
        let sign = if query.is_empty() { "" } else { "?" };
        query.retain(|part| !part.is_empty());
        let query = query.join("&");
        Ok((format!("{scheme}{host}{path}{sign}{query}"), user))
    }

    /// The options of knee that say how to connect. `names_host`: with the header Host, where the
    /// connection goes to another host.
    fn connection(&self, url: &str, names_host: bool) -> Result<Vec<String>, ParseError> {
        let parsed = Url::parse(url)?;
        let mut options = match self.moved(&parsed) {
            Some((url, name)) => {
                let mut options = vec![format!("--url={url}")];
                options.extend(names_host.then(|| format!("--header=Host: {}", parsed.host())));
                options.extend(name.map(|name| format!("--sni={name}")));
                options
            }
            None => vec![format!("--url={url}")],
        };
        let is_insecure = self.has("--insecure");
        options.extend(is_insecure.then(|| "--insecure".to_owned()));
        if parsed.is_secure() && self.has("--no-alpn") {
            // Without ALPN a server speaks HTTP/1.1.
            options.push("--http1.1".to_owned());
        } else {
            for name in ["--http1.1", "--http2", "--http2-prior-knowledge"] {
                options.extend(self.has(name).then(|| name.to_owned()));
            }
            if self.has("--http3") || self.has("--http3-only") {
                options.push("--http3".to_owned());
            }
        }
        if self.follows() {
            options.push("--location".to_owned());
        }
        let mut put = |name: &str, value: Option<&str>| {
            options.extend(value.map(|value| format!("{name}={value}")));
        };
        put("--source", self.last("--interface"));
        if self.last("--interface").is_none() {
            // Addresses of the other kind cannot be connected to from here.
            put("--source", self.has("--ipv4").then_some("0.0.0.0"));
            put("--source", self.has("--ipv6").then_some("::"));
        }
        self.all("--resolve").for_each(|rule| put("--resolve", Some(rule)));
        for name in ["--proxy", "--proxy-user", "--noproxy", "--unix-socket"] {
            put(name, self.last(name));
        }
        if parsed.is_secure() {
            put("--cacert", self.last("--cacert").filter(|_| !is_insecure));
            let mut oldest = ["1.3", "1.2"].into_iter();
            put("--tls-min", oldest.find(|v| self.has(&format!("--tlsv{v}"))));
            ["--cert", "--key", "--tls-max"].iter().for_each(|name| put(name, self.last(name)));
        }
        Ok(options)
    }

    /// The URL at the other server of `--connect-to`, and the name for TLS, which stays.
    fn moved(&self, url: &Url) -> Option<(String, Option<String>)> {
        let server = self.other_server(url)?;
        let name = match url.endpoint() {
            Endpoint::Tcp { host, .. } if url.is_secure() => Some(host.clone()),
            _ => None,
        };
        Some((format!("{}://{server}{}", url.scheme().name(), url.path()), name))
    }

    /// `HOST:PORT` in place of the URL's own, by `--connect-to`.
    fn other_server(&self, url: &Url) -> Option<String> {
        let Endpoint::Tcp { host, port } = url.endpoint() else {
            return None;
        };
        let own = [host.as_str(), &port.to_string()].map(str::to_owned);
        self.all("--connect-to").find_map(|to| {
            let parts = parts_of_address(to);
            let [from @ .., host, port] = &parts[..] else {
                return None;
            };
            let is_from = |(from, own): (&&str, &String)| from.is_empty() || *from == own;
            let or_own = |part: &str, own: &str| match part {
                "" => bracketed(own),
                part => bracketed(part),
            };
            let is_it = from.len() == 2 && from.iter().zip(&own).all(is_from);
            is_it.then(|| format!("{}:{}", or_own(host, &own[0]), or_own(port, &own[1])))
        })
    }
}

/// A part of `--form-string` in the grammar of `--form`: its text in quotes.
fn literal_part(part: &str) -> String {
    match part.split_once('=') {
        Some((name, text)) => {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"");
            format!("{name}=\"{text}\"")
        }
        None => part.to_owned(),
    }
}

/// Whether curl would make several URLs of one: `{a,b}`, `[1-3]`, `[a-z]`.
fn has_pattern(url: &str) -> bool {
    let is_range = |inside: &str| {
        let (from, to) = inside.split_once('-').unwrap_or_default();
        let is_end = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b':');
        !from.is_empty() && !to.is_empty() && is_end(from) && is_end(to)
    };
    let mut opened = url.split('[').skip(1);
    let has_range = opened.any(|rest| rest.split_once(']').is_some_and(|(i, _)| is_range(i)));
    has_range || url.split_once('{').is_some_and(|(_, rest)| rest.contains('}'))
}

/// The parts between the colons outside of brackets.
fn parts_of_address(text: &str) -> Vec<&str> {
    let mut is_inside = false;
    let divides = |c: char| {
        is_inside = (is_inside || c == '[') && c != ']';
        c == ':' && !is_inside
    };
    text.split(divides).collect()
}

/// A host as a URL has it: an IPv6 address in brackets.
fn bracketed(host: &str) -> String {
    if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.to_owned() }
}
