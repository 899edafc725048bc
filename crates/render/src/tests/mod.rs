//! Tests that are of all forms.

mod compared;
mod cut_short;
mod figures;
mod first_schema;
mod hidden;
