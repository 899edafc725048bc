//! knee, the command: wires arguments, experiments, engine and renderers together.
#![forbid(unsafe_code)]

mod args;
mod command;
mod failure;
mod history;
mod input;
mod machine;
mod margins;
mod near;
mod notes;
mod output;
mod pending;
mod scenario;
mod started_at;
mod stdout;
mod terminal;
mod usage;
mod watch;
mod words;

use command::raw::{RawArgs, RawCommand};
use failure::{Exit, Failure};
use machine::Machine;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let outcome = match RawArgs::read(std::env::args_os()) {
        Ok(raw) => execute(raw.command),
        Err(objection) => explain(&objection),
    };
    match outcome {
        Ok(exit) => exit.into(),
        Err(failure) => {
            // Nobody to tell where standard error is closed.
            let _ = writeln!(std::io::stderr(), "{failure}");
            failure.exit.into()
        }
    }
}

fn execute(command: RawCommand) -> Result<Exit, Failure> {
    let machine = Machine::this();
    match command {
        RawCommand::Run(raw) => command::run::execute(raw.resolve(&machine)?),
        RawCommand::Sweep(raw) => command::sweep::execute(raw.resolve(&machine)?),
        RawCommand::Overload(raw) => command::overload::execute(raw.resolve(&machine)?),
        RawCommand::Throttle(raw) => command::throttle::execute(raw.resolve()?),
        RawCommand::Udp(raw) => command::udp::execute(raw.resolve(&machine)?),
        RawCommand::Latency(raw) => command::latency::execute(raw.resolve(&machine)?),
        RawCommand::UdpClient => command::udp::client(),
        RawCommand::Demo(raw) => command::tour::execute(&raw),
        RawCommand::Analyze(raw) => command::analyze::execute(raw),
        RawCommand::Report(raw) => command::report::execute(&raw),
        RawCommand::Compare(raw) => command::compare::execute(&raw),
        RawCommand::Explain(raw) => command::explain::execute(&raw),
        RawCommand::Scenario(raw) => command::scenario::execute(&raw),
        RawCommand::History(raw) => command::history::execute(raw),
        RawCommand::Import(raw) => command::import::execute(raw),
        RawCommand::Serve(raw) => command::serve::execute(raw.resolve()?),
        RawCommand::Observe(raw) => command::observe::execute(raw.resolve()?),
        RawCommand::Agent(raw) => command::agent::execute(raw),
        RawCommand::Fleet(raw) => command::fleet::execute(&raw),
        RawCommand::Completions(raw) => command::completions::execute(&raw),
        RawCommand::Man(raw) => command::man::execute(&raw),
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
    match objection.use_stderr() || terminal::is_stdout() {
        // In colour, where that is wanted.
        true => drop(objection.print()),
        false => stdout::write(|out| write!(out, "{}", objection.render()))?,
    }
    Ok(if objection.use_stderr() {
        Exit::BadInput
    } else {
        Exit::Fine
    })
}

const HELP_WITHOUT_ARGUMENTS: clap::error::ErrorKind =
    clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
