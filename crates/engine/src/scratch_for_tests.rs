//! Files of tests.

use std::path::PathBuf;

/// A path for one file of a test, which is removed after it.
pub(crate) struct ScratchPath(pub(crate) PathBuf);

impl ScratchPath {
    /// `name` is the test's alone.
    pub(crate) fn new(name: &str) -> ScratchPath {
        let name = format!("knee-{}-{name}", std::process::id());
        ScratchPath(std::env::temp_dir().join(name))
    }
}

impl Drop for ScratchPath {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
