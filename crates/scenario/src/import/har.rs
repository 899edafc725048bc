//! A recording of a browser: HTTP Archive (HAR) 1.2.

use super::body::{FORM, multipart, part};
use super::builder::{ScenarioBuilder, StepRequest, below};
use super::url::encoded;
use super::yaml::YamlValue;
use super::{ImportedScenario, as_text};
use crate::flow::BRANCHES_MAX;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use knee_load::percent;
use knee_load::quantity::ParseError;
use knee_load::spec::Url;
use knee_load::time::{Nanos, iso8601_ms};
use serde::Deserialize;
use serde_json::Value;

/// What comes within this time of the response before is a browser's own time.
const THINK_MIN_MS: f64 = 10.0;
/// No pause of a recording is taken over that is longer.
const THINK_MAX_MS: f64 = 300_000.0;

#[derive(Deserialize)]
struct HarArchive {
    log: HarLog,
}

#[derive(Deserialize)]
struct HarLog {
    entries: Vec<HarEntry>,
}

/// Programs write `null` for what they do not have, or leave it out.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HarEntry {
    started_date_time: Option<String>,
    time: Option<f64>,
    /// Small, other than the response.
    request: Value,
    response: Option<HarResponse>,
    /// How browsers name what they did not ask the server for.
    #[serde(rename = "_fromCache")]
    from_cache: Option<String>,
    #[serde(rename = "_webSocketMessages")]
    messages: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HarResponse {
    status: Option<f64>,
    #[serde(rename = "redirectURL")]
    redirect_url: Option<String>,
}

impl HarEntry {
    /// When it began, in milliseconds since 1970.
    fn begun(&self) -> Option<f64> {
        iso8601_ms(self.started_date_time.as_deref()?)
    }

    /// Where its response leads to, as a URL or a path; empty where it leads nowhere.
    fn leads_to(&self) -> &str {
        let to = self.response.as_ref().and_then(|response| response.redirect_url.as_deref());
        to.map_or("", |to| to.split('#').next().unwrap_or_default())
    }

    /// The recorded status, 0 where the request was blocked or failed.
    fn status(&self) -> Option<f64> {
        self.response.as_ref().map(|response| response.status.unwrap_or(0.0))
    }
}

/// The text of a key, empty where it has none.
fn text<'a>(of: &'a Value, key: &str) -> &'a str {
    of.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The list of a key, empty where it has none.
fn list<'a>(of: &'a Value, key: &str) -> &'a [Value] {
    of.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Imports the requests to these servers, or to the first one's where none is given, in the order
/// in which they began. They have the pauses between them, and expect the recorded statuses.
///
/// # Errors
/// One line: no HAR, no request that a scenario can have.
pub fn har(bytes: &[u8], servers: &[Url]) -> Result<ImportedScenario, ParseError> {
    let archive: HarArchive = serde_json::from_str(as_text(bytes, "the file")?)
        .map_err(|e| super::wrong(format!("the file is no HAR: {e}")))?;
    let entries = archive.log.entries.into_iter().map(|entry| (entry.begun(), entry));
    let mut entries: Vec<(Option<f64>, HarEntry)> = entries.collect();
    if entries.iter().all(|(begun, _)| begun.is_some()) {
        entries.sort_by(|a, b| a.0.unwrap_or(0.0).total_cmp(&b.0.unwrap_or(0.0)));
    }
    let mut all = ScenarioBuilder::default();
    let mut servers = servers.to_vec();
    servers.first().into_iter().for_each(|url| all.set_target(url.clone()));
    let mut batch = HarBatch::default();
    // When the last of the responses so far had ended.
    let mut ended: Option<f64> = None;
    for (begun, entry) in entries {
        if let Some(why) = unsent(&entry, &mut servers) {
            batch.unsent.push(why);
            continue;
        }
        if !batch.overlaps(begun) || batch.leads_to(text(&entry.request, "url")) {
            ended = std::mem::take(&mut batch).finish(ended, &mut all);
        }
        let time_ms = entry.time.unwrap_or(0.0).clamp(0.0, 1e9);
        batch.leads_to.push(entry.leads_to().to_owned());
        let draft = draft(entry, &mut all);
        batch.add(begun, time_ms, draft);
    }
    batch.finish(ended, &mut all);
    all.finish("the file has no request that a scenario can have")
}

/// Requests that were under way at the same time. Times are in milliseconds since 1970.
#[derive(Default)]
struct HarBatch {
    begun: Option<f64>,
    first_end: Option<f64>,
    last_end: Option<f64>,
    drafts: Vec<StepRequest>,
    /// Where their responses lead to.
    leads_to: Vec<String>,
    /// Why others after these are not sent.
    unsent: Vec<String>,
}

impl HarBatch {
    /// Whether a response of these led to this URL: it was asked for after that.
    fn leads_to(&self, url: &str) -> bool {
        let path = url.splitn(4, '/').nth(3).map(|path| format!("/{path}")).unwrap_or_default();
        let leads = |to: &String| !to.is_empty() && (to == url || *to == path);
        self.leads_to.iter().any(leads)
    }

    /// Whether a request that began then was under way together with all of these. A recording
    /// has whole milliseconds: what seems to begin within the last one began after it.
    fn overlaps(&self, begun: Option<f64>) -> bool {
        let has_room = self.drafts.len() < BRANCHES_MAX;
        has_room && begun.zip(self.first_end).is_some_and(|(begun, end)| begun + 1.5 < end)
    }

    fn add(&mut self, begun: Option<f64>, time_ms: f64, draft: StepRequest) {
        let end = begun.map(|begun| begun + time_ms);
        self.begun = self.begun.or(begun);
        self.first_end = self.first_end.into_iter().chain(end).reduce(f64::min);
        self.last_end = self.last_end.into_iter().chain(end).reduce(f64::max);
        self.drafts.push(draft);
    }

    /// Takes them up, after the pause since the responses before had `ended`. When the last of all
    /// so far had ended.
    fn finish(mut self, ended: Option<f64>, all: &mut ScenarioBuilder) -> Option<f64> {
        let pause_ms = self.begun.zip(ended).map_or(0.0, |(begun, ended)| begun - ended);
        let pause = if pause_ms >= THINK_MIN_MS {
            // To whole milliseconds: a recording knows no more.
            Nanos::from_millis(pause_ms.min(THINK_MAX_MS) as u64)
        } else {
            Nanos::ZERO
        };
        if pause_ms > THINK_MAX_MS {
            all.leave_out("pauses of more than 5 minutes: they have 5 minutes");
        }
        let is_step = match self.drafts.len() {
            0 | 1 => self.drafts.pop().is_some_and(|draft| all.request_after(pause, draft)),
            _ => {
                all.open();
                for draft in self.drafts {
                    all.request(draft);
                }
                let steps = all.close();
                let is_step = !steps.is_empty();
                if is_step {
                    all.think(pause);
                    all.push_parallel(steps);
                }
                is_step
            }
        };
        self.unsent.into_iter().for_each(|why| all.leave_out(why));
        let own = self.last_end.filter(|_| is_step);
        ended.into_iter().chain(own).reduce(f64::max)
    }
}

/// Why a scenario does not send what was recorded, if it does not.
fn unsent(entry: &HarEntry, servers: &mut Vec<Url>) -> Option<String> {
    let (method, url) = (text(&entry.request, "method"), text(&entry.request, "url"));
    let url = encoded(url);
    let scheme = url.split(':').next().unwrap_or_default();
    if matches!(scheme, "data" | "blob" | "chrome-extension" | "about" | "file") {
        return Some(format!("what the browser had itself ({scheme}:)"));
    }
    let is_upgraded = entry.messages.is_some() || entry.status() == Some(101.0);
    if matches!(scheme, "ws" | "wss") || is_upgraded {
        return Some("WebSockets: they are not imported".to_owned());
    }
    if let Some(cache) = &entry.from_cache {
        return Some(format!("what the browser had in its cache ({cache})"));
    }
    if entry.status().is_some_and(|status| status <= 0.0) {
        return Some(format!("{method} {url}: it was blocked, or failed"));
    }
    let url = Url::parse(&url).ok()?;
    if servers.is_empty() {
        servers.push(url.clone());
    }
    if servers.iter().any(|own| own.has_server_of(&url)) {
        return None;
    }
    let other = format!("{}://{}", url.scheme().name(), url.host());
    Some(format!("requests to {other}: name it with --target {other} to take them"))
}

fn draft(entry: HarEntry, all: &mut ScenarioBuilder) -> StepRequest {
    let status = entry.status().unwrap_or(0.0);
    let request = &entry.request;
    let header = |of: &Value| (text(of, "name").to_owned(), text(of, "value").into());
    let mut draft = StepRequest {
        method: text(request, "method").to_owned(),
        url: text(request, "url").into(),
        headers: list(request, "headers").iter().map(header).collect(),
        drops_cookies: true,
        ..StepRequest::default()
    };
    if (100.0..600.0).contains(&status) && status.fract() == 0.0 {
        draft.expect_status(match status {
            // The page that a cache still had is the whole one now.
            304.0 => vec!["200".to_owned(), "304".to_owned()],
            status => vec![status.to_string()],
        });
    }
    let data = request.get("postData").unwrap_or(&Value::Null);
    let is_decoded = text(data, "encoding") != "base64";
    draft.headers.retain(|(name, _)| !is_unfit(name, is_decoded));
    body(data, &mut draft, all);
    let length = request.get("bodySize").and_then(Value::as_f64).unwrap_or(0.0);
    if length > 0.0 && draft.body.is_empty() && draft.content.is_none() {
        all.leave_out(format!(
            "the body of {} {}: the recording has its length alone, {length} bytes",
            draft.method,
            text(request, "url")
        ));
    }
    draft
}

/// Whether a header does not fit what is sent: the body is sent at once and as its text, and the URL
/// names the host. What is checked of a body that was compressed is not that of its text.
fn is_unfit(name: &str, is_decoded: bool) -> bool {
    match name.to_ascii_lowercase().as_str() {
        "expect" | "host" => true,
        "content-encoding" | "content-md5" | "content-digest" | "digest" => is_decoded,
        _ => false,
    }
}

/// The body: its text, or else its parameters.
fn body(data: &Value, draft: &mut StepRequest, all: &mut ScenarioBuilder) {
    let mime_type = text(data, "mimeType");
    let media = mime_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let (own, params) = (text(data, "text"), list(data, "params"));
    if media == "multipart/form-data" && own.is_empty() && !params.is_empty() {
        draft.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
        draft.content = multipart(params.iter().map(|param| form_part(param, all)));
        return;
    }
    if !mime_type.is_empty() && !draft.has_header("content-type") {
        draft.header("Content-Type", mime_type);
    }
    if own.is_empty() {
        let part = |param, key| percent::form(text(param, key));
        let pair = |param| format!("{}={}", part(param, "name"), part(param, "value"));
        draft.body = params.iter().map(pair).collect::<Vec<_>>().join("&").into_bytes();
        if !draft.body.is_empty() && media != FORM {
            all.leave_out(format!(
                "parameters of a body of type '{media}': they are sent as a form"
            ));
        }
        return;
    }
    draft.body = own.as_bytes().to_vec();
    if text(data, "encoding") == "base64" {
        match BASE64.decode(own.trim()) {
            Ok(bytes) => draft.body = bytes,
            Err(_) => all.leave_out("a body that is no base64: it is sent as its text"),
        }
    }
}

/// A part of a form. A recording has the names of files, and hardly ever their content.
fn form_part(param: &Value, all: &mut ScenarioBuilder) -> (String, YamlValue) {
    let given = |key| Some(text(param, key)).filter(|text| !text.is_empty());
    let (value, filename) = (text(param, "value"), given("fileName"));
    let file = filename.and_then(below).filter(|_| value.is_empty());
    if let Some(file) = &file {
        all.remark(format!("Put the file {file} beside the scenario: a form sends it."));
    }
    let content = file.map_or_else(|| Ok(value.into()), Err);
    (text(param, "name").to_owned(), part(content, given("contentType"), filename))
}
