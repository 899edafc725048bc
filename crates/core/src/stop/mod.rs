//! Termination rules: when a trial has shown what it is to show.

mod settling;

pub use settling::Settling;
