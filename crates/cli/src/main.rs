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
mod output;
mod resolved_options;
mod stdio;
mod usage;
mod watch;
mod whole_file;

use command::raw::RawArgs;
use failure::{Exit, Failure};
use std::process::ExitCode;

#[global_allocator]
static MEMORY: knee_engine::sys::memory::OrExit = knee_engine::sys::memory::OrExit;

fn main() -> ExitCode {
    knee_engine::sys::memory::end_on_thread_without_memory();
    if let Ok(pid) = std::env::var("KNEE_PARENT") {
        // Where it fails, the run ends at its own end.
        drop(knee_engine::interrupt::end_with_parent(&pid));
    }
    let outcome = confined::begin().and_then(|()| match RawArgs::read(std::env::args_os()) {
        Ok(raw) => raw.command.execute(),
        Err(objection) => explain(&objection),
    });
    match outcome {
        Ok(exit) => exit.into(),
        Err(failure) => {
            let failure = failure.without_secrets(&failure::of_command_line());
            stdio::say(&failure.to_string());
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
