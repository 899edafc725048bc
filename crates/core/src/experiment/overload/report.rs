//! The answer of `knee overload`.

use crate::measure::{Outcomes, SynSource};
use crate::spec::CloseKind;
use serde::{Deserialize, Serialize};

/// What the server does when more connections are offered than it serves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OverloadConclusion {
    /// What the server serves at the most, per second, over the saturated levels.
    pub capacity_per_s: f64,
    /// Simple clients: request rate against their number, ascending.
    pub simple: Vec<SimpleRow>,
    /// S-Clients: request rate against descriptors, ascending.
    pub sclients: Vec<SClientRow>,
    /// Slope of the first-SYN rate less what is served over descriptors, past saturation: 1/T.
    pub slope_per_descriptor: Option<f64>,
    /// Coefficient of determination of that line.
    pub r_squared: Option<f64>,
    /// What counted the SYNs.
    pub syn_source: SynSource,
    /// The highest rate of first SYNs that was reached.
    pub max_syn_per_s: f64,
    /// The rate up to which the generator is not the limit, as far as was seen.
    #[serde(default)]
    pub generator_limit_per_s: Option<f64>,
    /// By how much the first SYNs differ from served (of sessions, established) + D/T at the most,
    /// past saturation, in percent.
    #[serde(default)]
    pub deviation_percent: Option<f64>,
    /// T: a connect that is not established for so long is given up and replaced.
    #[serde(default)]
    pub connect_timeout_ns: u64,
    /// How connections were closed, which changes what the server's host keeps of them.
    #[serde(default)]
    pub close: CloseKind,
    /// The conclusion in one or two sentences for a person.
    pub answer: String,
}

/// Simple clients at one level.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SimpleRow {
    /// Clients.
    pub clients: u32,
    /// SYNs that arrived at the server per second, repeated ones included.
    pub syn_per_s: f64,
    /// First SYNs per second.
    pub first_syn_per_s: f64,
    /// Responses per second; of sessions, those that came to their end.
    pub served_per_s: f64,
    /// 95 % confidence interval of it.
    #[serde(default)]
    pub served_ci95_per_s: Option<[f64; 2]>,
    /// Attempts by their end.
    #[serde(default)]
    pub outcomes: Outcomes,
    /// Connections in the server's accept queue at the most, where somebody looked.
    #[serde(default)]
    pub accept_queue_max: Option<u32>,
    /// How many it may hold.
    #[serde(default)]
    pub accept_queue_limit: Option<u32>,
    /// Share of the server's processors that was busy, in percent of all, where somebody looked.
    #[serde(default)]
    pub server_busy_percent: Option<f64>,
}

/// S-Clients at one level.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SClientRow {
    /// Descriptors of all S-Clients together.
    pub descriptors: u32,
    /// Connection starts per second that the level stands for: served + D/T; of sessions,
    /// established + D/T.
    #[serde(default)]
    pub offered_per_s: f64,
    /// SYNs that arrived at the server per second, repeated ones included.
    pub syn_per_s: f64,
    /// First SYNs per second.
    pub first_syn_per_s: f64,
    /// Responses per second; of sessions, those that came to their end.
    pub served_per_s: f64,
    /// 95 % confidence interval of it.
    #[serde(default)]
    pub served_ci95_per_s: Option<[f64; 2]>,
    /// Attempts by their end.
    pub outcomes: Outcomes,
    /// Whether it offers more than the server serves.
    #[serde(default)]
    pub past_saturation: bool,
    /// Connections in the server's accept queue at the most, where somebody looked.
    #[serde(default)]
    pub accept_queue_max: Option<u32>,
    /// How many it may hold.
    #[serde(default)]
    pub accept_queue_limit: Option<u32>,
    /// Share of the server's processors that was busy, in percent of all, where somebody looked.
    #[serde(default)]
    pub server_busy_percent: Option<f64>,
}
