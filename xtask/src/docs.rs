//! Writes the pages of the documentation that are made from the code.

use crate::shell::cargo;

/// The tests that compare those pages with the code write them where this is set.
const WRITE: &str = "KNEE_WRITE_DOCS";

/// Writes them all.
///
/// # Errors
/// A test cannot be built, or a page still differs.
pub fn run() -> Result<(), String> {
    for (package, tests) in [("knee", "documented"), ("knee-render", "schema")] {
        let test = ["test", "--quiet", "--package", package, tests];
        cargo(&test, &[(WRITE, "1")])?;
    }
    Ok(())
}
