//! What one trial says: from a `Trial`, which is raw, to a `TrialReport`, with every statistic
//! that is shown anywhere, whether it is valid, and what a person should know of it.

pub mod agents;
pub mod assess;
pub(crate) mod bounds;
pub mod datagrams;
pub mod detail;
pub mod figure;
pub mod findings;
pub mod flows;
pub mod little;
pub mod live;
pub mod messages;
pub mod offered;
pub mod protocol;
pub mod report;
pub mod sessions;
pub mod silence;
pub mod slice;
pub mod statistics;
pub mod timing;
pub mod traffic;
pub mod validity;
pub mod waiting;
