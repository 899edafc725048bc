//! What is recorded while a trial runs, and the mergeable value it ends in.

mod completion;
mod histogram;
mod interval;
mod outcome;
mod recorder;
mod series;
mod trial;

pub use completion::Completion;
pub use histogram::Histogram;
pub use interval::{Interval, IntervalMerger, IntervalPart, Observer};
pub use outcome::{Outcome, Outcomes};
pub use recorder::{Recorder, RecorderConfig};
pub use series::Series;
pub use trial::{GeneratorUse, Measurement, Trial, Window};
