//! The conclusion of `knee throttle` as a report sees it: its sentences, and its checks for
//! contradictions.

use super::analysis::{HeldRate, at_reference_delay, ends_early, rate_row, wait_row};
use super::findings::CODES;
use super::report::{RateRow, ThrottleConclusion};
use crate::consistency::{CheckedReport, ConsistencyCheck};
use crate::experiment::{Answer, values};
use crate::finding::Code;
use crate::trial::report::TrialReport;
use crate::words::{capital, exact, number, percent, time};
use knee_load::experiment::throttle::{HoldMethod, HoldTrial, WaitMethod, WaitTrial};
use knee_load::spec::ArrivalLaw;
use serde_json::Value;

/// Drift that is less than what crystals differ by is none, in parts per million.
const EXACT_PPM: f64 = 1.0;

/// How a plain sleep and the best of the ways to wait do at the usual delay.
pub(super) fn waits_in_words(trials: &[WaitTrial]) -> String {
    let by_method =
        |method: WaitMethod| at_reference_delay(trials.iter().filter(|t| t.spec.method == method));
    let sleep = by_method(WaitMethod::Sleep).or_else(|| by_method(WaitMethod::SleepAbsolute));
    let hybrid = by_method(WaitMethod::Hybrid).filter(|t| !ends_early(t));
    let best = hybrid.or_else(|| {
        let delay = at_reference_delay(trials)?.spec.delay;
        trials
            .iter()
            .filter(|t| t.spec.delay == delay && !ends_early(t) && wait_row(t).is_some())
            .min_by_key(|t| t.waits.overshoot.quantile(0.5))
    });
    let sleep = sleep.and_then(wait_row);
    let best = best.and_then(wait_row).filter(|best| sleep.as_ref() != Some(best));
    let slept = sleep.map(|row| {
        let (delay, mean) = (time(row.delay_ns as f64), time(row.mean_ns as f64));
        format!("a sleep of {delay} takes {mean} here")
    });
    let hit = best.map(|row| {
        format!(
            "{} hits {} with a median error of {} for {} of a core",
            row.method,
            time(row.delay_ns as f64),
            time(row.overshoot_p50_ns as f64),
            percent(row.cpu_percent)
        )
    });
    sentence([slept, hit])
}

/// What the throttle and the naive loop made of the rate asked for.
pub(super) fn rates_in_words(trials: &[HoldTrial]) -> String {
    let rows: Vec<(&HoldTrial, RateRow)> =
        trials.iter().filter_map(|trial| Some((trial, rate_row(trial)?))).collect();
    let by_method = |method| rows.iter().find(|(trial, _)| trial.spec.method == method);
    let best = by_method(HoldMethod::Throttle).or_else(|| {
        let others = rows.iter().filter(|(t, _)| t.spec.method != HoldMethod::NaiveSleep);
        others.min_by(|a, b| a.1.drift_ppm.abs().total_cmp(&b.1.drift_ppm.abs()))
    });
    let naive = by_method(HoldMethod::NaiveSleep).map(|(trial, row)| {
        let name = "operate-and-sleep";
        let Some(achieved_per_s) = row.achieved_per_s else {
            return too_few(name, trial, row);
        };
        let asked = match best {
            Some(_) => String::new(),
            None => format!(" of the {}/s asked for", exact(row.asked_per_s)),
        };
        format!("{name} reached {}/s{asked}", number(achieved_per_s))
    });
    sentence([best.map(|(trial, row)| held_in_words(trial, row)), naive])
}

fn held_in_words(trial: &HoldTrial, row: &RateRow) -> String {
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
    // No sign before what rounds to nothing.
    let drift = if row.drift_ppm.abs() < 0.005 { 0.0 } else { row.drift_ppm };
    let error = row.drift_error_ppm.unwrap_or(0.0);
    // What the catch-up policy left out or moved is missing too. Any other than a constant law has
    // another number of operations in this time, by chance or by itself.
    let skipped = row.skipped as f64 / (row.operations + row.skipped).max(1) as f64;
    let shifted = row.shifted_ns as f64 / trial.holds.elapsed.0.max(1) as f64;
    let is_constant = trial.spec.arrival == ArrivalLaw::Constant;
    let missed = if is_constant { (achieved_per_s / row.asked_per_s - 1.0).abs() } else { 0.0 };
    let off = row.drift_ppm.abs().max(1e6 * skipped.max(shifted).max(missed));
    if off + error < EXACT_PPM {
        return format!("{name} held {asked}/s exactly ({drift:.2} ppm drift)");
    }
    if error > off {
        let elapsed = time(trial.holds.elapsed.0 as f64);
        let (drift, error) = (number(drift), number(error));
        return format!(
            "{name} held {asked}/s, as far as {elapsed} shows (drift {drift} ± {error} ppm)"
        );
    }
    let within = exact((off + error - 1e-3).ceil().max(EXACT_PPM));
    format!("{name} held {asked}/s to within {within} ppm")
}

fn too_few(name: &str, trial: &HoldTrial, row: &RateRow) -> String {
    format!(
        "{name} made too few operations to tell ({} in {}): give -d {} or more",
        row.operations,
        time(trial.holds.elapsed.0 as f64),
        time(2e9 / row.asked_per_s)
    )
}

/// The parts that there are, with a capital and a full stop.
fn sentence(parts: [Option<String>; 2]) -> String {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        return "Nothing was measured.".to_owned();
    }
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

    fn check(&self, _report: CheckedReport<'_>, check: &mut ConsistencyCheck) {
        for row in &self.table {
            check.ascending(
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
            check.ascending(
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
                let left = |&(at, length): &(u64, u64)| {
                    let since = k.saturating_sub(at) * 1_000_000;
                    if k >= at { length.saturating_sub(since) } else { 0 }
                };
                let stalled = stalls.iter().map(left).max().unwrap_or(0);
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
