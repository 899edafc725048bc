//! A trial from one network namespace to another, over a queue that drops.

use super::tests::{run, server, trial_of};
use crate::kernel::drops::Drops;
use knee_core::measure::DropPlace;
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
