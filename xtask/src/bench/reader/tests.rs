use super::*;

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-6 * b.abs().max(1.0)
}

#[test]
fn wrk_is_read() {
    let sample = wrk(include_str!("../samples/wrk.txt")).unwrap();
    assert_eq!((sample.requests, sample.seconds, sample.errors), (414_449.0, 1.0, 0.0));
    let with = "  7 requests in 1.50m, 1.00KB read\n  Socket errors: connect 1, read 2, write 0, \
                timeout 3\n  Non-2xx or 3xx responses: 4\n     50%   10.00us\n     90%    1.50ms\n\
                \x20    99%    2.00s \n";
    let sample = wrk(with).unwrap();
    assert_eq!((sample.requests, sample.seconds, sample.errors), (7.0, 90.0, 10.0));
    let response = sample.response.unwrap();
    assert_eq!((response.p50_us, response.p90_us, response.p99_us), (10.0, 1_500.0, 2e6));
    assert!(wrk("unable to connect").is_err());
}

#[test]
fn ab_is_read() {
    let sample = ab(include_str!("../samples/ab.txt")).unwrap();
    assert_eq!((sample.requests, sample.seconds, sample.errors), (323_245.0, 1.0, 0.0));
    assert!(ab("apr_socket_recv: Connection refused (111)").is_err());
}

#[test]
fn h2load_is_read() {
    let sample = h2load(include_str!("../samples/h2load.txt")).unwrap();
    assert_eq!((sample.requests, sample.seconds, sample.errors), (258_503.0, 1.0, 0.0));
    assert!(h2load("").is_err());
}

#[test]
fn dnsperf_is_read() {
    let out = include_str!("../samples/dnsperf.txt");
    let sample = dnsperf(out).unwrap();
    assert_eq!((sample.requests, sample.seconds, sample.errors), (77_537.0, 1.003495, 0.0));
    let with = out.replace("lost:         0", "lost:         3");
    let with = with.replace("NOERROR 77537", "NOERROR 77530 (99.99%), NXDOMAIN 7");
    assert_eq!(dnsperf(&with).unwrap().errors, 10.0);
    assert!(dnsperf("Warning: no queries").is_err());
}

#[test]
fn bombardier_is_read() {
    let out = r#"{"spec": {"numberOfConnections": 64}, "result": {"bytesRead": 10,
        "timeTakenSeconds": 1.5, "req1xx": 0, "req2xx": 7, "req3xx": 0, "req4xx": 1, "req5xx": 2,
        "others": 3, "latency": {"mean": 864.8, "stddev": 448.8, "max": 16592}}}"#;
    let sample = bombardier(out).unwrap();
    assert_eq!((sample.requests, sample.seconds, sample.errors), (7.0, 1.5, 6.0));
    assert!(bombardier("{}").is_err());
}

#[test]
fn oha_is_read() {
    let out = r#"{"summary": {"total": 2.0, "average": 0.0001, "requestsPerSec": 3.5},
        "latencyPercentiles": {"p50": 0.0001, "p90": 0.0002, "p99": 0.003},
        "statusCodeDistribution": {"200": 7},
        "errorDistribution": {"aborted due to deadline": 2, "refused": 1}}"#;
    let sample = oha(out).unwrap();
    assert_eq!((sample.requests, sample.seconds, sample.errors), (7.0, 2.0, 1.0));
    assert!(near(sample.response.unwrap().p99_us, 3_000.0));
}

#[test]
fn bare_loops_are_read() {
    let closed = r#"{"requests":10,"seconds":2.5,"cpu_user_s":0.1,"cpu_system_s":0.2}"#;
    let sample = bare(closed).unwrap();
    assert_eq!((sample.requests, sample.seconds, sample.response), (10.0, 2.5, None));
    let open = r#"{"requests":10,"seconds":1,"response_p50_us":1,"response_p90_us":2,
        "response_p99_us":3}"#;
    assert_eq!(bare(open).unwrap().response.unwrap().p99_us, 3.0);
}

#[test]
fn knee_is_read() {
    let out = r#"{"verdict": "invalid", "trials": [{"attempted": 12, "completed": 11,
        "duration_ns": 2000000000, "outcomes": {"ok": 10, "in_flight": 1},
        "generator": {"peak_rss_bytes": 4096},
        "response_time_ns": {"mean": 1000, "p50": 2000, "p90": 3000, "p99": 4000}}]}"#;
    let sample = knee(out).unwrap();
    assert_eq!((sample.requests, sample.seconds, sample.errors), (11.0, 2.0, 1.0));
    assert_eq!((sample.valid, sample.peak_rss_bytes), (Some(false), Some(4096.0)));
    assert_eq!(sample.response.unwrap().mean_us, Some(1.0));
    let few = out.replace("4000}", "null}");
    assert!(knee(&few).unwrap().response.unwrap().p99_us.is_nan(), "{few}");
    assert!(knee(r#"{"trials": []}"#).is_err());
}

#[test]
fn datagrams_are_read_whoever_sent_them() {
    let loops = r#"{"requests":500,"seconds":2.0,"cpu_user_s":0.1,"cpu_system_s":0.2}"#;
    let iperf = r#"{"end":{"streams":[{"udp":{"packets":500,"seconds":2.0}}]}}"#;
    let datagrams = r#"{"trials":[{"duration_ns":2000000000,
        "ledger":{"intended":510,"not_attempted":7,"send_errors":3},
        "offered":{"pacing_error_ns":{"p50":1500,"p99":9000}}}]}"#;
    type Read = fn(&str) -> Result<ContenderReport, String>;
    for (read, out) in
        [(bare as Read, loops), (iperf3_udp as Read, iperf), (knee_udp as Read, datagrams)]
    {
        let sample = read(out).unwrap();
        assert_eq!((sample.requests, sample.seconds), (500.0, 2.0), "{out}");
        let paced = out == datagrams;
        assert_eq!(sample.pacing_us, paced.then_some([1.5, 9.0]));
        assert!(read("{}").is_err() && read("").is_err());
    }
}
