//! The tasks of this repository.
#![forbid(unsafe_code)]

mod bench;
mod dist;
mod repo;
mod testing;
mod tidy;
mod tools;

use repo::{LINTED, cargo};
use std::process::ExitCode;
use std::time::{Duration, Instant};

const USAGE: &str = "\
cargo xtask tidy                 checks the architecture's rules
cargo xtask test [--install]     builds and runs all tests; skips those of missing programs
    --install      brings the programs that the tests need (apt); oha, bombardier and ghz
                   are optional: \"bench --install\" brings them
cargo xtask ci                   checks the rest that must pass: form, lints, documentation, the
                                 small bench
cargo xtask dist [--debug]       makes a release in target/packages, and checks it by using it
    --debug        packs the debug build: shows that the packing works, in less time
cargo xtask features             checks the builds that leave Cargo features out
cargo xtask docs                 writes the pages of docs/ that are made from the code
cargo xtask bench [OPTIONS]      measures knee beside its peers; writes bench/RESULTS.md
    --install      brings the peers that are missing (apt, cargo, go)
    --small        tiny durations, one round: shows that it runs, measures nothing
    --only NAME    one bench, such as closed, open, tls or http2 (repeatable)
    --rounds N     repeats of each measurement (default 5)
    --debug        uses knee's debug binary instead of building the release";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match args.split_first().map(|(task, rest)| (task.as_str(), rest)) {
        Some(("tidy", [])) => tidy::run(),
        Some(("dist", [])) => dist::run(false),
        Some(("dist", [option])) if option == "--debug" => dist::run(true),
        Some(("ci", [])) => run_steps(CHECKS),
        Some(("test", [])) => test(false),
        Some(("test", [option])) if option == "--install" => test(true),
        Some(("features", [])) => check_features(),
        Some(("docs", [])) => write_docs(),
        Some(("bench", rest)) => bench::Options::parse(rest).and_then(|o| bench::run(&o)),
        Some(("help" | "--help" | "-h", _)) => {
            println!("{USAGE}");
            Ok(())
        }
        _ => Err(format!("what should be done?\n{USAGE}")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// The tests that compare those pages with the code write them where this is set.
const WRITE_DOCS: &str = "KNEE_WRITE_DOCS";

/// Writes the pages of the documentation that are made from the code.
///
/// # Errors
/// A test cannot be built, or a page still differs.
fn write_docs() -> Result<(), String> {
    for (package, tests) in [("knee", "documented"), ("knee-render", "schema")] {
        let test = ["test", "--quiet", "--all-features", "--package", package, tests];
        cargo(&test, &[(WRITE_DOCS, "1")])?;
    }
    Ok(())
}

/// Checks the default build, one without features, and one with each of them alone.
///
/// # Errors
/// One has an error or a warning.
fn check_features() -> Result<(), String> {
    let alone = ["fleet", "grpc", "scripts"].map(|name| vec!["--no-default-features", "-F", name]);
    for features in [vec![], vec!["--no-default-features"]].into_iter().chain(alone) {
        println!("knee {}", features.join(" "));
        cargo(&[vec!["check", "--quiet", "--package", "knee"], features].concat(), LINTED)?;
    }
    Ok(())
}

type Step = (&'static str, fn() -> Result<(), String>);

/// The build has the lints too, so that each crate is compiled once for both commands.
const BUILD: Step =
    ("build, lint", || cargo(&["test", "--workspace", "--all-features", "--no-run"], LINTED));

/// The steps of `test`.
const TESTS: &[Step] = &[BUILD, ("test", testing::run)];

/// The steps of `ci`: cheap ones first.
const CHECKS: &[Step] = &[
    ("fmt", || cargo(&["fmt", "--all", "--check"], &[])),
    ("tidy", tidy::run),
    BUILD,
    ("small bench", bench::run_small),
    ("doc", || {
        let deny = [("RUSTDOCFLAGS", "-D warnings")];
        cargo(&["doc", "--workspace", "--all-features", "--no-deps"], &deny)
    }),
];

/// Builds and runs all tests. `install`: installs what they need.
///
/// # Errors
/// Which steps failed. Where `CI` is set, a missing program is an error too, before anything runs.
fn test(install: bool) -> Result<(), String> {
    let needed = [tools::FOR_BENCHES, tools::FOR_TESTS].concat();
    let missing = if install { tools::install(&needed) } else { tools::missing(&needed) };
    for tool in &missing {
        println!("skipped, as {} is missing: {}", tool.program, tool.purpose);
    }
    if !missing.is_empty() && std::env::var_os("CI").is_some() {
        return Err("CI is set, so nothing may be skipped: run it with --install".into());
    }
    let outcome = run_steps(TESTS);
    for tool in &missing {
        println!("skipped: {} (--install brings it)", tool.purpose);
    }
    outcome
}

/// Runs all steps and prints the time that each took.
///
/// # Errors
/// Which steps failed.
fn run_steps(steps: &[Step]) -> Result<(), String> {
    let mut summary: Vec<(&str, Duration, Result<(), String>)> = Vec::new();
    for (name, run) in steps {
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
    let failed = summary.iter().filter(|(.., outcome)| outcome.is_err());
    let failed: Vec<&str> = failed.map(|(name, ..)| *name).collect();
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}
