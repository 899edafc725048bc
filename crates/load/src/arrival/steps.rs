//! Rates one after another.

use super::process::{ArrivalProcess, Process, ProcessKind};
use crate::quantity::{ParseError, Rate, Share, error, parse_duration, parse_rate, quoted};
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// Rates one after another, each for its time. The last goes on to the end of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepsLaw(Vec<StepOfRate>);

/// One rate and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepOfRate {
    /// Rate.
    pub rate: Rate,
    /// Time for which it is offered, above zero.
    pub length: Nanos,
}

/// Most steps. The next operation is looked for among all of them.
const STEPS_MAX: usize = 100;

impl StepsLaw {
    /// These steps; `None` without any, of more than 100, or where one has no length.
    pub fn new(steps: Vec<StepOfRate>) -> Option<StepsLaw> {
        let all_last = steps.iter().all(|step| step.length > Nanos::ZERO);
        (all_last && (1..=STEPS_MAX).contains(&steps.len())).then_some(StepsLaw(steps))
    }

    /// The steps, at least one.
    pub fn steps(&self) -> &[StepOfRate] {
        &self.0
    }

    /// Operations up to `t`.
    fn until(&self, t: Nanos) -> f64 {
        let last = self.0.len().saturating_sub(1);
        let (mut left, mut sum) = (t, 0.0);
        for (index, step) in self.0.iter().enumerate() {
            let length = if index == last { left } else { step.length.min(left) };
            sum += step.rate.per_s() * length.as_secs_f64();
            left = left - length;
        }
        sum
    }

    /// When operation number `k` is intended.
    fn time_of(&self, k: f64) -> Nanos {
        let last = self.0.len().saturating_sub(1);
        let (mut left, mut begin_s) = (k, 0.0);
        for (index, step) in self.0.iter().enumerate() {
            let of_step = step.rate.per_s() * step.length.as_secs_f64();
            if left < of_step || index == last {
                return Nanos::from_secs_f64(begin_s + left / step.rate.per_s());
            }
            left -= of_step;
            begin_s += step.length.as_secs_f64();
        }
        Nanos::MAX
    }
}

/// The schedule of steps: operation k is intended when the integral of the rate reaches k. Each
/// time is computed from k, so no error adds up. Worker i of W takes the k ≡ i (mod W).
#[derive(Clone, Debug)]
pub struct Steps {
    law: StepsLaw,
    share: Share,
    k: u64,
}

impl Steps {
    /// One worker's share.
    pub fn new(law: StepsLaw, share: Share) -> Steps {
        Steps { law, share, k: u64::from(share.index) }
    }
}

impl ArrivalProcess for Steps {
    fn next(&mut self) -> Option<Nanos> {
        let k = self.k as f64;
        self.k += u64::from(self.share.of);
        Some(self.law.time_of(k))
    }

    fn skip(&mut self, n: u64) {
        self.k += n * u64::from(self.share.of);
    }

    fn rate_at(&self, t: Nanos) -> f64 {
        let mut end = Nanos::ZERO;
        let mut steps = self.law.0.iter();
        let now = steps.find(|step| {
            end += step.length;
            t < end
        });
        let step = now.or(self.law.0.last());
        step.map_or(0.0, |step| step.rate.per_s()) / f64::from(self.share.of)
    }
}

impl Process for Steps {
    type Law = StepsLaw;
    const KIND: ProcessKind = ProcessKind {
        shape: "steps(...)",
        meaning: "steps(RATE for TIME,...)",
        carries_rate: true,
        is_even: false,
        ..ProcessKind::plain(
            "steps",
            "steps(...): rates one after another, such as steps(100 for 10s,300 for \
             5s,100 for 30s); the last goes on; replaces --rate.",
        )
    };

    fn parse(text: &str, arguments: &[&str]) -> Option<Result<StepsLaw, ParseError>> {
        if arguments.is_empty() {
            return None;
        }
        let step = |argument: &&str| -> Result<StepOfRate, ParseError> {
            let wrong = || {
                let (text, step) = (quoted(text), quoted(argument));
                error(format!("{text} has a step {step}: give RATE for TIME, such as 300 for 5s"))
            };
            let (rate, length) = argument.split_once(" for ").ok_or_else(wrong)?;
            let (rate, length) = (parse_rate(rate)?, parse_duration(length)?);
            Some(StepOfRate { rate, length }).filter(|s| s.length > Nanos::ZERO).ok_or_else(wrong)
        };
        let steps: Result<Vec<StepOfRate>, ParseError> = arguments.iter().map(step).collect();
        let law = |steps| {
            StepsLaw::new(steps).ok_or_else(|| {
                error(format!("{} has over {STEPS_MAX} steps: give fewer", quoted(text)))
            })
        };
        Some(steps.and_then(law))
    }

    fn text(law: &StepsLaw, _file: &str) -> String {
        let steps = law.0.iter();
        let steps = steps.map(|s| format!("{} for {}", s.rate.exactly(), s.length.exactly()));
        format!("steps({})", steps.collect::<Vec<_>>().join(","))
    }

    fn begin(law: &StepsLaw, _rate: Rate, share: Share, _seed: u64) -> Steps {
        Steps::new(law.clone(), share)
    }

    fn own_rate(law: &StepsLaw) -> Option<Rate> {
        let length = law.0.iter().fold(Nanos::ZERO, |sum, step| sum + step.length);
        Rate::from_f64(law.until(length) / length.as_secs_f64())
    }

    fn peak_per_s(law: &StepsLaw, _rate: Rate) -> f64 {
        law.0.iter().map(|step| step.rate.per_s()).fold(0.0, f64::max)
    }

    fn operations(law: &StepsLaw, _rate: Rate, [start, end]: [Nanos; 2]) -> f64 {
        law.until(end) - law.until(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::parse_arrival;

    fn law(text: &str) -> StepsLaw {
        match parse_arrival(text, Nanos::ZERO).unwrap() {
            crate::arrival::ArrivalLaw::Steps(law) => law,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_step_has_its_operations_and_the_last_goes_on() {
        let law = law("steps(10 for 1s, 100 for 1s,10 for 1s)");
        let mut all = Steps::new(law.clone(), Share::WHOLE);
        let times: Vec<Nanos> = std::iter::from_fn(|| all.next()).take(130).collect();
        let within = |from: u64, to: u64| {
            let window = Nanos::from_secs(from)..Nanos::from_secs(to);
            times.iter().filter(|t| window.contains(t)).count()
        };
        assert_eq!([within(0, 1), within(1, 2), within(2, 3), within(3, 4)], [10, 100, 10, 10]);
        assert_eq!(law.until(Nanos::from_millis(1_500)), 60.0);
        assert_eq!(all.rate_at(Nanos::from_millis(1_500)), 100.0);
        assert_eq!(all.rate_at(Nanos::from_secs(9)), 10.0);
        assert_eq!(Steps::own_rate(&law).unwrap().per_s(), 40.0);
        assert_eq!(Steps::text(&law, ""), "steps(10/s for 1s,100/s for 1s,10/s for 1s)");
    }

    #[test]
    fn bad_steps_are_refused() {
        for text in
            ["steps()", "steps(10)", "steps(10 for 0s)", "steps(0 for 1s)", "steps(a for b)"]
        {
            assert!(parse_arrival(text, Nanos::ZERO).is_err(), "{text}");
        }
    }
}
