//! Ways to hold a rate of operations, and what is asked of them.

use crate::experiment::throttle::wait::Chore;
use crate::spec::{ArrivalLaw, Margins, ParseError, Rate};
use crate::throttle::CatchUp;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

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
