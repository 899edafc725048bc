//! knee, the command: wires arguments, experiments, engine and renderers together.
#![forbid(unsafe_code)]

mod args;
mod command;
mod confined;
mod failure;
mod history;
mod input;
mod machine;
mod margins;
mod near;
mod notes;
mod output;
mod resolved_options;
mod scenario;
mod secrets;
mod started_at;
mod stdout;
mod terminal;
mod usage;
mod watch;
mod whole_file;

use command::raw::RawArgs;
use failure::{Exit, Failure};
use std::io::Write;
use std::process::ExitCode;

#[global_allocator]
static MEMORY: knee_engine::sys::memory::OrExit = knee_engine::sys::memory::OrExit;

fn main() -> ExitCode {
    knee_engine::sys::memory::end_on_thread_without_memory();
    let outcome = confined::begin().and_then(|()| match RawArgs::read(std::env::args_os()) {
        Ok(raw) => raw.command.execute(),
        Err(objection) => explain(&objection),
    });
    match outcome {
        Ok(exit) => exit.into(),
        Err(failure) => {
            let failure = failure.without_secrets(&secrets::of_command_line());
            // Nobody to tell where standard error is closed.
            let _ = writeln!(std::io::stderr(), "{failure}");
            failure.exit.into()
        }
    }
}

/// Help and version go to standard output; anything else is one line of what is wrong.
fn explain(objection: &clap::Error) -> Result<Exit, Failure> {
    if objection.use_stderr() && objection.kind() != HELP_WITHOUT_ARGUMENTS {
        return Err(Failure::input(usage::one_line(
            objection,
            &RawArgs::command_of(std::env::args_os()),
        )));
    }
    if objection.use_stderr() || terminal::is_stdout() {
        // In colour, where that is wanted.
        drop(objection.print())
    } else {
        stdout::write(|out| write!(out, "{}", objection.render()))?
    }
    Ok(if objection.use_stderr() { Exit::BadInput } else { Exit::Fine })
}

const HELP_WITHOUT_ARGUMENTS: clap::error::ErrorKind =
    clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
