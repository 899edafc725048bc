//! A trial from one network namespace to another, over a queue that drops.

use super::tests::{run, server, trial_of};
use crate::kernel::drops::Drops;
use knee_core::experiment::udp::measure::DropPlace;
use knee_core::time::Nanos;
use std::net::{SocketAddr, UdpSocket};
use std::process::Command;
use std::sync::mpsc;
use std::thread;

/// Moves the calling thread, and what it starts, to a network namespace of its own.
fn enter_new_namespace() -> bool {
    // SAFETY: no pointers; it affects this thread alone.
    unsafe { libc::unshare(libc::CLONE_NEWNET) == 0 }
}

/// A command in the namespace of the calling thread.
fn shell(line: &str) -> bool {
    let mut words = line.split(' ');
    let mut command = Command::new(words.next().unwrap());
    command
        .args(words)
        .output()
        .is_ok_and(|out| out.status.success())
}

fn thread_id() -> i32 {
    // SAFETY: no pointers.
    unsafe { libc::gettid() }
}

#[test]
fn what_a_queue_drops_is_found_there() {
    // The service's thread makes its namespace; this test's makes another and a link to it.
    let (made, make) = mpsc::channel();
    let (linked, link) = mpsc::channel::<()>();
    let (listening, listen) = mpsc::channel();
    let (over, end) = mpsc::channel::<()>();
    let service = thread::spawn(move || {
        made.send(enter_new_namespace().then(thread_id)).unwrap();
        if link.recv().is_err() {
            return;
        }
        shell("ip addr add 10.99.7.2/24 dev kneeb");
        let up = shell("ip link set kneeb up");
        let server = up.then(|| {
            server(|spec| {
                spec.listen = "10.99.7.2:0".parse().unwrap();
                spec.token = "t".into();
            })
        });
        listening
            .send(server.as_ref().map(|s| s.address()))
            .unwrap();
        let _ = end.recv();
    });
    let client = thread::spawn(move || {
        let peer = make.recv().unwrap().filter(|_| enter_new_namespace())?;
        let is_linked = shell(&format!(
            "ip link add kneea type veth peer name kneeb netns {peer}"
        )) && shell("ip addr add 10.99.7.1/24 dev kneea")
            && shell("ip link set kneea up")
            && shell("tc qdisc add dev kneea root tbf rate 1mbit burst 3000 limit 6000");
        if !is_linked {
            return None;
        }
        linked.send(()).unwrap();
        let address = listen.recv().unwrap()?;
        check(address);
        over.send(()).unwrap();
        Some(())
    });
    let done = client.join().unwrap();
    service.join().unwrap();
    if done.is_none() {
        eprintln!("skipped: network namespaces, veth or tbf are not permitted here");
    }
}

fn check(address: SocketAddr) {
    let mut spec = trial_of(address);
    spec.token = "t".into();
    (spec.size, spec.datagrams_max) = (1_000, None);
    spec.duration = Nanos::from_millis(200);
    let trial = run(&spec);
    let received = trial.received.expect("the service told");
    assert!(trial.service.same_host);
    // The sender is told of what its own queue drops, so that is no loss on the way.
    let refused = trial.sent.send_errors.get("ENOBUFS").copied().unwrap_or(0);
    let lost = trial.sent.sent - received.received;
    assert!(
        refused + lost > 0,
        "6,000 datagrams of 8,000 bits a second over 1 Mbit/s"
    );
    let at = |place| -> u64 {
        let here = trial.drops.iter().filter(|c| c.place == place);
        here.map(|c| c.count).sum()
    };
    // The control connection passes the same queue and loses some segments to it too: far fewer
    // than the datagrams of which the sender is told.
    let queue = at(DropPlace::Qdisc);
    assert!(
        lost <= queue && queue <= lost + 10 + refused / 4,
        "{lost} lost, {refused} refused: {:?}",
        trial.drops
    );
    assert_eq!(
        (at(DropPlace::Device), at(DropPlace::ReceiveBuffer)),
        (0, 0)
    );
    a_socket_that_is_not_told(address);
}

/// The kernel takes what its queue drops from a socket that does not ask for errors as sent, and
/// counts it under SndbufErrors: the same number by another way.
fn a_socket_that_is_not_told(address: SocketAddr) {
    let refused = || -> u64 {
        let snmp = std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
        let mut lines = snmp.lines().filter(|l| l.starts_with("Udp: "));
        let names = lines.next().unwrap().split(' ');
        let index = names.clone().position(|n| n == "SndbufErrors").unwrap();
        lines
            .next()
            .unwrap()
            .split(' ')
            .nth(index)
            .unwrap()
            .parse()
            .unwrap()
    };
    let (before, refused_before) = (Drops::now(), refused());
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    for _ in 0..100 {
        socket.send_to(&[0; 1_000], address).unwrap();
    }
    let (moved, refused) = (Drops::now().since(&before), refused() - refused_before);
    assert!(refused > 0);
    let counters = moved.counters(false);
    let told = counters
        .iter()
        .find(|c| c.place == DropPlace::Qdisc)
        .unwrap();
    assert_eq!(
        (told.source.as_str(), told.count),
        ("qdisc tbf on kneea", refused)
    );
    assert!(told.host_wide && !told.at_service);
}

/// A counter of UDP in the namespace of this thread.
fn udp_counter(name: &str) -> u64 {
    let snmp = std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
    let mut lines = snmp.lines().filter(|l| l.starts_with("Udp: "));
    let names = lines.next().unwrap().split(' ');
    let index = names.clone().position(|n| n == name).unwrap();
    let values = lines.next().unwrap();
    values.split(' ').nth(index).unwrap().parse().unwrap()
}

/// Runs `check` on a thread in a network namespace of its own whose loopback interface is up;
/// says so where that is not permitted.
fn alone(check: impl FnOnce() + Send + 'static) {
    let thread = thread::spawn(move || {
        let is_ready = enter_new_namespace() && shell("ip link set lo up");
        if is_ready {
            check();
        }
        is_ready
    });
    if !thread.join().unwrap() {
        eprintln!("skipped: network namespaces are not permitted here");
    }
}

fn lossy(address: SocketAddr) -> knee_core::experiment::udp::spec::UdpTrialSpec {
    let mut spec = trial_of(address);
    spec.setup.rcvbuf = Some(4_096);
    spec.setup.work = Some(knee_core::law::Law::Fixed(Nanos::from_millis(1)));
    spec
}

/// What measures how much the buffer holds must not count where the ledger does not.
#[test]
fn the_kernels_own_count_of_full_buffers_is_that_of_the_ledger() {
    alone(|| {
        let before = udp_counter("RcvbufErrors");
        let server = server(|spec| spec.rcvbuf = None);
        for _ in 0..2 {
            let trial = run(&lossy(server.address()));
            assert!(trial.service.buffer_datagrams.is_some_and(|n| n > 2));
            assert!(trial.received.expect("it told").socket_drops > 0);
        }
        let dropped = server.stop().drops;
        assert_eq!(udp_counter("RcvbufErrors") - before, dropped);
    });
}

/// The drops of a trial that are no full buffer, with its ledger.
fn ledger_of(address: SocketAddr) -> knee_core::trial::datagrams::LedgerReport {
    let trial = run(&trial_of(address));
    let ledger = knee_core::experiment::udp::analysis::ledger(&trial);
    assert_eq!(ledger.unexplained, 0, "{ledger:?} {:?}", trial.drops);
    ledger
}

#[test]
fn a_firewall_is_found_by_its_counter_or_else_by_what_ip_did_not_deliver() {
    alone(|| {
        let server = server(|_| {});
        let port = server.address().port();
        assert!(ledger_of(server.address()).lost.is_empty(), "no filter");
        if !shell("nft add table inet t")
            || !shell("nft add chain inet t in { type filter hook input priority 0 ; }")
        {
            eprintln!("skipped: nftables are not permitted here");
            return;
        }
        let rule = format!("nft add rule inet t in udp dport {port} numgen inc mod 3 0");
        assert!(shell(&format!("{rule} counter drop")), "{rule}");
        let ledger = ledger_of(server.address());
        assert_eq!(ledger.lost["firewall"], 100, "{ledger:?}");
        let told = &ledger.evidence[0].source;
        assert!(told.starts_with("nft inet t in, rule "), "{told}");
        // Of one that does not count, it is known that IP had them.
        assert!(shell("nft flush chain inet t in"));
        assert!(shell(&format!("{rule} drop")), "{rule}");
        let ledger = ledger_of(server.address());
        assert_eq!(ledger.lost["ip_layer"], 100, "{ledger:?}");
        assert!(!ledger.evidence[0].inferred);
        // Of what is dropped on its way out the sender is told.
        assert!(shell("nft flush chain inet t in"));
        assert!(shell(
            "nft add chain inet t out { type filter hook output priority 0 ; }"
        ));
        let rule = format!("nft add rule inet t out udp dport {port} numgen inc mod 3 0");
        assert!(shell(&format!("{rule} counter drop")), "{rule}");
        let ledger = ledger_of(server.address());
        assert!(ledger.send_errors > 50, "{ledger:?}");
        assert_eq!(ledger.send_errors + ledger.received, 300);
        assert!(ledger.lost.is_empty(), "{ledger:?}");
    });
}

#[test]
fn a_rule_of_iptables_legacy_is_found_by_its_counter() {
    alone(|| {
        let server = server(|_| {});
        let port = server.address().port();
        let every_third = "-m statistic --mode nth --every 3 --packet 0";
        let add = |chain: &str| {
            let rule = format!("{chain} -p udp --dport {port} {every_third} -j DROP");
            shell(&format!("iptables-legacy -A {rule}"))
        };
        if !add("INPUT") {
            eprintln!("skipped: iptables-legacy is not permitted here");
            return;
        }
        let ledger = ledger_of(server.address());
        assert_eq!(ledger.lost["firewall"], 100, "{ledger:?}");
        let told = &ledger.evidence[0].source;
        assert_eq!(told, "iptables-legacy filter INPUT, rule 1");
        // Of what is dropped on its way out the sender is told.
        assert!(shell("iptables-legacy -F INPUT") && add("OUTPUT"));
        let ledger = ledger_of(server.address());
        assert!(ledger.send_errors > 50, "{ledger:?}");
        assert!(ledger.lost.is_empty(), "{ledger:?}");
    });
}
