//! Ways to hold a rate of operations, and what is asked of them.

use crate::experiment::throttle::wait::Chore;
use crate::spec::{ArrivalLaw, Margins, ParseError, Rate};
use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A way to hold a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HoldMethod {
    /// Operate, sleep 1/rate, again: what everybody writes first.
    NaiveSleep,
    /// Operate, sleep for what is left of 1/rate since the last operation began.
    RelativeSleep,
    /// Wake up with a clock's tick of 10 ms and make all operations that are due by then.
    Tick,
    /// Take a token that is refilled at the rate, sleep for the lack where there is none.
    TokenBucket,
    /// Make an operation for each expiry of a periodic timer (timerfd with an interval).
    IntervalTimer,
    /// The throttle's schedule, waited for by reading the clock.
    Spin,
    /// The throttle, with its best wait.
    Throttle,
}

impl HoldMethod {
    /// All of them, in the order in which they are tabled.
    pub const ALL: [HoldMethod; 7] = [
        HoldMethod::NaiveSleep,
        HoldMethod::RelativeSleep,
        HoldMethod::Tick,
        HoldMethod::TokenBucket,
        HoldMethod::IntervalTimer,
        HoldMethod::Spin,
        HoldMethod::Throttle,
    ];

    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            HoldMethod::NaiveSleep => "naive-sleep",
            HoldMethod::RelativeSleep => "relative-sleep",
            HoldMethod::Tick => "tick",
            HoldMethod::TokenBucket => "token-bucket",
            HoldMethod::IntervalTimer => "interval-timer",
            HoldMethod::Spin => "spin",
            HoldMethod::Throttle => "throttle",
        }
    }

    /// The method of this name.
    ///
    /// # Errors
    /// There is none: the line lists those there are.
    pub fn parse(text: &str) -> Result<HoldMethod, ParseError> {
        let found = HoldMethod::ALL.into_iter().find(|m| m.name() == text);
        found.ok_or_else(|| {
            let names = HoldMethod::ALL.map(HoldMethod::name).join(", ");
            ParseError(format!(
                "'{text}' is no way to hold a rate: there are {names}"
            ))
        })
    }
}

/// What becomes of operations whose moment has passed, after a stall.
///
/// An operation is *missed* once the moment of its successor has come as well: being late by less
/// than a gap is no stall, and no policy acts on it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CatchUp {
    /// The newest so many of those due are made at once, back to back; the older ones are skipped
    /// and counted. `u64::MAX`: none is ever skipped.
    Burst(u64),
    /// All are made, but no faster than so many times the rate (above 1), until the schedule is
    /// caught up with. (It keeps operations apart, so it is felt for a lateness below a gap too.)
    Spread(f64),
    /// Missed ones are counted, not made: the same as a burst of one.
    Skip,
    /// All later moments move back by as much as the first missed one is late; counted.
    Delay,
}

impl CatchUp {
    /// Every operation is made, as soon as it can be.
    pub const ALL: CatchUp = CatchUp::Burst(u64::MAX);

    /// `burst`, `burst(20)`, `spread`, `spread(1.5)` (twice the rate unless given), `skip`,
    /// `delay`.
    ///
    /// # Errors
    /// Another word, a burst of 0, or a spread that does not catch up (1 or less).
    pub fn parse(text: &str) -> Result<CatchUp, ParseError> {
        let (name, argument) = match text.trim().split_once('(') {
            None => (text.trim(), None),
            Some((name, rest)) => (name, Some(rest.strip_suffix(')').unwrap_or(""))),
        };
        let wrong = |what: &str| {
            ParseError(format!(
                "'{text}' {what}: give burst, burst(N) with N from 1, spread(X) with X above 1, \
                 skip or delay"
            ))
        };
        match (name, argument) {
            ("burst", None) => Ok(CatchUp::ALL),
            ("burst", Some(n)) => match n.trim().parse() {
                Ok(n) if n > 0 => Ok(CatchUp::Burst(n)),
                _ => Err(wrong("is no burst")),
            },
            ("spread", None) => Ok(CatchUp::Spread(2.0)),
            ("spread", Some(x)) => match x.trim().parse::<f64>() {
                Ok(x) if x.is_finite() && x > 1.0 => Ok(CatchUp::Spread(x)),
                _ => Err(wrong("never catches up")),
            },
            ("skip", None) => Ok(CatchUp::Skip),
            ("delay", None) => Ok(CatchUp::Delay),
            _ => Err(wrong("is no policy")),
        }
    }
}

impl fmt::Display for CatchUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CatchUp::Burst(u64::MAX) => f.write_str("burst"),
            CatchUp::Burst(n) => write!(f, "burst({n})"),
            CatchUp::Spread(x) => write!(f, "spread({x})"),
            CatchUp::Skip => f.write_str("skip"),
            CatchUp::Delay => f.write_str("delay"),
        }
    }
}

/// One row of the table of rates: one method holding one rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HoldSpec {
    /// How to hold it.
    pub method: HoldMethod,
    /// Mean operations per second.
    pub rate: Rate,
    /// When they come; the methods that know no schedule take 1/rate for each gap.
    pub arrival: ArrivalLaw,
    /// What the throttle does after a stall.
    pub catch_up: CatchUp,
    /// Waits shorter than this are not made: the throttle groups operations instead.
    pub wait_min: Nanos,
    /// How long the rate is held.
    pub duration: Nanos,
    /// The operation.
    pub chore: Chore,
    /// Seeds the arrivals.
    pub seed: u64,
    /// Where the throttle's wait begins.
    pub margins: Margins,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_method_is_found_by_the_name_that_reports_give_it() {
        for method in HoldMethod::ALL {
            assert_eq!(HoldMethod::parse(method.name()), Ok(method));
            let json = serde_json::to_value(method).unwrap();
            assert_eq!(json, method.name());
        }
        let ParseError(line) = HoldMethod::parse("naive").unwrap_err();
        assert!(line.starts_with("'naive' is no way to hold a rate: there are naive-sleep, rel"));
    }

    #[test]
    fn policies_are_read_and_written() {
        for (text, policy, written) in [
            ("burst", CatchUp::ALL, "burst"),
            ("burst(20)", CatchUp::Burst(20), "burst(20)"),
            (" burst( 1 ) ", CatchUp::Burst(1), "burst(1)"),
            ("spread", CatchUp::Spread(2.0), "spread(2)"),
            ("spread(1.5)", CatchUp::Spread(1.5), "spread(1.5)"),
            ("skip", CatchUp::Skip, "skip"),
            ("delay", CatchUp::Delay, "delay"),
        ] {
            assert_eq!(CatchUp::parse(text), Ok(policy));
            assert_eq!(policy.to_string(), written);
        }
    }

    #[test]
    fn a_policy_that_is_none_is_refused_in_one_line_that_says_what_would_be_right() {
        for (text, what) in [
            ("", "is no policy"),
            ("bursts", "is no policy"),
            ("skip(3)", "is no policy"),
            ("delay()", "is no policy"),
            ("burst(0)", "is no burst"),
            ("burst(-1)", "is no burst"),
            ("burst()", "is no burst"),
            ("burst(2", "is no burst"),
            ("spread(1)", "never catches up"),
            ("spread(0.5)", "never catches up"),
            ("spread(NaN)", "never catches up"),
            ("spread(inf)", "never catches up"),
        ] {
            let ParseError(line) = CatchUp::parse(text).unwrap_err();
            let expected = format!("'{text}' {what}: give burst, burst(N) with N from 1, ");
            assert!(
                line.starts_with(&expected) && !line.contains('\n'),
                "{line}"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn a_policy_is_read_back_as_it_was_written(n in 1u64.., times in 1.000_001f64..1e9) {
            for policy in [CatchUp::Burst(n), CatchUp::Spread(times)] {
                prop_assert_eq!(CatchUp::parse(&policy.to_string()), Ok(policy));
            }
        }
    }
}
