use super::*;
use crate::control::Lines;
use std::net::{TcpListener, TcpStream};

const MS: fn(u64) -> Nanos = Nanos::from_millis;

/// One ping that took 1 ms, and 19 that could not leave.
fn measured() -> ProbesMeasured {
    let round_trip = MS(1);
    let back = ProbeBack { round_trip, up: Nanos::ZERO, down: Nanos::ZERO };
    ProbesMeasured {
        sent: 1,
        held_back: 19,
        longest: round_trip,
        probes: vec![Probe {
            intended: Nanos::ZERO,
            sent: Nanos::ZERO,
            back: Some(back),
            waited: Nanos::ZERO,
        }],
        ..ProbesMeasured::default()
    }
}

#[test]
fn pings_held_back_to_the_end_count_as_a_lost_ping() {
    let mut tcp = measured();
    add_held(&mut tcp, MS(50), [MS(50), MS(1_000)]);
    assert_eq!((tcp.sent, tcp.held_back, tcp.longest), (2, 18, MS(950)));
    let last = tcp.probes[1];
    assert_eq!((last.sent, last.back, last.waited), (MS(50), None, MS(950)));
}

#[test]
fn short_or_passed_waits_add_no_lost_ping() {
    for (longest, since) in [(MS(1_300), MS(50)), (MS(1), MS(850))] {
        let mut tcp = ProbesMeasured { longest, ..measured() };
        add_held(&mut tcp, MS(50), [since, MS(1_000)]);
        assert_eq!((tcp.sent, tcp.held_back), (1, 19));
    }
}

/// A pinger with a ping due every 10 ms from `origin_ns`, and the service's end.
fn state(origin_ns: u64) -> (PingerState, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let stream = TcpStream::connect(address).expect("a connection");
    stream.set_nonblocking(true).expect("a socket");
    let (service, _) = listener.accept().expect("a connection");
    let lines = Lines::new(RECORD_MAX);
    let client = ControlClient { stream, lines, service: address.to_string(), address };
    let pinger = Pinger {
        pinger_control: PingerControl::new(u64::MAX).expect("a descriptor"),
        events: std::sync::mpsc::channel().0,
        client,
        udp: None,
        session: 1,
        origin_ns,
        ahead_ns: 0,
        probes: ProbeSpec { every: MS(10), udp: false, timeout: MS(1_000) },
    };
    (PingerState::new(pinger), service)
}

#[test]
fn a_late_pinger_stalled_and_sends_one_ping() {
    let origin_ns = clock::monotonic_ns() - MS(400).0;
    let (mut state, _service) = state(origin_ns);
    state.send(origin_ns + MS(400).0);
    state.send(origin_ns + MS(401).0);
    let tcp = &state.tcp.measured;
    assert_eq!((tcp.sent, tcp.held_back, tcp.stall_max), (1, 0, MS(400)));
    assert_eq!(tcp.probes[0].intended, MS(400), "a round trip does not include the stall");
}

#[test]
fn pings_held_back_in_time_are_no_stall() {
    let origin_ns = clock::monotonic_ns();
    let (mut state, _service) = state(origin_ns);
    // Fill the socket, so that no ping can leave.
    while state.pinger.client.stream.write(&[b'\n'; 64 << 10]).is_ok() {}
    (0..40).for_each(|n| state.send(origin_ns + n * MS(10).0));
    let tcp = &state.tcp.measured;
    assert!(tcp.held_back > 30, "{}", tcp.held_back);
    assert_eq!(tcp.stall_max, Nanos::ZERO);
}
