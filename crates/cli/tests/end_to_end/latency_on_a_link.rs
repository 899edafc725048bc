//! A link of 10 Mbit/s between two network namespaces, with a long queue and with a short one. It
//! needs rights that most users lack; without them it is skipped.

use crate::support::{Ended, FAR, KneeServer, Link, knee};
use serde_json::Value;

/// Flows with cubic through this queue, and pings beside them.
fn through(qdisc: &str, scenario: &str) -> Option<Value> {
    through_every(qdisc, scenario, "50ms")
}

/// The same with pings in such intervals.
fn through_every(qdisc: &str, scenario: &str, every: &str) -> Option<Value> {
    let link = Link::through(qdisc)?;
    let listen = format!("{FAR}:0");
    let options = ["latency", "--listen", &listen, "--token", "t"];
    let service = KneeServer::placed(&options, |command| link.there(command));
    let mut client = knee(&["latency", &service.address, "--token", "t", "--cc", "cubic"]);
    client.args(["--scenarios", scenario, "-d", "5s", "--idle", "500ms"]);
    client.args(["--probe-every", every, "--json", "-"]);
    link.here(&mut client);
    let ended = Ended::of(client.spawn().unwrap());
    assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
    Some(ended.json())
}

fn is_bloated(report: &Value) -> bool {
    let findings = report["findings"].as_array().unwrap();
    findings.iter().any(|f| f["code"] == "bloated")
}

fn responsiveness_hz(report: &Value) -> u64 {
    report["conclusion"]["responsiveness_hz"].as_u64().unwrap()
}

/// What 10 Mbit/s are, less the headers of TCP, IP and Ethernet (1,448 of 1,514 bytes), in KiB/s.
const PAYLOAD_KIB_PER_S: f64 = 10e6 / 8.0 / 1024.0 * 1448.0 / 1514.0;

/// The initial windows of 32 flows alone, ten segments each, take 390 ms in each direction. A
/// single flow does not fill the queue. Of a queue on its own host a socket gets two of its largest
/// buffers (TCP small queues), about 150 ms on this link.
#[test]
fn a_queue_of_a_second_bloats() {
    let Some(report) = through("tbf rate 10mbit burst 15000 latency 1s", "32/32") else {
        return;
    };
    let conclusion = &report["conclusion"];
    let trials = report["trials"].as_array().unwrap();
    let pings = &trials.last().unwrap()["flows"]["tcp"];
    assert!(responsiveness_hz(&report) <= 2, "{pings:#}");
    assert!(is_bloated(&report), "{:#}", report["findings"]);
    let row = &conclusion["scenarios"][0];
    for way in ["up_kib_per_s", "down_kib_per_s"] {
        let kib_per_s = row[way].as_f64().unwrap();
        assert!(kib_per_s <= PAYLOAD_KIB_PER_S * 1.02, "{kib_per_s} KiB/s through 10 Mbit/s");
    }
}

/// A ping that the full queue drops is sent again, which takes longer than any queue of this link.
/// In a run of five seconds that may happen, in each of six it does not.
#[test]
fn a_queue_of_20_ms_does_not() {
    let mut seen = Vec::new();
    for _ in 0..6 {
        let Some(report) = through("tbf rate 10mbit burst 15000 latency 20ms", "1/1") else {
            return;
        };
        assert!(!is_bloated(&report), "{:#}", report["findings"]);
        seen.push(responsiveness_hz(&report));
        if seen.last() >= Some(&15) {
            return;
        }
    }
    panic!("{seen:?} Hz");
}

/// The bottleneck's queue is on the sending host, of the pings and of their answers. TCP lets two
/// small segments of a connection wait in it and holds further ones back. These also measure how
/// long the earlier ones take.
#[test]
fn pings_measure_the_queue_and_not_each_other() {
    let qdisc = "tbf rate 10mbit burst 15000 latency 300ms";
    for scenario in ["4/0", "4/4"] {
        let Some(report) = through_every(qdisc, scenario, "10ms") else {
            return;
        };
        let trials = report["trials"].as_array().unwrap();
        let flows = &trials.last().unwrap()["flows"];
        let median = |kind: &str| flows[kind]["round_trip_ns"]["p50"].as_f64().unwrap();
        let (tcp, udp) = (median("tcp"), median("udp"));
        assert!(udp > 50e6, "{udp} ns: the queue is not full");
        // Pings are fewer while the queue is long, so that their median may be below.
        assert!(tcp < 1.25 * udp, "TCP {tcp} ns, UDP {udp} ns");
        let held_back = flows["tcp"]["held_back"].as_u64();
        assert!(held_back > Some(0), "{}", flows["tcp"]);
    }
}
