//! Users written in JavaScript: scripts of k6 run as they are.
//!
//! Each user has a QuickJS runtime of its own, on a stack of its own. A function such as `http.get`
//! hands a request out and suspends that stack; whoever conducts the user resumes it with the
//! response. Sockets, threads and the clock of the run are the caller's: requests go out, responses
//! come in, and time and randomness are arguments.
//!
//! [`Script`] is what all users of a process share, [`User`] is one of them, [`inspect`] reads a
//! script before a load. What scripts call is in `js/`, over the functions of `natives`.
//!
//! Limits: memory and the time between two requests, beyond which the iteration fails; the body of a
//! response, which is cut, with the reason; records of an iteration and console output (`RECORDS_MAX`,
//! `LOG_BYTES_MAX`), of which further ones are not kept; names (`NAMES_MAX`), beyond which a metric is
//! an error.
//!
//! Parts, from the bottom up: `built_in`, `metric` and `message` are data; `failure`, `thresholds` and
//! `options` read and report; `script` and `shared` hold what users share; `modules`, `request`,
//! `response`, `page` and `natives` are what scripts call; `user` runs one user, `inspect` one
//! iteration before the load, `summary` what comes after it.

mod built_in;
mod failure;
mod inspect;
mod message;
mod metric;
mod modules;
mod natives;
mod options;
mod page;
mod request;
mod response;
mod script;
mod shared;
mod summary;
mod thresholds;
mod user;

pub use failure::{Failure, FailureKind};
pub use inspect::{Inspection, ScriptFunction, ScriptSource, inspect};
pub use message::{ScriptRequest, ScriptResponse, ScriptTimings};
pub use metric::{MetricKind, MetricName};
pub use options::{
    ScriptLoad, ScriptOptions, ScriptScenario, ScriptSettings, ScriptStage, TlsAuth,
};
pub use script::Script;
pub use shared::{Clock, Iteration, Next, ReadFile, Record, UserSetup};
pub use summary::{HANDLE_SUMMARY, summarize};
pub use thresholds::{metrics_in_reports, threshold_texts};
pub use user::User;
