//! A request of the simulated generator, and what becomes of it.

use knee_load::measure::Outcome;
use knee_load::time::Nanos;

/// A request in flight. Its answer is ignored if its operation has ended meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SimulatedRequest {
    pub(super) ticket: Ticket,
    /// Time of arrival at the station.
    pub(super) arrives: Nanos,
    /// The number of its connection, from 1 on in the order of opening.
    pub(super) connection: u64,
}

/// Outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RequestFate {
    /// A response with a status below 400.
    Served,
    /// A response with a status of 500 or more.
    Rejected,
    /// The connection is refused.
    Refused,
    /// The connection is reset.
    Reset,
}

impl RequestFate {
    pub(super) fn outcome(self) -> Outcome {
        match self {
            RequestFate::Served => Outcome::Ok,
            RequestFate::Rejected => Outcome::HTTP_5XX,
            RequestFate::Refused => Outcome::Refused,
            RequestFate::Reset => Outcome::Reset,
        }
    }
}

/// One use of a slot, which identifies an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket {
    pub(super) slot: u32,
    pub(super) generation: u32,
}

impl Ticket {
    /// The slot of all sentinels; their generation is their number.
    pub(super) const SENTINEL: u32 = u32::MAX;
}
