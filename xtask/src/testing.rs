//! Runs all tests. None depends on its speed, so that several run at a time.

use crate::repo::{self, LINTED, TestProgram, cargo};
use std::fmt::Display;
use std::io::{BufRead, BufReader};
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

/// The environment variable of how many tests run at a time.
const THREADS: &str = "RUST_TEST_THREADS";

/// Tests of whole programs that may fail beside others and pass alone. More are no accident.
const UNSTEADY_MAX: usize = 3;

/// In the name of each example of the documentation, and of no other test.
const EXAMPLES: &str = " - ";

/// Runs them all.
///
/// # Errors
/// Which of them failed.
pub fn run() -> Result<(), String> {
    let built = repo::built_tests(&["--workspace", "--all-features"], LINTED)?;
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
    failed
        .add(cargo(&["test", "--workspace", "--all-features", "--quiet", "--", EXAMPLES], LINTED));
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
        let lines = self.0.into_inner().expect("nothing panics while it notes a line");
        if lines.is_empty() { Ok(()) } else { Err(lines.join("\n")) }
    }
}

/// The words before a command that is to run while a processor is idle; none where that cannot be.
fn while_idle() -> Vec<&'static str> {
    let [program, args @ ..] = WHILE_IDLE;
    let tried = Command::new(program).args(args).arg("true").stderr(Stdio::null()).status();
    if tried.is_ok_and(|status| status.success()) { WHILE_IDLE.to_vec() } else { Vec::new() }
}

/// Runs a test program by the words `by` with `at_a_time` tests at a time, unless the environment
/// says how many. Tests of whole programs that fail run once more, alone and one after another:
/// what passes then is named, and does not fail the run.
fn start(by: &[&str], tests: &TestProgram, args: &[&str], at_a_time: usize) -> Result<(), String> {
    let threads = std::env::var(THREADS).unwrap_or_else(|_| at_a_time.to_string());
    println!("{} {}", tests.name, args.join(" "));
    let failed = attempt(by, tests, args, &threads)?;
    let is_of_whole_programs = tests.name == END_TO_END;
    for name in &failed {
        let again = if is_of_whole_programs && failed.len() <= UNSTEADY_MAX {
            println!("{name} runs once more, alone");
            attempt(by, tests, &["--exact", name], "1")?
        } else {
            vec![name.clone()]
        };
        if !again.is_empty() {
            return Err(format!("{} {}: {}", tests.name, args.join(" "), failed.join(", ")));
        }
        println!("unsteady: {name} failed beside other tests, and passed alone");
    }
    Ok(())
}

/// Runs a test program once, and prints what it prints.
///
/// Returns the names of the tests that failed.
///
/// # Errors
/// It could not be started, or failed without naming a test.
fn attempt(
    by: &[&str],
    tests: &TestProgram,
    args: &[&str],
    threads: &str,
) -> Result<Vec<String>, String> {
    let program = tests.program.to_string_lossy();
    let mut words = by.iter().copied().chain([&*program]);
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).args(args).current_dir(&tests.folder).env(THREADS, threads);
    let failure = |why: &dyn Display| format!("{} {}: {why}", tests.name, args.join(" "));
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|e| failure(&e))?;
    let mut failed = Vec::new();
    let printed = child.stdout.take().expect("it is piped");
    for line in BufReader::new(printed).split(b'\n') {
        let line = line.map_err(|e| failure(&e))?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        let name = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"));
        failed.extend(name.map(String::from));
    }
    let status = child.wait().map_err(|e| failure(&e))?;
    if status.success() || !failed.is_empty() { Ok(failed) } else { Err(failure(&status)) }
}
