//! Sessions: what a user does, step by step, with data of its own. The plan is made before a run;
//! what a user is at, and what it learnt on the way, follows from it.

mod plan;

pub use plan::{
    Comparison, Condition, DataSet, Deal, Escape, Expectation, Extraction, Fill, Function,
    Instruction, Match, Moment, Piece, RequestStep, SessionKind, SessionPlan, Source, Template,
};
