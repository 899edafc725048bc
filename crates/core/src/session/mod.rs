//! Sessions: what a user does, step by step, with data of its own. The plan is made before a run;
//! what a user is at, and what it learnt on the way, follows from it.
//!
//! Everything here is pure: time of day, chance and responses come in as arguments, so that a seed
//! replays what users did, and the same code walks through sessions over any version of HTTP.

mod answer;
mod escape;
mod fill;
mod jar;
mod json;
mod origin;
mod plan;
mod reading;
mod users;
mod walk;

pub use answer::{Awaited, Awaits, ProgramAnswer};
pub use escape::Reason;
pub(crate) use escape::{component, is_bare_json};
pub use fill::Fills;
pub use origin::Origin;
pub use plan::{
    Ask, Condition, DataSet, Deal, Escape, Expectation, Extraction, Fill, Function, Instruction,
    Match, Moment, Piece, Program, Relation, RequestStep, SessionKind, SessionPlan, Source,
    Template, Unshown,
};
pub use reading::{Reading, Readings};
pub use users::{Plan, Users};
pub use walk::{Answered, Follows, Next, Unexpected, Unfit, Walk};
