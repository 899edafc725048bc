//! What the user asked for, resolved and valid by construction.
//!
//! The command line parses into these types and refuses what they cannot hold, so nothing behind
//! it needs to check again.

mod client_wait;
#[cfg(test)]
pub(crate) mod fixture;
mod flows;
mod hold;
mod load;
mod margins;
mod overload;
mod parse;
mod rate;
mod request;
mod share;
mod target;
mod targets;
mod trial;
mod udp;
mod url;
mod wait;

pub use client_wait::{parse_client_wait, parse_clients};
pub use flows::{FlowSockets, FlowTrialSpec, FlowsEnd, ProbeSpec, Settle};
pub use hold::{CatchUp, HoldMethod, HoldSpec};
pub use load::{ArrivalLaw, Load, OpenLoad, Pause, PauseKind};
pub use margins::Margins;
pub use overload::{CloseKind, ConnectScheme, OverloadLoad};
pub use parse::{
    ParseError, parse_arrival, parse_duration, parse_law, parse_list, parse_rate, parse_rates,
};
pub use rate::Rate;
pub use request::{Body, HttpRequest, parse_header};
pub use share::Share;
pub use target::{Endpoint, HttpTarget, Pick};
pub use targets::{Targets, parse_targets};
pub use trial::{BackendChoice, EngineOptions, Level, TrialSpec, WaitPolicy};
pub use udp::{ClientWait, ClientsAs, ServiceMode, ServiceSetup, UdpTrialSpec};
pub use url::Url;
pub use wait::{Chore, WaitMethod, WaitSpec};
