//! The answer in one or two sentences.

use crate::analysis::throttle::{Hold, rate_row, usual, wait_row};
use crate::analysis::words::{exact, number, percent, time};
use crate::measure::{HoldTrial, WaitTrial};
use crate::report::RateRow;
use crate::spec::{HoldMethod, WaitMethod};

/// Drift that is less than what crystals differ by is none, in parts per million.
const EXACT_PPM: f64 = 1.0;

/// How a plain sleep and the best of the ways to wait do at the usual delay.
pub fn of_waits(trials: &[WaitTrial]) -> String {
    let of = |method: WaitMethod| usual(trials.iter().filter(|t| t.spec.method == method));
    let Some(any) = usual(trials) else {
        return "Nothing was measured.".into();
    };
    let sleeps = [WaitMethod::Sleep, WaitMethod::SleepAbsolute];
    let sleep = sleeps.into_iter().find_map(of).and_then(wait_row);
    let best = of(WaitMethod::Hybrid).or_else(|| {
        let there = trials.iter().filter(|t| t.spec.delay == any.spec.delay);
        let rows = there.filter(|t| wait_row(t).is_some());
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
pub fn of_rates(trials: &[HoldTrial]) -> String {
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
    if let Some((_, row)) = &naive {
        let asked = match best {
            Some(_) => String::new(),
            None => format!(" of the {}/s asked for", exact(row.asked_per_s)),
        };
        let reached = number(row.achieved_per_s);
        parts.push(format!("operate-and-sleep reached {reached}/s{asked}"));
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
    let hold = Hold::of(trial);
    if hold.is_some_and(|hold| !hold.is_held) {
        let reached = number(row.achieved_per_s);
        return format!("{name} reached {reached}/s of the {asked}/s asked for");
    }
    if row.drift_ppm.abs() >= EXACT_PPM {
        let ppm = hold.map_or(row.drift_ppm, |hold| 1e6 * hold.shortfall);
        let within = exact(ppm.abs().ceil().max(EXACT_PPM));
        return format!("{name} held {asked}/s to within {within} ppm");
    }
    // No sign where what it stands before rounds to nothing.
    let is_nothing = row.drift_ppm.abs() < 0.005;
    let drift = if is_nothing { 0.0 } else { row.drift_ppm };
    format!("{name} held {asked}/s exactly ({drift:.2} ppm drift)")
}

/// With a capital and a full stop.
fn sentence(parts: &[String]) -> String {
    let text = parts.join("; ");
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(letters).chain(['.']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::throttle::fixture::{holds, waits};
    use crate::time::Nanos;

    fn late(method: HoldMethod, late_ns: impl Fn(u64) -> u64) -> HoldTrial {
        holds(method, Nanos::from_micros(100), |k| Nanos(late_ns(k)))
    }

    #[test]
    fn rates_in_words() {
        let throttle = |f: fn(u64) -> u64| late(HoldMethod::Throttle, f);
        let naive = || late(HoldMethod::NaiveSleep, |k| 1_000_000 * k);
        let tick = || late(HoldMethod::Tick, |_| 0);
        let stall: fn(u64) -> u64 = |k| if k < 100 { 5_000_000 } else { 0 };
        for (trials, expected) in [
            (vec![], "Nothing was measured."),
            (
                vec![throttle(|_| 70)],
                "The throttle held 1,000/s exactly (0.00 ppm drift).",
            ),
            (
                vec![naive(), throttle(|k| k / 50)],
                "The throttle held 1,000/s exactly (0.02 ppm drift); operate-and-sleep reached \
                 500/s.",
            ),
            (
                vec![throttle(|k| 40 * k)],
                "The throttle held 1,000/s to within 40 ppm.",
            ),
            (
                vec![throttle(stall)],
                "The throttle held 1,000/s to within 1 ppm.",
            ),
            (
                vec![naive()],
                "Operate-and-sleep reached 500/s of the 1,000/s asked for.",
            ),
            (vec![tick()], "Tick held 1,000/s exactly (0.00 ppm drift)."),
        ] {
            assert_eq!(of_rates(&trials), expected);
        }
    }

    #[test]
    fn waits_in_words() {
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
            (
                vec![spin()],
                "Spin hits 1 ms with a median error of 40 ns for 0.3 % of a core.",
            ),
        ] {
            assert_eq!(of_waits(&trials), expected);
        }
    }
}
