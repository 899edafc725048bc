//! What agents and coordinators say to each other, and where.
//!
//! | subject | what |
//! | --- | --- |
//! | `knee.agent.NAME.VERB` | a request to one agent, answered by it |
//! | `knee.beat.RUN.NAME` | an agent's state, twice a second while it has something to do |
//! | `knee.live.RUN.NAME` | what it has measured so far; may be lost |
//! | `knee.result.RUN.TRIAL.NAME.PIECE` | what it measured, stored by JetStream |
//! | `knee.inbox.NAME.>` | answers to what it asked; a coordinator has the name `_coordinator` |
//!
//! Each subject that an agent reads or writes has its name in a place of its own, so that a login
//! can be permitted those of one agent. `deploy/nats.conf` has the permissions.

use crate::part::Part;
use knee_core::measure::Trial;
use knee_core::spec::{HttpVersion, TrialSpec, WorkerRange};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// The version of this language: agents of another one are refused.
pub const PROTOCOL: u32 = 2;

/// The bucket of the agents' leases, by name.
pub(crate) const AGENTS: &str = "knee-agents";
/// The bucket of the coordinator's lease.
pub(crate) const COORDINATOR: &str = "knee-coordinator";
/// The bucket of what was planned, by run.
pub(crate) const PLANS: &str = "knee-plans";
/// The stream of results.
pub(crate) const RESULTS: &str = "knee-results";

/// Who does not renew its lease for so long is gone, …
pub(crate) const LEASE: Duration = Duration::from_secs(12);
/// … so it is renewed this often.
pub(crate) const RENEW: Duration = Duration::from_secs(3);
/// An agent that is silent for so long in a trial is lost.
pub(crate) const SILENT: Duration = Duration::from_secs(10);
/// How often an agent says what it is doing.
pub(crate) const BEAT: Duration = Duration::from_millis(500);
/// Who ends says so within this: NATS may be away, and then nobody hears it.
pub(crate) const FAREWELL: Duration = Duration::from_secs(2);
/// So long results and plans are kept.
pub(crate) const KEPT: Duration = Duration::from_secs(24 * 3600);

/// The only key of [`COORDINATOR`].
pub(crate) const LEASE_KEY: &str = "lease";

/// Which piece of how many a message is.
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

/// Where the pieces of a result lie. `agent`: or [`SPEC`].
pub(crate) fn result_subject(key: &TrialKey, agent: &str, piece: &str) -> String {
    format!("knee.result.{}.{}.{agent}.{piece}", key.run, key.trial)
}

/// In the place of an agent's name: what was asked of all. No agent has such a name.
pub(crate) const SPEC: &str = "_spec";

/// In the place of an agent's name: who conducts, lists or collects.
pub(crate) const COORDINATORS_INBOX: &str = "_coordinator";

pub(crate) fn inbox_prefix(name: &str) -> String {
    format!("knee.inbox.{name}")
}

/// What an agent is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// What time it is there: [`Reading`].
    Clock,
    /// Takes a piece of an [`Order`].
    Piece,
    /// Makes all ready for its part of the order whose pieces it has: [`Prepare`], answered by
    /// [`Answer`].
    Prepare,
    /// When to begin: [`Go`], answered by [`Answer`].
    Go,
    /// The trial does not take place.
    Cancel,
    /// The trial ends early with what was measured.
    Stop,
    /// A piece of the result that it keeps.
    Result,
    /// The result has arrived.
    Thanks,
    /// Which version of HTTP a target speaks: [`Greeted`].
    Greet,
    /// Where an overload's target is: [`Aimed`].
    Aim,
}

impl Verb {
    const ALL: [Verb; 10] = [
        Verb::Clock,
        Verb::Piece,
        Verb::Prepare,
        Verb::Go,
        Verb::Cancel,
        Verb::Stop,
        Verb::Result,
        Verb::Thanks,
        Verb::Greet,
        Verb::Aim,
    ];

    fn word(self) -> &'static str {
        match self {
            Verb::Clock => "clock",
            Verb::Piece => "piece",
            Verb::Prepare => "prepare",
            Verb::Go => "go",
            Verb::Cancel => "cancel",
            Verb::Stop => "stop",
            Verb::Result => "result",
            Verb::Thanks => "thanks",
            Verb::Greet => "greet",
            Verb::Aim => "aim",
        }
    }

    pub(crate) fn of_subject(subject: &str) -> Option<Verb> {
        let word = subject.rsplit('.').next()?;
        Verb::ALL.into_iter().find(|verb| verb.word() == word)
    }
}

/// Which trial of which run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialKey {
    /// The run's name, made of random letters.
    pub run: String,
    /// Its number, from 0.
    pub trial: u32,
}

impl fmt::Display for TrialKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.run, self.trial)
    }
}

/// An agent, as it says of itself in its lease. One of another version may say less.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentFacts {
    /// Its name: letters, digits, `-` and `_`.
    pub name: String,
    /// [`PROTOCOL`] as it knows it.
    pub protocol: u32,
    /// knee's version.
    pub version: String,
    /// Its host's name.
    pub host: String,
    /// Its process there.
    pub pid: u32,
    /// Processors that it may use.
    pub cores: u32,
    /// Kernel release of its host.
    pub kernel: String,
    /// Connections that it may have open at once.
    pub connections_max: u32,
    /// What it is selected by.
    pub labels: Vec<(String, String)>,
    /// What it sends load to, beside loopback, in words.
    pub targets: Vec<String>,
    /// The most operations per second that it makes; absent: as many as it can.
    pub rate_max: Option<f64>,
    /// What it does: the run, or nothing.
    pub run: Option<String>,
}

/// Who conducts an experiment, as its lease says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoordinatorFacts {
    /// Its run.
    pub run: String,
    /// Its host's name.
    pub host: String,
    /// Its process there.
    pub pid: u32,
    /// When it began, as people read it.
    pub since: String,
}

/// What was planned of a run, for those who collect what is left of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PlanFacts {
    /// The last trial that was begun.
    pub key: TrialKey,
    /// Who was to make it, and which workers.
    pub agents: Vec<(String, WorkerRange)>,
    /// When it was begun, as people read it.
    pub started_at: String,
    /// Which pieces what was asked has.
    pub pieces: u32,
}

/// What agents are to do. It goes from the coordinator to each agent and is stored nowhere: it may
/// have secrets of the target in it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub spec: TrialSpec,
    /// The files that the spec names, with what is in them.
    pub files: Vec<(String, Vec<u8>)>,
}

/// Which part of the trial is an agent's, once it has the order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Prepare {
    pub key: TrialKey,
    pub crew: WorkerRange,
}

/// An answer of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// It is so.
    Yes,
    /// It cannot be, for this reason.
    No(String),
    /// The target cannot be reached, for this reason.
    Unreachable(String),
}

/// What a target said to an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Greeted {
    /// What it speaks.
    pub version: HttpVersion,
    /// The address that answered, as the agent sees it.
    pub address: String,
}

/// Where an agent sees the target of an overload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aimed {
    /// Its address.
    pub address: SocketAddr,
    /// Whether it answered a connect.
    pub answers: bool,
}

/// When a trial begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Go {
    pub key: TrialKey,
    /// By the agent's own monotonic clock.
    pub at_ns: u64,
}

/// What an agent's clocks say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reading {
    /// Its monotonic clock as the question came, …
    pub came_ns: u64,
    /// … and as the answer went.
    pub went_ns: u64,
    /// How far its time of day is ahead of that clock.
    pub realtime_ahead_ns: i64,
    /// Whether its kernel calls its time of day synchronised.
    pub is_synchronised: bool,
    /// How far that is from the true one at the most, where chrony runs there.
    pub chrony_error_ns: Option<u64>,
}

/// What an agent is doing with a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Beat {
    pub key: TrialKey,
    pub doing: Doing,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Doing {
    /// The trial is prepared, or runs, or its result is being stored.
    Busy,
    /// The result is stored, in so many pieces.
    Stored(u32),
    /// The result is kept here, in so many pieces, as it cannot be stored for this reason.
    Kept(u32, String),
    /// The trial came to nothing, for this reason.
    Failed(String),
}

/// What an agent has measured so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    pub key: TrialKey,
    /// The last interval that is in it, with the sums of all up to it, coarse.
    pub sum: Part,
}

/// What an agent delivers of a trial.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Delivered {
    pub agent: String,
    pub crew: WorkerRange,
    /// How long after the common beginning the last of its workers began.
    pub begun_late_ns: u64,
    /// What it measured. Its spec is an outline, as it may have had secrets.
    pub trial: Trial,
    /// What it contributed to each interval.
    pub parts: Vec<Part>,
}

/// An agent of a test.
#[cfg(test)]
pub(crate) fn facts_of_test(name: &str) -> AgentFacts {
    AgentFacts {
        name: name.to_owned(),
        protocol: PROTOCOL,
        version: "1".to_owned(),
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
