//! Facts about this machine for the report and its processor time, and the limits and settings that
//! a load may meet.

use crate::error::RunError;
use crate::sys::clock;
use crate::sys::thread::{self, raise_open_files};
use knee_load::experiment::{PreflightFacts, ServerFacts};
use knee_load::measure::Host;
use knee_load::spec::CloseKind;
use knee_load::time::Nanos;
use std::fs;
use std::net::{IpAddr, UdpSocket};

/// Facts about this machine for the report; what cannot be read stays empty.
pub fn host() -> Host {
    let line = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|l| l.strip_prefix("model name")?.split_once(':'));
    Host {
        cpus: thread::cpu_count(),
        kernel: line("/proc/sys/kernel/osrelease"),
        congestion_control: line("/proc/sys/net/ipv4/tcp_congestion_control"),
        backend: String::new(),
        cpu_model: model.map_or_else(String::new, |(_, name)| name.trim().to_owned()),
        facts: Default::default(),
    }
}

/// Whether an address is one of this host: whether something can be bound to it.
pub(crate) fn is_own(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback() || (!ip.is_unspecified() && UdpSocket::bind((ip, 0)).is_ok())
}

/// Least ticks for a share.
const TICKS_MIN: u64 = 100;

/// Processor time of the whole host, in ticks: /proc/stat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostTime {
    total: u64,
    idle: u64,
    stolen: u64,
}

impl HostTime {
    /// Reads the times; zeros without /proc.
    pub(crate) fn now() -> HostTime {
        parse(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// Whether the hypervisor gave any time to others since `earlier`, to the tick (10 ms).
    pub(crate) fn has_steal_since(self, earlier: HostTime) -> bool {
        self.stolen > earlier.stolen
    }

    /// The share of the time since `earlier` that the hypervisor gave to others, in percent.
    pub(crate) fn steal_percent_since(self, earlier: HostTime) -> Option<f64> {
        let stolen = self.stolen.saturating_sub(earlier.stolen);
        self.percent_since(earlier, stolen)
    }

    /// Share of the time since `earlier` in which processors were busy, in percent of all of them.
    /// Time that the hypervisor gave to others counts as busy.
    pub(crate) fn busy_percent_since(self, earlier: HostTime) -> Option<f64> {
        let total = self.total.saturating_sub(earlier.total);
        let idle = self.idle.saturating_sub(earlier.idle);
        self.percent_since(earlier, total.saturating_sub(idle))
    }

    /// `None` with too few ticks.
    fn percent_since(self, earlier: HostTime, ticks: u64) -> Option<f64> {
        let total = self.total.saturating_sub(earlier.total);
        (total >= TICKS_MIN).then(|| ticks as f64 * 100.0 / total as f64)
    }
}

/// Idle time of some processors at one time, from /proc/stat.
#[derive(Clone, Debug)]
pub(crate) struct Processors {
    cpus: Vec<u32>,
    at_ns: u64,
    idle_ns: Option<u64>,
}

/// Length of a tick of /proc/stat (USER_HZ is 100 on all platforms of Linux but alpha).
const TICK_NS: u64 = 10_000_000;

impl Processors {
    /// Reads the times of these processors.
    pub(crate) fn now(cpus: &[u32]) -> Processors {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        Processors {
            cpus: cpus.to_vec(),
            at_ns: clock::monotonic_ns(),
            idle_ns: idle_ticks(&stat, cpus).map(|ticks| ticks.saturating_mul(TICK_NS)),
        }
    }

    /// Busy time of all of them since then, to a tick of each; `None` if /proc/stat has none.
    pub(crate) fn busy_since(&self) -> Option<Nanos> {
        let now = Processors::now(&self.cpus);
        let idle_ns = now.idle_ns?.saturating_sub(self.idle_ns?);
        let all_ns = (now.at_ns - self.at_ns).saturating_mul(self.cpus.len() as u64);
        Some(Nanos(all_ns.saturating_sub(idle_ns)))
    }
}

/// Idle ticks of these processors together; `None` if one of them is not listed.
fn idle_ticks(stat: &str, cpus: &[u32]) -> Option<u64> {
    let of = |cpu: &u32| -> Option<u64> {
        let name = format!("cpu{cpu}");
        let is_it = |line: &&str| line.split_whitespace().next() == Some(name.as_str());
        let line = stat.lines().find(is_it)?;
        // Waiting for a disk is idling too.
        line.split_whitespace().skip(4).take(2).map(|t| t.parse::<u64>().ok()).sum()
    };
    cpus.iter().map(of).sum()
}

/// `cpu user nice system idle iowait irq softirq steal guest guest_nice`; guest is part of user.
fn parse(stat: &str) -> HostTime {
    let first = stat.lines().next().unwrap_or_default();
    let ticks: Vec<u64> =
        first.split_whitespace().skip(1).take(8).filter_map(|t| t.parse().ok()).collect();
    HostTime {
        total: ticks.iter().sum(),
        // Waiting for a disk is idling too.
        idle: ticks.iter().skip(3).take(2).sum(),
        stolen: ticks.get(7).copied().unwrap_or(0),
    }
}

/// The largest resident memory of this process so far, in bytes: VmHWM of /proc/self/status.
pub(crate) fn peak_rss_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Open files beside connections: standard streams, output files, the history, and those of each
/// worker's backend.
pub const RESERVED_FILES: u64 = 64;

/// Limit and use of open files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFiles {
    /// Most open files.
    pub limit: u64,
    /// Files per connection: 2 if a server in this process has the other end.
    pub per_connection: u64,
}

impl OpenFiles {
    /// Limit of this process, with the soft limit raised to the hard one if permitted.
    pub fn of_this_process() -> OpenFiles {
        OpenFiles { limit: raise_open_files(), per_connection: 1 }
    }

    /// Connections that fit.
    pub fn connections(self) -> u64 {
        self.limit.saturating_sub(RESERVED_FILES) / self.per_connection
    }

    /// Why these connections do not fit, and what to do; `None` if they fit.
    pub fn refusal(self, connections: u64) -> Option<String> {
        let permitted = self.connections();
        if connections <= permitted {
            return None;
        }
        let needed = connections.saturating_mul(self.per_connection) + RESERVED_FILES;
        let limit = self.limit;
        let fewer = if permitted == 0 {
            String::new()
        } else {
            format!(", or ask for at most {permitted}")
        };
        Some(format!(
            "{connections} connections need {needed} open files ({RESERVED_FILES} are for knee \
         itself), and the limit is {limit}: raise the limit (ulimit -n \
             {needed}){fewer}"
        ))
    }
}

/// Raises the limit of open files as far as permitted and checks that `connections` fit.
///
/// # Errors
/// [`RunError::NotPermitted`] with the remedy.
pub(crate) fn ensure_files(connections: u64) -> Result<(), RunError> {
    match OpenFiles::of_this_process().refusal(connections) {
        None => Ok(()),
        Some(line) => Err(RunError::NotPermitted(line)),
    }
}

/// Connections that this process may have open at once, with the limit raised as far as permitted.
pub fn connections_permitted() -> u32 {
    u32::try_from(OpenFiles::of_this_process().connections()).unwrap_or(u32::MAX)
}

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

/// Memory that this machine has for programs, in bytes.
#[cfg(feature = "scripts")]
pub(crate) fn memory_available() -> Option<u64> {
    let all = fs::read_to_string("/proc/meminfo").ok()?;
    let line = all.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn steal_is_a_share_of_all_ticks() {
        let before = parse("cpu  100 0 100 800 0 0 0 0 7 0\ncpu0 1 2 3");
        let after = parse("cpu  150 0 120 820 0 0 0 10 9 0\n");
        assert_eq!(after.steal_percent_since(before), Some(10.0));
        assert_eq!(before.steal_percent_since(before), None);
        assert_eq!(after.busy_percent_since(before), Some(80.0));
        assert!(after.has_steal_since(before) && !after.has_steal_since(after));
    }

    #[test]
    fn the_idle_time_is_that_of_the_processors_asked_for() {
        let stat = "cpu  9 9 9 99 9 0 0 0\ncpu0 1 2 3 40 5 0 0 0\ncpu1 1 2 3 60 7 0 0 0\n\
                    cpu10 1 2 3 80 0 0 0 0\n";
        assert_eq!(idle_ticks(stat, &[0]), Some(45));
        assert_eq!(idle_ticks(stat, &[1, 10]), Some(147));
        assert_eq!(idle_ticks(stat, &[2]), None);
        assert_eq!(idle_ticks("", &[0]), None);
    }

    #[test]
    fn the_host_is_known() {
        let host = host();
        assert!(host.cpus >= 1 && !host.kernel.is_empty());
        assert!(peak_rss_bytes() > 100_000);
    }

    fn refusal(limit: u64, per_connection: u64, connections: u64) -> Option<String> {
        let files = OpenFiles { limit, per_connection };
        files.refusal(connections)
    }

    #[test]
    fn as_many_connections_fit_as_the_reserve_leaves() {
        assert_eq!(refusal(264, 1, 200), None);
        let expected = "200 connections need 264 open files (64 are for knee \
         itself), \
                        and the limit is 263: raise the limit (ulimit -n 264), or ask for at most \
                        199";
        assert_eq!(refusal(263, 1, 200).as_deref(), Some(expected));
    }

    #[test]
    fn limit_within_the_reserve_leaves_nothing_to_ask_for() {
        for limit in [0, 20, 64] {
            let line = refusal(limit, 1, 200).unwrap();
            assert!(line.contains(&format!("the limit is {limit}: ")), "{line}");
            assert!(line.ends_with("(ulimit -n 264)"), "{line}");
        }
    }

    #[test]
    fn server_in_this_process_needs_as_many_again() {
        assert_eq!(refusal(464, 2, 200), None);
        assert!(refusal(463, 2, 200).is_some_and(|line| line.contains("need 464 open files")));
    }

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
