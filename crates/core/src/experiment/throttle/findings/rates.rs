//! What rates say.

use crate::experiment::throttle::analysis::{Hold, rate_row};
use crate::experiment::throttle::hold::HoldMethod;
use crate::experiment::throttle::holds::HoldTrial;
use crate::finding::{Code, Finding, Severity};
use crate::spec::ArrivalLaw;
use crate::time::Nanos;
use crate::words::{exact, number, percent, time};

/// Lateness of the throttle below this is no stall however short its gaps are, in nanoseconds.
const STALL_NS: f64 = 100_000.0;
/// A method's gaps vary by itself, not by the machine, from this multiple of the throttle's
/// variation on.
const OF_ITSELF: f64 = 2.0;
/// A coefficient of variation of the gaps of a constant schedule from which they come in lumps: a
/// Poisson process has 1.
const LUMPY: f64 = 0.5;

const USE_THROTTLE: &str = "use the throttle: knee run does, and in a program knee_core::throttle";
const UNDISTURBED: &str = "repeat on a quieter machine, or on an idle core: taskset -c 1 knee \
                           throttle …; or ask for less: a lower --rate";

pub(super) const OPERATIONS_TOO_LONG: Code = Code {
    name: "operations_too_long",
    cause: "An operation takes longer than the gap between two operations of the schedule. No \
            method can hold this rate with one operation at a time.",
    remedy: "Ask for a lower rate, shorten the operation, or run several at once.",
};

fn operations_too_long(trials: &[HoldTrial]) -> Option<Finding> {
    let holds = || trials.iter().filter_map(|t| Some((t, Hold::of(t)?)));
    if holds().any(|(_, hold)| hold.is_held || hold.has_room()) {
        return None;
    }
    let (trial, quickest) =
        holds().min_by(|(_, a), (_, b)| a.operation_ns.total_cmp(&b.operation_ns))?;
    let (operation_ns, gap_ns) = (quickest.operation_ns, 1e9 / trial.spec.rate.per_s());
    Some(OPERATIONS_TOO_LONG.finding(
        Severity::Warning,
        format!(
            "an operation takes {} and the schedule has one every {}; nothing can hold this rate \
             with one operation at a time",
            time(operation_ns),
            time(gap_ns)
        ),
        [("operation_ns", operation_ns), ("gap_ns", gap_ns)],
        format!(
            "ask for less: --rate {}, or shorten the operation",
            (0.9e9 / operation_ns).floor().max(1.0)
        ),
    ))
}

pub(crate) const THROTTLE_NOT_HELD: Code = Code {
    name: "throttle_not_held",
    cause: "The throttle missed the rate although the operations leave it enough time. Another \
            program or the host used the processor. The other rows had the same disturbance, so \
            the table is INVALID.",
    remedy: "Repeat on a quieter machine or on an idle core, or ask for a lower rate.",
};

pub(super) const RATE_NOT_HELD: Code = Code {
    name: "rate_not_held",
    cause: "A way to hold a rate missed it. Simple loops do, because the time of the operation \
            and the overshoot of each sleep add up.",
    remedy: "Use a schedule of absolute times, as the throttle does.",
};

fn missed(trial: &HoldTrial) -> Option<Finding> {
    let hold = Hold::of(trial).filter(|hold| !hold.is_held)?;
    let row = rate_row(trial)?;
    let method = trial.spec.method;
    let (asked, achieved) = (exact(row.asked_per_s), number(row.achieved_per_s));
    if method == HoldMethod::Throttle && hold.has_room() {
        return Some(THROTTLE_NOT_HELD.finding(
            Severity::Error,
            format!(
                "the throttle made {achieved}/s of the {asked}/s asked for, although the \
                 operations take only {} of the time; something else used the processor (the \
                 latest operation began {} late)",
                percent(100.0 * hold.load),
                time(row.error_max_ns as f64)
            ),
            [
                ("asked_per_s", row.asked_per_s),
                ("achieved_per_s", row.achieved_per_s),
                ("operations_percent", 100.0 * hold.load),
                ("error_max_ns", row.error_max_ns as f64),
                ("skipped", row.skipped as f64),
            ],
            UNDISTURBED,
        ));
    }
    Some(RATE_NOT_HELD.finding(
        Severity::Info,
        format!(
            "`{}` makes {achieved}/s, not the {asked}/s asked for: {}",
            method.name(),
            why_not_held(method, row.achieved_per_s > row.asked_per_s)
        ),
        [
            ("asked_per_s", row.asked_per_s),
            ("achieved_per_s", row.achieved_per_s),
            ("operation_ns", hold.operation_ns),
        ],
        USE_THROTTLE,
    ))
}

fn why_not_held(method: HoldMethod, is_more: bool) -> &'static str {
    match method {
        HoldMethod::NaiveSleep => {
            "each round takes the operation, the sleep and the overshoot of the sleep"
        }
        HoldMethod::RelativeSleep => "it never makes up for the overshoot of a sleep",
        _ if is_more => "it made up for more than it had missed",
        HoldMethod::TokenBucket => "tokens that came while the bucket was full were lost",
        HoldMethod::IntervalTimer => "the timer expired faster than operations ended",
        HoldMethod::Tick => "the operations of a tick were not finished by the next",
        HoldMethod::Spin | HoldMethod::Throttle => "the processor was not available in time",
    }
}

pub(super) const THROTTLE_LATE: Code = Code {
    name: "throttle_late",
    cause: "The throttle held the rate, but it began some operations later than the next one was \
            intended. Another program or the host used the processor for a time, and the throttle \
            caught up afterwards.",
    remedy: "Repeat on a quieter machine or on an idle core, or ask for a lower rate.",
};

/// Where a throttle groups operations on request, or a schedule has gaps of any length, no gap
/// tells what is late.
fn late(trial: &HoldTrial) -> Option<Finding> {
    let spec = &trial.spec;
    let is_regular = spec.arrival == ArrivalLaw::Constant && spec.wait_min == Nanos::ZERO;
    if spec.method != HoldMethod::Throttle || !is_regular {
        return None;
    }
    let row = rate_row(trial)?;
    let load_percent = 100.0 * Hold::of(trial)?.load;
    let (p99_ns, max_ns) = (row.error_p99_ns as f64, row.error_max_ns as f64);
    (p99_ns > (1e9 / row.asked_per_s).max(STALL_NS)).then(|| {
        THROTTLE_LATE.finding(
            Severity::Warning,
            format!(
                "the throttle held the rate, but 1 % of its operations began {} late or more, the \
                 latest {}; something else used the processor (the operations take only {} of the \
                 time)",
                time(p99_ns),
                time(max_ns),
                percent(load_percent)
            ),
            [
                ("error_p99_ns", p99_ns),
                ("error_max_ns", max_ns),
                ("operations_percent", load_percent),
            ],
            UNDISTURBED,
        )
    })
}

pub(super) const HELD_IN_LUMPS: Code = Code {
    name: "held_in_lumps",
    cause: "A way to hold a rate holds it on average, but its operations come in groups. A \
            periodic wake-up or a token bucket makes several at once.",
    remedy: "Use a schedule that waits for each operation, as the throttle does.",
};

/// The throttle is left out: it groups operations only on request. `disturbance` is how much its
/// gaps varied on this machine.
fn in_lumps(trial: &HoldTrial, disturbance: f64) -> Option<Finding> {
    let spec = &trial.spec;
    if spec.method == HoldMethod::Throttle || spec.arrival != ArrivalLaw::Constant {
        return None;
    }
    let least = LUMPY.max(OF_ITSELF * disturbance);
    let row = rate_row(trial).filter(|row| row.gap_cv > least)?;
    let error_p50_ns = row.error_p50_ns as f64;
    Some(HELD_IN_LUMPS.finding(
        Severity::Info,
        format!(
            "`{}` holds the rate only on average: its operations come in lumps, half of them {} \
             late or more",
            spec.method.name(),
            time(error_p50_ns)
        ),
        [("gap_cv", row.gap_cv), ("error_p50_ns", error_p50_ns)],
        USE_THROTTLE,
    ))
}

/// What rates say.
///
/// The operations are too long where they leave no room and the best of the ways to hold the rate
/// missed it; nothing more is said then, as nothing could have held it. Otherwise each way that
/// missed it, and each that held it in lumps, is named; the throttle's own failure is an error.
pub(crate) fn hold_findings(trials: &[HoldTrial]) -> Vec<Finding> {
    if let Some(found) = operations_too_long(trials) {
        return vec![found];
    }
    // One that groups operations on request makes lumps of its own.
    let is_plain =
        |t: &&HoldTrial| t.spec.method == HoldMethod::Throttle && t.spec.wait_min == Nanos::ZERO;
    let throttle = trials.iter().find(is_plain).and_then(rate_row);
    let disturbance = throttle.map_or(0.0, |row| row.gap_cv);
    let of = |trial: &HoldTrial| {
        let other = || late(trial).or_else(|| in_lumps(trial, disturbance));
        missed(trial).or_else(other)
    };
    trials.iter().filter_map(of).collect()
}
