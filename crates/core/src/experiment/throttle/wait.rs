//! Ways to wait for a moment, and what is asked of them.

use crate::spec::{Margins, ParseError};
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// A way to wait for a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitMethod {
    /// clock_nanosleep(2) for a length of time, with the timer slack that threads have by default.
    Sleep,
    /// The same with the least timer slack, 1 ns.
    SleepMinSlack,
    /// clock_nanosleep(2) until a moment (TIMER_ABSTIME), with the default timer slack.
    SleepAbsolute,
    /// The same with the least timer slack.
    SleepAbsoluteMinSlack,
    /// A read of a timerfd_create(2) descriptor that expires at a moment.
    Timerfd,
    /// epoll_pwait2(2) with a timeout.
    Epoll,
    /// A timeout operation of io_uring(7) until a moment.
    #[serde(rename = "io_uring")]
    IoUring,
    /// Sleeps until a margin before the moment, learnt from its own late wake-ups, then spins.
    Hybrid,
    /// Reads the clock until the moment has come.
    Spin,
    /// Reads the clock and gives the processor up, sched_yield(2), until the moment has come.
    Yield,
}

impl WaitMethod {
    /// All of them, in the order in which they are tabled.
    pub const ALL: [WaitMethod; 10] = [
        WaitMethod::Sleep,
        WaitMethod::SleepMinSlack,
        WaitMethod::SleepAbsolute,
        WaitMethod::SleepAbsoluteMinSlack,
        WaitMethod::Timerfd,
        WaitMethod::Epoll,
        WaitMethod::IoUring,
        WaitMethod::Hybrid,
        WaitMethod::Spin,
        WaitMethod::Yield,
    ];

    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            WaitMethod::Sleep => "sleep",
            WaitMethod::SleepMinSlack => "sleep-min-slack",
            WaitMethod::SleepAbsolute => "sleep-absolute",
            WaitMethod::SleepAbsoluteMinSlack => "sleep-absolute-min-slack",
            WaitMethod::Timerfd => "timerfd",
            WaitMethod::Epoll => "epoll",
            WaitMethod::IoUring => "io_uring",
            WaitMethod::Hybrid => "hybrid",
            WaitMethod::Spin => "spin",
            WaitMethod::Yield => "yield",
        }
    }

    /// The method of this name.
    ///
    /// # Errors
    /// There is none: the line lists those there are.
    pub fn parse(text: &str) -> Result<WaitMethod, ParseError> {
        let found = WaitMethod::ALL.into_iter().find(|m| m.name() == text);
        found.ok_or_else(|| {
            let names = WaitMethod::ALL.map(WaitMethod::name).join(", ");
            ParseError(format!("'{text}' is no way to wait: there are {names}"))
        })
    }
}

/// What is done at each moment that was waited for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Chore {
    /// Nothing.
    #[default]
    None,
    /// The processor is kept busy for so long.
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

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(
            Margins::length_min(99),
            Margins::length_min(Margins::COUNT - 1)
        );
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
}
