//! Operations and connections: which operation goes over which connection, and what becomes of it.
//!
//! Worker, client and backend know each other by their interfaces alone (`dyn Client`, `dyn
//! StepClient`, `dyn Backend`), so that none is compiled once more for each kind of the others.
//!
//! - `http_client`: `HttpClient<Link, Conversation, Policy>` carries operations over connections.
//!   `place` finds a connection, `carry` takes requests out and responses in, `handle_events` handles
//!   events of conversations, `manage` opens, secures and closes. Each operation has a number and
//!   a deadline of its own.
//! - `policy` there says what depends on whether connections are kept (`Pooled`) or each
//!   operation opens one, which is closed unless it is established in time (`OnePerOperation`,
//!   for an overload).
//! - `diverting_client` has two of them. What the first diverts, such as a DNS query whose answer
//!   is truncated, goes on in the second.
//! - `servers_client` has one for each server of a target. The request of a step says which it
//!   goes to, or the response that it follows does (`SessionPlan::on_server`).
//! - `session_client` carries sessions. Their steps are operations of a `StepClient` of either
//!   policy. The driver knows only sessions, the recorder their steps.
//! - `script_client` does the same for users written in JavaScript, `replay_client` for the
//!   requests of a recording. Their times are an arrival process; `feed` reads the requests ahead
//!   of time on a thread of its own.
//!
//! Completions are looked at where they lie (`HandoverQueue`). What is sent is a registered
//! request, which is never copied, or bytes in a buffer that the backend takes and hands back.

pub(crate) mod client;
mod deadlines;
pub(crate) mod diverting_client;
mod flight;
mod flights;
pub(crate) mod http_client;
#[cfg(not(feature = "scripts"))]
pub(crate) mod no_script_client;
mod ready;
pub(crate) mod replay_client;
pub(crate) mod requests;
#[cfg(feature = "scripts")]
pub(crate) mod script_client;
pub(crate) mod servers_client;
pub(crate) mod session_client;
mod session_end;
pub(crate) mod step_client;

#[cfg(not(feature = "scripts"))]
pub(crate) use no_script_client as script_client;
