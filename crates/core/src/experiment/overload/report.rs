//! The answer of `knee overload`.

use crate::trial::figure::RateRange;
use crate::trial::report::TrialReport;
use knee_load::measure::{Outcomes, SynSource};
use knee_load::spec::{CloseKind, Level};
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
    /// The rate up to which the generator was not the limit in any trial.
    pub generator_limit_per_s: Option<f64>,
    /// By how much the first SYNs differ from served (of sessions, established; over datagrams,
    /// answered) + D/T at the most, past saturation, in percent.
    pub deviation_percent: Option<f64>,
    /// T: time limit for establishing a connection, which is then closed and replaced. Over
    /// datagrams, for the answer.
    #[serde(default)]
    pub connect_timeout_ns: u64,
    /// How connections were closed, which changes what the server's host keeps of them. `null`
    /// where attempts are requests in datagrams: then each sends its request in place of a SYN.
    #[serde(default = "orderly")]
    pub close: Option<CloseKind>,
    /// Whether service came back after the last level; `null` in reports of before it was asked.
    pub recovery: Option<Box<Recovery>>,
    /// The conclusion in a few sentences for a person.
    pub answer: String,
}

/// How connections were closed before reports said it.
fn orderly() -> Option<CloseKind> {
    Some(CloseKind::Fin)
}

impl OverloadConclusion {
    /// Whether attempts are requests in datagrams, and no connects.
    pub fn is_of_datagrams(&self) -> bool {
        self.close.is_none()
    }
}

/// What was measured at one level.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LevelRow {
    /// SYNs that arrived at the server per second, repeated ones included. Over datagrams, requests
    /// that the generator sent.
    pub syn_per_s: f64,
    /// First SYNs per second; over datagrams, requests sent.
    pub first_syn_per_s: f64,
    /// Responses per second; of sessions, those that came to their end. The least that is known
    /// where there is a range.
    pub served_per_s: f64,
    /// 95 % confidence interval of it.
    pub served_ci95_per_s: Option<[f64; 2]>,
    /// What is known of it where it is not determined; absent where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub served_range_per_s: Option<RateRange>,
    /// Attempts by their end.
    #[serde(default)]
    pub outcomes: Outcomes,
    /// Connections in the server's accept queue at the most, where somebody looked.
    pub accept_queue_max: Option<u32>,
    /// How many it may hold.
    pub accept_queue_limit: Option<u32>,
    /// Share of the server's processors that was busy, in percent of all, where somebody looked.
    pub server_busy_percent: Option<f64>,
}

/// Simple clients at one level.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SimpleRow {
    /// Clients.
    pub clients: u32,
    /// What was measured.
    #[serde(flatten)]
    pub row: LevelRow,
}

/// S-Clients at one level.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SClientRow {
    /// Descriptors of all S-Clients together.
    pub descriptors: u32,
    /// Connection starts per second that the level stands for: served + D/T; of sessions,
    /// established + D/T; over datagrams, answered + D/T.
    #[serde(default)]
    pub offered_per_s: f64,
    /// What was measured.
    #[serde(flatten)]
    pub row: LevelRow,
    /// Whether it offers more than the server serves.
    #[serde(default)]
    pub past_saturation: bool,
}

/// The base load, offered again after the last level.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recovery {
    /// Whether the server serves it as it did before the heavier levels.
    pub came_back: CameBack,
    /// Why that is not known; empty where it is.
    pub because: String,
    /// The base load: the first level that was measured before the heaviest.
    pub level: Option<Level>,
    /// What the base load showed at first.
    pub before: Option<LevelRow>,
    /// What it showed after the last level; `null` where it was not offered again.
    pub again: Option<LevelRow>,
}

/// Whether service came back after an overload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CameBack {
    /// Not known.
    #[default]
    NotJudged,
    /// As much is served as before, within chance.
    Yes,
    /// Less over the whole level, but as much as before in its second half.
    Late,
    /// Less than nine tenths of what was served before.
    No,
}

/// The label of the base load offered again begins with this.
pub(crate) const BASE_AGAIN: &str = "base again";

/// Whether this trial is the base load offered again after the last level.
pub fn is_base_again(trial: &TrialReport) -> bool {
    trial.label.starts_with(BASE_AGAIN)
}

/// The levels, and the base load offered again after the last of them, if it was.
pub fn parted(trials: &[TrialReport]) -> (&[TrialReport], Option<&TrialReport>) {
    match trials.split_last() {
        Some((last, levels)) if is_base_again(last) => (levels, Some(last)),
        _ => (trials, None),
    }
}
