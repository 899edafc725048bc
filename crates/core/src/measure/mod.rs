//! What is recorded while a trial runs, and the mergeable value it ends in.

mod completion;
mod histogram;
mod outcome;
mod recorder;
mod trial;

pub use completion::Completion;
pub use histogram::Histogram;
pub use outcome::{Outcome, Outcomes};
pub use recorder::{Interval, IntervalPart, Observer, Recorder, RecorderConfig};
pub use trial::{GeneratorUse, Measurement, Series, Trial, Window};
