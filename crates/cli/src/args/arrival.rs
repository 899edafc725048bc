//! When operations start: `--arrival`.

use super::trace::{self, Trace};
use crate::failure::Failure;
use crate::words::{self, Words};
use clap::Args;
use knee_core::spec::{ArrivalLaw, Rate, parse_arrival};
use knee_core::time::Nanos;
use std::sync::Arc;

#[derive(Args, Clone, Debug)]
pub struct ArrivalArgs {
    /// Arrival process: constant, poisson, uniform, burst(a,b,period), ramp(from,to) or trace(FILE)
    ///
    /// constant (the default): every 1/rate. poisson: independent exponential gaps. uniform: gaps
    /// between 0 and 2/rate. burst(a,b,period): a times the rate for the share b of each period,
    /// such as burst(3,0.2,1s); burst(paper) is burst(6,0.05,100s). ramp(from,to): the rate changes
    /// linearly over the run; replaces --rate. trace(FILE): one time per line since the start of
    /// the run, in seconds or with a unit; replaces --rate; up to 256 MiB.
    #[arg(long, value_name = "A", help_heading = "Load")]
    pub arrival: Option<String>,
}

impl ArrivalArgs {
    /// The trace, where `--arrival` names one.
    pub fn trace(&self) -> Result<Option<Trace>, Failure> {
        let file = self.trace_file();
        file.map(trace::read).transpose()
    }

    /// Whether the arrivals carry their own rate.
    pub fn carries_rate(&self) -> bool {
        let arrival = self.arrival.as_deref().unwrap_or_default();
        arrival.starts_with("ramp") || self.trace_file().is_some()
    }

    /// The mean rate and the process at this rate (`None`: the arrivals carry it) over the whole
    /// run.
    pub fn schedule(
        &self,
        rate: Option<Rate>,
        trace: Option<&Trace>,
        run_length: Nanos,
    ) -> Result<(Rate, ArrivalLaw), Failure> {
        let arrival = match trace {
            Some(trace) => ArrivalLaw::Trace(Arc::clone(&trace.moments)),
            None => parse_arrival(self.arrival.as_deref().unwrap_or("constant"), run_length)
                .map_err(|e| Failure::argument("--arrival", e))?,
        };
        let own = match &arrival {
            ArrivalLaw::Ramp { from, to, .. } => Rate::from_f64((from.per_s() + to.per_s()) / 2.0),
            ArrivalLaw::Trace(_) => trace.and_then(Trace::rate),
            _ => None,
        };
        let rate = rate.or(own).ok_or_else(|| {
            Failure::argument(
                "--arrival",
                "needs a rate: give --rate, such as --rate 1000",
            )
        })?;
        Ok((rate, arrival))
    }

    /// The option in the words of the command line.
    pub fn tell(&self, arrival: &ArrivalLaw, words: &mut Words) {
        let file = self.trace_file().unwrap_or_default();
        words.put("arrival", words::arrival(arrival, file));
    }

    /// The file of `trace(FILE)`.
    fn trace_file(&self) -> Option<&str> {
        let inner = self.arrival.as_deref()?.strip_prefix("trace(")?;
        inner.strip_suffix(')')
    }
}
