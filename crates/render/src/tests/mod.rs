//! Tests that are of all forms.

mod cut_short;
mod figures;
mod hidden;
