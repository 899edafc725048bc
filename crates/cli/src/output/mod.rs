//! Where the report goes.

mod files;
mod watch;

use crate::args::SecretArgs;
use crate::failure::Failure;
use crate::history::{HistoryRecorder, KeepOptions};
use crate::notes::Notes;
use crate::terminal;
use crate::watch::{
    ExperimentStart, HdrFile, LiveView, MetricsServer, OtlpExport, ProgressWatcher, SharedMetrics,
    Watcher, Watchers, progress_width,
};
use clap::Args;
pub use files::Files;
use knee_core::report::Report;
use knee_load::secrets::Secrets;
use knee_render::live::TerminalStyle;
use knee_render::{Csv, Html, Json, Junit, Markdown, Renderer, Text};
use std::fmt;
use std::io::{self, Write};
use watch::{KeepArgs, WatchArgs};

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// JSON report; '-' is standard output, which then gets nothing else
    #[arg(long, value_name = "FILE")]
    pub json: Option<String>,

    /// HTML report, one file without external resources; '-' is standard output
    #[arg(long, value_name = "FILE")]
    pub html: Option<String>,

    /// Markdown report, for a pull request; '-' is standard output
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub md: Option<String>,

    /// CSV of the intervals of all trials, or of the rows of a table
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub csv: Option<String>,

    /// JUnit XML for continuous integration: one test for validity, one for each --fail-if
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub junit: Option<String>,

    /// Print the whole report: plots, evidence, next steps and how to repeat it [default: the key
    /// figures, up to five findings, and the answer last]
    #[arg(long)]
    pub full: bool,

    /// Print the report and errors only, no progress and no notes
    #[arg(long, hide_short_help = true)]
    pub quiet: bool,

    /// Disable colour; otherwise it is used on a terminal unless NO_COLOR is set
    #[arg(long, hide_short_help = true)]
    pub no_color: bool,

    #[command(flatten)]
    secrets: SecretArgs,
}

impl OutputArgs {
    /// Opens the files named, so that one that cannot be written is reported before any load.
    pub fn resolve(&self) -> Result<Output, Failure> {
        let mut output = Output {
            files: Files::none(),
            secrets: self.secrets.secrets(),
            keep: None,
            hdr: None,
            quiet: self.quiet,
            full: self.full,
            no_color: self.no_color,
            no_tui: true,
            metrics: SharedMetrics::default(),
            served: None,
            otlp: None,
        };
        let files: [(_, &Option<String>, Box<dyn Renderer>); 5] = [
            ("--json", &self.json, Box::new(Json)),
            ("--html", &self.html, Box::new(Html)),
            ("--md", &self.md, Box::new(Markdown)),
            ("--csv", &self.csv, Box::new(Csv)),
            ("--junit", &self.junit, Box::new(Junit)),
        ];
        for (option, path, form) in files {
            output.files.add(option, path.as_deref(), form)?;
        }
        Ok(output)
    }
}

/// Where the report of a measurement goes, and what is kept of it.
#[derive(Args, Clone, Debug)]
pub struct MeasuredOutputArgs {
    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    watch: WatchArgs,

    #[command(flatten)]
    keep: KeepArgs,

    /// HdrHistogram log of response times, one line per interval; '-' is standard output, which
    /// then gets nothing else
    #[arg(long, value_name = "FILE", hide_short_help = true, help_heading = "Output")]
    hdr: Option<String>,
}

impl MeasuredOutputArgs {
    /// As [`OutputArgs::resolve`].
    pub fn resolve(&self) -> Result<Output, Failure> {
        let mut output = self.output.resolve()?;
        output.hdr = self.hdr.as_deref().map(HdrFile::open).transpose()?;
        if self.hdr.as_deref() == Some("-") {
            output.files.add("--hdr", Some("-"), Box::new(Nothing))?;
        }
        output.no_tui = self.watch.no_tui;
        output.otlp = self.watch.otlp.as_deref().map(OtlpExport::resolve).transpose()?;
        let serve = |address| MetricsServer::start(address, &output.metrics);
        output.served = self.watch.metrics.map(serve).transpose()?;
        output.keep = self.keep.resolve(output.shows_progress());
        Ok(output)
    }
}

/// Leaves standard output to what is written there while the experiment runs.
struct Nothing;

impl Renderer for Nothing {
    fn render(&self, _: &Report, _: &mut dyn io::Write) -> io::Result<()> {
        Ok(())
    }
}

/// Where the report goes, ready to be written.
pub struct Output {
    files: Files<Report>,
    /// Decides what is not shown or written.
    secrets: Secrets,
    /// Whether and how what is measured is kept.
    keep: Option<KeepOptions>,
    /// Where histograms go.
    hdr: Option<HdrFile>,
    quiet: bool,
    full: bool,
    no_color: bool,
    no_tui: bool,
    metrics: SharedMetrics,
    served: Option<MetricsServer>,
    otlp: Option<OtlpExport>,
}

impl Output {
    /// What decides what is not shown or written.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// The same, to learn more.
    pub fn secrets_mut(&mut self) -> &mut Secrets {
        &mut self.secrets
    }

    /// Whether progress may be shown: where somebody reads it, and unless `--quiet`.
    fn shows_progress(&self) -> bool {
        !self.quiet && progress_width().is_some()
    }

    /// Whether what is measured is kept in the history.
    pub fn keeps(&self) -> bool {
        self.keep.is_some()
    }

    /// Who watches the experiment, as asked for.
    pub fn watchers(&self) -> Watchers {
        let mut watchers: Vec<Box<dyn Watcher>> = Vec::new();
        if self.served.is_some() || self.otlp.is_some() {
            watchers.push(Box::new(self.metrics.updater()));
        }
        if let Some(server) = &self.served {
            self.note(&format!("metrics: {}", server.url()));
        }
        if let Some(otlp) = &self.otlp {
            self.note(&otlp.note());
        }
        // Before those who may say something at the end: it has then given the terminal back.
        if self.shows_progress() {
            watchers.push(self.progress());
        }
        if let Some(otlp) = &self.otlp {
            watchers.push(Box::new(otlp.pusher(&self.metrics)));
        }
        if let Some(keep) = &self.keep {
            watchers.push(Box::new(HistoryRecorder::new(keep.clone())));
        }
        if let Some(writer) = self.hdr.as_ref().and_then(HdrFile::writer) {
            watchers.push(Box::new(writer));
        }
        Watchers::new(watchers, self.notes())
    }

    /// The live view, or a line where that is not wanted or the terminal cannot show it.
    fn progress(&self) -> Box<dyn Watcher> {
        let look = TerminalStyle {
            color: !self.no_color && !terminal::refuses_color(),
            unicode: terminal::is_unicode(),
        };
        let view = (!self.no_tui && terminal::can_show_view())
            .then(|| LiveView::start(look, self.notes()));
        match view {
            Some(Ok(view)) => Box::new(view),
            // The terminal is as it was.
            Some(Err(_)) | None => Box::new(ProgressWatcher::default()),
        }
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

    /// Says how it ended where the view or the line of progress goes away and the text does not
    /// follow in its place.
    pub fn note_result(&self, report: &Report) {
        if terminal::is_stderr() && !terminal::is_stdout() {
            self.note(&knee_render::headline(report, terminal::is_unicode()));
        }
    }

    /// Writes the report: as text to standard output, unless another form goes there, and as asked.
    /// A file that cannot be written does not keep it from the others.
    pub fn deliver(self, report: &Report) -> Result<(), Failure> {
        let text = Text { full: self.full, ..text(self.no_color) };
        let hdr = self.hdr.as_ref().map_or(Ok(()), HdrFile::outcome);
        let notes = self.notes();
        let delivered = all_of([hdr, self.files.deliver(report, &text)]);
        if let Some(server) = &self.served {
            server.await_last_scrape(notes);
        }
        delivered
    }

    /// Begins the files that are written as an experiment goes on, for one that never begins.
    pub fn begin_files(&self, start: &ExperimentStart) {
        if let Some(mut writer) = self.hdr.as_ref().and_then(HdrFile::writer) {
            writer.opens(start);
            writer.fails("");
        }
    }

    /// Writes a report without any trial to the places that options name, and nothing else.
    pub fn deliver_to_files(self, report: &Report) -> Result<(), Failure> {
        let hdr = self.hdr.as_ref().map_or(Ok(()), HdrFile::outcome);
        all_of([hdr, self.files.deliver(report, &Nothing)])
    }
}

/// The first failure; others, where they are of something else, are reported at once.
pub fn all_of(outcomes: impl IntoIterator<Item = Result<(), Failure>>) -> Result<(), Failure> {
    let mut failures = outcomes.into_iter().filter_map(Result::err);
    let first = failures.next();
    for other in failures.filter(|other| first.as_ref() != Some(other)) {
        Output::explain(&other.to_string());
    }
    first.map_or(Ok(()), Err)
}

/// How text is written to standard output, whole.
pub fn text(no_color: bool) -> Text {
    Text {
        color: !no_color && terminal::colors_stdout(),
        width: terminal::stdout_width(),
        unicode: terminal::is_unicode(),
        full: true,
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output").finish_non_exhaustive()
    }
}
