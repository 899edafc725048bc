//! A recording of a browser: HTTP Archive (HAR) 1.2.

use super::collect::{Collector, FORM, SourceRequest, below};
use super::url::encoded;
use super::{Imported, ImportedBody, ImportedPart, ImportedStep, ImportedText, as_text};
use crate::flow::BRANCHES_MAX;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use knee_load::percent;
use knee_load::quantity::ParseError;
use knee_load::spec::Url;
use knee_load::time::{Nanos, iso8601_ms};
use serde::{Deserialize, Deserializer};

/// What comes within this time of the response before was not waited for by a person.
const THINK_MIN_MS: f64 = 200.0;
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

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HarEntry {
    #[serde(default, deserialize_with = "or_default")]
    started_date_time: String,
    time: Option<f64>,
    request: HarRequest,
    response: Option<HarResponse>,
    /// How browsers name what they did not ask the server for.
    #[serde(rename = "_fromCache")]
    from_cache: Option<String>,
    #[serde(rename = "_webSocketMessages")]
    messages: Option<serde::de::IgnoredAny>,
}

impl HarEntry {
    /// Whether the server switched to another protocol: that of WebSocket.
    fn is_upgraded(&self) -> bool {
        self.response.as_ref().is_some_and(|response| response.status == 101.0)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HarRequest {
    method: String,
    url: String,
    #[serde(default, deserialize_with = "or_default")]
    headers: Vec<HarPair>,
    #[serde(default, deserialize_with = "or_default")]
    post_data: HarPostData,
}

#[derive(Deserialize)]
struct HarResponse {
    #[serde(default, deserialize_with = "or_default")]
    status: f64,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct HarPair {
    #[serde(deserialize_with = "or_default")]
    name: String,
    #[serde(deserialize_with = "or_default")]
    value: String,
    #[serde(deserialize_with = "or_default")]
    file_name: String,
    #[serde(deserialize_with = "or_default")]
    content_type: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct HarPostData {
    #[serde(deserialize_with = "or_default")]
    mime_type: String,
    #[serde(deserialize_with = "or_default")]
    text: String,
    #[serde(deserialize_with = "or_default")]
    params: Vec<HarPair>,
    #[serde(deserialize_with = "or_default")]
    encoding: String,
}

/// Programs write `null` for what they do not have.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Imports the requests to these servers, or to the first one's where none is given, in the order
/// in which they began. They have the pauses between them, and expect the recorded statuses.
///
/// # Errors
/// One line: no HAR, no request that a scenario can have.
pub fn har(bytes: &[u8], servers: &[Url]) -> Result<Imported, ParseError> {
    let text = as_text(bytes, "the file")?;
    let archive: HarArchive =
        serde_json::from_str(text).map_err(|e| super::wrong(format!("the file is no HAR: {e}")))?;
    let mut entries: Vec<(Option<f64>, HarEntry)> = archive
        .log
        .entries
        .into_iter()
        .map(|entry| (iso8601_ms(&entry.started_date_time), entry))
        .collect();
    if entries.iter().all(|(begun, _)| begun.is_some()) {
        entries.sort_by(|a, b| a.0.unwrap_or(0.0).total_cmp(&b.0.unwrap_or(0.0)));
    }
    let mut all = Collector::default();
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
        if !batch.overlaps(begun) {
            ended = std::mem::take(&mut batch).finish(ended, &mut all);
        }
        let time_ms = entry.time.unwrap_or(0.0).clamp(0.0, 1e9);
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
    drafts: Vec<SourceRequest>,
    /// Why others after these are not sent.
    unsent: Vec<String>,
}

impl HarBatch {
    /// Whether a request that began then was under way together with all of these.
    fn overlaps(&self, begun: Option<f64>) -> bool {
        let has_room = self.drafts.len() < BRANCHES_MAX;
        has_room && begun.zip(self.first_end).is_some_and(|(begun, end)| begun < end)
    }

    fn add(&mut self, begun: Option<f64>, time_ms: f64, draft: SourceRequest) {
        let end = begun.map(|begun| begun + time_ms);
        self.begun = self.begun.or(begun);
        self.first_end = self.first_end.into_iter().chain(end).reduce(f64::min);
        self.last_end = self.last_end.into_iter().chain(end).reduce(f64::max);
        self.drafts.push(draft);
    }

    /// Takes them up, after the pause since the responses before had `ended`. When the last of all
    /// so far had ended.
    fn finish(mut self, ended: Option<f64>, all: &mut Collector) -> Option<f64> {
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
                    all.push(ImportedStep::Parallel(steps));
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
    let url = encoded(&entry.request.url);
    let scheme = url.split("://").next().unwrap_or_default();
    match scheme {
        "data" | "blob" | "chrome-extension" | "about" | "file" => {
            return Some(format!("what the browser had itself ({scheme}:)"));
        }
        _ if matches!(scheme, "ws" | "wss") || entry.messages.is_some() || entry.is_upgraded() => {
            return Some("WebSockets: they are not imported".to_owned());
        }
        _ if scheme.starts_with("data:") || scheme.starts_with("blob:") => {
            return Some("what the browser had itself".to_owned());
        }
        _ => {}
    }
    if let Some(cache) = &entry.from_cache {
        return Some(format!("what the browser had in its cache ({cache})"));
    }
    if entry.response.as_ref().is_some_and(|response| response.status <= 0.0) {
        let HarRequest { method, url, .. } = &entry.request;
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

fn draft(entry: HarEntry, all: &mut Collector) -> SourceRequest {
    let HarEntry { request, response, .. } = entry;
    let headers = request.headers.into_iter();
    let mut draft = SourceRequest {
        method: request.method,
        url: request.url.into(),
        headers: headers.map(|header| (header.name, header.value.into())).collect(),
        drops_cookies: true,
        ..SourceRequest::default()
    };
    let status = response.map_or(0.0, |response| response.status);
    if (100.0..600.0).contains(&status) && status.fract() == 0.0 {
        match status {
            // The page that a cache still had is the whole one now.
            304.0 => draft.expect.status = vec!["200".to_owned(), "304".to_owned()],
            status => draft.expect.status = vec![status.to_string()],
        }
    }
    let is_decoded = request.post_data.encoding != "base64";
    draft.headers.retain(|(name, _)| !is_unfit(name, is_decoded));
    body(request.post_data, &mut draft, all);
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
fn body(data: HarPostData, draft: &mut SourceRequest, all: &mut Collector) {
    let media = data.mime_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_multipart = media == "multipart/form-data";
    if is_multipart && data.text.is_empty() && !data.params.is_empty() {
        draft.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
        let params = data.params.into_iter();
        draft.content = ImportedBody::Multipart(params.map(|param| part(param, all)).collect());
        return;
    }
    if !data.mime_type.is_empty() && !draft.has_header("content-type") {
        draft.header("Content-Type", data.mime_type.as_str());
    }
    if data.text.is_empty() {
        let pairs = data.params.iter().map(|param| percent::pair(&param.name, &param.value));
        draft.body = pairs.collect::<Vec<_>>().join("&").into_bytes();
        if !draft.body.is_empty() && media != FORM {
            all.leave_out(format!(
                "parameters of a body of type '{media}': they are sent as a form"
            ));
        }
        return;
    }
    draft.body = match data.encoding.as_str() {
        "base64" => match BASE64.decode(data.text.trim()) {
            Ok(bytes) => bytes,
            Err(_) => {
                all.leave_out("a body that is no base64: it is sent as its text");
                data.text.into_bytes()
            }
        },
        _ => data.text.into_bytes(),
    };
}

/// A part of a form. A recording has the names of files, and hardly ever their content.
fn part(param: HarPair, all: &mut Collector) -> (String, ImportedPart) {
    let file = below(&param.file_name).filter(|_| param.value.is_empty());
    if let Some(file) = &file {
        all.remark(format!("Put the file {file} beside the scenario: a form sends it."));
    }
    let part = ImportedPart {
        content: file.map_or_else(|| Ok(ImportedText::from(param.value)), Err),
        media: Some(param.content_type).filter(|media| !media.is_empty()),
        filename: Some(param.file_name).filter(|name| !name.is_empty()),
    };
    (param.name, part)
}
