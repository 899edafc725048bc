//! `knee overload`: what a server does when more connections are offered than it serves.

pub mod analysis;
mod answer;
mod conclusion;
pub mod findings;
mod preflight;
pub mod report;
mod spec;
#[cfg(test)]
pub(crate) mod tests;

pub use knee_load::experiment::overload::{PreflightFacts, ServerFacts};
pub use preflight::predict;
pub use spec::{Descriptors, OverloadSpec};

use super::{Concluded, Experiment, NextTrial, verdict};
use crate::experiment::overload::analysis::{
    OverloadPoint, OverloadSetting, OverloadSummary, base, most_served_per_s,
};
use crate::experiment::overload::findings::overload_findings;
use crate::experiment::overload::report::{OverloadConclusion, is_base_again, parted};
use crate::trial::report::{TrialReport, Verdict};
use knee_load::spec::{Level, TrialSpec};
use knee_load::time::Nanos;

/// The overload as a policy: the simple clients first, from which the capacity is known, then the
/// S-Clients, or the schedule in their place. In the end comes the base load again. What it does
/// next follows from its spec and the trials alone.
#[derive(Clone, Debug)]
pub struct Overload {
    spec: OverloadSpec,
}

impl Overload {
    /// The overload that does what `spec` asks for.
    pub fn new(spec: OverloadSpec) -> Overload {
        Overload { spec }
    }

    /// The number of descriptors to try after these trials; `None` where all were tried.
    fn next_descriptors(&self, past: &[TrialReport]) -> Option<u32> {
        let simple = self.spec.simple.len();
        match &self.spec.descriptors {
            Descriptors::List(list) => list.get(past.len() - simple).copied(),
            Descriptors::Auto => {
                // With no simple client before it, the first trial is there for the capacity.
                let known = simple.max(1);
                let probe = spec::PROBE.min(self.spec.descriptors_max.max(1));
                let Some(known_by) = past.get(..known) else {
                    return Some(probe);
                };
                let levels = spec::automatic(&self.spec, most_served_per_s(known_by));
                // That of the first trial is not tried again.
                let is_new = |d: &u32| simple > 0 || *d != probe;
                let mut levels = levels.into_iter().filter(is_new);
                levels.nth(past.len() - known)
            }
        }
    }
}

impl Experiment for Overload {
    type Spec = TrialSpec;
    type Trial = TrialReport;
    type Conclusion = OverloadConclusion;

    fn next(&mut self, past: &[TrialReport]) -> NextTrial<TrialSpec> {
        let spec = &self.spec;
        if past.last().is_some_and(is_base_again) {
            return NextTrial::Converged;
        }
        let trial = past.len();
        let wanted = if let Some(&clients) = spec.simple.get(trial) {
            Some(spec.simple_trial(clients, trial))
        } else if spec.scheduled.is_some() {
            let first = trial == spec.simple.len();
            first.then(|| spec.scheduled_trial(trial)).flatten()
        } else {
            let descriptors = self.next_descriptors(past);
            descriptors.map(|d| spec.sclient_trial(d, trial))
        };
        let again = || {
            let points = OverloadPoint::all(past, &self.setting());
            spec.base_again(base(&points).ok()?.level, trial)
        };
        match wanted.or_else(again) {
            Some(trial) => NextTrial::Run(Box::new(trial)),
            None => NextTrial::Converged,
        }
    }

    fn conclude(&self, past: &[TrialReport]) -> Concluded<OverloadConclusion> {
        let setting = self.setting();
        let summary = OverloadSummary::of(past, &setting);
        let (past, _) = parted(past);
        let conclusion = summary.conclusion(&setting);
        let verdict = if is_load_missing(&summary, &setting) {
            Verdict::Invalid
        } else {
            overload_verdict(past)
        };
        Concluded {
            verdict,
            findings: overload_findings(past, &summary, &setting, verdict),
            conclusion: OverloadConclusion {
                answer: answer::in_words(&summary, &conclusion),
                ..conclusion
            },
        }
    }
}

impl Overload {
    /// What the analysis has to know beside the trials.
    fn setting(&self) -> OverloadSetting {
        let spec = &self.spec;
        let automatic = spec.descriptors == Descriptors::Auto && spec.scheduled.is_none();
        OverloadSetting {
            patience: spec.base.connect_timeout.max(Nanos(1)),
            scheduled_descriptors: spec.scheduled.as_ref().map_or(0, |(_, _, d)| *d),
            close: (!spec.base.target.protocol.is_in_datagrams()).then(|| spec.close()),
            warmup: spec.base.warmup,
            wanted_factor: automatic.then_some(spec.offered_factor_max),
        }
    }
}

/// Whether an overload was asked for, of some times the capacity, and none was made.
fn is_load_missing(summary: &OverloadSummary, setting: &OverloadSetting) -> bool {
    let is_asked = setting.wanted_factor.is_some() && summary.pressing().count() > 1;
    is_asked && summary.capacity_per_s > 0.0 && !summary.is_overloaded()
}

/// Beside what holds for every experiment: where S-Clients ran and no trial of theirs counts,
/// nothing is known of an overload.
fn overload_verdict(past: &[TrialReport]) -> Verdict {
    let pressing = |t: &&TrialReport| !matches!(t.level, Level::Clients(_));
    let mut pressed = past.iter().filter(pressing).peekable();
    let none_counts = pressed.peek().is_some() && pressed.all(|t| t.verdict == Verdict::Invalid);
    if none_counts { Verdict::Invalid } else { verdict(past) }
}
