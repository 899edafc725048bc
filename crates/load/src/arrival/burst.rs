//! Two rates in turn.

use super::process::{ArrivalProcess, Process, ProcessKind};
use crate::quantity::{ParseError, Rate, Share, error, parse_duration, parse_number, quoted};
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// Two rates in turn (Banga and Druschel, USITS 1997). `peak_ratio` (a > 1) is the peak rate over
/// the mean. `peak_share` (0 < b < 1, a·b ≤ 1) is the share of each `period` spent at the peak.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BurstLaw {
    /// Peak rate over mean rate.
    pub peak_ratio: f64,
    /// Share of the time at the peak rate.
    pub peak_share: f64,
    /// Length of one cycle.
    pub period: Nanos,
}

/// A peak of 6 times the mean for 5 % of each 100 s (Banga and Druschel, USITS 1997).
const PAPER: BurstLaw =
    BurstLaw { peak_ratio: 6.0, peak_share: 0.05, period: Nanos::from_secs(100) };

/// Bursts after Banga and Druschel (Measuring the Capacity of a Web Server, USITS 1997). `a` is the
/// peak rate over the mean rate λ, `b` the share of the time at which the rate is above the mean.
///
/// Each period P begins with b·P at the rate a·λ; the rest has λ·(1 − a·b)/(1 − b), so the mean is
/// λ. Operation k is intended when the integral of the rate reaches k. Whole periods are counted
/// off in integers (λ·P operations each, a ratio), so no error adds up. Worker i of W takes the k ≡
/// i (mod W).
#[derive(Clone, Debug)]
pub struct Burst {
    rate: Rate,
    period: Nanos,
    peak_per_ns: f64,
    base_per_ns: f64,
    /// Length of the peak within a period.
    peak_ns: f64,
    share: Share,
    k: u64,
}

impl Burst {
    /// One worker's share of bursts with peak/mean `peak_ratio` (a > 1) for a share `peak_share`
    /// (0 < b < 1, a·b ≤ 1) of each `period` (not zero).
    pub fn new(rate: Rate, peak_ratio: f64, peak_share: f64, period: Nanos, share: Share) -> Burst {
        let mean_per_ns = rate.per_s() / 1e9;
        let base_share = (1.0 - peak_ratio * peak_share).max(0.0) / (1.0 - peak_share);
        Burst {
            rate,
            period,
            peak_per_ns: mean_per_ns * peak_ratio,
            base_per_ns: mean_per_ns * base_share,
            peak_ns: peak_share * period.0 as f64,
            share,
            k: u64::from(share.index),
        }
    }

    /// The integral of the rate from the begin to `t`.
    fn operations_until(&self, t: Nanos) -> f64 {
        let within = |ns: f64| {
            let at_peak = ns.min(self.peak_ns);
            at_peak * self.peak_per_ns + (ns - at_peak) * self.base_per_ns
        };
        let periods = (t.0 / self.period.0) as f64;
        periods * within(self.period.0 as f64) + within((t.0 % self.period.0) as f64)
    }

    /// The time within a period at which this number of its operations is reached.
    fn within_period_ns(&self, operations: f64) -> f64 {
        let of_peak = self.peak_per_ns * self.peak_ns;
        if operations < of_peak || self.base_per_ns == 0.0 {
            operations / self.peak_per_ns
        } else {
            self.peak_ns + (operations - of_peak) / self.base_per_ns
        }
    }
}

impl ArrivalProcess for Burst {
    fn next(&mut self) -> Option<Nanos> {
        // k / (λ·P) = k·p / (n·P) with λ = n/p: whole periods, and the rest in units of 1/p.
        let reached = u128::from(self.k) * u128::from(self.rate.period().0);
        let per_period = u128::from(self.rate.operations()) * u128::from(self.period.0);
        let rest = (reached % per_period) as f64 / self.rate.period().0 as f64;
        let periods = u64::try_from(reached / per_period).unwrap_or(u64::MAX);
        let within = (self.within_period_ns(rest).round() as u64).min(self.period.0);
        self.k += u64::from(self.share.of);
        Some(Nanos(periods.saturating_mul(self.period.0)) + Nanos(within))
    }

    fn skip(&mut self, n: u64) {
        self.k += n * u64::from(self.share.of);
    }

    fn rate_at(&self, t: Nanos) -> f64 {
        let at_peak = ((t.0 % self.period.0) as f64) < self.peak_ns;
        let per_ns = if at_peak { self.peak_per_ns } else { self.base_per_ns };
        per_ns * 1e9 / f64::from(self.share.of)
    }
}

impl Process for Burst {
    type Law = BurstLaw;
    const KIND: ProcessKind = ProcessKind {
        shape: "burst(a,b,period)",
        meaning: "burst(PEAK/MEAN,SHARE,PERIOD)",
        asks_all_the_time: false,
        is_even: false,
        ..ProcessKind::plain(
            "burst",
            "burst(a,b,period): a times the rate for the share b of each period, such as \
             burst(3,0.2,1s); burst(paper) is burst(6,0.05,100s).",
        )
    };

    fn parse(text: &str, arguments: &[&str]) -> Option<Result<BurstLaw, ParseError>> {
        match arguments {
            ["paper"] => Some(Ok(PAPER)),
            [ratio, share, period] => Some(parse(text, ratio, share, period)),
            _ => None,
        }
    }

    fn text(law: &BurstLaw, _file: &str) -> String {
        let BurstLaw { peak_ratio, peak_share, period } = law;
        format!("burst({peak_ratio},{peak_share},{})", period.exactly())
    }

    fn begin(law: &BurstLaw, rate: Rate, share: Share, _seed: u64) -> Burst {
        Burst::new(rate, law.peak_ratio, law.peak_share, law.period, share)
    }

    fn peak_per_s(law: &BurstLaw, rate: Rate) -> f64 {
        rate.per_s() * law.peak_ratio
    }

    fn operations(law: &BurstLaw, rate: Rate, [start, end]: [Nanos; 2]) -> f64 {
        let bursts = Self::begin(law, rate, Share::WHOLE, 0);
        bursts.operations_until(end) - bursts.operations_until(start)
    }
}

fn parse(text: &str, ratio: &str, share: &str, period: &str) -> Result<BurstLaw, ParseError> {
    let wrong = |what: &str| {
        error(format!(
            "{} {what}: burst(a,b,period) needs a > 1 (peak rate over mean rate), 0 < b < 1 (share \
             of the time at the peak) and a*b <= 1, such as burst(4,0.1,1s)",
            quoted(text)
        ))
    };
    let peak_ratio = parse_number(ratio)
        .filter(|a| *a > 1.0)
        .ok_or_else(|| wrong("has a peak that is not above the mean"))?;
    let peak_share = parse_number(share)
        .filter(|b| *b > 0.0 && *b < 1.0)
        .ok_or_else(|| wrong("has a share that is not between 0 and 1"))?;
    // A product such as 5·0.2 may exceed 1 by its rounding alone.
    if peak_ratio * peak_share > 1.0 + 1e-12 {
        return Err(wrong("has more operations at the peak than in all"));
    }
    let period = parse_duration(period)?;
    if period == Nanos::ZERO {
        return Err(wrong("has no period"));
    }
    Ok(BurstLaw { peak_ratio, peak_share, period })
}
