//! What a report asks of the conclusion of `knee overload`, and whether that agrees with all else.

use super::findings::codes;
use super::preflight;
use super::report::{CameBack, LevelRow, OverloadConclusion, parted};
use crate::consistency::{Contradictions, Said, at_most};
use crate::experiment::answer::{Answer, most_responses, values};
use crate::finding::{Code, Finding};
use crate::trial::report::TrialReport;
use knee_load::measure::Outcome;
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

    fn check(&self, said: Said<'_>, found: &mut Contradictions) {
        check(said, self, found);
    }
}

/// The rows of the levels.
fn levels(of: &OverloadConclusion) -> impl Iterator<Item = &LevelRow> {
    let simple = of.simple.iter().map(|r| &r.row);
    simple.chain(of.sclients.iter().map(|r| &r.row))
}

/// The rows of the levels and of the base load offered again.
fn rows(of: &OverloadConclusion) -> impl Iterator<Item = &LevelRow> {
    let again = of.recovery.iter().filter_map(|r| r.again.as_ref());
    levels(of).chain(again)
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
fn check_evidence(said: Said<'_>, of: &OverloadConclusion, found: &mut Contradictions) {
    let is_near = |a: f64, b: f64| at_most(a, b) && at_most(b, a);
    // What is foretold before the load rests on other figures.
    let is_foretold = |f: &&Finding| preflight::CODES.iter().any(|&code| f.is(code));
    for finding in said.findings.iter().filter(|f| !is_foretold(f)) {
        for &(name, cell) in COLUMNS {
            let Some(value) = finding.evidence.get(name) else {
                continue;
            };
            let is_there = rows(of).filter_map(cell).any(|cell| is_near(cell, *value));
            found.unless(is_there, || format!("{}: {name} {value} is in no row", finding.code));
        }
        let capacity = finding.evidence.get("capacity_per_s");
        found.unless(capacity.is_none_or(|c| *c == of.capacity_per_s), || {
            let (code, is) = (&finding.code, of.capacity_per_s);
            format!("{code}: capacity {capacity:?}, {is}")
        });
    }
}

/// One row agrees with itself: what is served, and how attempts end, are of the same level.
fn check_row(trials: &[TrialReport], row: &LevelRow, found: &mut Contradictions) {
    let (first, all, served) = (row.first_syn_per_s, row.syn_per_s, row.served_per_s);
    found.unless(at_most(first, all), || format!("{first} first SYNs per second of {all}"));
    found.interval("served", Some(served), row.served_ci95_per_s.map(widened));
    let range = row.served_range_per_s.as_ref();
    let is_range = range.is_none_or(|r| !r.because.is_empty() && r.at_least <= served);
    found.unless(is_range, || format!("served {served}/s, and the range {range:?}"));
    let fine = [Outcome::Ok, Outcome::Served];
    let count: u64 = fine.map(|how| row.outcomes.count(how)).iter().sum();
    // All responses to attempts of the level may come after it.
    let came_late = |t: &TrialReport| {
        *t.attempts() == row.outcomes && t.intervals.iter().all(|i| i.completed == 0)
    };
    let is_absent = served == 0.0 && range.is_none() && !trials.iter().any(came_late);
    found.unless(count <= FEW || !is_absent, || {
        format!("{count} attempts served at 0/s, and no reason")
    });
}

/// What rounding, and slots that a batch leaves out, may change.
fn widened([low, high]: [f64; 2]) -> [f64; 2] {
    [0.999 * low, 1.001 * high]
}

/// The base load before and after, and the answer's sentence about it.
fn recovery(of: &OverloadConclusion, found: &mut Contradictions) {
    let Some(recovery) = &of.recovery else { return };
    let is_judged = recovery.came_back != CameBack::NotJudged;
    found.unless(is_judged == recovery.because.is_empty(), || {
        format!("{:?}, because {:?}", recovery.came_back, recovery.because)
    });
    let both = recovery.before.as_ref().zip(recovery.again.as_ref());
    found.unless(both.is_some() || !is_judged, || {
        format!("{:?}, and nothing was measured", recovery.came_back)
    });
    let before = recovery.before.as_ref();
    found.unless(before.is_none_or(|b| levels(of).any(|row| row == b)), || {
        "the base load at first is in no row".to_owned()
    });
    let says = |words: &str| of.answer.contains(words);
    let is_said = match recovery.came_back {
        CameBack::No => says("Service did not come back"),
        CameBack::Yes | CameBack::Late => says("Service came back"),
        CameBack::NotJudged => !says("Service "),
    };
    found.unless(is_said, || format!("{:?}, and the answer: {}", recovery.came_back, of.answer));
}

fn check(said: Said<'_>, of: &OverloadConclusion, found: &mut Contradictions) {
    let most = levels(of).map(|r| r.served_per_s).reduce(f64::max);
    if let Some(most) = most {
        let capacity = of.capacity_per_s;
        found.unless(at_most(capacity, most * FITTED), || {
            format!("capacity {capacity}/s, at most {most}/s served")
        });
        found.unless((capacity > 0.0) == (most > 0.0), || {
            format!("capacity {capacity}/s, and {most}/s served")
        });
    }
    for row in levels(of) {
        let (first, most) = (row.first_syn_per_s, of.max_syn_per_s);
        found.unless(at_most(first, most), || format!("{first} SYNs per second, at most {most}"));
    }
    rows(of).for_each(|row| check_row(said.trials, row, found));
    recovery(of, found);
    check_evidence(said, of, found);
    if let Some(r_squared) = of.r_squared {
        found.unless((0.0..=1.0).contains(&r_squared), || format!("R² {r_squared}"));
    }
    if said.trials.is_empty() {
        return;
    }
    let trials: u64 = said.trials.iter().map(|t| t.attempts().total()).sum();
    let listed: u64 = rows(of).map(|r| r.outcomes.total()).sum();
    found.unless(listed <= trials, || {
        format!("{listed} attempts in the rows, {trials} in the trials")
    });
}
