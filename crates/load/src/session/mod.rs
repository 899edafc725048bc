//! Sessions: what a user does, step by step, with data of its own. The plan is made before a run;
//! what a user is at, and what it learnt on the way, follows from it.
//!
//! Everything in this module is pure: time of day, chance and responses come in as arguments. So a
//! seed replays what users did, and the same code walks through sessions over any version of HTTP.

mod answer;
mod cookie_date;
mod escape;
mod fill;
mod html;
mod jar;
pub(crate) mod json;
mod judge;
mod made;
mod origin;
mod plan;
mod response_reader;
mod script;
mod template;
mod users;
mod walk;

pub use answer::{PendingAction, PendingStep, ProgramAnswer};
pub use cookie_date::{cookie_date_ns, month_of};
pub use escape::UnfitReason;
pub use escape::{encode_path, is_bare_json};
pub use fill::Fills;
pub use html::{CssSelector, PageElement, select_elements};
pub use jar::Jar;
pub use json::parse_pointer;
pub use judge::{Condition, Match, Pattern, Relation};
pub use made::MadeRequest;
pub use origin::Origin;
pub use origin::remove_dot_segments;
pub use plan::{
    Ask, DataSet, Deal, Expectation, Extraction, HiddenValues, Instruction, Passes, Program,
    Redirected, Repetition, RequestStep, SessionKind, SessionPlan, Source, StepGroup,
};
pub use response_reader::{KeptResponse, ResponseReader, ResponseReaders};
pub use script::{SCRIPT_ROWS, ScriptPlan};
pub use template::{Escape, Fill, Function, Template, TemplatePiece, TimeFormat};
pub use users::{Plan, Users};
pub use walk::{
    AfterResponse, Next, STEPS_AT_ONCE_MAX, Unexpected, UnfitValue, Walk, WholeResponse,
};
