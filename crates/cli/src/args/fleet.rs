//! Agents on other machines that make an experiment together.

use super::nats::NatsArgs;
use super::values::parse_count;
use crate::failure::Failure;
use crate::machine::Machine;
use crate::notes::Notes;
use crate::resolved_options::ResolvedOptions;
use crate::started_at;
use clap::Args;
use knee_engine::error::RunError;
use knee_engine::{OpenFiles, RESERVED_FILES, interrupt};
use knee_fleet::{Fleet, FleetOptions, Patience, Selector};
use knee_load::spec::parse_duration;
use knee_load::time::Nanos;
use std::time::Duration;

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Fleet")]
pub struct FleetArgs {
    /// NATS where 'knee agent's wait on other machines: they make the load together, each its exact
    /// share, such as nats://nats:4222
    #[arg(long, value_name = "URL", hide_short_help = true)]
    fleet: Option<String>,

    /// Agents to use, by name or label: zone=a,zone=b [default: all]
    #[arg(long, value_name = "LIST", value_parser = Selector::parse, requires = "fleet")]
    #[arg(hide_short_help = true)]
    agents: Option<Selector>,

    /// Least number of agents to begin with [default: 1]
    #[arg(long, value_name = "N", value_parser = parse_count, requires = "fleet")]
    #[arg(hide_short_help = true)]
    agents_min: Option<u32>,

    #[command(flatten)]
    patience: PatienceArgs,

    /// Go on with the other agents where one is lost between trials
    #[arg(long, requires = "fleet", hide_short_help = true)]
    allow_loss: bool,

    #[command(flatten)]
    nats: NatsArgs,
}

/// Time to wait for the rest of a fleet, which may start at the same time.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct PatienceArgs {
    /// Time to wait for NATS and what is needed there, such as 5m [default: 0s]
    #[arg(long, value_name = "T", value_parser = parse_duration, hide_short_help = true)]
    fleet_wait: Option<Nanos>,
}

impl PatienceArgs {
    /// The same for the fleet, which says on standard error what it waits for.
    pub fn resolve(self) -> Patience {
        let limit = self.fleet_wait.unwrap_or(Nanos::ZERO);
        let tell = |line: &str| Notes { quiet: false }.tell(line);
        Patience { limit: Duration::from_nanos(limit.0), tell }
    }
}

impl FleetArgs {
    /// Whether a fleet is to make the load.
    pub fn is_asked_for(&self) -> bool {
        self.fleet.is_some()
    }

    /// The fleet, ready for trials; `None` where none was asked for. `threads`: of each agent.
    pub fn gather(&self, threads: Option<u32>) -> Result<Option<Fleet>, Failure> {
        let Some(url) = &self.fleet else {
            return match self.patience.fleet_wait {
                None => Ok(None),
                Some(_) => Err(Failure::argument("--fleet-wait", "needs --fleet")),
            };
        };
        // A container's first process has no default action for SIGTERM while it waits.
        interrupt::install()
            .map_err(|e| Failure::input(format!("SIGTERM cannot be handled: {e}")))?;
        let options = FleetOptions {
            access: self.nats.access("--fleet", Some(url))?,
            select: self.agents.clone().unwrap_or_default(),
            agents_min: self.agents_min.unwrap_or(1),
            patience: self.patience.resolve(),
            allow_loss: self.allow_loss,
            threads,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: started_at::now(),
        };
        let fleet = Fleet::gather(options).map_err(RunError::from)?;
        Ok(Some(fleet))
    }

    /// Adds the options as they can be typed again: with the agents that were found.
    pub fn tell(fleet: Option<&Fleet>, options: &mut ResolvedOptions) {
        if let Some(fleet) = fleet {
            options.put("fleet", fleet.place());
            let names = fleet.agents().map(|facts| facts.name.as_str());
            options.put("agents", names.collect::<Vec<_>>().join(","));
        }
    }

    /// What the machines that make the load permit: this one, or the agents'.
    pub fn machine(fleet: Option<&Fleet>, here: &Machine) -> Machine {
        let Some(fleet) = fleet else {
            return *here;
        };
        let sum = |of: fn(&knee_fleet::AgentFacts) -> u32| {
            fleet.agents().map(of).fold(0, u32::saturating_add).max(1)
        };
        Machine {
            cpus: sum(|facts| facts.cores),
            open_files: OpenFiles {
                limit: u64::from(sum(|facts| facts.connections_max)) + RESERVED_FILES,
                per_connection: 1,
            },
        }
    }
}
