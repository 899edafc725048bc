//! What the user asked for, resolved and valid by construction.
//!
//! The command line parses into these types and refuses what they cannot hold, so nothing behind
//! it needs to check again.

#[cfg(test)]
pub(crate) mod fixture;
mod load;
mod margins;
mod overload;
mod protocol;
mod question;
mod request;
mod secrets;
mod target;
mod targets;
mod tls;
mod trial;
mod url;

pub use crate::arrival::{ArrivalLaw, AskedArrival, parse_arrival};
pub use crate::quantity::{
    ParseError, Rate, Share, WorkerRange, parse_duration, parse_law, parse_list, parse_rate,
    parse_rates,
};
pub use load::{Load, OpenLoad, Pause, PauseKind};
pub use margins::Margins;
pub use overload::{CloseKind, ConnectScheme, OverloadLoad};
pub use protocol::{Http2Limits, HttpVersion};
pub use question::Question;
pub use request::{Body, Cut, Hole, HttpRequest, Part, parse_header};
pub use target::{Endpoint, HttpTarget, Pick};
pub use targets::{Targets, parse_targets};
pub use tls::{ClientCertificate, TlsGroup, TlsResume, TlsSpec, TlsVersion};
pub use trial::{BackendChoice, EngineOptions, Level, TimestampsChoice, TrialSpec, WaitPolicy};
pub use url::Url;
