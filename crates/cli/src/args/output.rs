//! Where the report goes.

use crate::failure::Failure;
use crate::{stdout, terminal};
use clap::Args;
use knee_core::report::Report;
use knee_render::{Json, Renderer, Text};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Write the report there as JSON too; '-' is standard output, and nothing else goes there
    #[arg(long, value_name = "FILE")]
    pub json: Option<String>,

    /// No progress, no notes; the report and errors only
    #[arg(long, hide_short_help = true)]
    pub quiet: bool,

    /// No colour; without it colour is used only on a terminal and unless NO_COLOR is set
    #[arg(long, hide_short_help = true)]
    pub no_color: bool,
}

impl OutputArgs {
    /// Opens the files named, so that one that cannot be written is told before any load.
    pub fn resolve(&self) -> Result<Output, Failure> {
        let json = match self.json.as_deref() {
            None => None,
            Some("-") => Some(JsonTo::Stdout),
            Some(path) => Some(JsonTo::File(JsonFile::open(path)?)),
        };
        Ok(Output {
            json,
            quiet: self.quiet,
            no_color: self.no_color,
        })
    }
}

/// Where the report goes, ready to be written.
#[derive(Debug)]
pub struct Output {
    json: Option<JsonTo>,
    quiet: bool,
    no_color: bool,
}

#[derive(Debug)]
enum JsonTo {
    Stdout,
    File(JsonFile),
}

impl Output {
    /// Whether progress may be shown: on a terminal and unless `--quiet`.
    pub fn shows_progress(&self) -> bool {
        !self.quiet && terminal::is_stderr()
    }

    /// Says something on standard error, unless `--quiet`.
    pub fn note(&self, line: &str) {
        self.notes().tell(line);
    }

    /// What can say something also after the report was delivered.
    pub fn notes(&self) -> Notes {
        Notes { quiet: self.quiet }
    }

    /// Says on standard error why the command ends as it does, also with `--quiet`.
    pub fn explain(line: &str) {
        let _ = writeln!(io::stderr(), "{line}");
    }

    /// Writes the report: as text to standard output, unless JSON goes there, and as asked.
    pub fn deliver(mut self, report: &Report) -> Result<(), Failure> {
        let to_file = match &mut self.json {
            Some(JsonTo::File(file)) => file.write(report),
            _ => Ok(()),
        };
        let shown = match &self.json {
            Some(JsonTo::Stdout) => stdout::write(|out| Json.render(report, out)),
            _ => stdout::write(|out| self.text().render(report, out)),
        };
        to_file.and(shown)
    }

    fn text(&self) -> Text {
        Text {
            color: !self.no_color && terminal::colors_stdout(),
            width: terminal::stdout_width(),
            unicode: terminal::is_unicode(),
        }
    }
}

/// Says things on standard error, unless `--quiet`.
#[derive(Clone, Copy, Debug)]
pub struct Notes {
    quiet: bool,
}

impl Notes {
    /// Says a line.
    pub fn tell(self, line: &str) {
        if !self.quiet {
            // Nobody to tell where standard error is closed.
            let _ = writeln!(io::stderr(), "{line}");
        }
    }
}

/// A file opened before the load. What it held stays until the report is there, and a new one goes
/// again if none comes.
#[derive(Debug)]
struct JsonFile {
    path: String,
    file: File,
    is_to_be_removed: bool,
}

impl JsonFile {
    fn open(path: &str) -> Result<JsonFile, Failure> {
        let is_to_be_removed = !Path::new(path).exists();
        let file = OpenOptions::new().append(true).create(true).open(path);
        let file = file
            .map_err(|e| Failure::argument("--json", format!("'{path}' cannot be written: {e}")))?;
        Ok(JsonFile {
            path: path.to_string(),
            file,
            is_to_be_removed,
        })
    }

    fn write(&mut self, report: &Report) -> Result<(), Failure> {
        self.is_to_be_removed = false;
        self.replace(report).map_err(|e| {
            Failure::argument(
                "--json",
                format!("'{}' could not be written: {e}", self.path),
            )
        })
    }

    fn replace(&mut self, report: &Report) -> io::Result<()> {
        // A pipe or a device has nothing to replace.
        if self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        let mut out = BufWriter::new(&mut self.file);
        Json.render(report, &mut out)?;
        out.flush()
    }
}

impl Drop for JsonFile {
    fn drop(&mut self) {
        if self.is_to_be_removed {
            // An empty file left behind does no harm.
            let _ = fs::remove_file(&self.path);
        }
    }
}
