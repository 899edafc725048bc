//! Patient operations beside a load, which show how long a queue is.

use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// Sentinels of a trial: single operations, each on a new connection and without the users'
/// timeout, outside all other figures. In a queue that is first come, first served, the wait of one
/// is the length of the queue when it began. They also decide when the trial ends. All times but
/// `every` are from the begin of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentinelSpec {
    /// Time from the start of one to the start of the next.
    pub every: Nanos,
    /// Those that began before show what the wait is without an overload.
    pub before: Nanos,
    /// A wait up to this is none that an overload leaves.
    pub harmless: Nanos,
    /// Those that began from then on show what becomes of the queue: the overload has ended, and so
    /// have the retries of what it made fail.
    pub from: Nanos,
    /// The trial ends at this time or later.
    pub ends_from: Nanos,
    /// At this time it ends though it is not known whether the wait falls.
    pub undecided_until: Nanos,
    /// It goes on to the end of the window while the wait falls. Otherwise it ends once it is known
    /// that it falls.
    pub follows_fall: bool,
    /// Time for which the wait has to be as before, for the trial to end.
    pub calm: Nanos,
}
