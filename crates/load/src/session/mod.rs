//! Sessions: what a user does, step by step, with data of its own. The plan is made before a run;
//! what a user is at, and what it learnt on the way, follows from it.
//!
//! Everything in this module is pure: time of day, chance and responses come in as arguments. So a
//! seed replays what users did, and the same code walks through sessions over any version of HTTP.
//!
//! `plan` is settled before a run. A [`Walk`] is one user on its way through it. [`Users`] is what
//! all users of a worker share: chance and data. [`Fills`] go into the holes of a request.
//! [`ResponseReaders`] take values out of responses as they come in, in bounded memory; pages for
//! patterns and CSS selectors (`html`) are kept whole, up to 1 MiB. `judge` has conditions and what
//! values have to be.
//!
//! Steps before and after the load are kinds of sessions of weight 0; the command line has one user
//! walk through them. A branch (`parallel`) is a walk of its own, which is lent what the user knows
//! for each step.
//!
//! Limits: a value (`VALUE_BYTES_MAX`), the page (`PAGE_BYTES_MAX`), the cookies of a response and its
//! sample, beyond which the value is missing, with the reason; cookies of a user (`COOKIES_MAX`,
//! `COOKIE_BYTES_MAX`), beyond which further ones are not kept; all values of a request
//! (`FILLED_BYTES_MAX`), beyond which the step has an unfit value.
//!
//! # How to add
//!
//! Files are here, except those of the crate `knee-scenario`, which has the keys of scenario files
//! and their schema.
//!
//! - A step around other steps: its key in `flow.rs` of `knee-scenario` and the schema. If needed,
//!   an `Instruction` in `plan.rs` and what it does in `walk.rs`.
//! - A way to ask for a value: a variant of `Match` in `judge.rs`, its key in `response.rs` of
//!   `knee-scenario` and the schema.
//! - A source of values in responses: a variant of `Source` in `plan.rs`, how it is found in
//!   `response_reader.rs`, its key in `knee-scenario`.
//! - A place for values in requests: a variant of `Escape` in `template.rs`, what it does to a
//!   value in `escape.rs`, who uses it in `knee-scenario` (`locator.rs` for URLs).
//! - A function in templates: a variant of `Function` in `template.rs`, what it gives in `fill.rs`,
//!   its name in `template.rs` of `knee-scenario`.
//!
//! # Words
//!
//! - **Template**: text with parts that are put in when it is sent. **Hole**: where they are put
//!   in. **Place**: what a hole is a part of (segment, query, form, header, JSON text), which
//!   decides how a value is encoded. A value that its place cannot have is **unfit**, and its
//!   step is not sent.
//! - **Extraction**: a variable that is set from a response. **Expectation**: what a response has
//!   to be; one that is not has the outcome *unexpected*.
//! - **Data set**: records that are dealt to users, each once (*unique*), in order or at random.
//! - **Branch**: steps of a session that are done at the same time as others (`parallel`).

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
mod user_state;
mod users;
mod walk;

pub use answer::{PendingAction, PendingStep, ProgramAnswer};
pub use cookie_date::{cookie_date_ns, month_of};
pub use escape::UnfitReason;
pub use escape::{encode_path, is_bare_json};
pub use fill::Fills;
pub use html::{CssSelector, ElementTree};
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
pub use script::{SCRIPT_ROWS, ScriptGroup, ScriptPlan};
pub use template::{Escape, Fill, Function, Template, TemplatePiece, TimeFormat};
pub use users::{Plan, Users};
pub use walk::{
    AfterResponse, Next, STEPS_AT_ONCE_MAX, Unexpected, UnfitValue, Walk, WholeResponse,
};
