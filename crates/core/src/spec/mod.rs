//! What the user asked for, resolved and valid by construction.
//!
//! The command line parses into these types and refuses what they cannot hold, so nothing behind
//! it needs to check again.

mod load;
mod parse;
mod rate;
mod share;
mod target;
mod trial;

pub use load::{ArrivalLaw, Load, OpenLoad, Pause, PauseKind};
pub use parse::{ParseError, parse_arrival, parse_duration, parse_law, parse_rate, parse_rates};
pub use rate::Rate;
pub use share::Share;
pub use target::{Endpoint, HttpRequest, HttpTarget, Pick};
pub use trial::{BackendChoice, EngineOptions, Level, TrialSpec, WaitPolicy};
