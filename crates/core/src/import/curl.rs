//! A command line of curl.

use super::collect::{Collector, Draft};
use super::data::{self, Data, DataKind, ReadFile};
use super::{Imported, error, shell};
use crate::quantity::ParseError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

/// The longest line, in bytes.
const LINE_MAX: usize = 16 << 20;

/// How many redirections curl follows where it is asked to.
const REDIRECTS: u32 = 50;

/// Options that say nothing about the request.
const WITHOUT_EFFECT: [&str; 26] = [
    "--compressed-ssh",
    "--fail",
    "--fail-with-body",
    "--globoff",
    "--http1.0",
    "--http1.1",
    "--http2",
    "--http2-prior-knowledge",
    "--include",
    "--insecure",
    "--ipv4",
    "--ipv6",
    "--no-buffer",
    "--no-keepalive",
    "--no-progress-meter",
    "--parallel",
    "--path-as-is",
    "--progress-bar",
    "--show-error",
    "--show-headers",
    "--silent",
    "--styled-output",
    "--tcp-nodelay",
    "--verbose",
    "--disable",
    "--fail-early",
];

/// Options with a value that say nothing about the request.
const WITHOUT_EFFECT_VALUED: [&str; 16] = [
    "--cacert",
    "--capath",
    "--cert",
    "--connect-timeout",
    "--connect-to",
    "--cookie-jar",
    "--dump-header",
    "--key",
    "--max-time",
    "--output",
    "--resolve",
    "--retry",
    "--retry-delay",
    "--stderr",
    "--trace-ascii",
    "--write-out",
];

/// Short options and the long ones that they stand for.
const SHORTS: [(char, &str); 35] = [
    ('X', "--request"),
    ('H', "--header"),
    ('d', "--data"),
    ('b', "--cookie"),
    ('u', "--user"),
    ('A', "--user-agent"),
    ('e', "--referer"),
    ('F', "--form"),
    ('G', "--get"),
    ('I', "--head"),
    ('L', "--location"),
    ('x', "--proxy"),
    ('T', "--upload-file"),
    ('r', "--range"),
    ('k', "--insecure"),
    ('s', "--silent"),
    ('S', "--show-error"),
    ('i', "--include"),
    ('v', "--verbose"),
    ('g', "--globoff"),
    ('f', "--fail"),
    ('N', "--no-buffer"),
    ('o', "--output"),
    ('w', "--write-out"),
    ('m', "--max-time"),
    ('c', "--cookie-jar"),
    ('D', "--dump-header"),
    ('E', "--cert"),
    ('0', "--http1.0"),
    ('4', "--ipv4"),
    ('6', "--ipv6"),
    ('#', "--progress-bar"),
    ('q', "--disable"),
    ('O', "--remote-name"),
    ('Z', "--parallel"),
];

/// Options with a value that this knows, besides those without effect.
const VALUED: [&str; 20] = [
    "--request",
    "--header",
    "--data",
    "--data-ascii",
    "--data-raw",
    "--data-binary",
    "--data-urlencode",
    "--json",
    "--cookie",
    "--user",
    "--user-agent",
    "--referer",
    "--form",
    "--form-string",
    "--url",
    "--proxy",
    "--upload-file",
    "--range",
    "--oauth2-bearer",
    "--url-query",
];

/// Imports a whole line, as it is typed into a shell or copied from a browser.
///
/// # Errors
/// One line: an open quote, an option that is not known, no URL.
pub fn curl_line(line: &str, read: ReadFile) -> Result<Imported, ParseError> {
    if line.len() > LINE_MAX {
        return error("the line is longer than 16 MiB");
    }
    let split = shell::split(line)?;
    let mut words = split.words;
    if words.first().is_some_and(|word| word == "$") {
        words.remove(0);
    }
    curl(&words, split.rest, read)
}

/// Imports the words of a line, as a shell hands them over; the first may be `curl`.
///
/// # Errors
/// As [`curl_line`].
pub fn curl_words(words: &[String], read: ReadFile) -> Result<Imported, ParseError> {
    curl(words, None, read)
}

fn curl(words: &[String], rest: Option<String>, read: ReadFile) -> Result<Imported, ParseError> {
    let is_curl = |word: &String| word.rsplit('/').next() == Some("curl");
    let words = match words.first().is_some_and(is_curl) {
        true => &words[1..],
        false => words,
    };
    let mut all = Collector::default();
    if let Some(rest) = rest {
        all.leave_out(format!("what follows curl: {rest}"));
    }
    for one in words.split(|word| word == "--next" || word == "-:") {
        Line::read(one)?.add_to(&mut all, read)?;
    }
    all.finish("there is no URL that a scenario can have")
}

/// What the options of one transfer say.
#[derive(Debug, Default)]
struct Line {
    urls: Vec<String>,
    method: Option<String>,
    headers: Vec<(String, String)>,
    data: Vec<Data>,
    form: Vec<String>,
    cookies: Vec<String>,
    is_get: bool,
    is_head: bool,
    redirects: u32,
    left_out: Vec<String>,
}

impl Line {
    fn read(words: &[String]) -> Result<Line, ParseError> {
        let mut line = Line::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = |attached: &str| match attached {
                "" => words.next().cloned(),
                attached => Some(attached.to_owned()),
            };
            if word.starts_with("--") {
                line.option(word, &mut value)?;
            } else if let Some(shorts) = word.strip_prefix('-').filter(|s| !s.is_empty()) {
                let mut rest = shorts;
                while let Some(short) = rest.chars().next() {
                    rest = &rest[short.len_utf8()..];
                    let long = SHORTS.iter().find(|(c, _)| *c == short);
                    let Some((_, long)) = long else {
                        return error(format!("-{short}: unknown option of curl"));
                    };
                    let attached = rest;
                    let takes = takes_value(long);
                    line.option(long, &mut |_| value(attached))?;
                    if takes {
                        break;
                    }
                }
            } else {
                line.urls.push(word.clone());
            }
        }
        Ok(line)
    }

    fn option(
        &mut self,
        name: &str,
        value: &mut dyn FnMut(&str) -> Option<String>,
    ) -> Result<(), ParseError> {
        if !takes_value(name) {
            return self.flag(name);
        }
        let Some(value) = value("") else {
            return error(format!("{name}: a value is missing"));
        };
        let mut put = |kind, text| self.data.push(Data { kind, text });
        match name {
            "--request" => self.method = Some(value),
            "--url" => self.urls.push(value),
            "--header" => self.header(&value),
            "--data" | "--data-ascii" => put(DataKind::Data, value),
            "--data-raw" => put(DataKind::Raw, value),
            "--data-binary" => put(DataKind::Binary, value),
            "--data-urlencode" => put(DataKind::Urlencode, value),
            "--json" => put(DataKind::Json, value),
            "--form" | "--form-string" => self.form.push(value),
            "--cookie" if value.contains('=') => self.cookies.push(value),
            "--user" => {
                let user = BASE64.encode(value);
                self.implied("Authorization", format!("Basic {user}"));
            }
            "--oauth2-bearer" => self.implied("Authorization", format!("Bearer {value}")),
            "--user-agent" => self.implied("User-Agent", value),
            "--referer" => self.implied("Referer", value),
            "--range" => self.implied("Range", format!("bytes={value}")),
            name if WITHOUT_EFFECT_VALUED.contains(&name) => {}
            name => self.left_out.push(format!("option {name} {value}")),
        }
        Ok(())
    }

    fn flag(&mut self, name: &str) -> Result<(), ParseError> {
        match name {
            "--get" => self.is_get = true,
            "--head" => self.is_head = true,
            "--compressed" => {
                self.implied("Accept-Encoding", "deflate, gzip, br, zstd".to_owned());
            }
            "--location" => self.redirects = REDIRECTS,
            "--remote-name" => {}
            name if WITHOUT_EFFECT.contains(&name) => {}
            name => return error(format!("{name}: unknown option of curl")),
        }
        Ok(())
    }

    fn header(&mut self, text: &str) {
        let pseudo = text.strip_prefix(':').is_some();
        match text.split_once(':') {
            // Before HTTP/2 has names of its own.
            _ if pseudo => {}
            Some((_, value)) if value.trim().is_empty() => {
                self.left_out
                    .push(format!("header {text}: nothing is sent by itself"));
            }
            Some((name, value)) => {
                let header = (name.trim().to_owned(), value.trim().to_owned());
                self.headers.push(header);
            }
            None => match text.strip_suffix(';') {
                Some(name) => self.headers.push((name.to_owned(), String::new())),
                None => self.left_out.push(format!("header {text}: it has no ':'")),
            },
        }
    }

    /// A header that an option makes; one that is given wins.
    fn implied(&mut self, name: &str, value: String) {
        self.headers.push((format!("?{name}"), value));
    }

    fn add_to(mut self, all: &mut Collector, read: ReadFile) -> Result<(), ParseError> {
        for what in std::mem::take(&mut self.left_out) {
            all.leave_out(what);
        }
        let mut body = Vec::new();
        if !self.form.is_empty() {
            let form = data::multipart(&self.form, read).map_err(super::wrong)?;
            body = form.body;
            self.implied("Content-Type", form.content_type);
        } else if !self.data.is_empty() {
            body = data::join(&self.data, read).map_err(super::wrong)?;
            let is_json = self.data.iter().any(|piece| piece.kind == DataKind::Json);
            if is_json {
                self.implied("Content-Type", "application/json".to_owned());
                self.implied("Accept", "application/json".to_owned());
            } else if !self.is_get {
                let form = "application/x-www-form-urlencoded";
                self.implied("Content-Type", form.to_owned());
            }
        }
        if !self.cookies.is_empty() {
            self.implied("Cookie", self.cookies.join("; "));
        }
        let headers = self.settled_headers();
        let query = match self.is_get {
            true => String::from_utf8_lossy(&std::mem::take(&mut body)).into_owned(),
            false => String::new(),
        };
        let method = self.method.unwrap_or_else(|| {
            let has_body = !self.data.is_empty() || !self.form.is_empty();
            let method = match (self.is_head, self.is_get, has_body) {
                (true, _, _) => "HEAD",
                (_, false, true) => "POST",
                _ => "GET",
            };
            method.to_owned()
        });
        for url in self.urls {
            let sign = match (query.as_str(), url.contains('?')) {
                ("", _) => "",
                (_, true) => "&",
                (_, false) => "?",
            };
            all.request(Draft {
                method: method.clone(),
                url: format!("{}{sign}{query}", url.split('#').next().unwrap_or_default()),
                headers: headers.clone(),
                body: body.clone(),
                redirects: self.redirects,
                ..Draft::default()
            });
        }
        Ok(())
    }

    /// The headers that are given, then those that options make and that are not given.
    fn settled_headers(&self) -> Vec<(String, String)> {
        let (mut implied, mut headers) = (Vec::new(), Vec::new());
        for (name, value) in &self.headers {
            match name.strip_prefix('?') {
                Some(name) => implied.push((name.to_owned(), value.clone())),
                None => headers.push((name.clone(), value.clone())),
            }
        }
        for (name, value) in implied {
            let is_it = |header: &(String, String)| header.0.eq_ignore_ascii_case(&name);
            if !headers.iter().any(is_it) {
                headers.push((name, value));
            }
        }
        headers
    }
}

fn takes_value(name: &str) -> bool {
    VALUED.contains(&name) || WITHOUT_EFFECT_VALUED.contains(&name)
}
