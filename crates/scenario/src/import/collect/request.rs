//! A request, checked whether a scenario can have it.

use super::super::json_text::{form, one_line};
use super::super::text::ImportedText;
use super::super::{ImportedBody, ImportedRequest};
use super::url::split;
use super::{
    BODIES_MAX, BODY_MAX, Collector, FORM, SourceRequest, VARIABLES_MAX, shorter, step_name,
};
use crate::names::is_name;
use crate::target::TARGETS_MAX;
use knee_load::spec::{HttpRequest, is_token};
use knee_load::time::Nanos;

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

/// A request's headers.
type Headers = Vec<(String, ImportedText)>;

/// The body by its type, and the headers that it then needs.
fn content(mut headers: Headers, body: String) -> (Headers, ImportedBody) {
    const JSON: &str = "application/json";
    if body.is_empty() {
        return (headers, ImportedBody::None);
    }
    let is_type = |header: &&(String, ImportedText)| header.0.eq_ignore_ascii_case("content-type");
    let given = headers.iter().find(is_type).and_then(|(_, value)| value.literal());
    let media = given.map_or("", |value| value.split(';').next().unwrap_or_default());
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
        let is_implied = value.literal().is_some_and(|value| value.eq_ignore_ascii_case(implied));
        !(name.eq_ignore_ascii_case("content-type") && is_implied)
    });
    (headers, content.unwrap_or_else(|| ImportedBody::Text(body.into())))
}

impl Collector {
    pub(super) fn checked(&mut self, draft: SourceRequest) -> Result<ImportedRequest, String> {
        let told = format!("{} {}", draft.method, draft.url.template());
        let (origin, path) = split(&draft.url)?;
        let Some(target) = origin.as_ref().or(self.targets.first()) else {
            return Err("its URL has no host".to_owned());
        };
        let known = self.targets.iter().position(|other| !other.differs(target));
        let server = known.unwrap_or(self.targets.len());
        if server >= TARGETS_MAX {
            return Err(format!("a scenario has at most {TARGETS_MAX} targets"));
        }
        let (host, url) = (target.host(), target.url_of(&path)?);
        let path = if server > 0 { target.whole_url(&path)? } else { path };
        if draft.body.len() > BODY_MAX {
            return Err(format!("its body has {} bytes", draft.body.len()));
        }
        self.body_bytes += draft.body.len();
        if self.body_bytes > BODIES_MAX {
            return Err("all bodies together have more than 8 MiB".to_owned());
        }
        let body = String::from_utf8(draft.body).map_err(|_| "its body is not text".to_owned())?;
        let headers = self.headers(draft.headers, draft.drops_cookies, &host);
        let lettered = headers.iter().map(|(name, value)| (name.clone(), value.with_letters()));
        HttpRequest::new(&draft.method, &url, lettered.collect(), Vec::new(), 1)
            .map_err(|e| e.0)?;
        let (headers, content) = match draft.content {
            ImportedBody::None => content(headers, body),
            ready => (headers, ready),
        };
        let mut request = ImportedRequest {
            method: draft.method,
            path,
            name: draft.name.as_deref().and_then(step_name),
            headers,
            content,
            expect: draft.expect,
            extract: draft.extract,
            redirects: draft.redirects,
            timeout: draft.timeout.filter(|time| *time > Nanos::ZERO),
            goes_on: draft.goes_on,
        };
        let has_room = self.known.len() < VARIABLES_MAX;
        request.extract.retain(|extract| is_name(&extract.name) && has_room);
        for wrong in request.drop_mistakes() {
            self.leave_out(format!("{}: {wrong}", shorter(&told)));
        }
        let mut texts = Vec::new();
        request.texts(&mut texts);
        match self.unknown(texts.into_iter()) {
            Some(unknown) => Err(format!("nothing sets '{unknown}', which it needs")),
            None => {
                self.targets.extend(origin.filter(|_| known.is_none()));
                Ok(request)
            }
        }
    }

    /// The headers that a scenario can have, each name once.
    pub(super) fn headers(
        &mut self,
        given: Vec<(String, ImportedText)>,
        drops_cookies: bool,
        own_host: &str,
    ) -> Vec<(String, ImportedText)> {
        let mut headers: Vec<(String, ImportedText)> = Vec::new();
        for (name, value) in given {
            let lower = name.to_ascii_lowercase();
            let is_own_host = value.literal().is_some_and(|v| v.eq_ignore_ascii_case(own_host));
            let is_other_host = lower == "host" && !is_own_host;
            let is_dropped = DROPPED.contains(&lower.as_str()) || lower.starts_with(':');
            if is_dropped && !is_other_host {
                continue;
            }
            if !is_token(&name) {
                self.leave_out(format!("header '{name}': that is no name of a header"));
                continue;
            }
            if drops_cookies && lower == "cookie" {
                self.leave_out("header Cookie: sessions keep the cookies that the server sets");
                continue;
            }
            let value = match value.literal() {
                Some(text) => ImportedText::from(text.trim()),
                None => value,
            };
            if value.with_letters().chars().any(|c| c.is_ascii_control() && c != '\t') {
                self.leave_out(format!("header {name}: it holds a control character"));
                continue;
            }
            let sign = if lower == "cookie" { "; " } else { ", " };
            match headers.iter_mut().find(|h| h.0.eq_ignore_ascii_case(&name)) {
                Some((_, before)) => {
                    before.push(sign);
                    before.append(&value);
                }
                None => headers.push((name, value)),
            }
        }
        headers
    }
}
