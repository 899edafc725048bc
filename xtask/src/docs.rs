//! Writes the pages of the documentation that are made from the code.

use crate::repo;
use std::process::Command;

/// The tests that compare those pages with the code write them where this is set.
const WRITE: &str = "KNEE_WRITE_DOCS";

/// Writes them all.
///
/// # Errors
/// A test cannot be built, or a page still differs.
pub fn run() -> Result<(), String> {
    for (package, tests) in [("knee", "documented"), ("knee-render", "schema")] {
        let program = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
        let mut command = Command::new(program);
        command
            .args(["test", "--quiet", "--package", package, tests])
            .current_dir(repo::root())
            .env(WRITE, "1");
        match command.status() {
            Ok(status) if status.success() => {}
            Ok(status) => return Err(format!("cargo test --package {package}: {status}")),
            Err(e) => return Err(format!("cargo test --package {package}: {e}")),
        }
    }
    Ok(())
}
