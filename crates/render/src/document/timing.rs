//! Response times: their figures, stated as a value or its range, and what they are made of. That
//! is the stages of all operations and of the slowest, and the slowest operations one by one.

use super::generator::quantiles;
use super::line::{Ink, Line};
use super::table::{Table, TableOf};
use super::traffic::cut;
use super::{Block, Document, Medium, StackedBar, StackedBars, fact, first_of_levels};
use crate::number::{
    MISSING, count, known, percent, percent_short, stated, time, time_interval, time_short,
};
use crate::plot::{Axis, Tone};
use knee_core::trial::figure::{Figure, TimeFigure, TimesReport};
use knee_core::trial::report::TrialReport;
use knee_core::trial::timing::{AnatomyGroup, AnatomyReport, ClockKind, TimingReport};
use knee_core::trial::traffic::TargetReport;
use knee_load::measure::{Owner, SlowOperation, Stage};
use std::collections::{BTreeMap, BTreeSet};

/// The longest name of a step beside a bar, in characters.
const NAME_WIDTH: usize = 24;

/// Steps shown.
const STEPS_SHOWN: usize = 20;

/// The least share of a response time that the sentence names, in percent.
const SHARE_NAMED_PERCENT: f64 = 1.0;

/// Adds the composition of the response times of a trial, if measured.
pub(super) fn show(doc: &mut Document, t: &TrialReport) {
    let Some(timing) = t.timing().filter(|timing| !timing.anatomy.is_empty()) else {
        return;
    };
    let clock = match timing.clock {
        Some(ClockKind::Kernel) => "arrival by the kernel's timestamps",
        Some(ClockKind::Process) => "arrival when the generator read it",
        None => "",
    };
    doc.section("What response times are made of", clock);
    if let Some(slowest) = slowest_group(timing) {
        doc.paragraph(sentence(slowest));
    }
    doc.only(Medium::Page, |doc| {
        doc.push(Block::Bars(anatomy_stacks(timing)));
    });
    doc.table("Mean time in each stage", anatomy_table(&timing.anatomy));
    show_owners(doc, timing);
    let mut facts = Vec::new();
    let pick_up = timing.pick_up_ns.as_ref();
    facts.extend(pick_up.map(|q| fact("read after arrival", quantiles(q))));
    if timing.shared_arrivals > 0 {
        let words = format!(
            "{} responses came in one piece with others, and arrived with its last byte",
            count(timing.shared_arrivals)
        );
        facts.push(fact("shared arrival", words));
    }
    facts.extend(
        timing
            .generator_cycle_percent
            .map(|own| fact("generator's delay", format!("{} of a user's cycle", percent(own)))),
    );
    doc.facts(facts);
    show_steps(doc, t);
    doc.only(Medium::Page, |doc| {
        doc.push(Block::Bars(waterfall(&timing.slowest)));
        let table = Block::Table("The slowest".into(), slowest_table(&timing.slowest));
        doc.push(Block::Folded("Data".into(), vec![table]));
    });
}

/// Adds a sentence on the composition of the slowest response times.
pub(super) fn show_slowest_sentence(doc: &mut Document, t: &TrialReport) {
    if let Some(slowest) = t.timing().and_then(slowest_group) {
        doc.paragraph(sentence(slowest));
    }
}

/// Adds the owners of the delays, if an observer distinguished server host and network.
fn show_owners(doc: &mut Document, timing: &TimingReport) {
    let split = |a: &&AnatomyReport| a.both_ends_count.is_some();
    let groups: Vec<&AnatomyReport> = timing.anatomy.iter().filter(split).collect();
    if groups.is_empty() {
        return;
    }
    let lengths = |a: &AnatomyReport| -> Vec<(&'static str, Tone, u64)> {
        let shares = a.owner_percent.iter();
        let parts = shares.map(|(owner, percent)| {
            let (name, tone) = owner_part(*owner);
            let ns = (a.response_ns as f64 * percent / 100.0).round() as u64;
            (name, tone, ns)
        });
        parts.collect()
    };
    let owners = groups.iter().flat_map(|a| a.owner_percent.keys().copied());
    let owners: BTreeSet<Owner> = owners.collect();
    let rows = groups.iter().map(|a| StackedBar {
        name: a.of.words().to_owned(),
        value: time_short(a.response_ns),
        whole_ns: a.response_ns,
        parts: lengths(a),
    });
    let stacks = StackedBars {
        title: "Mean response time by owner",
        note: "Operations that the observer saw at the server tell its host from the network.",
        parts: owners.iter().map(|owner| owner_part(*owner)).collect(),
        rows: rows.collect(),
    };
    doc.only(Medium::Page, |doc| doc.push(Block::Bars(stacks)));
    doc.table("Share of each owner", owners_table(&groups, &owners));
}

fn owners_table(groups: &[&AnatomyReport], owners: &BTreeSet<Owner>) -> Table {
    let mut table = TableOf::new(groups);
    table.left("", |a| Line::of(Ink::Dim, a.of.words()));
    for owner in owners {
        let share = |a: &AnatomyReport| a.owner_percent.get(owner).copied();
        table.right(owner_part(*owner).0, |a| known(share(a), percent_short));
    }
    table.right("seen at both ends", |a| known(a.both_ends_count, count));
    table.done()
}

/// Adds the composition of the mean response time of each step of sessions, to a page.
fn show_steps(doc: &mut Document, t: &TrialReport) {
    let targets = t.http().map_or(&[][..], |http| &http.traffic.targets);
    let steps: Vec<(&TargetReport, &BTreeMap<Stage, u64>)> = targets
        .iter()
        .filter_map(|target| Some((target, &target.step.as_ref()?.mean_ns)))
        .filter(|(_, stages)| !stages.is_empty())
        .collect();
    let mean = |target: &TargetReport| target.response_time_ns.mean.unwrap_or(0);
    let Some(whole_ns) = steps.iter().map(|(target, _)| mean(target)).max() else {
        return;
    };
    let bars = steps.iter().map(|(target, stages)| {
        stage_bar(cut(&target.target, NAME_WIDTH), mean(target), whole_ns, stages)
    });
    let stacks = StackedBars {
        title: "Mean response time of each step by stage",
        note: "Each bar is the mean response time of a step.",
        parts: legend(steps.iter().map(|(_, stages)| *stages)),
        rows: bars.take(STEPS_SHOWN).collect(),
    };
    doc.only(Medium::Page, |doc| doc.push(Block::Bars(stacks)));
}

/// Adds the composition of the slowest operations, a row for the first trial of each level.
pub(super) fn show_levels(doc: &mut Document, trials: &[TrialReport]) {
    let rows = first_of_levels(trials, |t| slowest_group(t.timing()?));
    if rows.is_empty() {
        return;
    }
    let remark = "share of each stage in the response times of the slowest operations";
    doc.section("What the slowest response times are made of", remark);
    let mut table = TableOf::new(&rows);
    table.left("trial", |(label, _)| *label);
    table.left("of", |(_, a)| a.of.words());
    table.right("from", |(_, a)| time_short(a.from_ns));
    for stage in stages(rows.iter().map(|(_, a)| &a.mean_ns)) {
        let share = |a: &AnatomyReport| a.stage_percent.get(&stage).copied();
        table.right(title_of(stage), |(_, a)| known(share(a), percent_short));
    }
    // Only an observer distinguishes these two.
    for owner in [Owner::ServerHost, Owner::Network] {
        let share = |a: &AnatomyReport| a.owner_percent.get(&owner).copied();
        table.right_if_any(owner_part(owner).0, MISSING, |(_, a)| share(a).map(percent_short));
    }
    doc.table("What the slowest response times are made of", table.done());
}

/// The group named in the sentence: the slowest 1 %, or the slowest group that has enough
/// operations.
fn slowest_group(timing: &TimingReport) -> Option<&AnatomyReport> {
    timing.anatomy.iter().filter(|a| a.of <= AnatomyGroup::Slowest1).max_by_key(|a| a.of)
}

/// The stages with their shares, the longest first.
fn sentence(a: &AnatomyReport) -> String {
    let shares = a.stages_by_share().into_iter().enumerate();
    let worth_a_word =
        shares.filter(|(rank, (_, share))| *rank == 0 || *share >= SHARE_NAMED_PERCENT);
    let parts: Vec<String> = worth_a_word
        .map(|(_, (stage, share))| format!("{} is {}", percent_short(share), stage.words()))
        .collect();
    let subject = match a.of {
        AnatomyGroup::All => "Of all response times".to_owned(),
        group => format!("Of {} (over {})", group.words(), time_short(a.from_ns)),
    };
    format!("{subject}, {}.", parts.join(", "))
}

/// The title of a stage's column.
fn title_of(stage: Stage) -> &'static str {
    match stage {
        Stage::Pacing => "late start",
        Stage::Script => "script",
        Stage::ConnectionWait => "conn. wait",
        Stage::Connect => "connect",
        Stage::Tls => "TLS",
        Stage::StreamWait => "stream wait",
        Stage::TargetStreamWait => "its stream limit",
        Stage::Write => "late write",
        Stage::WindowWait => "window",
        Stage::FirstByte => "first byte",
        Stage::Streaming => "streaming",
        Stage::Receive => "receive",
    }
}

/// The tone of a stage in a figure: those of one owner are alike.
fn tone_of(stage: Stage) -> Tone {
    match (stage.owner(), stage) {
        (Owner::Generator, _) => Tone::Bad,
        (Owner::Limit, _) => Tone::Second,
        (Owner::Target, Stage::FirstByte) => Tone::First,
        (Owner::Target, Stage::Streaming | Stage::Receive) => Tone::Third,
        (Owner::Target | Owner::ServerHost | Owner::Network, _) => Tone::Fourth,
    }
}

/// An owner's name and tone in a figure.
fn owner_part(owner: Owner) -> (&'static str, Tone) {
    match owner {
        Owner::Generator => ("generator", Tone::Bad),
        Owner::Limit => ("configured limit", Tone::Second),
        Owner::Target => ("target", Tone::Fourth),
        Owner::ServerHost => ("server host", Tone::First),
        Owner::Network => ("network", Tone::Third),
    }
}

/// Stages that occur in any of these.
fn stages<'a>(times: impl Iterator<Item = &'a BTreeMap<Stage, u64>>) -> BTreeSet<Stage> {
    times.flat_map(BTreeMap::keys).copied().collect()
}

fn anatomy_table(groups: &[AnatomyReport]) -> Table {
    let mut table = TableOf::new(groups);
    table.left("", |a| Line::of(Ink::Dim, a.of.words()));
    table.right("from", |a| time_short(a.from_ns));
    table.right("mean", |a| time_short(a.response_ns));
    for stage in stages(groups.iter().map(|a| &a.mean_ns)) {
        let mean = |a: &AnatomyReport| a.mean_ns.get(&stage).copied();
        table.right(title_of(stage), |a| known(mean(a), time_short));
    }
    table.done()
}

fn anatomy_stacks(timing: &TimingReport) -> StackedBars {
    let groups = timing.anatomy.iter();
    let bar = |a: &AnatomyReport| {
        stage_bar(a.of.words().to_owned(), a.response_ns, a.response_ns, &a.mean_ns)
    };
    StackedBars {
        title: "Mean response time by stage",
        note: "Each bar is the mean response time of a group of operations.",
        parts: legend(groups.clone().map(|a| &a.mean_ns)),
        rows: groups.map(bar).collect(),
    }
}

/// The slowest operations, all to the scale of the slowest.
fn waterfall(slowest: &[SlowOperation]) -> StackedBars {
    let whole_ns = slowest.first().map_or(0, |slow| slow.response_time_ns);
    let bar = |slow: &SlowOperation| {
        stage_bar(name_of(slow), slow.response_time_ns, whole_ns, &slow.stages_ns)
    };
    StackedBars {
        title: "The slowest operations",
        note: "Each bar is one operation, from its intended time to its last byte.",
        parts: legend(slowest.iter().map(|slow| &slow.stages_ns)),
        rows: slowest.iter().map(bar).collect(),
    }
}

fn stage_bar(name: String, ns: u64, whole_ns: u64, stages: &BTreeMap<Stage, u64>) -> StackedBar {
    let parts = stages.iter().map(|(stage, ns)| (title_of(*stage), tone_of(*stage), *ns));
    StackedBar { name, value: time_short(ns), whole_ns, parts: parts.collect() }
}

/// Name and tone of the stages that occur in any of these.
fn legend<'a>(times: impl Iterator<Item = &'a BTreeMap<Stage, u64>>) -> Vec<(&'static str, Tone)> {
    stages(times).into_iter().map(|stage| (title_of(stage), tone_of(stage))).collect()
}

/// The step, if any, and the end of an operation.
fn name_of(slow: &SlowOperation) -> String {
    match &slow.step {
        Some(step) => format!("{}, {}", cut(step, NAME_WIDTH), outcome_of(slow)),
        None => outcome_of(slow),
    }
}

/// The status of an operation, or else its outcome.
fn outcome_of(slow: &SlowOperation) -> String {
    match slow.status {
        Some(status) => format!("status {status}"),
        None => slow.outcome.label(),
    }
}

fn slowest_table(slowest: &[SlowOperation]) -> Table {
    let mut table = TableOf::new(slowest);
    table.right("intended at", |slow| time_short(slow.intended_ns));
    table.right("response time", |slow| time_short(slow.response_time_ns));
    table.left("ended", outcome_of);
    table.right("connection", |slow| known(slow.connection.map(u64::from), count));
    if slowest.iter().any(|slow| slow.step.is_some()) {
        table.left("step", |slow| slow.step.clone().unwrap_or_default());
    } else {
        table.right("target", |slow| count(slow.target.into()));
    }
    for stage in stages(slowest.iter().map(|slow| &slow.stages_ns)) {
        let length = |slow: &SlowOperation| slow.stages_ns.get(&stage).copied();
        table.right(title_of(stage), |slow| known(length(slow), time_short));
    }
    table.right("read after", |slow| time_short(slow.pick_up_ns));
    table.done()
}

/// A figure, what is stated of it and, if known, its confidence interval.
type StatedFigure = (&'static TimeFigure, Figure<u64>, Option<[u64; 2]>);

fn statistics(l: &TimesReport) -> Vec<StatedFigure> {
    let row = |row: &'static TimeFigure| {
        let ci95 = row.ci95(l).filter(|_| row.states_interval);
        (row, row.stated(l), ci95)
    };
    TimesReport::FIGURES.iter().map(row).collect()
}

/// Response and service time, a row for each statistic, with bars over the logarithm of the
/// response times. Where most operations failed, those that succeeded stand first.
pub(super) fn latency_table(t: &TrialReport) -> Table {
    let served = t.served_of_few().map(statistics).unwrap_or_default();
    let served = served.into_iter().map(Some).chain(std::iter::repeat(None));
    let times = statistics(&t.response_time_ns).into_iter().zip(statistics(&t.service_time_ns));
    let rows: Vec<_> = times.zip(served).collect();
    let mut table = TableOf::new(&rows);
    table.left("", |(((figure, ..), _), _)| Line::of(Ink::Dim, figure.title));
    if t.served_of_few().is_some() {
        add_times(&mut table, SERVED, |row| row.1.as_ref());
    }
    add_times(&mut table, response_title(t), |row| Some(&row.0.0));
    if t.service_time_ns.count > 0 {
        add_times(&mut table, "service", |row| Some(&row.0.1));
    }
    let most = |key| t.response_time_ns.figure(key).at_most();
    let ends = [most("min").or(most("p50")), most("max")].map(|ns| ns.unwrap_or(1).max(1) as f64);
    let axis = Axis::decades(ends, |ns| time_short(ns as u64));
    let title = format!("log scale from {}", (axis.label)(axis.lo));
    table.bars(title, Ink::Data, |(((_, figure, _), _), _)| {
        Some(axis.position(figure.at_most()?.max(1) as f64))
    });
    table.done()
}

/// Title of the response times of the operations that succeeded.
const SERVED: &str = "served";

fn response_title(t: &TrialReport) -> &'static str {
    if t.served_of_few().is_some() { "all responses" } else { "response" }
}

/// The rows of the latency table for the first screen.
pub(super) fn key_times_table(t: &TrialReport) -> Table {
    let times = &t.response_time_ns;
    let is_key = |row: usize| {
        let (row, figure, _) = statistics(times)[row];
        match row.title {
            "p50" => true,
            "mean" | "p90" | "p99" | "p99.9" | "max" => times.count > 1 && figure != Figure::Absent,
            _ => false,
        }
    };
    let columns = ["", SERVED, response_title(t), "service"];
    latency_table(t).with_columns(&columns).with_rows(is_key)
}

/// Adds the figures of one kind of time with their intervals.
fn add_times<T>(table: &mut TableOf<T>, title: &str, figure: impl Fn(&T) -> Option<&StatedFigure>) {
    table.right(title, |row| stated(figure(row).map_or(Figure::Absent, |stated| stated.1), time));
    table.right_if_any("95 % interval", "", |row| {
        Some(Line::of(Ink::Dim, time_interval(figure(row)?.2?)))
    });
}
