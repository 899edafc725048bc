//! Tests across all forms of a report.

mod browser;
mod compared;
mod cut_short;
mod figures;
mod first_schema;
mod hidden;
mod schema;
mod snapshots;
