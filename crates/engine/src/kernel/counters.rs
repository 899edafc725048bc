//! The kernel's counters around a trial: what moved tells where trouble was.

use std::collections::BTreeMap;
use std::fs;

/// The counters of /proc/net/snmp and /proc/net/netstat that tell of trouble (their meaning:
/// Documentation/networking/snmp_counter.rst in the kernel's source). Those that only count traffic
/// are left out. They are of the whole network namespace, not of this process alone.
const TELLING: &[&str] = &[
    "TcpAttemptFails",
    "TcpEstabResets",
    "TcpRetransSegs",
    "TcpInErrs",
    "TcpOutRsts",
    "TcpExtListenOverflows",
    "TcpExtListenDrops",
    "TcpExtTCPBacklogDrop",
    "TcpExtTCPRcvQDrop",
    "TcpExtTCPReqQFullDoCookies",
    "TcpExtTCPReqQFullDrop",
    "TcpExtTCPTimeouts",
    "TcpExtTCPLossProbes",
    "TcpExtTCPSynRetrans",
    "TcpExtTCPAbortOnTimeout",
    "TcpExtTCPAbortOnMemory",
    "TcpExtTCPMemoryPressures",
    "TcpExtTCPTimeWaitOverflow",
    "TcpExtTCPZeroWindowDrop",
    "TcpExtTCPRcvCollapsed",
    "TcpExtPruneCalled",
    "UdpNoPorts",
    "UdpRcvbufErrors",
    "UdpSndbufErrors",
    "UdpInCsumErrors",
    "UdpMemErrors",
    "IpInDiscards",
    "IpOutDiscards",
    "IpReasmFails",
];

/// Values of the counters at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters(BTreeMap<String, i64>);

impl Counters {
    /// Reads those that tell of trouble now; empty where /proc is not there.
    pub(crate) fn now() -> Counters {
        Counters::of(TELLING)
    }

    /// Reads those of these names now; what the kernel does not count is left out.
    pub(crate) fn of(names: &[&str]) -> Counters {
        let mut counters = BTreeMap::new();
        for file in ["/proc/net/snmp", "/proc/net/netstat"] {
            let text = fs::read_to_string(file).unwrap_or_default();
            parse(&text, names, &mut counters);
        }
        Counters(counters)
    }

    /// One of them; 0 where the kernel does not count it.
    pub(crate) fn get(&self, name: &str) -> i64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// What moved since `earlier`, and by how much.
    pub(crate) fn moved_since(&self, earlier: &Counters) -> BTreeMap<String, i64> {
        let moved = self.0.iter().map(|(name, &value)| (name.clone(), value - earlier.get(name)));
        moved.filter(|&(_, delta)| delta != 0).collect()
    }
}

/// Pairs of lines, `Tcp: NameA NameB` and `Tcp: 1 2`.
fn parse(text: &str, wanted: &[&str], into: &mut BTreeMap<String, i64>) {
    let lines: Vec<&str> = text.lines().collect();
    for pair in lines.chunks_exact(2) {
        let (Some((group, names)), Some((_, values))) =
            (pair[0].split_once(':'), pair[1].split_once(':'))
        else {
            continue;
        };
        for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
            let name = format!("{group}{name}");
            if let (true, Ok(value)) = (wanted.contains(&name.as_str()), value.parse()) {
                into.insert(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_lines_become_names_and_only_what_moved_is_told() {
        let read = |text| {
            let mut counters = BTreeMap::new();
            parse(text, TELLING, &mut counters);
            Counters(counters)
        };
        let before = read("Tcp: InSegs RetransSegs OutRsts\nTcp: 5 10 3\n");
        let moved = read("Tcp: InSegs RetransSegs OutRsts\nTcp: 9 12 3\n").moved_since(&before);
        assert_eq!(moved, BTreeMap::from([("TcpRetransSegs".to_owned(), 2)]));
    }
}
