//! Where waits and rates are measured: this machine.

use crate::command::laboratory::{TrialOutput, TrialRunner};
use crate::watch::{LiveKind, UpcomingTrial};
use knee_core::experiment::Experiment;
use knee_core::trial::report::TrialReport;
use knee_engine::error::RunError;
use knee_engine::experiment::throttle;
use knee_load::experiment::throttle::{
    Chore, HoldSpec, HoldTrial, WaitMethod, WaitSpec, WaitTrial,
};
use knee_load::measure::IntervalWatcher;
use knee_load::time::Nanos;
use std::sync::atomic::AtomicBool;

/// The rows of a table, one after another. Nothing is shown during a row, as that would disturb it.
#[derive(Debug)]
struct Rows {
    /// How long each takes.
    times: Vec<Nanos>,
    begun: usize,
}

impl Rows {
    fn of(times: Vec<Nanos>) -> Rows {
        Rows { times, begun: 0 }
    }

    fn total(&self) -> Nanos {
        sum(&self.times)
    }

    /// The next row, of this name.
    fn next(&mut self, label: String) -> UpcomingTrial {
        let before = self.begun.min(self.times.len());
        self.begun += 1;
        UpcomingTrial {
            label,
            level: None,
            kind: LiveKind::Row {
                number: self.begun,
                of: self.times.len(),
                before: sum(&self.times[..before]),
                all: self.total(),
            },
            warmup: Nanos::ZERO,
            total: self.times.get(before).copied(),
            interval: Nanos::ZERO,
            asked_per_s: None,
            names: Default::default(),
            http: None,
        }
    }
}

fn sum(times: &[Nanos]) -> Nanos {
    times.iter().fold(Nanos::ZERO, |sum, t| sum + *t)
}

/// Measures waits.
#[derive(Debug)]
pub struct WaitRunner {
    rows: Rows,
    /// The fewest waits with the work that rows have, where they have any.
    probe: Option<WaitSpec>,
    trials: Vec<WaitTrial>,
}

impl WaitRunner {
    /// For these rows.
    pub fn new(rows: &[WaitSpec]) -> WaitRunner {
        let with_work = rows.iter().find(|row| row.chore != Chore::None);
        WaitRunner {
            rows: Rows::of(rows.iter().map(wait_time).collect()),
            probe: with_work.map(probe),
            trials: Vec::new(),
        }
    }

    /// How long all rows take.
    pub fn total(&self) -> Nanos {
        self.rows.total()
    }

    /// What was measured; `None` where the user ended it early.
    pub fn trials(&self) -> Option<&[WaitTrial]> {
        let is_whole = !self.trials.iter().any(|t| t.waits.interrupted);
        is_whole.then_some(&self.trials)
    }
}

fn probe(row: &WaitSpec) -> WaitSpec {
    WaitSpec {
        method: WaitMethod::Spin,
        delay: Nanos::from_micros(1),
        duration: Nanos::ZERO,
        ..row.clone()
    }
}

/// How long a row takes, its operations apart.
fn wait_time(row: &WaitSpec) -> Nanos {
    let least = Nanos(row.delay.0.saturating_mul(WaitSpec::SAMPLES_MIN));
    row.duration.max(least)
}

fn wait_label(row: &WaitSpec) -> String {
    let waits = format!("{} {}", row.method.name(), row.delay);
    match &row.chore {
        Chore::None => waits,
        chore => format!("{waits} with {}", chore.name()),
    }
}

impl<X: Experiment<Spec = WaitSpec, Trial = WaitTrial>> TrialRunner<X> for WaitRunner {
    /// The first row has no work: that nobody is there to do it should not come out only after it.
    fn prepare(&mut self, _stop: &AtomicBool) -> Result<(), RunError> {
        match self.probe.take() {
            Some(probe) => throttle::wait(&probe, &AtomicBool::new(false)).map(drop),
            None => Ok(()),
        }
    }

    fn upcoming(&mut self, spec: &WaitSpec) -> UpcomingTrial {
        self.rows.next(wait_label(spec))
    }

    fn run(
        &mut self,
        spec: &WaitSpec,
        _: &mut dyn IntervalWatcher,
        stop: &AtomicBool,
    ) -> Result<TrialOutput<WaitTrial>, RunError> {
        let waits = throttle::wait(spec, stop)?;
        let interrupted = waits.interrupted;
        let spec = spec.clone();
        let trial = WaitTrial { spec, waits };
        self.trials.push(trial.clone());
        Ok(TrialOutput { trial, interrupted, backend: String::new() })
    }

    fn report(_: &WaitTrial) -> Option<&TrialReport> {
        None
    }
}

/// Holds rates.
#[derive(Debug)]
pub struct HoldRunner {
    rows: Rows,
}

impl HoldRunner {
    /// For these rows.
    pub fn new(rows: &[HoldSpec]) -> HoldRunner {
        HoldRunner { rows: Rows::of(rows.iter().map(|row| row.duration).collect()) }
    }

    /// How long all rows take.
    pub fn total(&self) -> Nanos {
        self.rows.total()
    }
}

impl<X: Experiment<Spec = HoldSpec, Trial = HoldTrial>> TrialRunner<X> for HoldRunner {
    fn upcoming(&mut self, spec: &HoldSpec) -> UpcomingTrial {
        self.rows.next(spec.method.name().to_owned())
    }

    fn run(
        &mut self,
        spec: &HoldSpec,
        _: &mut dyn IntervalWatcher,
        stop: &AtomicBool,
    ) -> Result<TrialOutput<HoldTrial>, RunError> {
        let holds = throttle::hold(spec, stop)?;
        let interrupted = holds.interrupted;
        let spec = spec.clone();
        let trial = HoldTrial { spec, holds };
        Ok(TrialOutput { trial, interrupted, backend: String::new() })
    }

    fn report(_: &HoldTrial) -> Option<&TrialReport> {
        None
    }
}
