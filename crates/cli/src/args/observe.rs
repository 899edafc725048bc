//! Where a trial is observed at the server.

use super::secret;
use crate::failure::Failure;
use crate::resolved_options::{Typed, typed};
use clap::Args;
use knee_engine::error::RunError;
use knee_engine::observe::{Vantage, watch_for};
use knee_load::spec::{Endpoint, Target};
use serde::Serialize;
use serde_json::Value;
use std::net::SocketAddr;

#[derive(Args, Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Observer")]
pub struct ObserveArgs {
    /// Observer at the server's host, for SYNs, accept queue, drops, processor time and the time of
    /// operations inside that host. The address of a 'knee observe', 'here' if the server runs on
    /// this host, or 'none'. Observing costs some processor time per connection
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_place, hide_short_help = true)]
    #[serde(serialize_with = "typed")]
    observe: Option<ObserverPlace>,

    /// Token of the observer; visible to other users in 'ps'
    #[arg(long, value_name = "TOKEN", requires = "observe", hide_short_help = true)]
    #[serde(skip)]
    observe_token: Option<String>,

    /// File that contains that token, up to 1,024 bytes
    /// [default: the environment variable KNEE_TOKEN]
    #[arg(long, value_name = "FILE", requires = "observe", hide_short_help = true)]
    #[arg(conflicts_with = "observe_token")]
    #[serde(skip)]
    observe_token_file: Option<String>,
}

/// Where an observer is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ObserverPlace {
    /// Nowhere.
    None,
    /// In this process.
    Here,
    /// At this host and port.
    At(String),
}

impl Typed for ObserverPlace {
    fn typed(&self) -> Value {
        match self {
            ObserverPlace::None => "none".into(),
            ObserverPlace::Here => "here".into(),
            ObserverPlace::At(address) => address.as_str().into(),
        }
    }
}

impl ObserveArgs {
    /// Whether something is to be observed.
    pub fn is_given(&self) -> bool {
        !matches!(self.observe, None | Some(ObserverPlace::None))
    }

    /// The same with the token in it, wherever that comes from.
    pub fn with_token(mut self) -> Result<ObserveArgs, Failure> {
        if let Some(ObserverPlace::At(_)) = &self.observe {
            let (given, file) = (&self.observe_token, &self.observe_token_file);
            let names = ("--observe-token", "--observe-token-file");
            let token = secret::token(given.as_deref(), file.as_deref(), names)?;
            self.observe_token = (!token.is_empty()).then_some(token);
        }
        Ok(self)
    }

    /// Refuses an observer for a target that has no port to watch.
    pub fn check(&self, target: &Target) -> Result<(), Failure> {
        match &target.endpoint {
            Endpoint::Unix { .. } if self.is_given() => {
                let wrong = "a Unix socket has no SYNs to watch: leave it out";
                Err(Failure::argument("--observe", wrong))
            }
            _ => Ok(()),
        }
    }

    /// The place to observe `target` from as [`ObserveArgs::vantage`] has it. Where nobody named
    /// one it is this host, if the target is on it: the cost of connects does not matter then.
    pub fn vantage_or_here(&self, target: SocketAddr) -> Result<Option<Vantage>, RunError> {
        match &self.observe {
            None => Ok(watch_for(target, None, None)?.map(Vantage::counting_only)),
            Some(_) => self.vantage(&target.to_string()),
        }
    }

    /// The place to observe `target` from, connected where it is on another host; `None` where
    /// nobody asked. `address` is the target's as it answered.
    pub fn vantage(&self, address: &str) -> Result<Option<Vantage>, RunError> {
        let (Some(place), Ok(target)) = (&self.observe, address.parse::<SocketAddr>()) else {
            return Ok(None);
        };
        match place {
            ObserverPlace::None => Ok(None),
            ObserverPlace::At(at) => watch_for(target, Some(at), self.observe_token.as_deref()),
            ObserverPlace::Here => match watch_for(target, None, None)? {
                Some(here) => Ok(Some(here)),
                None => Err(RunError::NotPermitted(format!(
                    "--observe here: {target} is not an address of this host: start 'knee observe \
                     --port {}' there and give its HOST:PORT",
                    target.port()
                ))),
            },
        }
    }
}

fn parse_place(text: &str) -> Result<ObserverPlace, String> {
    match text {
        "none" => return Ok(ObserverPlace::None),
        "here" => return Ok(ObserverPlace::Here),
        _ => {}
    }
    let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty());
    match port.map(|(_, port)| port.parse::<u16>()) {
        Some(Ok(1..)) => Ok(ObserverPlace::At(text.to_owned())),
        _ => {
            Err(format!("'{text}' is no HOST:PORT, such as 192.168.1.5:9300, nor 'here' or 'none'"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_host_and_a_port_or_here_or_none() {
        assert_eq!(parse_place("here"), Ok(ObserverPlace::Here));
        assert_eq!(parse_place("none"), Ok(ObserverPlace::None));
        for at in ["server:9300", "10.0.0.1:1", "[::1]:9300"] {
            assert_eq!(parse_place(at), Ok(ObserverPlace::At(at.to_owned())));
        }
        for wrong in ["", "server", ":9300", "server:0", "server:x", "server:99999"] {
            assert!(parse_place(wrong).unwrap_err().contains(wrong));
        }
    }
}
