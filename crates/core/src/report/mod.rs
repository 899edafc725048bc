//! The one value that a whole experiment ends in. Its JSON is the public interface: keys are
//! stable, more may be added; times are integers in nanoseconds ending in `_ns` (or inside an
//! object whose key does), rates are per second and end in `_per_s`.

mod conclusion;
mod finding;
mod trial;

pub use conclusion::{BestWithinBound, Conclusion, ModelFit, RunConclusion, SweepConclusion};
pub use finding::{Finding, Severity};
pub use trial::{
    Dispersion, GeneratorReport, LatencyReport, LittlesLaw, OfferedReport, QuantilesReport,
    TrialReport,
};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The schema that this version writes and reads.
pub const SCHEMA: &str = "knee.report/1";

/// A whole experiment: what was asked, what was measured, what it means.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Always [`SCHEMA`]; a reader refuses any other.
    pub schema: String,
    /// `run`, `sweep`, `analyze sweep`.
    pub command: String,
    /// The version of knee that wrote it.
    pub knee_version: String,
    /// When the experiment began, RFC 3339 in UTC.
    pub started_at: String,
    /// Seeds every random choice.
    pub seed: u64,
    /// Whether the numbers can be trusted.
    pub verdict: Verdict,
    /// The user ended it early.
    pub interrupted: bool,
    /// The machine it ran on.
    pub host: Host,
    /// Everything needed to repeat it: the resolved options by name, in the words of the command
    /// line.
    pub spec: BTreeMap<String, serde_json::Value>,
    /// The trials in the order they were run.
    pub trials: Vec<TrialReport>,
    /// What follows from them, the gravest first.
    pub findings: Vec<Finding>,
    /// The experiment's own answer.
    pub conclusion: Conclusion,
}

/// Whether the generator measured the target or itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The numbers are the target's.
    #[default]
    Valid,
    /// The generator limited or distorted the result; findings say how.
    Invalid,
}

/// The machine that the generator ran on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Processors this process may use.
    pub cpus: u32,
    /// Kernel release.
    pub kernel: String,
    /// Default TCP congestion control, where known.
    pub congestion_control: String,
    /// The backend used: `epoll` or `io_uring`; empty where nothing was run.
    pub backend: String,
    /// Processor model, where known.
    pub cpu_model: String,
    /// Further facts by name.
    #[serde(default)]
    pub facts: BTreeMap<String, String>,
}
