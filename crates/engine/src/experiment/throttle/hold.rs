//! One row of the table of rates: one method holding one rate.

use super::chore::Work;
use super::course::Course;
use super::pace::{self, Due};
use super::{SLACK_DEFAULT_NS, SLACK_LEAST_NS};
use crate::error::RunError;
use crate::sys::clock::{MonotonicClock, thread_cpu_ns};
use knee_core::arrival::{ArrivalProcess, Arrivals};
use knee_core::experiment::throttle::hold::HoldStats;
use knee_core::experiment::throttle::hold::{HoldMethod, HoldSpec};
use knee_core::spec::{OpenLoad, Share};
use knee_core::time::Nanos;
use std::sync::atomic::AtomicBool;

/// The timer slack that the method is measured with: a program that sleeps as people write it has
/// the default.
pub(super) fn slack_ns(method: HoldMethod) -> u32 {
    match method {
        HoldMethod::Spin | HoldMethod::Throttle => SLACK_LEAST_NS,
        _ => SLACK_DEFAULT_NS,
    }
}

/// Measures the row on the calling thread.
pub(super) fn hold(spec: &HoldSpec, stop: &AtomicBool) -> Result<HoldStats, RunError> {
    let mut work = Work::open(&spec.chore)?;
    let mut pace = pace::of(spec, schedule(spec))?;
    let mut asked = schedule(spec);
    let mut holds = HoldStats::default();
    let cpu_before = thread_cpu_ns();
    let course = Course {
        clock: MonotonicClock::start(),
        end: spec.duration,
        stop,
    };
    'run: while course.goes_on() {
        let (count, intended) = match pace.due(&course)? {
            Due::Next(count) => (count, None),
            Due::At(intended) => (1, Some(intended)),
            Due::Over => break,
        };
        for _ in 0..count {
            let Some(intended) = intended.or_else(|| asked.next()) else {
                break 'run;
            };
            let begun = course.now();
            if begun.max(intended) >= course.end || course.is_stopped() {
                break 'run;
            }
            holds.record(intended, begun);
            if work.is_any() {
                work.perform(&course.clock)?;
                holds.operating += course.now() - begun;
            }
        }
    }
    holds.interrupted = course.is_stopped() && course.now() < course.end;
    holds.elapsed = course.now();
    holds.cpu = Nanos(thread_cpu_ns() - cpu_before);
    pace.tell(&mut holds);
    Ok(holds)
}

/// The schedule that is asked for.
fn schedule(spec: &HoldSpec) -> Arrivals {
    let load = OpenLoad {
        rate: spec.rate,
        arrival: spec.arrival.clone(),
        connections_max: 1,
        in_flight_max: None,
    };
    load.arrivals(Share::WHOLE, spec.seed)
}
