//! `knee overload`: what a server does when more connections are offered than it serves.
//!
//! # Words
//!
//! - **Simple client**: connects, asks, waits for the answer, closes, and begins again. Any
//!   number of them starts no more connections than the server serves. (Banga and Druschel,
//!   *Measuring the Capacity of a Web Server*, USITS 1997)
//! - **S-Client**: keeps a number of connects in flight, their starts spread evenly over T. A
//!   connect that is established within **T** is handed to the response side and replaced at
//!   once. One that is not is closed after T and replaced. So what is offered is what is served
//!   plus **descriptors**/T, whatever the server does. Descriptors are connects in flight, of all
//!   S-Clients together. (Same source)
//! - **Late**: established, but only after it was to be closed.
//! - **Accept queue**: connections that the kernel completed and the server has not accepted yet.
//!   Beyond the backlog further attempts are dropped. (listen(2))
//! - **Ghost**: a connection that was established for the client and never for the server, as its
//!   accept queue was full when the last segment of the handshake came. Nothing sent over it is
//!   ever acknowledged.
//! - **First SYN**: a connection attempt as it arrives at the server, by its 4-tuple and initial
//!   sequence number. A **repeated SYN** is the same attempt sent again, as its client had no
//!   answer. (RFC 9293)
//! - **Vantage**: the host at the server's side from which a trial is observed: this host, or
//!   that of an observer (`knee observe`).

pub mod analysis;
mod conclusion;
pub mod findings;
mod preflight;
pub mod report;
#[cfg(test)]
pub(crate) mod tests;

use super::{Concluded, Experiment, NextTrial, verdict};
use crate::experiment::overload::analysis::{
    OverloadPoint, OverloadSetting, OverloadSummary, base, most_served_per_s,
};
use crate::experiment::overload::findings::overload_findings;
use crate::experiment::overload::report::{OverloadConclusion, is_base_again, parted};
use crate::finding::Finding;
use crate::trial::report::{TrialReport, Verdict};
pub use knee_load::experiment::{PreflightFacts, ServerFacts};
use knee_load::rng;
use knee_load::spec::{
    ArrivalLaw, CloseKind, ConnectScheme, Level, Load, OverloadLoad, Rate, TrialSpec,
};
use knee_load::time::Nanos;
pub use preflight::predict;
use report::BASE_AGAIN;
use serde::{Deserialize, Serialize};

/// The overload as a policy: the simple clients first, from which the capacity is known, then the
/// S-Clients, or the schedule in their place. In the end comes the base load again. What it does
/// next follows from its spec and the trials alone.
#[derive(Clone, Debug)]
pub struct Overload {
    spec: OverloadSpec,
    foreseen: Vec<Finding>,
}

impl Overload {
    /// The overload that does what `spec` asks for.
    pub fn new(spec: OverloadSpec) -> Overload {
        Overload { spec, foreseen: Vec::new() }
    }

    /// The same with what was [predicted](predict) of it among its findings.
    pub fn with_foreseen(self, foreseen: Vec<Finding>) -> Overload {
        Overload { foreseen, ..self }
    }

    /// The number of descriptors to try after these trials; `None` where all were tried.
    fn next_descriptors(&self, past: &[TrialReport]) -> Option<u32> {
        let simple = self.spec.simple.len();
        match &self.spec.descriptors {
            Descriptors::List(list) => list.get(past.len() - simple).copied(),
            Descriptors::Auto => {
                // Without simple clients, the first trial measures the capacity.
                let first = simple.max(1);
                let probe = PROBE.min(self.spec.descriptors_max.max(1));
                let Some(capacity_trials) = past.get(..first) else {
                    return Some(probe);
                };
                let levels = automatic_descriptors(&self.spec, most_served_per_s(capacity_trials));
                // The level of the first trial is not tried again.
                let mut levels = levels.into_iter().filter(|d| simple > 0 || *d != probe);
                levels.nth(past.len() - first)
            }
        }
    }

    /// Settings of the analysis that the trials do not have.
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
            spec.scheduled_trial(trial).filter(|_| trial == spec.simple.len())
        } else {
            self.next_descriptors(past).map(|d| spec.sclient_trial(d, trial))
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
        // An automatic choice of levels that overloads nothing is not the load that was asked for.
        let is_load_missing = setting.wanted_factor.is_some()
            && summary.pressing().count() > 1
            && summary.capacity_per_s > 0.0
            && !summary.is_overloaded();
        let verdict = if is_load_missing { Verdict::Invalid } else { overload_verdict(past) };
        let mut findings = overload_findings(past, &summary, &setting, verdict);
        findings.extend(self.foreseen.iter().cloned());
        Concluded {
            verdict,
            findings,
            conclusion: OverloadConclusion {
                answer: conclusion::in_words(&summary, &conclusion),
                ..conclusion
            },
        }
    }
}

/// The verdict of every experiment; also invalid if S-Clients ran and none of their trials counts.
fn overload_verdict(past: &[TrialReport]) -> Verdict {
    let pressing = |t: &&TrialReport| !matches!(t.level, Level::Clients(_));
    let mut pressed = past.iter().filter(pressing).peekable();
    let none_counts = pressed.peek().is_some() && pressed.all(|t| t.verdict == Verdict::Invalid);
    if none_counts { Verdict::Invalid } else { verdict(past) }
}

/// What an overload is asked to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverloadSpec {
    /// What all trials have in common: the target, the time per level, T (`connect_timeout`). Its
    /// load gives the local addresses and how connections are closed; level, label, seed and the
    /// rest of the load are set per trial.
    pub base: TrialSpec,
    /// Simple clients, one trial each, in this order, before all else; each at least 1.
    pub simple: Vec<u32>,
    /// How many S-Clients the descriptors are shared among, at least 1.
    pub sclients: u32,
    /// Descriptors of the S-Clients, one trial for each number.
    pub descriptors: Descriptors,
    /// How many times the capacity an automatic choice of descriptors offers at the most.
    pub offered_factor_max: f64,
    /// The most descriptors that an automatic choice may use: what this process may have open.
    pub descriptors_max: u32,
    /// In place of the S-Clients one trial whose connection starts follow a schedule. It has the
    /// mean rate, the arrival process, and the most connects in flight.
    pub scheduled: Option<(Rate, ArrivalLaw, u32)>,
}

/// Which numbers of descriptors are tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Descriptors {
    /// As the capacity demands that the simple clients found.
    Auto,
    /// A list of numbers, in this order; each at least 1.
    List(Vec<u32>),
}

impl OverloadSpec {
    /// How many trials it takes at the most: each level, and after several the base load again.
    pub fn trials_max(&self) -> usize {
        let pressing = match (&self.scheduled, &self.descriptors) {
            (Some(_), _) => 1,
            (None, Descriptors::List(list)) => list.len(),
            // With no simple client before them there is one more, for the capacity.
            (None, Descriptors::Auto) => LEVELS + usize::from(self.simple.is_empty()),
        };
        let levels = self.simple.len() + pressing;
        levels + usize::from(levels > 1)
    }

    /// How many times the capacity is offered, unless asked otherwise.
    pub const OFFERED_FACTOR_MAX: f64 = 16.0;

    /// The simple clients tried unless asked otherwise: those of the paper, and on.
    pub fn simple_default() -> Vec<u32> {
        (0..9).map(|k| 1 << k).collect()
    }

    /// Trial number `trial` (from 0) with this many simple clients.
    fn simple_trial(&self, clients: u32, trial: usize) -> TrialSpec {
        let label = format!("clients={clients}");
        self.trial(label, ConnectScheme::Simple { clients }, trial)
    }

    /// Trial number `trial` (from 0) with this many descriptors.
    fn sclient_trial(&self, descriptors: u32, trial: usize) -> TrialSpec {
        let sclients = self.sclients;
        let scheme = ConnectScheme::SClients { sclients, descriptors };
        self.trial(format!("descriptors={descriptors}"), scheme, trial)
    }

    /// Trial number `trial` (from 0), which offers this level again after the last.
    fn base_again(&self, level: Level, trial: usize) -> Option<TrialSpec> {
        let spec = match level {
            Level::Clients(clients) => self.simple_trial(clients, trial),
            Level::Descriptors(descriptors) => self.sclient_trial(descriptors, trial),
            _ => return None,
        };
        Some(TrialSpec { label: format!("{BASE_AGAIN}, {}", spec.label), ..spec })
    }

    /// Trial number `trial` (from 0) by the schedule, if there is one.
    fn scheduled_trial(&self, trial: usize) -> Option<TrialSpec> {
        let (rate, arrival, descriptors) = self.scheduled.clone()?;
        let scheme = ConnectScheme::Scheduled { rate, arrival, descriptors };
        Some(self.trial(format!("rate={}/s", rate.per_s()), scheme, trial))
    }

    /// How connections are closed.
    fn close(&self) -> CloseKind {
        match &self.base.load {
            Load::Overload(load) => load.close,
            Load::Open(_) | Load::Closed { .. } => CloseKind::default(),
        }
    }

    fn trial(&self, label: String, scheme: ConnectScheme, trial: usize) -> TrialSpec {
        let load = Load::Overload(OverloadLoad { scheme, close: self.close() });
        TrialSpec {
            label,
            level: load.level(),
            load,
            seed: rng::of_trial(self.base.seed, trial),
            ..self.base.clone()
        }
    }
}

/// The lowest level adds this share of the capacity to it by its descriptors.
const LOWEST: f64 = 0.25;
/// Number of automatic levels, each the same factor above the one before it.
const LEVELS: usize = 9;
/// The levels where the capacity is unknown or nothing is served.
const UNKNOWN: [u32; 5] = [64, 128, 256, 512, 1_024];
/// Descriptors that find the capacity where no simple clients go before.
const PROBE: u32 = 16;

/// Numbers of descriptors D, ascending. The rate offered, served + D/T, goes from a quarter above
/// the capacity to `offered_factor_max` times the capacity, as far as descriptors last.
fn automatic_descriptors(spec: &OverloadSpec, capacity_per_s: f64) -> Vec<u32> {
    let patience_s = spec.base.connect_timeout.as_secs_f64();
    let most = spec.descriptors_max.max(1);
    let highest = (spec.offered_factor_max - 1.0).max(LOWEST);
    let step = (highest / LOWEST).powf(1.0 / (LEVELS - 1) as f64);
    let descriptors = |share: f64| {
        // Not a descriptor too few: the highest is to reach the factor that was asked for.
        let wanted = (share * capacity_per_s * patience_s - 1e-6).ceil();
        (wanted.max(1.0) as u32).min(most)
    };
    let mut levels: Vec<u32> = if capacity_per_s > 0.0 {
        (0..LEVELS).map(|k| descriptors(LOWEST * step.powi(k as i32))).collect()
    } else {
        UNKNOWN.iter().map(|&d| d.min(most)).collect()
    };
    levels.dedup();
    levels
}

#[cfg(test)]
mod levels_tests {
    use super::tests::spec;
    use super::*;
    use knee_load::time::Nanos;

    #[test]
    fn levels_reach_from_a_quarter_above_the_capacity_to_the_factor() {
        let spec = spec();
        let levels = automatic_descriptors(&spec, 130.0);
        assert_eq!(levels, [17, 28, 46, 76, 126, 210, 351, 585, 975]);
        let offered = 130.0 + f64::from(levels[8]) / 0.5;
        assert!(offered >= 16.0 * 130.0, "{offered}");
    }

    #[test]
    fn descriptors_end_where_there_are_no_more() {
        let mut spec = spec();
        spec.descriptors_max = 100;
        assert_eq!(automatic_descriptors(&spec, 130.0), [17, 28, 46, 76, 100]);
        assert_eq!(automatic_descriptors(&spec, 0.0), [64, 100], "nothing is served");
        spec.base.connect_timeout = Nanos::from_millis(1);
        assert_eq!(automatic_descriptors(&spec, 130.0), [1, 2], "few descriptors do");
    }
}
