//! Checks what a machine can check of the architecture: calls, dependencies, circles, reach.
//!
//! Each rule is a function from the sources to violations, so that a test can show it on a made-up
//! repository of one file. `cargo test -p xtask` checks this repository itself.

mod calls;
mod code;
mod dependencies;
mod reach;

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
/// How many rules are broken, or which file cannot be read.
pub fn run() -> Result<(), String> {
    let sources = repo::sources(&repo::root())?;
    let broken = check(&sources);
    for violation in &broken {
        println!("{violation}");
    }
    match broken.len() {
        0 => Ok(()),
        n => Err(format!("tidy: {n} to put right")),
    }
}

/// All violations in these files.
pub fn check(sources: &[RepoFile]) -> Vec<TidyViolation> {
    let rust = sources.iter().filter(|s| s.path.ends_with(".rs"));
    let rust: Vec<RustFile> = rust.map(RustFile::new).collect();
    let mut broken = Vec::new();
    for source in sources.iter().filter(|s| s.path.ends_with("Cargo.toml")) {
        broken.extend(dependencies::check_manifest(source));
    }
    for code in &rust {
        broken.extend(calls::check(code));
    }
    broken.extend(reach::check_links(sources));
    broken.extend(dependencies::check_parts(&rust));
    broken.extend(reach::check_files(&rust));
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules broken by a repository of this one file, as `line: rule`.
    pub fn broken_by(path: &str, text: &str) -> Vec<String> {
        let source = RepoFile { path: path.into(), text: text.into() };
        check(&[source]).iter().map(|v| format!("{}: {}", v.line, v.rule)).collect()
    }

    #[test]
    fn this_repository_is_tidy() {
        let broken = check(&repo::sources(&repo::root()).unwrap());
        let lines: Vec<String> = broken.iter().map(ToString::to_string).collect();
        assert!(lines.is_empty(), "\n{}", lines.join("\n"));
    }

    #[test]
    fn a_violation_names_place_rule_and_remedy() {
        let source =
            RepoFile { path: "crates/cli/src/x.rs".into(), text: "fn a() { todo!() }\n".into() };
        let shown = check(&[source])[0].to_string();
        assert!(shown.starts_with("crates/cli/src/x.rs:1: unfinished: "), "{shown}");
    }
}
