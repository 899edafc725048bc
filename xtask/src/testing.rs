//! Runs all tests. None depends on its speed, so that several run at a time.

use crate::repo::{self, LINTED, TestProgram, cargo};
use std::process::Command;
use std::thread;

/// The tests of whole programs.
const END_TO_END: &str = "end_to_end";

/// Modules of them whose tests take a minute or more. They run beside all others from the start:
/// in their order nothing else would be left to do while the last of them runs.
const LONG: &[&str] = &["python::", "tours::", "tutorial::"];

/// In the name of each example of the documentation, and of no other test.
const EXAMPLES: &str = " - ";

/// Runs them all.
///
/// # Errors
/// Which of them failed.
pub fn run() -> Result<(), String> {
    let built = repo::built_tests(&["--workspace"], LINTED)?;
    // Most tests wait most of the time.
    let at_a_time = 2 * thread::available_parallelism().map_or(1, usize::from);
    let skipped: Vec<&str> = LONG.iter().flat_map(|module| ["--skip", module]).collect();
    let mut failed = Vec::new();
    for tests in &built {
        if tests.name == END_TO_END {
            thread::scope(|scope| {
                let long = scope.spawn(|| start(tests, LONG, 1));
                failed.extend(start(tests, &skipped, at_a_time).err());
                failed.extend(long.join().map_or(Some("the long tests".to_owned()), Result::err));
            });
        } else {
            failed.extend(start(tests, &[], at_a_time).err());
        }
    }
    // Examples in the documentation are tests too. With --doc alone cargo would build all crates
    // again, with fewer of their features.
    failed.extend(cargo(&["test", "--workspace", "--quiet", "--", EXAMPLES], LINTED).err());
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

/// Runs a test program with `at_a_time` tests at a time, unless the environment says how many.
fn start(tests: &TestProgram, args: &[&str], at_a_time: usize) -> Result<(), String> {
    const THREADS: &str = "RUST_TEST_THREADS";
    let threads = std::env::var(THREADS).unwrap_or_else(|_| at_a_time.to_string());
    println!("{} {}", tests.name, args.join(" "));
    let mut command = Command::new(&tests.program);
    command.args(args).current_dir(&tests.folder).env(THREADS, threads);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{} {}: {status}", tests.name, args.join(" "))),
        Err(e) => Err(format!("{}: {e}", tests.name)),
    }
}
