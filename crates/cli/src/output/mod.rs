//! Where the report goes, and how an experiment is watched while it runs.

use crate::args::{SecretArgs, listen_address};
use crate::failure::Failure;
use crate::history::{HistoryRecorder, KeepOptions, parse_name};
use crate::stdio::{self, Notes};
use crate::watch::{
    ExperimentStart, HdrFile, LiveView, MetricsServer, OtlpExport, ProgressWatcher, SharedMetrics,
    Watcher, Watchers, progress_width,
};
use crate::whole_file::OutputPlace;
use clap::Args;
use knee_core::report::Report;
use knee_load::secrets::Secrets;
use knee_render::live::TerminalStyle;
use knee_render::{Csv, Html, Json, Junit, Markdown, Renderer, Text, TextExtent};
use std::fmt;
use std::io;
use std::net::SocketAddr;

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
    /// figures, up to three findings, and the answer last]
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
        let files: [(_, &Option<String>, Box<dyn Renderer>); 5] = [
            ("--json", &self.json, Box::new(Json)),
            ("--html", &self.html, Box::new(Html)),
            ("--md", &self.md, Box::new(Markdown)),
            ("--csv", &self.csv, Box::new(Csv)),
            ("--junit", &self.junit, Box::new(Junit)),
        ];
        Ok(Output {
            files: Files::of(files)?,
            secrets: self.secrets.secrets(),
            keep: None,
            kept_as: None,
            hdr: None,
            quiet: self.quiet,
            full: self.full,
            no_color: self.no_color,
            no_tui: true,
            metrics: SharedMetrics::default(),
            served: None,
            otlp: None,
        })
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
            output.files.add("--hdr", "-", Box::new(Nothing))?;
        }
        output.no_tui = self.watch.no_tui;
        output.otlp = self.watch.otlp.as_deref().map(OtlpExport::resolve).transpose()?;
        let serve = |address| MetricsServer::start(address, &output.metrics);
        output.served = self.watch.metrics.map(serve).transpose()?;
        let KeepArgs { no_save, save_baseline } = self.keep.clone();
        // The first screen has the id. Otherwise it is printed where somebody watches.
        let has_screen = stdio::is_stdout() && !output.full && output.files.stdout.is_none();
        let tells_id = output.shows_progress() && !has_screen;
        output.keep = (!no_save).then_some(KeepOptions { baseline: save_baseline, tells_id });
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
    pub secrets: Secrets,
    /// Whether and how what is measured is kept.
    keep: Option<KeepOptions>,
    /// The number of the run in the history, once it is kept there.
    pub kept_as: Option<i64>,
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
            color: !self.no_color && !stdio::refuses_color(),
            unicode: stdio::is_unicode(),
        };
        let view =
            (!self.no_tui && stdio::can_show_view()).then(|| LiveView::start(look, self.notes()));
        match view {
            Some(Ok(view)) => Box::new(view),
            // The terminal is as it was.
            Some(Err(_)) | None => Box::new(ProgressWatcher::default()),
        }
    }

    /// Says something on standard error, unless `--quiet`.
    pub fn note(&self, line: &str) {
        self.notes().say(line);
    }

    /// What can say something also after the report was delivered.
    pub fn notes(&self) -> Notes {
        Notes { quiet: self.quiet }
    }

    /// Says how it ended where the view or the line of progress goes away and the text does not
    /// follow in its place.
    pub fn note_result(&self, report: &Report) {
        if stdio::is_stderr() && !stdio::is_stdout() {
            self.note(&knee_render::headline(report, stdio::is_unicode()));
        }
    }

    /// Whether the report goes to standard output as text.
    pub fn has_text(&self) -> bool {
        self.files.stdout.is_none()
    }

    /// Writes the report: as text to standard output, unless another form goes there, and as asked.
    /// A file that cannot be written does not keep it from the others.
    pub fn deliver(self, report: &Report) -> Result<(), Failure> {
        let extent = if self.full {
            TextExtent::Whole
        } else {
            TextExtent::FirstScreen { run: self.kept_as }
        };
        let text = Text { extent, ..text(self.no_color) };
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
fn all_of(outcomes: impl IntoIterator<Item = Result<(), Failure>>) -> Result<(), Failure> {
    let mut failures = outcomes.into_iter().filter_map(Result::err);
    let first = failures.next();
    for other in failures.filter(|other| first.as_ref() != Some(other)) {
        stdio::say(&other.to_string());
    }
    first.map_or(Ok(()), Err)
}

/// How text is written to standard output, whole.
pub fn text(no_color: bool) -> Text {
    Text {
        color: !no_color && stdio::colors_stdout(),
        width: stdio::stdout_width(),
        unicode: stdio::is_unicode(),
        extent: TextExtent::Whole,
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output").finish_non_exhaustive()
    }
}

/// Files, and what goes to standard output, for a report or a comparison (`T`).
pub struct Files<T> {
    files: Vec<(OutputPlace, Box<dyn Renderer<T>>)>,
    /// What takes standard output from the text: which option, and in which form.
    stdout: Option<(&'static str, Box<dyn Renderer<T>>)>,
}

impl<T> Files<T> {
    /// The files of these options that were given, each in its form.
    ///
    /// # Errors
    /// One cannot be written, or two are standard output.
    pub fn of<'a>(
        options: impl IntoIterator<Item = (&'static str, &'a Option<String>, Box<dyn Renderer<T>>)>,
    ) -> Result<Files<T>, Failure> {
        let mut files = Files { files: Vec::new(), stdout: None };
        for (option, path, form) in options {
            if let Some(path) = path {
                files.add(option, path, form)?;
            }
        }
        Ok(files)
    }

    fn add(
        &mut self,
        option: &'static str,
        path: &str,
        form: Box<dyn Renderer<T>>,
    ) -> Result<(), Failure> {
        if path != "-" {
            self.files.push((OutputPlace::open(option, path)?, form));
            return Ok(());
        }
        if let Some((other, _)) = &self.stdout {
            let wrong = format!("standard output is taken by {other}: name a file");
            return Err(Failure::argument(option, wrong));
        }
        self.stdout = Some((option, form));
        Ok(())
    }

    /// Writes the report: as text to standard output, unless another form goes there, and as asked.
    /// A file that cannot be written does not keep it from the others.
    ///
    /// # Errors
    /// One of them could not be written.
    pub fn deliver(self, report: &T, text: &dyn Renderer<T>) -> Result<(), Failure> {
        let form = self.stdout.as_ref().map_or(text, |(_, form)| &**form);
        let shown = stdio::write(|out| form.render(report, out));
        let write = |(place, form): (OutputPlace, Box<dyn Renderer<T>>)| {
            place.write(|out| form.render(report, out))
        };
        let written = self.files.into_iter().map(write);
        all_of(std::iter::once(shown).chain(written))
    }
}

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Output")]
pub struct WatchArgs {
    /// Show a progress line instead of the live view
    #[arg(long, hide_short_help = true)]
    pub no_tui: bool,

    /// Address of an OpenMetrics endpoint (/metrics) with the running figures, for Prometheus
    #[arg(long, value_name = "ADDR:PORT", hide_short_help = true)]
    #[arg(value_parser = |text: &str| listen_address(text, "127.0.0.1:7009"))]
    pub metrics: Option<SocketAddr>,

    /// URL of an OpenTelemetry collector to push the running figures to, by OTLP over HTTP; 'env':
    /// that of OTEL_EXPORTER_OTLP_ENDPOINT
    #[arg(long, value_name = "URL", hide_short_help = true)]
    pub otlp: Option<String>,
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "History")]
pub struct KeepArgs {
    /// Do not keep this run in the history ('knee history')
    #[arg(long, hide_short_help = true)]
    no_save: bool,

    /// Name under which this run becomes a baseline if it is VALID; replaces an earlier one
    #[arg(long, value_name = "NAME", value_parser = parse_name, conflicts_with = "no_save")]
    #[arg(hide_short_help = true)]
    save_baseline: Option<String>,
}
