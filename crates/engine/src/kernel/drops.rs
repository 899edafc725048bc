//! Where a kernel says that it dropped datagrams: its counters before and after.

pub(crate) mod fragments;

use super::freed::Freed;
use super::{firewall, legacy, qdisc};
use crate::sys::{clock, netlink};
use fragments::IpFlow;
use knee_core::experiment::udp::measure::{DropCounter, DropPlace};
use knee_core::time::Nanos;
use std::collections::BTreeMap;
use std::fs;
use std::io;

/// What a counter counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// The network namespace of this process.
    Namespace,
    /// The whole machine, whatever the namespace.
    Machine,
    /// All that the kernel dropped for a reason, whichever other counter tells of it too.
    Kernel,
}

/// Names one counter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    place: DropPlace,
    scope: Scope,
    /// What told.
    source: String,
    /// The interface that it is of, where it is of one.
    interface: Option<String>,
}

/// All counters of dropped datagrams at one moment; those that cannot be read are left out.
///
/// Each drop counts once: InErrors of UDP holds RcvbufErrors, InCsumErrors and MemErrors already
/// and is not read; RcvbufErrors are only told apart where the socket's own count (SO_MEMINFO) is
/// not at hand; an interface's count of a full backlog is taken off where softnet's is read. What
/// IP received and gave to nobody has no counter, it is a difference: what other counters and the
/// rules of a firewall tell of it is taken off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Drops {
    counts: BTreeMap<Key, u64>,
    ip: IpFlow,
}

/// Names in /proc/net/snmp behind `Udp: `, and in snmp6 behind `Udp6`.
const UDP: [(&str, DropPlace); 4] = [
    ("RcvbufErrors", DropPlace::ReceiveBuffer),
    ("NoPorts", DropPlace::NoSocket),
    ("InCsumErrors", DropPlace::Checksum),
    ("MemErrors", DropPlace::UdpMemory),
];

/// Tables of neighbours, whose counters are in /proc/net/stat of the first network namespace.
const NEIGHBOURS: [&str; 2] = ["arp_cache", "ndisc_cache"];

/// What IP dropped and counted as such, in snmp behind `Ip: `, in netstat behind `IpExt: `, in
/// snmp6 behind `Ip6`. What begins with `Out` was to leave.
const IP: [&str; 8] = [
    "InHdrErrors",
    "InAddrErrors",
    "InUnknownProtos",
    "InDiscards",
    "InNoRoutes",
    "InTruncatedPkts",
    "OutDiscards",
    "OutNoRoutes",
];

/// In netstat behind `TcpExt: `: from an address to which another way leads back.
const REVERSE_PATH: &str = "IPReversePathFilter";

/// What IP received and gave to nobody, with no counter that tells why: a rule of a firewall that
/// does not count, for instance.
const UNDELIVERED: &str = "IP: received less delivered (a filter that does not count)";

/// Rules that act before IP counts what it receives.
const BEFORE_IP: [&str; 2] = ["nft netdev", "nft bridge"];

const SOFTNET: &str = "softnet_stat";

impl Drops {
    /// Reads them now, for the network namespace of the calling thread.
    pub(crate) fn now() -> Drops {
        let mut drops = Drops::default();
        let read = |name: &str| {
            fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default()
        };
        drops.add_snmp(&read("snmp"));
        drops.add_netstat(&read("netstat"));
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
            drops.add(
                DropPlace::Qdisc,
                Scope::Namespace,
                source,
                interface,
                drops_now,
            );
        }
        let rules = [firewall::now(), legacy::now()];
        for rule in rules.into_iter().flat_map(Result::unwrap_or_default) {
            let place = DropPlace::Firewall;
            drops.add(place, Scope::Namespace, rule.source, None, rule.packets);
        }
        drops
    }

    /// The same with the kernel's own reasons, where they are watched.
    pub(crate) fn now_with(freed: Option<&Freed>) -> Drops {
        let mut drops = Drops::now();
        for (place, reason, count) in freed.into_iter().flat_map(Freed::now) {
            let source = format!("skb:kfree_skb {reason} (all network namespaces)");
            drops.add(place, Scope::Kernel, source, None, count);
        }
        drops
    }

    /// What may count drops but cannot be read by this process, in words.
    pub(crate) fn not_read() -> Vec<String> {
        let rules = firewall::now().err().map(|e| match e.kind() {
            io::ErrorKind::PermissionDenied => "the rules of nftables (CAP_NET_ADMIN)".to_owned(),
            _ => format!("the rules of nftables ({e})"),
        });
        let old = legacy::now().err();
        let old = old.map(|e| format!("the rules of iptables-legacy ({e})"));
        rules.into_iter().chain(old).collect()
    }

    /// What moved since `earlier`.
    pub(crate) fn since(&self, earlier: &Drops) -> Drops {
        let moved = self.counts.iter().filter_map(|(key, &now)| {
            // A counter that was not there may have begun anywhere.
            let moved = now.saturating_sub(*earlier.counts.get(key)?);
            (moved > 0).then(|| (key.clone(), moved))
        });
        let moved = Drops {
            counts: moved.collect(),
            ip: self.ip.since(earlier.ip),
        };
        let undelivered = moved.ip.undelivered();
        moved.backlog_once().with_undelivered(undelivered)
    }

    /// Takes off what a quiet time saw, scaled from its length to this one's; rounded, and never
    /// below zero.
    pub(crate) fn without_quiet(mut self, quiet: &Drops, quiet_time: Nanos, time: Nanos) -> Drops {
        let scale = time.0 as f64 / quiet_time.0.max(1) as f64;
        for (key, count) in &mut self.counts {
            let usual = quiet.counts.get(key).copied().unwrap_or(0) as f64 * scale;
            *count = count.saturating_sub(usual.round() as u64);
        }
        self
    }

    /// Without those of interfaces that the datagrams do not pass: all but the loopback interface
    /// where `over_loopback`, otherwise that one.
    pub(crate) fn only_path(mut self, over_loopback: bool) -> Drops {
        let passes = |name: &str| (name == "lo") == over_loopback;
        self.counts
            .retain(|key, _| key.interface.as_deref().is_none_or(passes));
        self
    }

    /// Those of the network namespace alone.
    pub(crate) fn in_namespace(mut self) -> Drops {
        self.counts.retain(|key, _| key.scope == Scope::Namespace);
        self
    }

    /// All but those of the network namespace.
    pub(crate) fn of_machine(mut self) -> Drops {
        self.counts.retain(|key, _| key.scope != Scope::Namespace);
        self
    }

    /// How many drops at this place.
    pub(crate) fn at(&self, place: DropPlace) -> u64 {
        let here = self.counts.iter().filter(|(key, _)| key.place == place);
        here.map(|(_, &count)| count).sum()
    }

    /// Takes up to `count` drops of this place off, as another counter has told of them already;
    /// returns how many were there. What the kernel tells as a whole stays.
    pub(crate) fn take(&mut self, place: DropPlace, count: u64) -> u64 {
        let mut left = count;
        for (key, there) in &mut self.counts {
            if key.place == place && key.scope != Scope::Kernel {
                let taken = left.min(*there);
                *there -= taken;
                left -= taken;
            }
        }
        count - left
    }

    /// Without those that concern what a host receives: what is sent from it is not among them.
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

    /// Leaves those of this place out.
    pub(crate) fn forget(&mut self, place: DropPlace) {
        self.counts.retain(|key, _| key.place != place);
    }

    /// As the trial tells them: what is left above zero, all host-wide.
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

    /// A packet for which there is no room in the backlog counts twice in the kernel, for softnet
    /// and for its interface (enqueue_to_backlog in net/core/dev.c).
    fn backlog_once(mut self) -> Drops {
        let mut left = self.at(DropPlace::Backlog);
        for (key, there) in &mut self.counts {
            if key.source == RECEIVE_DROP {
                let taken = left.min(*there);
                *there -= taken;
                left -= taken;
            }
        }
        self
    }

    /// Of what IP gave to nobody the counters tell a part already. Rules that do not count are
    /// told by the kernel's reasons, where those are watched.
    fn with_undelivered(mut self, undelivered: u64) -> Drops {
        let sum = |tells: &dyn Fn(&Key) -> bool| -> u64 {
            let told = self.counts.iter().filter(|(key, _)| tells(key));
            told.map(|(_, &count)| count).sum()
        };
        let told = sum(&|key| match key.place {
            DropPlace::IpLayer => key.scope != Scope::Kernel && !key.source.contains(": Out"),
            DropPlace::Firewall => {
                let is_before = BEFORE_IP.iter().any(|b| key.source.starts_with(b));
                key.scope != Scope::Kernel && !is_before
            }
            _ => false,
        });
        let by_rules = |of_kernel: bool| {
            sum(&|key| {
                key.place == DropPlace::Firewall && (key.scope == Scope::Kernel) == of_kernel
            })
        };
        let by_reason = by_rules(true).saturating_sub(by_rules(false));
        let rest = undelivered.saturating_sub(told).saturating_sub(by_reason);
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
        let key = Key {
            place,
            scope,
            source,
            interface,
        };
        // Processors, or disciplines of one kind on one interface.
        let sum = self.counts.entry(key).or_default();
        *sum = sum.saturating_add(count);
    }

    /// Pairs of lines: `Udp: NameA NameB` and `Udp: 1 2`.
    fn add_snmp(&mut self, text: &str) {
        for (name, value) in pairs(text, "Udp: ") {
            self.add_udp("Udp: ", name, value);
        }
        for (name, value) in pairs(text, "Ip: ") {
            self.add_ip("Ip: ", name, value);
        }
        for (name, value) in pairs(text, "Icmp: ") {
            self.add_icmp("Icmp: ", name, value);
        }
    }

    /// The same, of extensions.
    fn add_netstat(&mut self, text: &str) {
        for (name, value) in pairs(text, "IpExt: ") {
            self.add_ip("IpExt: ", name, value);
        }
        for (name, value) in pairs(text, "TcpExt: ") {
            if name == REVERSE_PATH
                && let Ok(count) = value.parse()
            {
                self.add_at_ip(format!("TcpExt: {name}"), count);
            }
        }
    }

    /// Lines of a name and a value: `Udp6NoPorts 0`.
    fn add_snmp6(&mut self, text: &str) {
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let (Some(name), Some(value)) = (words.next(), words.next()) else {
                continue;
            };
            if let Some(name) = name.strip_prefix("Udp6") {
                self.add_udp("Udp6: ", name, value);
            } else if let Some(name) = name.strip_prefix("Ip6") {
                self.add_ip("Ip6: ", name, value);
            } else if let Some(name) = name.strip_prefix("Icmp6") {
                self.add_icmp("Icmp6: ", name, value);
            }
        }
    }

    fn add_udp(&mut self, prefix: &str, name: &str, value: &str) {
        let known = UDP.iter().find(|(known, _)| *known == name);
        if let (Some(&(name, place)), Ok(count)) = (known, value.parse()) {
            let source = format!("{prefix}{name}");
            self.add(place, Scope::Namespace, source, None, count);
        }
    }

    /// A router tells the sender of datagrams whose time to live ran out there.
    fn add_icmp(&mut self, prefix: &str, name: &str, value: &str) {
        if name == "InTimeExcds"
            && let Ok(count) = value.parse()
        {
            let (place, source) = (DropPlace::TimeToLive, format!("{prefix}{name}"));
            self.add(place, Scope::Namespace, source, None, count);
        }
    }

    fn add_ip(&mut self, prefix: &str, name: &str, value: &str) {
        let Ok(count) = value.parse::<u64>() else {
            return;
        };
        let flow = &mut self.ip;
        match name {
            "InReceives" => flow.received += count,
            "InDelivers" | "ForwDatagrams" | "OutForwDatagrams" => flow.given += count,
            "ReasmReqds" => flow.fragments += count,
            "ReasmOKs" => flow.reassembled += count,
            "FragOKs" => flow.fragmented += count,
            "FragCreates" => flow.created += count,
            "ReasmFails" => {
                let (place, source) = (DropPlace::Reassembly, format!("{prefix}{name}"));
                self.add(place, Scope::Namespace, source, None, count);
            }
            // Hosts that come up call routers and groups, which most let pass: no drop of ours.
            "InMcastPkts" if prefix == "Ip6: " => flow.given += count,
            _ if IP.contains(&name) => self.add_at_ip(format!("{prefix}{name}"), count),
            _ => {}
        }
    }

    fn add_at_ip(&mut self, source: String, count: u64) {
        self.add(DropPlace::IpLayer, Scope::Namespace, source, None, count);
    }

    /// A line for each processor; the second column, hexadecimal, is `dropped`.
    fn add_softnet(&mut self, text: &str) {
        for line in text.lines() {
            let dropped = line.split_whitespace().nth(1);
            let dropped = dropped.and_then(|d| u64::from_str_radix(d, 16).ok());
            if let Some(count) = dropped {
                let source = SOFTNET.to_owned();
                self.add(DropPlace::Backlog, Scope::Machine, source, None, count);
            }
        }
    }

    /// A header that names the columns, then a line for each processor, in hexadecimal.
    fn add_neighbours(&mut self, table: &str, text: &str) {
        let mut lines = text.lines();
        let header = lines.next().unwrap_or_default();
        let mut names = header.split_whitespace();
        let Some(column) = names.position(|name| name == "unresolved_discards") else {
            return;
        };
        for line in lines {
            let count = line.split_whitespace().nth(column);
            let count = count.and_then(|c| u64::from_str_radix(c, 16).ok());
            if let Some(count) = count {
                let source = format!("{table} unresolved_discards");
                self.add(
                    DropPlace::NeighbourQueue,
                    Scope::Machine,
                    source,
                    None,
                    count,
                );
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
                let count = columns.get(column).and_then(|c| c.parse().ok());
                if let Some(count) = count {
                    let (interface, source) = (name.trim().to_owned(), source.to_owned());
                    let (place, scope) = (DropPlace::Device, Scope::Namespace);
                    self.add(place, scope, source, Some(interface), count);
                }
            }
        }
    }
}

/// Names and values of two lines that begin so.
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
    pub(crate) fn now(freed: Option<&Freed>) -> DropReading {
        DropReading {
            drops: Drops::now_with(freed),
            at_ns: clock::monotonic_ns(),
        }
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
