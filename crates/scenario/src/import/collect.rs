//! Requests from any source come together here: one target, bounded, each fit for a scenario.

use super::json_text::one_line;
use super::{Imported, ImportedBody, ImportedLoad, ImportedRequest, ImportedStep, error};
use knee_load::percent;
use knee_load::quantity::ParseError;
use knee_load::shown::shown;
use knee_load::spec::{HttpRequest, Url};
use knee_load::time::Nanos;
use std::collections::HashSet;

/// The most steps of a session.
const STEPS_MAX: usize = 1_000;
/// The largest body, in bytes.
const BODY_MAX: usize = 1 << 20;
/// The largest sum of all bodies.
const BODIES_MAX: usize = 8 << 20;
/// The most lines about what was left out.
const LEFT_OUT_MAX: usize = 200;
/// No line about it is longer, in characters.
const LINE_MAX: usize = 300;

pub(super) const FORM: &str = "application/x-www-form-urlencoded";

/// Headers that belong to a connection or follow from the request.
const DROPPED: [&str; 8] = [
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// A request as its source has it.
#[derive(Clone, Debug, Default)]
pub(super) struct SourceRequest {
    pub(super) method: String,
    pub(super) url: String,
    pub(super) name: Option<String>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// Sessions keep cookies themselves: those of a recording are left out.
    pub(super) drops_cookies: bool,
    pub(super) redirects: u32,
    pub(super) goes_on: bool,
}

impl SourceRequest {
    /// Adds a header.
    pub(super) fn header(&mut self, name: &str, value: impl Into<String>) {
        self.headers.push((name.to_owned(), value.into()));
    }

    pub(super) fn has_header(&self, name: &str) -> bool {
        let mut headers = self.headers.iter();
        headers.any(|(other, _)| other.eq_ignore_ascii_case(name))
    }

    /// Sends pairs of a form: `a=1`, percent-encoded.
    pub(super) fn form(&mut self, pairs: &[String]) {
        self.body = pairs.join("&").into_bytes();
        self.header("Content-Type", FORM);
    }
}

/// What was read of a source so far.
#[derive(Debug, Default)]
pub(super) struct Collector {
    origin: Option<Url>,
    steps: Vec<ImportedStep>,
    body_bytes: usize,
    pub(super) load: ImportedLoad,
    remarks: Vec<String>,
    /// With how often each was said.
    left_out: Vec<(String, usize)>,
    /// How many more there was no room for.
    left_out_more: usize,
}

impl Collector {
    /// Names something that has no place in the scenario.
    pub(super) fn leave_out(&mut self, what: impl Into<String>) {
        let line = shown(&what.into()).replace(['\n', '\r'], " ");
        let line: String = line.chars().take(LINE_MAX).collect();
        let has_room = self.left_out.len() < LEFT_OUT_MAX;
        match self.left_out.iter_mut().find(|(other, _)| *other == line) {
            Some((_, times)) => *times += 1,
            None if has_room => self.left_out.push((line, 1)),
            None => self.left_out_more += 1,
        }
    }

    /// Says something about the scenario.
    pub(super) fn remark(&mut self, what: impl Into<String>) {
        self.remarks.push(what.into());
    }

    /// Settles the target before any request names one.
    pub(super) fn set_target(&mut self, url: Url) {
        self.origin.get_or_insert(url);
    }

    /// How many steps there are.
    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    /// The user waits.
    pub(super) fn think(&mut self, time: Nanos) {
        if time > Nanos::ZERO && self.has_room() {
            self.steps.push(ImportedStep::Think(time));
        }
    }

    /// Whether there may be one step more.
    pub(super) fn has_room(&mut self) -> bool {
        let has_room = self.steps.len() < STEPS_MAX;
        if !has_room {
            self.leave_out(format!("what follows the first {STEPS_MAX} steps"));
        }
        has_room
    }

    /// The user sends a request, unless a scenario cannot have it.
    pub(super) fn request(&mut self, draft: SourceRequest) {
        self.request_after(Nanos::ZERO, draft);
    }

    /// The same after a pause, which goes with the request; whether it is a step.
    pub(super) fn request_after(&mut self, pause: Nanos, draft: SourceRequest) -> bool {
        if !self.has_room() {
            return false;
        }
        let told = format!("{} {}", draft.method, draft.url);
        match self.checked(draft) {
            Ok(request) => {
                self.think(pause);
                self.steps.push(ImportedStep::Request(Box::new(request)));
                true
            }
            Err(why) => {
                self.leave_out(format!("{}: {why}", shorter(&told)));
                false
            }
        }
    }

    fn checked(&mut self, draft: SourceRequest) -> Result<ImportedRequest, String> {
        let url = Url::parse(&encoded(&draft.url)).map_err(|e| e.0)?;
        let origin = self.origin.get_or_insert_with(|| url.clone());
        if origin.endpoint() != url.endpoint() || origin.is_secure() != url.is_secure() {
            return Err(format!("a scenario has one target, {}", origin.host()));
        }
        let host = origin.host().to_owned();
        if draft.body.len() > BODY_MAX {
            return Err(format!("its body has {} bytes", draft.body.len()));
        }
        self.body_bytes += draft.body.len();
        if self.body_bytes > BODIES_MAX {
            return Err("all bodies together have more than 8 MiB".to_owned());
        }
        let body = String::from_utf8(draft.body).map_err(|_| "its body is not text".to_owned())?;
        let headers = self.headers(draft.headers, draft.drops_cookies, &host);
        let checked = HttpRequest::new(&draft.method, &url, headers.clone(), Vec::new(), 1);
        checked.map_err(|e| e.0)?;
        let (headers, content) = content(headers, body);
        Ok(ImportedRequest {
            method: draft.method,
            path: url.path().to_owned(),
            name: draft.name.as_deref().and_then(step_name),
            headers,
            content,
            redirects: draft.redirects,
            goes_on: draft.goes_on,
        })
    }

    /// The headers that a scenario can have, each name once.
    fn headers(
        &mut self,
        given: Vec<(String, String)>,
        drops_cookies: bool,
        own_host: &str,
    ) -> Vec<(String, String)> {
        let mut headers: Vec<(String, String)> = Vec::new();
        for (name, value) in given {
            let lower = name.to_ascii_lowercase();
            let is_other_host = lower == "host" && !value.eq_ignore_ascii_case(own_host);
            let is_dropped = DROPPED.contains(&lower.as_str()) || lower.starts_with(':');
            if is_dropped && !is_other_host {
                continue;
            }
            if drops_cookies && lower == "cookie" {
                self.leave_out("header Cookie: sessions keep the cookies that the server sets");
                continue;
            }
            let value = value.trim().to_owned();
            if value.chars().any(|c| c.is_ascii_control() && c != '\t') {
                self.leave_out(format!("header {name}: it holds a control character"));
                continue;
            }
            let sign = if lower == "cookie" { "; " } else { ", " };
            match headers.iter_mut().find(|h| h.0.eq_ignore_ascii_case(&name)) {
                Some((_, before)) => *before = format!("{before}{sign}{value}"),
                None => headers.push((name, value)),
            }
        }
        headers
    }

    /// All that came together.
    ///
    /// # Errors
    /// No request.
    pub(super) fn finish(self, nothing: &str) -> Result<Imported, ParseError> {
        let is_request = |step: &ImportedStep| matches!(step, ImportedStep::Request(_));
        let origin = self.origin.filter(|_| self.steps.iter().any(is_request));
        let Some(origin) = origin else {
            let first = self.left_out.first();
            let why = first.map_or(String::new(), |(line, _)| format!(": left out: {line}"));
            return error(format!("{nothing}{why}"));
        };
        let scheme = if origin.is_secure() { "https" } else { "http" };
        let times = |(line, times): (String, usize)| match times {
            1 => line,
            times => format!("{line} ({times} times)"),
        };
        let mut imported = Imported {
            target: format!("{scheme}://{}", origin.host()),
            headers: Vec::new(),
            steps: self.steps,
            load: self.load,
            remarks: self.remarks,
            left_out: self.left_out.into_iter().map(times).collect(),
        };
        if self.left_out_more > 0 {
            let more = self.left_out_more;
            imported.left_out.push(format!("{more} more, which are not named here"));
        }
        imported.gather_headers();
        Ok(imported)
    }
}

impl Imported {
    /// Headers that all of several requests have are written once.
    fn gather_headers(&mut self) {
        let mut all = self.steps.iter_mut().filter_map(|step| match step {
            ImportedStep::Request(request) => Some(&mut request.headers),
            ImportedStep::Think(_) => None,
        });
        let (Some(first), mut others) = (all.next(), all.collect::<Vec<_>>()) else {
            return;
        };
        if others.is_empty() {
            return;
        }
        let mut common = first.clone();
        common.retain(|header| others.iter().all(|other| other.contains(header)));
        first.retain(|header| !common.contains(header));
        for other in &mut others {
            other.retain(|header| !common.contains(header));
        }
        self.headers = common;
    }
}

/// The body in the form that is easiest to change, and the headers that it then needs.
fn content(
    mut headers: Vec<(String, String)>,
    body: String,
) -> (Vec<(String, String)>, ImportedBody) {
    const JSON: &str = "application/json";
    if body.is_empty() {
        return (headers, ImportedBody::None);
    }
    let is_type = |header: &&(String, String)| header.0.eq_ignore_ascii_case("content-type");
    let given = headers.iter().find(is_type);
    let media = given.map_or("", |(_, value)| value.split(';').next().unwrap_or_default());
    let media = media.trim().to_ascii_lowercase();
    let content = match media.as_str() {
        media if media == JSON || media.ends_with("+json") => {
            one_line(&body).map(ImportedBody::Json)
        }
        FORM => form(&body).map(ImportedBody::Form),
        _ => None,
    };
    let implied = match &content {
        Some(ImportedBody::Json(_)) => JSON,
        Some(ImportedBody::Form(_)) => FORM,
        _ => "",
    };
    headers.retain(|(name, value)| {
        !(name.eq_ignore_ascii_case("content-type") && value.eq_ignore_ascii_case(implied))
    });
    (headers, content.unwrap_or(ImportedBody::Text(body)))
}

/// Names and values of form data; `None` where a map cannot have them.
fn form(body: &str) -> Option<Vec<(String, String)>> {
    let mut names = HashSet::new();
    let pairs = body.split('&').map(|pair| {
        let (name, value) = pair.split_once('=')?;
        let (name, value) = (decoded(name)?, decoded(value)?);
        let is_plain = !name.is_empty() && !name.chars().any(char::is_control);
        (is_plain && names.insert(name.clone())).then_some((name, value))
    });
    pairs.collect()
}

/// The text of a name or a value; `None` where a `%` begins no code.
fn decoded(text: &str) -> Option<String> {
    let is_code = |rest: &str| rest.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    text.split('%').skip(1).all(is_code).then(|| percent::form_decoded(text))?
}

/// A URL whose characters are those that one may have; a fragment is never sent.
pub(super) fn encoded(url: &str) -> String {
    percent::url(url.split('#').next().unwrap_or_default().trim())
}

/// A name of a step: one line of 1 to 200 characters.
fn step_name(text: &str) -> Option<String> {
    let blank = |c: char| if c.is_control() { ' ' } else { c };
    let line: String = text.chars().map(blank).take(200).collect();
    Some(line.trim().to_owned()).filter(|line| !line.is_empty())
}

fn shorter(text: &str) -> String {
    if text.chars().count() > 120 {
        text.chars().take(119).chain(['…']).collect()
    } else {
        text.to_owned()
    }
}
