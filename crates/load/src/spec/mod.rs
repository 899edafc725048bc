//! What the user asked for, resolved and valid by construction.
//!
//! The command line parses into these types and refuses what they cannot hold, so nothing behind
//! it needs to check again.

mod engine;
mod load;
mod protocol;
mod question;
mod recording;
mod request;
mod retry;
mod route;
mod secrets;
mod sentinel;
mod target;
mod targets;
mod url;

pub use crate::arrival::{ArrivalLaw, AskedArrival, parse_arrival};
pub use crate::quantity::{
    ParseError, Rate, Share, UserStage, WorkerRange, parse_duration, parse_law, parse_list,
    parse_rate, parse_rates,
};
pub use engine::{BackendChoice, EngineOptions, Margins, TimestampsChoice, WaitPolicy};
pub use load::{
    CloseKind, ConnectScheme, Level, Load, OpenLoad, OverloadLoad, Pause, PauseKind, TrialSpec,
};
pub use protocol::*;
pub use question::Question;
pub use recording::{RecordedRequest, Recording, RecordingHead, RequestKind, is_recordable_path};
pub use request::{Body, Cut, Hole, HttpRequest, Part, is_token, parse_header};
pub(crate) use retry::jitter_rng;
pub use retry::{
    Backoff, Jitter, RetryBudget, RetryCause, RetryCauses, RetryPolicy, parse_retry_budget,
};
pub use route::{GivenAddresses, Proxy, ProxyRules, Route, ascii_host, without_zone};
pub use sentinel::SentinelSpec;
pub use target::{Endpoint, FurtherServer, Pick, Target};
pub use targets::{Targets, parse_targets};
pub use url::Url;
