//! Runs trials against an HTTP server: the stand of `run` and `sweep`.

use super::laboratory::{Made, Stand};
use super::progress;
use crate::args::ObserveArgs;
use crate::watch::{LiveKind, Upcoming};
use knee_core::experiment::Experiment;
use knee_core::measure::IntervalWatcher;
use knee_core::spec::{HttpTarget, HttpVersion, Level, TrialSpec};
use knee_core::time::Nanos;
use knee_core::trial::assess::assess;
use knee_core::trial::report::TrialReport;
use knee_core::trial::sessions::SessionNames;
use knee_core::trial::slice::Slice;
use knee_engine::error::RunError;
use knee_engine::observe::Vantage;
use knee_fleet::Fleet;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// An HTTP target, and what carried the traffic to it.
#[derive(Debug)]
pub struct HttpStand {
    /// What every trial is sent to.
    target: HttpTarget,
    /// How long the first connect may take.
    connect_timeout: Nanos,
    /// Whether each trial is told of as it ends.
    tells_levels: bool,
    /// Trials are slices of an experiment in rounds, which began then.
    slices: Option<Slices>,
    backend: String,
    observe: ObserveArgs,
    makers: Makers,
}

/// The clock of an experiment in rounds; it begins with the first trial.
#[derive(Debug, Default)]
struct Slices(Option<Instant>);

impl Slices {
    /// Time of the experiment.
    fn now(&mut self) -> Duration {
        self.0.get_or_insert_with(Instant::now).elapsed()
    }
}

/// Who makes the trials.
#[derive(Debug)]
enum Makers {
    /// This process, with the place where the server is watched from, once that is prepared and
    /// where somebody asked.
    Here(Option<Box<Vantage>>),
    /// Agents, watched likewise.
    Fleet(Box<Fleet>, Option<Box<Vantage>>),
}

impl HttpStand {
    /// A stand in front of the target of these trials. `tells_levels`: a line for each as it ends.
    pub fn new(spec: &TrialSpec, tells_levels: bool, observe: ObserveArgs) -> HttpStand {
        HttpStand {
            target: spec.target.clone(),
            connect_timeout: spec.connect_timeout,
            tells_levels,
            slices: None,
            backend: String::new(),
            observe,
            makers: Makers::Here(None),
        }
    }

    /// Makes each trial a slice, from which trials of several slices can be made.
    pub fn in_slices(mut self) -> HttpStand {
        self.slices = Some(Slices::default());
        self
    }

    /// Watches the server from there in each trial to come.
    pub fn watch_from(&mut self, from: Option<Vantage>) {
        match &mut self.makers {
            Makers::Here(vantage) | Makers::Fleet(_, vantage) => *vantage = from.map(Box::new),
        }
    }

    /// Has the trials made by a fleet, where there is one.
    pub fn made_by(mut self, fleet: Option<Fleet>) -> HttpStand {
        if let Some(fleet) = fleet {
            self.makers = Makers::Fleet(Box::new(fleet), None);
        }
        self
    }
}

impl<X: Experiment<Spec = TrialSpec, Trial = TrialReport>> Stand<X> for HttpStand {
    fn prepare(&mut self) -> Result<(), RunError> {
        let address = match &self.makers {
            Makers::Here(_) => knee_engine::preflight(&self.target, self.connect_timeout)?.0,
            // Whether it can be reached from here says nothing of the agents.
            Makers::Fleet(fleet, _) => fleet.greet(&self.target, self.connect_timeout)?.address,
        };
        self.watch_from(self.observe.vantage(&address)?);
        Ok(())
    }

    fn upcoming(&mut self, spec: &TrialSpec) -> Upcoming {
        upcoming(spec)
    }

    fn run(
        &mut self,
        spec: &TrialSpec,
        watch: &mut dyn IntervalWatcher,
        stop: &AtomicBool,
    ) -> Result<Made<TrialReport>, RunError> {
        if let Some(slices) = &mut self.slices {
            slices.now();
        }
        let trial = match &mut self.makers {
            Makers::Here(vantage) => {
                knee_engine::run_observed(spec, watch, stop, vantage.as_deref_mut())?
            }
            Makers::Fleet(fleet, vantage) => {
                fleet.run(spec, vantage.as_deref_mut(), watch, stop)?
            }
        };
        self.backend.clone_from(&trial.generator.backend);
        let mut report = assess(&trial);
        if let Some(slices) = &mut self.slices {
            let end = Nanos(slices.now().as_nanos() as u64);
            let begin = end - trial.measurement.window.length();
            report.set_slice(Some(Slice::of(&trial, begin)));
        }
        Ok(Made {
            trial: report,
            interrupted: trial.interrupted,
        })
    }

    fn line(&self, number: usize, trial: &TrialReport) -> Option<String> {
        self.tells_levels
            .then(|| progress::level_line(number, trial))
    }

    fn report(trial: &TrialReport) -> Option<&TrialReport> {
        Some(trial)
    }

    fn backend(&self) -> String {
        self.backend.clone()
    }
}

/// The same target with its version of HTTP settled: where that is the server's choice, the server
/// is asked.
///
/// # Errors
/// It does not answer, or not as it should.
pub(super) fn settle(
    target: HttpTarget,
    connect_timeout: Nanos,
    fleet: Option<&Fleet>,
) -> Result<HttpTarget, RunError> {
    let version = match (target.version(), fleet) {
        (HttpVersion::Auto, None) => knee_engine::preflight(&target, connect_timeout)?.1.version,
        (HttpVersion::Auto, Some(fleet)) => fleet.greet(&target, connect_timeout)?.version,
        (version, _) => version,
    };
    Ok(HttpTarget { version, ..target })
}

/// What is known of an HTTP trial before it begins.
pub fn upcoming(spec: &TrialSpec) -> Upcoming {
    let is_timed = spec.operations_max.is_none();
    Upcoming {
        label: spec.label.clone(),
        level: Some(spec.level),
        kind: LiveKind::Operations,
        warmup: spec.warmup,
        total: is_timed.then(|| spec.window_end()),
        interval: spec.interval,
        asked_per_s: spec.load.schedule().map(|(rate, _)| rate.per_s()),
        names: SessionNames::of(&spec.target),
    }
}

/// A trial's name for people: `vusers=10`, `rate=1000/s`.
pub fn label(level: Level) -> String {
    match level {
        Level::Vusers(n) => format!("vusers={n}"),
        Level::RatePerS(rate) => format!("rate={rate}/s"),
        Level::Clients(n) => format!("clients={n}"),
        Level::Descriptors(n) => format!("descriptors={n}"),
        Level::Flows { up, down } => format!("{up} up, {down} down"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_names() {
        assert_eq!(label(Level::Vusers(10)), "vusers=10");
        assert_eq!(label(Level::RatePerS(1.5)), "rate=1.5/s");
    }
}
