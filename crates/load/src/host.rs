//! The machine that makes the load.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
