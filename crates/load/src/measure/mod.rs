//! What is recorded while a trial runs, and the mergeable value it ends in.

mod agents;
mod anatomy;
mod answers;
mod append;
mod attempts;
mod backlog;
mod completion;
mod generator_use;
mod handshakes;
mod heat;
mod histogram;
mod interval;
mod messages;
mod observed;
mod outcome;
mod recorder;
mod runs;
mod series;
mod sessions;
mod slowest;
mod split;
mod stage;
mod status;
mod steps;
mod targets;
mod times;
mod trial;

pub use agents::{AgentClock, AgentInterval, AgentMeasured};
pub use anatomy::{Anatomy, AnatomyPart};
pub use answers::ResponseBins;
pub use attempts::{AttemptsMeasured, AttemptsRecorder, AttemptsSlot};
pub use completion::{Completion, Op};
pub use generator_use::{GeneratorUse, RateLimitUse, WaitUse};
pub use handshakes::{Agreed, EarlyData, Handshakes};
pub use heat::{HeatColumn, HeatReport};
pub use histogram::{Histogram, HistogramCounts, band_of, band_start};
pub use interval::{
    Direction, Interval, IntervalMerger, IntervalPart, IntervalWatcher, Pacing, UnderWay,
};
pub use messages::{BURST_GAP, BURST_MIN, MessageEvent, MessagesMeasured, StreamMessage};
pub use observed::{BothEnds, HostTimes, Observed, PartTimes, SynSource};
pub use outcome::{Outcome, Outcomes, error_share};
pub use recorder::{Recorder, RecorderConfig};
pub use series::Series;
pub use sessions::{
    ProgramsMeasured, RanOut, SessionAttempts, SessionMeasured, SessionsMeasured, UNEXPECTED_KEPT,
};
pub use slowest::{SlowOperation, Slowest};
pub use split::{Split, SplitPart};
pub use stage::{Owner, Stage, Stages, known_keys};
pub use status::{FailedStatus, Status, grpc_status_name};
pub use steps::{EndedCounts, StepMeasured, TIME_BOUNDS};
pub use targets::{StatusCodes, TARGETS_MAX, TargetMeasured};
pub use trial::{Measurement, Trial, Window};
