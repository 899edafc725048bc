//! knee-load: what a load is, and what was measured of it. Schedules, drivers, sessions, requests,
//! recorders and statistics, below everything that acts or decides.
//!
//! Nothing here opens a socket, reads a clock, starts a thread or prints. Time and randomness come
//! in as arguments, so that a seed replays a run and tests of time run in virtual time.
//!
//! [`throttle`] is of use by itself: it holds a rate of operations of any kind.
//!
//! # Parts
//!
//! From the bottom up: `names`, `octaves`, `rng`, `digits`, `shown`, `percent`, `secrets`, `time`,
//! `law`, `polling`, `pool`; `quantity`; `session`, `arrival`; `messages`; `spec`; `measure` and
//! `stats`; `sentinel`, `both_ends`, `throttle`, `driver`; the folders of `experiment`.
//!
//! # Where to look
//!
//! - When is an operation intended? `arrival`; who starts it: `driver`.
//! - What does a user do next? `session/walk.rs`.
//! - When is a message complete, and what does it mean? `messages/splitter.rs`,
//!   `messages/stream_api.rs`.
//! - What is a response time made of? `measure/completion.rs`.
//! - What may a late start add to other operations? `measure/backlog.rs`.
//! - When did work wait while nothing completed? `measure/timeline.rs`.
//! - Which places in a series are no chance? `stats/change_points.rs`; rounds of a sweep:
//!   `stats/rounds.rs`, `stats/course.rs`.
//! - What is a secret, and who hides it? `secrets`; of a target: `spec/secrets.rs`; of a report:
//!   `secrets/document.rs`.
//! - What follows a redirection? `Redirected` in `session/plan.rs`; what stays with its origin:
//!   `keep_credentials_at_origin` in `spec/secrets.rs`.
//! - Which proxy and addresses does a target have? `spec/route.rs`.
//! - Who makes which part of a trial? `WorkerRange` in `quantity.rs`.
#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

pub mod arrival;
pub mod both_ends;
pub mod digits;
pub mod driver;
pub mod experiment;
pub mod law;
pub mod measure;
pub mod messages;
pub mod names;
mod octaves;
pub mod percent;
pub mod polling;
pub mod pool;
pub mod quantity;
pub mod rng;
pub mod secrets;
pub mod sentinel;
pub mod session;
pub mod shown;
pub mod spec;
pub mod stats;
pub mod throttle;
pub mod time;

// Unit tests cannot use a crate that depends on this one: they compile its parts here.
#[cfg(test)]
extern crate self as knee_load;
#[cfg(test)]
#[allow(dead_code, unreachable_pub)]
#[path = "../../sim/src/fixture.rs"]
mod fixture;
#[cfg(test)]
#[allow(unreachable_pub)]
#[path = "../../sim/src/series.rs"]
mod series;
#[cfg(test)]
#[allow(unreachable_pub)]
#[path = "../../sim/src/theory.rs"]
mod theory;
