//! A recording of a browser: HTTP Archive (HAR) 1.2.

use super::collect::{Collector, Draft};
use super::data::percent_encoded;
use super::{Imported, as_text};
use crate::quantity::ParseError;
use crate::time::Nanos;
use serde::Deserialize;

/// What comes within this time of the response before was not waited for by a person.
const THINK_MIN_MS: f64 = 200.0;
/// No pause of a recording is taken over that is longer.
const THINK_MAX_MS: f64 = 300_000.0;

#[derive(Deserialize)]
struct Archive {
    log: Log,
}

#[derive(Deserialize)]
struct Log {
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(default)]
    started_date_time: String,
    #[serde(default)]
    time: Option<f64>,
    request: Request,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<Pair>,
    #[serde(default)]
    post_data: Option<PostData>,
}

#[derive(Deserialize)]
struct Pair {
    name: String,
    #[serde(default)]
    value: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PostData {
    #[serde(default)]
    mime_type: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    params: Vec<Pair>,
}

/// Imports the requests to the first one's server, in the order in which they began, with the
/// pauses between them.
///
/// # Errors
/// One line: no HAR, no request that a scenario can have.
pub fn har(bytes: &[u8]) -> Result<Imported, ParseError> {
    let text = as_text(bytes, "the file")?;
    let archive: Archive =
        serde_json::from_str(text).map_err(|e| super::wrong(format!("the file is no HAR: {e}")))?;
    let mut entries: Vec<(Option<f64>, Entry)> = archive
        .log
        .entries
        .into_iter()
        .map(|entry| (milliseconds(&entry.started_date_time), entry))
        .collect();
    if entries.iter().all(|(begun, _)| begun.is_some()) {
        entries.sort_by(|a, b| a.0.unwrap_or(0.0).total_cmp(&b.0.unwrap_or(0.0)));
    }
    let mut all = Collector::default();
    // When the last of the responses so far had ended.
    let mut ended: Option<f64> = None;
    for (begun, entry) in entries {
        let pause_ms = begun.zip(ended).map_or(0.0, |(begun, ended)| begun - ended);
        let pause = match pause_ms >= THINK_MIN_MS {
            // To whole milliseconds: a recording knows no more.
            true => Nanos::from_millis(pause_ms.min(THINK_MAX_MS) as u64),
            false => Nanos::ZERO,
        };
        let is_step = all.request_after(pause, draft(entry.request));
        let end = begun.map(|begun| begun + entry.time.unwrap_or(0.0).clamp(0.0, 1e9));
        ended = match (ended, end) {
            _ if !is_step => ended,
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => b.or(a),
        };
    }
    all.finish("the file has no request that a scenario can have")
}

fn draft(request: Request) -> Draft {
    let mut headers: Vec<(String, String)> = request
        .headers
        .into_iter()
        .map(|header| (header.name, header.value))
        .collect();
    let data = request.post_data.unwrap_or_default();
    let is_given = |h: &(String, String)| h.0.eq_ignore_ascii_case("content-type");
    if let Some(mime) = data.mime_type.filter(|mime| !mime.is_empty())
        && !headers.iter().any(is_given)
    {
        headers.push(("Content-Type".to_owned(), mime));
    }
    let pair = |p: &Pair| {
        let (name, value) = (p.name.as_bytes(), p.value.as_bytes());
        format!("{}={}", percent_encoded(name), percent_encoded(value))
    };
    let body = match data.text {
        Some(text) => text,
        None => data.params.iter().map(pair).collect::<Vec<_>>().join("&"),
    };
    Draft {
        method: request.method,
        url: request.url,
        headers,
        body: body.into_bytes(),
        drops_cookies: true,
        ..Draft::default()
    }
}

/// `2026-11-22T20:51:38.123Z` (RFC 3339) in milliseconds since 1970.
fn milliseconds(text: &str) -> Option<f64> {
    let (date, rest) = text.split_at_checked(10)?;
    let number = |text: &str| text.parse::<u32>().ok().map(f64::from);
    let mut parts = date.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let (year, month, day) = (number(year)?, number(month)?, number(day)?);
    let time = rest.strip_prefix(['T', 't', ' '])?;
    let zone = time.find(['Z', 'z', '+', '-'])?;
    let (time, zone) = time.split_at(zone);
    let mut parts = time.split(':');
    let (hours, minutes) = (number(parts.next()?)?, number(parts.next()?)?);
    let seconds: f64 = parts.next()?.parse().ok().filter(|s: &f64| s.is_finite())?;
    let offset = match zone.split_at_checked(1)? {
        ("Z" | "z", _) => 0.0,
        (sign, offset) => {
            let (hours, minutes) = offset.split_once(':')?;
            let minutes = number(hours)? * 60.0 + number(minutes)?;
            if sign == "-" { -minutes } else { minutes }
        }
    };
    let minutes = days(year, month, day) * 1440.0 + hours * 60.0 + minutes - offset;
    Some(minutes * 60_000.0 + seconds * 1000.0)
}

/// Days since 1970 began, of the Gregorian calendar.
fn days(year: f64, month: f64, day: f64) -> f64 {
    // A year that begins in March has its leap day at its end.
    let (year, month) = match month <= 2.0 {
        true => (year - 1.0, month + 9.0),
        false => (year, month - 3.0),
    };
    let leap_days = (year / 4.0).floor() - (year / 100.0).floor() + (year / 400.0).floor();
    let in_year = ((153.0 * month + 2.0) / 5.0).floor();
    year * 365.0 + leap_days + in_year + day - 1.0 - 719_468.0
}
