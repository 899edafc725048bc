//! `knee explain`: what a code in a report means.

use crate::failure::{Exit, Failure};
use crate::output::text;
use crate::stdio;
use clap::Args;
use knee_core::report::codes::{chapters, codes, entry};
use knee_render::{Renderer, Text};

/// Names that are at least this similar to what was typed are worth a suggestion.
const SIMILAR: f64 = 0.8;
/// The most names suggested.
const SUGGESTED_MAX: usize = 3;

/// Explain a finding or a reason for INVALID
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Examples:\n  knee explain                        all codes, a line each\n  \
    knee explain saturated_below_range  the cause of a finding and its remedy\n  \
    knee explain INVALID                the verdict and its reasons"
)]
pub struct RawExplain {
    /// Code of a finding or of a reason, as in the report; default: a list of all codes
    #[arg(value_name = "CODE")]
    code: Option<String>,
}

/// Prints the page, or the list.
pub fn execute(raw: &RawExplain) -> Result<Exit, Failure> {
    let text = text(false);
    let text = Text { width: text.width.min(Text::default().width), ..text };
    match &raw.code {
        None => stdio::write(|out| text.render(&chapters(), out))?,
        Some(name) => {
            let entry = entry(name).ok_or_else(|| unknown(name))?;
            stdio::write(|out| text.render(&entry, out))?;
        }
    }
    Ok(Exit::Fine)
}

fn unknown(name: &str) -> Failure {
    let expected = match near(name).as_slice() {
        [] => "a code of the list that 'knee explain' prints".to_owned(),
        names => format!("{}; 'knee explain' lists all codes", names.join(" or ")),
    };
    Failure::input(format!("invalid code '{name}': expected {expected}"))
}

/// Names that contain what was typed, then those that are spelt much alike.
fn near(typed: &str) -> Vec<&'static str> {
    let typed = typed.to_lowercase().replace(['-', ' '], "_");
    let similarity = |name: &str| {
        let name = name.to_lowercase();
        if typed.len() > 2 && name.contains(&typed) {
            1.0
        } else {
            strsim::jaro_winkler(&name, &typed)
        }
    };
    let mut names: Vec<(f64, &str)> = codes()
        .map(|code| (similarity(code.name), code.name))
        .filter(|(similarity, _)| *similarity >= SIMILAR)
        .collect();
    names.sort_by(|a, b| b.0.total_cmp(&a.0));
    names.into_iter().take(SUGGESTED_MAX).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_code_names_those_that_are_near() {
        assert!(near("saturated").contains(&"not_saturated"));
        assert_eq!(near("past_kneee")[0], "past_knee");
        assert_eq!(near("Past Knee")[0], "past_knee");
        assert!(near("xyzzy").is_empty());
        let failure = execute(&RawExplain { code: Some("saturated_b".into()) });
        let failure = failure.expect_err("no such code");
        assert_eq!(failure.exit, Exit::BadInput);
        assert_eq!(
            failure.line,
            "invalid code 'saturated_b': expected saturated_below_range; \
             'knee explain' lists all codes"
        );
    }

    /// A code that is not listed has no page.
    #[test]
    fn every_code_in_the_sources_is_listed() {
        let core = concat!(env!("CARGO_MANIFEST_DIR"), "/../core/src");
        let mut defined = Vec::new();
        collect(std::path::Path::new(core), &mut defined);
        assert!(defined.len() > 30, "{defined:?}");
        let listed: Vec<&str> = codes().map(|code| code.name).collect();
        let missing: Vec<&String> =
            defined.iter().filter(|name| !listed.contains(&name.as_str())).collect();
        assert!(missing.is_empty(), "{missing:?} in no CODES, or that not in report::codes");
    }

    /// The names of all constants of the type `Code`, and of all that `codes!` declares, in the
    /// files of a folder.
    fn collect(folder: &std::path::Path, names: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, names);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                for part in text.split(": Code = Code {").skip(1) {
                    let name = part.split("name: \"").nth(1).unwrap();
                    names.push(name.split('"').next().unwrap().to_owned());
                }
                let declared: Vec<&str> = text.split("\":\n        cause ").collect();
                for part in &declared[..declared.len() - 1] {
                    names.push(part.rsplit('"').next().unwrap().to_owned());
                }
            }
        }
    }
}
