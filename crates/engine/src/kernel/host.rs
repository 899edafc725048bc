//! Facts about this machine for the report, and its processor time.

use crate::sys::{clock, thread};
use knee_load::measure::Host;
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
