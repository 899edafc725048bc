//! All the places that a report goes to.

use super::all_of;
use crate::failure::Failure;
use crate::stdout;
use crate::whole_file::OutputPlace;
use knee_render::Renderer;

/// Files, and what goes to standard output, for a report or a comparison (`T`).
pub struct Files<T> {
    files: Vec<ReportFile<T>>,
    /// What takes standard output from the text: which option, and in which form.
    stdout: Option<(&'static str, Box<dyn Renderer<T>>)>,
}

impl<T> Files<T> {
    /// Nowhere but standard output, as text.
    pub fn none() -> Files<T> {
        Files { files: Vec::new(), stdout: None }
    }

    /// The report goes to `path` in this form too, if it was given.
    ///
    /// # Errors
    /// It cannot be written, or standard output is taken already.
    pub fn add(
        &mut self,
        option: &'static str,
        path: Option<&str>,
        form: Box<dyn Renderer<T>>,
    ) -> Result<(), Failure> {
        match path {
            None => {}
            Some("-") => {
                if let Some((other, _)) = &self.stdout {
                    let wrong = format!("standard output is taken by {other}: name a file");
                    return Err(Failure::argument(option, wrong));
                }
                self.stdout = Some((option, form));
            }
            Some(path) => self.files.push(ReportFile::open(option, path, form)?),
        }
        Ok(())
    }

    /// Writes the report: as text to standard output, unless another form goes there, and as asked.
    /// A file that cannot be written does not keep it from the others.
    ///
    /// # Errors
    /// One of them could not be written.
    pub fn deliver(self, report: &T, text: &dyn Renderer<T>) -> Result<(), Failure> {
        let form = self.stdout.as_ref().map_or(text, |(_, form)| &**form);
        let shown = stdout::write(|out| form.render(report, out));
        let written = self.files.into_iter().map(|file| file.write(report));
        all_of(std::iter::once(shown).chain(written))
    }
}

/// A file for a report in one form.
struct ReportFile<T> {
    place: OutputPlace,
    form: Box<dyn Renderer<T>>,
}

impl<T> ReportFile<T> {
    /// Checks the file that `option` names, for a report in this form.
    ///
    /// # Errors
    /// It cannot be written.
    fn open(
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
    fn write(self, report: &T) -> Result<(), Failure> {
        self.place.write(|out| self.form.render(report, out))
    }
}
