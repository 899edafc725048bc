//! Findings about how a machine waits and holds a rate.

mod diagnose;
#[cfg(test)]
mod tests;

pub use diagnose::{hold_diagnoses, wait_diagnoses};

use crate::experiment::throttle::hold::HoldMethod;
use crate::experiment::throttle::wait::WaitMethod;
use crate::finding::Severity;
use crate::words::{exact, number, percent, time};

/// A finding of `knee throttle` before it is put into words.
#[derive(Clone, Debug, PartialEq)]
pub enum ThrottleDiagnosis {
    /// A plain sleep takes longer than asked, so that a loop around it is slower than thought.
    SleepOvershoots {
        /// What was asked for.
        asked_ns: f64,
        /// What it took on average.
        mean_ns: f64,
    },
    /// Most of what a plain sleep overshoots is timer slack, which the kernel adds to save power.
    TimerSlack {
        /// What was asked for.
        asked_ns: f64,
        /// The median overshoot with the default slack.
        default_ns: f64,
        /// The same with the least.
        least_ns: f64,
    },
    /// Waits were made while the host gave the processors to others.
    HostSteals {
        /// The share of the waits, in percent.
        percent: f64,
        /// All waits.
        samples: f64,
    },
    /// Waits of a method ended before their time.
    WaitsEndEarly {
        /// The method.
        method: &'static str,
        /// The share of its waits, in percent.
        percent: f64,
        /// How many.
        early: f64,
    },
    /// A method was left out.
    WaitNotPermitted {
        /// The method.
        method: WaitMethod,
        /// Why, as the system says it.
        reason: String,
    },
    /// A method did not hold the rate.
    RateNotHeld {
        /// The method.
        method: HoldMethod,
        /// Operations per second asked for.
        asked_per_s: f64,
        /// Operations per second made.
        achieved_per_s: f64,
        /// Mean time of an operation.
        operation_ns: f64,
    },
    /// A method held the rate on average, with its operations in lumps.
    HeldInLumps {
        /// The method.
        method: HoldMethod,
        /// Coefficient of variation of its gaps.
        gap_cv: f64,
        /// The median lateness.
        error_p50_ns: f64,
    },
    /// The throttle held the rate, but many of its operations came later than their successors
    /// should have.
    ThrottleLate {
        /// The 99th percentile of its lateness.
        error_p99_ns: f64,
        /// The largest.
        error_max_ns: f64,
        /// What the operations take of the time at the rate asked for, in percent.
        load_percent: f64,
    },
    /// The operations alone take longer than the schedule gives them.
    OperationsTooLong {
        /// Mean time of an operation.
        operation_ns: f64,
        /// The schedule's gap.
        gap_ns: f64,
    },
    /// The throttle itself did not hold the rate although the operations leave it time.
    ThrottleNotHeld {
        /// Operations per second asked for.
        asked_per_s: f64,
        /// Operations per second made.
        achieved_per_s: f64,
        /// What the operations take of the time at the rate asked for, in percent.
        load_percent: f64,
        /// The latest of its operations.
        error_max_ns: f64,
        /// Operations that the catch-up policy left out.
        skipped: f64,
    },
}

impl ThrottleDiagnosis {
    pub(crate) fn code(&self) -> &'static str {
        match self {
            ThrottleDiagnosis::SleepOvershoots { .. } => "sleep_overshoots",
            ThrottleDiagnosis::TimerSlack { .. } => "timer_slack",
            ThrottleDiagnosis::HostSteals { .. } => "host_steals",
            ThrottleDiagnosis::WaitsEndEarly { .. } => "waits_end_early",
            ThrottleDiagnosis::WaitNotPermitted { .. } => "wait_not_permitted",
            ThrottleDiagnosis::RateNotHeld { .. } => "rate_not_held",
            ThrottleDiagnosis::HeldInLumps { .. } => "held_in_lumps",
            ThrottleDiagnosis::ThrottleLate { .. } => "throttle_late",
            ThrottleDiagnosis::OperationsTooLong { .. } => "operations_too_long",
            ThrottleDiagnosis::ThrottleNotHeld { .. } => "throttle_not_held",
        }
    }

    pub(crate) fn severity(&self) -> Severity {
        match self {
            ThrottleDiagnosis::ThrottleNotHeld { .. } => Severity::Error,
            ThrottleDiagnosis::HostSteals { .. }
            | ThrottleDiagnosis::WaitsEndEarly { .. }
            | ThrottleDiagnosis::ThrottleLate { .. }
            | ThrottleDiagnosis::OperationsTooLong { .. } => Severity::Warning,
            _ => Severity::Info,
        }
    }

    pub(crate) fn text(&self) -> String {
        self.waits_text()
            .or_else(|| self.rates_text())
            .unwrap_or_default()
    }

    /// Of how the machine waits.
    fn waits_text(&self) -> Option<String> {
        let text = match self {
            ThrottleDiagnosis::SleepOvershoots { asked_ns, mean_ns } => format!(
                "a sleep of {} takes {} on average, so a loop of “operate, sleep {0}” cannot make \
                 {}/s: without any operation it makes {}/s",
                time(*asked_ns),
                time(*mean_ns),
                number(1e9 / asked_ns),
                number(1e9 / mean_ns)
            ),
            ThrottleDiagnosis::TimerSlack {
                asked_ns,
                default_ns,
                least_ns,
            } => format!(
                "most of what a sleep of {} overshoots is timer slack, which the kernel adds to \
                 save power: with the least slack the median is {} late in place of {}",
                time(*asked_ns),
                time(*least_ns),
                time(*default_ns)
            ),
            ThrottleDiagnosis::HostSteals { percent: p, .. } => format!(
                "{} of the waits were made while the host gave this machine's processors to \
                 others: their maxima and standard deviations are the host's",
                percent(*p)
            ),
            ThrottleDiagnosis::WaitsEndEarly {
                method, percent: p, ..
            } => format!(
                "`{method}` ended {} of its waits before their time: whoever relies on it has to \
                 look at the clock and wait again",
                percent(*p)
            ),
            ThrottleDiagnosis::WaitNotPermitted { method, reason } => {
                format!("`{}` was left out: {reason}", method.name())
            }
            _ => return None,
        };
        Some(text)
    }

    /// Of how a rate is held.
    fn rates_text(&self) -> Option<String> {
        let text = match self {
            ThrottleDiagnosis::RateNotHeld {
                method,
                asked_per_s,
                achieved_per_s,
                ..
            } => format!(
                "`{}` makes {}/s where {}/s are asked for: {}",
                method.name(),
                number(*achieved_per_s),
                exact(*asked_per_s),
                why_not_held(*method, achieved_per_s > asked_per_s)
            ),
            ThrottleDiagnosis::HeldInLumps {
                method,
                error_p50_ns,
                ..
            } => format!(
                "`{}` holds the rate on average only: its operations come in lumps, half of them \
                 {} late or more",
                method.name(),
                time(*error_p50_ns)
            ),
            ThrottleDiagnosis::ThrottleLate {
                error_p99_ns,
                error_max_ns,
                load_percent,
            } => format!(
                "the throttle held the rate, but one in a hundred of its operations began {} late \
                 or more, the latest {}: something else had the processor, and the operations, {} \
                 of the time, leave the rest to catch up in",
                time(*error_p99_ns),
                time(*error_max_ns),
                percent(*load_percent)
            ),
            ThrottleDiagnosis::OperationsTooLong {
                operation_ns,
                gap_ns,
            } => format!(
                "an operation takes {} where the schedule has one every {}: nothing can hold this \
                 rate with one operation at a time",
                time(*operation_ns),
                time(*gap_ns)
            ),
            ThrottleDiagnosis::ThrottleNotHeld {
                asked_per_s,
                achieved_per_s,
                load_percent,
                error_max_ns,
                ..
            } => format!(
                "the throttle itself made {}/s of the {}/s asked for, although the operations \
                 take only {} of the time: something else had the processor (the latest operation \
                 came {} late)",
                number(*achieved_per_s),
                exact(*asked_per_s),
                percent(*load_percent),
                time(*error_max_ns)
            ),
            _ => return None,
        };
        Some(text)
    }

    pub(crate) fn evidence(&self) -> Vec<(&'static str, f64)> {
        match self {
            ThrottleDiagnosis::SleepOvershoots { asked_ns, mean_ns } => vec![
                ("asked_ns", *asked_ns),
                ("mean_ns", *mean_ns),
                ("most_per_s", 1e9 / mean_ns),
            ],
            ThrottleDiagnosis::TimerSlack {
                asked_ns,
                default_ns,
                least_ns,
            } => vec![
                ("asked_ns", *asked_ns),
                ("default_p50_ns", *default_ns),
                ("least_p50_ns", *least_ns),
            ],
            ThrottleDiagnosis::HostSteals { percent, samples } => {
                vec![("stolen_percent", *percent), ("samples", *samples)]
            }
            ThrottleDiagnosis::WaitsEndEarly { percent, early, .. } => {
                vec![("early_percent", *percent), ("early_samples", *early)]
            }
            ThrottleDiagnosis::WaitNotPermitted { .. } => Vec::new(),
            ThrottleDiagnosis::RateNotHeld {
                asked_per_s,
                achieved_per_s,
                operation_ns,
                ..
            } => vec![
                ("asked_per_s", *asked_per_s),
                ("achieved_per_s", *achieved_per_s),
                ("operation_ns", *operation_ns),
            ],
            ThrottleDiagnosis::HeldInLumps {
                gap_cv,
                error_p50_ns,
                ..
            } => vec![("gap_cv", *gap_cv), ("error_p50_ns", *error_p50_ns)],
            ThrottleDiagnosis::ThrottleLate {
                error_p99_ns,
                error_max_ns,
                load_percent,
            } => vec![
                ("error_p99_ns", *error_p99_ns),
                ("error_max_ns", *error_max_ns),
                ("operations_percent", *load_percent),
            ],
            ThrottleDiagnosis::OperationsTooLong {
                operation_ns,
                gap_ns,
            } => vec![("operation_ns", *operation_ns), ("gap_ns", *gap_ns)],
            ThrottleDiagnosis::ThrottleNotHeld {
                asked_per_s,
                achieved_per_s,
                load_percent,
                error_max_ns,
                skipped,
            } => vec![
                ("asked_per_s", *asked_per_s),
                ("achieved_per_s", *achieved_per_s),
                ("operations_percent", *load_percent),
                ("error_max_ns", *error_max_ns),
                ("skipped", *skipped),
            ],
        }
    }

    pub(crate) fn next_step(&self) -> String {
        match self {
            ThrottleDiagnosis::SleepOvershoots { asked_ns, .. } => format!(
                "wait for moments of a schedule, not for lengths of time; see the difference: \
                 knee throttle --rate {}",
                (1e9 / asked_ns).round()
            ),
            ThrottleDiagnosis::TimerSlack { .. } => {
                "in a program that sleeps: prctl(PR_SET_TIMERSLACK, 1); from outside: write 1 to \
                 /proc/PID/timerslack_ns"
                    .into()
            }
            ThrottleDiagnosis::HostSteals { .. } => {
                "repeat on a quieter or dedicated machine; until then trust the medians".into()
            }
            ThrottleDiagnosis::WaitNotPermitted {
                method: WaitMethod::IoUring,
                ..
            } => "where you may: sysctl kernel.io_uring_disabled=0, and a container profile that \
                  permits io_uring_setup(2)"
                .into(),
            ThrottleDiagnosis::OperationsTooLong { operation_ns, .. } => format!(
                "ask for less than one after another can do: --rate {}, or shorten the operation",
                (0.9e9 / operation_ns).floor().max(1.0)
            ),
            ThrottleDiagnosis::ThrottleNotHeld { .. } | ThrottleDiagnosis::ThrottleLate { .. } => {
                "repeat on a quieter machine or pin to an idle core: taskset -c 1 knee throttle …; \
                 or ask for less: a lower --rate"
                    .into()
            }
            ThrottleDiagnosis::RateNotHeld { .. } | ThrottleDiagnosis::HeldInLumps { .. } => {
                "take the throttle: knee run does, and in a program knee_core::throttle".into()
            }
            ThrottleDiagnosis::WaitsEndEarly { .. }
            | ThrottleDiagnosis::WaitNotPermitted { .. } => String::new(),
        }
    }
}

/// What is wrong with a method that misses a rate.
fn why_not_held(method: HoldMethod, is_more: bool) -> &'static str {
    match method {
        HoldMethod::NaiveSleep => {
            "each round takes the operation, the sleep and what the sleep overshoots, one after \
             another"
        }
        HoldMethod::RelativeSleep => "what each sleep overshoots is never made up for",
        _ if is_more => "it made up for more than it had missed",
        HoldMethod::TokenBucket => "tokens that came while the bucket was full were lost",
        HoldMethod::IntervalTimer => "it expired faster than operations ended",
        HoldMethod::Tick => "what was due at a tick could not be made by the next",
        HoldMethod::Spin | HoldMethod::Throttle => "the processor was not to be had in time",
    }
}
