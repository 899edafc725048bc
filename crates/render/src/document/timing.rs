//! What response times are made of: the stages of all operations and of the slowest, and the
//! slowest one by one.

use super::line::{Ink, Line};
use super::run::quantiles;
use super::stacks::{Stack, Stacks};
use super::table::{Align, Table};
use super::traffic::cut;
use super::{Block, Document, Medium, fact, keep_first_of_levels};
use crate::number::{count, known, percent, percent_short, time_short};
use crate::plot::Tone;
use knee_core::measure::{Owner, SlowOperation, Stage};
use knee_core::trial::report::{TargetReport, TrialReport};
use knee_core::trial::timing::{AnatomyGroup, AnatomyReport, ClockKind, TimingReport};
use std::collections::{BTreeMap, BTreeSet};

/// The longest name of a step beside a bar, in characters.
const NAME_WIDTH: usize = 24;

/// So many steps are shown.
const STEPS_SHOWN: usize = 20;

/// A smaller share of a response time is not worth a word in a sentence.
const SHARE_TOLD_PERCENT: f64 = 1.0;

/// Adds what the response times of a trial are made of, where that was measured.
pub(super) fn show(doc: &mut Document, t: &TrialReport) {
    let Some(timing) = t.timing().filter(|timing| !timing.anatomy.is_empty()) else {
        return;
    };
    doc.section("What response times are made of", clock_words(timing));
    if let Some(slowest) = told(timing) {
        doc.paragraph(Line::plain(sentence(slowest)));
    }
    doc.only(Medium::Page, |doc| {
        doc.push(Block::Stacks(anatomy_stacks(timing)));
    });
    doc.table("Mean time in each stage", anatomy_table(&timing.anatomy));
    show_owners(doc, timing);
    let pick_up = timing.pick_up_ns.iter();
    let mut facts: Vec<_> = pick_up
        .map(|q| fact("read after arrival", quantiles(q)))
        .collect();
    if timing.shared_arrivals > 0 {
        let words = format!(
            "{} responses came in one piece with others, and arrived with its last byte",
            count(timing.shared_arrivals)
        );
        facts.push(fact("shared arrival", Line::plain(words)));
    }
    facts.extend(timing.generator_cycle_percent.map(|own| {
        let line = Line::plain(format!("{} of a user's cycle", percent(own)));
        fact("generator's delay", line)
    }));
    doc.facts(facts);
    show_steps(doc, t);
    doc.only(Medium::Page, |doc| {
        doc.push(Block::Stacks(waterfall(&timing.slowest)));
        let table = Block::Table("The slowest".into(), slowest_table(&timing.slowest));
        doc.push(Block::Folded("Data".into(), vec![table]));
    });
}

/// Adds what the slowest response times are made of, in a sentence.
pub(super) fn show_sentence(doc: &mut Document, t: &TrialReport) {
    if let Some(slowest) = t.timing().and_then(told) {
        doc.paragraph(Line::plain(sentence(slowest)));
    }
}

/// Adds whose delay response times are, where an observer tells the server's host from the network.
fn show_owners(doc: &mut Document, timing: &TimingReport) {
    let split = |a: &&AnatomyReport| a.both_ends_count.is_some();
    let groups: Vec<&AnatomyReport> = timing.anatomy.iter().filter(split).collect();
    if groups.is_empty() {
        return;
    }
    let lengths = |a: &AnatomyReport| -> Vec<(&'static str, Tone, u64)> {
        let shares = a.owner_percent.iter();
        let ns = |percent: &f64| (a.response_ns as f64 * percent / 100.0).round() as u64;
        shares
            .map(|(owner, percent)| {
                let (name, tone) = owner_part(*owner);
                (name, tone, ns(percent))
            })
            .collect()
    };
    let owners = groups.iter().flat_map(|a| a.owner_percent.keys().copied());
    let owners: BTreeSet<Owner> = owners.collect();
    let rows = groups.iter().map(|a| Stack {
        name: a.of.words().to_owned(),
        value: time_short(a.response_ns),
        whole_ns: a.response_ns,
        parts: lengths(a),
    });
    let stacks = Stacks {
        title: "Mean response time by owner".into(),
        note: "Operations that the observer saw at the server tell its host from the network."
            .into(),
        parts: owners.iter().map(|owner| owner_part(*owner)).collect(),
        rows: rows.collect(),
    };
    doc.only(Medium::Page, |doc| doc.push(Block::Stacks(stacks)));
    doc.table("Share of each owner", owners_table(&groups, &owners));
}

fn owners_table(groups: &[&AnatomyReport], owners: &BTreeSet<Owner>) -> Table {
    let mut table = Table::default();
    let cells = |cell: &dyn Fn(&AnatomyReport) -> String| {
        let cells = groups.iter().map(|a| Line::plain(cell(a)));
        cells.collect::<Vec<_>>()
    };
    let names = groups.iter().map(|a| Line::of(Ink::Dim, a.of.words()));
    table.column("", Align::Left, names.collect());
    for owner in owners {
        let share = |a: &AnatomyReport| known(a.owner_percent.get(owner).copied(), percent_short);
        table.column(owner_part(*owner).0, Align::Right, cells(&share));
    }
    let seen = |a: &AnatomyReport| known(a.both_ends_count, count);
    table.column("seen at both ends", Align::Right, cells(&seen));
    table
}

/// Adds what the mean response time of each step of sessions is made of, to a page.
fn show_steps(doc: &mut Document, t: &TrialReport) {
    let targets = t.http().map_or(&[][..], |http| &http.traffic.targets);
    let steps: Vec<(&TargetReport, &BTreeMap<Stage, u64>)> = targets
        .iter()
        .filter_map(|target| Some((target, &target.step.as_ref()?.mean_ns)))
        .filter(|(_, stages)| !stages.is_empty())
        .collect();
    let mean = |target: &TargetReport| target.response_time_ns.mean.unwrap_or(0);
    let whole_ns = steps.iter().map(|(target, _)| mean(target)).max();
    let rows = steps.iter().map(|(target, stages)| Stack {
        name: cut(&target.target, NAME_WIDTH),
        value: time_short(mean(target)),
        whole_ns: whole_ns.unwrap_or(0),
        parts: parts(stages.iter()),
    });
    if steps.is_empty() {
        return;
    }
    let seen = steps.iter().flat_map(|(_, stages)| stages.keys().copied());
    let stacks = Stacks {
        title: "Mean response time of each step by stage".into(),
        note: "Each bar is the mean response time of a step.".into(),
        parts: legend(seen.collect()),
        rows: rows.take(STEPS_SHOWN).collect(),
    };
    doc.only(Medium::Page, |doc| doc.push(Block::Stacks(stacks)));
}

/// Adds what the slowest operations of several trials are made of, a row for the first of each
/// level.
pub(super) fn show_levels<'a>(doc: &mut Document, trials: impl Iterator<Item = &'a TrialReport>) {
    let mut rows: Vec<(&str, &AnatomyReport)> = trials
        .filter_map(|t| Some((t.label.as_str(), told(t.timing()?)?)))
        .collect();
    keep_first_of_levels(&mut rows);
    if rows.is_empty() {
        return;
    }
    let remark = "share of each stage in the response times of the slowest operations";
    doc.section("What the slowest response times are made of", remark);
    let mut table = Table::default();
    let cells = |cell: &dyn Fn(&(&str, &AnatomyReport)) -> String| {
        rows.iter().map(|row| Line::plain(cell(row))).collect()
    };
    table.column(
        "trial",
        Align::Left,
        cells(&|(label, _)| (*label).to_owned()),
    );
    let of = |(_, a): &(&str, &AnatomyReport)| a.of.words().to_owned();
    table.column("of", Align::Left, cells(&of));
    table.column("from", Align::Right, cells(&|(_, a)| time_short(a.from_ns)));
    for stage in stages(rows.iter().map(|(_, a)| *a)) {
        let share = |(_, a): &(&str, &AnatomyReport)| {
            known(a.stage_percent.get(&stage).copied(), percent_short)
        };
        table.column(title_of(stage), Align::Right, cells(&share));
    }
    // Only an observer can tell these two apart.
    for owner in [Owner::ServerHost, Owner::Network] {
        let share = |a: &AnatomyReport| a.owner_percent.get(&owner).copied();
        if rows.iter().any(|(_, a)| share(a).is_some()) {
            let share = |(_, a): &(&str, &AnatomyReport)| known(share(a), percent_short);
            table.column(owner_part(owner).0, Align::Right, cells(&share));
        }
    }
    doc.table("What the slowest response times are made of", table);
}

/// The group that a sentence is about: the slowest 1 %, or the slowest that there are enough of.
fn told(timing: &TimingReport) -> Option<&AnatomyReport> {
    let tail = timing
        .anatomy
        .iter()
        .filter(|a| a.of <= AnatomyGroup::Slowest1);
    tail.max_by_key(|a| a.of)
}

/// Which stages took the time, the longest first.
fn sentence(a: &AnatomyReport) -> String {
    let shares = a.stages_by_share().into_iter().enumerate();
    let worth_a_word =
        shares.filter(|(rank, (_, share))| *rank == 0 || *share >= SHARE_TOLD_PERCENT);
    let parts: Vec<String> = worth_a_word
        .map(|(_, (stage, share))| format!("{} is {}", percent_short(share), stage.words()))
        .collect();
    let of = match a.of {
        AnatomyGroup::All => "Of all response times".to_owned(),
        of => format!("Of {} (over {})", of.words(), time_short(a.from_ns)),
    };
    format!("{of}, {}.", parts.join(", "))
}

fn clock_words(timing: &TimingReport) -> &'static str {
    match timing.clock {
        Some(ClockKind::Kernel) => "arrival by the kernel's timestamps",
        Some(ClockKind::Process) => "arrival when the generator read it",
        None => "",
    }
}

/// The title of a stage's column.
fn title_of(stage: Stage) -> &'static str {
    match stage {
        Stage::Pacing => "late start",
        Stage::ConnectionWait => "conn. wait",
        Stage::Connect => "connect",
        Stage::Tls => "TLS",
        Stage::StreamWait => "stream wait",
        Stage::TargetStreamWait => "its stream limit",
        Stage::Write => "late write",
        Stage::WindowWait => "window",
        Stage::FirstByte => "first byte",
        Stage::Receive => "receive",
    }
}

/// The tone of a stage in a figure: those of one owner are alike.
fn tone_of(stage: Stage) -> Tone {
    match (stage.owner(), stage) {
        (Owner::Generator, _) => Tone::Bad,
        (Owner::Limit, _) => Tone::Second,
        (Owner::Target, Stage::FirstByte) => Tone::First,
        (Owner::Target, Stage::Receive) => Tone::Third,
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

/// All stages that any of these has.
fn stages<'a>(all: impl Iterator<Item = &'a AnatomyReport>) -> BTreeSet<Stage> {
    all.flat_map(|a| a.mean_ns.keys().copied()).collect()
}

fn anatomy_table(all: &[AnatomyReport]) -> Table {
    let mut table = Table::default();
    let cells = |cell: &dyn Fn(&AnatomyReport) -> String| {
        all.iter().map(|a| Line::plain(cell(a))).collect::<Vec<_>>()
    };
    let names = all.iter().map(|a| Line::of(Ink::Dim, a.of.words()));
    table.column("", Align::Left, names.collect());
    table.column("from", Align::Right, cells(&|a| time_short(a.from_ns)));
    table.column("mean", Align::Right, cells(&|a| time_short(a.response_ns)));
    for stage in stages(all.iter()) {
        let mean = |a: &AnatomyReport| known(a.mean_ns.get(&stage).copied(), time_short);
        table.column(title_of(stage), Align::Right, cells(&mean));
    }
    table
}

fn anatomy_stacks(timing: &TimingReport) -> Stacks {
    let rows = timing.anatomy.iter().map(|a| Stack {
        name: a.of.words().to_owned(),
        value: time_short(a.response_ns),
        whole_ns: a.response_ns,
        parts: parts(a.mean_ns.iter()),
    });
    Stacks {
        title: "Mean response time by stage".into(),
        note: "Each bar is the mean response time of a group of operations.".into(),
        parts: legend(stages(timing.anatomy.iter())),
        rows: rows.collect(),
    }
}

/// The slowest operations, all to the scale of the slowest.
fn waterfall(slowest: &[SlowOperation]) -> Stacks {
    let whole_ns = slowest.first().map_or(0, |slow| slow.response_time_ns);
    let seen: BTreeSet<Stage> = slowest
        .iter()
        .flat_map(|slow| slow.stages_ns.keys().copied())
        .collect();
    let rows = slowest.iter().map(|slow| Stack {
        name: name_of(slow),
        value: time_short(slow.response_time_ns),
        whole_ns,
        parts: parts(slow.stages_ns.iter()),
    });
    Stacks {
        title: "The slowest operations".into(),
        note: "Each bar is one operation, from its intended time to its last byte.".into(),
        parts: legend(seen),
        rows: rows.collect(),
    }
}

fn parts<'a>(
    lengths: impl Iterator<Item = (&'a Stage, &'a u64)>,
) -> Vec<(&'static str, Tone, u64)> {
    lengths
        .map(|(stage, ns)| (title_of(*stage), tone_of(*stage), *ns))
        .collect()
}

fn legend(stages: BTreeSet<Stage>) -> Vec<(&'static str, Tone)> {
    let each = stages.into_iter();
    each.map(|stage| (title_of(stage), tone_of(stage)))
        .collect()
}

/// Its step, where it is one, and how it ended.
fn name_of(slow: &SlowOperation) -> String {
    match &slow.step {
        Some(step) => format!("{}, {}", cut(step, NAME_WIDTH), outcome_of(slow)),
        None => outcome_of(slow),
    }
}

/// Its status, or else how it ended.
fn outcome_of(slow: &SlowOperation) -> String {
    match slow.status {
        Some(status) => format!("status {status}"),
        None => slow.outcome.name().to_owned(),
    }
}

fn slowest_table(slowest: &[SlowOperation]) -> Table {
    let mut table = Table::default();
    let cells = |cell: &dyn Fn(&SlowOperation) -> String| {
        slowest
            .iter()
            .map(|slow| Line::plain(cell(slow)))
            .collect::<Vec<_>>()
    };
    let intended = |slow: &SlowOperation| time_short(slow.intended_ns);
    let response = |slow: &SlowOperation| time_short(slow.response_time_ns);
    table.column("intended at", Align::Right, cells(&intended));
    table.column("response time", Align::Right, cells(&response));
    table.column("ended", Align::Left, cells(&outcome_of));
    let connection = |slow: &SlowOperation| known(slow.connection.map(u64::from), count);
    table.column("connection", Align::Right, cells(&connection));
    match slowest.iter().any(|slow| slow.step.is_some()) {
        true => {
            let step = |slow: &SlowOperation| slow.step.clone().unwrap_or_default();
            table.column("step", Align::Left, cells(&step));
        }
        false => {
            let target = |slow: &SlowOperation| count(slow.target.into());
            table.column("target", Align::Right, cells(&target));
        }
    }
    let stages: BTreeSet<Stage> = slowest
        .iter()
        .flat_map(|slow| slow.stages_ns.keys().copied())
        .collect();
    for stage in stages {
        let length = |slow: &SlowOperation| known(slow.stages_ns.get(&stage).copied(), time_short);
        table.column(title_of(stage), Align::Right, cells(&length));
    }
    let pick_up = |slow: &SlowOperation| time_short(slow.pick_up_ns);
    table.column("read after", Align::Right, cells(&pick_up));
    table
}
