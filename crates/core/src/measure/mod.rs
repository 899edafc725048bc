//! What is recorded while a trial runs, and the mergeable value it ends in.

mod agents;
mod anatomy;
mod answers;
mod append;
mod backlog;
mod completion;
mod direction;
mod handshakes;
mod heat;
mod histogram;
mod host_times;
mod interval;
mod observed;
mod operation;
mod outcome;
mod rate_limit;
mod recorder;
mod runs;
mod series;
mod sessions;
mod slowest;
mod split;
mod stage;
mod steps;
mod targets;
mod times;
mod trial;
mod wait;

pub use agents::{AgentClock, AgentInterval, AgentMeasured};
pub use anatomy::{Anatomy, Part};
pub use answers::Answers;
pub use completion::Completion;
pub use direction::Direction;
pub use handshakes::{Agreed, EarlyData, Handshakes};
pub use heat::{HeatColumn, HeatReport};
pub use histogram::{Counts, Histogram, band_of, band_start};
pub use host_times::{BothEnds, HostTimes, PartTimes};
pub use interval::{Interval, IntervalMerger, IntervalPart, IntervalWatcher, Pacing, UnderWay};
pub use observed::{Observed, SynSource};
pub use operation::Op;
pub use outcome::{Outcome, Outcomes, error_share};
pub use rate_limit::RateLimitUse;
pub use recorder::{Recorder, RecorderConfig};
pub use series::Series;
pub use sessions::{
    ProgramsMeasured, RanOut, SessionAttempts, SessionMeasured, SessionsMeasured, UNEXPECTED_KEPT,
};
pub use slowest::{SlowOperation, Slowest};
pub use split::{Split, SplitPart};
pub use stage::{Owner, Stage, Stages, known_keys};
pub use steps::{Ended, StepMeasured, TIME_BOUNDS};
pub use targets::{StatusCodes, TARGETS_MAX, TargetMeasured};
pub use trial::{GeneratorUse, Measurement, Trial, Window};
pub use wait::WaitUse;
