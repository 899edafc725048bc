//! Subjects and messages of agents and coordinators.
//!
//! | subject | what |
//! | --- | --- |
//! | `knee.agent.NAME.VERB` | a request to one agent, answered by it |
//! | `knee.beat.RUN.NAME` | an agent's state, twice a second while it has something to do |
//! | `knee.live.RUN.NAME` | what it has measured so far; may be lost |
//! | `knee.result.RUN.TRIAL.NAME.PIECE` | what it measured, stored by JetStream |
//! | `knee.inbox.NAME.>` | answers to what it asked; a coordinator has the name `_coordinator` |
//!
//! Each subject that an agent reads or writes has its name as a separate token. So a login can be
//! limited to one agent. `deploy/nats.conf` has the permissions.

use crate::interval_share::IntervalShare;
use knee_engine::error::RunError;
use knee_load::measure::Trial;
use knee_load::spec::{HttpVersion, TrialSpec, WorkerRange};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// Version of this protocol. Agents of another one are refused.
pub const PROTOCOL: u32 = 3;

/// knee's version, which all machines of a fleet have to have.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The bucket of the agents' leases, by name.
pub(crate) const AGENTS: &str = "knee-agents";
/// The bucket of the coordinator's lease.
pub(crate) const COORDINATOR: &str = "knee-coordinator";
/// The bucket of plans, by run.
pub(crate) const PLANS: &str = "knee-plans";
/// The stream of results.
pub(crate) const RESULTS: &str = "knee-results";

/// Time after which a lease that is not renewed ends.
pub(crate) const LEASE: Duration = Duration::from_secs(12);
/// Interval of renewing a lease.
pub(crate) const RENEW: Duration = Duration::from_secs(3);
/// Silence after which an agent is lost in a trial.
pub(crate) const SILENT: Duration = Duration::from_secs(10);
/// Interval of an agent's heartbeats.
pub(crate) const BEAT: Duration = Duration::from_millis(500);
/// Time limit of the last messages of a process that ends: NATS may be away.
pub(crate) const FAREWELL: Duration = Duration::from_secs(2);
/// Time for which results and plans are kept.
pub(crate) const KEPT: Duration = Duration::from_secs(24 * 3600);

/// The only key of [`COORDINATOR`].
pub(crate) const LEASE_KEY: &str = "lease";

/// Header of a message that is a piece: its number, and how many there are.
pub(crate) const PIECE: &str = "Knee-Piece";

pub(crate) fn agent_subject(agent: &str, verb: Verb) -> String {
    format!("knee.agent.{agent}.{}", verb.word())
}

pub(crate) fn beat_subject(run: &str, agent: &str) -> String {
    format!("knee.beat.{run}.{agent}")
}

pub(crate) fn live_subject(run: &str, agent: &str) -> String {
    format!("knee.live.{run}.{agent}")
}

/// Subject of a piece of a result. `agent` may be [`SPEC`].
pub(crate) fn result_subject(key: &TrialKey, agent: &str, piece: &str) -> String {
    format!("knee.result.{}.{}.{agent}.{piece}", key.run, key.trial)
}

/// In place of an agent's name: the spec of the trial. No agent has such a name.
pub(crate) const SPEC: &str = "_spec";

/// In place of an agent's name: a coordinator, or a command that lists or collects.
pub(crate) const COORDINATORS_INBOX: &str = "_coordinator";

pub(crate) fn inbox_prefix(name: &str) -> String {
    format!("knee.inbox.{name}")
}

/// Requests to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// Returns the agent's clocks: [`ClockReading`].
    Clock,
    /// Takes a piece of an [`TrialOrder`].
    Piece,
    /// Prepares its part of the order whose pieces it has: [`PrepareRequest`], answered by
    /// [`AgentAnswer`].
    Prepare,
    /// Starts the trial: [`GoRequest`], answered by [`AgentAnswer`].
    Go,
    /// Cancels the trial.
    Cancel,
    /// Ends the trial early, with a result.
    Stop,
    /// Returns a piece of the kept result.
    Result,
    /// Notes that the result has arrived.
    Thanks,
    /// Asks which version of HTTP a target speaks: [`TargetGreeting`].
    Greet,
    /// Asks for the address of an overload's target: [`TargetAddress`].
    Aim,
}

impl Verb {
    fn word(self) -> &'static str {
        VERBS.iter().find(|(verb, _)| *verb == self).map_or("", |(_, word)| *word)
    }

    pub(crate) fn of_subject(subject: &str) -> Option<Verb> {
        let word = subject.rsplit('.').next()?;
        VERBS.iter().find(|(_, other)| *other == word).map(|(verb, _)| *verb)
    }
}

/// Verbs as they stand in subjects.
const VERBS: &[(Verb, &str)] = &[
    (Verb::Clock, "clock"),
    (Verb::Piece, "piece"),
    (Verb::Prepare, "prepare"),
    (Verb::Go, "go"),
    (Verb::Cancel, "cancel"),
    (Verb::Stop, "stop"),
    (Verb::Result, "result"),
    (Verb::Thanks, "thanks"),
    (Verb::Greet, "greet"),
    (Verb::Aim, "aim"),
];

/// A trial of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialKey {
    /// Name of the run, made of random letters.
    pub run: String,
    /// Number of the trial, from 0.
    pub trial: u32,
}

impl fmt::Display for TrialKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.run, self.trial)
    }
}

/// Properties of an agent, in its lease. An agent of another version may leave some out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentFacts {
    /// Its name: letters, digits, `-` and `_`.
    pub name: String,
    /// [`PROTOCOL`] of the agent.
    pub protocol: u32,
    /// knee's version.
    pub version: String,
    /// Name of its host.
    pub host: String,
    /// Process on that host.
    pub pid: u32,
    /// Processors that it may use.
    pub cores: u32,
    /// Kernel release of its host.
    pub kernel: String,
    /// Connections that it may have open at once.
    pub connections_max: u32,
    /// Labels by which it is selected.
    pub labels: Vec<(String, String)>,
    /// Networks that it sends load to, beside loopback.
    pub targets: Vec<String>,
    /// Most operations per second that it makes; absent: no limit.
    pub rate_max: Option<f64>,
    /// The run that it works for.
    pub run: Option<String>,
}

/// Properties of a coordinator, in its lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoordinatorFacts {
    /// Run that it conducts.
    pub run: String,
    /// Name of its host.
    pub host: String,
    /// Process on that host.
    pub pid: u32,
    /// Begin of the run, as text.
    pub since: String,
}

/// The plan of a run, for `knee fleet collect`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PlanFacts {
    /// The last trial that was begun.
    pub key: TrialKey,
    /// Agents and their workers.
    pub agents: Vec<(String, WorkerRange)>,
    /// Begin of the run, as text.
    pub started_at: String,
    /// Number of pieces of the stored spec.
    pub pieces: u32,
}

/// An order of a trial. It goes from the coordinator to each agent and is never stored, as it may
/// contain secrets of the target.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TrialOrder {
    pub spec: TrialSpec,
    /// Files that the spec names, with their contents.
    pub files: Vec<(String, Vec<u8>)>,
}

/// Prepares an agent's part of the trial, once it has the order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PrepareRequest {
    pub key: TrialKey,
    pub crew: WorkerRange,
}

/// An answer of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AgentAnswer {
    /// Done.
    Yes,
    /// Refused, for this reason.
    No(String),
    /// The target cannot be reached, for this reason.
    Unreachable(String),
}

impl AgentAnswer {
    /// The reason of a refusal; empty for [`AgentAnswer::Yes`].
    pub(crate) fn reason(&self) -> &str {
        match self {
            AgentAnswer::Yes => "",
            AgentAnswer::No(why) | AgentAnswer::Unreachable(why) => why,
        }
    }
}

impl From<RunError> for AgentAnswer {
    fn from(error: RunError) -> AgentAnswer {
        match error {
            RunError::Unreachable(line) => AgentAnswer::Unreachable(line),
            other => AgentAnswer::No(other.to_string()),
        }
    }
}

/// A target's protocol, as an agent sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TargetGreeting {
    /// Version of HTTP.
    pub version: HttpVersion,
    /// The address that answered, as the agent sees it.
    pub address: String,
}

/// Address of the target of an overload, as an agent sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TargetAddress {
    /// Address of the target.
    pub address: SocketAddr,
    /// Whether it answered a connect.
    pub answers: bool,
}

/// Start of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct GoRequest {
    pub key: TrialKey,
    /// Time of the agent's monotonic clock, in nanoseconds.
    pub at_ns: u64,
}

/// Reading of an agent's clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClockReading {
    /// Monotonic clock when the request came.
    pub came_ns: u64,
    /// Monotonic clock when the answer left.
    pub went_ns: u64,
    /// Time of day minus monotonic clock.
    pub realtime_ahead_ns: i64,
    /// Whether the kernel calls the time of day synchronised.
    pub is_synchronised: bool,
    /// Largest error of the time of day, where chrony runs.
    pub chrony_error_ns: Option<u64>,
}

/// State of an agent's trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Heartbeat {
    pub key: TrialKey,
    pub doing: JobState,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JobState {
    /// The trial is prepared, or runs, or its result is being stored.
    Busy,
    /// The result is stored, in this number of pieces.
    Stored(u32),
    /// The agent keeps the result, in this number of pieces, as it cannot be stored for this
    /// reason.
    Kept(u32, String),
    /// The trial failed, for this reason.
    Failed(String),
}

/// An agent's measurements so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    pub key: TrialKey,
    /// The last interval that is in it, with the sums of all up to it, coarse.
    pub sum: IntervalShare,
}

/// An agent's result of a trial.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct DeliveredPart {
    pub agent: String,
    pub crew: WorkerRange,
    /// Delay of its last worker after the common beginning.
    pub begun_late_ns: u64,
    /// The trial. Its spec is an outline, as the spec may contain secrets.
    pub trial: Trial,
    /// Its share of each interval.
    pub parts: Vec<IntervalShare>,
}

/// An agent of a test.
#[cfg(test)]
pub(crate) fn facts_of_test(name: &str) -> AgentFacts {
    AgentFacts {
        name: name.to_owned(),
        protocol: PROTOCOL,
        version: VERSION.to_owned(),
        host: "host".to_owned(),
        pid: 1,
        cores: 2,
        kernel: "6".to_owned(),
        connections_max: 1_000,
        labels: Vec::new(),
        targets: Vec::new(),
        rate_max: None,
        run: None,
    }
}
