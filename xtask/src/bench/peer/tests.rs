use super::*;

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-6 * b.abs().max(1.0)
}

#[test]
fn wrk_is_read() {
    let sample = Peer::Wrk.parse(include_str!("../samples/wrk.txt")).unwrap();
    assert_eq!(
        (sample.requests, sample.seconds, sample.errors),
        (414_449.0, 1.0, 0.0)
    );
    let with = "  7 requests in 1.50m, 1.00KB read\n  Socket errors: connect 1, read 2, write 0, \
                timeout 3\n  Non-2xx or 3xx responses: 4\n     50%   10.00us\n     90%    1.50ms\n\
                \x20    99%    2.00s \n";
    let sample = Peer::Wrk.parse(with).unwrap();
    assert_eq!(
        (sample.requests, sample.seconds, sample.errors),
        (7.0, 90.0, 10.0)
    );
    let response = sample.response.unwrap();
    assert_eq!(
        (response.p50_us, response.p90_us, response.p99_us),
        (10.0, 1_500.0, 2e6)
    );
    assert!(Peer::Wrk.parse("unable to connect").is_err());
}

#[test]
fn ab_is_read() {
    let sample = Peer::Ab.parse(include_str!("../samples/ab.txt")).unwrap();
    assert_eq!(
        (sample.requests, sample.seconds, sample.errors),
        (323_245.0, 1.0, 0.0)
    );
    assert!(
        Peer::Ab
            .parse("apr_socket_recv: Connection refused (111)")
            .is_err()
    );
}

#[test]
fn h2load_is_read() {
    let sample = Peer::H2load
        .parse(include_str!("../samples/h2load.txt"))
        .unwrap();
    assert_eq!(
        (sample.requests, sample.seconds, sample.errors),
        (258_503.0, 1.0, 0.0)
    );
    assert!(Peer::H2load.parse("").is_err());
}

#[test]
fn bombardier_is_read() {
    let out = r#"{"spec": {"numberOfConnections": 64}, "result": {"bytesRead": 10,
        "timeTakenSeconds": 1.5, "req1xx": 0, "req2xx": 7, "req3xx": 0, "req4xx": 1, "req5xx": 2,
        "others": 3, "latency": {"mean": 864.8, "stddev": 448.8, "max": 16592}}}"#;
    let sample = Peer::Bombardier.parse(out).unwrap();
    assert_eq!(
        (sample.requests, sample.seconds, sample.errors),
        (7.0, 1.5, 6.0)
    );
    assert!(Peer::Bombardier.parse("{}").is_err());
}

#[test]
fn oha_is_read() {
    let out = r#"{"summary": {"total": 2.0, "average": 0.0001, "requestsPerSec": 3.5},
        "latencyPercentiles": {"p50": 0.0001, "p90": 0.0002, "p99": 0.003},
        "statusCodeDistribution": {"200": 7},
        "errorDistribution": {"aborted due to deadline": 2, "refused": 1}}"#;
    let sample = Peer::Oha.parse(out).unwrap();
    assert_eq!(
        (sample.requests, sample.seconds, sample.errors),
        (7.0, 2.0, 1.0)
    );
    assert!(near(sample.response.unwrap().p99_us, 3_000.0));
}

#[test]
fn bare_loops_are_read() {
    let closed = r#"{"requests":10,"seconds":2.5,"cpu_user_s":0.1,"cpu_system_s":0.2}"#;
    let sample = Peer::BareEpoll.parse(closed).unwrap();
    assert_eq!(
        (sample.requests, sample.seconds, sample.response),
        (10.0, 2.5, None)
    );
    let open = r#"{"requests":10,"seconds":1,"response_p50_us":1,"response_p90_us":2,
        "response_p99_us":3}"#;
    assert_eq!(
        Peer::BareSpin.parse(open).unwrap().response.unwrap().p99_us,
        3.0
    );
}

#[test]
fn knee_is_read() {
    let out = r#"{"verdict": "invalid", "trials": [{"attempted": 12, "completed": 11,
        "duration_ns": 2000000000, "outcomes": {"ok": 10, "in_flight": 1},
        "generator": {"peak_rss_bytes": 4096},
        "response_time_ns": {"mean": 1000, "p50": 2000, "p90": 3000, "p99": 4000}}]}"#;
    let sample = Peer::KneeEpoll.parse(out).unwrap();
    assert_eq!(
        (sample.requests, sample.seconds, sample.errors),
        (11.0, 2.0, 1.0)
    );
    assert_eq!(
        (sample.valid, sample.peak_rss_bytes),
        (Some(false), Some(4096.0))
    );
    assert_eq!(sample.response.unwrap().mean_us, Some(1.0));
    assert!(Peer::KneeEpoll.parse(r#"{"trials": []}"#).is_err());
}

#[test]
fn a_load_becomes_a_command_line_or_nothing() {
    let closed = Load {
        port: 80,
        connections: 64,
        seconds: 0.3,
        rate: None,
    };
    let open = Load {
        rate: Some(Rate::Constant(1_000.0)),
        ..closed
    };
    let line = |peer: Peer, load| peer.arguments(load).map(|words| words.join(" "));
    assert_eq!(
        line(Peer::Wrk, &closed).unwrap(),
        "-t1 -c64 -d1s --latency http://127.0.0.1:80/"
    );
    assert_eq!(line(Peer::Wrk, &open), None);
    assert_eq!(line(Peer::BareEpoll, &closed).unwrap(), "80 64 0.3");
    assert_eq!(
        line(Peer::BareEpollStamped, &closed).unwrap(),
        "80 64 0.3 stamped"
    );
    assert_eq!(line(Peer::BareSpin, &open).unwrap(), "80 64 1000 0.3");
    assert_eq!(line(Peer::BareSpin, &closed), None);
    assert!(
        line(Peer::KneeUring, &open)
            .unwrap()
            .contains(" -d 300ms --warmup 0s ")
    );
}

#[test]
fn only_knee_may_call_its_run_invalid() {
    assert!(Peer::KneeEpoll.accepts(Some(3)) && !Peer::KneeEpoll.accepts(Some(2)));
    assert!(Peer::Wrk.accepts(Some(0)) && !Peer::Wrk.accepts(Some(3)));
    assert!(!Peer::Wrk.accepts(None));
}
