//! Settings of the kernel that limit the connections of this host.

use crate::sys::thread::raise_open_files;
use knee_load::experiment::overload::{PreflightFacts, ServerFacts};
use knee_load::spec::CloseKind;
use knee_load::time::Nanos;
use std::fs;
use std::net::IpAddr;

/// TCP_TIMEWAIT_LEN, which no setting changes.
const TIME_WAIT: Nanos = Nanos::from_secs(60);

/// Settings of this host that limit an overload of `target`, for connections from one address that
/// are closed in order. Has the server's settings if it is `on_this_host`. Linux's defaults stand
/// in for what cannot be read.
pub fn preflight_facts(target: IpAddr, on_this_host: bool) -> PreflightFacts {
    let tw_reuse = match number("ipv4/tcp_tw_reuse", 2) {
        0 => false,
        1 => true,
        _ => target.to_canonical().is_loopback(),
    };
    PreflightFacts {
        port_range: port_range(),
        sources: 1,
        tw_reuse,
        close: Some(CloseKind::Fin),
        closes_first: false,
        syn_retries: number("ipv4/tcp_syn_retries", 6),
        files_hard: raise_open_files(),
        time_wait: TIME_WAIT,
        served_per_s: None,
        server: on_this_host.then(server_facts),
    }
}

fn server_facts() -> ServerFacts {
    ServerFacts {
        somaxconn: number("core/somaxconn", 4096),
        backlog: None,
        tcp_max_syn_backlog: number("ipv4/tcp_max_syn_backlog", 1024),
        syncookies: number("ipv4/tcp_syncookies", 1),
        abort_on_overflow: number("ipv4/tcp_abort_on_overflow", 0) != 0,
        synack_retries: number("ipv4/tcp_synack_retries", 5),
    }
}

fn port_range() -> (u16, u16) {
    let range = setting("ipv4/ip_local_port_range");
    let ports = range.as_deref().map(str::split_whitespace);
    let mut ports = ports.into_iter().flatten().map(str::parse);
    match (ports.next(), ports.next()) {
        (Some(Ok(first)), Some(Ok(last))) => (first, last),
        _ => (32_768, 60_999),
    }
}

/// A setting with one number, or Linux's default.
fn number(name: &str, otherwise: u32) -> u32 {
    setting(name).and_then(|text| text.trim().parse().ok()).unwrap_or(otherwise)
}

fn setting(name: &str) -> Option<String> {
    fs::read_to_string(format!("/proc/sys/net/{name}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn settings_are_read_or_are_those_of_linux() {
        let facts = preflight_facts(Ipv4Addr::LOCALHOST.into(), true);
        let (first, last) = facts.port_range;
        assert!(first < last, "{facts:?}");
        assert!(facts.files_hard >= 64, "{facts:?}");
        assert!(facts.server.is_some_and(|s| s.somaxconn > 0));
        assert!(preflight_facts(Ipv4Addr::LOCALHOST.into(), false).server.is_none());
        assert_eq!(number("ipv4/no_such_setting", 7), 7);
    }
}
