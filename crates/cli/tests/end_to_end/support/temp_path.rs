//! Files that go with the test.

use std::path::PathBuf;

/// A path in the system's directory for temporary files, gone when dropped.
pub struct TempPath(pub PathBuf);

impl TempPath {
    /// One that no other test uses, if the name is not used by another.
    pub fn new(name: &str) -> TempPath {
        TempPath(std::env::temp_dir().join(format!("knee-{}-{name}", std::process::id())))
    }

    pub fn with(name: &str, content: &str) -> TempPath {
        let path = TempPath::new(name);
        std::fs::write(&path.0, content).unwrap();
        path
    }

    pub fn str(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for TempPath {
    fn drop(&mut self) {
        // It may never have been written.
        if std::fs::remove_file(&self.0).is_err() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}
