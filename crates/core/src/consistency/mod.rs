//! Whether a report agrees with itself: no statement in it may contradict a number in it.
//!
//! Debug builds of the command line check every report that they make, and the tests of experiments
//! every conclusion that they draw, so that each test of knee is a test of this as well.

mod findings;
mod latency;
mod overload;
mod sweep;
#[cfg(test)]
mod tests;
mod throttle;
mod trial;
mod udp;

use crate::finding::Finding;
use crate::report::{Conclusion, Report};
use crate::trial::report::{TrialReport, Verdict};

/// What a report states: the parts of it that can contradict each other.
#[derive(Clone, Copy, Debug)]
pub struct Statements<'a> {
    /// Whether the numbers can be trusted.
    pub verdict: Verdict,
    /// The trials in the order they were run.
    pub trials: &'a [TrialReport],
    /// What follows from them.
    pub findings: &'a [Finding],
    /// The experiment's own answer.
    pub conclusion: &'a Conclusion,
}

impl<'a> From<&'a Report> for Statements<'a> {
    fn from(report: &'a Report) -> Statements<'a> {
        Statements {
            verdict: report.verdict,
            trials: &report.trials,
            findings: &report.findings,
            conclusion: &report.conclusion,
        }
    }
}

/// Where the statements contradict each other, a line for each place; none where they agree.
pub fn contradictions<'a>(of: impl Into<Statements<'a>>) -> Vec<String> {
    let said = of.into();
    let mut found = Contradictions::default();
    for trial in said.trials {
        found.within(&trial.label, |found| trial::check(trial, found));
    }
    findings::check(said, &mut found);
    match said.conclusion {
        Conclusion::Run(_) => {}
        Conclusion::Sweep(sweep) => sweep::check(said, sweep, &mut found),
        Conclusion::Throttle(throttle) => throttle::check(throttle, &mut found),
        Conclusion::Overload(overload) => overload::check(said, overload, &mut found),
        Conclusion::Udp(udp) => udp::check(udp, &mut found),
        Conclusion::Latency(latency) => latency::check(said, latency, &mut found),
    }
    found.lines
}

/// The contradictions found so far.
#[derive(Debug, Default)]
struct Contradictions {
    place: String,
    lines: Vec<String>,
}

impl Contradictions {
    /// Notes a contradiction unless `agrees`.
    fn unless(&mut self, agrees: bool, line: impl FnOnce() -> String) {
        if !agrees {
            let place = match self.place.is_empty() {
                true => String::new(),
                false => format!("{}: ", self.place),
            };
            self.lines.push(format!("{place}{}", line()));
        }
    }

    /// Checks a part of the report whose lines are to name it.
    fn within(&mut self, place: &str, check: impl FnOnce(&mut Contradictions)) {
        let outer = std::mem::replace(&mut self.place, place.to_owned());
        check(self);
        self.place = outer;
    }

    /// Figures that are there must not decrease from one to the next.
    fn ascending<T: PartialOrd + Copy + std::fmt::Debug>(
        &mut self,
        what: &str,
        figures: &[(&str, Option<T>)],
    ) {
        let mut before: Option<(&str, T)> = None;
        for &(name, figure) in figures {
            let Some(figure) = figure else { continue };
            if let Some((lower, least)) = before {
                self.unless(least <= figure, || {
                    format!("{what}: {lower} {least:?} is above {name} {figure:?}")
                });
            }
            before = Some((name, figure));
        }
    }

    /// An interval of confidence has its ends in order and its estimate inside.
    fn interval<T: PartialOrd + Copy + std::fmt::Debug>(
        &mut self,
        what: &str,
        estimate: Option<T>,
        ci95: Option<[T; 2]>,
    ) {
        let Some([lo, hi]) = ci95 else { return };
        self.unless(lo <= hi, || {
            format!("{what}: its interval is {lo:?} to {hi:?}")
        });
        let is_inside = estimate.is_some_and(|x| lo <= x && x <= hi);
        self.unless(is_inside, || {
            format!("{what}: {estimate:?} is outside of its interval {lo:?} to {hi:?}")
        });
    }
}

/// Rounding accounts for less.
const ROUNDING: f64 = 1e-6;

/// `a` is not above `b`, rounding apart.
fn at_most(a: f64, b: f64) -> bool {
    a <= b + ROUNDING * b.abs().max(1.0)
}

/// The same of an experiment that a test conducted.
#[cfg(test)]
pub(crate) fn contradictions_of<C: Clone + Into<Conclusion>>(
    conducted: &crate::experiment::Conducted<TrialReport, C>,
) -> Vec<String> {
    let conclusion = conducted.conclusion.clone().into();
    contradictions(Statements {
        verdict: conducted.verdict,
        trials: &conducted.trials,
        findings: &conducted.findings,
        conclusion: &conclusion,
    })
}

/// Of an experiment that a test conducted.
#[cfg(test)]
#[track_caller]
pub(crate) fn assert_consistent<C: Clone + Into<Conclusion>>(
    conducted: &crate::experiment::Conducted<TrialReport, C>,
) {
    let lines = contradictions_of(conducted);
    assert!(lines.is_empty(), "contradictions: {lines:#?}");
}
