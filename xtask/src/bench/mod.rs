//! knee beside its peers and beside bare loops that make only the system calls.
//!
//! Contenders take turns (A B C A B C …) against the same server; the server has one core, the
//! generator another. What a generator costs is what the kernel accounts to its process.

mod bulk;
mod closed;
mod connections;
mod fleet;
mod lab;
mod open;
mod overload;
mod peer;
mod process;
mod protocols;
mod results;
mod round;
mod schedule;
mod sessions;
mod stall;
mod station;
mod stats;
mod table;
mod throttle;
mod truth;
mod udp;

use crate::shell::{cargo, make, write};
use crate::{repo, tools};
use lab::Lab;
use std::process::Command;

/// What was asked for.
#[derive(Debug, PartialEq)]
pub struct Options {
    install: bool,
    small: bool,
    debug: bool,
    rounds: usize,
    only: Vec<String>,
}

type Bench = fn(&Lab) -> Result<String, String>;

/// Each bench returns its part of the results as Markdown.
const BENCHES: [(&str, Bench); 15] = [
    ("closed", closed::run),
    ("open", open::run),
    ("dm1", station::run_dm1),
    ("mm1", station::run_mm1),
    ("truth", truth::run),
    ("connections", connections::run),
    ("stall", stall::run),
    ("overload", overload::run),
    ("throttle", throttle::run),
    ("udp", udp::run),
    ("bulk", bulk::run),
    ("tls", protocols::run_tls),
    ("http2", protocols::run_http2),
    ("sessions", sessions::run),
    ("fleet", fleet::run),
];

impl Options {
    /// Reads the arguments.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn parse(args: &[String]) -> Result<Self, String> {
        let mut options = Options {
            install: false,
            small: false,
            debug: false,
            rounds: 5,
            only: Vec::new(),
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or(format!("{arg} needs a value"));
            match arg.as_str() {
                "--install" => options.install = true,
                "--small" => options.small = true,
                "--debug" => options.debug = true,
                "--rounds" => {
                    let n = value()?.parse().ok().filter(|n| (1..=100).contains(n));
                    options.rounds = n.ok_or("--rounds takes a number from 1 to 100")?;
                }
                "--only" => {
                    let name = value()?.clone();
                    if !BENCHES.iter().any(|(known, _)| *known == name) {
                        let known = BENCHES.map(|(known, _)| known).join(", ");
                        return Err(format!("--only {name}: there are {known}"));
                    }
                    options.only.push(name);
                }
                _ => return Err(format!("bench does not know {arg}")),
            }
        }
        Ok(options)
    }
}

/// Runs the benches and writes `bench/RESULTS.md`; a small or partial run only prints.
///
/// # Errors
/// What could not be built, started or understood.
pub fn run(options: &Options) -> Result<(), String> {
    if options.install {
        tools::install(&tools::PEERS);
        if tools::find("oha").is_none() {
            cargo(&["install", "--locked", "oha"], &[])?;
        }
        if tools::find("bombardier").is_none() {
            install_with_go("github.com/codesenberg/bombardier@latest");
        }
    }
    let bare = build_bare_loops()?;
    let release = !options.debug;
    build_bare_rustls(&bare, release)?;
    let mut build = vec!["build", "--package", "knee"];
    build.extend(release.then_some("--release"));
    cargo(&build, &[])?;
    let profile = if release { "release" } else { "debug" };
    let knee = repo::target().join(profile).join("knee");
    let lab = Lab::new(knee, bare, options.small, options.rounds)?;
    let mut report = results::heading(&lab, release)?;
    println!("{report}");
    for (name, bench) in BENCHES {
        if options.only.is_empty() || options.only.iter().any(|only| only == name) {
            eprintln!("bench {name} …");
            let part = bench(&lab).map_err(|e| format!("bench {name}: {e}"))?;
            // At once: what was measured is not lost where a later one fails.
            println!("{part}");
            report += &part;
        }
    }
    if options.small || options.debug || !options.only.is_empty() {
        return Ok(());
    }
    write(&repo::root().join("bench/RESULTS.md"), report)
}

/// Compiles `bench/*.c` into `target/bench`; the io_uring loop only where liburing is installed.
fn build_bare_loops() -> Result<std::path::PathBuf, String> {
    let out = repo::target().join("bench");
    make(&out)?;
    for (name, library, needed) in [
        ("server_epoll", "-lm", true),
        ("closed_epoll", "-lm", true),
        ("closed_h2", "-lm", true),
        ("open_spin", "-lm", true),
        ("open_hybrid", "-lm", true),
        ("connect_server", "-lm", true),
        ("connect_flood", "-lm", true),
        ("connect_served", "-lm", true),
        ("udp_sendmmsg", "-lm", true),
        ("udp_gso", "-lm", true),
        ("bulk_send", "-lm", true),
        ("bulk_receive", "-lm", true),
        ("closed_uring", "-luring", false),
    ] {
        let mut cc = Command::new("cc");
        cc.args(["-O2", "-Wall", "-Wextra", "-o"])
            .arg(out.join(name));
        cc.arg(repo::root().join(format!("bench/{name}.c")))
            .arg(library);
        let output = cc.output().map_err(|e| format!("cc: {e}"))?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            if needed {
                return Err(format!("cc bench/{name}.c: {why}"));
            }
            eprintln!("without bench/{name}.c (apt-get install liburing-dev)");
        }
    }
    Ok(out)
}

/// A peer that is written in Go, where Go is there.
fn install_with_go(module: &str) {
    let installed = Command::new("go").args(["install", module]).status();
    if !installed.is_ok_and(|status| status.success()) {
        println!("without {module}: go could not install it");
    }
}

/// Builds the bare loop over rustls, as fast as rustls gets, and puts it beside those in C.
fn build_bare_rustls(out: &std::path::Path, release: bool) -> Result<(), String> {
    const NAME: &str = "closed_rustls";
    let mut build = vec!["build", "--package", "knee-engine", "--example", NAME];
    if release {
        let fastest = "profile.release.package.rustls.opt-level=3";
        build.extend(["--release", "--config", fastest]);
    }
    cargo(&build, &[])?;
    let profile = if release { "release" } else { "debug" };
    let built = repo::target().join(profile).join("examples").join(NAME);
    let copied = std::fs::copy(&built, out.join(NAME));
    copied.map_err(|e| format!("{}: {e}", built.display()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_refused() {
        let parse = |line: &str| {
            Options::parse(
                &line
                    .split_whitespace()
                    .map(String::from)
                    .collect::<Vec<_>>(),
            )
        };
        let all = parse("--small --debug --rounds 3 --only open --only dm1").unwrap();
        assert!(all.small && all.debug && !all.install);
        assert_eq!(
            (all.rounds, all.only),
            (3, vec!["open".into(), "dm1".into()])
        );
        for bad in ["--rounds", "--rounds 0", "--only nothing", "--fast"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
