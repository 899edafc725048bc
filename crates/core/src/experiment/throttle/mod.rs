//! `knee throttle`: how this machine waits, and how well each way holds a rate.

pub mod analysis;
mod answer;
mod conclusion;
pub mod findings;
pub mod hold;
pub mod holds;
mod rate_table;
pub mod report;
pub mod wait;
mod wait_table;
pub mod waits;

pub use crate::experiment::throttle::analysis::margins_of;
pub use rate_table::RateTable;
pub use wait_table::WaitTable;

use super::Next;

/// The next row of a table that is run in the order given.
fn next_row<S: Clone>(rows: &[S], done: usize) -> Next<S> {
    match rows.get(done) {
        Some(row) => Next::Run(Box::new(row.clone())),
        None => Next::Converged,
    }
}
