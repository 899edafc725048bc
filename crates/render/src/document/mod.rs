//! A report as a document: what is said, in which order, before any form. Each kind of report is
//! put together once, here; the painters (`text`, `html`, `markdown`) write it out.

mod agents;
pub(crate) mod closing;
pub(crate) mod compare;
pub(crate) mod findings;
mod heat_map;
mod key_figures;
mod latency;
pub(crate) mod line;
pub(crate) mod observed;
pub(crate) mod opening;
mod overload;
mod overload_plots;
mod protocol;
mod run;
mod series;
mod sessions;
pub(crate) mod stacks;
mod stated;
mod sweep;
mod sweep_plots;
pub(crate) mod table;
mod throttle;
mod timing;
mod traffic;
mod trial_plots;
mod udp;

use crate::plot::Plot;
use knee_core::compare::report::Comparison;
use knee_core::finding::Finding;
use knee_core::report::{Conclusion, Report};
use line::Line;
use opening::Opening;
use stacks::Stacks;
use std::collections::BTreeSet;
use table::Table;

/// A name and what is said of it.
pub(crate) type Fact = (String, Line);

/// All that is shown of a report, or of a comparison.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    /// Its head.
    pub opening: Opening,
    /// Its findings; `None` where it can have none.
    pub findings: Option<Vec<Finding>>,
    /// What the answer rests on, in the order in which it is read.
    pub sections: Vec<Section>,
    /// Which of them begins the end: how to repeat it, where it ran.
    pub closes_at: usize,
    /// Lines that its first screen may have.
    pub screen_lines: usize,
    medium: Option<Medium>,
}

/// Lines of the first screen of a run, of one operation, and of any other experiment.
const RUN_LINES: usize = 24;
const OPERATION_LINES: usize = 12;
const EXPERIMENT_LINES: usize = 40;

/// A form that has room for something, or need of it, that the others do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Medium {
    /// A page for a browser.
    Page,
    /// Lines of characters: a terminal, Markdown.
    Lines,
    /// The first screen of a terminal: the key figures.
    Screen,
}

/// Some blocks under a heading.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    /// The heading; empty where there is none.
    pub title: String,
    /// A remark beside it; may be empty.
    pub remark: String,
    /// What stands below it, each with the one form that shows it. Without one, it is shown by
    /// all but the first screen.
    pub blocks: Vec<(Option<Medium>, Block)>,
}

impl Section {
    /// What a form shows of it.
    pub(crate) fn blocks_for(&self, medium: Medium) -> impl Iterator<Item = &Block> {
        let is_shown = move |of: &Option<Medium>| match of {
            None => medium != Medium::Screen,
            Some(of) => *of == medium,
        };
        let shown = self.blocks.iter().filter(move |(of, _)| is_shown(of));
        shown.map(|(_, block)| block)
    }
}

/// One thing below the other.
#[derive(Clone, Debug)]
pub(crate) enum Block {
    /// Names and what is said of them.
    Facts(Vec<Fact>),
    /// A table; its caption is for who does not see it.
    Table(String, Table),
    /// Figures.
    Plots(Vec<Plot>, Layout),
    /// Bars made of parts.
    Stacks(Stacks),
    /// A remark in small print.
    Note(String),
    /// A line of text.
    Paragraph(Line),
    /// Several of a kind.
    List(Vec<Line>),
    /// A heading within the section.
    Subheading(String),
    /// For those who look closer.
    Folded(String, Vec<Block>),
    /// What can be typed.
    Command(String),
    /// Lines that other programs read.
    Verbatim(Vec<String>),
}

/// How figures stand on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Each over the whole width.
    Wide,
    /// Beside each other where there is room.
    Pairs,
    /// Many small ones of one kind, to be compared.
    Panels,
}

impl Document {
    /// What a report says.
    pub(crate) fn of(report: &Report) -> Document {
        let mut doc = Document::opened(Opening::of(report, &answer_of(report), &remark_of(report)));
        doc.screen_lines = match report.trials.as_slice() {
            [only] if only.attempted == 1 => OPERATION_LINES,
            _ if matches!(report.conclusion, Conclusion::Run(_)) => RUN_LINES,
            _ => EXPERIMENT_LINES,
        };
        doc.findings = Some(report.findings.clone());
        match &report.conclusion {
            _ if is_empty(report) => {}
            Conclusion::Sweep(conclusion) => sweep::show(&mut doc, report, conclusion),
            Conclusion::Run(c) => run::show(&mut doc, report, c),
            Conclusion::Overload(conclusion) => overload::show(&mut doc, report, conclusion),
            Conclusion::Udp(conclusion) => udp::show(&mut doc, report, conclusion),
            Conclusion::Latency(conclusion) => latency::show(&mut doc, report, conclusion),
            Conclusion::Throttle(conclusion) => throttle::show(&mut doc, conclusion),
        }
        doc.closes_at = doc.sections.len();
        closing::show(&mut doc, report);
        doc
    }

    /// What a comparison says.
    pub(crate) fn of_comparison(comparison: &Comparison) -> Document {
        let mut doc = Document::opened(compare::opening(comparison));
        compare::show(&mut doc, comparison);
        doc
    }

    fn opened(opening: Opening) -> Document {
        Document {
            opening,
            findings: None,
            sections: Vec::new(),
            closes_at: usize::MAX,
            screen_lines: EXPERIMENT_LINES,
            medium: None,
        }
    }

    /// Begins a section; the remark may be empty.
    pub(crate) fn section(&mut self, title: impl Into<String>, remark: impl Into<String>) {
        self.sections.push(Section {
            title: title.into(),
            remark: remark.into(),
            blocks: Vec::new(),
        });
    }

    /// What `content` adds is shown by this form alone.
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

    /// Names and what is said of them, where there are any.
    pub(crate) fn facts(&mut self, facts: Vec<Fact>) {
        if !facts.is_empty() {
            self.push(Block::Facts(facts));
        }
    }

    /// A table; its caption is for who does not see it.
    pub(crate) fn table(&mut self, caption: &str, table: Table) {
        self.push(Block::Table(caption.to_owned(), table));
    }

    /// A remark in small print.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.push(Block::Note(text.into()));
    }

    /// A line of text.
    pub(crate) fn paragraph(&mut self, line: Line) {
        self.push(Block::Paragraph(line));
    }

    /// Lines of a kind, where there are any.
    pub(crate) fn list(&mut self, lines: Vec<Line>) {
        if !lines.is_empty() {
            self.push(Block::List(lines));
        }
    }

    /// A heading within the section.
    pub(crate) fn subheading(&mut self, title: &str) {
        self.push(Block::Subheading(title.to_owned()));
    }

    /// Figures, where there are any.
    pub(crate) fn plots(&mut self, plots: impl IntoIterator<Item = Plot>, layout: Layout) {
        let plots: Vec<Plot> = plots.into_iter().collect();
        if !plots.is_empty() {
            self.push(Block::Plots(plots, layout));
        }
    }
}

/// Verdict, result and answer in a line, without colour; in ASCII unless `unicode`.
pub fn headline(report: &Report, unicode: bool) -> String {
    let words = opening::verdicts(report).into_iter().map(|(_, word)| word);
    let words: Vec<&str> = words.collect();
    let line = Line::plain(format!("{}  {}", words.join(", "), answer(report)));
    line.cleaned(unicode).text()
}

/// The answer in one or two sentences, as it stands at the head of the report; why there is none
/// where nothing was measured.
pub fn answer(report: &Report) -> String {
    opening::first_words(report, &answer_of(report))
}

fn answer_of(report: &Report) -> String {
    match &report.conclusion {
        Conclusion::Sweep(conclusion) => sweep::answer(conclusion),
        Conclusion::Run(conclusion) => run::answer(report, conclusion),
        Conclusion::Overload(conclusion) => conclusion.answer.clone(),
        Conclusion::Udp(conclusion) => conclusion.answer.clone(),
        Conclusion::Latency(conclusion) => conclusion.answer.clone(),
        Conclusion::Throttle(conclusion) => conclusion.answer.clone(),
    }
}

/// How the answer was got.
fn remark_of(report: &Report) -> String {
    use crate::number::plural;
    let several = |n: usize, noun: &str| format!(", {}", plural(n as u64, noun));
    match &report.conclusion {
        _ if is_empty(report) => String::new(),
        Conclusion::Sweep(conclusion) => sweep::remark(report, conclusion),
        Conclusion::Run(_) => run::remark(report),
        Conclusion::Overload(_) => several(report.trials.len(), "trial"),
        Conclusion::Udp(_) => udp::remark(report),
        Conclusion::Latency(c) => several(c.scenarios.len(), "scenario"),
        Conclusion::Throttle(c) => several(c.table.len() + c.rates.len(), "row"),
    }
}

/// Whether there is nothing to show but why.
fn is_empty(report: &Report) -> bool {
    report.trials.is_empty() && !report.has_measured()
}

/// Adds the trials that the rows of a table are of, where they are of several.
fn add_trials<'a>(table: &mut Table, trials: impl Iterator<Item = &'a str>) {
    let cells: Vec<Line> = trials.map(Line::plain).collect();
    if cells.iter().any(|cell| cell.width() > 0) {
        table.column("trial", table::Align::Left, cells);
    }
}

/// A name and a line.
pub(crate) fn fact(name: impl Into<String>, line: Line) -> Fact {
    (name.into(), line)
}

/// Of rows by the names of their trials, keeps the first of each level.
fn keep_first_of_levels<T>(rows: &mut Vec<(&str, T)>) {
    let mut seen = BTreeSet::new();
    rows.retain(|(label, _)| seen.insert(*label));
}
