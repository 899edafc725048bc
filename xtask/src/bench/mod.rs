//! knee beside its peers and beside bare loops that make only the system calls.
//!
//! Contenders take turns (A B C A B C …) against the same server; the server has one core, the
//! generator another. What a generator costs is what the kernel accounts to its process.
//!
//! To add a contender: a row in the file of its bench, with name, program, command line and reader.

mod bulk;
mod closed;
mod contender;
mod datagrams;
mod fleet;
mod lab;
mod open;
mod process;
mod protocols;
mod reader;
mod round;
mod sessions;
mod station;

use crate::repo::{LINTED, cargo, copy, make, write};
use crate::{repo, tools};
use lab::Lab;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

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
const BENCHES: &[(&str, Bench)] = &[
    ("closed", closed::run),
    ("open", open::run),
    ("dm1", station::run_dm1),
    ("truth", station::run_truth),
    ("connections", closed::run_connections),
    ("stall", open::run_stall),
    ("overload", closed::run_overload),
    ("udp", datagrams::run_udp),
    ("bulk", bulk::run),
    ("tls", protocols::run_tls),
    ("http2", protocols::run_http2),
    ("http3", protocols::run_http3),
    ("grpc", protocols::run_grpc),
    ("dns", datagrams::run_dns),
    ("streams", sessions::run_streams),
    ("sessions", sessions::run),
    ("fleet", fleet::run),
];

impl Options {
    /// Reads the arguments.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn parse(args: &[String]) -> Result<Self, String> {
        let mut options =
            Options { install: false, small: false, debug: false, rounds: 5, only: Vec::new() };
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
                        let known = BENCHES.iter().map(|(known, _)| *known);
                        let known = known.collect::<Vec<_>>().join(", ");
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
        tools::install(&[tools::FOR_BENCHES, tools::OPTIONAL].concat());
        if tools::find("oha").is_none() {
            cargo(&["install", "--locked", "oha"], &[])?;
        }
    }
    let release = !options.debug;
    let knee = build(release)?;
    let bare = build_bare_loops()?;
    for example in BARE_EXAMPLES {
        copy(&knee.with_file_name("examples").join(example), &bare.join(example))?;
    }
    let lab = Lab::new(knee, bare, options.small, options.rounds)?;
    let mut report = lab::heading(&lab, release)?;
    println!("{report}");
    for (name, bench) in BENCHES {
        if options.only.is_empty() || options.only.iter().any(|only| only == name) {
            eprintln!("bench {name} …");
            let begun = Instant::now();
            let part = bench(&lab).map_err(|e| format!("bench {name}: {e}"))?;
            eprintln!("bench {name} took {:.0} s", begun.elapsed().as_secs_f64());
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

/// Shows that every bench runs, with the binaries that the tests built.
///
/// # Errors
/// As [`run`].
pub fn run_small() -> Result<(), String> {
    run(&Options { install: false, small: true, debug: true, rounds: 1, only: Vec::new() })
}

/// The bare loops over rustls and quinn-proto, examples of the engine.
const BARE_EXAMPLES: [&str; 2] = ["closed_rustls", "closed_quinn"];

/// Builds knee and the bare loop over rustls; the path of knee. The debug build is that of the
/// tests.
fn build(release: bool) -> Result<PathBuf, String> {
    if release {
        let packages = ["--package", "knee", "--package", "knee-engine"];
        let [rustls, quinn] = BARE_EXAMPLES;
        let targets = ["--bin", "knee", "--example", rustls, "--example", quinn];
        cargo(&[&["build", "--release", "--all-features"][..], &packages, &targets].concat(), &[])?;
    } else {
        cargo(&["test", "--workspace", "--all-features", "--no-run", "--quiet"], LINTED)?;
    }
    let profile = if release { "release" } else { "debug" };
    Ok(repo::target().join(profile).join("knee"))
}

/// The loops in C with their library. The one over io_uring needs liburing.
const BARE_LOOPS: &[(&str, &str)] = &[
    ("server_epoll", "-lm"),
    ("closed_epoll", "-lm"),
    ("closed_h2", "-lm"),
    ("read_streams", "-lm"),
    ("open_spin", "-lm"),
    ("open_hybrid", "-lm"),
    ("connect_server", "-lm"),
    ("connect_flood", "-lm"),
    ("connect_served", "-lm"),
    ("udp_sendmmsg", "-lm"),
    ("udp_gso", "-lm"),
    ("bulk_send", "-lm"),
    ("bulk_receive", "-lm"),
    ("closed_uring", "-luring"),
];

/// Compiles `bench/*.c` into `target/bench`.
fn build_bare_loops() -> Result<PathBuf, String> {
    let out = repo::target().join("bench");
    make(&out)?;
    for (name, library) in BARE_LOOPS {
        if *library == "-luring" && tools::find(tools::LIBURING.program).is_none() {
            eprintln!("without bench/{name}.c: {} is missing", tools::LIBURING.package);
            continue;
        }
        let mut cc = Command::new("cc");
        cc.args(["-O2", "-Wall", "-Wextra", "-o"]).arg(out.join(name));
        cc.arg(repo::root().join(format!("bench/{name}.c"))).arg(library);
        process::run(cc)?.ended.succeeded()?;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_refused() {
        let parse = |line: &str| {
            Options::parse(&line.split_whitespace().map(String::from).collect::<Vec<_>>())
        };
        let all = parse("--small --debug --rounds 3 --only open --only dm1").unwrap();
        assert!(all.small && all.debug && !all.install);
        assert_eq!((all.rounds, all.only), (3, vec!["open".into(), "dm1".into()]));
        for bad in ["--rounds", "--rounds 0", "--only nothing", "--fast"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
