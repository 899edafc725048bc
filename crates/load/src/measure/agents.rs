//! The contribution of each agent to a trial.

use serde::{Deserialize, Serialize};

/// The contribution of one agent to a trial. Times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentMeasured {
    /// Its name, by which it was asked.
    pub agent: String,
    /// Its part of the load, in percent: its workers of all workers.
    pub share_percent: f64,
    /// Worker threads.
    pub workers: u32,
    /// Why nothing is known of what it measured; absent where it delivered. The figures below are
    /// zero or absent then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_because: Option<String>,
    /// Its clock, as the coordinator read it before the trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<AgentClock>,
    /// How long after the common beginning the last of its workers began, by its own clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun_late_ns: Option<u64>,
    /// Operations intended in the window.
    pub attempted: u64,
    /// Operations that ended in a whole response.
    pub completed: u64,
    /// Operations (or sessions) started per second.
    pub started_per_s: f64,
    /// Median response time.
    pub p50_ns: Option<u64>,
    /// 90th percentile of response times.
    pub p90_ns: Option<u64>,
    /// 99th percentile of response times.
    pub p99_ns: Option<u64>,
    /// Mean response time.
    pub mean_ns: Option<f64>,
    /// 95 % confidence interval of it by batch means; absent where the data permit none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ns_ci95: Option<[f64; 2]>,
    /// 99th percentile of its own lateness: started − intended.
    pub pacing_error_p99_ns: Option<u64>,
    /// The share of a core that its busiest worker used, in percent.
    pub busiest_worker_percent: f64,
    /// Share of its host's processor time that the hypervisor gave to others, in percent.
    pub steal_percent: Option<f64>,
    /// The longest time in which its process did not run, or was late by.
    #[serde(default)]
    pub stall_ns_max: u64,
    /// Why JetStream could not store its result; absent where it did. The coordinator fetched the
    /// result from the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_because: Option<String>,
    /// Reasons for which a trial of it alone would be invalid, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invalid_because: Vec<String>,
}

/// The contribution of one agent to an interval of a running trial. It is not kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentInterval {
    /// Its name.
    pub agent: String,
    /// It has not reported this interval. Its counts come with a later one.
    pub is_silent: bool,
    /// Operations that completed with a response.
    pub completed: u64,
    /// Operations that ended otherwise.
    pub errors: u64,
    /// 99th percentile of response time, within 1 %; absent where nothing completed.
    pub p99_ns: Option<u64>,
}

/// The clock of an agent, as the coordinator read it over the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentClock {
    /// How far its time of day is ahead of the coordinator's; negative: behind.
    pub offset_ns: i64,
    /// Half the quickest round trip: the agent began within this time of the intended one.
    pub uncertainty_ns: u64,
    /// Whether its kernel says that its time of day is synchronised (adjtimex(2)).
    pub is_synchronised: bool,
    /// How far its time of day is from the true one at the most, as chrony says there; absent where
    /// chrony does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chrony_error_ns: Option<u64>,
    /// Whether `offset_ns` is no more than chrony permits, there and at the coordinator; absent
    /// where either has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agrees_with_chrony: Option<bool>,
}
