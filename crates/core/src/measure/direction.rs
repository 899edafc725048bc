//! Which way payload goes.

use serde::{Deserialize, Serialize};

/// Which way a flow's payload goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From here to the service.
    Up,
    /// From the service to here.
    Down,
}
