//! A recording of a browser: HTTP Archive (HAR) 1.2.

use super::collect::{Collector, SourceRequest, below};
use super::{Imported, ImportedBody, ImportedPart, as_text};
use knee_load::date::iso8601_ms;
use knee_load::percent;
use knee_load::quantity::ParseError;
use knee_load::time::Nanos;
use serde::Deserialize;

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
    #[serde(default)]
    started_date_time: String,
    #[serde(default)]
    time: Option<f64>,
    request: HarRequest,
    #[serde(default)]
    response: HarResponse,
    /// Browsers say so where no server was asked.
    #[serde(default, rename = "_fromCache")]
    from_cache: Option<String>,
}

#[derive(Default, Deserialize)]
struct HarResponse {
    #[serde(default)]
    status: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HarRequest {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<HarPair>,
    #[serde(default)]
    post_data: Option<HarPostData>,
}

#[derive(Deserialize)]
struct HarPair {
    name: String,
    #[serde(default)]
    value: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct HarPostData {
    #[serde(default)]
    mime_type: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    params: Vec<HarParam>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HarParam {
    name: String,
    #[serde(default)]
    value: Option<String>,
    #[serde(default)]
    file_name: Option<String>,
    #[serde(default)]
    content_type: Option<String>,
}

/// Imports the requests to the first one's server, in the order in which they began, with the
/// pauses between them.
///
/// # Errors
/// One line: no HAR, no request that a scenario can have.
pub fn har(bytes: &[u8]) -> Result<Imported, ParseError> {
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
    // When the last of the responses so far had ended.
    let mut ended: Option<f64> = None;
    for (begun, entry) in entries {
        if let Some(why) = unanswered(&entry) {
            all.leave_out(format!("{} {}: {why}", entry.request.method, entry.request.url));
            continue;
        }
        let pause_ms = begun.zip(ended).map_or(0.0, |(begun, ended)| begun - ended);
        let pause = if pause_ms >= THINK_MIN_MS {
            // To whole milliseconds: a recording knows no more.
            Nanos::from_millis(pause_ms.min(THINK_MAX_MS) as u64)
        } else {
            Nanos::ZERO
        };
        let status = entry.response.status;
        let mut draft = draft(entry.request, &mut all);
        // Without this a recorded error would count as a failure.
        draft.expect.status.extend((400..=599).contains(&status).then(|| status.to_string()));
        let is_step = all.request_after(pause, draft);
        let end = begun.map(|begun| begun + entry.time.unwrap_or(0.0).clamp(0.0, 1e9));
        ended = match (ended, end) {
            _ if !is_step => ended,
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => b.or(a),
        };
    }
    all.finish("the file has no request that a scenario can have")
}

/// Why a recorded request had no answer of a server; `None` if it had one, or nobody knows.
fn unanswered(entry: &HarEntry) -> Option<&'static str> {
    let is_whole = entry.time.is_some_and(|time| time > 0.0);
    match (&entry.from_cache, entry.response.status) {
        (Some(from), _) if !from.is_empty() => Some("it came from the cache of the browser"),
        // A recording without responses has no times either.
        (_, ..0) => Some("it was blocked, or failed"),
        (_, 0) if !is_whole && entry.time.is_some() => Some("it was blocked, or failed"),
        _ => None,
    }
}

fn draft(request: HarRequest, all: &mut Collector) -> SourceRequest {
    let headers = request.headers.into_iter();
    let mut draft = SourceRequest {
        method: request.method,
        url: request.url.into(),
        headers: headers.map(|header| (header.name, header.value.into())).collect(),
        drops_cookies: true,
        ..SourceRequest::default()
    };
    let data = request.post_data.unwrap_or_default();
    let media = data.mime_type.unwrap_or_default();
    let is_multipart = media.trim().to_ascii_lowercase().starts_with("multipart/form-data");
    if is_multipart && !data.params.is_empty() {
        // The recorded boundary is not that of the new body.
        draft.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
        let parts = data.params.into_iter().filter_map(|param| {
            let file = param.file_name.filter(|file| !file.is_empty());
            let content = match &file {
                None => Ok(param.value.unwrap_or_default().into()),
                Some(file) => match below(file) {
                    Some(path) => Err(path),
                    None => {
                        all.leave_out(format!("the file of '{}' in a form", param.name));
                        return None;
                    }
                },
            };
            if let Err(file) = &content {
                all.remark(format!("Put the file {file} beside the scenario: a form sends it."));
            }
            let media = param.content_type.filter(|media| file.is_some() && !media.is_empty());
            Some((param.name, ImportedPart { content, media, filename: None }))
        });
        draft.content = ImportedBody::Multipart(parts.collect());
        return draft;
    }
    if !media.is_empty() && !draft.has_header("content-type") {
        draft.header("Content-Type", media);
    }
    let pairs = data.params.iter();
    let pairs =
        pairs.map(|param| percent::pair(&param.name, param.value.as_deref().unwrap_or_default()));
    let body = data.text.unwrap_or_else(|| pairs.collect::<Vec<_>>().join("&"));
    draft.body = body.into_bytes();
    draft
}
