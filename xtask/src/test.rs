//! Everything that must pass before a change lands, in one command.

use crate::shell::{LINTED, cargo};
use crate::{bench, tidy, tools};
use std::time::{Duration, Instant};

type Step = (&'static str, fn() -> Result<(), String>);

/// Cheap steps first. Lints, tests and the small bench share one build of each crate.
const STEPS: &[Step] = &[
    ("fmt", || cargo(&["fmt", "--all", "--check"], &[])),
    ("tidy", tidy::run),
    ("build, lint", || cargo(&["test", "--workspace", "--no-run"], LINTED)),
    ("test", || cargo(&["test", "--workspace"], LINTED)),
    ("small bench", bench::run_small),
    ("doc", || {
        let deny = [("RUSTDOCFLAGS", "-D warnings")];
        cargo(&["doc", "--workspace", "--no-deps"], &deny)
    }),
];

/// Runs all steps and prints the time that each took. `install`: installs what the tests need.
///
/// # Errors
/// Which steps failed. Where `CI` is set, a missing program is an error too, before anything runs.
pub fn run(install: bool) -> Result<(), String> {
    let missing =
        if install { tools::install(tools::FOR_TESTS) } else { tools::missing(tools::FOR_TESTS) };
    for tool in &missing {
        println!("skipped, as {} is missing: {}", tool.program, tool.purpose);
    }
    if !missing.is_empty() && std::env::var_os("CI").is_some() {
        return Err("CI is set, so nothing may be skipped: run it with --install".into());
    }
    let mut summary: Vec<(&str, Duration, Result<(), String>)> = Vec::new();
    for (name, run) in STEPS {
        println!("== {name}");
        let begun = Instant::now();
        let outcome = run();
        if let Err(why) = &outcome {
            println!("{why}");
        }
        summary.push((name, begun.elapsed(), outcome));
    }
    println!("\nstep          seconds");
    for (name, took, outcome) in &summary {
        let word = if outcome.is_ok() { "ok" } else { "FAILED" };
        println!("{name:<12} {:>8.1}  {word}", took.as_secs_f64());
    }
    for tool in &missing {
        println!("skipped: {} (--install brings it)", tool.purpose);
    }
    let failed = summary.iter().filter(|(.., outcome)| outcome.is_err());
    let failed: Vec<&str> = failed.map(|(name, ..)| *name).collect();
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}
