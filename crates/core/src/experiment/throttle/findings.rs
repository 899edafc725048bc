//! Findings about how a machine waits and holds a rate.

#[cfg(test)]
mod tests;

use crate::experiment::throttle::analysis::{EARLY, HeldRate, at_reference_delay, rate_row};
use crate::experiment::throttle::report::RateRow;
use crate::finding::{Finding, codes};
use crate::words::{exact, number, percent, time};
use knee_load::experiment::throttle::{HoldMethod, HoldSpec, HoldTrial, WaitMethod, WaitTrial};
use knee_load::spec::ArrivalLaw;
use knee_load::time::Nanos;

codes! {
    SLEEP_OVERSHOOTS = "sleep_overshoots":
        cause "A plain sleep takes longer than asked. The kernel adds timer slack, and waking \
               the thread takes time. A loop around the sleep adds this to every round.",
        remedy "Wait until the times of a schedule instead of sleeping for a duration.";
    TIMER_SLACK = "timer_slack":
        cause "Most of a sleep's overshoot is timer slack. The kernel adds it to wake several \
               threads at once and save power. The default is 50 µs.",
        remedy "Reduce the slack of the threads that sleep, with prctl(PR_SET_TIMERSLACK).";
    HOST_STEALS = "host_steals":
        cause "This machine is virtual, and its host gave the processors to others during some \
               waits. Such waits end late whatever the method is.",
        remedy "Repeat on a quieter or dedicated machine. Until then use the medians.";
    WAITS_END_EARLY = "waits_end_early":
        cause "A method ended waits before the time asked for. The kernel may round a timeout, a \
               signal may interrupt a wait, and a clock may be adjusted.",
        remedy "Read the clock after each wait, and wait again for what is left.";
    WAIT_NOT_PERMITTED = "wait_not_permitted":
        cause "The system does not permit a method, or does not have it, and the table leaves it \
               out. Containers and hardened kernels often forbid io_uring.",
        remedy "Permit it where you may, or use one of the other methods.";
    RATE_NOT_HELD = "rate_not_held":
        cause "A way to hold a rate missed it. Simple loops do, because the time of the \
               operation and the overshoot of each sleep add up.",
        remedy "Use a schedule of absolute times, as the throttle does.";
    HELD_IN_LUMPS = "held_in_lumps":
        cause "A way to hold a rate holds it on average, but its operations come in groups. A \
               periodic wake-up or a token bucket makes several at once.",
        remedy "Use a schedule that waits for each operation, as the throttle does.";
    THROTTLE_LATE = "throttle_late":
        cause "The throttle held the rate, but it began some operations later than the next one \
               was intended. Another program or the host used the processor for a time, and the \
               throttle caught up afterwards.",
        remedy "Repeat on a quieter machine or on an idle core, or ask for a lower rate.";
    OPERATIONS_TOO_LONG = "operations_too_long":
        cause "An operation takes longer than the gap between two operations of the schedule. No \
               method can hold this rate with one operation at a time.",
        remedy "Ask for a lower rate, shorten the operation, or run several at once.";
    THROTTLE_NOT_HELD = "throttle_not_held":
        cause "The throttle missed the rate although the operations leave it enough time. \
               Another program or the host used the processor. The other rows had the same \
               disturbance, so the table is INVALID.",
        remedy "Repeat on a quieter machine or on an idle core, or ask for a lower rate.";
}

/// Lateness of the throttle below this is no stall however short its gaps are, in nanoseconds.
const STALL_NS: f64 = 100_000.0;
/// A method's gaps vary by itself, not by the machine, from this multiple of the throttle's
/// variation on.
const OF_ITSELF: f64 = 2.0;
/// A coefficient of variation of the gaps of a constant schedule from which they come in lumps: a
/// Poisson process has 1.
const LUMPY: f64 = 0.5;

const USE_THROTTLE: &str = "use the throttle: knee run does, and in a program knee_load::throttle";
const UNDISTURBED: &str = "repeat on a quieter machine, or on an idle core: taskset -c 1 knee \
                           throttle …; or ask for less: a lower --rate";

/// A way to hold a rate as it was measured.
struct HoldRow<'a> {
    spec: &'a HoldSpec,
    row: RateRow,
    held: HeldRate,
}

/// The findings about trials that hold a rate.
///
/// The operations are too long where they leave no room and the best of the ways to hold the rate
/// missed it. That is the only finding then, as nothing could have held it. Otherwise each way that
/// missed it, and each that held it in lumps, is named; the throttle's own failure is an error.
pub(crate) fn hold_findings(trials: &[HoldTrial]) -> Vec<Finding> {
    let rows = trials.iter().filter_map(|trial| {
        Some(HoldRow { spec: &trial.spec, row: rate_row(trial)?, held: HeldRate::of(trial)? })
    });
    let rows: Vec<HoldRow<'_>> = rows.collect();
    if let Some(finding) = operations_too_long(&rows) {
        return vec![finding];
    }
    // How much the gaps of a schedule vary on this machine. One that groups operations on request
    // makes lumps of its own.
    let is_plain =
        |r: &&HoldRow<'_>| r.spec.method == HoldMethod::Throttle && r.spec.wait_min == Nanos::ZERO;
    let disturbance = rows.iter().find(is_plain).map_or(0.0, |r| r.row.gap_cv);
    rows.iter().filter_map(|row| row.missed().or_else(|| row.late(disturbance))).collect()
}

fn operations_too_long(rows: &[HoldRow<'_>]) -> Option<Finding> {
    if rows.iter().any(|r| r.held.is_held || r.held.has_room()) {
        return None;
    }
    let by_operation = |r: &&HoldRow<'_>| r.held.operation_ns;
    let quickest = rows.iter().min_by(|a, b| by_operation(a).total_cmp(&by_operation(b)))?;
    let (operation_ns, gap_ns) = (quickest.held.operation_ns, 1e9 / quickest.row.asked_per_s);
    Some(OPERATIONS_TOO_LONG.warning(
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

impl HoldRow<'_> {
    fn missed(&self) -> Option<Finding> {
        let HoldRow { spec, row, held } = self;
        let achieved_per_s = row.achieved_per_s.filter(|_| !held.is_held)?;
        let (asked, achieved) = (exact(row.asked_per_s), number(achieved_per_s));
        if spec.method == HoldMethod::Throttle && held.has_room() {
            return Some(THROTTLE_NOT_HELD.error(
                format!(
                    "the throttle made {achieved}/s of the {asked}/s asked for, although the \
                     operations take only {} of the time; something else used the processor (the \
                     latest operation began {} late)",
                    percent(100.0 * held.load),
                    time(row.error_max_ns as f64)
                ),
                [
                    ("asked_per_s", row.asked_per_s),
                    ("achieved_per_s", achieved_per_s),
                    ("operations_percent", 100.0 * held.load),
                    ("error_max_ns", row.error_max_ns as f64),
                    ("skipped", row.skipped as f64),
                ],
                UNDISTURBED,
            ));
        }
        let why = why_not_held(spec.method, achieved_per_s > row.asked_per_s);
        Some(RATE_NOT_HELD.info(
            format!("`{}` makes {achieved}/s, not the {asked}/s asked for: {why}", row.method),
            [
                ("asked_per_s", row.asked_per_s),
                ("achieved_per_s", achieved_per_s),
                ("operation_ns", held.operation_ns),
            ],
            USE_THROTTLE,
        ))
    }

    /// Operations late by more than a gap; of ways that are not the throttle, in lumps. In a
    /// schedule with gaps of any length, and where a throttle groups operations on request, no gap
    /// shows what is late.
    fn late(&self, disturbance: f64) -> Option<Finding> {
        let HoldRow { spec, row, held } = self;
        let (p50_ns, p99_ns) = (row.error_p50_ns as f64, row.error_p99_ns as f64);
        if spec.arrival != ArrivalLaw::Constant {
            return None;
        }
        if spec.method != HoldMethod::Throttle {
            return (row.gap_cv > LUMPY.max(OF_ITSELF * disturbance)).then(|| {
                HELD_IN_LUMPS.info(
                    format!(
                        "`{}` holds the rate only on average: its operations come in lumps, half \
                         of them {} late or more",
                        row.method,
                        time(p50_ns)
                    ),
                    [("gap_cv", row.gap_cv), ("error_p50_ns", p50_ns)],
                    USE_THROTTLE,
                )
            });
        }
        let is_late = p99_ns > (1e9 / row.asked_per_s).max(STALL_NS);
        (is_late && spec.wait_min == Nanos::ZERO).then(|| {
            THROTTLE_LATE.warning(
                format!(
                    "the throttle held the rate, but 1 % of its operations began {} late or more, \
                     the latest {}; something else used the processor (the operations take only \
                     {} of the time)",
                    time(p99_ns),
                    time(row.error_max_ns as f64),
                    percent(100.0 * held.load)
                ),
                [
                    ("error_p99_ns", p99_ns),
                    ("error_max_ns", row.error_max_ns as f64),
                    ("operations_percent", 100.0 * held.load),
                ],
                UNDISTURBED,
            )
        })
    }
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

/// A sleep overshoots where it takes more than asked for by a larger share.
const OVERSHOOTS: f64 = 0.01;
/// Less timer slack is not reported, in nanoseconds.
const SLACK_NS: f64 = 10_000.0;
/// A larger share of stolen samples shapes the table.
const STOLEN: f64 = 0.01;

fn sleep_overshoots(trials: &[WaitTrial]) -> Option<Finding> {
    let sleep = at_reference_delay(trials.iter().filter(|t| t.spec.method == WaitMethod::Sleep))?;
    let asked_ns = sleep.spec.delay.0 as f64;
    let mean_ns = sleep.waits.lengths.mean;
    (mean_ns > asked_ns * (1.0 + OVERSHOOTS)).then(|| {
        let (asked, mean) = (time(asked_ns), time(mean_ns));
        let (thought, most) = (number(1e9 / asked_ns), number(1e9 / mean_ns));
        SLEEP_OVERSHOOTS.info(
            format!(
                "a sleep of {asked} takes {mean} on average; a loop of “operate, sleep {asked}” \
                 makes at most {most}/s, not {thought}/s"
            ),
            [("asked_ns", asked_ns), ("mean_ns", mean_ns), ("most_per_s", 1e9 / mean_ns)],
            format!(
                "wait until times of a schedule, not for durations; see the difference: knee \
                 throttle --rate {}",
                (1e9 / asked_ns).round()
            ),
        )
    })
}

fn timer_slack(trials: &[WaitTrial]) -> Option<Finding> {
    let by_method =
        |method: WaitMethod| at_reference_delay(trials.iter().filter(|t| t.spec.method == method));
    let (default, least) = (by_method(WaitMethod::Sleep)?, by_method(WaitMethod::SleepMinSlack)?);
    let late = |t: &WaitTrial| t.waits.overshoot.quantile(0.5).0 as f64;
    let (default_ns, least_ns) = (late(default), late(least));
    let is_most = default_ns - least_ns >= SLACK_NS && least_ns <= default_ns / 2.0;
    let asked_ns = default.spec.delay.0 as f64;
    (is_most && default.spec.delay == least.spec.delay).then(|| {
        TIMER_SLACK.info(
            format!(
                "timer slack causes most of the overshoot of a sleep of {}; with the least slack \
                 the median overshoot is {}, not {}",
                time(asked_ns),
                time(least_ns),
                time(default_ns)
            ),
            [("asked_ns", asked_ns), ("default_p50_ns", default_ns), ("least_p50_ns", least_ns)],
            "in a program that sleeps: prctl(PR_SET_TIMERSLACK, 1); from outside: write 1 to \
             /proc/PID/timerslack_ns",
        )
    })
}

fn host_steals(trials: &[WaitTrial]) -> Option<Finding> {
    let samples = trials.iter().map(|t| t.waits.samples).sum::<u64>() as f64;
    let stolen = trials.iter().map(|t| t.waits.stolen).sum::<u64>() as f64;
    let stolen_percent = 100.0 * stolen / samples;
    (stolen > STOLEN * samples).then(|| {
        HOST_STEALS.warning(
            format!(
                "{} of the waits ran while the host gave this machine's processors to others; \
                 their maxima and standard deviations show the host",
                percent(stolen_percent)
            ),
            [("stolen_percent", stolen_percent), ("samples", samples)],
            "repeat on a quieter or dedicated machine; until then use the medians",
        )
    })
}

fn waits_end_early(trials: &[WaitTrial]) -> impl Iterator<Item = Finding> + '_ {
    WaitMethod::ALL.into_iter().filter_map(|method| {
        let rows = || trials.iter().filter(|t| t.spec.method == method);
        let samples = rows().map(|t| t.waits.samples).sum::<u64>() as f64;
        let early = rows().map(|t| t.waits.early).sum::<u64>() as f64;
        let early_percent = 100.0 * early / samples;
        (early > EARLY * samples).then(|| {
            WAITS_END_EARLY.warning(
                format!(
                    "`{}` ended {} of its waits before their time; a program that uses it has to \
                     read the clock and wait again",
                    method.name(),
                    percent(early_percent)
                ),
                [("early_percent", early_percent), ("early_samples", early)],
                "",
            )
        })
    })
}

/// A method was left out, for a reason as the system gives it.
pub(crate) fn not_permitted(method: WaitMethod, reason: &str) -> Finding {
    WAIT_NOT_PERMITTED.info(
        format!("`{}` was left out: {reason}", method.name()),
        [],
        match method {
            WaitMethod::IoUring => {
                "where you may: sysctl kernel.io_uring_disabled=0, and a container profile that \
                 permits io_uring_setup(2)"
            }
            _ => "",
        },
    )
}

pub(crate) fn wait_findings(trials: &[WaitTrial]) -> Vec<Finding> {
    let single = [sleep_overshoots(trials), timer_slack(trials), host_steals(trials)];
    single.into_iter().flatten().chain(waits_end_early(trials)).collect()
}
