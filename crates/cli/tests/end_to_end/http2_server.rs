//! `knee serve http` over HTTP/2 with the clients of others.

use crate::support::{KneeServer, TempPath, curl, program};
use serde_json::Value;
use std::process::Command;

#[test]
fn curl_agrees_on_http2_over_tls_and_knows_of_it_in_clear() {
    let body = TempPath::new("http2-body");
    let server = KneeServer::start(&["--tls", "--size", "300000"]);
    let certificate = server.certificate.clone().unwrap();
    let url = server.url();
    let agreed = ["--cacert", &certificate, "-o", body.str(), &url, "-o", body.str(), &url];
    let Some(told) = curl(&agreed) else {
        return;
    };
    assert_eq!(told, "200 300000 1 2\n200 300000 0 2\n");
    assert_eq!(std::fs::metadata(&body.0).unwrap().len(), 300_000);
    assert_eq!(server.served()["http2"]["streams"], 2);

    let server = KneeServer::start(&["--fault", "error(1,404)"]);
    let sent = TempPath::with("http2-sent", &"x".repeat(2_000_000));
    let data = format!("@{}", sent.str());
    let known = ["--http2-prior-knowledge", "--data-binary", &data, "-o", body.str()];
    let told = curl(&[&known[..], &[&server.url()]].concat());
    assert_eq!(told.unwrap(), "404 1294 1 2\n");
    let served = server.served();
    assert_eq!(served["requests"], 1);
    assert!(served["bytes_received"].as_u64().unwrap() > 2_000_000);
}

/// What the server says it served to h2load.
fn load(server: KneeServer, options: &[&str]) -> Option<Value> {
    let output = Command::new(program("h2load")?).args(options).arg(server.url()).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let requests = "requests: 3000 total, 3000 started, 3000 done, 3000 succeeded, 0 failed, \
                    0 errored, 0 timeout";
    assert!(told.contains(requests), "{told}");
    // Every byte of every body, and none more.
    assert!(told.contains("(60000000) data"), "{told}");
    let served = server.served();
    assert_eq!((&served["requests"], &served["responses"]), (&3000.into(), &3000.into()));
    assert_eq!(served["errors"], serde_json::json!({}));
    Some(served)
}

#[test]
fn h2load_gets_every_byte() {
    for secured in [&["--tls"][..], &[]] {
        for load_options in [
            &["-n", "3000", "-c", "1", "-m", "1"][..],
            &["-n", "3000", "-c", "1", "-m", "100"],
            &["-n", "3000", "-c", "8", "-m", "32"],
            // Windows of 1 KiB for each stream, of 4 KiB for the connection.
            &["-n", "3000", "-c", "2", "-m", "10", "-w", "10", "-W", "12"],
        ] {
            let options = [&["--size", "20000"], secured].concat();
            let Some(served) = load(KneeServer::start(&options), load_options) else {
                return;
            };
            let at_once = served["http2"]["streams_max"].as_u64().unwrap();
            let permitted: u64 = load_options[5].parse().unwrap();
            assert!(at_once >= 1 && at_once <= permitted, "{at_once}");
        }
    }
}

#[test]
fn a_station_serves_streams_in_order_and_logs_each() {
    let log = TempPath::new("http2-log.csv");
    let station = ["--workers", "2", "--service", "fixed(500us)", "--size", "20000"];
    let server = KneeServer::start(&[&station[..], &["--log", log.str()]].concat());
    let Some(served) = load(server, &["-n", "3000", "-c", "2", "-m", "16"]) else {
        return;
    };
    assert_eq!(served["station"]["arrivals"], 3000);
    // Two workers at 2,000 a second each.
    assert!(served["elapsed_s"].as_f64().unwrap() >= 0.75);
    let text = std::fs::read_to_string(&log.0).unwrap();
    assert_eq!(text.lines().count(), 3001);
    for line in text.lines().skip(1) {
        let times: Vec<u64> = line.split(',').skip(4).map(|t| t.parse().unwrap()).collect();
        let [arrival, read, start, end, written, _] = times[..] else {
            panic!("{line}");
        };
        assert!(arrival <= read && read <= start && end <= written, "{line}");
        assert_eq!(end - start, 500_000, "{line}");
    }
}
