//! What is recorded while a trial runs, and the mergeable value it ends in.
//!
//! A [`Recorder`] is one worker's; a [`Trial`] is what the records of all workers merge into. A
//! [`Completion`] has all times of an operation, and [`Stage`] says what lies between two of them
//! and whose delay that is. [`Anatomy`] sums the stages by response time, so that what the slowest
//! operations are made of is exact and merges.
//!
//! Each histogram costs the hot loop a line of the cache. So `times` counts equal times once, and
//! times that come several times in a row in one step. A histogram that a worker writes to takes
//! its memory before the load; elsewhere an empty one has none. The heat map has one add per
//! operation.

mod anatomy;
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
mod packets;
mod recorder;
mod routed;
mod script;
mod sentinel;
mod series;
mod sessions;
mod status;
mod sums;
mod targets;
mod timeline;
mod times;
mod trial;

pub use anatomy::{Anatomy, AnatomyPart, SlowOperation, Slowest, Split, SplitPart};
pub use attempts::{AttemptsMeasured, AttemptsRecorder, AttemptsSlot};
pub use completion::{Completion, Op, Owner, Stage, Stages, known_keys};
pub use generator_use::{GeneratorUse, Host, RateLimitUse, WaitUse};
pub use handshakes::{Agreed, EarlyData, Handshakes};
pub use heat::{HeatColumn, HeatReport};
pub use histogram::{Histogram, HistogramCounts, band_of, band_start};
pub use interval::{
    Direction, Interval, IntervalMerger, IntervalPart, IntervalWatcher, Pacing, UnderWay,
};
pub use messages::{BURST_GAP, BURST_MIN, MessageEvent, MessagesMeasured, StreamMessage};
pub use observed::{BothEnds, HostTimes, Observed, PartTimes, SynSource};
pub use outcome::{Outcome, Outcomes, error_share};
pub use packets::PacketsMeasured;
pub use recorder::{Recorder, RecorderConfig};
pub use routed::{AddressUse, RoutedConnections};
pub use script::{SCRIPT_FAILURES_KEPT, ScriptMeasured, ScriptMetric};
pub use sentinel::{SentinelEnd, SentinelSample};
pub use series::Series;
pub use sessions::{
    ProgramsMeasured, RanOut, SessionAttempts, SessionMeasured, SessionsMeasured, UNEXPECTED_KEPT,
};
pub use status::{FailedStatus, Status, grpc_status_name};
pub use targets::{
    EndedCounts, StatusCodes, StepMeasured, TARGETS_MAX, TIME_BOUNDS, TargetMeasured,
};
pub use timeline::Timeline;
pub use trial::{AgentClock, AgentInterval, AgentMeasured, Measurement, Trial, Window};
