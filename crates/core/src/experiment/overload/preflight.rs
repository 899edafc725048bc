//! Findings about what would fail, made before any load is sent.

use super::{Descriptors, OverloadSpec, automatic_descriptors};
use crate::experiment::overload::analysis::{SYN_AGAIN, times};
use crate::finding::{Finding, Severity, codes, gravest_first};
use crate::words::{exact, number, time};
use knee_load::experiment::{PreflightFacts, ServerFacts};
use knee_load::spec::CloseKind;
use knee_load::time::Nanos;

codes! {
    FILES_WILL_RUN_OUT = "files_will_run_out":
        cause "The largest level needs more open files than the hard limit of this process \
               allows. Attempts beyond the limit will find no descriptor.",
        remedy "Raise the hard limit with `ulimit -Hn`, or use fewer descriptors with a shorter \
                T.";
    TOO_FEW_PORTS = "too_few_ports":
        cause "The largest level has more attempts in flight than this host has local ports. \
               Attempts beyond that number will fail with EADDRNOTAVAIL.",
        remedy "Use more source addresses with --source, or enlarge \
                net.ipv4.ip_local_port_range.";
    PORTS_WILL_RUN_OUT = "ports_will_run_out":
        cause "The generator closes connections first, so each local port stays in TIME_WAIT. At \
               the server's rate no port is left before the first one is free again.",
        remedy "Use more source addresses with --source, or close with --close rst.";
    PATIENCE_TOO_LONG = "patience_too_long":
        cause "T is 1 s or longer, but the kernel repeats an unanswered SYN after 1 s. The \
               server receives more SYNs than connections are started.",
        remedy "Keep T below 1 s: --connect-timeout 500ms.";
    BACKLOG_CUT = "backlog_cut":
        cause "The server asks for a longer accept queue than net.core.somaxconn allows. The \
               kernel silently uses the smaller number.",
        remedy "Raise net.core.somaxconn before the server starts.";
    ABORTS_ON_OVERFLOW = "aborts_on_overflow":
        cause "With net.ipv4.tcp_abort_on_overflow the kernel resets connections that find the \
               accept queue full. Most servers run without it.",
        remedy "Set net.ipv4.tcp_abort_on_overflow to 0.";
    SYNCOOKIES_ALWAYS = "syncookies_always":
        cause "With net.ipv4.tcp_syncookies=2 the kernel answers every SYN with a cookie and \
               keeps no requests. Most servers use cookies only when the queue of requests is \
               full.",
        remedy "Set net.ipv4.tcp_syncookies to 1.";
    REQUEST_QUEUE_SHORT = "request_queue_short":
        cause "SYN cookies are off, and the queue of requests is shorter than the accept queue. \
               SYNs are dropped before the accept queue is full.",
        remedy "Raise net.ipv4.tcp_max_syn_backlog, or turn on net.ipv4.tcp_syncookies.";
}

/// Descriptors that the process needs besides its connections.
const SPARE_FILES: u64 = 64;
/// With tcp_tw_reuse a port in TIME_WAIT is used again after this long.
const REUSE_AFTER: Nanos = Nanos::from_secs(1);
/// Nothing is known of a server: ports that last for as much as this per second will do.
const UNKNOWN_SERVED_PER_S: f64 = 20_000.0;
/// Descriptors that an automatic choice seldom exceeds.
const AUTOMATIC_DESCRIPTORS: u32 = 4_096;

/// Predicts what would fail or mislead, with its remedy, the gravest first. An error is certain; a
/// warning holds if the server is as fast as it may be.
pub fn predict(facts: &PreflightFacts, spec: &OverloadSpec) -> Vec<Finding> {
    let in_flight = in_flight_max(facts, spec);
    let mut findings: Vec<Finding> = [
        too_few_files(facts, &in_flight),
        too_few_ports(facts, &in_flight),
        ports_run_out(facts, spec, &in_flight),
        patience_too_long(facts, spec),
    ]
    .into_iter()
    .flatten()
    .collect();
    findings.extend(facts.server.iter().flat_map(server_findings));
    gravest_first(&mut findings);
    findings
}

/// The level with the most connections in flight.
struct InFlight {
    /// Name of the level.
    label: String,
    /// Connects in flight, and connections that wait in the accept queue.
    connections: u64,
    /// Whether that number is certain.
    is_certain: bool,
}

/// Simple clients have one connection each, wherever it waits. Of S-Clients those that wait for a
/// response come on top of the connects in flight.
fn in_flight_max(facts: &PreflightFacts, spec: &OverloadSpec) -> InFlight {
    let queue = facts.server.as_ref().map_or(0, |s| s.backlog.unwrap_or(0).min(s.somaxconn));
    let clients = spec.simple.iter().copied().max().unwrap_or(0);
    let (descriptors, is_certain) = match (&spec.scheduled, &spec.descriptors) {
        (Some((_, _, descriptors)), _) => (*descriptors, true),
        (None, Descriptors::List(list)) => (list.iter().copied().max().unwrap_or(0), true),
        (None, Descriptors::Auto) => match facts.served_per_s {
            Some(served) => {
                let levels = automatic_descriptors(spec, served);
                (levels.last().copied().unwrap_or(0), true)
            }
            None => (AUTOMATIC_DESCRIPTORS.min(spec.descriptors_max), false),
        },
    };
    let pressed = u64::from(descriptors) + u64::from(queue);
    if descriptors == 0 || u64::from(clients) > pressed {
        return InFlight {
            label: format!("clients={clients}"),
            connections: u64::from(clients),
            is_certain: true,
        };
    }
    InFlight { label: format!("descriptors={descriptors}"), connections: pressed, is_certain }
}

fn ports(facts: &PreflightFacts) -> u64 {
    let (first, last) = facts.port_range;
    let each = u64::from(last.saturating_sub(first)) + 1;
    each * u64::from(facts.sources.max(1))
}

fn too_few_files(facts: &PreflightFacts, level: &InFlight) -> Option<Finding> {
    let needed = level.connections + SPARE_FILES;
    (level.is_certain && needed > facts.files_hard).then(|| {
        FILES_WILL_RUN_OUT.error(
            format!(
                "{} needs {} open files, and this process may have {}: what is beyond finds no \
                 descriptor",
                level.label,
                exact(needed as f64),
                exact(facts.files_hard as f64)
            ),
            [("needed", needed as f64), ("permitted", facts.files_hard as f64)],
            format!(
                "raise the hard limit: ulimit -Hn {needed}; or ask for less with a shorter T: \
                 --descriptors, --connect-timeout"
            ),
        )
    })
}

fn too_few_ports(facts: &PreflightFacts, level: &InFlight) -> Option<Finding> {
    let ports = ports(facts);
    (level.connections > ports).then(|| {
        let (severity, may) = if level.is_certain {
            (Severity::Error, "has")
        } else {
            (Severity::Warning, "may have")
        };
        let what = if facts.close.is_some() { "connections" } else { "requests" };
        TOO_FEW_PORTS.finding(
            severity,
            format!(
                "{} {may} {} {what} in flight, and there are {} local ports: what is beyond \
                 finds none (EADDRNOTAVAIL)",
                level.label,
                exact(level.connections as f64),
                exact(ports as f64)
            ),
            [("in_flight", level.connections as f64), ("ports", ports as f64)],
            ports_remedy(facts.close),
        )
    })
}

/// What makes local ports last.
pub(super) fn ports_remedy(close: Option<CloseKind>) -> String {
    let rst = match close {
        Some(CloseKind::Fin) => "; or avoid TIME_WAIT: --close rst",
        Some(CloseKind::Rst) | None => "",
    };
    let reuse = if close.is_some() { " net.ipv4.tcp_tw_reuse=1" } else { "" };
    format!(
        "use more source addresses: --source 127.0.0.2-127.0.0.20 on loopback, else addresses of \
         this host{rst}; or add ports: sysctl -w net.ipv4.ip_local_port_range=\"1024 \
         65535\"{reuse}"
    )
}

/// Only whoever closes first keeps its port, and only after an orderly close.
fn ports_run_out(facts: &PreflightFacts, spec: &OverloadSpec, level: &InFlight) -> Option<Finding> {
    if facts.close != Some(CloseKind::Fin) || !facts.closes_first {
        return None;
    }
    let kept = if facts.tw_reuse { facts.time_wait.min(REUSE_AFTER) } else { facts.time_wait };
    let trial = spec.base.window_end();
    // What ends before the first port comes back needs one for each connection, and no more.
    let held = kept.min(Nanos(trial.0.saturating_mul(spec.trials_max() as u64)));
    let ports = ports(facts);
    // Where none is free to begin with, another finding says so.
    let free = ports.checked_sub(level.connections)? as f64;
    let lasts_per_s = free / held.as_secs_f64().max(f64::MIN_POSITIVE);
    let enough_per_s = facts.served_per_s.unwrap_or(UNKNOWN_SERVED_PER_S);
    if lasts_per_s >= enough_per_s {
        return None;
    }
    let (severity, when) = match facts.served_per_s {
        Some(served) => (
            Severity::Error,
            format!(
                ", and {}/s are: after {} no port is left",
                number(served),
                time(1e9 * free / served)
            ),
        ),
        None => (Severity::Warning, String::new()),
    };
    Some(PORTS_WILL_RUN_OUT.finding(
        severity,
        format!(
            "{} local ports last for {}/s served: this side closes first, and each port is kept \
             for {} in TIME_WAIT{when}",
            exact(ports as f64),
            number(lasts_per_s),
            time(kept.0 as f64)
        ),
        [
            ("ports", ports as f64),
            ("lasts_per_s", lasts_per_s),
            ("time_wait_ns", kept.0 as f64),
            ("served_per_s", facts.served_per_s.unwrap_or(f64::NAN)),
        ],
        ports_remedy(facts.close),
    ))
}

fn patience_too_long(facts: &PreflightFacts, spec: &OverloadSpec) -> Option<Finding> {
    let patience = spec.base.connect_timeout;
    let has_sclients =
        spec.scheduled.is_some() || spec.descriptors != Descriptors::List(Vec::new());
    (patience >= SYN_AGAIN && facts.syn_retries > 0 && has_sclients).then(|| {
        PATIENCE_TOO_LONG.warning(
            format!(
                "T is {}, but an unanswered SYN is sent again after 1 s (tcp_syn_retries {}): \
                 more SYNs arrive than connections are started; they are counted apart",
                time(patience.0 as f64),
                facts.syn_retries
            ),
            [("connect_timeout_ns", patience.0 as f64)],
            "keep T below it: --connect-timeout 500ms",
        )
    })
}

fn server_findings(server: &ServerFacts) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(backlog) = server.backlog.filter(|&b| b > server.somaxconn) {
        findings.push(BACKLOG_CUT.warning(
            format!(
                "the accept queue is to hold {} and will hold {}: net.core.somaxconn cuts it",
                exact(f64::from(backlog)),
                exact(f64::from(server.somaxconn))
            ),
            [("backlog", f64::from(backlog)), ("somaxconn", f64::from(server.somaxconn))],
            format!("before the server starts: sysctl -w net.core.somaxconn={backlog}"),
        ));
    }
    if server.abort_on_overflow {
        findings.push(ABORTS_ON_OVERFLOW.warning(
            "net.ipv4.tcp_abort_on_overflow is set: connections that find the accept queue full \
             as their handshake ends are reset",
            [],
            "as most servers have it: sysctl -w net.ipv4.tcp_abort_on_overflow=0",
        ));
    }
    findings.extend(request_queue(server));
    findings
}

/// The queue of requests holds handshakes that have begun. Without cookies its last quarter is
/// kept for peers that the kernel knows.
fn request_queue(server: &ServerFacts) -> Option<Finding> {
    let evidence = [
        ("syncookies", f64::from(server.syncookies)),
        ("tcp_max_syn_backlog", f64::from(server.tcp_max_syn_backlog)),
        ("tcp_synack_retries", f64::from(server.synack_retries)),
    ];
    if server.syncookies >= 2 {
        return Some(SYNCOOKIES_ALWAYS.warning(
            "net.ipv4.tcp_syncookies is 2: every SYN is answered with a cookie, and no request \
             is kept",
            evidence,
            "as most servers have it: sysctl -w net.ipv4.tcp_syncookies=1",
        ));
    }
    let queue = server.backlog.unwrap_or(server.somaxconn).min(server.somaxconn);
    let is_short = server.syncookies == 0 && server.tcp_max_syn_backlog < queue;
    is_short.then(|| {
        REQUEST_QUEUE_SHORT.warning(
            format!(
                "without SYN cookies only {} handshakes may be under way (tcp_max_syn_backlog), \
                 {} times fewer than the accept queue holds: SYNs are dropped before it is full",
                exact(f64::from(server.tcp_max_syn_backlog)),
                times(f64::from(queue), f64::from(server.tcp_max_syn_backlog))
            ),
            evidence,
            format!("sysctl -w net.ipv4.tcp_max_syn_backlog={queue}"),
        )
    })
}

#[cfg(test)]
mod tests;
