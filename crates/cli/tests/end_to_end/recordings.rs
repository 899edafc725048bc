//! Recordings of requests, out of logs and sent again.

use crate::support::{KneeServer, TempPath, backends, measured, run};
use serde_json::Value;

/// A recording for this server with these lines.
fn recording(name: &str, server: &KneeServer, lines: &str) -> TempPath {
    let head = format!("{{\"recording\":1,\"target\":\"http://{}\"}}\n", server.address);
    TempPath::with(name, &(head + lines))
}

fn trial(file: &TempPath, options: &[&str]) -> Value {
    measured(&[&["run", file.str()], options].concat())["trials"][0].clone()
}

#[test]
fn each_recorded_request_is_sent_once() {
    let line = |k: u32| match k % 3 {
        0 => format!("{{\"at\":{},\"path\":\"/{k}\"}}\n", f64::from(k) / 1000.0),
        1 => format!(
            "{{\"at\":{},\"path\":\"/{k}?a=b\",\"method\":\"DELETE\"}}\n",
            f64::from(k) / 1000.0
        ),
        _ => format!(
            "{{\"at\":{},\"path\":\"/\",\"method\":\"POST\",\"body\":\"x{}\",\"headers\":{{\"a\":\"b\"}}}}\n",
            f64::from(k) / 1000.0,
            k % 2
        ),
    };
    let lines: String = (0..300).map(line).collect();
    for backend in backends(&KneeServer::start(&[]).url()) {
        for version in [&["--http1.1"][..], &["--http2-prior-knowledge"]] {
            for threads in ["1", "2"] {
                let server = KneeServer::start(&[]);
                let file = recording("each.jsonl", &server, &lines);
                let options = ["--backend", backend, "--threads", threads, "--speed", "2"];
                let trial = trial(&file, &[&options[..], version].concat());
                assert_eq!(trial["outcomes"]["ok"], 300, "{trial:#}");
                let of = |kind: usize| trial["targets"][kind]["attempted"].as_u64().unwrap();
                assert_eq!([of(0), of(1), of(2) + of(3)], [100, 100, 100]);
                assert_eq!(server.served()["responses"], 300);
            }
        }
    }
}

#[test]
fn a_part_of_a_recording_keeps_its_gaps() {
    let server = KneeServer::start(&[]);
    let lines: String = (0..200)
        .map(|k| format!("{{\"at\":{},\"path\":\"/\"}}\n", f64::from(k * k) / 40_000.0))
        .collect();
    let file = recording("part.jsonl", &server, &lines);
    // From 0.25 s on and before 0.5625 s: those from number 100 on, before number 150.
    let trial = trial(&file, &["--from", "250ms", "--to", "562.5ms", "--speed", "0.5"]);
    assert_eq!(trial["outcomes"]["ok"], 50, "{trial:#}");
    let length = trial["duration_ns"].as_f64().unwrap() / 1e6;
    assert!((600.0..650.0).contains(&length), "{length} ms");
    let asked = trial["offered"]["recorded"]["gap_cv"].as_f64().unwrap();
    assert!((0.05..0.2).contains(&asked), "{asked}");
}

#[test]
fn a_user_waits_for_an_answer_before_the_next_request() {
    let log = TempPath::new("order.csv");
    let options = ["--workers", "8", "--service", "fixed(10ms)", "--log", log.str()];
    let server = KneeServer::start(&options);
    let line = |k: u32| format!("{{\"at\":0,\"path\":\"/{k}\",\"user\":\"u{}\"}}\n", k % 2);
    let file = recording("order.jsonl", &server, &(0..10).map(line).collect::<String>());
    let trial = trial(&file, &["-c", "8"]);
    assert_eq!(trial["outcomes"]["ok"], 10, "{trial:#}");
    server.served();
    let text = std::fs::read_to_string(&log.0).unwrap();
    let mut served: Vec<(u64, u64)> = Vec::new();
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        served.push((fields[6].parse().unwrap(), fields[8].parse().unwrap()));
    }
    assert_eq!(served.len(), 10);
    for (begin, _) in &served {
        let at_once = served.iter().filter(|(from, to)| from <= begin && begin < to).count();
        assert!(at_once <= 2, "two users, and {at_once} requests at once");
    }
}

#[test]
fn what_is_no_recording_is_one_line() {
    let server = KneeServer::start(&[]);
    let good = "{\"at\":0,\"path\":\"/\"}\n";
    let second = |line: &str| format!("{good}{line}\n");
    for (lines, options, want) in [
        (second("{\"at\":1}"), vec![], "line 3: missing field `path`"),
        (second("{\"at\":1,\"path\":\"x\"}"), vec![], "line 3: the path"),
        (format!("{{\"at\":1,\"path\":\"/\"}}\n{good}"), vec![], "line 3: its time is before"),
        (good.to_owned(), vec!["--from", "5s"], "no request in this part"),
        (good.to_owned(), vec!["--rate", "5"], "--rate: a recording has its own schedule"),
        (good.to_owned(), vec!["--speed", "0"], "expected a factor"),
        (good.to_owned(), vec!["--retries", "1"], "--retries: a recording"),
        (good.to_owned(), vec!["-b", "x"], "--body: each request of a recording"),
    ] {
        let file = recording("wrong.jsonl", &server, &lines);
        let ended = run(&[&["run", file.str()][..], &options].concat());
        assert_eq!(ended.status, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(want), "{want}: {}", ended.stderr);
    }
    let none = TempPath::with("none.jsonl", "x\n");
    for (arguments, want) in [
        (&["run", none.str()][..], "line 1: "),
        (&["run", "/nonexistent.jsonl"], "cannot be read"),
        (&["sweep", none.str()], "only knee run sends again"),
        (&["run", "http://127.0.0.1:9/", "--speed", "2"], "--speed: is of a recording"),
    ] {
        let ended = run(arguments);
        assert_eq!(ended.status, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(want), "{want}: {}", ended.stderr);
    }
}

#[test]
fn a_log_becomes_a_recording_that_runs() {
    let server = KneeServer::start(&[]);
    let line = |k: u32| {
        format!(
            "h{} - - [10/Oct/2000:13:55:3{} +0000] \"GET /{k} HTTP/1.1\" 200 1\n",
            k % 4,
            k / 50
        )
    };
    let log: String = (0..100).map(line).collect();
    let log = TempPath::with("access.log", &(log + "no request\n"));
    let file = TempPath::new("access.jsonl");
    let target = format!("http://{}", server.address);
    let import = ["import", "log", log.str(), "--target", &target, "-o", file.str()];
    let ended = run(&import);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("left out: line 101: no time"), "{}", ended.stderr);
    assert!(ended.stderr.contains("100 of them have times to the second"), "{}", ended.stderr);
    let trial = trial(&file, &["--speed", "4"]);
    assert_eq!(trial["outcomes"]["ok"], 100, "{trial:#}");
    for (arguments, want) in [
        (&["import", "log", log.str(), "--target", "ftp://h"][..], "--target: "),
        (&["import", "log", "/none", "--target", &target], "cannot be read"),
        (&["import", "log", log.str(), "--target", &target, "--format", "json"], "has no request"),
    ] {
        let ended = run(arguments);
        assert_eq!(ended.status, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(want), "{want}: {}", ended.stderr);
    }
}
