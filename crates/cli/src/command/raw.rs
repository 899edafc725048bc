//! The whole command line.

use crate::args::{with_curl_line, with_exits};
#[cfg(feature = "fleet")]
use crate::command::{agent, fleet};
use crate::command::{
    analyze, compare, compare_argv, explain, help_topics, history, import, latency, observe,
    overload, packaging, recover, report, run, scenario, serve, sweep, throttle, tour, udp,
};
use crate::failure::{Exit, Failure};
use crate::features::{self, FEATURES};
use crate::machine::Machine;
use crate::{stdio, usage};
use clap::error::ErrorKind;
use clap::{Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;

/// A load-testing laboratory: where does a server bend, and what do its users feel there?
#[derive(Debug, Parser)]
#[command(
    name = "knee",
    version,
    max_term_width = WIDTH_MAX,
    arg_required_else_help = true,
    after_help = EXAMPLES,
    after_long_help = with_exits(EXAMPLES),
)]
pub struct RawArgs {
    #[command(subcommand)]
    pub command: RawCommand,
}

/// Columns of help at most.
const WIDTH_MAX: usize = 100;

const EXAMPLES: &str = "Examples:\n  \
        knee sweep                              try it: a sweep against a server of its own\n  \
        knee sweep http://127.0.0.1:8080/       where is the knee?\n  \
        knee run http://127.0.0.1:8080/ -R 500  500 requests/s for 10 s\n  \
        knee throttle                           how well does this machine wait?\n  \
        knee udp                                where does each datagram go?\n  \
        knee latency                            what do flows do to latency?\n\n\
        'knee COMMAND -h' is a screenful, 'knee COMMAND --help' everything.";

impl RawArgs {
    /// The command that these arguments name, as far as it is known.
    pub fn command_of(argv: impl IntoIterator<Item = OsString>) -> Command {
        let mut command = RawArgs::command();
        for word in argv.into_iter().skip(1) {
            let part = word.to_str().and_then(|word| command.find_subcommand(word));
            match part.cloned() {
                Some(part) => command = part,
                None => break,
            }
        }
        command
    }

    /// The help of a topic, where a command line asks for one.
    pub fn help_topic(argv: &[OsString]) -> Option<String> {
        help_topics::requested_topic(
            &RawArgs::command(),
            argv,
            stdio::stdout_width().min(WIDTH_MAX),
        )
    }

    /// Reads a command line, the program's name first.
    pub fn read(
        argv: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    ) -> Result<RawArgs, clap::Error> {
        let argv: Vec<OsString> = argv.into_iter().map(Into::into).collect();
        // Once: to make all options of all commands is most of what a start takes.
        let command = help_topics::with_topics(RawArgs::command());
        let wrong = features::left_out(&argv, &FEATURES)
            .map(|failure| failure.line)
            .or_else(|| usage::typed_as_elsewhere(&command, &argv));
        if let Some(wrong) = wrong {
            return Err(clap::Error::raw(ErrorKind::Io, format!("{wrong}\n")));
        }
        let argv = compare_argv::load_apart(&command, argv);
        let argv = compare_argv::options_first(&command, argv);
        let argv = with_curl_line(argv)?;
        let mut command = let_numbers_be_negative(command);
        if !stdio::is_stdout() {
            command = command.term_width(stdio::stdout_width());
        }
        let mut matches = command.try_get_matches_from_mut(argv)?;
        RawArgs::from_arg_matches_mut(&mut matches).map_err(|e| e.format(&mut command))
    }

    /// Reads a command line of `knee run`.
    fn read_run(argv: Vec<&str>) -> Result<Box<run::RawRun>, Failure> {
        let read = RawArgs::read(argv).map_err(|e| Failure::input(usage::first_line(&e)))?;
        match read.command {
            RawCommand::Run(run) => Ok(run),
            _ => Err(Failure::input("expected options of knee run")),
        }
    }
}

/// Lets numbers, times, their lists and data begin with a `-`. The error for `--rate -5` is then
/// about a bad rate and not an unknown option `-5`.
fn let_numbers_be_negative(command: Command) -> Command {
    let command = command.mut_args(|argument| {
        let names = argument.get_value_names().unwrap_or_default();
        let is_number = ["N", "T", "N,N...", "T,T...", "BYTES", "PERCENT", "CODE", "DATA", "JSON"]
            .iter()
            .any(|n| names.iter().any(|name| name == n));
        argument.allow_hyphen_values(is_number)
    });
    command.mut_subcommands(let_numbers_be_negative)
}

#[derive(Debug, Subcommand)]
pub enum RawCommand {
    Run(Box<run::RawRun>),
    Sweep(Box<sweep::RawSweep>),
    Overload(Box<overload::RawOverload>),
    Recover(Box<recover::RawRecover>),
    Throttle(Box<throttle::RawThrottle>),
    Udp(Box<udp::RawUdp>),
    Latency(Box<latency::RawLatency>),
    /// One client of `knee udp --clients-as processes`, which starts it
    #[command(hide = true)]
    UdpClient,
    Demo(tour::RawDemo),
    Analyze(analyze::RawAnalyze),
    Report(report::RawReport),
    Compare(compare::RawCompare),
    Scenario(scenario::RawScenario),
    Import(import::RawImport),
    Explain(explain::RawExplain),
    History(history::RawHistory),
    Serve(serve::RawServe),
    Observe(observe::RawObserve),
    #[cfg(feature = "fleet")]
    Agent(agent::RawAgent),
    #[cfg(feature = "fleet")]
    Fleet(fleet::RawFleet),
    Completions(packaging::RawCompletions),
    Man(packaging::RawMan),
    /// JSON Schemas of options, for programs that start knee
    #[command(hide = true)]
    OptionSchemas,
}

impl RawCommand {
    /// Does what was asked for.
    ///
    /// # Errors
    /// Why it could not be done, in a line.
    pub fn execute(self) -> Result<Exit, Failure> {
        let machine = Machine::this();
        match self {
            RawCommand::Run(raw) => run::execute(raw.resolve(&machine)?),
            RawCommand::Sweep(raw) => sweep::execute(raw.resolve(&machine)?),
            RawCommand::Overload(raw) => overload::execute(raw.resolve(&machine)?),
            RawCommand::Recover(raw) => recover::execute(raw.resolve(&machine)?),
            RawCommand::Throttle(raw) => throttle::execute(raw.resolve()?),
            RawCommand::Udp(raw) => udp::execute(raw.resolve(&machine)?),
            RawCommand::Latency(raw) => latency::execute(raw.resolve(&machine)?),
            RawCommand::UdpClient => udp::client(),
            RawCommand::Demo(raw) => tour::execute(&raw),
            RawCommand::Analyze(raw) => analyze::execute(raw),
            RawCommand::Report(raw) => report::execute(&raw),
            RawCommand::Compare(raw) => compare::execute(&raw, RawArgs::read_run),
            RawCommand::Explain(raw) => explain::execute(&raw),
            RawCommand::Scenario(raw) => scenario::execute(&raw),
            RawCommand::History(raw) => history::execute(raw),
            RawCommand::Import(raw) => import::execute(raw),
            RawCommand::Serve(raw) => serve::execute(raw.resolve()?),
            RawCommand::Observe(raw) => observe::execute(raw.resolve()?),
            #[cfg(feature = "fleet")]
            RawCommand::Agent(raw) => agent::execute(raw),
            #[cfg(feature = "fleet")]
            RawCommand::Fleet(raw) => fleet::execute(&raw),
            RawCommand::Completions(raw) => packaging::write_completions(&raw, &RawArgs::command()),
            RawCommand::OptionSchemas => packaging::write_option_schemas(&RawArgs::command()),
            RawCommand::Man(raw) => packaging::write_manual(&raw, RawArgs::command()),
        }
    }
}
