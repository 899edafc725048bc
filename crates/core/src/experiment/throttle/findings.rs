//! Findings about how a machine waits and holds a rate.

mod rates;
#[cfg(test)]
mod tests;
mod waits;

pub(super) use rates::{THROTTLE_NOT_HELD, hold_findings};
pub(super) use waits::{not_permitted, wait_findings};

use crate::finding::Code;

/// All kinds of findings of `knee throttle`.
pub const CODES: &[Code] = &[
    waits::SLEEP_OVERSHOOTS,
    waits::TIMER_SLACK,
    waits::HOST_STEALS,
    waits::WAITS_END_EARLY,
    waits::WAIT_NOT_PERMITTED,
    rates::RATE_NOT_HELD,
    rates::HELD_IN_LUMPS,
    rates::THROTTLE_LATE,
    rates::OPERATIONS_TOO_LONG,
    THROTTLE_NOT_HELD,
];
