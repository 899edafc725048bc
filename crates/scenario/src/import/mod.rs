//! Loads of other programs as a scenario file. Sources are curl lines, browsers' recordings,
//! descriptions of APIs, and files of other load generators.
//!
//! Each format has a file of its own, which reads into a `Collector`. `model` is what comes
//! together there, and `write` makes YAML of it. What has no place in a scenario is named, so that
//! nobody takes the file for more than it is.

mod collect;
mod credentials;
mod curl;
pub mod data;
mod grammar;
mod har;
mod jmeter;
mod json_text;
mod model;
mod openapi;
#[cfg(test)]
mod tests;
mod text;
mod url;
mod vegeta;
mod walk;
mod write;
mod yaml;

#[cfg(test)]
use collect::{Collector, SourceRequest};
use knee_load::quantity::ParseError;
use knee_load::secrets::SecretNames;
use knee_load::shown::shown;
use knee_load::time::Nanos;
use std::collections::BTreeMap;

pub use curl::{curl_as_options, curl_line, curl_line_words, curl_words, is_curl, typographic};
pub use har::har;
pub use jmeter::jmeter;
pub use model::*;
pub use openapi::openapi;
pub use text::{ImportedText, TextPart};
pub use vegeta::vegeta;

/// No file with more bytes is imported.
const INPUT_MAX: usize = 256 << 20;

/// What was imported.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imported {
    /// Each `http://host` or `https://host`, with its port where that is not the scheme's own. They
    /// may have values of the environment. There is at least one; paths alone are of the first.
    pub targets: Vec<ImportedText>,
    /// Headers that all requests have.
    pub headers: Vec<(String, ImportedText)>,
    /// The most redirections that requests follow.
    pub redirects: u32,
    /// The time limit of requests.
    pub timeout: Option<Nanos>,
    /// Sets of records.
    pub data: Vec<ImportedData>,
    /// What is done once before the load.
    pub setup: Vec<ImportedStep>,
    /// The kinds of sessions, at least one.
    pub sessions: Vec<ImportedSession>,
    /// What is done once after the load.
    pub teardown: Vec<ImportedStep>,
    /// The load, where the source has one.
    pub load: ImportedLoad,
    /// Thresholds that fail the run.
    pub fail_if: Vec<String>,
    /// What is worth knowing about the file, a sentence each.
    pub remarks: Vec<String>,
    /// What could not be taken over, in the order of the source.
    pub left_out: Vec<String>,
}

impl Imported {
    /// The same with credentials in headers given by the environment, so that the file has none.
    pub fn without_credentials(mut self, names: &SecretNames) -> Imported {
        let mut variables = BTreeMap::new();
        let mut lists = vec![&mut self.headers];
        let mut requests = Vec::new();
        let sessions = self.sessions.iter_mut().flat_map(|session| &mut session.steps);
        let steps = sessions.chain(&mut self.setup).chain(&mut self.teardown);
        steps.for_each(|step| step.requests(&mut requests));
        lists.extend(requests.into_iter().map(|request| &mut request.headers));
        for (name, value) in lists.into_iter().flatten() {
            if let Some(by) = credentials::of_environment(names, name, value, &mut variables) {
                *value = by;
            }
        }
        if !variables.is_empty() {
            let all: Vec<&str> = variables.keys().map(String::as_str).collect();
            self.remarks.push(format!(
                "The environment gives the credentials, which are not in this file: set {}.",
                all.join(", ")
            ));
        }
        self
    }

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
