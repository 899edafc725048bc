//! What is recorded while a trial runs, and the mergeable value it ends in.

mod answers;
mod completion;
mod histogram;
mod interval;
mod observed;
mod outcome;
mod recorder;
mod series;
mod targets;
mod trial;

pub use answers::Answers;
pub use completion::Completion;
pub use histogram::{Histogram, band_of, band_start};
pub use interval::{Interval, IntervalMerger, IntervalPart, Observer, Pacing, UnderWay};
pub use observed::{Observed, SynSource};
pub use outcome::{Outcome, Outcomes};
pub use recorder::{Recorder, RecorderConfig};
pub use series::Series;
pub use targets::{StatusCodes, TARGETS_MAX, TargetMeasured};
pub use trial::{GeneratorUse, Measurement, Trial, Window};
