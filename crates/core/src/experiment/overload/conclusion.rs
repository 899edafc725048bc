//! The conclusion of `knee overload` as a report sees it: its sentences, and its checks for
//! contradictions.
//!
//! Each sentence says no more than the figures beside it: what throughput does beyond the capacity
//! is described as in the finding about it.

use super::findings::codes;
use super::preflight;
use super::report::{CameBack, LevelRow, OverloadConclusion, parted};
use crate::consistency::{CheckedReport, ConsistencyCheck, at_most};
use crate::experiment::overload::analysis::{
    BeyondCapacity, OverloadPoint, OverloadSummary, ServerStop, end, times,
};
use crate::experiment::overload::report::Recovery;
use crate::experiment::{Answer, most_responses, values};
use crate::finding::{Code, Finding};
use crate::trial::report::TrialReport;
use crate::words::{exact, levels, number, percent};
use knee_load::measure::{Outcome, Outcomes};
use knee_load::spec::Level;
use serde_json::Value;

/// A capacity that is a mean over levels may exceed each of them by this factor.
const FITTED: f64 = 1.05;
/// So few attempts may have been served after the part of the window that rates are of.
const FEW: u64 = 5;

impl Answer for OverloadConclusion {
    fn codes() -> Vec<Code> {
        codes()
    }

    fn cut_short(&mut self, _trial: &TrialReport, words: String) {
        self.answer = words;
    }

    fn rows(&self) -> usize {
        self.simple.len() + self.sclients.len()
    }

    fn table(&self) -> serde_json::Result<Vec<Value>> {
        values(&self.sclients)
    }

    /// The level with the most responses. The base load offered again is no level.
    fn judged<'a>(&self, trials: &'a [TrialReport]) -> Vec<&'a TrialReport> {
        most_responses(parted(trials).0).into_iter().collect()
    }

    fn check(&self, report: CheckedReport<'_>, check: &mut ConsistencyCheck) {
        check_all(report, self, check);
    }
}

/// The rows of the levels.
fn level_rows(overload: &OverloadConclusion) -> impl Iterator<Item = &LevelRow> {
    overload.simple.iter().map(|r| &r.row).chain(overload.sclients.iter().map(|r| &r.row))
}

/// The rows of the levels and of the base load offered again.
fn rows(overload: &OverloadConclusion) -> impl Iterator<Item = &LevelRow> {
    let again = overload.recovery.iter().filter_map(|r| r.again.as_ref());
    level_rows(overload).chain(again)
}

/// Figures of findings by their name, and the column that each is from.
type RowColumn = fn(&LevelRow) -> Option<f64>;
const COLUMNS: &[(&str, RowColumn)] = &[
    ("served_per_s", |r| Some(r.served_per_s)),
    ("served_before_per_s", |r| Some(r.served_per_s)),
    ("served_low_per_s", |r| Some(r.served_ci95_per_s?[0])),
    ("served_high_per_s", |r| Some(r.served_ci95_per_s?[1])),
    ("first_syn_per_s", |r| Some(r.first_syn_per_s)),
    ("repeated_per_s", |r| Some(r.syn_per_s - r.first_syn_per_s)),
    ("accept_queue_max", |r| r.accept_queue_max.map(f64::from)),
    ("accept_queue_limit", |r| r.accept_queue_limit.map(f64::from)),
];

/// The numbers that findings rest on are those of the table.
fn check_evidence(
    report: CheckedReport<'_>,
    overload: &OverloadConclusion,
    check: &mut ConsistencyCheck,
) {
    let is_near = |a: f64, b: f64| at_most(a, b) && at_most(b, a);
    // What is foretold before the load rests on other figures.
    let is_foretold = |f: &&Finding| preflight::CODES.iter().any(|&code| f.is(code));
    for finding in report.findings.iter().filter(|f| !is_foretold(f)) {
        for &(name, cell) in COLUMNS {
            let Some(value) = finding.evidence.get(name) else {
                continue;
            };
            let is_there = rows(overload).filter_map(cell).any(|cell| is_near(cell, *value));
            check.require(is_there, || format!("{}: {name} {value} is in no row", finding.code));
        }
        let capacity = finding.evidence.get("capacity_per_s");
        check.require(capacity.is_none_or(|c| *c == overload.capacity_per_s), || {
            format!("{}: capacity {capacity:?}, {}", finding.code, overload.capacity_per_s)
        });
    }
}

/// One row agrees with itself: what is served, and how attempts end, are of the same level.
fn check_row(trials: &[TrialReport], row: &LevelRow, check: &mut ConsistencyCheck) {
    let (first, all, served) = (row.first_syn_per_s, row.syn_per_s, row.served_per_s);
    check.require(at_most(first, all), || format!("{first} first SYNs per second of {all}"));
    // Rounding, and slots that a batch leaves out, may change the ends of an interval.
    let wider = row.served_ci95_per_s.map(|[low, high]| [0.999 * low, 1.001 * high]);
    check.interval("served", Some(served), wider);
    let range = row.served_range_per_s.as_ref();
    let is_range = range.is_none_or(|r| !r.because.is_empty() && r.at_least <= served);
    check.require(is_range, || format!("served {served}/s, and the range {range:?}"));
    let count: u64 = [Outcome::Ok, Outcome::Served].map(|how| row.outcomes.count(how)).iter().sum();
    // All responses to attempts of the level may come after it.
    let came_late = |t: &TrialReport| {
        *t.attempts() == row.outcomes && t.intervals.iter().all(|i| i.completed == 0)
    };
    let is_absent = served == 0.0 && range.is_none() && !trials.iter().any(came_late);
    check.require(count <= FEW || !is_absent, || {
        format!("{count} attempts served at 0/s, and no reason")
    });
}

/// The base load before and after, and the answer's sentence about it.
fn recovery(overload: &OverloadConclusion, check: &mut ConsistencyCheck) {
    let Some(recovery) = &overload.recovery else { return };
    let is_judged = recovery.came_back != CameBack::NotJudged;
    check.require(is_judged == recovery.because.is_empty(), || {
        format!("{:?}, because {:?}", recovery.came_back, recovery.because)
    });
    let both = recovery.before.as_ref().zip(recovery.again.as_ref());
    check.require(both.is_some() || !is_judged, || {
        format!("{:?}, and nothing was measured", recovery.came_back)
    });
    let before = recovery.before.as_ref();
    check.require(before.is_none_or(|b| level_rows(overload).any(|row| row == b)), || {
        "the base load at first is in no row".to_owned()
    });
    let says = |words: &str| overload.answer.contains(words);
    let is_said = match recovery.came_back {
        CameBack::No => says("Service did not come back"),
        CameBack::Yes | CameBack::Late => says("Service came back"),
        CameBack::NotJudged => !says("Service "),
    };
    check.require(is_said, || {
        format!("{:?}, and the answer: {}", recovery.came_back, overload.answer)
    });
}

fn check_all(
    report: CheckedReport<'_>,
    overload: &OverloadConclusion,
    check: &mut ConsistencyCheck,
) {
    let most = level_rows(overload).map(|r| r.served_per_s).reduce(f64::max);
    if let Some(most) = most {
        let capacity = overload.capacity_per_s;
        check.require(at_most(capacity, most * FITTED), || {
            format!("capacity {capacity}/s, at most {most}/s served")
        });
        check.require((capacity > 0.0) == (most > 0.0), || {
            format!("capacity {capacity}/s, and {most}/s served")
        });
    }
    for row in level_rows(overload) {
        let (first, most) = (row.first_syn_per_s, overload.max_syn_per_s);
        check.require(at_most(first, most), || format!("{first} SYNs per second, at most {most}"));
    }
    rows(overload).for_each(|row| check_row(report.trials, row, check));
    recovery(overload, check);
    check_evidence(report, overload, check);
    if let Some(r_squared) = overload.r_squared {
        check.require((0.0..=1.0).contains(&r_squared), || format!("R² {r_squared}"));
    }
    if report.trials.is_empty() {
        return;
    }
    let trials: u64 = report.trials.iter().map(|t| t.attempts().total()).sum();
    let listed: u64 = rows(overload).map(|r| r.outcomes.total()).sum();
    check.require(listed <= trials, || {
        format!("{listed} attempts in the rows, {trials} in the trials")
    });
}

/// SYN rates that are farther from served + D/T than this do not follow it, in percent.
const FOLLOWS_PERCENT: f64 = 3.0;
/// The line through them must account for this share of their variance.
const FOLLOWS_R_SQUARED: f64 = 0.99;

/// The answer in sentences.
pub(super) fn in_words(summary: &OverloadSummary, conclusion: &OverloadConclusion) -> String {
    if summary.points.is_empty() {
        return "Nothing was measured.".to_owned();
    }
    if !summary.points.iter().any(OverloadPoint::has_served) {
        return nothing_served(summary);
    }
    if summary.capacity_per_s <= 0.0 {
        let has_sessions = summary.points.iter().any(|p| p.of_sessions);
        let what =
            if has_sessions { "No session came to its end" } else { "No attempt was served" };
        return format!("{what} within a level: the levels are too short.");
    }
    let mut sentences: Vec<String> = summary.stops.first().map(stopped).into_iter().collect();
    if summary.points.iter().any(OverloadPoint::counts) || summary.stops.is_empty() {
        let mut first = vec![served(summary)];
        first.extend(simple(conclusion));
        first.extend(pressed(summary));
        sentences.push(first.join("; ") + ".");
        sentences.extend(relation(summary, conclusion));
    }
    sentences.push(recovered(&summary.recovery));
    sentences.join(" ")
}

fn nothing_served(summary: &OverloadSummary) -> String {
    let mut outcomes = Outcomes::default();
    summary.points.iter().for_each(|p| outcomes.merge(&p.row.outcomes));
    let established: u64 = summary.points.iter().map(OverloadPoint::established).sum();
    let attempts = match outcomes.total() {
        1 => "The one attempt was not served".to_owned(),
        n => format!("None of {} attempts was served", exact(n as f64)),
    };
    let most = outcomes.iter().max_by_key(|&(_, n)| n);
    match most.filter(|&(_, n)| n > 0) {
        Some((how, n)) => {
            format!("{attempts}: {}.", unserved(how, n, outcomes.total(), established))
        }
        None => "Nothing was served.".to_owned(),
    }
}

/// How most of the attempts ended, where none was served.
fn unserved(how: Outcome, count: u64, total: u64, established: u64) -> String {
    let count = if count == total { "all".to_owned() } else { exact(count as f64) };
    // What is established stays in the accept queue, and then no more is.
    if how == Outcome::ConnectTimeout && established > 0 {
        return format!(
            "{} were established and received no response, {count} {}",
            exact(established as f64),
            end(how)
        );
    }
    format!("{count} {}", end(how))
}

fn stopped(stop: &ServerStop) -> String {
    let (when, until) = stop.words();
    format!(
        "The server {} {when} {until}: {} of {} attempts {}{}.",
        stop.verb(),
        exact(stop.count as f64),
        exact(stop.unserved as f64),
        end(stop.how),
        stop.works_on().map_or(String::new(), |work| format!("; {work}"))
    )
}

/// Whether service came back after the last level.
fn recovered(recovery: &Recovery) -> String {
    let rows = (recovery.level, &recovery.before, &recovery.again);
    let (Some(level), Some(before), Some(again)) = rows else {
        return format!("Whether service came back is not known: {}.", recovery.because);
    };
    let figures = format!(
        "with {} again {}/s are served, {}/s at first",
        levels(&[level]),
        number(again.served_per_s),
        number(before.served_per_s)
    );
    match recovery.came_back {
        CameBack::Yes => format!("Service came back: {figures}."),
        CameBack::Late => format!(
            "Service came back late: {figures}, and as much as at first in the second half."
        ),
        CameBack::No => format!("Service did not come back: {figures}."),
        CameBack::NotJudged => {
            format!("Whether service came back is not known: {figures}; {}.", recovery.because)
        }
    }
}

fn served(summary: &OverloadSummary) -> String {
    let capacity = number(summary.capacity_per_s);
    match summary.beyond_capacity() {
        BeyondCapacity::Flat(_) => format!("The server serves {capacity}/s whatever is offered"),
        BeyondCapacity::Falls(least) => format!(
            "The server serves about {capacity}/s at best and as little as {}/s under overload",
            number(least.row.served_per_s)
        ),
        BeyondCapacity::Unknown => format!("The server serves about {capacity}/s at best"),
    }
}

fn simple(conclusion: &OverloadConclusion) -> Option<String> {
    let clients = conclusion.simple.iter().map(|row| row.clients).max()?;
    let rates = conclusion.simple.iter().map(|row| row.row.first_syn_per_s);
    let most = number(rates.fold(0.0, f64::max));
    Some(match clients {
        1 => format!("one simple client asked for {most}/s"),
        n => format!(
            "up to {} simple clients never asked for more than {most}/s",
            exact(f64::from(n))
        ),
    })
}

fn pressed(summary: &OverloadSummary) -> Option<String> {
    let most = summary.most_offered_per_s()?;
    let is_scheduled = summary.pressing().any(|p| matches!(p.level, Level::RatePerS(_)));
    let who = if is_scheduled { "the schedule" } else { "S-Clients" };
    if !summary.is_overloaded() {
        return Some(format!("{who} offered up to {}/s: nothing was overloaded", number(most)));
    }
    Some(format!(
        "{who} offered up to {}/s ({} times)",
        number(most),
        times(most, summary.capacity_per_s)
    ))
}

/// How what arrives goes with the descriptors.
fn relation(summary: &OverloadSummary, conclusion: &OverloadConclusion) -> Option<String> {
    let r_squared = conclusion.r_squared?;
    let deviation = conclusion.deviation_percent?;
    let taken = summary.taken();
    let rate = if summary.is_of_datagrams { "request" } else { "SYN" };
    if deviation > FOLLOWS_PERCENT || r_squared < FOLLOWS_R_SQUARED {
        return Some(format!("The {rate} rate is up to {} off {taken} + D/T.", percent(deviation)));
    }
    let rate = if summary.is_of_datagrams { "Request" } else { "SYN" };
    // All of its nines are shown, and it is never rounded up.
    let r_squared = format!("{:.6}", (r_squared * 1e6).floor() / 1e6);
    Some(format!(
        "{rate} rate = {taken} + D/T to within {}, R² {}.",
        percent(deviation.max(0.01)),
        r_squared.trim_end_matches('0').trim_end_matches('.')
    ))
}
