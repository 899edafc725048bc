//! Time as integers of nanoseconds, and dates in UTC as text.

use crate::digits::estimate;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::num::NonZero;
use std::ops::{Add, AddAssign, Sub};
use time::OffsetDateTime;
use time::format_description::well_known::iso8601::{
    Config, EncodedConfig, Iso8601, TimePrecision,
};

/// A time in nanoseconds since the run began, or a length of time in nanoseconds.
///
/// Both are one type because every use subtracts two times or adds a length to one. Arithmetic
/// saturates: a length never turns negative and never wraps. Range: 0 to about 584 years.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The beginning of a run, and the empty length.
    pub const ZERO: Nanos = Nanos(0);
    /// Later than any time of any run.
    pub const MAX: Nanos = Nanos(u64::MAX);

    /// `us` microseconds.
    #[inline]
    pub const fn from_micros(us: u64) -> Nanos {
        Nanos(us.saturating_mul(1_000))
    }

    /// `ms` milliseconds.
    #[inline]
    pub const fn from_millis(ms: u64) -> Nanos {
        Nanos(ms.saturating_mul(1_000_000))
    }

    /// `s` seconds.
    #[inline]
    pub const fn from_secs(s: u64) -> Nanos {
        Nanos(s.saturating_mul(1_000_000_000))
    }

    /// `s` seconds, rounded to the nearest nanosecond; negative and NaN become zero.
    pub fn from_secs_f64(s: f64) -> Nanos {
        Nanos((s * 1e9).round() as u64)
    }

    /// The time in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The time in microseconds.
    pub fn as_micros_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// Exactly, in the largest unit that needs no fraction, as it can be typed: `10s`, `1500ms`,
    /// `20us`, `7ns`.
    pub fn exactly(self) -> String {
        let (unit_ns, unit) = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")]
            .into_iter()
            .find(|(unit_ns, _)| self.0.is_multiple_of(*unit_ns))
            .unwrap_or((1, "ns"));
        format!("{}{unit}", self.0 / unit_ns)
    }

    /// The processor time of a thread over the time `over`, in percent: 0 to 100. A thread has one
    /// processor at a time; what the kernel's accounts have beyond that is their rounding. 0 of no
    /// time.
    pub fn thread_percent(self, over: Nanos) -> f64 {
        if over == Nanos::ZERO {
            return 0.0;
        }
        (100.0 * self.0 as f64 / over.0 as f64).min(100.0)
    }
}

impl Add for Nanos {
    type Output = Nanos;
    #[inline]
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    #[inline]
    fn add_assign(&mut self, other: Nanos) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    #[inline]
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}

/// `1.5 s`, `20 ms`, `730 µs`, `12 ns`: for messages, at most four significant digits.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The bounds are where three digits round up into the next unit.
        let (value, unit) = match self.0 {
            0..1_000 => return write!(f, "{} ns", self.0),
            1_000..999_500 => (self.0 as f64 / 1e3, "µs"),
            999_500..999_500_000 => (self.0 as f64 / 1e6, "ms"),
            _ => (self.0 as f64 / 1e9, "s"),
        };
        let digits = match value {
            v if v >= 999.5 => format!("{v:.0}"),
            v => estimate(v),
        };
        write!(f, "{digits} {unit}")
    }
}

/// Whatever can tell the time of a run. The engine has the only one that reads the machine's clock.
pub trait Clock {
    /// The time since the run began.
    fn now(&self) -> Nanos;
}

const TO_THE_SECOND: EncodedConfig = with_decimals(None);
const TO_THE_MS: EncodedConfig = with_decimals(NonZero::new(3));

const fn with_decimals(decimal_digits: Option<NonZero<u8>>) -> EncodedConfig {
    let precision = TimePrecision::Second { decimal_digits };
    Config::DEFAULT.set_time_precision(precision).encode()
}

/// A time in nanoseconds since 1970 as RFC 3339, to the second: `2026-11-22T12:00:00Z`.
pub fn rfc3339(realtime_ns: u64) -> String {
    let mut text = Vec::new();
    put::<TO_THE_SECOND>(realtime_ns, &mut text);
    String::from_utf8(text).unwrap_or_default()
}

/// Appends a time in nanoseconds since 1970 as RFC 3339, to the millisecond:
/// `2026-11-22T12:00:00.123Z`.
pub(crate) fn put_rfc3339_ms(realtime_ns: u64, out: &mut Vec<u8>) {
    put::<TO_THE_MS>(realtime_ns, out);
}

fn put<const FORM: EncodedConfig>(realtime_ns: u64, out: &mut Vec<u8>) {
    let time = OffsetDateTime::from_unix_timestamp_nanos(realtime_ns.into());
    // 64 bits of nanoseconds end in 2554, and a list of bytes takes all that is written to it.
    if let Ok(time) = time {
        let _ = time.format_into(out, &Iso8601::<FORM>);
    }
}

/// A time as ISO 8601 has it, with its zone, in milliseconds since 1970.
pub fn iso8601_ms(text: &str) -> Option<f64> {
    let time = OffsetDateTime::parse(text, &Iso8601::PARSING).ok()?;
    Some(time.unix_timestamp_nanos() as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_never_spends_more_than_the_time() {
        let spent = Nanos::from_millis(5);
        assert_eq!(spent.thread_percent(Nanos::from_millis(20)), 25.0);
        assert_eq!(spent.thread_percent(Nanos::from_millis(4)), 100.0);
        assert_eq!(spent.thread_percent(Nanos::ZERO), 0.0);
    }

    #[test]
    fn display_picks_the_unit_and_drops_idle_digits() {
        for (nanos, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1 µs"),
            (730_400, "730 µs"),
            (1_500_000, "1.5 ms"),
            (20_000_000, "20 ms"),
            (100_000_000, "100 ms"),
            (61_250_000_000, "61.2 s"),
            (999_500, "1 ms"),
            (3_661_000_000_000, "3661 s"),
        ] {
            assert_eq!(Nanos(nanos).to_string(), text);
        }
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Nanos(3) - Nanos(5), Nanos::ZERO);
        assert_eq!(Nanos::MAX + Nanos(1), Nanos::MAX);
        assert_eq!(Nanos::from_secs_f64(-1.0), Nanos::ZERO);
    }

    #[test]
    fn dates() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(seconds * 1_000_000_000), text);
        }
        assert!(rfc3339(u64::MAX).starts_with("2554-07-21T"));
    }
}
