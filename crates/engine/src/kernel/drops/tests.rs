use super::fragments::Reassembly;
use super::*;
use crate::kernel::qdisc::{self, Qdisc};

/// What a dump said of two interfaces, the second with a tbf at its root that had dropped 38
/// packets (Linux 6.18).
const NOQUEUE: &str = "94000000240002000100000075570000000000000200000000000000ffffffff020000000c0\
    001006e6f71756575650005000c0000000000300007001400010000000000000000000000000000000000180003000\
    0000000000000000000000000000000000000002c00030000000000000000000000000000000000000000000000000\
    000000000000000000000000000000000";
const TBF: &str = "bc000000240002000100000075570000000000000300000000000180ffffffff030000000800010\
    0746266002c000200280001000001000000000000e80300000000000000000000000000004006000040787d0100000\
    00005000c00000000003000070014000100060600000000000007000000000000001800030006000000ac050000260\
    00000000000002c0000002c000300060600000000000007000000260000002c000000000000000000000006000000a\
    c05000000000000";

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let pairs = hexadecimal.as_bytes().chunks_exact(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    pairs.map(byte).collect()
}

/// Recorded on a little-endian machine.
#[cfg(target_endian = "little")]
#[test]
fn a_recorded_dump_of_qdiscs_is_read() {
    let dump = bytes(&[NOQUEUE, TBF].concat());
    let root = |interface, kind: &str, drops| Qdisc { interface, kind: kind.to_owned(), drops };
    assert_eq!(qdisc::parse(&dump), [root(2, "noqueue", 0), root(3, "tbf", 38)]);
    // The older statistics alone tell the same.
    let mut old = bytes(TBF);
    let stats2 = old.windows(4).position(|w| w == [0x30, 0, 7, 0]).unwrap();
    old[stats2 + 2] = 0x70;
    assert_eq!(qdisc::parse(&old), [root(3, "tbf", 38)]);
    // Below another discipline it does not count.
    let mut below = bytes(TBF);
    below[28..32].copy_from_slice(&0x1_0000_u32.to_ne_bytes());
    assert_eq!(qdisc::parse(&below), []);
    for cut in 0..dump.len() {
        assert!(qdisc::parse(&dump[..cut]).len() < 2, "{cut} bytes");
    }
    for at in 0..dump.len() {
        for byte in [0, 1, 0x7f, 0xff] {
            let mut wrong = dump.clone();
            wrong[at] = byte;
            assert!(qdisc::parse(&wrong).len() <= 2);
        }
    }
}

fn sample(step: u64) -> Drops {
    let mut drops = Drops::default();
    drops.add_snmp(&format!(
        "Ip: Forwarding InReceives ForwDatagrams InDiscards InDelivers OutNoRoutes ReasmReqds \
         ReasmOKs\nIp: 1 {} 0 {step} 100 {step} 6 3\nUdp: InDatagrams NoPorts InErrors \
         RcvbufErrors InCsumErrors \
         MemErrors\nUdp: 9 {step} {} {step} 0 {step}\nUdpLite: NoPorts\nUdpLite: 77\n",
        103 + 5 * step,
        3 * step
    ));
    drops.add_snmp(&format!(
        "TcpExt: Syncookies IPReversePathFilter\nTcpExt: 1 {step}\nIpExt: InNoRoutes\nIpExt: \
         {step}\n"
    ));
    let rule = |source: &str| (source.to_owned(), step);
    for (source, count) in [rule("nft netdev t in, rule 1"), rule("nft ip t in, rule 2")] {
        drops.add(DropPlace::Firewall, Scope::Namespace, source, None, count);
    }
    drops.add_snmp6(&format!("Udp6NoPorts \t 5\nUdp6InCsumErrors {step}\nUdpLite6NoPorts 8\n"));
    drops.add_softnet(&format!("0cca2a8b {step:08x} 00000001\n0cda1005 0000000a 00000002\n"));
    drops.add_neighbours(
        "arp_cache",
        &format!("entries  allocs unresolved_discards table_fulls\n2 2 {step:08x} 0\n2 0 1 0\n"),
    );
    drops.add_interfaces(&format!(
        "Inter-|   Receive  |  Transmit\n face |bytes packets errs\n    lo: 1 1 0 {} 0 0 0 0 1 1 0 \
         0 0 0 0 0\n  eth0: 1 1 {step} 0 0 0 0 0 1 1 0 {step} 0 0 0 0\n",
        2 * step
    ));
    drops
}

#[test]
fn every_place_is_told_once() {
    let moved = sample(20).since(&sample(0));
    let told: Vec<(DropPlace, String, u64)> = moved
        .clone()
        .counters(true)
        .into_iter()
        .inspect(|c| assert!(c.host_wide && c.at_service))
        .map(|c| (c.place, c.source, c.count))
        .collect();
    let expected = [
        (DropPlace::NeighbourQueue, "arp_cache unresolved_discards", 20),
        (DropPlace::Device, "receive drop on lo", 20),
        (DropPlace::Device, "receive errs on eth0", 20),
        (DropPlace::Device, "transmit drop on eth0", 20),
        (DropPlace::Backlog, "softnet_stat", 20),
        // 100 that IP gave to nobody: 20 of them by each of four counters.
        (DropPlace::IpLayer, UNDELIVERED, 20),
        (DropPlace::IpLayer, "Ip: InDiscards", 20),
        (DropPlace::IpLayer, "Ip: OutNoRoutes", 20),
        (DropPlace::IpLayer, "IpExt: InNoRoutes", 20),
        (DropPlace::IpLayer, "TcpExt: IPReversePathFilter", 20),
        (DropPlace::Firewall, "nft ip t in, rule 2", 20),
        (DropPlace::Firewall, "nft netdev t in, rule 1", 20),
        (DropPlace::NoSocket, "Udp: NoPorts", 20),
        (DropPlace::Checksum, "Udp6: InCsumErrors", 20),
        (DropPlace::ReceiveBuffer, "Udp: RcvbufErrors", 20),
        (DropPlace::UdpMemory, "Udp: MemErrors", 20),
    ];
    let mut expected = expected.map(|(place, source, n)| (place, source.to_owned(), n)).to_vec();
    let mut sorted = told.clone();
    sorted.sort();
    expected.sort();
    assert_eq!(sorted, expected);
    assert_eq!(moved.clone().of_machine().counters(false).len(), 2);
    let lo = moved.clone().only_path(true);
    assert_eq!((lo.at(DropPlace::Device), lo.at(DropPlace::NoSocket)), (20, 20));
    let sender = moved.clone().of_sender();
    assert_eq!(
        (sender.at(DropPlace::IpLayer), sender.at(DropPlace::Device)),
        (20, 60),
        "what it could not send"
    );
    assert_eq!(sender.at(DropPlace::Firewall), 0);
    assert_eq!(moved.only_path(false).at(DropPlace::Device), 40);
}

#[test]
fn what_moves_in_quiet_times_is_taken_off_to_scale() {
    let (quiet, time) = (Nanos::from_millis(100), Nanos::from_secs(1));
    let usual = sample(1).since(&sample(0));
    let moved = sample(25).since(&sample(0)).without_quiet(&usual, quiet, time);
    assert_eq!(moved.at(DropPlace::NoSocket), 15);
    let moved = sample(3).since(&sample(0)).without_quiet(&usual, quiet, time);
    assert_eq!(moved.at(DropPlace::NoSocket), 0);
    assert!(moved.counters(false).is_empty());
}

#[test]
fn drops_counted_twice_are_subtracted_without_underflow() {
    let mut moved = sample(20).since(&sample(0));
    assert_eq!(moved.take(DropPlace::ReceiveBuffer, 15), 15);
    assert_eq!(moved.take(DropPlace::ReceiveBuffer, 15), 5);
    moved.forget(DropPlace::ReceiveBuffer);
    assert_eq!(moved.at(DropPlace::ReceiveBuffer), 0);
    assert_eq!(sample(0).since(&sample(20)), Drops::default());
    let mut new = sample(20);
    new.add_neighbours("ndisc_cache", "unresolved_discards\n5\n");
    let moved = new.since(&sample(20));
    assert_eq!(moved, Drops::default(), "a counter that was not there tells nothing");
}

/// Drops that IP received and nobody got, drops that a rule counted, and drops with the kernel's
/// reason.
fn filtered(undelivered: u64, counted: u64, by_reason: u64) -> Drops {
    let mut drops = Drops::default();
    drops.add_snmp(&format!("Ip: InReceives InDelivers\nIp: {} 100\n", 100 + undelivered));
    let mut rule = |source: &str, scope, count| {
        drops.add(DropPlace::Firewall, scope, source.to_owned(), None, count);
    };
    rule("nft ip t in, rule 2", Scope::Namespace, counted);
    rule("NETFILTER_DROP", Scope::Kernel, by_reason);
    drops
}

#[test]
fn uncounted_rules_show_in_kernel_reasons_or_undelivered() {
    let moved = |undelivered, counted, by_reason| {
        let moved = filtered(undelivered, counted, by_reason).since(&filtered(0, 0, 0));
        let counters = moved.counters(true).into_iter();
        let told = counters.map(|c| (c.place, c.whole_kernel, c.count));
        told.collect::<Vec<_>>()
    };
    let (rule, kernel) = (DropPlace::Firewall, true);
    let rest = DropPlace::IpLayer;
    assert_eq!(moved(30, 0, 0), [(rest, false, 30)], "nobody tells");
    assert_eq!(moved(30, 0, 30), [(rule, kernel, 30)]);
    // What the rule counts the kernel tells again: it is not another's.
    assert_eq!(moved(30, 20, 20), [(rule, false, 20), (rule, kernel, 20), (rest, false, 10)]);
    assert_eq!(
        moved(30, 20, 30),
        [(rule, false, 20), (rule, kernel, 30)],
        "the ledger takes off what the rule tells"
    );
}

#[test]
fn kernel_reasons_belong_to_the_machine_and_stay_whole() {
    let mut moved = filtered(0, 5, 9).since(&filtered(0, 0, 0));
    assert_eq!(moved.take(DropPlace::Firewall, 9), 5);
    assert!(moved.clone().in_namespace().counters(true).is_empty());
    let counters = moved.of_machine().counters(true);
    assert_eq!((counters.len(), counters[0].count), (1, 9));
}

#[test]
fn rubbish_is_left_out() {
    let mut drops = Drops::default();
    for text in ["", "\n", "Udp: NoPorts\n", "Udp: NoPorts\nUdp: x\n", "zz zz zz\n", "a:b c:d"] {
        drops.add_snmp(text);
        drops.add_snmp6(text);
        drops.add_softnet(text);
        drops.add_neighbours("arp_cache", text);
        drops.add_interfaces(text);
    }
    assert_eq!(drops, Drops::default());
}

#[test]
fn this_machine_has_counters() {
    let now = Drops::now();
    assert!(!now.counts.is_empty());
    assert_eq!(Drops::default().since(&now), Drops::default());
}

#[test]
fn fragments_of_both_ends_are_counted() {
    let sample = |datagrams: u64| {
        let mut drops = Drops::default();
        drops.add_snmp(&format!(
            "Ip: InReceives InDelivers ReasmReqds ReasmOKs FragOKs FragCreates\n\
             Ip: {0} {1} {0} {1} {2} {3}\n",
            2 * datagrams,
            datagrams / 2,
            datagrams,
            3 * datagrams
        ));
        drops
    };
    let moved = sample(100).since(&sample(0));
    assert_eq!(moved.fragments_each(), 3);
    let expected = Reassembly { fragments: 200, reassembled: 50 };
    assert_eq!(moved.reassembly(), expected);
    assert_eq!(moved.at(DropPlace::IpLayer), 0);
    assert_eq!(Drops::default().fragments_each(), 1, "none was sent so");
}

#[test]
fn time_to_live_and_reassembly_have_their_own_place() {
    let sample = |moved: u64| {
        let mut drops = Drops::default();
        drops.add_snmp(&format!(
            "Ip: InReceives InDelivers ReasmReqds ReasmOKs ReasmFails\n\
             Ip: {0} {0} 0 0 {moved}\nIcmp: InMsgs InTimeExcds\nIcmp: {moved} {moved}\n",
            2 * moved
        ));
        drops.add_snmp6(&format!("Icmp6InTimeExcds {moved}\n"));
        drops
    };
    let moved = sample(7).since(&sample(0));
    assert_eq!(moved.at(DropPlace::TimeToLive), 14);
    assert_eq!(moved.at(DropPlace::Reassembly), 7);
    assert_eq!(moved.at(DropPlace::IpLayer), 0);
    let sender = moved.of_sender();
    assert_eq!(sender.at(DropPlace::TimeToLive), 14, "its sender is told");
    assert_eq!(sender.at(DropPlace::Reassembly), 0);
}
