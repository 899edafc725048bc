//! A file that a report goes to.

use crate::failure::Failure;
use crate::pending::PendingFile;
use knee_render::Renderer;
use std::io::{self, BufWriter, Write};

/// A file for a report in one form.
pub struct ReportFile<T> {
    file: PendingFile,
    form: Box<dyn Renderer<T>>,
}

impl<T> ReportFile<T> {
    /// Opens the file that `option` names, for a report in this form.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn open(
        option: &'static str,
        path: &str,
        form: Box<dyn Renderer<T>>,
    ) -> Result<ReportFile<T>, Failure> {
        let file = PendingFile::open(option, path)?;
        Ok(ReportFile { file, form })
    }

    /// Writes the report in the place of what it held.
    ///
    /// # Errors
    /// It could not be written.
    pub fn write(&mut self, report: &T) -> Result<(), Failure> {
        self.replace(report).map_err(|e| {
            let wrong = format!("'{}' could not be written: {e}", self.file.path());
            Failure::argument(self.file.option(), wrong)
        })
    }

    fn replace(&mut self, report: &T) -> io::Result<()> {
        let mut out = BufWriter::new(self.file.begin()?);
        self.form.render(report, &mut out)?;
        out.flush()?;
        drop(out);
        self.file.end()
    }
}
