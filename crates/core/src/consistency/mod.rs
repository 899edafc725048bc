//! Whether a report agrees with itself: no statement in it may contradict a number in it.
//!
//! Debug builds of the command line check every report that they make. The tests of experiments
//! check every conclusion that they draw. So each test of knee is a test of this as well.

pub(crate) mod trial;

use crate::finding::Finding;
use crate::trial::report::{TrialReport, Verdict};

/// The statements of a report beside its conclusion.
#[derive(Clone, Copy, Debug)]
pub struct Said<'a> {
    /// Whether the numbers can be trusted.
    pub verdict: Verdict,
    /// The trials in the order they were run.
    pub trials: &'a [TrialReport],
    /// The findings.
    pub findings: &'a [Finding],
}

/// The contradictions found so far.
#[derive(Debug, Default)]
pub struct Contradictions {
    place: String,
    /// A line for each.
    pub(crate) lines: Vec<String>,
}

impl Contradictions {
    /// Notes a contradiction unless `agrees`.
    pub(crate) fn unless(&mut self, agrees: bool, line: impl FnOnce() -> String) {
        if !agrees {
            let place =
                if self.place.is_empty() { String::new() } else { format!("{}: ", self.place) };
            self.lines.push(format!("{place}{}", line()));
        }
    }

    /// Checks a part of the report whose lines are to name it.
    pub fn within(&mut self, place: &str, check: impl FnOnce(&mut Contradictions)) {
        let outer = std::mem::replace(&mut self.place, place.to_owned());
        check(self);
        self.place = outer;
    }

    /// Figures that are there must not decrease from one to the next.
    pub(crate) fn ascending<T: PartialOrd + Copy + std::fmt::Debug>(
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
    pub(crate) fn interval<T: PartialOrd + Copy + std::fmt::Debug>(
        &mut self,
        what: &str,
        estimate: Option<T>,
        ci95: Option<[T; 2]>,
    ) {
        let Some([lo, hi]) = ci95 else { return };
        self.unless(lo <= hi, || format!("{what}: its interval is {lo:?} to {hi:?}"));
        let is_inside = estimate.is_some_and(|x| lo <= x && x <= hi);
        self.unless(is_inside, || {
            format!("{what}: {estimate:?} is outside of its interval {lo:?} to {hi:?}")
        });
    }
}

/// Rounding accounts for less.
const ROUNDING: f64 = 1e-6;

/// `a` is not above `b`, rounding apart.
pub(crate) fn at_most(a: f64, b: f64) -> bool {
    a <= b + ROUNDING * b.abs().max(1.0)
}
