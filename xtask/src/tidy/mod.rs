//! Checks what a machine can check of the architecture: calls, dependencies, circles, links.
//!
//! Each rule is a function from the sources to violations, so that a test can show it on a made-up
//! repository of one file. `cargo test -p xtask` checks this repository itself.

mod calls;
mod circles;
mod code;
mod dependencies;
mod links;

use crate::repo::{self, RepoFile};
use code::RustFile;
use std::fmt;

/// One broken rule.
#[derive(Clone, Debug, PartialEq)]
pub struct TidyViolation {
    path: String,
    line: usize,
    rule: &'static str,
    remedy: String,
}

impl TidyViolation {
    fn at(path: &str, line: usize, rule: &'static str, remedy: impl Into<String>) -> Self {
        TidyViolation { path: path.to_owned(), line, rule, remedy: remedy.into() }
    }
}

impl fmt::Display for TidyViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.rule, self.remedy)
    }
}

/// Checks the repository and prints what is wrong.
///
/// # Errors
/// How many rules are broken, or what cannot be read.
pub fn run() -> Result<(), String> {
    let broken = check_repository()?;
    for violation in &broken {
        println!("{violation}");
    }
    match broken.len() {
        0 => Ok(()),
        n => Err(format!("tidy: {n} to put right")),
    }
}

fn check_repository() -> Result<Vec<TidyViolation>, String> {
    let mut broken = check(&repo::sources(&repo::root())?);
    broken.extend(dependencies::check(&repo::metadata()?));
    Ok(broken)
}

/// All violations in these files.
fn check(sources: &[RepoFile]) -> Vec<TidyViolation> {
    let rust = sources.iter().filter(|s| s.path.ends_with(".rs"));
    let rust: Vec<RustFile> = rust.map(RustFile::new).collect();
    let mut broken: Vec<TidyViolation> = rust.iter().flat_map(calls::check).collect();
    broken.extend(links::check(sources));
    broken.extend(circles::check(&rust));
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules broken by this file alone, as `line: rule`.
    pub fn broken_by(path: &str, text: &str) -> Vec<String> {
        let source = RepoFile { path: path.into(), text: text.into() };
        let broken = calls::check(&RustFile::new(&source));
        broken.iter().map(|v| format!("{}: {}", v.line, v.rule)).collect()
    }

    #[test]
    fn this_repository_is_tidy() {
        let broken = check_repository().unwrap();
        let lines: Vec<String> = broken.iter().map(ToString::to_string).collect();
        assert!(lines.is_empty(), "\n{}", lines.join("\n"));
    }

    #[test]
    fn a_violation_names_place_rule_and_remedy() {
        let text = "fn a() { Instant::now() }\n".into();
        let source = RepoFile { path: "crates/core/src/x.rs".into(), text };
        let shown = calls::check(&RustFile::new(&source))[0].to_string();
        assert!(shown.starts_with("crates/core/src/x.rs:1: banned call: Instant::now"), "{shown}");
    }
}
