//! Where connections come from: `--source`.

use crate::resolved_options::{Typed, typed};
use clap::Args;
use knee_load::spec::ParseError;
use serde::Serialize;
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr};

#[derive(Args, Clone, Debug, Serialize)]
pub struct SourceArgs {
    /// Local addresses that connections come from in turn, such as 127.0.0.2-127.0.0.20; each has
    /// its own range of ports [default: the kernel's choice]
    #[arg(long, value_name = "A[-B][,...]", value_parser = parse_sources)]
    #[arg(help_heading = "Load", hide_short_help = true)]
    #[serde(serialize_with = "typed")]
    source: Option<Sources>,
}

/// Addresses, and how they were typed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sources {
    typed: String,
    addresses: Vec<IpAddr>,
}

/// More addresses than any rate needs: each gives some 28,000 ports.
const SOURCES_MAX: u32 = 4096;

impl SourceArgs {
    /// The addresses; none where the kernel is to choose.
    pub fn addresses(&self) -> Vec<String> {
        let addresses = self.source.iter().flat_map(|s| &s.addresses);
        addresses.map(ToString::to_string).collect()
    }
}

impl Typed for Sources {
    fn typed(&self) -> Value {
        self.typed.as_str().into()
    }
}

/// Addresses and ranges of IPv4 addresses, separated by commas.
fn parse_sources(text: &str) -> Result<Sources, ParseError> {
    let mut addresses = Vec::new();
    for part in text.split(',').map(str::trim) {
        match part.split_once('-') {
            Some((first, last)) => addresses.extend(range(part, first, last)?),
            None => addresses.push(address(part)?),
        }
    }
    if addresses.len() > SOURCES_MAX as usize {
        return Err(too_many(text));
    }
    Ok(Sources { typed: text.to_owned(), addresses })
}

fn address(text: &str) -> Result<IpAddr, ParseError> {
    text.parse().map_err(|_| {
        ParseError(format!(
            "'{text}' is no IP address of this host, such as 127.0.0.2, nor a range such as \
             127.0.0.2-127.0.0.20"
        ))
    })
}

fn range(text: &str, first: &str, last: &str) -> Result<Vec<IpAddr>, ParseError> {
    let (IpAddr::V4(first), IpAddr::V4(last)) = (address(first)?, address(last)?) else {
        let wrong = format!("'{text}' is a range, which only IPv4 addresses can make: name each");
        return Err(ParseError(wrong));
    };
    let (first, last) = (u32::from(first), u32::from(last));
    if first > last {
        let wrong = format!("'{text}' has its ends the wrong way round");
        return Err(ParseError(wrong));
    }
    if last - first >= SOURCES_MAX {
        return Err(too_many(text));
    }
    Ok((first..=last).map(|ip| Ipv4Addr::from(ip).into()).collect())
}

fn too_many(text: &str) -> ParseError {
    ParseError(format!("'{text}' names more than {SOURCES_MAX} addresses: name fewer"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_ranges() {
        let listed = |text: &str| {
            let sources = parse_sources(text).unwrap().addresses;
            sources.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(listed("127.0.0.2"), ["127.0.0.2"]);
        assert_eq!(
            listed("127.0.0.254-127.0.1.1, ::1"),
            ["127.0.0.254", "127.0.0.255", "127.0.1.0", "127.0.1.1", "::1"]
        );
        assert_eq!(listed("10.0.0.0-10.0.15.255").len(), SOURCES_MAX as usize);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, expected) in [
            ("", "'' is no IP address"),
            ("eth0", "'eth0' is no IP address"),
            ("127.0.0.2-", "'' is no IP address"),
            ("127.0.0.9-127.0.0.2", "'127.0.0.9-127.0.0.2' has its ends"),
            ("::1-::9", "'::1-::9' is a range, which only IPv4"),
            ("10.0.0.0-10.255.0.0", "'10.0.0.0-10.255.0.0' names more than 4096"),
        ] {
            let wrong = parse_sources(text).unwrap_err().0;
            assert!(wrong.starts_with(expected), "{text}: {wrong}");
        }
    }
}
