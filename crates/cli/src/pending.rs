//! A file that is opened before the load and written after it began.

use crate::failure::Failure;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

/// A file opened before the load, so that one that cannot be written is told in time. What it held
/// stays until there is something to put in its place, and a new one goes again if nothing comes.
#[derive(Debug)]
pub struct PendingFile {
    option: &'static str,
    path: String,
    file: File,
    is_to_be_removed: bool,
}

impl PendingFile {
    /// Opens the file that `option` names.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn open(option: &'static str, path: &str) -> Result<PendingFile, Failure> {
        let is_to_be_removed = !Path::new(path).exists();
        let file = OpenOptions::new().append(true).create(true).open(path);
        let file = file
            .map_err(|e| Failure::argument(option, format!("'{path}' cannot be written: {e}")))?;
        Ok(PendingFile {
            option,
            path: path.to_string(),
            file,
            is_to_be_removed,
        })
    }

    /// The option that names it.
    pub fn option(&self) -> &'static str {
        self.option
    }

    /// Where it is.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The file, emptied, for what takes the place of what it held.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn begin(&mut self) -> io::Result<&File> {
        self.is_to_be_removed = false;
        // A pipe or a device has nothing to replace.
        if self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        Ok(&self.file)
    }

    /// Makes sure that all of it is where it belongs: some file systems tell only then that it is
    /// not.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn end(&self) -> io::Result<()> {
        settle(&self.file)
    }
}

/// Has what was written to a file on its disk; a pipe or a device has none.
pub fn settle(file: &File) -> io::Result<()> {
    match file.metadata()?.is_file() {
        true => file.sync_all(),
        false => Ok(()),
    }
}

impl Drop for PendingFile {
    fn drop(&mut self) {
        if self.is_to_be_removed {
            // An empty file left behind does no harm.
            let _ = fs::remove_file(&self.path);
        }
    }
}
