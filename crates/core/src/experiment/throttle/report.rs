//! The answer of `knee throttle`: its figures, and its sentences.

use super::findings::CODES;
use crate::consistency::{Contradictions, Said};
use crate::experiment::throttle::analysis::{
    HeldRate, at_reference_delay, ends_early, rate_row, wait_row,
};
use crate::experiment::{Answer, values};
use crate::finding::Code;
use crate::trial::report::TrialReport;
use crate::words::{capital, exact, number, percent, time};
use knee_load::experiment::throttle::{HoldMethod, HoldTrial, WaitMethod, WaitTrial};
use knee_load::spec::ArrivalLaw;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How this machine waits, or how well each way holds a rate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThrottleConclusion {
    /// A row for each method and delay; empty with `--rate`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub table: Vec<WaitRow>,
    /// The margin that `hybrid` takes before a deadline 1 ms away; `None` with `--rate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hybrid_margin_ns: Option<u64>,
    /// The same for sleeps of each length.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub margins: Vec<MarginRow>,
    /// The best way to wait within each budget of processor time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recommendations: Vec<WaitAdvice>,
    /// With `--rate`: a row for each way to hold it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<RateRow>,
    /// The conclusion in one or two sentences for a person.
    pub answer: String,
}

/// One method asked for one delay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitRow {
    /// How it waited.
    pub method: String,
    /// What was done between two waits: `none`, `udp`, `qotd`.
    pub op: String,
    /// The delay asked for.
    pub delay_ns: u64,
    /// Mean wait.
    pub mean_ns: u64,
    /// Half of the 99.9 % confidence interval of the mean (Student's t).
    pub error_ns: u64,
    /// Standard deviation of the waits.
    pub std_dev_ns: u64,
    /// By how much the median wait was late.
    pub overshoot_p50_ns: u64,
    /// Percentiles of the same.
    pub overshoot_p1_ns: u64,
    /// See `overshoot_p1_ns`.
    pub overshoot_p10_ns: u64,
    /// See `overshoot_p1_ns`.
    pub overshoot_p90_ns: u64,
    /// See `overshoot_p1_ns`.
    pub overshoot_p99_ns: u64,
    /// The largest.
    pub overshoot_max_ns: u64,
    /// Processor time used, in percent of a core.
    pub cpu_percent: f64,
    /// Waits made.
    pub samples: u64,
    /// Of them, those made while the host gave the processors to others.
    pub stolen_samples: u64,
    /// Of them, those that ended too early.
    pub early_samples: u64,
    /// Mean time of what was done between two waits; absent where nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub op_mean_ns: Option<u64>,
}

/// The margin of `hybrid` for sleeps of one length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarginRow {
    /// Sleeps from this length on, up to twice it.
    pub sleep_ns: u64,
    /// Its margin.
    pub margin_ns: u64,
}

/// The best way to wait at some rate within a budget of processor time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitAdvice {
    /// The most that waiting may cost, in percent of a core.
    pub budget_percent: f64,
    /// The delay that it holds for.
    pub delay_ns: u64,
    /// The method.
    pub method: String,
    /// `hybrid`: the margin; absent for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin_ns: Option<u64>,
    /// The median overshoot to expect.
    pub overshoot_p50_ns: u64,
    /// The 99th percentile to expect.
    pub overshoot_p99_ns: u64,
    /// What one wait per delay costs, in percent of a core.
    pub cpu_percent: f64,
}

/// One method that was to hold a rate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RateRow {
    /// How it was held.
    pub method: String,
    /// Operations per second asked for.
    pub asked_per_s: f64,
    /// Operations per second made: the reciprocal slope of time over number. Absent of a single
    /// operation, which has no rate.
    #[serde(default)]
    pub achieved_per_s: Option<f64>,
    /// By how much lateness grows, in nanoseconds per millisecond (parts per million): 0 for a
    /// schedule that is kept, however late each operation is.
    pub drift_ppm: f64,
    /// By how much stalls and late operations may have bent that, at the most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift_error_ppm: Option<f64>,
    /// Median of begin − intended time, in nanoseconds; what began early counts as 0.
    pub error_p50_ns: u64,
    /// 99th percentile of it.
    pub error_p99_ns: u64,
    /// The largest.
    pub error_max_ns: u64,
    /// Coefficient of variation of the gaps between operations.
    pub gap_cv: f64,
    /// Processor time used, the operations' included, in percent of a core.
    pub cpu_percent: f64,
    /// The operations' share of it: time spent in them, in percent of the whole.
    pub op_percent: f64,
    /// Operations made.
    pub operations: u64,
    /// Operations left out by the catch-up policy.
    pub skipped: u64,
    /// Operations that began before their intended time, as a minimal wait groups them.
    pub early: u64,
    /// By how much the catch-up policy moved the schedule back.
    pub shifted_ns: u64,
}

/// Drift that is less than what crystals differ by is none, in parts per million.
const EXACT_PPM: f64 = 1.0;

/// How a plain sleep and the best of the ways to wait do at the usual delay.
pub(super) fn waits_in_words(trials: &[WaitTrial]) -> String {
    let of =
        |method: WaitMethod| at_reference_delay(trials.iter().filter(|t| t.spec.method == method));
    let Some(any) = at_reference_delay(trials) else {
        return "Nothing was measured.".into();
    };
    let sleeps = [WaitMethod::Sleep, WaitMethod::SleepAbsolute];
    let sleep = sleeps.into_iter().find_map(of).and_then(wait_row);
    let hybrid = of(WaitMethod::Hybrid).filter(|t| !ends_early(t));
    let best = hybrid.or_else(|| {
        let there = trials.iter().filter(|t| t.spec.delay == any.spec.delay);
        let rows = there.filter(|t| !ends_early(t)).filter(|t| wait_row(t).is_some());
        rows.min_by_key(|t| t.waits.overshoot.quantile(0.5))
    });
    let mut parts = Vec::new();
    if let Some(row) = &sleep {
        parts.push(format!(
            "a sleep of {} takes {} here",
            time(row.delay_ns as f64),
            time(row.mean_ns as f64)
        ));
    }
    let best = best.and_then(wait_row);
    if let Some(row) = best.filter(|b| sleep.as_ref() != Some(b)) {
        parts.push(format!(
            "{} hits {} with a median error of {} for {} of a core",
            row.method,
            time(row.delay_ns as f64),
            time(row.overshoot_p50_ns as f64),
            percent(row.cpu_percent)
        ));
    }
    sentence(&parts)
}

/// What the throttle and the naive loop made of the rate asked for.
pub(super) fn rates_in_words(trials: &[HoldTrial]) -> String {
    let of = |method: HoldMethod| {
        let trial = trials.iter().find(|t| t.spec.method == method)?;
        Some((trial, rate_row(trial)?))
    };
    let naive = of(HoldMethod::NaiveSleep);
    let best = of(HoldMethod::Throttle).or_else(|| {
        let rows = trials.iter().filter_map(|t| Some((t, rate_row(t)?)));
        let others = rows.filter(|(t, _)| t.spec.method != HoldMethod::NaiveSleep);
        others.min_by(|a, b| a.1.drift_ppm.abs().total_cmp(&b.1.drift_ppm.abs()))
    });
    let mut parts = Vec::new();
    if let Some((trial, row)) = &best {
        parts.push(held(trial, row));
    }
    if let Some((trial, row)) = &naive {
        let asked = match best {
            Some(_) => String::new(),
            None => format!(" of the {}/s asked for", exact(row.asked_per_s)),
        };
        let name = "operate-and-sleep";
        parts.push(match row.achieved_per_s {
            Some(reached) => format!("{name} reached {}/s{asked}", number(reached)),
            None => too_few(name, trial, row),
        });
    }
    if parts.is_empty() {
        return "Nothing was measured.".into();
    }
    sentence(&parts)
}

fn held(trial: &HoldTrial, row: &RateRow) -> String {
    let name = match trial.spec.method {
        HoldMethod::Throttle => "the throttle",
        other => other.name(),
    };
    let asked = exact(row.asked_per_s);
    let (Some(hold), Some(achieved_per_s)) = (HeldRate::of(trial), row.achieved_per_s) else {
        return too_few(name, trial, row);
    };
    if !hold.is_held {
        let reached = number(achieved_per_s);
        return format!("{name} reached {reached}/s of the {asked}/s asked for");
    }
    let drift = row.drift_ppm;
    let error = row.drift_error_ppm.unwrap_or(0.0);
    let off = drift.abs().max(missed_ppm(trial, row));
    if off + error < EXACT_PPM {
        // No sign where what it stands before rounds to nothing.
        let drift = if drift.abs() < 0.005 { 0.0 } else { drift };
        return format!("{name} held {asked}/s exactly ({drift:.2} ppm drift)");
    }
    if error > off {
        let told = trial.holds.elapsed.as_secs_f64();
        let (drift, error) = (ppm(drift), ppm(error));
        return format!(
            "{name} held {asked}/s, as far as {} shows (drift {drift} ± {error} ppm)",
            time(told * 1e9)
        );
    }
    let within = exact((off + error - 1e-3).ceil().max(EXACT_PPM));
    format!("{name} held {asked}/s to within {within} ppm")
}

fn too_few(name: &str, trial: &HoldTrial, row: &RateRow) -> String {
    format!(
        "{name} made too few operations to tell ({} in {}): give -d {} or more",
        row.operations,
        time(trial.holds.elapsed.as_secs_f64() * 1e9),
        time(2e9 / row.asked_per_s)
    )
}

fn ppm(value: f64) -> String {
    if value.abs() < 0.005 { "0".to_owned() } else { number(value) }
}

/// By how much the rate of its row differs from the one asked for, in parts per million. Includes
/// what the catch-up policy left out or moved.
fn missed_ppm(trial: &HoldTrial, row: &RateRow) -> f64 {
    let skipped = row.skipped as f64 / (row.operations + row.skipped).max(1) as f64;
    let shifted = row.shifted_ns as f64 / trial.holds.elapsed.0.max(1) as f64;
    // Any other law has another number of operations in this time, by chance or by itself.
    let apart = match (&trial.spec.arrival, row.achieved_per_s) {
        (ArrivalLaw::Constant, Some(achieved)) => (achieved / row.asked_per_s - 1.0).abs(),
        _ => 0.0,
    };
    1e6 * skipped.max(shifted).max(apart)
}

/// With a capital and a full stop.
fn sentence(parts: &[String]) -> String {
    format!("{}.", capital(&parts.join("; ")))
}

impl Answer for ThrottleConclusion {
    fn codes() -> Vec<Code> {
        CODES.to_vec()
    }

    fn cut_short(&mut self, _trial: &TrialReport, words: String) {
        self.answer = words;
    }

    fn rows(&self) -> usize {
        self.table.len() + self.rates.len()
    }

    fn table(&self) -> serde_json::Result<Vec<Value>> {
        if self.rates.is_empty() { values(&self.table) } else { values(&self.rates) }
    }

    fn check(&self, _said: Said<'_>, found: &mut Contradictions) {
        for row in &self.table {
            found.ascending(
                &format!("{} of {} ns", row.method, row.delay_ns),
                &[
                    ("p1", Some(row.overshoot_p1_ns)),
                    ("p10", Some(row.overshoot_p10_ns)),
                    ("p50", Some(row.overshoot_p50_ns)),
                    ("p90", Some(row.overshoot_p90_ns)),
                    ("p99", Some(row.overshoot_p99_ns)),
                    ("max", Some(row.overshoot_max_ns)),
                ],
            );
        }
        for row in &self.rates {
            found.ascending(
                &row.method,
                &[
                    ("p50", Some(row.error_p50_ns)),
                    ("p99", Some(row.error_p99_ns)),
                    ("max", Some(row.error_max_ns)),
                ],
            );
        }
    }
}

#[cfg(test)]
mod answer_tests {
    use super::*;
    use crate::experiment::throttle::tests::{holds, waits};
    use knee_load::experiment::throttle::HoldStats;
    use knee_load::time::Nanos;
    use proptest::prelude::*;

    fn late(method: HoldMethod, late_ns: impl Fn(u64) -> u64) -> HoldTrial {
        holds(method, Nanos::from_micros(100), |k| Nanos(late_ns(k)))
    }

    #[test]
    fn rates_are_described() {
        let throttle = |f: fn(u64) -> u64| late(HoldMethod::Throttle, f);
        let naive = || late(HoldMethod::NaiveSleep, |k| 1_000_000 * k);
        let tick = || late(HoldMethod::Tick, |_| 0);
        let skipping = || {
            let mut trial = throttle(|_| 70);
            trial.holds.skipped = 1;
            trial
        };
        let single = || {
            let mut trial = throttle(|_| 0);
            trial.holds = HoldStats::default();
            trial.holds.record(Nanos::ZERO, Nanos(5));
            trial.holds.elapsed = Nanos::from_millis(1);
            trial
        };
        let stall: fn(u64) -> u64 = |k| if k < 100 { 5_000_000 } else { 0 };
        for (trials, expected) in [
            (vec![], "Nothing was measured."),
            (vec![throttle(|_| 70)], "The throttle held 1,000/s exactly (0.00 ppm drift)."),
            (
                vec![naive(), throttle(|k| k / 50)],
                "The throttle held 1,000/s exactly (0.02 ppm drift); operate-and-sleep reached \
                 500/s.",
            ),
            (vec![throttle(|k| 40 * k)], "The throttle held 1,000/s to within 40 ppm."),
            (
                vec![single()],
                "The throttle made too few operations to tell (1 in 1 ms): give -d 2 ms or more.",
            ),
            (
                vec![throttle(stall)],
                "The throttle held 1,000/s, as far as 1 s shows (drift -2,700 ± 4,440 ppm).",
            ),
            (vec![naive()], "Operate-and-sleep reached 500/s of the 1,000/s asked for."),
            (vec![skipping()], "The throttle held 1,000/s to within 999 ppm."),
            (vec![tick()], "Tick held 1,000/s exactly (0.00 ppm drift)."),
        ] {
            assert_eq!(rates_in_words(&trials), expected);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        /// Whatever happens to it, the throttle is not said to hold a rate better than its row has
        /// it.
        #[test]
        fn no_headline_is_better_than_its_row(
            stalls in prop::collection::vec((0..1_000u64, 1..50_000_000u64), 0..4),
            drift in prop_oneof![Just(0u64), 0..2_000u64], noise in 0..100_000u64,
            skipped in prop_oneof![3 => Just(0u64), 1 => 1..3u64],
        ) {
            let lateness = |k: u64| {
                let of = |&(at, length): &(u64, u64)| {
                    let since = k.saturating_sub(at) * 1_000_000;
                    if k >= at { length.saturating_sub(since) } else { 0 }
                };
                let stalled = stalls.iter().map(of).max().unwrap_or(0);
                stalled + drift * k + k * 7_919 % (noise + 1)
            };
            let mut trial = late(HoldMethod::Throttle, lateness);
            trial.holds.skipped = skipped;
            let row = rate_row(&trial).expect("a row");
            let achieved = row.achieved_per_s.expect("a rate");
            let answer = rates_in_words(&[trial]);
            if answer.contains("exactly") {
                prop_assert!(row.drift_ppm.abs() < 1.0 && row.skipped == 0, "{answer} {row:?}");
                prop_assert!((achieved / 1e3 - 1.0).abs() < 1e-6, "{answer} {row:?}");
            }
            if let Some((_, claim)) = answer.split_once("to within ") {
                let claim = claim.trim_end_matches(" ppm.").replace(',', "");
                let claim: f64 = claim.parse().expect("a number");
                prop_assert!(row.drift_ppm.abs() <= claim + 0.01, "{answer} {row:?}");
                prop_assert!((achieved / 1e3 - 1.0).abs() <= claim / 1e6 + 1e-8);
            }
        }
    }

    #[test]
    fn a_wait_that_ends_early_hits_nothing() {
        let ms = Nanos::from_millis(1);
        let mut early = waits(WaitMethod::Hybrid, ms, &[0; 100]);
        early.waits.early = 2;
        let sleep = waits(WaitMethod::Sleep, ms, &[60_000; 100]);
        let trials = [sleep, early];
        assert_eq!(waits_in_words(&trials), "A sleep of 1 ms takes 1.06 ms here.");
    }

    #[test]
    fn waits_are_described() {
        let ms = Nanos::from_millis(1);
        let sleep = || waits(WaitMethod::Sleep, ms, &[60_000; 100]);
        let spin = || waits(WaitMethod::Spin, ms, &[40; 100]);
        for (trials, expected) in [
            (vec![], "Nothing was measured."),
            (vec![sleep()], "A sleep of 1 ms takes 1.06 ms here."),
            (
                vec![spin(), sleep()],
                "A sleep of 1 ms takes 1.06 ms here; spin hits 1 ms with a median error of 40 ns \
                 for 0.3 % of a core.",
            ),
            (vec![spin()], "Spin hits 1 ms with a median error of 40 ns for 0.3 % of a core."),
        ] {
            assert_eq!(waits_in_words(&trials), expected);
        }
    }
}
