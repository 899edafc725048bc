//! `knee compare --live`: two targets under the same load, in turns.

use super::http_runner::HttpRunner;
use super::laboratory::{TrialOutput, TrialRunner, ended_by_signal};
use super::run::{RawRun, RunSpec};
use crate::failure::Failure;
use crate::machine::Machine;
use crate::stdio::Notes;
use crate::watch::Unwatched;
use crate::{machine, margins};
use knee_core::compare::report::Comparison;
use knee_core::compare::{LiveSide, compare_live, is_b_first, is_known};
use knee_engine::interrupt;
use knee_load::rng;
use knee_load::time::Nanos;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// A slice is no shorter.
const SLICE_MIN: Nanos = Nanos::from_millis(500);
/// Each slice begins with this, as connections are opened anew.
const WARMUP: &str = "100ms";

/// Reads a command line of `knee run`.
pub type ReadRun = fn(Vec<&str>) -> Result<Box<RawRun>, Failure>;

/// Measures both targets in rounds, under the load of these `options` of `knee run`, and compares
/// them.
pub fn compare_targets(
    [url_a, url_b]: [&str; 2],
    options: &[String],
    budget: Nanos,
    read_run: ReadRun,
) -> Result<Comparison, Failure> {
    let target = |url| LiveTarget::new(url, options, read_run);
    let mut sides = [target(url_a)?, target(url_b)?];
    for side in &mut sides {
        side.runner.find()?;
    }
    let stop = interrupt::catch();
    let measured = measure(&mut sides, Duration::from_nanos(budget.0), stop);
    sides.iter_mut().for_each(|side| side.tear_down(stop));
    measured?;
    finish(sides)
}

/// Measures rounds until the difference is known, the time is spent or the user ends it.
fn measure(
    sides: &mut [LiveTarget; 2],
    budget: Duration,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    for side in sides.iter_mut() {
        side.set_up(stop)?;
    }
    let begin = Instant::now();
    for round in 0.. {
        let round_begin = Instant::now();
        let first = usize::from(is_b_first(sides[0].spec.trial.seed, round));
        for number in [first, 1 - first] {
            if !sides[number].slice(round, stop)? {
                return Ok(());
            }
        }
        let [a, b] = &*sides;
        let is_spent = begin.elapsed() + round_begin.elapsed() > budget;
        if is_spent || is_known(&a.live.slices, &b.live.slices) {
            break;
        }
    }
    Ok(())
}

fn finish([mut a, mut b]: [LiveTarget; 2]) -> Result<Comparison, Failure> {
    // Of a round that was cut short nothing counts.
    let rounds = a.live.slices.len().min(b.live.slices.len());
    a.live.slices.truncate(rounds);
    b.live.slices.truncate(rounds);
    if ended_by_signal().is_some() {
        Notes { quiet: false }.say(&format!("ended early, after {rounds} rounds"));
    }
    compare_live(&a.live, &b.live, env!("CARGO_PKG_VERSION")).map_err(Failure::nothing_measured)
}

/// A target and what runs its trials.
struct LiveTarget {
    spec: RunSpec,
    runner: HttpRunner,
    /// Whether its server answers and the steps before the load are done.
    is_set_up: bool,
    live: LiveSide,
}

impl LiveTarget {
    fn new(url: &str, options: &[String], read_run: ReadRun) -> Result<LiveTarget, Failure> {
        let words = options.iter().map(String::as_str);
        let is_given = |option: &str| words.clone().any(|word| word.starts_with(option));
        let mut length = Vec::new();
        if !is_given("-d") && !is_given("--duration") {
            length.extend(["--duration", "500ms"]);
        }
        if !is_given("--warmup") {
            length.extend(["--warmup", WARMUP]);
        }
        let argv = ["knee", "run", url].into_iter().chain(words.clone());
        let run = read_run(argv.chain(length).collect())?;
        let mut spec = run.resolve(&Machine::this())?;
        if spec.trial.operations_max.is_some() {
            return Err(Failure::argument("-n", "a slice has a duration: give -d"));
        }
        if spec.trial.duration < SLICE_MIN {
            return Err(Failure::argument("--duration", "expected at least 500ms"));
        }
        let runner = spec.runner(false);
        spec.trial.engine.margins = margins::of_this_machine(Notes { quiet: true });
        let live =
            LiveSide { target: spec.hidden(url), started_at: machine::now(), slices: Vec::new() };
        Ok(LiveTarget { spec, runner, is_set_up: false, live })
    }

    fn set_up(&mut self, stop: &AtomicBool) -> Result<(), Failure> {
        self.runner.set_up(stop)?;
        self.is_set_up = true;
        Ok(())
    }

    /// Does the steps after the load; one that fails costs a line, not the comparison.
    fn tear_down(&mut self, stop: &AtomicBool) {
        if self.is_set_up
            && let Err(e) = self.runner.tear_down(stop)
        {
            Notes { quiet: false }.say(&self.spec.hidden(&e.to_string()));
        }
    }

    /// Measures a slice; `false` where the user ended it.
    fn slice(&mut self, round: usize, stop: &AtomicBool) -> Result<bool, Failure> {
        let mut trial = self.spec.trial.clone();
        trial.seed = rng::of_trial(trial.seed, round);
        let output = self.runner.run(&trial, &mut Unwatched, stop)?;
        let TrialOutput { trial, interrupted, .. } = output;
        self.live.slices.push(trial);
        if interrupted {
            self.live.slices.pop();
        }
        Ok(!interrupted)
    }
}
