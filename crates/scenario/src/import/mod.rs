//! Loads of other programs as a scenario file. Sources are curl lines, browsers' recordings,
//! descriptions of APIs, and files of other load generators.
//!
//! Each format has a file of its own, which reads into a `ScenarioBuilder`. That puts together the
//! steps as they are written, values of `yaml`. What has no place in a scenario is named, so that
//! nobody takes the file for more than it is.

mod body;
mod builder;
mod credentials;
mod curl;
pub mod data;
mod grammar;
mod har;
mod jmeter;
mod json_text;
mod openapi;
#[cfg(test)]
mod tests;
mod text;
mod url;
mod yaml;

use knee_load::quantity::ParseError;
use knee_load::secrets::SecretNames;
use knee_load::shown::shown;
use std::collections::BTreeMap;
use yaml::{YamlMap, YamlValue};

pub use curl::{curl_as_options, curl_line, curl_line_words, curl_words, is_curl, typographic};
pub use har::har;
pub use jmeter::jmeter;
pub use openapi::openapi;
pub use text::{ImportedText, TextPart};

/// No file with more bytes is imported.
const INPUT_MAX: usize = 256 << 20;

/// A scenario file that was imported.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedScenario {
    /// Each `http://host` or `https://host`, with its port where that is not the scheme's own. They
    /// may have values of the environment. There is at least one; paths alone are of the first.
    pub targets: Vec<ImportedText>,
    /// What is worth knowing about the file, a sentence each.
    pub remarks: Vec<String>,
    /// What could not be taken over, in the order of the source.
    pub left_out: Vec<String>,
    /// All but the targets.
    file: YamlMap,
}

impl ImportedScenario {
    /// The same with credentials in headers given by the environment, so that the file has none.
    pub fn without_credentials(mut self, names: &SecretNames) -> ImportedScenario {
        let mut variables = BTreeMap::new();
        let mut see = |map: &mut YamlMap| {
            for (name, value) in builder::headers_of(map).into_iter().flatten() {
                if let YamlValue::Template(value) = value
                    && let Some(by) =
                        credentials::of_environment(names, name, value, &mut variables)
                {
                    *value = by;
                }
            }
        };
        self.file.iter_mut().for_each(|(_, value)| value.each_map(&mut see));
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
        let line = |text: &str| text.replace(char::is_control, " ");
        let mut lines = vec![format!("# Imported from {}.", line(source))];
        lines.extend(self.remarks.iter().map(|remark| format!("# {}", line(remark))));
        lines.extend(self.left_out.iter().map(|what| format!("# left out: {}", line(what))));
        let target = |target: &ImportedText| YamlValue::word(&target.template());
        let targets = match &self.targets[..] {
            [one] => target(one),
            all => YamlValue::List(all.iter().map(target).collect()),
        };
        yaml::put_map(&[("target".to_owned(), targets)], 0, &mut lines);
        yaml::put_map(&self.file, 0, &mut lines);
        lines.join("\n") + "\n"
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
