//! knee, the command: wires arguments, experiments, engine and renderers together.
//!
//! # Parts
//!
//! From the bottom up: `failure`, `resolved_options`; `features`, `confined`, `machine`, `whole_file`; `input`,
//! `stdio`; `margins`, `script`, `usage`, `watch`; `args`, `history`; `output`; `command`.
//!
//! # Where to look
//!
//! - What does a command ask for? `command/`, one file or folder each; the list is in
//!   `command/raw.rs`.
//! - Which options do several commands share? `args/`; which stand under a topic of `--help`:
//!   `command/help_topics.rs`.
//! - What does the line that repeats a run say? `resolved_options.rs`.
//! - What is said of a wrong command line? `usage.rs`.
//! - Who conducts an experiment? `command/laboratory.rs`, by the `TrialRunner` of a command.
//! - How is a run kept as it happens? `history/`.
//! - Who draws the live view, and when? `watch/live_view.rs`; what it looks like: `live` in the
//!   crate `knee-render`.
//! - Where does the report go? `output/`.
#![forbid(unsafe_code)]

mod args;
mod command;
mod confined;
mod failure;
mod features;
mod history;
mod input;
mod machine;
mod margins;
#[cfg(not(feature = "scripts"))]
mod no_script;
mod output;
mod resolved_options;
#[cfg(feature = "scripts")]
mod script;
mod stdio;
mod usage;
mod watch;
mod whole_file;

use command::raw::RawArgs;
use failure::{Exit, Failure};
use knee_scenario::import::typographic;
#[cfg(not(feature = "scripts"))]
use no_script as script;
use std::ffi::OsString;
use std::process::ExitCode;

#[global_allocator]
static MEMORY: knee_engine::sys::memory::OrExit = knee_engine::sys::memory::OrExit;

fn main() -> ExitCode {
    knee_engine::sys::memory::end_on_thread_without_memory();
    if let Ok(pid) = std::env::var("KNEE_PARENT") {
        // Where it fails, the run ends at its own end.
        drop(knee_engine::interrupt::end_with_parent(&pid));
    }
    // Where it fails, signals do what they do by default.
    drop(knee_engine::interrupt::install());
    let outcome = confined::begin().and_then(|()| execute(std::env::args_os().collect()));
    match outcome {
        Ok(exit) => exit.into(),
        Err(failure) => {
            let failure = failure.without_secrets(&failure::of_command_line());
            stdio::say(&failure.to_string());
            if failure.exit == Exit::BadInput {
                let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
                let wrong = words.skip(1).find_map(|word| typographic(&word));
                wrong.iter().for_each(|wrong| stdio::say(&format!("note: {wrong}")));
            }
            failure.exit.into()
        }
    }
}

fn execute(argv: Vec<OsString>) -> Result<Exit, Failure> {
    let asks_for_help = argv.iter().any(|word| word == "--help" || word == "-h");
    if let Some(topic) = asks_for_help.then(|| RawArgs::help_topic(&argv)).flatten() {
        return stdio::write(|out| out.write_all(topic.as_bytes())).map(|()| Exit::Fine);
    }
    match RawArgs::read(argv.iter().cloned()) {
        Ok(raw) => raw.command.execute(),
        Err(objection) => explain(&objection, &argv),
    }
}

/// Help and version go to standard output; anything else is one line of what is wrong.
fn explain(objection: &clap::Error, argv: &[OsString]) -> Result<Exit, Failure> {
    if objection.use_stderr() && objection.kind() != HELP_WITHOUT_ARGUMENTS {
        let command = RawArgs::command_of(argv.iter().cloned());
        return Err(Failure::input(usage::one_line(objection, &command, argv)));
    }
    if objection.use_stderr() || stdio::is_stdout() {
        // In colour, where that is wanted.
        drop(objection.print())
    } else {
        stdio::write(|out| write!(out, "{}", objection.render()))?
    }
    Ok(if objection.use_stderr() { Exit::BadInput } else { Exit::Fine })
}

const HELP_WITHOUT_ARGUMENTS: clap::error::ErrorKind =
    clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
