//! `knee scenario`: checks scenario files, describes them to editors, begins one.

#[cfg(test)]
mod tests;

use crate::args::SecretArgs;
use crate::failure::{Exit, Failure};
use crate::script::ScriptArgs;
use crate::{input, stdio};
use clap::{Args, Subcommand};
use knee_load::session::{Instruction, SessionKind};
use knee_scenario::{EXAMPLE, Scenario, schema};

/// Check a scenario file, print its schema, or write an example
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  knee scenario new > shop.yaml   an example with comments\n  \
    knee scenario check shop.yaml   what is in it, or what is wrong with it\n  \
    knee scenario schema            for editors, which complete and check with it")]
pub struct RawScenario {
    #[command(subcommand)]
    command: RawScenarioCommand,
}

#[derive(Subcommand, Clone, Debug)]
enum RawScenarioCommand {
    /// Check a scenario and the files that it names
    Check {
        /// Scenario file, YAML or JSON, or a script
        #[arg(value_name = "FILE")]
        file: String,

        #[command(flatten)]
        script: ScriptArgs,

        #[command(flatten)]
        secrets: SecretArgs,
    },
    /// Print the JSON Schema of scenario files
    Schema,
    /// Print a commented example, which runs against 'knee serve http --app shop'
    New,
}

/// Prints what was asked for, or what is wrong with the file.
pub fn execute(raw: &RawScenario) -> Result<Exit, Failure> {
    match &raw.command {
        RawScenarioCommand::Check { file, script, .. } if input::is_script(file) => {
            let lines = script.summary(file)?;
            stdio::write(|out| lines.iter().try_for_each(|line| writeln!(out, "{line}")))?;
        }
        RawScenarioCommand::Check { file, .. } => {
            let scenario = input::read_scenario(file)?;
            let kinds = scenario.plan.kinds.iter();
            let lines: Vec<_> = kinds.map(|kind| summary(kind, &scenario)).collect();
            stdio::write(|out| lines.iter().try_for_each(|line| writeln!(out, "{line}")))?;
        }
        RawScenarioCommand::Schema => {
            let schema = serde_json::to_string_pretty(&schema())
                .map_err(|e| Failure::input(format!("the schema could not be written: {e}")))?;
            stdio::write(|out| writeln!(out, "{schema}"))?;
        }
        RawScenarioCommand::New => stdio::write(|out| out.write_all(EXAMPLE.as_bytes()))?,
    }
    Ok(Exit::Fine)
}

/// One line about a kind of sessions.
fn summary(kind: &SessionKind, scenario: &Scenario) -> String {
    let all: u64 = scenario.plan.kinds.iter().map(|k| u64::from(k.weight)).sum();
    let share = f64::from(kind.weight) * 100.0 / all.max(1) as f64;
    let is_request = |step: &&Instruction| matches!(step, Instruction::Request(_));
    let requests = match kind.program.iter().filter(is_request).count() {
        1 => "1 request".to_owned(),
        n => format!("{n} requests"),
    };
    let sets = kind.data.iter().filter_map(|&number| {
        let set = scenario.plan.data.get(usize::from(number))?;
        Some(format!("{} ({} records)", set.name, set.rows.len()))
    });
    let sets: Vec<_> = sets.collect();
    let data = match sets.as_slice() {
        [] => String::new(),
        sets => format!(", data {}", sets.join(", ")),
    };
    let share = match kind.weight {
        0 => "once".to_owned(),
        _ => format!("{share:.0} % of the sessions"),
    };
    format!("{}: {share}, {requests}{data}", kind.name)
}
