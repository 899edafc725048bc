//! Where the report goes.

use crate::failure::Failure;
use crate::terminal;
use clap::Args;
use knee_core::report::Report;
use knee_render::{Json, Renderer, Text};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};

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
            Some(path) => Some(JsonTo::File(path.to_string(), open(path)?)),
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
    File(String, File),
}

impl Output {
    /// Whether progress may be shown: on a terminal and unless `--quiet`.
    pub fn shows_progress(&self) -> bool {
        !self.quiet && terminal::is_stderr()
    }

    /// Says something on standard error, unless `--quiet`.
    pub fn note(&self, line: &str) {
        if !self.quiet {
            // Nobody to tell where standard error is closed.
            let _ = writeln!(io::stderr(), "{line}");
        }
    }

    /// Writes the report: as text to standard output, unless JSON goes there, and as asked.
    pub fn deliver(mut self, report: &Report) -> Result<(), Failure> {
        let to_file = match &mut self.json {
            Some(JsonTo::File(path, file)) => rewrite(file, report).map_err(|e| {
                Failure::argument("--json", format!("'{path}' could not be written: {e}"))
            }),
            _ => Ok(()),
        };
        let shown = match &self.json {
            Some(JsonTo::Stdout) => to_stdout(&Json, report),
            _ => to_stdout(&self.text(), report),
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

fn open(path: &str) -> Result<File, Failure> {
    let file = OpenOptions::new().append(true).create(true).open(path);
    file.map_err(|e| Failure::argument("--json", format!("'{path}' cannot be written: {e}")))
}

/// Replaces what the file held; only now, so that a run that ends in an error keeps the old one.
fn rewrite(file: &mut File, report: &Report) -> io::Result<()> {
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    let mut out = BufWriter::new(file);
    Json.render(report, &mut out)?;
    out.flush()
}

/// Renders to standard output. A reader that went away is no error.
fn to_stdout(renderer: &dyn Renderer, report: &Report) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    let written = renderer.render(report, &mut out).and_then(|()| out.flush());
    match written {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(Failure::input(format!(
            "standard output could not be written: {e}"
        ))),
        _ => Ok(()),
    }
}
