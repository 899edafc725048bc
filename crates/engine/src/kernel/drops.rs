//! Counters of datagrams that the kernel drops, by place.

pub(crate) mod fragments;

use super::freed::FreedPackets;
use super::{firewall, legacy, qdisc};
use crate::sys::{clock, netlink};
use fragments::IpFlow;
use knee_load::experiment::udp::{DropCounter, DropPlace};
use knee_load::time::Nanos;
use std::collections::BTreeMap;
use std::{fs, io};

/// What a counter covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// The network namespace of this process.
    Namespace,
    /// The whole machine, in all namespaces.
    Machine,
    /// Every drop of the kernel for one reason, even if another counter has it too.
    Kernel,
}

/// Identity of a counter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    place: DropPlace,
    scope: Scope,
    /// The source of the count.
    source: String,
    /// The interface, for counters of one.
    interface: Option<String>,
}

/// Counters of dropped datagrams at one time, without those that cannot be read.
///
/// Each drop counts once. InErrors of UDP includes RcvbufErrors, InCsumErrors and MemErrors and is
/// not read. RcvbufErrors are only used without the socket's own count (SO_MEMINFO). Where softnet
/// counts a full backlog, an interface's count of it is subtracted. Packets that IP received and
/// did not deliver have no counter: they are a difference, less what other counters and firewall
/// rules explain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Drops {
    counts: BTreeMap<Key, u64>,
    ip: IpFlow,
}

/// Counters in group `Udp: ` of /proc/net/snmp, and with prefix `Udp6` in snmp6.
const UDP: &[(&str, DropPlace)] = &[
    ("RcvbufErrors", DropPlace::ReceiveBuffer),
    ("NoPorts", DropPlace::NoSocket),
    ("InCsumErrors", DropPlace::Checksum),
    ("MemErrors", DropPlace::UdpMemory),
];

/// Neighbour tables, with counters in /proc/net/stat of the first network namespace.
const NEIGHBOURS: &[&str] = &["arp_cache", "ndisc_cache"];

/// Drops counted by IP: `Ip: ` in snmp, `IpExt: ` in netstat, prefix `Ip6` in snmp6. Names with
/// `Out` are of outgoing packets.
const IP: &[&str] = &[
    "InHdrErrors",
    "InAddrErrors",
    "InUnknownProtos",
    "InDiscards",
    "InNoRoutes",
    "InTruncatedPkts",
    "OutDiscards",
    "OutNoRoutes",
];

/// In `TcpExt: ` of netstat: packets whose source address is reached by another way.
const REVERSE_PATH: &str = "IPReversePathFilter";

/// Packets that IP received and did not deliver, without a counter that explains it: a firewall
/// rule that does not count, for example.
const UNDELIVERED: &str = "IP: received less delivered (a filter that does not count)";

/// Rules that act before IP counts received packets.
const BEFORE_IP: &[&str] = &["nft netdev", "nft bridge"];

const SOFTNET: &str = "softnet_stat";

impl Drops {
    /// Reads the counters, for the network namespace of the calling thread.
    pub(crate) fn now() -> Drops {
        let mut drops = Drops::default();
        let read = |name: &str| {
            fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default()
        };
        drops.add_snmp(&read("snmp"));
        drops.add_snmp(&read("netstat"));
        drops.add_snmp6(&read("snmp6"));
        drops.add_softnet(&read(SOFTNET));
        drops.add_interfaces(&read("dev"));
        for table in NEIGHBOURS {
            drops.add_neighbours(table, &read(&format!("stat/{table}")));
        }
        for root in qdisc::now().unwrap_or_default() {
            let interface = netlink::interface_name(root.interface);
            let source = format!("qdisc {}", root.kind);
            let drops_now = u64::from(root.drops);
            drops.add(DropPlace::Qdisc, Scope::Namespace, source, interface, drops_now);
        }
        let rules = [firewall::now(), legacy::now()];
        for rule in rules.into_iter().flat_map(Result::unwrap_or_default) {
            let place = DropPlace::Firewall;
            drops.add(place, Scope::Namespace, rule.source, None, rule.packets);
        }
        drops
    }

    /// Reads the counters and, if watched, the kernel's own reasons.
    fn now_with(freed: Option<&FreedPackets>) -> Drops {
        let mut drops = Drops::now();
        for (place, reason, count) in freed.into_iter().flat_map(FreedPackets::now) {
            let source = format!("skb:kfree_skb {reason} (all network namespaces)");
            drops.add(place, Scope::Kernel, source, None, count);
        }
        drops
    }

    /// Sources of drops that this process cannot read, in words.
    pub(crate) fn not_read() -> Vec<String> {
        let rules = firewall::now().err().map(|e| match e.kind() {
            io::ErrorKind::PermissionDenied => "the rules of nftables (CAP_NET_ADMIN)".to_owned(),
            _ => format!("the rules of nftables ({e})"),
        });
        let old = legacy::now().err();
        let old = old.map(|e| format!("the rules of iptables-legacy ({e})"));
        rules.into_iter().chain(old).collect()
    }

    /// Changes since `earlier`.
    pub(crate) fn since(&self, earlier: &Drops) -> Drops {
        let moved = self.counts.iter().filter_map(|(key, &now)| {
            // A counter that was not there may have begun anywhere.
            let moved = now.saturating_sub(*earlier.counts.get(key)?);
            (moved > 0).then(|| (key.clone(), moved))
        });
        let moved = Drops { counts: moved.collect(), ip: self.ip.since(earlier.ip) };
        let undelivered = moved.ip.undelivered();
        moved.backlog_once().with_undelivered(undelivered)
    }

    /// Subtracts the drops of a quiet time, scaled to this one's length. Rounded, never below zero.
    pub(crate) fn without_quiet(mut self, quiet: &Drops, quiet_time: Nanos, time: Nanos) -> Drops {
        let scale = time.0 as f64 / quiet_time.0.max(1) as f64;
        for (key, count) in &mut self.counts {
            let usual = quiet.counts.get(key).copied().unwrap_or(0) as f64 * scale;
            *count = count.saturating_sub(usual.round() as u64);
        }
        self
    }

    /// Keeps counters of interfaces on the path: the loopback interface alone if `over_loopback`,
    /// otherwise all others.
    pub(crate) fn only_path(mut self, over_loopback: bool) -> Drops {
        let passes = |name: &str| (name == "lo") == over_loopback;
        self.counts.retain(|key, _| key.interface.as_deref().is_none_or(passes));
        self
    }

    /// Keeps counters of the network namespace.
    pub(crate) fn in_namespace(mut self) -> Drops {
        self.counts.retain(|key, _| key.scope == Scope::Namespace);
        self
    }

    /// Keeps all other counters.
    pub(crate) fn of_machine(mut self) -> Drops {
        self.counts.retain(|key, _| key.scope != Scope::Namespace);
        self
    }

    /// Drops at a place.
    pub(crate) fn at(&self, place: DropPlace) -> u64 {
        self.sum(|key| key.place == place)
    }

    fn sum(&self, is_such: impl Fn(&Key) -> bool) -> u64 {
        self.counts.iter().filter(|(key, _)| is_such(key)).map(|(_, &count)| count).sum()
    }

    /// Subtracts up to `count` drops of a place that another counter has too. Returns the number
    /// subtracted. Reasons of the kernel stay.
    pub(crate) fn take(&mut self, place: DropPlace, count: u64) -> u64 {
        self.subtract(count, |key| key.place == place && key.scope != Scope::Kernel)
    }

    /// Subtracts up to `count` from such counters. Returns the number subtracted.
    fn subtract(&mut self, count: u64, is_such: impl Fn(&Key) -> bool) -> u64 {
        let mut left = count;
        for (_, there) in self.counts.iter_mut().filter(|(key, _)| is_such(key)) {
            let taken = left.min(*there);
            *there -= taken;
            left -= taken;
        }
        count - left
    }

    /// Keeps drops that a sender can cause on its own host.
    pub(crate) fn of_sender(mut self) -> Drops {
        let receives = [
            DropPlace::Firewall,
            DropPlace::Reassembly,
            DropPlace::NoSocket,
            DropPlace::Checksum,
            DropPlace::ReceiveBuffer,
            DropPlace::UdpMemory,
        ];
        self.counts.retain(|key, _| match key.place {
            DropPlace::IpLayer => key.source.contains(": Out"),
            place => !receives.contains(&place),
        });
        self
    }

    /// Removes the counters of a place.
    pub(crate) fn forget(&mut self, place: DropPlace) {
        self.counts.retain(|key, _| key.place != place);
    }

    /// Counters above zero, for the trial.
    pub(crate) fn counters(self, at_service: bool) -> Vec<DropCounter> {
        let counters = self.counts.into_iter().filter(|&(_, count)| count > 0);
        counters
            .map(|(key, count)| DropCounter {
                place: key.place,
                count,
                source: match key.interface {
                    Some(interface) => format!("{} on {interface}", key.source),
                    None => key.source,
                },
                host_wide: true,
                whole_kernel: key.scope == Scope::Kernel,
                at_service,
            })
            .collect()
    }

    /// Counts a full backlog once: the kernel counts it for softnet and for the interface
    /// (enqueue_to_backlog in net/core/dev.c).
    fn backlog_once(mut self) -> Drops {
        let backlog = self.at(DropPlace::Backlog);
        self.subtract(backlog, |key| key.source == RECEIVE_DROP);
        self
    }

    /// Adds undelivered packets of IP that no other counter explains. Rules that do not count are
    /// known by the kernel's reasons, if watched.
    fn with_undelivered(mut self, undelivered: u64) -> Drops {
        let counted = self.sum(|key| match key.place {
            DropPlace::IpLayer => key.scope != Scope::Kernel && !key.source.contains(": Out"),
            DropPlace::Firewall => {
                let is_before = BEFORE_IP.iter().any(|b| key.source.starts_with(b));
                key.scope != Scope::Kernel && !is_before
            }
            _ => false,
        });
        let by_rules = |of_kernel: bool| {
            self.sum(|key| {
                key.place == DropPlace::Firewall && (key.scope == Scope::Kernel) == of_kernel
            })
        };
        let by_reason = by_rules(true).saturating_sub(by_rules(false));
        let rest = undelivered.saturating_sub(counted).saturating_sub(by_reason);
        if rest > 0 {
            let (place, scope) = (DropPlace::IpLayer, Scope::Namespace);
            self.add(place, scope, UNDELIVERED.to_owned(), None, rest);
        }
        self
    }

    fn add(
        &mut self,
        place: DropPlace,
        scope: Scope,
        source: String,
        interface: Option<String>,
        count: u64,
    ) {
        let key = Key { place, scope, source, interface };
        // Processors, or disciplines of one kind on one interface.
        let sum = self.counts.entry(key).or_default();
        *sum = sum.saturating_add(count);
    }

    /// Adds the counters of /proc/net/snmp or netstat: a line of names and one of values for each
    /// group.
    fn add_snmp(&mut self, text: &str) {
        for group in ["Udp: ", "Ip: ", "Icmp: ", "IpExt: ", "TcpExt: "] {
            for (name, value) in pairs(text, group) {
                self.add_of_group(group, name, value);
            }
        }
    }

    /// Adds the counters of /proc/net/snmp6: a name and a value per line.
    fn add_snmp6(&mut self, text: &str) {
        for line in text.lines() {
            let Some((name, value)) = line.split_once(char::is_whitespace) else {
                continue;
            };
            for group in ["Udp6: ", "Ip6: ", "Icmp6: "] {
                if let Some(name) = name.strip_prefix(group.trim_end_matches(": ")) {
                    self.add_of_group(group, name, value.trim());
                }
            }
        }
    }

    fn add_of_group(&mut self, group: &str, name: &str, value: &str) {
        let Ok(count) = value.parse::<u64>() else {
            return;
        };
        if group.starts_with("Ip") {
            self.ip.add(group, name, count);
        }
        if let Some(place) = place_of(group, name) {
            self.add(place, Scope::Namespace, format!("{group}{name}"), None, count);
        }
    }

    /// A line for each processor; the second column, hexadecimal, is `dropped`.
    fn add_softnet(&mut self, text: &str) {
        for line in text.lines() {
            let dropped = line.split_whitespace().nth(1);
            if let Some(count) = dropped.and_then(|d| u64::from_str_radix(d, 16).ok()) {
                let source = SOFTNET.to_owned();
                self.add(DropPlace::Backlog, Scope::Machine, source, None, count);
            }
        }
    }

    /// A header that names the columns, then a line for each processor, in hexadecimal.
    fn add_neighbours(&mut self, table: &str, text: &str) {
        let mut lines = text.lines();
        let mut names = lines.next().unwrap_or_default().split_whitespace();
        let Some(column) = names.position(|name| name == "unresolved_discards") else {
            return;
        };
        for line in lines {
            let count = line.split_whitespace().nth(column);
            if let Some(count) = count.and_then(|c| u64::from_str_radix(c, 16).ok()) {
                let source = format!("{table} unresolved_discards");
                self.add(DropPlace::NeighbourQueue, Scope::Machine, source, None, count);
            }
        }
    }

    /// /proc/net/dev, which unlike /sys/class/net is of this thread's network namespace wherever
    /// /sys was mounted. Behind `name:` come bytes, packets, errs, drop, … of what was received
    /// (drop: rx_dropped and rx_missed_errors), then eight columns later of what was sent.
    fn add_interfaces(&mut self, text: &str) {
        for line in text.lines() {
            let Some((name, columns)) = line.split_once(':') else {
                continue;
            };
            let columns: Vec<&str> = columns.split_whitespace().collect();
            let columns_told = [
                (2, "receive errs"),
                (3, RECEIVE_DROP),
                (10, "transmit errs"),
                (11, "transmit drop"),
            ];
            for (column, source) in columns_told {
                if let Some(count) = columns.get(column).and_then(|c| c.parse().ok()) {
                    let (interface, source) = (name.trim().to_owned(), source.to_owned());
                    let (place, scope) = (DropPlace::Device, Scope::Namespace);
                    self.add(place, scope, source, Some(interface), count);
                }
            }
        }
    }
}

/// The place of drops that a counter of IP, UDP or ICMP counts; `None` for other counters.
fn place_of(group: &str, name: &str) -> Option<DropPlace> {
    match group {
        "Udp: " | "Udp6: " => UDP.iter().find(|(known, _)| *known == name).map(|of| of.1),
        "Icmp: " | "Icmp6: " => (name == "InTimeExcds").then_some(DropPlace::TimeToLive),
        "TcpExt: " => (name == REVERSE_PATH).then_some(DropPlace::IpLayer),
        _ if name == "ReasmFails" => Some(DropPlace::Reassembly),
        _ => IP.contains(&name).then_some(DropPlace::IpLayer),
    }
}

/// Names and values of the two lines with this prefix.
fn pairs<'a>(text: &'a str, prefix: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let mut lines = text.lines().filter_map(|l| l.strip_prefix(prefix));
    let names = lines.next().unwrap_or_default();
    let values = lines.next().unwrap_or_default();
    names.split_whitespace().zip(values.split_whitespace())
}

const RECEIVE_DROP: &str = "receive drop";

/// Drop counters and the time at which they were read.
pub(crate) struct DropReading {
    drops: Drops,
    at_ns: u64,
}

impl DropReading {
    /// Reads them now. `freed`: the kernel's reasons for drops, where they are watched.
    pub(crate) fn now(freed: Option<&FreedPackets>) -> DropReading {
        DropReading { drops: Drops::now_with(freed), at_ns: clock::monotonic_ns() }
    }

    /// Drops since `begun`, less what is usual by the time from `quiet` to `begun`.
    pub(crate) fn moved_since(self, begun: &DropReading, quiet: &DropReading) -> Drops {
        let usual = begun.drops.since(&quiet.drops);
        let quiet_time = Nanos(begun.at_ns - quiet.at_ns);
        let moved = self.drops.since(&begun.drops);
        moved.without_quiet(&usual, quiet_time, Nanos(self.at_ns - begun.at_ns))
    }
}

#[cfg(test)]
mod tests;
