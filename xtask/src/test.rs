//! Everything that must pass, in one command, installing what it needs.

use crate::shell::cargo;
use crate::{bench, tidy, tools};
use std::time::{Duration, Instant};

struct Step {
    name: &'static str,
    run: fn() -> Result<(), String>,
}

/// Cheap steps first; all of them use the same profile and flags, so that nothing is built twice.
const STEPS: [Step; 6] = [
    Step {
        name: "fmt",
        run: || cargo(&["fmt", "--all", "--check"], &[]),
    },
    Step {
        name: "tidy",
        run: tidy::run,
    },
    Step {
        name: "clippy",
        run: clippy,
    },
    Step {
        name: "test",
        run: || cargo(&["test", "--workspace"], &[]),
    },
    Step {
        name: "doc",
        run: doc,
    },
    Step {
        name: "small bench",
        run: small_bench,
    },
];

/// Runs all steps and prints what each took.
///
/// # Errors
/// Which steps failed. Where `CI` is set, what is missing fails too, before anything runs.
pub fn run() -> Result<(), String> {
    let missing = tools::install(&tools::FOR_TESTS);
    for tool in &missing {
        println!("skipped, as {} is missing: {}", tool.program, tool.purpose);
    }
    if !missing.is_empty() && std::env::var_os("CI").is_some() {
        return Err("CI is set, so nothing may be skipped: install what is missing".into());
    }
    let mut summary: Vec<(&str, Duration, Result<(), String>)> = Vec::new();
    for step in &STEPS {
        println!("== {}", step.name);
        let begun = Instant::now();
        let outcome = (step.run)();
        if let Err(why) = &outcome {
            println!("{why}");
        }
        summary.push((step.name, begun.elapsed(), outcome));
    }
    println!("\nstep          seconds");
    for (name, took, outcome) in &summary {
        let word = if outcome.is_ok() { "ok" } else { "FAILED" };
        println!("{name:<12} {:>8.1}  {word}", took.as_secs_f64());
    }
    for tool in &missing {
        println!("skipped: {}", tool.purpose);
    }
    let failed: Vec<&str> = summary
        .iter()
        .filter(|s| s.2.is_err())
        .map(|s| s.0)
        .collect();
    if failed.is_empty() {
        Ok(())
    } else {
        Err(format!("failed: {}", failed.join(", ")))
    }
}

fn clippy() -> Result<(), String> {
    cargo(
        &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
        &[],
    )
}

fn doc() -> Result<(), String> {
    cargo(
        &["doc", "--workspace", "--no-deps"],
        &[("RUSTDOCFLAGS", "-D warnings")],
    )
}

/// Function, not speed: the binary that the tests have just built will do.
fn small_bench() -> Result<(), String> {
    let options = ["--small", "--debug"].map(String::from);
    bench::run(&bench::Options::parse(&options)?)
}
