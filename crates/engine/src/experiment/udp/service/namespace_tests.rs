//! A trial from one network namespace to another, over a queue that drops.

use super::tests::{run, server, trial_of};
use crate::kernel::drops::Drops;
use crate::kernel::freed::{self, FreedPackets};
use knee_load::experiment::udp::{DropPlace, UdpTrial};
use knee_load::time::Nanos;
use std::net::{SocketAddr, UdpSocket};
use std::process::Command;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

/// The kernel's reasons are of all namespaces: only one test here may have datagrams dropped.
static DROPS: Mutex<()> = Mutex::new(());

/// Moves the calling thread, and what it starts, to a network namespace of its own.
fn enter_new_namespace() -> bool {
    // SAFETY: no pointers; it affects this thread alone.
    unsafe { libc::unshare(libc::CLONE_NEWNET) == 0 }
}

/// A command in the namespace of the calling thread.
fn shell(line: &str) -> bool {
    let mut words = line.split(' ');
    let mut command = Command::new(words.next().unwrap());
    command.args(words).output().is_ok_and(|out| out.status.success())
}

fn thread_id() -> i32 {
    // SAFETY: no pointers.
    unsafe { libc::gettid() }
}

#[test]
fn what_a_queue_drops_is_found_there() {
    let _alone = DROPS.lock().unwrap_or_else(PoisonError::into_inner);
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
        listening.send(server.as_ref().map(|s| s.address())).unwrap();
        let _ = end.recv();
    });
    let client = thread::spawn(move || {
        let peer = make.recv().unwrap().filter(|_| enter_new_namespace())?;
        let is_linked = shell(&format!("ip link add kneea type veth peer name kneeb netns {peer}"))
            && shell("ip addr add 10.99.7.1/24 dev kneea")
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
    // The sender sees what its own queue drops, so that is no loss on the way.
    let dropped = |trial: &UdpTrial| {
        let refused = trial.sent.send_errors.get("ENOBUFS").copied().unwrap_or(0);
        let received = trial.received.as_ref().expect("the service told");
        (refused, trial.sent.sent - received.received)
    };
    // Where the host stalls in that time, few are sent.
    let mut trials = (0..5).map(|_| run(&spec));
    let trial = trials.find(|trial| dropped(trial) != (0, 0));
    let trial = trial.expect("6,000 datagrams of 8,000 bits a second over 1 Mbit/s");
    let (refused, lost) = dropped(&trial);
    assert!(trial.service.same_host);
    // Where the kernel tells its reasons, it tells again of what the sender was told.
    let at = |place| -> u64 {
        let own = trial.drops.iter().filter(|c| !c.whole_kernel);
        own.filter(|c| c.place == place).map(|c| c.count).sum()
    };
    // The control connection passes the same queue and loses some segments to it too. They are far
    // fewer than the datagrams that the sender sees dropped.
    let queue = at(DropPlace::Qdisc);
    assert!(
        lost <= queue && queue <= lost + 10 + refused / 4,
        "{lost} lost, {refused} refused: {:?}",
        trial.drops
    );
    assert_eq!((at(DropPlace::Device), at(DropPlace::ReceiveBuffer)), (0, 0));
    let ledger = knee_core::experiment::udp::analysis::ledger(&trial);
    assert_eq!(ledger.unexplained, 0, "{ledger:?}");
    a_socket_that_is_not_told(address);
}

/// Where a socket does not ask for errors, what the queue drops counts as sent. The kernel counts
/// it under SndbufErrors: the same number by another way.
fn a_socket_that_is_not_told(address: SocketAddr) {
    let refused = || -> u64 {
        let snmp = std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
        let mut lines = snmp.lines().filter(|l| l.starts_with("Udp: "));
        let names = lines.next().unwrap().split(' ');
        let index = names.clone().position(|n| n == "SndbufErrors").unwrap();
        lines.next().unwrap().split(' ').nth(index).unwrap().parse().unwrap()
    };
    let (before, refused_before) = (Drops::now(), refused());
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    for _ in 0..100 {
        socket.send_to(&[0; 1_000], address).unwrap();
    }
    let (moved, refused) = (Drops::now().since(&before), refused() - refused_before);
    assert!(refused > 0);
    let counters = moved.counters(false);
    let told = counters.iter().find(|c| c.place == DropPlace::Qdisc).unwrap();
    assert_eq!((told.source.as_str(), told.count), ("qdisc tbf on kneea", refused));
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

fn lossy(address: SocketAddr) -> knee_load::experiment::udp::UdpTrialSpec {
    let mut spec = trial_of(address);
    spec.setup.rcvbuf = Some(4_096);
    spec.setup.work = Some(knee_load::law::Law::Fixed(Nanos::from_millis(1)));
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
fn ledger_of(address: SocketAddr) -> knee_core::trial::detail::LedgerReport {
    let trial = run(&trial_of(address));
    let ledger = knee_core::experiment::udp::analysis::ledger(&trial);
    assert_eq!(ledger.unexplained, 0, "{ledger:?} {:?}", trial.drops);
    ledger
}

#[test]
fn firewall_drops_are_found_by_counter_or_by_undelivered_count() {
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
        assert_eq!(ledger.lost["firewall"], 80, "{ledger:?}");
        let told = &ledger.evidence[0].source;
        assert!(told.starts_with("nft inet t in, rule "), "{told}");
        // Of one that does not count, it is known that IP had them.
        assert!(shell("nft flush chain inet t in"));
        assert!(shell(&format!("{rule} drop")), "{rule}");
        let ledger = ledger_of(server.address());
        assert_eq!(ledger.lost["ip_layer"], 80, "{ledger:?}");
        assert!(!ledger.evidence[0].inferred);
        // The sender sees what is dropped on its way out.
        assert!(shell("nft flush chain inet t in"));
        assert!(shell("nft add chain inet t out { type filter hook output priority 0 ; }"));
        let rule = format!("nft add rule inet t out udp dport {port} numgen inc mod 3 0");
        assert!(shell(&format!("{rule} counter drop")), "{rule}");
        let ledger = ledger_of(server.address());
        assert!(ledger.send_errors > 50, "{ledger:?}");
        assert_eq!(ledger.send_errors + ledger.received, 240);
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
        assert_eq!(ledger.lost["firewall"], 80, "{ledger:?}");
        let told = &ledger.evidence[0].source;
        assert_eq!(told, "iptables-legacy filter INPUT, rule 1");
        // The sender sees what is dropped on its way out.
        assert!(shell("iptables-legacy -F INPUT") && add("OUTPUT"));
        let ledger = ledger_of(server.address());
        assert!(ledger.send_errors > 50, "{ledger:?}");
        assert!(ledger.lost.is_empty(), "{ledger:?}");
    });
}

type Job = Box<dyn FnOnce() + Send>;

/// A thread in a network namespace and a mount namespace of its own, which does what it is given.
struct Place {
    jobs: mpsc::Sender<Job>,
    thread: i32,
}

impl Place {
    fn new() -> Option<Place> {
        let (jobs, given) = mpsc::channel::<Job>();
        let (told, tell) = mpsc::channel();
        thread::spawn(move || {
            // SAFETY: no pointers; it affects this thread alone.
            let mounts_apart = unsafe { libc::unshare(libc::CLONE_NEWNS) == 0 };
            let is_apart = mounts_apart && enter_new_namespace() && shell("ip link set lo up");
            told.send(is_apart.then(thread_id)).unwrap();
            given.iter().for_each(|job| job());
        });
        let thread = tell.recv().unwrap()?;
        Some(Place { jobs, thread })
    }

    fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, result) = mpsc::channel();
        let job = move || done.send(job()).unwrap();
        self.jobs.send(Box::new(job)).unwrap();
        result.recv().expect("what was to be done")
    }

    /// All of these commands.
    fn shell(&self, lines: Vec<String>) -> bool {
        self.run(move || lines.iter().all(|line| shell(line)))
    }
}

/// A client, a router and a service, each in a namespace of its own.
fn routed() -> Option<[Place; 3]> {
    let places = [Place::new()?, Place::new()?, Place::new()?];
    let [client, router, service] = &places;
    let ends = [(client, "kneeca", "kneecb", 5), (service, "kneesa", "kneesb", 6)];
    for (end, near, far, net) in ends {
        let is_linked = router.shell(vec![
            format!("ip link add {far} type veth peer name {near} netns {}", end.thread),
            format!("ip addr add 10.99.{net}.1/24 dev {far}"),
            format!("ip link set {far} up"),
            "sysctl -w net.ipv4.ip_forward=1".to_owned(),
        ]) && end.shell(vec![
            format!("ip addr add 10.99.{net}.2/24 dev {near}"),
            format!("ip link set {near} up"),
            format!("ip route add default via 10.99.{net}.1"),
        ]);
        if !is_linked {
            return None;
        }
    }
    Some(places)
}

/// Mounts what tells the kernel's reasons, for the thread's mount namespace alone.
fn watch_is_possible() -> bool {
    let (none, root) = (std::ptr::null(), c"/".as_ptr());
    let private = libc::MS_REC | libc::MS_PRIVATE;
    let (kind, at) = (c"tracefs".as_ptr(), c"/sys/kernel/tracing".as_ptr());
    // SAFETY: all texts end with a zero; what is not given is null, as mount(2) permits.
    unsafe {
        libc::mount(none, root, none, private, std::ptr::null());
        libc::mount(kind, at, kind, 0, std::ptr::null());
    }
    match FreedPackets::watch() {
        Ok(_) => true,
        Err(e) => {
            eprintln!("skipped: {}", freed::in_words(&e));
            false
        }
    }
}

/// A rule for every third of 240 datagrams.
fn every_third(chain: &str, port: u16, does: &str) -> Vec<String> {
    let hook = format!("{{ type filter hook {chain} priority 0 ; }}");
    vec![
        "nft add table ip t".to_owned(),
        "nft flush table ip t".to_owned(),
        format!("nft add chain ip t {chain} {hook}"),
        format!("nft add rule ip t {chain} udp dport {port} numgen inc mod 3 0 {does}"),
    ]
}

#[test]
fn drops_between_namespaces_have_the_kernels_reason() {
    let _alone = DROPS.lock().unwrap_or_else(PoisonError::into_inner);
    let Some([client, router, service]) = routed() else {
        eprintln!("skipped: network namespaces are not permitted here");
        return;
    };
    if !service.run(watch_is_possible) {
        return;
    }
    let server = service.run(|| {
        server(|spec| {
            spec.listen = "10.99.6.2:0".parse().unwrap();
            spec.token = "t".into();
        })
    });
    let address = server.address();
    let port = address.port();
    // The sender may be told of some in place of sending others (ICMP), so they are not 80 always.
    let told = move || {
        let mut spec = trial_of(address);
        spec.token = "t".into();
        let ledger = knee_core::experiment::udp::analysis::ledger(&run(&spec));
        assert_eq!(ledger.unexplained, 0, "{ledger:?}");
        let evidence = ledger.evidence.into_iter().filter(|e| e.attributed > 0);
        let told = evidence.inspect(|e| assert!(e.attributed > 64, "{e:?}"));
        let told = told.map(|e| format!("{}: {}", e.place, e.source));
        told.collect::<Vec<_>>()
    };
    assert_eq!(client.run(told), [""; 0], "nothing is in the way");
    let by = |place: &str, reason: &str| {
        [format!("{place}: skb:kfree_skb {reason} (all network namespaces)")]
    };
    if !router.shell(every_third("forward", port, "counter drop")) {
        eprintln!("skipped: nftables are not permitted here");
        return;
    }
    assert_eq!(client.run(told), by("firewall", "NETFILTER_DROP"));
    assert!(router.shell(vec!["nft flush table ip t".to_owned()]));
    // Where IP had them and the rule does not count, its reason is known all the same.
    assert!(service.shell(every_third("input", port, "drop")));
    assert_eq!(client.run(told), by("firewall", "NETFILTER_DROP"));
    // One that counts knows better.
    assert!(service.shell(every_third("input", port, "counter drop")));
    let told_by_rule = client.run(told);
    assert_eq!(told_by_rule.len(), 1, "{told_by_rule:?}");
    let rule = "firewall: nft ip t input, rule ";
    assert!(told_by_rule[0].starts_with(rule), "{told_by_rule:?}");
    assert!(service.shell(vec!["nft flush table ip t".to_owned()]));
    // What lives too short for the router.
    assert!(client.shell(every_third("output", port, "ip ttl set 1")));
    assert_eq!(client.run(told), by("ip_layer", "IP_INHDR"));
    // The sender sees what is dropped on its way out, and nothing is lost.
    assert!(client.shell(every_third("output", port, "drop")));
    assert_eq!(client.run(told), [""; 0]);
}
