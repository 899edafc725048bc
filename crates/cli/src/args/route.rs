//! How connections are made: addresses of names, local addresses, proxies.

use super::values::{User, parse_positive, parse_user};
use crate::failure::Failure;
use crate::resolved_options::{Typed, typed};
use clap::Args;
use knee_load::spec::{Endpoint, ParseError, Proxy, ProxyRules, Scheme, Target};
use knee_load::time::Nanos;
use serde::Serialize;
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr};

#[derive(Args, Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Connections")]
pub struct RouteArgs {
    /// Addresses of a name, without a lookup, repeatable: HOST:PORT:ADDRESS,...
    ///
    /// As in curl: the host * stands for all others, an IPv6 address may be in brackets, and
    /// -HOST:PORT takes a rule back. After a leading + the name is looked up once --dns-refresh is
    /// over.
    #[arg(long, value_name = "RULE", allow_hyphen_values = true, hide_short_help = true)]
    resolve: Vec<String>,

    /// Age of addresses at which their name is looked up again for new connections [default: 30s]
    #[arg(long, value_name = "T", value_parser = parse_positive, hide_short_help = true)]
    #[serde(serialize_with = "typed")]
    dns_refresh: Option<Nanos>,

    /// Local addresses that connections come from in turn, such as 127.0.0.2-127.0.0.20; each has
    /// its own range of ports [default: the kernel's choice]
    #[arg(long, value_name = "A[-B][,...]", value_parser = parse_sources)]
    #[arg(hide_short_help = true)]
    #[serde(serialize_with = "typed")]
    source: Option<Sources>,

    /// HTTP proxy: http://USER:PASSWORD@HOST:PORT, or parts of it with the host; '' for none
    /// [default: by the environment]
    ///
    /// Requests in HTTP/1.1 without TLS are forwarded; for all others the proxy makes a tunnel
    /// (CONNECT). As in curl the port is 1080 unless given, and the environment counts: http_proxy,
    /// in small letters only, for http://, ws:// and grpc://; https_proxy or HTTPS_PROXY for the
    /// others over TLS; all_proxy or ALL_PROXY for all.
    #[arg(short = 'x', long, value_name = "URL", hide_short_help = true)]
    proxy: Option<String>,

    /// User and password for the proxy, unless its URL has them
    #[arg(short = 'U', long, value_name = "USER:PASSWORD", value_parser = parse_user)]
    #[arg(hide_short_help = true)]
    #[serde(serialize_with = "typed")]
    proxy_user: Option<User>,

    /// Hosts without a proxy: names with all below them, addresses and networks such as
    /// 10.0.0.0/8, with commas; '*' for all [default: no_proxy or NO_PROXY]
    #[arg(long, value_name = "HOSTS", hide_short_help = true)]
    noproxy: Option<String>,

    /// No proxy is used, whatever the options say.
    #[arg(skip)]
    #[serde(skip)]
    pub goes_straight: bool,
}

impl RouteArgs {
    /// Has rules hold before those that were given, which win.
    pub fn resolve_first(&mut self, rules: &[String]) {
        self.resolve.splice(..0, rules.iter().cloned());
    }

    /// The same target, whose connections are made as the options and the environment say.
    /// `schemes`: those of its servers, by their numbers.
    ///
    /// # Errors
    /// A wrong rule or proxy; a proxy that the target cannot be reached through.
    pub fn apply(
        &self,
        mut target: Target,
        schemes: impl IntoIterator<Item = Scheme>,
    ) -> Result<Target, Failure> {
        for rule in &self.resolve {
            target.route.give(rule).map_err(|e| Failure::argument("--resolve", e))?;
        }
        target.route.refresh = self.dns_refresh.unwrap_or(target.route.refresh);
        let sources = self.source.iter().flat_map(|sources| &sources.addresses);
        target.route.sources = sources.map(ToString::to_string).collect();
        let further = target.further.iter_mut().map(|s| (&s.endpoint, &mut s.proxy));
        let first = std::iter::once((&target.endpoint, &mut target.proxy));
        for ((endpoint, proxy), scheme) in first.chain(further).zip(schemes) {
            *proxy = self.proxy_for(scheme, endpoint)?.map(Box::new);
        }
        Ok(target)
    }

    fn proxy_for(&self, scheme: Scheme, endpoint: &Endpoint) -> Result<Option<Proxy>, Failure> {
        let wrong = match (endpoint, scheme) {
            (Endpoint::Unix { .. }, _) => "a Unix socket is reached without one: leave one out",
            (_, Scheme::Dns | Scheme::DnsTcp | Scheme::DnsTls) => {
                "it carries no queries of DNS: leave it out"
            }
            (Endpoint::Tcp { host, .. }, _) => {
                let rules = ProxyRules {
                    asked: self.proxy.clone(),
                    user: self.proxy_user.as_ref().map(|user| user.0.clone()),
                    without: self.noproxy.clone(),
                };
                if self.goes_straight {
                    return Ok(None);
                }
                return rules.proxy_for(scheme.name(), host, variable).map_err(|(name, wrong)| {
                    let other = if name.starts_with('-') { "" } else { "; or give --noproxy '*'" };
                    Failure::argument(&name, format!("{wrong}{other}"))
                });
            }
        };
        match self.proxy.as_deref() {
            None | Some("") => Ok(None),
            Some(_) => Err(Failure::argument("--proxy", wrong)),
        }
    }
}

/// A variable of the environment. Unit tests have none.
fn variable(name: &str) -> Option<String> {
    if cfg!(test) { None } else { std::env::var(name).ok() }
}

/// Addresses, and how they were typed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sources {
    typed: String,
    addresses: Vec<IpAddr>,
}

/// More addresses than any rate needs: each gives some 28,000 ports.
const SOURCES_MAX: u32 = 4096;

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
