//! Any of the processes, without dynamic dispatch.

use super::{ArrivalProcess, Burst, Constant, Poisson, Ramp, Trace, Uniform};
use crate::spec::{ArrivalLaw, OpenLoad, Rate, Share};
use crate::time::Nanos;

/// One of the arrival processes: an enum, since the hot loop asks it for each operation.
#[derive(Clone, Debug)]
pub enum Arrivals {
    /// Every 1/rate.
    Constant(Constant),
    /// Exponential gaps.
    Poisson(Poisson),
    /// Uniform gaps.
    Uniform(Uniform),
    /// Two rates in turn.
    Burst(Burst),
    /// A rate that moves linearly.
    Ramp(Ramp),
    /// Recorded moments.
    Trace(Trace),
}

impl Arrivals {
    /// One worker's share of the load's schedule. The same seed gives the same schedule.
    pub fn new(load: &OpenLoad, share: Share, seed: u64) -> Arrivals {
        Arrivals::of(load.rate, &load.arrival, share, seed)
    }

    /// One worker's share of the schedule of `arrival` at this mean rate.
    pub fn of(rate: Rate, arrival: &ArrivalLaw, share: Share, seed: u64) -> Arrivals {
        match arrival {
            ArrivalLaw::Constant => Arrivals::Constant(Constant::new(rate, share)),
            ArrivalLaw::Poisson => Arrivals::Poisson(Poisson::new(rate, share, seed)),
            ArrivalLaw::Uniform => Arrivals::Uniform(Uniform::new(rate, share, seed)),
            &ArrivalLaw::Burst {
                peak_ratio,
                peak_share,
                period,
            } => Arrivals::Burst(Burst::new(rate, peak_ratio, peak_share, period, share)),
            &ArrivalLaw::Ramp { from, to, over } => {
                Arrivals::Ramp(Ramp::new(from, to, over, share))
            }
            ArrivalLaw::Trace(moments) => Arrivals::Trace(Trace::new(moments.clone(), share)),
        }
    }

    /// Whether the process draws its moments at random, one from the other, so that
    /// [`skip`](ArrivalProcess::skip) costs as much as drawing them.
    pub fn is_random(&self) -> bool {
        matches!(self, Arrivals::Poisson(_) | Arrivals::Uniform(_))
    }
}

impl ArrivalProcess for Arrivals {
    fn next(&mut self) -> Option<Nanos> {
        match self {
            Arrivals::Constant(process) => process.next(),
            Arrivals::Poisson(process) => process.next(),
            Arrivals::Uniform(process) => process.next(),
            Arrivals::Burst(process) => process.next(),
            Arrivals::Ramp(process) => process.next(),
            Arrivals::Trace(process) => process.next(),
        }
    }

    fn skip(&mut self, n: u64) {
        match self {
            Arrivals::Constant(process) => process.skip(n),
            Arrivals::Poisson(process) => process.skip(n),
            Arrivals::Uniform(process) => process.skip(n),
            Arrivals::Burst(process) => process.skip(n),
            Arrivals::Ramp(process) => process.skip(n),
            Arrivals::Trace(process) => process.skip(n),
        }
    }

    fn rate_at(&self, t: Nanos) -> f64 {
        match self {
            Arrivals::Constant(process) => process.rate_at(t),
            Arrivals::Poisson(process) => process.rate_at(t),
            Arrivals::Uniform(process) => process.rate_at(t),
            Arrivals::Burst(process) => process.rate_at(t),
            Arrivals::Ramp(process) => process.rate_at(t),
            Arrivals::Trace(process) => process.rate_at(t),
        }
    }
}
