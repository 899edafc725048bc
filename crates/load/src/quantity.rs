//! What schedules are made of: exact rates and shares of a load. Also the small languages of the
//! command line: durations, rates and laws.

#[cfg(test)]
mod parse_tests;

use crate::law::Law;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Operations per length of time: `operations` in every `period`. Never zero, never infinite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    operations: u64,
    period: Nanos,
}

impl Rate {
    /// `operations` in every `period`; `None` if either is zero.
    pub fn new(operations: u64, period: Nanos) -> Option<Rate> {
        (operations > 0 && period > Nanos::ZERO).then_some(Rate { operations, period })
    }

    /// `operations` per second.
    pub fn per_second(operations: u64) -> Option<Rate> {
        Rate::new(operations, Nanos::from_secs(1))
    }

    /// The nearest ratio to `per_s` operations per second, exact to a millionth of an operation per
    /// second. `None` unless it is a positive number below 10^12.
    pub fn from_f64(per_s: f64) -> Option<Rate> {
        if !(per_s.is_finite() && per_s > 0.0 && per_s < 1e12) {
            return None;
        }
        Rate::new((per_s * 1e6).round() as u64, Nanos::from_secs(1_000_000))
    }

    /// The operations of one period.
    pub fn operations(self) -> u64 {
        self.operations
    }

    /// The period that they fall in.
    pub fn period(self) -> Nanos {
        self.period
    }

    /// Operations per second.
    pub fn per_s(self) -> f64 {
        self.operations as f64 / self.period.as_secs_f64()
    }

    /// As it can be typed: `1000/s`, `90/m`, `12/h`.
    pub fn exactly(self) -> String {
        match self.period.as_secs_f64() {
            60.0 => format!("{}/m", self.operations),
            3600.0 => format!("{}/h", self.operations),
            _ => format!("{}/s", self.per_s()),
        }
    }

    /// Time from the first operation to operation `k` (0, 1, 2, …): ⌊k·period/operations⌋,
    /// computed in 128-bit integers, so no error adds up however large `k` grows.
    pub fn moment(self, k: u64) -> Nanos {
        let t = u128::from(k) * u128::from(self.period.0) / u128::from(self.operations);
        Nanos(u64::try_from(t).unwrap_or(u64::MAX))
    }
}

/// The part of one worker among several: number `index` (from 0) of `of`.
///
/// What is counted (operations, users) is dealt out in turn, as cards are. Worker `i` takes the
/// items k ≡ i (mod `of`), so the parts of all workers are exactly the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Which worker, from 0, below `of`.
    pub index: u32,
    /// How many workers, at least 1.
    pub of: u32,
}

impl Share {
    /// All of it: the only worker.
    pub const WHOLE: Share = Share { index: 0, of: 1 };

    /// How many of `total` items are this worker's; over all workers they sum to `total`.
    pub fn part(self, total: u64) -> u64 {
        total / u64::from(self.of) + u64::from(total % u64::from(self.of) > u64::from(self.index))
    }
}

/// The workers of one process, of all workers that make a trial together: the share of an agent.
///
/// Workers of several processes are numbered through, so that their shares are those that one
/// process of as many workers would have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerRange {
    /// The number of its first worker.
    pub first: u32,
    /// How many workers it has.
    pub workers: u32,
    /// How many there are in all.
    pub of: u32,
}

impl WorkerRange {
    /// All of them in one process.
    pub fn whole(workers: u32) -> WorkerRange {
        WorkerRange { first: 0, workers, of: workers }
    }

    /// The workers of several processes. Each has as many as it offers. Where that is more than is
    /// `useful`, all have fewer, in proportion: one at least where that is possible, or else none.
    pub fn deal(offered: &[u32], useful: u32) -> Vec<WorkerRange> {
        let sum = |offered: &mut dyn Iterator<Item = u32>| offered.map(u64::from).sum::<u64>();
        let of = sum(&mut offered.iter().copied()).min(u64::from(useful));
        let here = offered.iter().filter(|&&workers| workers > 0).count() as u64;
        let each = u32::from(here <= of);
        let rest = || offered.iter().map(|workers| workers.saturating_sub(each));
        let (all, left) = (sum(&mut rest()), of - here * u64::from(each));
        let dealt = |sum: u64| (sum * left).checked_div(all).unwrap_or(0) as u32;
        let (mut sum, mut first) = (0, 0);
        let crews = offered.iter().zip(rest()).map(|(&workers, rest)| {
            let before = dealt(sum);
            sum += u64::from(rest);
            let crew = WorkerRange {
                first,
                workers: workers.min(each) + dealt(sum) - before,
                of: of as u32,
            };
            first += crew.workers;
            crew
        });
        crews.collect()
    }

    /// The share of its worker `nth`, from 0.
    pub fn share(self, nth: u32) -> Share {
        Share { index: self.first + nth, of: self.of }
    }

    /// How many of `total` items are its own.
    pub fn part(self, total: u64) -> u64 {
        (0..self.workers).map(|nth| self.share(nth).part(total)).sum()
    }

    /// Its part of all work, 0 to 1.
    pub fn weight(self) -> f64 {
        f64::from(self.workers) / f64::from(self.of.max(1))
    }
}

/// A period in which the number of users is constant or changes linearly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct UserStage {
    /// Users at its begin.
    pub from: u32,
    /// Users at its end.
    pub to: u32,
    /// Its length, above 0.
    pub length: Nanos,
}

impl UserStage {
    /// The first time at or after `now`, from the stage's begin on, at which there are `users`.
    fn has(&self, users: u32, now: Nanos) -> Option<Nanos> {
        let (from, to) = (f64::from(self.from), f64::from(self.to));
        let length = self.length.0 as f64;
        let at = |now: Nanos| from + (to - from) * (now.0 as f64 / length);
        // A user leaves once there is a whole one less.
        let is_there =
            at(now) >= f64::from(users) || self.to < self.from && at(now) > f64::from(users) - 1.0;
        if now >= self.length {
            None
        } else if is_there {
            Some(now)
        } else if self.to > self.from && self.to >= users {
            let due = (f64::from(users) - from) / (to - from) * length;
            Some(Nanos(due.ceil() as u64).max(now).min(self.length))
        } else {
            None
        }
    }

    /// Users at a time, between two whole numbers too.
    pub fn at(stages: &[UserStage], now: Nanos) -> f64 {
        let mut begin = Nanos::ZERO;
        for stage in stages {
            if now - begin < stage.length {
                let (from, to) = (f64::from(stage.from), f64::from(stage.to));
                return from + (to - from) * ((now - begin).0 as f64 / stage.length.0 as f64);
            }
            begin += stage.length;
        }
        0.0
    }

    /// The first time at or after `now` at which there are `users`; `None` if there never are. All
    /// are there where there are no stages.
    #[inline]
    pub fn first(stages: &[UserStage], users: u32, now: Nanos) -> Option<Nanos> {
        if stages.is_empty() { Some(now) } else { UserStage::first_of(stages, users, now) }
    }

    fn first_of(stages: &[UserStage], users: u32, now: Nanos) -> Option<Nanos> {
        let mut begin = Nanos::ZERO;
        for stage in stages {
            let has = stage.has(users, now - begin);
            if let Some(at) = has {
                return Some(begin + at);
            }
            begin += stage.length;
        }
        None
    }
}

/// What is wrong with a value and what would be right, in one line without the option's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError(pub String);

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ParseError {}

/// `30s`, `2m`, `1h`, `500ms`, `20us` (or `µs`), `100ns`, `1.5s`, `1/130s`; a bare number is
/// seconds. Rounded to the nearest nanosecond, 0 to one year (8760h).
///
/// # Errors
/// Not a number, an unknown unit, negative, over a year, or above zero but below half a nanosecond.
pub fn parse_duration(text: &str) -> Result<Nanos, ParseError> {
    let wrong = |what: &str| {
        error(format!(
            "{} {what}: give a number and a unit (ns, us, ms, s, m, h), such as 500ms or 1.5s",
            quoted(text)
        ))
    };
    let trimmed = text.trim();
    let at = trimmed.find(|c: char| c.is_alphabetic());
    let (number, unit) = trimmed.split_at(at.unwrap_or(trimmed.len()));
    let unit_ns: u128 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" | "" => SECOND_NS,
        "m" => 60 * SECOND_NS,
        "h" => HOUR_NS,
        _ => return Err(wrong("is not a duration")),
    };
    let (above, below) = number.split_once('/').unwrap_or((number, "1"));
    let (Some(above), Some(below)) = (Decimal::parse(above), Decimal::parse(below)) else {
        return Err(wrong("is not a duration"));
    };
    if below.digits == 0 {
        return Err(wrong("divides by zero"));
    }
    // (a / 10^p) / (b / 10^q) = a·10^q / (b·10^p); every factor is below 10^18.
    let dividend = above.digits.checked_mul(below.scale);
    let dividend = dividend.and_then(|d| d.checked_mul(unit_ns));
    let divisor = below.digits * above.scale;
    let ns = dividend.map_or(u128::MAX, |d| d.saturating_add(divisor / 2) / divisor);
    match u64::try_from(ns) {
        Ok(0) if above.digits > 0 => Err(wrong("is shorter than a nanosecond")),
        Ok(ns) if u128::from(ns) <= 8760 * HOUR_NS => Ok(Nanos(ns)),
        _ => Err(wrong("is longer than a year")),
    }
}

/// `1000`, `1000/s`, `90/m`, `12/h`, `0.5`, `2.5k`, `1M`: never zero, at most one per nanosecond.
/// The ratio is exact.
///
/// # Errors
/// Not a number, an unknown unit, zero, negative, too large, or with too many digits.
pub fn parse_rate(text: &str) -> Result<Rate, ParseError> {
    let wrong = |what: &str| {
        let shown = quoted(text);
        error(format!(
            "{shown} {what}: give operations per second above 0, such as 1000, 2.5k, 90/m or 0.5"
        ))
    };
    let (number, unit) = text.trim().split_once('/').unwrap_or((text.trim(), "s"));
    let period_ns = match unit.trim() {
        // vegeta writes 100/1s.
        "s" | "1s" => SECOND_NS,
        "m" | "1m" => 60 * SECOND_NS,
        "h" | "1h" => HOUR_NS,
        _ => return Err(wrong("is not a rate")),
    };
    let number = number.trim();
    let (number, factor) = match number.strip_suffix(['k', 'K']) {
        Some(thousands) => (thousands, 1_000),
        None => match number.strip_suffix('M') {
            Some(millions) => (millions, 1_000_000),
            None => (number, 1),
        },
    };
    let decimal = Decimal::parse(number).ok_or_else(|| wrong("is not a rate"))?;
    if decimal.digits == 0 {
        return Err(wrong("would offer nothing"));
    }
    let operations = decimal.digits * factor;
    let common = gcd(operations, decimal.scale);
    let (operations, period) = (operations / common, decimal.scale / common * period_ns);
    if operations > period {
        return Err(wrong("is more than one per nanosecond"));
    }
    let (Ok(operations), Ok(period)) = (u64::try_from(operations), u64::try_from(period)) else {
        return Err(wrong("has too many digits"));
    };
    Rate::new(operations, Nanos(period)).ok_or_else(|| wrong("would offer nothing"))
}

/// The most levels of a list.
pub(crate) const LEVELS_MAX: usize = 1_000;

/// The parts of a list of levels, which commas separate.
///
/// # Errors
/// There are more than `LEVELS_MAX`.
pub fn parse_list(text: &str) -> Result<impl Iterator<Item = &str>, ParseError> {
    match text.split(',').count() {
        0..=LEVELS_MAX => Ok(text.split(',')),
        n => Err(ParseError(format!("{n} levels are too many: give at most {LEVELS_MAX}"))),
    }
}

/// Several rates, separated by commas, ascending or not; at least one.
///
/// # Errors
/// The first of them that [`parse_rate`] refuses, or more than `LEVELS_MAX`.
pub fn parse_rates(text: &str) -> Result<Vec<Rate>, ParseError> {
    parse_list(text)?.map(parse_rate).collect()
}

/// `0`, `fixed(10ms)`, `exp(10ms)`, `uniform(5ms,15ms)`, `lognormal(10ms,0.5)` (median and σ of the
/// logarithm, 0 to 5); a bare duration is fixed.
///
/// # Errors
/// An unknown law, the wrong number of arguments, or an argument out of its range.
pub fn parse_law(text: &str) -> Result<Law, ParseError> {
    let wrong = |what: &str| {
        error(format!(
            "{} {what}: give a duration such as 10ms, or fixed(T), exp(T), uniform(FROM,TO) or \
             lognormal(MEDIAN,SIGMA)",
            quoted(text)
        ))
    };
    let Some(call) = Call::parse(text) else {
        return parse_duration(text)
            .map(Law::Fixed)
            .map_err(|e| wrong(if e.0.contains("year") { "is too long" } else { "is no law" }));
    };
    match (call.name, call.arguments.as_slice()) {
        ("fixed", [t]) => Ok(Law::Fixed(parse_duration(t)?)),
        ("exp", [mean]) => Ok(Law::Exp(parse_duration(mean)?)),
        ("uniform", [from, to]) => {
            let (from, to) = (parse_duration(from)?, parse_duration(to)?);
            if from > to {
                return Err(wrong("has its ends the wrong way round"));
            }
            Ok(Law::Uniform(from, to))
        }
        ("lognormal", [median, sigma]) => {
            let median = parse_duration(median)?;
            let sigma = parse_number(sigma).filter(|s| (0.0..=5.0).contains(s));
            let sigma = sigma.ok_or_else(|| wrong("needs a sigma from 0 to 5"))?;
            if median == Nanos::ZERO {
                return Err(wrong("needs a median above 0"));
            }
            Ok(Law::LogNormal(median, sigma))
        }
        ("fixed" | "exp" | "uniform" | "lognormal", _) => {
            Err(wrong("has the wrong number of arguments"))
        }
        _ => Err(wrong("is no law")),
    }
}

/// One second.
const SECOND_NS: u128 = 1_000_000_000;
/// One hour.
pub(crate) const HOUR_NS: u128 = 3600 * SECOND_NS;

/// A decimal number without sign: `digits / scale`, both below 10^18.
struct Decimal {
    digits: u128,
    /// A power of ten.
    scale: u128,
}

impl Decimal {
    fn parse(text: &str) -> Option<Decimal> {
        let (whole, fraction) = match text.trim().split_once('.') {
            Some((whole, fraction)) => (whole, fraction.trim_end_matches('0')),
            None => (text.trim(), ""),
        };
        let all = format!("{whole}{fraction}");
        let numeric = all.bytes().all(|b| b.is_ascii_digit());
        let some = text.bytes().any(|b| b.is_ascii_digit());
        if !(numeric && some && all.len() < 18) {
            return None;
        }
        Some(Decimal {
            digits: format!("0{all}").parse().ok()?,
            scale: 10u128.pow(fraction.len() as u32),
        })
    }
}

/// `name(argument,argument,…)`.
pub struct Call<'a> {
    /// The name.
    pub name: &'a str,
    /// What stands between the brackets, at each comma apart.
    pub arguments: Vec<&'a str>,
}

impl Call<'_> {
    /// Reads a call; `None` where the text is none.
    pub fn parse(text: &str) -> Option<Call<'_>> {
        let (name, rest) = text.trim().split_once('(')?;
        Some(Call {
            name: name.trim(),
            arguments: rest.strip_suffix(')')?.split(',').map(str::trim).collect(),
        })
    }
}

pub(crate) fn parse_number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|x: &f64| x.is_finite())
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The error that this line says.
pub fn error(line: String) -> ParseError {
    ParseError(line)
}

/// The text in quotes, on one line and not long, whatever it holds.
pub fn quoted(text: &str) -> String {
    let escaped = text.escape_debug().to_string();
    match escaped.char_indices().nth(40) {
        Some((at, _)) => format!("'{}…'", &escaped[..at]),
        None => format!("'{escaped}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn users_are_there_by_the_stages() {
        let s = Nanos::from_secs;
        let stage = |from, to, length| UserStage { from, to, length: s(length) };
        let stages =
            [stage(0, 4, 4), stage(4, 4, 2), stage(4, 0, 4), stage(0, 0, 5), stage(2, 2, 1)];
        let first = |users, now| UserStage::first(&stages, users, s(now));
        for (users, now, want) in [
            (1, 0, Some(1)),
            (4, 0, Some(4)),
            (1, 3, Some(3)),
            (4, 5, Some(5)),
            (4, 6, Some(6)),
            (4, 7, None),
            (2, 8, Some(8)),
            (2, 9, Some(15)),
            (1, 10, Some(15)),
            (3, 10, None),
            (1, 16, None),
            (5, 0, None),
        ] {
            assert_eq!(first(users, now), want.map(s), "{users} users from {now} s on");
        }
        assert_eq!(UserStage::first(&[], 9, s(3)), Some(s(3)));
    }

    #[test]
    fn a_rate_is_neither_zero_nor_infinite() {
        for (per_s, exists) in [
            (0.0, false),
            (-1.0, false),
            (f64::NAN, false),
            (f64::INFINITY, false),
            (1e12, false),
            (1e-7, false),
            (1e-6, true),
            (999_999_999_999.0, true),
        ] {
            assert_eq!(Rate::from_f64(per_s).is_some(), exists, "{per_s}");
        }
        assert_eq!(Rate::new(0, Nanos(1)), None);
        assert_eq!(Rate::new(1, Nanos::ZERO), None);
        assert_eq!(Rate::per_second(0), None);
    }

    #[test]
    fn moments_saturate_instead_of_wrapping() {
        let rate = Rate::new(1, Nanos::from_secs(3_600)).unwrap();
        assert_eq!(rate.moment(u64::MAX), Nanos::MAX);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        /// Operation k is at k periods over operations, rounded down: never early by a nanosecond,
        /// and exact wherever k is a multiple of the operations.
        #[test]
        fn moments_never_drift(
            operations in 1u64..1_000_000_000,
            period in 1u64..10_000_000_000_000,
            n in 0u64..1_000_000,
        ) {
            let rate = Rate::new(operations, Nanos(period)).unwrap();
            let whole = u128::from(n) * u128::from(period);
            if whole < u128::from(u64::MAX) {
                prop_assert_eq!(u128::from(rate.moment(n * operations).0), whole);
            }
            let (k, t) = (u128::from(n), u128::from(rate.moment(n).0));
            let (p, ops) = (u128::from(period), u128::from(operations));
            prop_assert!(t * ops <= k * p && k * p < (t + 1) * ops);
        }

        #[test]
        fn a_fraction_keeps_six_decimals(millionths in 1u64..1_000_000_000_000) {
            let per_s = millionths as f64 / 1e6;
            let rate = Rate::from_f64(per_s).unwrap();
            prop_assert!((rate.per_s() - per_s).abs() <= 1e-6);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn parts_sum_to_the_whole_and_differ_by_one_at_most(total in 0u64..10_000, of in 1u32..40) {
            let parts: Vec<u64> = (0..of).map(|index| Share { index, of }.part(total)).collect();
            prop_assert_eq!(parts.iter().sum::<u64>(), total);
            prop_assert!(parts.iter().max().unwrap() - parts.iter().min().unwrap() <= 1);
        }

        #[test]
        fn crews_have_each_worker_once_and_no_more_than_they_offer(
            offered in proptest::collection::vec(0u32..20, 1..12),
            useful in 0u32..100,
            total in 0u64..10_000,
        ) {
            let crews = WorkerRange::deal(&offered, useful);
            let all: u32 = offered.iter().sum();
            let mut next = 0;
            for (crew, &offered) in crews.iter().zip(&offered) {
                prop_assert_eq!(crew.first, next);
                prop_assert_eq!(crew.of, all.min(useful));
                prop_assert!(crew.workers <= offered);
                next += crew.workers;
            }
            prop_assert_eq!(next, all.min(useful));
            let here = offered.iter().filter(|&&workers| workers > 0).count() as u32;
            if useful >= here {
                prop_assert!(crews.iter().zip(&offered).all(|(c, &o)| c.workers > 0 || o == 0));
            }
            if next > 0 {
                prop_assert_eq!(crews.iter().map(|c| c.part(total)).sum::<u64>(), total);
            }
        }
    }
}
