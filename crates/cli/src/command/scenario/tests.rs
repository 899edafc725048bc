//! What a scenario file says of the load, and that the command line wins over it.

use crate::command::raw::RawCommand;
use crate::command::tests::refused::refusal;
use crate::command::tests::{MACHINE, parse};
use knee_load::spec::{ArrivalLaw, Load, OpenLoad, TrialSpec};
use knee_load::time::Nanos;
use std::path::PathBuf;

/// A scenario file that goes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, rest: &str) -> Scratch {
        let name = format!("knee-of-scenario-{}-{name}.yaml", std::process::id());
        let path = std::env::temp_dir().join(name);
        let text = format!(
            "target: http://127.0.0.1:81\ndefaults: {{timeout: 3s}}\n\
             sessions: {{s: {{steps: [{{get: /a, name: first}}, {{get: /b}}]}}}}\n{rest}"
        );
        std::fs::write(&path, text).unwrap();
        Scratch(path)
    }

    fn arguments(&self, command: &str, rest: &str) -> String {
        format!("{command} {} {rest}", self.0.display())
    }

    fn trial(&self, rest: &str) -> TrialSpec {
        match parse(&self.arguments("run", rest)) {
            Ok(RawCommand::Run(raw)) => raw.resolve(&MACHINE).expect(rest).trial,
            other => panic!("{rest}: {other:?}"),
        }
    }

    /// What of the file's load a sweep does not use, and the load of its first level.
    fn sweep(&self, rest: &str) -> (Option<String>, Load) {
        match parse(&self.arguments("sweep", rest)) {
            Ok(RawCommand::Sweep(raw)) => {
                let sweep = raw.resolve(&MACHINE).expect(rest);
                (sweep.unused, sweep.spec.base.load)
            }
            other => panic!("{rest}: {other:?}"),
        }
    }

    /// The same of an overload.
    fn overload(&self, rest: &str) -> (Option<String>, Load) {
        match parse(&self.arguments("overload", rest)) {
            Ok(RawCommand::Overload(raw)) => {
                let overload = raw.resolve(&MACHINE).expect(rest);
                (overload.unused, overload.spec.base.load)
            }
            other => panic!("{rest}: {other:?}"),
        }
    }

    fn refused(&self, command: &str, rest: &str) -> String {
        refusal(&self.arguments(command, rest))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn open(trial: &TrialSpec) -> &OpenLoad {
    match &trial.load {
        Load::Open(load) => load,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_file_says_what_the_command_line_does_not() {
    let file = Scratch::new("load", "load: {rate: 20/s, arrival: poisson, duration: 4s}\n");
    let trial = file.trial("");
    assert_eq!(open(&trial).rate.per_s(), 20.0);
    assert_eq!(open(&trial).arrival, ArrivalLaw::Poisson);
    assert_eq!(trial.duration, Nanos::from_secs(4));
    assert_eq!(trial.timeout, Nanos::from_secs(3));
    let sessions = trial.target.sessions.expect("a plan");
    assert_eq!(sessions.requests.len(), trial.target.requests.len());
    assert_eq!(trial.target.endpoint.to_string(), "127.0.0.1:81");
}

#[test]
fn the_command_line_wins() {
    let file = Scratch::new("wins", "load: {rate: 20/s, arrival: poisson}\n");
    let trial = file.trial("--rate 5 -d 2s --timeout 10s --unix-socket /s -H X-A:b");
    assert_eq!(open(&trial).rate.per_s(), 5.0);
    assert_eq!(open(&trial).arrival, ArrivalLaw::Poisson);
    assert_eq!((trial.duration, trial.timeout), (Nanos::from_secs(2), Nanos::from_secs(10)));
    assert_eq!(trial.target.endpoint.to_string(), "unix:/s");
    assert!(trial.target.requests.iter().all(|request| request.has_header("x-a")));
    let trial = file.trial("--arrival uniform");
    assert_eq!(open(&trial).rate.per_s(), 20.0);
    assert_eq!(open(&trial).arrival, ArrivalLaw::Uniform);
    assert!(matches!(file.trial("--vusers 3").load, Load::Closed { vusers: 3, .. }));
    let users = Scratch::new("users", "load: {vusers: 7}\n");
    assert!(matches!(users.trial("").load, Load::Closed { vusers: 7, .. }));
    assert_eq!(open(&users.trial("-R 1")).rate.per_s(), 1.0);
}

#[test]
fn what_a_load_of_its_own_does_not_use_is_told() {
    let stages = "stages: [{ramp: 0 -> 10/s, for: 4s}], arrival: poisson, warmup: 1s";
    let file = Scratch::new("unused", &format!("load: {{{stages}}}\n"));
    let ends = |(unused, load): (Option<String>, Load), words: &str| {
        let line = unused.expect(words);
        assert!(line.ends_with(words), "{line}");
        load
    };
    let of_users = ends(
        file.sweep(""),
        "a sweep sets its own load and ignores these keys of 'load': arrival, stages, warmup",
    );
    assert!(matches!(of_users, Load::Closed { .. }));
    let of_rates = ends(file.sweep("--axis rate"), ": stages, warmup");
    assert_eq!(of_rates.schedule().unwrap().1, &ArrivalLaw::Poisson);
    let own = ends(file.sweep("--axis rate --arrival uniform"), ": stages, warmup");
    assert_eq!(own.schedule().unwrap().1, &ArrivalLaw::Uniform);
    ends(file.overload("--descriptors 64"), ": arrival, stages, warmup");
    let scheduled = ends(file.overload("--rate 100"), ": stages, warmup");
    assert_eq!(scheduled.schedule().unwrap().1, &ArrivalLaw::Poisson);
    let ramp = Scratch::new("ramp", "load: {arrival: 'ramp(1,5)'}\n");
    ends(ramp.sweep("--axis rate"), ": arrival");
    let poisson = Scratch::new("poisson", "load: {rate: 9/s, arrival: poisson}\n");
    ends(poisson.sweep("--axis rate"), ": rate");
    let none = Scratch::new("none", "");
    assert_eq!((none.sweep("").0, none.overload("").0), (None, None));
}

#[test]
fn stages_are_moments_and_a_length() {
    let stages = "load: {stages: [{ramp: 0 -> 10/s, for: 4s}, {hold: 6s}]}\n";
    let file = Scratch::new("stages", stages);
    let trial = file.trial("--seed 1");
    assert_eq!(trial.duration, Nanos::from_secs(10));
    let ArrivalLaw::Trace(moments) = &open(&trial).arrival else {
        panic!("{:?}", trial.load);
    };
    assert_eq!(moments.len(), 80);
    assert_eq!(file.trial("--seed 1").load, trial.load);
    assert_eq!(file.trial("--warmup 4s").duration, Nanos::from_secs(6));
    assert_eq!(open(&file.trial("--rate 3")).rate.per_s(), 3.0);
}

#[test]
fn what_makes_no_sense_with_a_scenario_is_refused() {
    let file = Scratch::new(
        "refused",
        "fail_if: [first p99>1s]\nload: {stages: [{hold: 9/s, for: 1s}]}\n",
    );
    for (command, rest, want) in [
        ("run", "--method GET", "--method: each step of a scenario has its own"),
        ("run", "-b x", "--body: each step of a scenario has its own"),
        ("run", "-T a/b", "--content-type: each step of a scenario has its own"),
        ("run", "--pick random", "--pick: each step of a scenario has its own"),
        ("run", "-H Cookie:a", "--header: a session has cookies of its own"),
        ("run", "--cacert x", "--cacert: is of TLS"),
        ("run", "-d 5s", "--arrival and --duration: the scenario has stages"),
        ("run", "--warmup 1s", "--warmup: as long as all stages"),
        ("overload", "--method POST", "--method: each step of a scenario has its own"),
    ] {
        let line = file.refused(command, rest);
        assert!(line.starts_with(want), "{rest}: {line}");
    }
    let line = refusal("run missing-of-scenario.yaml");
    assert!(line.starts_with("missing-of-scenario.yaml: cannot be read"), "{line}");
}
