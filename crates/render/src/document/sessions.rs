//! What users came to, where operations are steps of sessions.

use super::line::{Ink, Line};
use super::table::{Align, Table};
use super::{Document, Fact, fact};
use crate::number::{count, number, percent, rate, time_short};
use knee_core::trial::report::{TimesReport, TrialReport};
use knee_core::trial::sessions::{ProgramsReport, SessionReport, SessionsReport};

/// Of a kind of session so many steps are named at which others ended.
const FAILED_AT_SHOWN: usize = 5;

/// Of several trials so many facts are shown; all are in the JSON.
const FACTS_OF_LEVELS: usize = 5;

/// Adds them, where there are any.
pub(super) fn show(doc: &mut Document, sessions: Option<&SessionsReport>) {
    let Some(sessions) = sessions else {
        return;
    };
    doc.section("Sessions", "from the intended begin, pauses included");
    let kinds: Vec<_> = sessions.kinds.iter().map(|kind| ("", kind)).collect();
    doc.table("Sessions", table(&kinds));
    doc.facts(
        completed(sessions)
            .into_iter()
            .chain(facts("", sessions))
            .collect(),
    );
}

/// How many came to their end per second, where it is known how surely.
fn completed(sessions: &SessionsReport) -> Option<Fact> {
    let (per_s, [lo, hi]) = sessions
        .completed_per_s
        .zip(sessions.completed_ci95_per_s)?;
    let line = format!("{}, 95 %: {} to {}", rate(per_s), number(lo), number(hi));
    Some(fact("completed", Line::plain(line)))
}

/// Adds those of several trials, a row for each trial and kind.
pub(super) fn show_levels(doc: &mut Document, trials: &[TrialReport]) {
    let of = |trial: &TrialReport| trial.sessions().cloned().unwrap_or_default();
    let all: Vec<_> = trials.iter().map(|t| (t.label.as_str(), of(t))).collect();
    let kinds = all.iter();
    let kinds = kinds.flat_map(|(label, of)| of.kinds.iter().map(|kind| (*label, kind)));
    let kinds: Vec<_> = kinds.collect();
    if kinds.is_empty() {
        return;
    }
    doc.section("Sessions", "from the intended begin, pauses included");
    doc.table("Sessions", table(&kinds));
    let facts = all.iter().flat_map(|(label, of)| facts(label, of));
    doc.facts(facts.take(FACTS_OF_LEVELS).collect());
}

/// How many sessions ended with a response, in the words of the opening line.
pub(super) fn answer(trial: &TrialReport) -> Option<String> {
    let sessions = trial.sessions()?;
    let per_s = sessions.answered_per_s?;
    let of = match trial.offered.asked_per_s {
        Some(asked) => format!(" of {}/s", crate::number::asked(asked)),
        None => String::new(),
    };
    Some(format!("{}{of} sessions", rate(per_s)))
}

/// A row for each kind of session of a trial, which is named where there are several.
fn table(kinds: &[(&str, &SessionReport)]) -> Table {
    let mut table = Table::default();
    let column = |cell: &dyn Fn(&SessionReport) -> Line| -> Vec<Line> {
        kinds.iter().map(|(_, kind)| cell(kind)).collect()
    };
    let number = |n: u64| Line::plain(count(n));
    super::add_trials(&mut table, kinds.iter().map(|(trial, _)| *trial));
    table.column("", Align::Left, column(&|k| Line::plain(k.session.clone())));
    table.column("completed", Align::Right, column(&|k| number(k.completed)));
    let failed = |k: &SessionReport| match k.failed {
        0 => number(0),
        n => Line::of(Ink::Bad, count(n)),
    };
    table.column("failed", Align::Right, column(&failed));
    table.column(
        "unfinished",
        Align::Right,
        column(&|k| number(k.unfinished)),
    );
    let share = |k: &SessionReport| {
        Line::plain(k.completed_percent.map_or_else(|| "–".to_owned(), percent))
    };
    table.column("completion", Align::Right, column(&share));
    type Time = fn(&TimesReport) -> Option<u64>;
    let times: [(&str, Time); 3] = [("p50", |l| l.p50), ("p95", |l| l.p95), ("p99", |l| l.p99)];
    for (title, of) in times {
        let cell = |k: &SessionReport| {
            Line::plain(of(&k.session_time_ns).map_or_else(|| "–".to_owned(), time_short))
        };
        table.column(title, Align::Right, column(&cell));
    }
    table
}

/// What there is to tell of a trial, which is named where there are several.
fn facts(trial: &str, sessions: &SessionsReport) -> Vec<Fact> {
    let mut facts = Vec::new();
    let told = |line: String| match trial {
        "" => line,
        trial => format!("{trial}: {line}"),
    };
    for kind in sessions
        .kinds
        .iter()
        .filter(|kind| !kind.failed_at.is_empty())
    {
        let steps = kind.failed_at.iter().take(FAILED_AT_SHOWN);
        let steps = steps.map(|at| format!("{} at {}", count(at.count), at.step));
        let line = told(steps.collect::<Vec<_>>().join(", "));
        facts.push(fact("failed", Line::of(Ink::Bad, line)));
    }
    for unexpected in &sessions.unexpected {
        let line = format!(
            "{}: expected {}, got {}; status {}, body {}",
            unexpected.step,
            unexpected.expected,
            unexpected.came,
            unexpected.status,
            unexpected.body
        );
        facts.push(fact("unexpected", Line::plain(told(line))));
    }
    let programs = sessions.programs.iter();
    let programs = programs.filter_map(programs_line);
    facts.extend(programs.map(|line| fact("programs", Line::plain(told(line)))));
    facts
}

/// How soon programs answered, and what steps waited for that.
fn programs_line(programs: &ProgramsReport) -> Option<String> {
    let ProgramsReport {
        answer_ns, late_ns, ..
    } = programs;
    let shown = |times: &TimesReport| {
        let mean = times
            .mean
            .map(|mean| format!("{} on average", time_short(mean)));
        let p99 = times.p99.map(|p99| format!("p99 {}", time_short(p99)));
        let max = times.max.map(|max| format!("at most {}", time_short(max)));
        let all: Vec<_> = [mean, p99, max].into_iter().flatten().collect();
        all.join(", ")
    };
    (answer_ns.count > 0).then(|| {
        format!(
            "{} answers after {}; steps waited for them {}",
            count(answer_ns.count),
            shown(answer_ns),
            shown(late_ns)
        )
    })
}
