//! Where waits and rates are measured: this machine.

use crate::args::Output;
use crate::command::laboratory::{Made, Stand};
use crate::command::progress::RowProgress;
use knee_core::experiment::Experiment;
use knee_core::measure::{HoldTrial, WaitTrial};
use knee_core::report::TrialReport;
use knee_core::spec::{Chore, HoldSpec, WaitMethod, WaitSpec};
use knee_core::time::Nanos;
use knee_engine::{RunError, throttle};
use std::sync::atomic::AtomicBool;

/// Measures waits.
#[derive(Debug)]
pub struct WaitStand {
    progress: RowProgress,
    /// The fewest waits with the work that rows have, where they have any.
    probe: Option<WaitSpec>,
    trials: Vec<WaitTrial>,
}

impl WaitStand {
    /// For these rows.
    pub fn new(rows: &[WaitSpec]) -> WaitStand {
        let times: Vec<Nanos> = rows.iter().map(wait_time).collect();
        let with_work = rows.iter().find(|row| row.chore != Chore::None);
        WaitStand {
            progress: RowProgress::of(&times),
            probe: with_work.map(probe),
            trials: Vec::new(),
        }
    }

    /// How long all rows take.
    pub fn total(&self) -> Nanos {
        self.progress.total()
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

impl<X: Experiment<Spec = WaitSpec, Trial = WaitTrial>> Stand<X> for WaitStand {
    /// The first row has no work: that nobody is there to do it should not come out only after it.
    fn prepare(&mut self) -> Result<(), RunError> {
        match self.probe.take() {
            Some(probe) => throttle::wait(&probe, &AtomicBool::new(false)).map(drop),
            None => Ok(()),
        }
    }

    fn run(
        &mut self,
        spec: &WaitSpec,
        output: &Output,
        stop: &AtomicBool,
    ) -> Result<Made<WaitTrial>, RunError> {
        self.progress.begin(&wait_label(spec), output);
        let waits = throttle::wait(spec, stop);
        self.progress.end(wait_time(spec), output);
        let waits = waits?;
        let interrupted = waits.interrupted;
        let spec = spec.clone();
        let trial = WaitTrial { spec, waits };
        self.trials.push(trial.clone());
        Ok(Made { trial, interrupted })
    }

    fn line(&self, _: usize, _: &WaitTrial) -> Option<String> {
        None
    }

    fn counts(trial: &WaitTrial) -> (u64, u64) {
        (trial.waits.samples, trial.waits.samples)
    }

    fn listed(_: Vec<WaitTrial>) -> Vec<TrialReport> {
        Vec::new()
    }

    fn backend(&self) -> String {
        String::new()
    }
}

/// Holds rates.
#[derive(Debug)]
pub struct HoldStand {
    progress: RowProgress,
}

impl HoldStand {
    /// For these rows.
    pub fn new(rows: &[HoldSpec]) -> HoldStand {
        let times: Vec<Nanos> = rows.iter().map(|row| row.duration).collect();
        HoldStand {
            progress: RowProgress::of(&times),
        }
    }

    /// How long all rows take.
    pub fn total(&self) -> Nanos {
        self.progress.total()
    }
}

impl<X: Experiment<Spec = HoldSpec, Trial = HoldTrial>> Stand<X> for HoldStand {
    fn prepare(&mut self) -> Result<(), RunError> {
        Ok(())
    }

    fn run(
        &mut self,
        spec: &HoldSpec,
        output: &Output,
        stop: &AtomicBool,
    ) -> Result<Made<HoldTrial>, RunError> {
        self.progress.begin(spec.method.name(), output);
        let holds = throttle::hold(spec, stop);
        self.progress.end(spec.duration, output);
        let holds = holds?;
        let interrupted = holds.interrupted;
        let spec = spec.clone();
        let trial = HoldTrial { spec, holds };
        Ok(Made { trial, interrupted })
    }

    fn line(&self, _: usize, _: &HoldTrial) -> Option<String> {
        None
    }

    fn counts(trial: &HoldTrial) -> (u64, u64) {
        (trial.holds.operations, trial.holds.operations)
    }

    fn listed(_: Vec<HoldTrial>) -> Vec<TrialReport> {
        Vec::new()
    }

    fn backend(&self) -> String {
        String::new()
    }
}
