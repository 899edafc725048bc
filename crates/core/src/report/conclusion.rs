//! The answers of the experiments.

use crate::experiment::Experiment;
use crate::experiment::latency::report::LatencyConclusion;
use crate::experiment::overload::report::OverloadConclusion;
use crate::experiment::run::report::RunConclusion;
use crate::experiment::sweep::report::SweepConclusion;
use crate::experiment::throttle::report::ThrottleConclusion;
use crate::experiment::udp::report::UdpConclusion;
use serde::Serialize;

/// An experiment's own answer. Which of them a document holds is told by its `command`, never
/// guessed from the keys, so that keys may be added to any.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Conclusion {
    /// Of `knee sweep` and `knee analyze sweep`.
    Sweep(SweepConclusion),
    /// Of `knee run`.
    Run(RunConclusion),
    /// Of `knee throttle`.
    Throttle(ThrottleConclusion),
    /// Of `knee overload`.
    Overload(OverloadConclusion),
    /// Of `knee udp`.
    Udp(UdpConclusion),
    /// Of `knee latency` and `knee analyze latency`.
    Latency(LatencyConclusion),
}

impl From<SweepConclusion> for Conclusion {
    fn from(of_sweep: SweepConclusion) -> Conclusion {
        Conclusion::Sweep(of_sweep)
    }
}

impl From<RunConclusion> for Conclusion {
    fn from(of_run: RunConclusion) -> Conclusion {
        Conclusion::Run(of_run)
    }
}

impl From<ThrottleConclusion> for Conclusion {
    fn from(of_throttle: ThrottleConclusion) -> Conclusion {
        Conclusion::Throttle(of_throttle)
    }
}

impl From<OverloadConclusion> for Conclusion {
    fn from(of_overload: OverloadConclusion) -> Conclusion {
        Conclusion::Overload(of_overload)
    }
}

impl From<UdpConclusion> for Conclusion {
    fn from(of_udp: UdpConclusion) -> Conclusion {
        Conclusion::Udp(of_udp)
    }
}

impl From<LatencyConclusion> for Conclusion {
    fn from(of_latency: LatencyConclusion) -> Conclusion {
        Conclusion::Latency(of_latency)
    }
}

/// An experiment whose answer a report can hold.
pub trait Reported: Experiment<Conclusion: Into<Conclusion>> {}

impl<X: Experiment<Conclusion: Into<Conclusion>>> Reported for X {}
