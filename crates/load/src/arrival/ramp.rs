//! A rate that moves linearly.

use super::process::{ArrivalProcess, Process, ProcessKind, RunContext};
use crate::quantity::{HOUR_NS, ParseError, Rate, Share, error, parse_rate};
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// The rate moves linearly from one to the other over the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RampLaw {
    /// Rate at the beginning.
    pub from: Rate,
    /// Rate at the end.
    pub to: Rate,
    /// The time over which it moves.
    pub over: Nanos,
}

/// The rate moves linearly from f to g over a time T, and stays at g after it.
///
/// Operation k is intended when the integral of the rate, Λ(t) = f·t + (g − f)·t²/(2T), reaches k.
/// So t = 2k / (f + √(f² + 2·(g − f)·k/T)), a form without cancellation whether it rises or falls.
/// Each time is computed from k, so no error adds up. Worker i of W takes the k ≡ i (mod W).
#[derive(Clone, Debug)]
pub struct Ramp {
    from_per_s: f64,
    to_per_s: f64,
    over_s: f64,
    share: Share,
    k: u64,
}

impl Ramp {
    /// One worker's share of a ramp between two rates over the time `over`.
    pub fn new(from: Rate, to: Rate, over: Nanos, share: Share) -> Ramp {
        Ramp {
            from_per_s: from.per_s(),
            to_per_s: to.per_s(),
            over_s: over.as_secs_f64(),
            share,
            k: u64::from(share.index),
        }
    }
}

impl ArrivalProcess for Ramp {
    fn next(&mut self) -> Option<Nanos> {
        let k = self.k as f64;
        self.k += u64::from(self.share.of);
        let (f, g) = (self.from_per_s, self.to_per_s);
        let ramped = (f + g) / 2.0 * self.over_s;
        let t = if k < ramped {
            2.0 * k / (f + (f * f + 2.0 * (g - f) * k / self.over_s).max(0.0).sqrt())
        } else {
            self.over_s + (k - ramped) / g
        };
        Some(Nanos::from_secs_f64(t))
    }

    fn skip(&mut self, n: u64) {
        self.k += n * u64::from(self.share.of);
    }

    fn rate_at(&self, t: Nanos) -> f64 {
        let passed = (t.as_secs_f64() / self.over_s).min(1.0);
        let whole = self.from_per_s + (self.to_per_s - self.from_per_s) * passed;
        whole / f64::from(self.share.of)
    }
}

impl Process for Ramp {
    type Law = RampLaw;
    const KIND: ProcessKind = ProcessKind {
        shape: "ramp(from,to)",
        meaning: "ramp(FROM,TO)",
        carries_rate: true,
        takes_length: true,
        is_even: false,
        ..ProcessKind::plain(
            "ramp",
            "ramp(from,to): the rate changes linearly over the run; replaces --rate.",
        )
    };

    fn parse(_text: &str, arguments: &[&str]) -> Option<Result<RampLaw, ParseError>> {
        let [from, to] = arguments else { return None };
        let law = |from| {
            let to = ramp_end(to)?;
            let over = Nanos::ZERO;
            Ok(RampLaw { from, to, over })
        };
        Some(ramp_end(from).and_then(law))
    }

    fn set(law: &mut RampLaw, run: &RunContext) -> Result<(), &'static str> {
        law.over = run.length;
        if law.over == Nanos::ZERO {
            return Err("needs a duration to ramp over");
        }
        Ok(())
    }

    fn text(law: &RampLaw, _file: &str) -> String {
        format!("ramp({},{})", law.from.exactly(), law.to.exactly())
    }

    fn begin(law: &RampLaw, _rate: Rate, share: Share, _seed: u64) -> Ramp {
        Ramp::new(law.from, law.to, law.over, share)
    }

    fn own_rate(law: &RampLaw) -> Option<Rate> {
        Rate::from_f64((law.from.per_s() + law.to.per_s()) / 2.0)
    }

    fn peak_per_s(law: &RampLaw, _rate: Rate) -> f64 {
        law.from.per_s().max(law.to.per_s())
    }

    fn operations(law: &RampLaw, _rate: Rate, [start, end]: [Nanos; 2]) -> f64 {
        law.until(end) - law.until(start)
    }
}

impl RampLaw {
    /// The integral of the rate up to `t`.
    fn until(self, t: Nanos) -> f64 {
        let (f, g) = (self.from.per_s(), self.to.per_s());
        let (over_s, t_s) = (self.over.as_secs_f64(), t.as_secs_f64());
        let on_ramp_s = t_s.min(over_s);
        let gained =
            if over_s > 0.0 { (g - f) * on_ramp_s * on_ramp_s / (2.0 * over_s) } else { 0.0 };
        f * on_ramp_s + gained + g * (t_s - on_ramp_s)
    }
}

/// Reads an end of a ramp. A rate of 0 becomes one operation in 8760 h, which no run notices.
fn ramp_end(text: &str) -> Result<Rate, ParseError> {
    if !matches!(text.trim(), "0" | "0/s" | "0/m" | "0/h") {
        return parse_rate(text);
    }
    Rate::new(1, Nanos(8760 * HOUR_NS as u64)).ok_or_else(|| error("0 is no rate here".into()))
}
