//! Runs all tests. None depends on its speed, so that several run at a time.

use crate::repo::{self, LINTED, TestProgram, cargo};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

/// The tests of whole programs.
const END_TO_END: &str = "end_to_end";

/// Modules of them whose tests take a minute or more. They run beside all others from the start:
/// in their order nothing else would be left to do while the last of them runs.
const LONG: &[&str] = &["python::", "tours::", "tutorial::"];

/// Tests that compute and wait for nothing. They use the processors while no other test does.
const COMPUTING: &[&str] = &["knee_core", "knee_load", "knee_scenario", "simulated_servers"];

/// Runs a command only while a processor is idle (SCHED_IDLE, see sched(7)).
const WHILE_IDLE: [&str; 3] = ["chrt", "--idle", "0"];

/// In the name of each example of the documentation, and of no other test.
const EXAMPLES: &str = " - ";

/// Runs them all.
///
/// # Errors
/// Which of them failed.
pub fn run() -> Result<(), String> {
    let built = repo::built_tests(&["--workspace"], LINTED)?;
    let (computing, others): (Vec<_>, Vec<_>) =
        built.iter().partition(|tests| COMPUTING.contains(&&*tests.name));
    let (end_to_end, others): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|tests| tests.name == END_TO_END);
    let processors = thread::available_parallelism().map_or(1, usize::from);
    // Most tests wait most of the time.
    let at_a_time = 2 * processors;
    let skipped: Vec<&str> = LONG.iter().flat_map(|module| ["--skip", module]).collect();
    let while_idle = while_idle();
    let failed = Failures::default();
    thread::scope(|scope| {
        scope.spawn(|| {
            for tests in computing {
                failed.add(start(&while_idle, tests, &[], processors));
            }
        });
        thread::scope(|scope| {
            scope.spawn(|| {
                end_to_end.iter().for_each(|tests| failed.add(start(&[], tests, LONG, 1)))
            });
            for tests in &end_to_end {
                failed.add(start(&[], tests, &skipped, at_a_time));
            }
        });
        for tests in others {
            failed.add(start(&[], tests, &[], at_a_time));
        }
    });
    // Examples in the documentation are tests too. With --doc alone cargo would build all crates
    // again, with fewer of their features.
    failed.add(cargo(&["test", "--workspace", "--quiet", "--", EXAMPLES], LINTED));
    failed.result()
}

/// What failed, noted by several threads.
#[derive(Default)]
struct Failures(Mutex<Vec<String>>);

impl Failures {
    fn add(&self, outcome: Result<(), String>) {
        if let Err(why) = outcome {
            self.0.lock().expect("nothing panics while it notes a line").push(why);
        }
    }

    fn result(self) -> Result<(), String> {
        let all = self.0.into_inner().expect("nothing panics while it notes a line");
        if all.is_empty() { Ok(()) } else { Err(all.join("\n")) }
    }
}

/// The words before a command that is to run while a processor is idle; none where that cannot be.
fn while_idle() -> Vec<&'static str> {
    let [program, args @ ..] = WHILE_IDLE;
    let tried = Command::new(program).args(args).arg("true").stderr(Stdio::null()).status();
    if tried.is_ok_and(|status| status.success()) { WHILE_IDLE.to_vec() } else { Vec::new() }
}

/// Runs a test program by the words `by` with `at_a_time` tests at a time, unless the environment
/// says how many.
fn start(by: &[&str], tests: &TestProgram, args: &[&str], at_a_time: usize) -> Result<(), String> {
    const THREADS: &str = "RUST_TEST_THREADS";
    let threads = std::env::var(THREADS).unwrap_or_else(|_| at_a_time.to_string());
    println!("{} {}", tests.name, args.join(" "));
    let program = tests.program.to_string_lossy();
    let mut words = by.iter().copied().chain([&*program]);
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).args(args).current_dir(&tests.folder).env(THREADS, threads);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{} {}: {status}", tests.name, args.join(" "))),
        Err(e) => Err(format!("{}: {e}", tests.name)),
    }
}
