//! `knee compare --live`: two targets under the same load, in turns.

use super::compare::RawCompare;
use super::http_runner::HttpRunner;
use super::laboratory::{TrialOutput, TrialRunner, ended_by_signal};
use super::raw::{RawArgs, RawCommand};
use super::run::RunSpec;
use crate::failure::Failure;
use crate::machine::Machine;
use crate::stdio::Notes;
use crate::usage::first_line;
use crate::watch::Unwatched;
use crate::{machine, margins};
use clap::Command;
use knee_core::compare::report::Comparison;
use knee_core::compare::{LiveSide, compare_live, is_b_first, is_known};
use knee_engine::interrupt;
use knee_load::rng;
use knee_load::time::Nanos;
use std::ffi::{OsStr, OsString};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// A slice is no shorter.
const SLICE_MIN: Nanos = Nanos::from_millis(500);
/// Each slice begins with this, as connections are opened anew.
const WARMUP: &str = "100ms";

/// Puts the options of `knee run` in a live comparison where the command line keeps them. An option
/// of `knee compare` stays, a word without `-` is a URL. All other commands are left as they are.
pub fn load_apart(knee: &Command, argv: Vec<OsString>) -> Vec<OsString> {
    let is_live = argv.get(1).is_some_and(|word| word == "compare")
        && argv.iter().any(|word| word == "--live");
    let commands = knee.find_subcommand("compare").zip(knee.find_subcommand("run"));
    let Some((compare, run)) = commands.filter(|_| is_live) else {
        return argv;
    };
    let mut sorted = argv[..2].to_vec();
    let mut words = argv[2..].iter();
    while let Some(word) = words.next() {
        let text = word.to_str().unwrap_or_default();
        if !text.starts_with('-') || text.starts_with("--load-word=") {
            sorted.push(word.clone());
            continue;
        }
        let own = option(compare, text);
        let option = own.or_else(|| option(run, text));
        let takes = option.is_some_and(|o| o.get_action().takes_values());
        let value = words.as_slice().first().filter(|_| takes && !has_value(text));
        let of_option = std::iter::once(word).chain(value);
        if own.is_some() {
            sorted.extend(of_option.cloned());
        } else {
            sorted.extend(of_option.map(|word| load_word(word)));
        }
        if value.is_some() {
            words.next();
        }
    }
    sorted
}

fn load_word(word: &OsStr) -> OsString {
    let mut kept = OsString::from("--load-word=");
    kept.push(word);
    kept
}

/// Whether the word has its option's value: `--rate=5`, `-c5`.
fn has_value(word: &str) -> bool {
    if word.starts_with("--") { word.contains('=') } else { word.chars().count() > 2 }
}

fn option<'a>(command: &'a Command, word: &str) -> Option<&'a clap::Arg> {
    let long = word.strip_prefix("--").map(|w| w.split('=').next().unwrap_or(w));
    let short = word.chars().nth(1).filter(|_| long.is_none());
    command.get_arguments().find(|o| match long {
        Some(long) => o.get_long() == Some(long),
        None => short.is_some() && o.get_short() == short,
    })
}

/// Measures both targets in rounds and compares them.
pub fn compare_targets(raw: &RawCompare) -> Result<Comparison, Failure> {
    let [url_a, url_b] = raw.targets()?;
    let mut sides = [LiveTarget::new(url_a, raw)?, LiveTarget::new(url_b, raw)?];
    for side in &mut sides {
        side.runner.find()?;
    }
    let stop = interrupt::heed();
    let measured = measure(&mut sides, Duration::from_nanos(raw.budget.0), stop);
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
        Notes { quiet: false }.tell(&format!("ended early, after {rounds} rounds"));
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
    fn new(url: &str, raw: &RawCompare) -> Result<LiveTarget, Failure> {
        let words = raw.load_words.iter().map(String::as_str);
        let is_given = |option: &str| words.clone().any(|word| word.starts_with(option));
        let mut length = Vec::new();
        if !is_given("-d") && !is_given("--duration") {
            length.extend(["--duration", "500ms"]);
        }
        if !is_given("--warmup") {
            length.extend(["--warmup", WARMUP]);
        }
        let argv = ["knee", "run", url].into_iter().chain(words.clone());
        let read = RawArgs::read(argv.chain(length));
        let read = read.map_err(|e| Failure::input(first_line(&e)))?;
        let RawCommand::Run(run) = read.command else {
            return Err(Failure::input("expected options of knee run"));
        };
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
            Notes { quiet: false }.tell(&self.spec.hidden(&e.to_string()));
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn options_of_a_run_are_kept_apart() {
        for (typed, read) in [
            (
                "knee compare --live http://a/ http://b/ -c 20 --json x.json",
                "knee compare --live http://a/ http://b/ --load-word=-c --load-word=20 \
                 --json x.json",
            ),
            (
                "knee compare --rate=100 --budget 5s --live http://a/ http://b/",
                "knee compare --load-word=--rate=100 --budget 5s --live http://a/ http://b/",
            ),
            ("knee compare a.json b.json -c 20", "knee compare a.json b.json -c 20"),
            ("knee run --live -c 20", "knee run --live -c 20"),
        ] {
            let argv = typed.split(' ').map(OsString::from).collect();
            let sorted = load_apart(&RawArgs::command(), argv);
            let words: Vec<&str> = sorted.iter().filter_map(|w| w.to_str()).collect();
            assert_eq!(words.join(" "), read);
        }
    }
}
