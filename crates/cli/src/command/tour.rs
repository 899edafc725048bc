//! `knee demo`: all experiments against built-in servers, one after another, and one page of them.

use super::guarded::GuardedProgram;
use super::laboratory;
use crate::failure::{Exit, Failure};
use crate::stdio;
use crate::whole_file::OutputPlace;
use clap::Args;
use knee_core::report::Report;
use knee_engine::interrupt;
use knee_render::{headline, html_tour, parse_report, quoted};
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Instant;

/// See all experiments at work in about a minute, against built-in servers
///
/// Each is a command that you can run yourself, with a shorter time than it would take by default.
/// Nothing leaves this machine. The page that it ends in needs no network.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  knee demo --html tour.html")]
pub struct RawDemo {
    /// Where the page goes
    #[arg(long, value_name = "FILE", default_value = "knee-demo.html")]
    html: String,

    /// No progress, no notes; the answers and errors only
    #[arg(long)]
    quiet: bool,
}

/// One experiment of the tour.
struct TourStep {
    /// What it asks.
    question: &'static str,
    /// The command's arguments.
    arguments: &'static str,
}

/// In the order of the mission; times are short, so that all of it takes about a minute.
const STEPS: &[TourStep] = &[
    TourStep {
        question: "Where does each datagram go, and does it matter how clients wait?",
        arguments: "udp --compare yield*64 exp(200us)*128 -d 1s --repeats 2",
    },
    TourStep {
        question: "What does a server do when far more connections come than it serves?",
        arguments: "overload --simple 1,16,256 --descriptors 64,256,970 -d 2s",
    },
    TourStep {
        question: "Does a server come back after an overload whose users retry?",
        arguments: "recover -R 100 --trigger 4x --timeout 200ms --retries 3 --backoff \
                    exp(50ms,200ms) --warmup 500ms --before 2s --for 2s --after 6s",
    },
    TourStep {
        question: "How exactly does this machine wait?",
        arguments: "throttle --methods sleep,hybrid,spin --delays 100us,1ms,10ms -d 500ms",
    },
    TourStep {
        question: "What does load do to the latency of a path?",
        arguments: "latency --scenarios 1/0,0/1,4/4,16/16 -d 2s --idle 1s",
    },
    TourStep {
        question: "How much can a server do, and what do its users feel on the way there?",
        arguments: "sweep -d 500ms --warmup 200ms",
    },
];

/// Makes the tour.
pub fn execute(raw: &RawDemo) -> Result<Exit, Failure> {
    let page = OutputPlace::open("--html", &raw.html)?;
    let stop = interrupt::catch();
    let begun = Instant::now();
    let mut reports: Vec<(&str, Report)> = Vec::new();
    for (i, part) in STEPS.iter().enumerate() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let (number, count) = (i + 1, STEPS.len());
        let command = for_a_shell(part.arguments);
        let said = format!("{number} of {count}  {}\n$ knee {command}\n", part.question);
        stdio::write(|out| out.write_all(said.as_bytes()))?;
        match measure(part, raw.quiet) {
            Ok(report) => {
                let text = format!("{}\n\n", headline(&report, stdio::is_unicode()));
                stdio::write(|out| out.write_all(text.as_bytes()))?;
                reports.push((part.question, report));
            }
            // The rest of the tour is worth as much without it.
            Err(line) => stdio::say(&line),
        }
    }
    if reports.is_empty() {
        return Err(Failure::nothing_measured("nothing was measured".to_string()));
    }
    let parts: Vec<(&str, &Report)> = reports.iter().map(|(q, r)| (*q, r)).collect();
    page.write(|out| html_tour(&parts, out))?;
    let took = begun.elapsed().as_secs();
    let end = format!("{} of {} in {took} s; the page: {}\n", parts.len(), STEPS.len(), raw.html);
    stdio::write(|out| out.write_all(end.as_bytes()))?;
    Ok(laboratory::ended_by_signal().unwrap_or(Exit::Fine))
}

/// Runs a command of knee's in a process of its own, as a user would, and reads its report.
fn measure(part: &TourStep, quiet: bool) -> Result<Report, String> {
    let failed = |e: &dyn std::fmt::Display| format!("knee {}: {e}", part.arguments);
    let program = std::env::current_exe().map_err(|e| failed(&e))?;
    let mut command = Command::new(program);
    command.args(part.arguments.split(' ')).args(["--json", "-", "--no-save", "--no-tui"]);
    if quiet {
        command.arg("--quiet");
    }
    let mut started = GuardedProgram::start(command.stdin(Stdio::null()).stdout(Stdio::piped()))
        .map_err(|e| failed(&e))?;
    let printed = started.child.stdout.take();
    let read = std::thread::Builder::new().spawn(move || {
        let mut text = String::new();
        printed.map_or(Ok(0), |mut printed| printed.read_to_string(&mut text)).map(|_| text)
    });
    let read = read.map_err(|e| failed(&e))?;
    let status = started.wait().map_err(|e| failed(&e))?;
    let text = read.join().unwrap_or_else(|_| Ok(String::new())).map_err(|e| failed(&e))?;
    parse_report(&text).map_err(|e| match status.code() {
        Some(code) if text.is_empty() => failed(&format!("ended with {code}, without a report")),
        _ => failed(&e),
    })
}

/// The arguments as a shell takes them.
fn for_a_shell(arguments: &str) -> String {
    let words: Vec<String> = arguments.split(' ').map(quoted).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::raw::RawArgs;

    #[test]
    fn every_stop_is_a_command_line_that_is_understood() {
        for stop in STEPS {
            let argv = ["knee"].into_iter().chain(stop.arguments.split(' '));
            let read = RawArgs::read(argv.chain(["--json", "-", "--no-save", "--no-tui"]));
            assert!(read.is_ok(), "{}: {}", stop.arguments, read.unwrap_err());
        }
    }

    #[test]
    fn what_a_shell_would_expand_is_quoted() {
        let shown = for_a_shell("udp --compare yield*64 exp(200us)*128 -d 1s");
        assert_eq!(shown, "udp --compare 'yield*64' 'exp(200us)*128' -d 1s");
    }

    #[test]
    fn every_experiment_is_seen() {
        for command in ["udp", "overload", "throttle", "latency", "sweep"] {
            let is_it = |stop: &TourStep| stop.arguments.split(' ').next() == Some(command);
            assert!(STEPS.iter().any(is_it), "{command}");
        }
    }
}
