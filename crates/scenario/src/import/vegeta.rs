//! Targets of vegeta, in its HTTP format and as lines of JSON.

use super::collect::{Collector, SourceRequest};
use super::{Imported, ImportedText, as_text, error};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use knee_load::quantity::ParseError;
use knee_load::time::Nanos;
use serde::Deserialize;
use std::collections::BTreeMap;

use super::data::ReadFile;

/// What vegeta has unless its command line says otherwise.
const REDIRECTS: u32 = 10;
const TIMEOUT: Nanos = Nanos::from_secs(30);

#[derive(Deserialize)]
struct VegetaTarget {
    method: String,
    url: String,
    /// In base64.
    body: Option<String>,
    #[serde(default)]
    header: BTreeMap<String, Vec<String>>,
}

/// Imports all targets, in their order.
///
/// # Errors
/// One line, with the number of the line that is wrong; a body's file that cannot be read.
pub fn vegeta(bytes: &[u8], read: ReadFile) -> Result<Imported, ParseError> {
    let text = as_text(bytes, "the file")?;
    let mut all = Collector::default();
    if text.trim_start().starts_with('{') {
        json(text, &mut all)?;
    } else {
        http(text, read, &mut all)?;
    }
    if all.len() > 1 {
        all.remark(format!(
            "A session sends all {} requests: divide the -rate of vegeta by {} for sessions.",
            all.len(),
            all.len()
        ));
    }
    all.finish("the file has no target that a scenario can have")
}

fn json(text: &str, all: &mut Collector) -> Result<(), ParseError> {
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        let line: VegetaTarget = serde_json::from_str(line)
            .map_err(|e| super::wrong(format!("line {number}: no target: {e}")))?;
        let body = BASE64.decode(line.body.unwrap_or_default());
        let body =
            body.map_err(|_| super::wrong(format!("line {number}: the body is no base64")))?;
        let headers = line.header.into_iter();
        let headers = headers.flat_map(|(name, values)| {
            let header = move |value| (name.clone(), ImportedText::from(value));
            values.into_iter().map(header)
        });
        all.request(SourceRequest {
            method: line.method,
            url: line.url.into(),
            headers: headers.collect(),
            body,
            ..targeted()
        });
    }
    Ok(())
}

fn http(text: &str, read: ReadFile, all: &mut Collector) -> Result<(), ParseError> {
    let mut target: Option<SourceRequest> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.starts_with('#') {
            continue;
        }
        let Some(draft) = target.as_mut().filter(|_| !line.is_empty()) else {
            if let Some(draft) = target.take() {
                all.request(draft);
            }
            if !line.is_empty() {
                target = Some(begin(line, number)?);
            }
            continue;
        };
        if let Some(file) = line.strip_prefix('@') {
            draft.body = read(file).map_err(|e| super::wrong(format!("line {number}: {e}")))?;
        } else if is_begin(line) {
            // Vegeta wants no empty line between targets without headers.
            let next = begin(line, number)?;
            all.request(std::mem::replace(draft, next));
        } else if let Some((name, value)) = line.split_once(':') {
            let header = (name.trim().to_owned(), value.trim().into());
            draft.headers.push(header);
        } else {
            return error(format!("line {number}: neither a header nor a target"));
        }
    }
    if let Some(draft) = target {
        all.request(draft);
    }
    Ok(())
}

/// Whether a target begins with it: a method in capitals and a URL.
fn is_begin(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let method = words.next().unwrap_or_default();
    let is_method = !method.is_empty() && method.bytes().all(|b| b.is_ascii_uppercase());
    is_method && words.next().is_some_and(|url| url.contains("://"))
}

fn begin(line: &str, number: usize) -> Result<SourceRequest, ParseError> {
    let mut words = line.split_whitespace();
    match (words.next(), words.next(), words.next()) {
        (Some(method), Some(url), None) => {
            Ok(SourceRequest { method: method.to_owned(), url: url.into(), ..targeted() })
        }
        _ => error(format!("line {number}: no target: expected METHOD URL")),
    }
}

/// What vegeta does with each target: it has no part in the others.
fn targeted() -> SourceRequest {
    SourceRequest {
        redirects: REDIRECTS,
        timeout: Some(TIMEOUT),
        goes_on: true,
        ..SourceRequest::default()
    }
}
