//! How a generator's workers waited.

use super::Histogram;
use crate::polling::WayChange;
use crate::spec::WaitPolicy;
use serde::{Deserialize, Serialize};

/// How workers waited for their deadlines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitUse {
    /// What was asked for.
    pub policy: WaitPolicy,
    /// The share of the window in which a worker polled all the time by its own decision, in
    /// percent; mean over the workers.
    pub polling_percent: f64,
    /// The share of the window that a worker spent polling in vain, in percent; mean over the
    /// workers.
    pub polled_percent: f64,
    /// When which worker began to poll all the time, and when it slept again; in order.
    pub changes: Vec<WayChange>,
    /// How late sleeps ended that no event cut short, from the begin of the load.
    pub lateness: Histogram,
}
