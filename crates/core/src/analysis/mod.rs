//! What the numbers mean.

pub mod findings;
pub mod knee;
pub mod models;
pub mod table;
pub mod words;
