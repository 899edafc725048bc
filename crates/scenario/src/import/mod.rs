//! Loads of other programs as a scenario file. Sources are curl lines, browsers' recordings,
//! descriptions of APIs, and files of other load generators.
//!
//! Each format has a file of its own, which reads into a `Collector`; `write` makes YAML of what
//! came together. What has no place in a scenario is named, so that nobody takes the file for more
//! than it is.

mod collect;
mod curl;
pub mod data;
mod har;
mod jmeter;
mod json_text;
mod k6;
mod openapi;
#[cfg(test)]
mod tests;
mod vegeta;
mod write;
mod yaml;

#[cfg(test)]
use collect::{Collector, SourceRequest};
use knee_load::quantity::ParseError;
use knee_load::shown::shown;
use knee_load::time::Nanos;

pub use curl::{curl_as_options, curl_line, curl_line_words, curl_words, is_curl};
pub use har::har;
pub use jmeter::jmeter;
pub use k6::k6;
pub use openapi::openapi;
pub use vegeta::vegeta;

/// No file with more bytes is imported.
pub const INPUT_MAX: usize = 256 << 20;

/// What was imported.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imported {
    /// `http://host` or `https://host`, with its port where that is not the scheme's own.
    pub target: String,
    /// Headers that all requests have.
    pub headers: Vec<(String, String)>,
    /// What a user does, at least one request.
    pub steps: Vec<ImportedStep>,
    /// The load, where the source has one.
    pub load: ImportedLoad,
    /// What is worth knowing about the file, a sentence each.
    pub remarks: Vec<String>,
    /// What could not be taken over, in the order of the source.
    pub left_out: Vec<String>,
}

/// A load as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ImportedLoad {
    /// Sessions per second.
    pub rate_per_s: Option<f64>,
    /// Users.
    pub vusers: Option<u32>,
    /// Measured time.
    pub duration: Option<Nanos>,
}

/// One thing that a user does.
#[derive(Clone, Debug, PartialEq)]
pub enum ImportedStep {
    /// Sends a request.
    Request(Box<ImportedRequest>),
    /// Waits.
    Think(Nanos),
}

/// A request of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedRequest {
    /// `GET`, ….
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Its name in reports.
    pub name: Option<String>,
    /// Headers, no name twice.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub content: ImportedBody,
    /// The most redirections that are followed.
    pub redirects: u32,
    /// Whether a session goes on after a failure.
    pub goes_on: bool,
}

/// A body, in the form that is easiest to change.
#[derive(Clone, Debug, PartialEq)]
pub enum ImportedBody {
    /// None.
    None,
    /// JSON on one line, with no name twice in an object.
    Json(String),
    /// Names and values of a form, no name twice.
    Form(Vec<(String, String)>),
    /// Any text.
    Text(String),
}

impl Imported {
    /// The scenario file in YAML; `source` says what it was made of.
    pub fn to_yaml(&self, source: &str) -> String {
        write::yaml(self, source)
    }
}

/// An error about a source, in one line without hidden characters.
fn wrong(what: impl AsRef<str>) -> ParseError {
    ParseError(shown(what.as_ref()).into_owned())
}

/// An error as a result.
fn error<T>(what: impl AsRef<str>) -> Result<T, ParseError> {
    Err(wrong(what))
}

fn as_text<'a>(bytes: &'a [u8], what: &str) -> Result<&'a str, ParseError> {
    if bytes.len() > INPUT_MAX {
        return error("the file is larger than 256 MiB");
    }
    let text = std::str::from_utf8(bytes);
    let text = text.map_err(|_| wrong(format!("{what} is not UTF-8 text")))?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}
