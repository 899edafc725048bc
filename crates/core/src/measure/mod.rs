//! What is recorded while a trial runs, and the mergeable value it ends in.

mod answers;
mod completion;
mod datagram_recorder;
mod datagrams;
mod flows;
mod histogram;
mod holds;
mod interval;
mod observed;
mod outcome;
mod recorder;
mod series;
mod targets;
mod trial;
mod waits;

pub use answers::Answers;
pub use completion::Completion;
pub use datagram_recorder::DatagramRecorder;
pub use datagrams::{DropCounter, DropPlace, ServiceFacts, UdpReceived, UdpSent, UdpTrial};
pub use flows::{
    Direction, FlowLost, FlowMeasured, FlowServiceFacts, FlowTrial, FlowsEnded, Probe, ProbeBack,
    ProbesMeasured, TcpSample,
};
pub use histogram::{Histogram, band_of, band_start};
pub use holds::{HoldTrial, Holds, Line, Spread};
pub use interval::{Interval, IntervalMerger, IntervalPart, Observer, Pacing, UnderWay};
pub use observed::{Observed, SynSource};
pub use outcome::{Outcome, Outcomes};
pub use recorder::{Recorder, RecorderConfig};
pub use series::Series;
pub use targets::{StatusCodes, TARGETS_MAX, TargetMeasured};
pub use trial::{GeneratorUse, Measurement, Trial, Window};
pub use waits::{WaitTrial, Waits};
