//! Whether the order of measurements tells the load from the time.

use crate::experiment::sweep::table::LevelPoint;
use crate::finding::{Code, Finding, Severity};

pub(super) const TIME_NOT_SEPARATED: Code = Code {
    name: "time_not_separated",
    cause: "Each level of the table was measured at one time, so a server that changed meanwhile \
            looks like one that changes with the load.",
    remedy: "Measure all levels in several rounds, each round in another order, and give one line \
             for each measurement in the order they were made.",
};

/// A table without rounds does not tell the influence of the level from that of the time.
pub(in crate::experiment::sweep) fn time_not_separated(table: &[LevelPoint]) -> Option<Finding> {
    let is_separated = table.iter().all(|p| p.in_rounds);
    (!is_separated && table.len() > 1).then(|| {
        TIME_NOT_SEPARATED.finding(
            Severity::Info,
            "the table has no rounds, so time and level cannot be told apart: what changed while \
             the levels were measured looks like an effect of the load",
            [("levels", table.len() as f64)],
            "give one line for each measurement of several rounds, or measure with knee sweep",
        )
    })
}
