//! How the connections to a target are made: addresses of names, local addresses, proxies.

use super::url::{check_host, split_port, without_user};
use super::{Endpoint, ParseError};
use crate::quantity::quoted;
use crate::time::Nanos;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use core::net::IpAddr;
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What holds for all connections to the servers of a target, beside where they go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// Addresses that names have without a lookup.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given: Vec<GivenAddresses>,
    /// Age of addresses at which their name is looked up again for new connections.
    pub refresh: Nanos,
    /// Local addresses that connections come from, in turn; empty: the kernel's choice. Each has
    /// its own range of ports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
}

/// The default age of addresses.
const REFRESH: Nanos = Nanos::from_secs(30);

impl Default for Route {
    fn default() -> Route {
        Route { given: Vec::new(), refresh: REFRESH, sources: Vec::new() }
    }
}

/// The addresses of a name and port, as `--resolve` of curl has them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenAddresses {
    /// The name; `*` for all names without addresses of their own.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// Whether the name is looked up once the addresses have their age.
    pub expires: bool,
}

impl Route {
    /// Takes a rule: `[+]HOST:PORT:ADDRESS[,ADDRESS]...`, or `-HOST:PORT`, which takes back what
    /// stands before it.
    ///
    /// # Errors
    /// It is no such rule.
    pub fn give(&mut self, rule: &str) -> Result<(), ParseError> {
        let wrong = || {
            ParseError(format!(
                "{} is no rule for a name: expected HOST:PORT:ADDRESS[,ADDRESS]",
                quoted(rule)
            ))
        };
        let (sign, text) = match rule.split_at_checked(1) {
            Some((sign @ ("+" | "-"), text)) => (sign, text),
            _ => ("", rule),
        };
        let end = if text.starts_with('[') { text.find(']').map(|at| at + 1) } else { None };
        let end = end.or_else(|| text.find(':')).ok_or_else(wrong)?;
        let host = text[..end].trim_start_matches('[').trim_end_matches(']');
        let rest = text[end..].strip_prefix(':').ok_or_else(wrong)?;
        let (port, addresses) = match rest.split_once(':') {
            Some((port, addresses)) if sign != "-" => (port, Some(addresses)),
            None if sign == "-" => (rest, None),
            _ => return Err(wrong()),
        };
        let port = port.parse::<u16>().ok().filter(|port| *port > 0 && !host.is_empty());
        let port = port.ok_or_else(wrong)?;
        let address = |text: &str| {
            let text = text.trim_start_matches('[').trim_end_matches(']');
            text.parse::<IpAddr>().map_err(|_| wrong())
        };
        let addresses = addresses.map(|all| all.split(',').map(address).collect());
        let addresses: Option<Vec<IpAddr>> = addresses.transpose()?;
        let host = match host {
            "*" => host.to_owned(),
            name => ascii_host(name).map_err(|_| wrong())?,
        };
        self.given.retain(|other| other.port != port || other.host != host);
        if let Some(addresses) = addresses {
            self.given.push(GivenAddresses { host, port, addresses, expires: sign == "+" });
        }
        Ok(())
    }

    /// The addresses that were given for a name and port.
    pub fn given_for(&self, host: &str, port: u16) -> Option<&GivenAddresses> {
        let of = |name: &str| {
            let mut given = self.given.iter().filter(|given| given.port == port);
            given.find(|given| given.host.eq_ignore_ascii_case(name))
        };
        of(host).or_else(|| of("*"))
    }
}

/// The form of a host's name that a lookup and a header take: a name in other letters than those
/// of ASCII in its punycode (UTS 46), any other as it is.
///
/// # Errors
/// No host can have this name.
pub fn ascii_host(name: &str) -> Result<String, ParseError> {
    if name.is_ascii() {
        return Ok(name.to_owned());
    }
    idna::domain_to_ascii(name)
        .map_err(|_| ParseError(format!("{} is no international host name", quoted(name))))
}

/// A host without the zone of an IPv6 address (RFC 4007 §11), which means something on this host
/// alone.
pub fn without_zone(host: &str) -> &str {
    host.split_once('%').map_or(host, |(address, _)| address)
}

/// An HTTP proxy that the connections to a server go through.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proxy {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// `user:password` for it; `None`: it asks for none.
    pub user: Option<String>,
    /// The option or the variable of the environment that names it.
    pub named_by: String,
}

/// The port of a proxy whose URL has none, as in curl.
const PROXY_PORT: u16 = 1080;

impl Proxy {
    /// `[http://][USER:PASSWORD@]HOST[:PORT]`, by curl's rules: what follows is left out.
    ///
    /// # Errors
    /// Another scheme, no host, a wrong port.
    pub fn parse(text: &str, named_by: &str) -> Result<Proxy, ParseError> {
        let wrong = |what: &str| ParseError(format!("{} {what}", quoted(&without_user(text))));
        let rest = match text.split_once("://") {
            None => text,
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
            Some((scheme, _)) => {
                let what = format!(
                    "is a proxy of the scheme {}, which is not supported: expected \
                     http://HOST:PORT",
                    quoted(scheme)
                );
                return Err(wrong(&what));
            }
        };
        let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
        let (user, server) = match authority.rsplit_once('@') {
            Some((user, server)) => (Some(user), server),
            None => (None, authority),
        };
        let (name, port) = split_port(server).map_err(|what| wrong(&what))?;
        let name = ascii_host(name)?;
        let host = check_host(&name).map_err(|what| wrong(&what))?.to_owned();
        let user = user.filter(|user| !user.is_empty()).map(decoded_user);
        let port = port.unwrap_or(PROXY_PORT);
        Ok(Proxy { host, port, user, named_by: named_by.to_owned() })
    }

    /// Where to connect.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::Tcp { host: self.host.clone(), port: self.port }
    }

    /// The value of Proxy-Authorization (RFC 9110 §11.7.2).
    pub fn authorization(&self) -> Option<String> {
        Some(format!("Basic {}", BASE64.encode(self.user.as_ref()?)))
    }
}

/// `USER:PASSWORD` without the percent-encoding that either may have, in a URL and, as in curl, in
/// an option too.
fn decoded_user(user: &str) -> String {
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    let [name, password] =
        [name, password].map(|part| percent_decode_str(part).decode_utf8_lossy());
    format!("{name}:{password}")
}

/// Without user and password.
impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.endpoint())
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} ({})", self.named_by)
    }
}

/// Which proxy the connections to a server go through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyRules {
    /// The proxy that an option names, by its text; empty: none, whatever the environment says.
    pub asked: Option<String>,
    /// `USER:PASSWORD`, percent-encoded or not, unless the proxy's URL has them.
    pub user: Option<String>,
    /// Hosts that are reached without a proxy; `None`: those of the environment.
    pub without: Option<String>,
}

impl ProxyRules {
    /// The proxy for a server by the scheme of its URL. `variable`: those of the environment, which
    /// count where no option does, by curl's rules.
    ///
    /// # Errors
    /// What names the proxy, and why that is no proxy.
    pub fn proxy_for(
        &self,
        scheme: &str,
        host: &str,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Proxy>, (String, ParseError)> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let first_of = |names: &[&str]| {
            let mut all = names.iter().filter_map(|name| Some((variable(name)?, *name)));
            all.next().map(|(text, name)| (text, name.to_owned()))
        };
        let named = match &self.asked {
            Some(text) => Some((text.clone(), "--proxy".to_owned())),
            // HTTP_PROXY is what a server makes of a header Proxy (CGI): it is not read.
            None if matches!(scheme, "http" | "ws" | "grpc") => {
                first_of(&["http_proxy", "all_proxy", "ALL_PROXY"])
            }
            None => first_of(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]),
        };
        let without = match &self.without {
            Some(without) => Some(without.clone()),
            None => first_of(&["no_proxy", "NO_PROXY"]).map(|(text, _)| text),
        };
        match named {
            Some((text, named_by))
                if !text.is_empty() && !without.is_some_and(|list| is_listed(host, &list)) =>
            {
                let proxy = Proxy::parse(&text, &named_by).map_err(|e| (named_by, e))?;
                let user = proxy.user.or_else(|| self.user.as_deref().map(decoded_user));
                Ok(Some(Proxy { user, ..proxy }))
            }
            _ => Ok(None),
        }
    }
}

/// Whether a host is in a list of those without a proxy: `*` alone, or names with all below them,
/// addresses, and networks as `10.0.0.0/8`, separated by commas or blanks.
fn is_listed(host: &str, list: &str) -> bool {
    if list == "*" {
        return true;
    }
    let host = without_zone(host);
    let address = host.parse::<IpAddr>().ok();
    let name = host.strip_suffix('.').unwrap_or(host);
    list.split([',', ' ', '\t']).any(|entry| match address {
        Some(address) => is_in_network(address, entry),
        None => {
            let entry = entry.strip_suffix('.').unwrap_or(entry);
            let entry = entry.strip_prefix('.').unwrap_or(entry);
            let before = name.len().checked_sub(entry.len()).filter(|_| !entry.is_empty());
            before.and_then(|at| name.split_at_checked(at)).is_some_and(|(before, end)| {
                end.eq_ignore_ascii_case(entry) && (before.is_empty() || before.ends_with('.'))
            })
        }
    })
}

/// Whether an address is this one, or in this network. Of no bits a network is an address.
fn is_in_network(address: IpAddr, network: &str) -> bool {
    let (network, bits) = match network.split_once('/') {
        Some((network, bits)) => (network, bits.parse().unwrap_or(0)),
        None => (network, 0),
    };
    let network = network.trim_start_matches('[').trim_end_matches(']');
    let (address, network, length) = match (address, network.parse()) {
        (IpAddr::V4(address), Ok(IpAddr::V4(network))) => {
            let [address, network] = [address, network].map(|ip| u128::from(u32::from(ip)) << 96);
            (address, network, 32)
        }
        (IpAddr::V6(address), Ok(IpAddr::V6(network))) => (address.into(), network.into(), 128),
        _ => return false,
    };
    let shift = if bits == 0 { 0 } else { 128 - bits };
    bits <= length && address >> shift == network >> shift
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rules_give_names_addresses() {
        let rows: &[(&[&str], &str, u16, &str)] = &[
            (&["h:80:192.0.2.1"], "h", 80, "192.0.2.1"),
            (&["h:80:192.0.2.1"], "H", 80, "192.0.2.1"),
            (&["h:80:192.0.2.1"], "h", 81, ""),
            (&["h:80:192.0.2.1"], "a.h", 80, ""),
            (&["h:80:192.0.2.2,192.0.2.1"], "h", 80, "192.0.2.2 192.0.2.1"),
            (&["h:80:[2001:db8::1],192.0.2.1"], "h", 80, "2001:db8::1 192.0.2.1"),
            (&["h:80:2001:db8::1"], "h", 80, "2001:db8::1"),
            (&["*:80:192.0.2.1"], "any", 80, "192.0.2.1"),
            (&["*:80:192.0.2.1", "h:80:192.0.2.2"], "h", 80, "192.0.2.2"),
            (&["h:80:192.0.2.2", "*:80:192.0.2.1"], "h", 80, "192.0.2.2"),
            (&["h:80:192.0.2.1", "h:80:192.0.2.2"], "h", 80, "192.0.2.2"),
            (&["h:80:192.0.2.1", "-h:80"], "h", 80, ""),
            (&["-h:80", "h:80:192.0.2.1"], "h", 80, "192.0.2.1"),
            (&["+h:80:192.0.2.1"], "h", 80, "192.0.2.1 for a time"),
            (&["[2001:db8::2]:80:192.0.2.1"], "2001:db8::2", 80, "192.0.2.1"),
            (&["bücher.example:80:192.0.2.1"], "xn--bcher-kva.example", 80, "192.0.2.1"),
        ];
        for (rules, host, port, expected) in rows {
            let mut route = Route::default();
            rules.iter().for_each(|rule| route.give(rule).unwrap());
            let found = route.given_for(host, *port).map_or(String::new(), |given| {
                let all: Vec<String> = given.addresses.iter().map(ToString::to_string).collect();
                all.join(" ") + if given.expires { " for a time" } else { "" }
            });
            assert_eq!(found, *expected, "{rules:?} {host}:{port}");
        }
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        let all = [
            "",
            "h",
            "h:80",
            "h:80:",
            "h:80:name",
            "h:x:192.0.2.1",
            "h:0:192.0.2.1",
            ":80:192.0.2.1",
            "h:80:192.0.2.1,",
            "-h:80:192.0.2.1",
            "-h",
            "h:80:192.0.2.1:81",
            "h:99999:192.0.2.1",
        ];
        for rule in all {
            let wrong = Route::default().give(rule).expect_err(rule).0;
            assert!(wrong.contains("expected HOST:PORT:ADDRESS"), "{wrong}");
        }
    }

    #[test]
    fn proxies_are_named_as_in_curl() {
        let rows = [
            ("p:3128", "http://p:3128", None),
            ("http://p:3128", "http://p:3128", None),
            ("HTTP://p:3128/", "http://p:3128", None),
            ("p", "http://p:1080", None),
            ("http://p/path?x#y", "http://p:1080", None),
            ("http://[2001:db8::1]:81", "http://[2001:db8::1]:81", None),
            ("u:pw@p:81", "http://p:81", Some("u:pw")),
            ("http://u:pw@p", "http://p:1080", Some("u:pw")),
            ("http://u@p:81", "http://p:81", Some("u:")),
            ("http://u%40d:p%3Aw@p:81", "http://p:81", Some("u@d:p:w")),
            ("http://u:p@w@p:81", "http://p:81", Some("u:p@w")),
            ("http://@p:81", "http://p:81", None),
            ("http://bücher.example:81", "http://xn--bcher-kva.example:81", None),
        ];
        for (text, shown, user) in rows {
            let proxy = Proxy::parse(text, "--proxy").unwrap();
            assert_eq!(
                (proxy.to_string().as_str(), proxy.user.as_deref()),
                (shown, user),
                "{text}"
            );
            assert!(!format!("{proxy:?}").contains("pw"), "{proxy:?}");
        }
        for (text, expected) in [
            ("socks5://u:pw@p:1", "the scheme 'socks5', which is not supported"),
            ("socks5h://p:1", "the scheme 'socks5h'"),
            ("https://p:1", "the scheme 'https'"),
            ("http://", "has no host"),
            ("http://u:pw@", "has no host"),
            ("http://u:pw@p:x", "has the port 'x'"),
            ("http://u:pw@a b:1", "' ' in its host"),
            ("p:99999", "has the port '99999'"),
        ] {
            let wrong = Proxy::parse(text, "--proxy").unwrap_err().0;
            assert!(wrong.contains(expected) && !wrong.contains("pw"), "{text}: {wrong}");
        }
    }

    #[test]
    fn environment_names_proxies_as_in_curl() {
        let rows: &[(&str, &str, &str, &str)] = &[
            ("http", "h", "http_proxy=p:1", "http://p:1 (http_proxy)"),
            ("http", "h", "HTTP_PROXY=p:1", ""),
            ("http", "h", "https_proxy=p:1", ""),
            ("https", "h", "http_proxy=p:1", ""),
            ("https", "h", "HTTPS_PROXY=p:1", "http://p:1 (HTTPS_PROXY)"),
            ("https", "h", "https_proxy=p:1 HTTPS_PROXY=q:1", "http://p:1 (https_proxy)"),
            ("https", "h", "https_proxy= HTTPS_PROXY=q:1", "http://q:1 (HTTPS_PROXY)"),
            ("http", "h", "ALL_PROXY=p:1", "http://p:1 (ALL_PROXY)"),
            ("http", "h", "all_proxy=p:1 ALL_PROXY=q:1", "http://p:1 (all_proxy)"),
            ("http", "h", "all_proxy=p:1 http_proxy=q:1", "http://q:1 (http_proxy)"),
            ("ws", "h", "http_proxy=p:1", "http://p:1 (http_proxy)"),
            ("wss", "h", "https_proxy=p:1", "http://p:1 (https_proxy)"),
            ("grpc", "h", "http_proxy=p:1", "http://p:1 (http_proxy)"),
            ("grpcs", "h", "http_proxy=p:1", ""),
            ("http", "h", "http_proxy=p:1 no_proxy=h", ""),
            ("http", "h", "http_proxy=p:1 NO_PROXY=h", ""),
            ("http", "h", "http_proxy=p:1 no_proxy=g NO_PROXY=h", "http://p:1 (http_proxy)"),
            ("http", "h", "http_proxy=p:1 --noproxy=g no_proxy=h", "http://p:1 (http_proxy)"),
            ("http", "h", "http_proxy=p:1 --noproxy=*", ""),
            ("http", "h", "http_proxy=p:1 --noproxy= NO_PROXY=*", "http://p:1 (http_proxy)"),
            ("http", "h", "http_proxy=p:1 --proxy=", ""),
            ("http", "h", "http_proxy=p:1 --proxy=q:1", "http://q:1 (--proxy)"),
            ("http", "h", "--proxy=q:1 no_proxy=h", ""),
            (
                "http",
                "h",
                "http_proxy=socks5://p:1",
                "http_proxy: 'socks5://p:1' is a proxy of the",
            ),
        ];
        for (scheme, host, given, expected) in rows {
            let given: Vec<_> = given.split(' ').filter_map(|pair| pair.split_once('=')).collect();
            let value = |name: &str| {
                let found = given.iter().find(|(given, _)| *given == name);
                found.map(|(_, value)| value.to_string())
            };
            let (asked, without) = (value("--proxy"), value("--noproxy"));
            let rules = ProxyRules { asked, user: None, without };
            let found = match rules.proxy_for(scheme, host, value) {
                Ok(proxy) => proxy.map_or(String::new(), |proxy| format!("{proxy:?}")),
                Err((name, wrong)) => format!("{name}: {wrong}"),
            };
            assert!(
                found == *expected || !expected.is_empty() && found.starts_with(expected),
                "{scheme} {given:?}: {found}"
            );
        }
        for (asked, expected) in [("u:pw@p:1", "Basic dTpwdw=="), ("p:1", "Basic b3RoZXI6cHcy")] {
            let (asked, user) = (Some(asked.to_owned()), Some("other:pw2".to_owned()));
            let rules = ProxyRules { asked, user, without: None };
            let proxy = rules.proxy_for("http", "h", |_| None).unwrap().unwrap();
            assert_eq!(proxy.authorization().as_deref(), Some(expected));
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_readers(text in "\\PC{0,30}|[-+*h:0-9.,/\\[\\]@%]{0,30}", host in "[a-z.:0-9%]{0,12}") {
            let mut route = Route::default();
            if route.give(&text).is_ok() {
                prop_assert!(route.given.iter().all(|given| !given.addresses.is_empty()));
            }
            let _ = is_listed(&host, &text);
            if let Ok(proxy) = Proxy::parse(&text, "--proxy") {
                prop_assert!(!proxy.host.is_empty() && proxy.port > 0);
                prop_assert!(proxy.host.bytes().all(|b| b.is_ascii_graphic()));
            }
        }
    }
}
