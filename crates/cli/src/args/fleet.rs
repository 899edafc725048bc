//! Agents on other machines that make an experiment together, and how to get at their NATS.

use super::values::{parse_count, parse_whole};
use crate::failure::Failure;
use crate::machine::Machine;
use crate::resolved_options::ResolvedOptions;
use crate::stdio::Notes;
use crate::{input, machine};
use clap::Args;
use knee_engine::{OpenFiles, RESERVED_FILES};
pub use knee_fleet::Fleet;
use knee_fleet::{FleetOptions, NatsAccess, Patience, Selector};
use knee_load::spec::parse_duration;
use knee_load::time::Nanos;
use std::path::PathBuf;
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
        let tell = |line: &str| Notes { quiet: false }.say(line);
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
        let options = FleetOptions {
            access: self.nats.access("--fleet", Some(url))?,
            select: self.agents.clone().unwrap_or_default(),
            agents_min: self.agents_min.unwrap_or(1),
            patience: self.patience.resolve(),
            allow_loss: self.allow_loss,
            threads,
            started_at: machine::now(),
        };
        Ok(Some(Fleet::gather(options)?))
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
            is_fleet: true,
        }
    }
}

/// No password is longer, in bytes.
const SECRET_MAX: usize = 4_096;

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "NATS")]
pub struct NatsArgs {
    /// Context of the 'nats' tool that says where NATS is and how to log in
    /// [default: the environment variable NATS_CONTEXT]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    nats_context: Option<String>,

    /// User of NATS [default: NATS_USER; the password of NATS_PASSWORD]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    nats_user: Option<String>,

    /// File that contains the password
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    nats_password_file: Option<String>,

    /// File that contains a token, in place of a user [default: the token of NATS_TOKEN]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    nats_token_file: Option<String>,

    /// File of a user's credentials [default: NATS_CREDS]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    nats_creds: Option<PathBuf>,

    /// File of a user's nkey seed [default: NATS_NKEY]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    nats_nkey: Option<PathBuf>,

    /// PEM file of the certificates to trust beside the system's [default: NATS_CA]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    nats_ca: Option<PathBuf>,

    /// PEM file of the certificate to show to NATS [default: NATS_CERT]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    nats_cert: Option<PathBuf>,

    /// PEM file of its private key [default: NATS_KEY]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    nats_key: Option<PathBuf>,
}

impl NatsArgs {
    /// Where NATS is, `url` where that is given as `option`.
    pub fn access(&self, option: &str, url: Option<&str>) -> Result<NatsAccess, Failure> {
        if url.is_some_and(|url| url.contains('@')) {
            let wrong = "a password in a URL is visible to other users in 'ps': give it with \
                         NATS_USER and NATS_PASSWORD, or use --nats-creds";
            return Err(Failure::argument(option, wrong));
        }
        let of = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let file = |given: &Option<PathBuf>, name: &str| {
            given.clone().or_else(|| of(name).map(PathBuf::from))
        };
        let secret = |given: &Option<String>, option: &str, name: &str| match given {
            Some(path) => read_secret(option, path).map(Some),
            None => Ok(of(name)),
        };
        let access = NatsAccess {
            url: url.map(str::to_owned).or_else(|| of("NATS_URL")).unwrap_or_default(),
            user: self.nats_user.clone().or_else(|| of("NATS_USER")),
            password: secret(&self.nats_password_file, "--nats-password-file", "NATS_PASSWORD")?,
            token: secret(&self.nats_token_file, "--nats-token-file", "NATS_TOKEN")?,
            creds: file(&self.nats_creds, "NATS_CREDS"),
            nkey: file(&self.nats_nkey, "NATS_NKEY"),
            ca: file(&self.nats_ca, "NATS_CA"),
            cert: file(&self.nats_cert, "NATS_CERT"),
            key: file(&self.nats_key, "NATS_KEY"),
        };
        let access = match self.nats_context.clone().or_else(|| of("NATS_CONTEXT")) {
            Some(context) => access
                .or_context(&context, &contexts())
                .map_err(|e| Failure::input(e.to_string()))?,
            None => access,
        };
        if access.url.is_empty() {
            let wrong = "is missing: give where NATS is, such as nats://127.0.0.1:4222, or set \
                             NATS_URL";
            Err(Failure::argument(option, wrong))
        } else {
            Ok(access)
        }
    }
}

/// Where the `nats` tool keeps its contexts.
fn contexts() -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".config");
    let config = std::env::var_os("XDG_CONFIG_HOME").filter(|path| !path.is_empty());
    config.map_or_else(home, PathBuf::from).join("nats/context")
}

fn read_secret(option: &str, path: &str) -> Result<String, Failure> {
    let text = input::read_text(path)?;
    let text = text.trim_end_matches(['\r', '\n']);
    match text.len() {
        1..=SECRET_MAX if !text.contains('\n') => Ok(text.to_owned()),
        _ => {
            let wrong = format!("'{path}' is to hold one line of up to {SECRET_MAX} bytes");
            Err(Failure::argument(option, wrong))
        }
    }
}

/// A rate in operations per second, at least 1.
pub fn parse_rate_max(text: &str) -> Result<f64, knee_load::spec::ParseError> {
    match parse_whole(text)? {
        0 => Err(knee_load::spec::ParseError(format!(
            "'{text}' is too few: expected at least 1 operation per second"
        ))),
        n => Ok(n as f64),
    }
}
