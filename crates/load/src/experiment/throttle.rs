//! Ways to wait for a point in time and, in `hold`, to hold a rate of operations. And what was
//! measured of each.
//!
//! To add a way to wait: a variant here, and its call in `experiment/throttle/wait.rs` of the crate
//! `knee-engine`.

mod hold;

pub use hold::{HoldMethod, HoldSpec, HoldStats, HoldTrial, RunningLine, RunningSpread};

use crate::measure::Histogram;
use crate::names::names;
use crate::spec::{Margins, ParseError};
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

names! {
    /// A way to wait for a point in time.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum WaitMethod {
        /// clock_nanosleep(2) for a length of time, with the timer slack that threads have by
        /// default.
        Sleep = "sleep",
        /// As `sleep`, with the least timer slack, 1 ns.
        SleepMinSlack = "sleep-min-slack",
        /// clock_nanosleep(2) until a point in time (TIMER_ABSTIME), with the default timer slack.
        SleepAbsolute = "sleep-absolute",
        /// As `sleep-absolute`, with the least timer slack.
        SleepAbsoluteMinSlack = "sleep-absolute-min-slack",
        /// A read of a timerfd_create(2) descriptor that expires at a point in time.
        Timerfd = "timerfd",
        /// epoll_pwait2(2) with a timeout.
        Epoll = "epoll",
        /// A timeout operation of io_uring(7) until a point in time.
        #[serde(rename = "io_uring")]
        IoUring = "io_uring",
        /// Sleeps until a margin before the deadline, learnt from its own late wake-ups, then
        /// spins.
        Hybrid = "hybrid",
        /// Reads the clock until the deadline.
        Spin = "spin",
        /// Reads the clock and gives the processor up, sched_yield(2), until the deadline.
        Yield = "yield",
    }
}

impl WaitMethod {
    /// The method of this name.
    ///
    /// # Errors
    /// There is none: the line lists those there are.
    pub fn parse(text: &str) -> Result<WaitMethod, ParseError> {
        by_name(text, WaitMethod::ALL, WaitMethod::name, "way to wait")
    }
}

/// The method of this name; an error that lists those there are.
fn by_name<M: Copy, const N: usize>(
    text: &str,
    all: [M; N],
    name: fn(M) -> &'static str,
    what: &str,
) -> Result<M, ParseError> {
    let method = all.into_iter().find(|method| name(*method) == text);
    method.ok_or_else(|| {
        let names = all.map(name).join(", ");
        ParseError(format!("'{text}' is no {what}: there are {names}"))
    })
}

/// What is done after each wait.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Chore {
    /// Nothing.
    #[default]
    None,
    /// The processor is kept busy for this time.
    Busy(Nanos),
    /// A datagram of 64 bytes is sent to this address, such as `127.0.0.1:9`.
    Udp(String),
    /// A datagram is sent to a quote of the day service (RFC 865) at this address, and its answer
    /// awaited for up to 100 ms.
    Qotd(String),
}

impl Chore {
    /// Its name in reports: `none`, `busy`, `udp`, `qotd`.
    pub fn name(&self) -> &'static str {
        match self {
            Chore::None => "none",
            Chore::Busy(_) => "busy",
            Chore::Udp(_) => "udp",
            Chore::Qotd(_) => "qotd",
        }
    }
}

/// One row of the table of waits: one method asked for one delay, over and over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitSpec {
    /// How to wait.
    pub method: WaitMethod,
    /// How long, each time.
    pub delay: Nanos,
    /// The time spent on it; at least [`WaitSpec::SAMPLES_MIN`] waits are made however long they
    /// take.
    pub duration: Nanos,
    /// What is done between two waits.
    pub chore: Chore,
    /// Where `hybrid` begins.
    pub margins: Margins,
}

impl WaitSpec {
    /// The fewest waits that a mean is given of.
    pub const SAMPLES_MIN: u64 = 5;
}

/// One row of the table of waits as it was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitTrial {
    /// The specification of the row.
    pub spec: WaitSpec,
    /// What came of it.
    pub waits: WaitStats,
}

/// Waits of one method for one delay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitStats {
    /// How many were made.
    pub samples: u64,
    /// Waits made while the host gave this machine's processors to others.
    pub stolen: u64,
    /// Waits that ended before their time.
    pub early: u64,
    /// Lengths of the waits, in nanoseconds.
    pub lengths: RunningSpread,
    /// By how much they ended late; early ones count as 0.
    pub overshoot: Histogram,
    /// Time that the chore between two waits took, where there is one.
    pub chore: Histogram,
    /// Processor time of the thread over all of it, chore included.
    pub cpu: Nanos,
    /// Time from the first wait's begin until all of it was over.
    pub elapsed: Nanos,
    /// `hybrid`: the margin as it was at the end.
    pub margin: Option<Nanos>,
    /// The user ended it early.
    pub interrupted: bool,
}

impl WaitStats {
    /// Counts a wait for `asked` that took `took`.
    #[inline]
    pub fn record(&mut self, asked: Nanos, took: Nanos) {
        self.samples += 1;
        self.early += u64::from(took < asked);
        self.lengths.add(took.0 as f64);
        self.overshoot.record(took - asked);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_method_is_found_by_the_name_that_reports_give_it() {
        for method in WaitMethod::ALL {
            assert_eq!(WaitMethod::parse(method.name()), Ok(method));
            let json = serde_json::to_value(method).unwrap();
            assert_eq!(json, method.name());
        }
        let ParseError(line) = WaitMethod::parse("nap").unwrap_err();
        assert!(line.starts_with("'nap' is no way to wait: there are sleep, sleep-min-slack, "));
    }

    #[test]
    fn lengths_are_told_apart_by_their_power_of_two_from_16_us_on() {
        for (length, bucket) in [
            (0, 0),
            (1, 0),
            (16_384, 0),
            (32_767, 0),
            (32_768, 1),
            (65_535, 1),
            (1_000_000, 5),
            (1 << 25, 11),
            ((1 << 26) - 1, 11),
            (1 << 26, 12),
            (u64::MAX, 12),
        ] {
            assert_eq!(Margins::bucket(Nanos(length)), bucket, "{length}");
        }
    }

    #[test]
    fn a_bucket_begins_where_it_says() {
        for bucket in 1..Margins::COUNT {
            let least = Margins::length_min(bucket);
            assert_eq!(Margins::bucket(least), bucket);
            assert_eq!(Margins::bucket(least - Nanos(1)), bucket - 1);
        }
        assert_eq!(Margins::length_min(0), Nanos(16_384));
        assert_eq!(Margins::length_min(99), Margins::length_min(Margins::COUNT - 1));
    }

    #[test]
    fn each_length_has_the_margin_of_its_bucket() {
        let mut by_bucket = Margins::of(Nanos(7)).by_bucket();
        assert_eq!(by_bucket, [7; Margins::COUNT]);
        for (bucket, margin) in by_bucket.iter_mut().enumerate() {
            *margin = 1_000 * bucket as u64;
        }
        let margins = Margins::from_buckets(by_bucket);
        assert_eq!(margins.by_bucket(), by_bucket);
        assert_eq!(margins.at(Nanos::ZERO), Nanos(0));
        assert_eq!(margins.at(Nanos::from_millis(1)), Nanos(5_000));
        assert_eq!(margins.at(Nanos::from_secs(1)), Nanos(12_000));
        // A kept margin is read back.
        let json = serde_json::to_string(&margins).unwrap();
        assert_eq!(serde_json::from_str::<Margins>(&json).unwrap(), margins);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn mean_and_deviations_are_those_of_the_whole_sample(
            took in prop::collection::vec(0u64..100_000_000, 1..200), asked in 0u64..100_000_000,
        ) {
            let mut waits = WaitStats::default();
            for &t in &took {
                waits.record(Nanos(asked), Nanos(t));
            }
            let n = took.len() as f64;
            let mean = took.iter().sum::<u64>() as f64 / n;
            let deviations: f64 = took.iter().map(|&t| (t as f64 - mean).powi(2)).sum();
            prop_assert!((waits.lengths.mean - mean).abs() <= 1e-9 * mean.max(1.0));
            prop_assert!((waits.lengths.deviations - deviations).abs() <= 1e-9 * deviations.max(1.0));
            prop_assert_eq!(waits.samples, took.len() as u64);
            prop_assert_eq!(waits.overshoot.count(), waits.samples);
            let early = took.iter().filter(|&&t| t < asked).count();
            prop_assert_eq!(waits.early, early as u64);
        }
    }

    #[test]
    fn the_deviation_of_long_waits_that_hardly_differ_is_not_lost() {
        let mut waits = WaitStats::default();
        for i in 0..1_000_000u64 {
            waits.record(Nanos::from_secs(3_600), Nanos(3_600_000_000_000 + i % 2));
        }
        assert!((waits.lengths.mean - 3_600_000_000_000.5).abs() < 1e-3);
        assert!((waits.lengths.deviations / 250_000.0 - 1.0).abs() < 1e-3);
    }
}
