//! DNS: questions in place of requests.

use crate::failure::Failure;
use knee_load::spec::{DnsQuestion, DnsSettings, Endpoint, Protocol, Scheme, Target};

/// The same target, spoken with in DNS, with at most this many queries under way on a connection.
pub fn apply(
    mut target: Target,
    scheme: Scheme,
    queries_max: Option<u32>,
) -> Result<Target, Failure> {
    let over_tcp = scheme != Scheme::Dns;
    if !over_tcp && matches!(target.endpoint, Endpoint::Unix { .. }) {
        let wrong = "carries no datagrams: leave it out, or write dns+tcp://";
        return Err(Failure::argument("--unix-socket", wrong));
    }
    for request in &target.requests {
        DnsQuestion::of_path(&request.path).map_err(|e| Failure::argument("URL", e))?;
    }
    let queries_max = queries_max.unwrap_or(DnsSettings::QUERIES_MAX);
    let queries_max = queries_max.min(DnsSettings::QUERIES_MAX);
    target.protocol = Protocol::Dns(DnsSettings { over_tcp, queries_max });
    Ok(target)
}
