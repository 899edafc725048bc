//! The tasks of this repository.
#![forbid(unsafe_code)]

mod bench;
mod dist;
mod docs;
mod repo;
mod shell;
mod test;
mod tidy;
mod tools;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask tidy                 checks the architecture's rules and the style
cargo xtask test [--install]     runs everything that must pass; skips tests of missing programs
    --install      brings the programs that the tests need (apt)
cargo xtask dist [--debug]       makes a release in target/packages, and checks it by using it
    --debug        packs the debug build: shows that the packing works, in less time
cargo xtask docs                 writes the pages of docs/ that are made from the code
cargo xtask bench [OPTIONS]      measures knee beside its peers; writes bench/RESULTS.md
    --install      brings the peers that are missing (apt, cargo)
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
        Some(("test", [])) => test::run(false),
        Some(("test", [option])) if option == "--install" => test::run(true),
        Some(("docs", [])) => docs::run(),
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
