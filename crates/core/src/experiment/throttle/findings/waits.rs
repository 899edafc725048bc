//! What waits say.

use crate::experiment::throttle::analysis::{EARLY, usual};
use crate::experiment::throttle::wait::WaitMethod;
use crate::experiment::throttle::waits::WaitTrial;
use crate::finding::{Code, Finding, Severity};
use crate::words::{number, percent, time};

/// A sleep overshoots where it takes more than asked for by a larger share.
const OVERSHOOTS: f64 = 0.01;
/// Less timer slack is not reported, in nanoseconds.
const SLACK_NS: f64 = 10_000.0;
/// A larger share of stolen samples shapes the table.
const STOLEN: f64 = 0.01;

pub(super) const SLEEP_OVERSHOOTS: Code = Code {
    name: "sleep_overshoots",
    cause: "A plain sleep takes longer than asked. The kernel adds timer slack, and waking the \
            thread takes time. A loop around the sleep adds this to every round.",
    remedy: "Wait until the times of a schedule instead of sleeping for a duration.",
};

fn sleep_overshoots(trials: &[WaitTrial]) -> Option<Finding> {
    let sleep = usual(trials.iter().filter(|t| t.spec.method == WaitMethod::Sleep))?;
    let asked_ns = sleep.spec.delay.0 as f64;
    let mean_ns = sleep.waits.mean_ns;
    (mean_ns > asked_ns * (1.0 + OVERSHOOTS)).then(|| {
        let (asked, mean) = (time(asked_ns), time(mean_ns));
        let (thought, most) = (number(1e9 / asked_ns), number(1e9 / mean_ns));
        SLEEP_OVERSHOOTS.finding(
            Severity::Info,
            format!(
                "a sleep of {asked} takes {mean} on average; a loop of “operate, sleep {asked}” \
                 makes at most {most}/s, not {thought}/s"
            ),
            [
                ("asked_ns", asked_ns),
                ("mean_ns", mean_ns),
                ("most_per_s", 1e9 / mean_ns),
            ],
            format!(
                "wait until times of a schedule, not for durations; see the difference: knee \
                 throttle --rate {}",
                (1e9 / asked_ns).round()
            ),
        )
    })
}

pub(super) const TIMER_SLACK: Code = Code {
    name: "timer_slack",
    cause: "Most of a sleep's overshoot is timer slack. The kernel adds it to wake several \
            threads at once and save power. The default is 50 µs.",
    remedy: "Reduce the slack of the threads that sleep, with prctl(PR_SET_TIMERSLACK).",
};

fn timer_slack(trials: &[WaitTrial]) -> Option<Finding> {
    let of = |method: WaitMethod| usual(trials.iter().filter(|t| t.spec.method == method));
    let (default, least) = (of(WaitMethod::Sleep)?, of(WaitMethod::SleepMinSlack)?);
    let late = |t: &WaitTrial| t.waits.overshoot.quantile(0.5).0 as f64;
    let (default_ns, least_ns) = (late(default), late(least));
    let is_most = default_ns - least_ns >= SLACK_NS && least_ns <= default_ns / 2.0;
    let asked_ns = default.spec.delay.0 as f64;
    (is_most && default.spec.delay == least.spec.delay).then(|| {
        TIMER_SLACK.finding(
            Severity::Info,
            format!(
                "timer slack causes most of the overshoot of a sleep of {}; with the least slack \
                 the median overshoot is {}, not {}",
                time(asked_ns),
                time(least_ns),
                time(default_ns)
            ),
            [
                ("asked_ns", asked_ns),
                ("default_p50_ns", default_ns),
                ("least_p50_ns", least_ns),
            ],
            "in a program that sleeps: prctl(PR_SET_TIMERSLACK, 1); from outside: write 1 to \
             /proc/PID/timerslack_ns",
        )
    })
}

pub(super) const HOST_STEALS: Code = Code {
    name: "host_steals",
    cause: "This machine is virtual, and its host gave the processors to others during some \
            waits. Such waits end late whatever the method is.",
    remedy: "Repeat on a quieter or dedicated machine. Until then use the medians.",
};

fn host_steals(trials: &[WaitTrial]) -> Option<Finding> {
    let samples = trials.iter().map(|t| t.waits.samples).sum::<u64>() as f64;
    let stolen = trials.iter().map(|t| t.waits.stolen).sum::<u64>() as f64;
    let stolen_percent = 100.0 * stolen / samples;
    (stolen > STOLEN * samples).then(|| {
        HOST_STEALS.finding(
            Severity::Warning,
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

pub(super) const WAITS_END_EARLY: Code = Code {
    name: "waits_end_early",
    cause: "A method ended waits before the time asked for. The kernel may round a timeout, a \
            signal may interrupt a wait, and a clock may be adjusted.",
    remedy: "Read the clock after each wait, and wait again for what is left.",
};

fn waits_end_early(trials: &[WaitTrial]) -> impl Iterator<Item = Finding> + '_ {
    WaitMethod::ALL.into_iter().filter_map(|method| {
        let rows = || trials.iter().filter(|t| t.spec.method == method);
        let samples = rows().map(|t| t.waits.samples).sum::<u64>() as f64;
        let early = rows().map(|t| t.waits.early).sum::<u64>() as f64;
        let early_percent = 100.0 * early / samples;
        (early > EARLY * samples).then(|| {
            WAITS_END_EARLY.finding(
                Severity::Warning,
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

pub(super) const WAIT_NOT_PERMITTED: Code = Code {
    name: "wait_not_permitted",
    cause: "The system does not permit a method, or does not have it, and the table leaves it \
            out. Containers and hardened kernels often forbid io_uring.",
    remedy: "Permit it where you may, or use one of the other methods.",
};

/// A method was left out, for a reason as the system gives it.
pub(crate) fn not_permitted(method: WaitMethod, reason: &str) -> Finding {
    WAIT_NOT_PERMITTED.finding(
        Severity::Info,
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
    let single = [
        sleep_overshoots(trials),
        timer_slack(trials),
        host_steals(trials),
    ];
    let single = single.into_iter().flatten();
    single.chain(waits_end_early(trials)).collect()
}
