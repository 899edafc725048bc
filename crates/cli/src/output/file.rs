//! A file that a report goes to.

use crate::failure::Failure;
use crate::whole_file::OutputPlace;
use knee_render::Renderer;

/// A file for a report in one form.
pub struct ReportFile<T> {
    place: OutputPlace,
    form: Box<dyn Renderer<T>>,
}

impl<T> ReportFile<T> {
    /// Checks the file that `option` names, for a report in this form.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn open(
        option: &'static str,
        path: &str,
        form: Box<dyn Renderer<T>>,
    ) -> Result<ReportFile<T>, Failure> {
        let place = OutputPlace::open(option, path)?;
        Ok(ReportFile { place, form })
    }

    /// Writes the report in the place of an older file.
    ///
    /// # Errors
    /// The report could not be written whole.
    pub fn write(self, report: &T) -> Result<(), Failure> {
        self.place.write(|out| self.form.render(report, out))
    }
}
