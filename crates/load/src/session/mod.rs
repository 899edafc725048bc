//! Sessions: what a user does, step by step, with data of its own. The plan is made before a run;
//! what a user is at, and what it learnt on the way, follows from it.
//!
//! Everything in this module is pure: time of day, chance and responses come in as arguments. So a
//! seed replays what users did, and the same code walks through sessions over any version of HTTP.

mod answer;
mod escape;
mod fill;
mod jar;
pub(crate) mod json;
mod origin;
mod plan;
mod response_reader;
mod users;
mod walk;

pub use answer::{PendingAction, PendingStep, ProgramAnswer};
pub use escape::UnfitReason;
pub use escape::is_bare_json;
pub use fill::Fills;
pub use json::parse_pointer;
pub use origin::Origin;
pub use origin::remove_dot_segments;
pub use plan::{
    Ask, Condition, DataSet, Deal, Escape, Expectation, Extraction, Fill, Function, HiddenValues,
    Instruction, Match, Program, Relation, RequestStep, SessionKind, SessionPlan, Source, Template,
    TemplatePiece, TimeFormat,
};
pub use response_reader::{ResponseReader, ResponseReaders};
pub use users::{Plan, Users};
pub use walk::{AfterResponse, Next, Unexpected, UnfitValue, Walk, WholeResponse};
