//! Made-up measurements for tests.

use knee_load::experiment::throttle::{
    Chore, HoldMethod, HoldSpec, HoldStats, HoldTrial, WaitMethod, WaitSpec, WaitStats, WaitTrial,
};
use knee_load::spec::{ArrivalLaw, Margins, Rate};
use knee_load::throttle::CatchUp;
use knee_load::time::Nanos;

/// Waits of `delay` that ended late by so much each, at a cost of 3 µs per wait.
pub(crate) fn waits(method: WaitMethod, delay: Nanos, late_ns: &[u64]) -> WaitTrial {
    let mut waits = WaitStats::default();
    for &late in late_ns {
        waits.record(delay, delay + Nanos(late));
        waits.elapsed += delay + Nanos(late);
        waits.cpu += Nanos::from_micros(3);
    }
    WaitTrial {
        spec: WaitSpec {
            method,
            delay,
            duration: Nanos::from_secs(1),
            chore: Chore::None,
            margins: Margins::UNKNOWN,
        },
        waits,
    }
}

/// Operations one after another at 1,000/s for a second, each of `operation` nanoseconds. Each
/// begins late by what `late` makes of its number.
pub(crate) fn holds(
    method: HoldMethod,
    operation: Nanos,
    late: impl Fn(u64) -> Nanos,
) -> HoldTrial {
    let rate = Rate::per_second(1_000).expect("a rate");
    let mut holds = HoldStats::default();
    for k in 0..1_000 {
        let intended = rate.moment(k);
        holds.record(intended, intended + late(k));
        holds.operating += operation;
    }
    holds.elapsed = holds.last + Nanos::from_millis(1);
    holds.cpu = holds.operating;
    HoldTrial {
        spec: HoldSpec {
            method,
            rate,
            arrival: ArrivalLaw::Constant,
            catch_up: CatchUp::ALL,
            wait_min: Nanos::ZERO,
            duration: Nanos::from_secs(1),
            chore: Chore::Busy(operation),
            seed: 1,
            margins: Margins::UNKNOWN,
        },
        holds,
    }
}
