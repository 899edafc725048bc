//! A report as a document: its content in order, independent of output forms. This module puts each
//! kind of report together once; the painters `text`, `html` and `markdown` write it.
//!
//! It has a head with verdicts and answer, findings, sections of facts, tables, figures and notes,
//! and an appendix with the command that repeats the run. Each kind of report has a file or folder.
//! `TableOf` makes a table of rows with one call for each column. A block may be for one form only
//! (`Medium`): the page, lines of characters, or the first screen, which shows the blocks that
//! `show_key_figures` of each experiment marks for it.

pub(crate) mod appendix;
mod compare;
mod generator;
pub(crate) mod head;
mod latency;
pub(crate) mod line;
mod messages;
mod overload;
mod recover;
mod run;
mod sessions;
mod sweep;
mod sweep_plots;
pub(crate) mod table;
mod throttle;
mod timing;
mod traffic;
mod trend;
mod trial_plots;
mod udp;

use crate::number::{plural, time_short};
use crate::plot::{Plot, Tone};
use head::DocumentHead;
use knee_core::compare::report::{Comparison, TrendReport};
use knee_core::finding::Finding;
use knee_core::report::{Conclusion, Report};
use knee_core::trial::report::TrialReport;
use line::Line;
use std::collections::BTreeSet;
use table::Table;

/// A name and its value.
pub(crate) type Fact = (String, Line);

/// The content of a report or of a comparison.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    /// Verdicts, answer, reasons.
    pub head: DocumentHead,
    /// The findings; `None` for a comparison.
    pub findings: Option<Vec<Finding>>,
    /// Sections in reading order.
    pub sections: Vec<DocumentSection>,
    /// Index of the first section of the appendix: command, options, host.
    pub appendix_at: usize,
    /// Lines available for the first screen; `None` if the whole is shown at once.
    pub screen_lines: Option<usize>,
    medium: Option<Medium>,
}

/// Lines of the first screen of a run, of a single operation, and of any other experiment. A terminal
/// of 24 lines shows that of a run with the prompt below it.
const RUN_LINES: usize = 23;
const OPERATION_LINES: usize = 12;
const EXPERIMENT_LINES: usize = 40;

/// The output form of a block that not all forms show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Medium {
    /// A page for a browser.
    Page,
    /// Lines of characters, in a terminal or in Markdown.
    Lines,
    /// The first screen of a terminal.
    Screen,
}

/// Blocks under a heading.
#[derive(Clone, Debug)]
pub(crate) struct DocumentSection {
    /// The heading; may be empty.
    pub title: String,
    /// A remark beside it; may be empty.
    pub remark: String,
    /// The blocks, each with the only form that shows it. Without one, all forms but the first
    /// screen show it.
    pub blocks: Vec<(Option<Medium>, Block)>,
}

impl DocumentSection {
    /// The blocks that a form shows.
    pub(crate) fn blocks_for(&self, medium: Medium) -> impl Iterator<Item = &Block> {
        let shown = self.blocks.iter().filter(move |(only, _)| match only {
            None => medium != Medium::Screen,
            Some(only) => *only == medium,
        });
        shown.map(|(_, block)| block)
    }
}

/// A part of a section.
#[derive(Clone, Debug)]
pub(crate) enum Block {
    /// Names and values.
    Facts(Vec<Fact>),
    /// A table with a caption for screen readers.
    Table(String, Table),
    /// Figures.
    Plots(Vec<Plot>, Layout),
    /// Bars made of parts.
    Bars(StackedBars),
    /// A remark in small print.
    Note(String),
    /// A line of text.
    Paragraph(Line),
    /// A list of lines.
    List(Vec<Line>),
    /// A heading within the section.
    Subheading(String),
    /// Details under a title, folded up on a page.
    Folded(String, Vec<Block>),
    /// A command line.
    Command(String),
    /// Lines that other programs read.
    Verbatim(Vec<String>),
}

/// The arrangement of figures on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Each over the whole width.
    Wide,
    /// Side by side if they fit.
    Pairs,
    /// Many small ones of one kind.
    Panels,
}

/// Horizontal bars made of parts, under a title.
#[derive(Clone, Debug)]
pub(crate) struct StackedBars {
    /// The quantity shown.
    pub title: &'static str,
    /// A remark on a bar.
    pub note: &'static str,
    /// Names and colours of all parts.
    pub parts: Vec<(&'static str, Tone)>,
    /// The bars.
    pub rows: Vec<StackedBar>,
}

/// One bar.
#[derive(Clone, Debug)]
pub(crate) struct StackedBar {
    /// Its name.
    pub name: String,
    /// Its length as text.
    pub value: String,
    /// The time of the full width, in nanoseconds.
    pub whole_ns: u64,
    /// Name, colour and time of each part, from the left.
    pub parts: Vec<(&'static str, Tone, u64)>,
}

/// A result that has a document.
pub(crate) trait Documented {
    /// Its document.
    fn document(&self) -> Document;
}

impl Documented for Report {
    fn document(&self) -> Document {
        let head = DocumentHead::of(self, &answer_of(self), &remark_of(self));
        let mut doc = Document::with_head(head);
        doc.screen_lines = Some(match self.trials.as_slice() {
            [only] if only.attempted == 1 => OPERATION_LINES,
            _ if matches!(self.conclusion, Conclusion::Run(_)) => RUN_LINES,
            _ => EXPERIMENT_LINES,
        });
        doc.findings = Some(self.findings.clone());
        match &self.conclusion {
            _ if is_empty(self) => {}
            Conclusion::Sweep(c) => sweep::show(&mut doc, self, c),
            Conclusion::Run(c) => run::show(&mut doc, self, c),
            Conclusion::Overload(c) => overload::show(&mut doc, self, c),
            Conclusion::Recover(c) => recover::show(&mut doc, self, c),
            Conclusion::Udp(c) => udp::show(&mut doc, self, c),
            Conclusion::Latency(c) => latency::show(&mut doc, self, c),
            Conclusion::Throttle(c) => throttle::show(&mut doc, c),
        }
        doc.appendix_at = doc.sections.len();
        appendix::show(&mut doc, self);
        doc
    }
}

impl Documented for Comparison {
    fn document(&self) -> Document {
        let mut doc = Document::with_head(compare::head(self));
        compare::show(&mut doc, self);
        doc
    }
}

impl Documented for TrendReport {
    fn document(&self) -> Document {
        let mut doc = Document::with_head(trend::head(self));
        trend::show(&mut doc, self);
        doc
    }
}

impl Document {
    fn with_head(head: DocumentHead) -> Document {
        Document {
            head,
            findings: None,
            sections: Vec::new(),
            appendix_at: usize::MAX,
            screen_lines: None,
            medium: None,
        }
    }

    /// Begins a section; the remark may be empty.
    pub(crate) fn section(&mut self, title: impl Into<String>, remark: impl Into<String>) {
        self.sections.push(DocumentSection {
            title: title.into(),
            remark: remark.into(),
            blocks: Vec::new(),
        });
    }

    /// Adds content that only this form shows.
    pub(crate) fn only(&mut self, medium: Medium, content: impl FnOnce(&mut Document)) {
        let before = self.medium.replace(medium);
        content(self);
        self.medium = before;
    }

    /// Adds a block to the last section.
    pub(crate) fn push(&mut self, block: Block) {
        if self.sections.is_empty() {
            self.section("", "");
        }
        if let Some(section) = self.sections.last_mut() {
            section.blocks.push((self.medium, block));
        }
    }

    /// Adds facts, if there are any.
    pub(crate) fn facts(&mut self, facts: impl IntoIterator<Item = Fact>) {
        let facts: Vec<Fact> = facts.into_iter().collect();
        if !facts.is_empty() {
            self.push(Block::Facts(facts));
        }
    }

    /// Adds a table with a caption for screen readers.
    pub(crate) fn table(&mut self, caption: &str, table: Table) {
        self.push(Block::Table(caption.to_owned(), table));
    }

    /// Adds a remark in small print.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.push(Block::Note(text.into()));
    }

    /// Adds a line of text.
    pub(crate) fn paragraph(&mut self, line: impl Into<Line>) {
        self.push(Block::Paragraph(line.into()));
    }

    /// Adds a list, if there are any lines.
    pub(crate) fn list(&mut self, lines: Vec<Line>) {
        if !lines.is_empty() {
            self.push(Block::List(lines));
        }
    }

    /// Adds a heading within the section.
    pub(crate) fn subheading(&mut self, title: &str) {
        self.push(Block::Subheading(title.to_owned()));
    }

    /// Adds figures, if there are any.
    pub(crate) fn plots(&mut self, plots: impl IntoIterator<Item = Plot>, layout: Layout) {
        let plots: Vec<Plot> = plots.into_iter().collect();
        if !plots.is_empty() {
            self.push(Block::Plots(plots, layout));
        }
    }
}

/// Verdict, result and answer in a line without colour, in ASCII unless `unicode`.
pub fn headline(report: &Report, unicode: bool) -> String {
    let words: Vec<&str> = head::verdicts(report).into_iter().map(|(_, word)| word).collect();
    Line::plain(format!("{}  {}", words.join(", "), answer(report))).cleaned(unicode).text()
}

/// The answer in one or two sentences, or the reason why nothing was measured.
pub fn answer(report: &Report) -> String {
    head::first_words(report, &answer_of(report))
}

fn answer_of(report: &Report) -> String {
    match &report.conclusion {
        Conclusion::Sweep(conclusion) => sweep::answer(conclusion),
        Conclusion::Run(conclusion) => run::answer(report, conclusion),
        Conclusion::Overload(conclusion) => conclusion.answer.clone(),
        Conclusion::Recover(conclusion) => conclusion.answer.clone(),
        Conclusion::Udp(conclusion) => conclusion.answer.clone(),
        Conclusion::Latency(conclusion) => conclusion.answer.clone(),
        Conclusion::Throttle(conclusion) => conclusion.answer.clone(),
    }
}

/// The remark on the run behind the command.
fn remark_of(report: &Report) -> String {
    let counted = |n: usize, noun: &str| format!(", {}", plural(n as u64, noun));
    let trials = || counted(report.trials.len(), "trial");
    let one_or_several = |done: &str| match report.trials.as_slice() {
        [only] => format!(", {}, {done} for {}", only.label, time_short(only.duration_ns)),
        _ => trials(),
    };
    match &report.conclusion {
        _ if is_empty(report) => String::new(),
        Conclusion::Sweep(conclusion) => sweep::remark(report, conclusion),
        Conclusion::Run(_) => one_or_several("measured"),
        Conclusion::Overload(_) | Conclusion::Recover(_) => trials(),
        Conclusion::Udp(_) => one_or_several("sent"),
        Conclusion::Latency(c) => counted(c.scenarios.len(), "scenario"),
        Conclusion::Throttle(c) => counted(c.table.len() + c.rates.len(), "row"),
    }
}

/// Whether nothing was measured.
fn is_empty(report: &Report) -> bool {
    report.trials.is_empty() && !report.has_measured()
}

/// A name and its value.
pub(crate) fn fact(name: impl Into<String>, value: impl Into<Line>) -> Fact {
    (name.into(), value.into())
}

/// The part of the first trial of each level that has it, with the name of the trial. Trials of one
/// level have one name.
fn first_of_levels<'a, T>(
    trials: &'a [TrialReport],
    part: impl Fn(&'a TrialReport) -> Option<T>,
) -> Vec<(&'a str, T)> {
    let mut seen = BTreeSet::new();
    let parts = trials.iter().filter_map(|trial| Some((trial.label.as_str(), part(trial)?)));
    parts.filter(|(label, _)| seen.insert(*label)).collect()
}

/// The values of each key, keys and values in the order in which they come.
fn grouped<K: PartialEq, V>(pairs: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in pairs {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}
