//! What one trial shows: from a `Trial`, which is raw, to a `TrialReport`. It has every statistic
//! that is shown anywhere, whether the trial is valid, and its findings.
//!
//! `assess` makes the report, by the rows of `statistics`. `detail` has what only one kind of trial
//! has, `validity` decides whether the trial counts, `findings` are those of any trial.

pub mod agents;
pub mod assess;
pub mod attempts;
pub(crate) mod bounds;
pub mod detail;
mod evidence;
pub mod figure;
pub mod findings;
pub mod live;
pub mod merged_slices;
pub mod messages;
pub mod offered;
pub mod report;
pub mod sessions;
pub mod silence;
pub mod slice;
pub mod statistics;
pub mod step_names;
pub mod times;
pub mod timing;
pub mod traffic;
pub mod validity;
pub mod waiting;
