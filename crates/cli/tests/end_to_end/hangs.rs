//! Servers that hang or fall silent. Users who get nothing are seen, an outage has a beginning and
//! an end, and no figure is made of nothing.

use crate::support::{figure, run_load, unless_disturbed, until_valid};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// Serves connections. `answers` says of the k-th (from 1) at a time since the first: an answer, or
/// silence.
fn server(answers: fn(u64, Duration) -> bool) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let begin = Instant::now();
        for (k, stream) in (1..).zip(listener.incoming()) {
            let Ok(stream) = stream else { return };
            thread::spawn(move || serve(stream, |now| answers(k, now - begin)));
        }
    });
    format!("http://127.0.0.1:{port}/")
}

/// Ends when the client does.
fn serve(mut stream: TcpStream, answers: impl Fn(Instant) -> bool) {
    let mut request = [0; 4_096];
    while stream.read(&mut request).is_ok_and(|n| n > 0) {
        if answers(Instant::now()) {
            thread::sleep(Duration::from_millis(2));
            if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
                return;
            }
        }
    }
}

fn found<'a>(report: &'a Value, code: &str) -> Option<&'a Value> {
    let findings = report["findings"].as_array().unwrap();
    findings.iter().find(|f| f["code"] == code)
}

#[test]
fn users_whose_connections_never_answer_are_seen() {
    let url = server(|k, _| k % 4 != 0);
    let options = ["-c", "16", "-d", "2s", "--warmup", "500ms", "--timeout", "4s", "-t", "1"];
    let report = run_load(&url, &options).json();
    let hung = found(&report, "hung_operations").unwrap_or_else(|| panic!("{report:#}"));
    let text = hung["text"].as_str().unwrap();
    assert!(text.contains("4 of 16 users never got a response"), "{text}");
    assert_eq!(hung["severity"], "error");
    let trial = &report["trials"][0];
    assert_eq!(trial["outcomes"]["timeout"], 4, "{:#}", trial["outcomes"]);
    assert!(found(&report, "littles_law_violation").is_none());
}

#[test]
fn outage_is_found_with_begin_and_end_and_nothing_is_cut() {
    for load in [["-c", "8"], ["-R", "200"]] {
        let attempt = || {
            let url = server(|_, since| since < Duration::from_millis(2_000));
            let options = ["-d", "5s", "--warmup", "0", "--timeout", "1s", "-t", "1"];
            run_load(&url, &[&load[..], &options].concat())
        };
        unless_disturbed(attempt, |report| {
            let trial = &report["trials"][0];
            let outage = found(report, "outage").unwrap_or_else(|| panic!("{report:#}"));
            let text = outage["text"].as_str().unwrap();
            assert!(text.contains("until its end"), "{text}");
            let from_ms = outage["evidence"]["from_ns"].as_f64().unwrap() / 1e6;
            assert!((1_500.0..2_500.0).contains(&from_ms), "{from_ms}");
            assert_eq!(trial["transient_ns"], 0);
            assert!(trial["throughput_per_s"].as_f64().unwrap() > 10.0, "{load:?}");
            assert!(trial["completed"].as_u64().unwrap() > 200, "{load:?}");
        });
    }
}

#[test]
fn no_response_gives_no_figure_and_one_gives_one() {
    let url = server(|_, _| false);
    let options = ["-c", "4", "-d", "1s", "--warmup", "0", "--timeout", "2s"];
    let ended = run_load(&url, &options);
    let report = ended.json();
    let trial = &report["trials"][0];
    assert!(trial["throughput_per_s"].is_null(), "{trial:#}");
    assert!(trial["response_time_ns"]["min"].is_null());
    assert!(trial["response_time_ns"]["p99"].is_null());

    let url = server(|_, _| true);
    let report = run_load(&url, &["-R", "0.001", "-d", "2s", "--warmup", "0"]).json();
    let trial = &report["trials"][0];
    assert_eq!(trial["completed"], 1, "{trial:#}");
    assert!((trial["throughput_per_s"].as_f64().unwrap() - 0.5).abs() < 0.01);
    let times = &trial["response_time_ns"];
    assert!(figure(times, "p50").is_some(), "{times:#}");
    assert_eq!(figure(times, "p99"), None, "{times:#}");
}

/// When a server answered, since its first request.
type Answers = Arc<Mutex<Vec<Duration>>>;

/// Freezes once, this time after its first request and for this long, and logs its answers.
fn freezing(from: Duration, length: Duration) -> (String, Answers) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let log = Answers::default();
    let answers = Arc::clone(&log);
    thread::spawn(move || {
        let first = Arc::new(OnceLock::new());
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let (first, answers) = (Arc::clone(&first), Arc::clone(&answers));
            thread::spawn(move || {
                serve(stream, |now| {
                    let since = now - *first.get_or_init(|| now);
                    if from <= since && since < from + length {
                        thread::sleep(from + length - since);
                    }
                    answers.lock().unwrap().push(now.elapsed() + since);
                    true
                });
            });
        }
    });
    (format!("http://127.0.0.1:{port}/"), log)
}

/// The longest time between two answers.
fn longest_gap_s(answers: &Answers) -> [f64; 2] {
    let mut answers = answers.lock().unwrap().clone();
    answers.sort();
    let longest = answers.windows(2).max_by_key(|w| w[1] - w[0]).unwrap();
    [longest[0].as_secs_f64(), longest[1].as_secs_f64()]
}

#[test]
fn one_freeze_is_named_with_begin_and_end() {
    for (load, length, code) in [
        (["-c", "1"], 900, "pauses"),
        (["-c", "16"], 1_300, "outage"),
        (["-R", "100"], 900, "pauses"),
    ] {
        let attempt = || {
            let mut log = Answers::default();
            let (report, ()) = until_valid(|| {
                let (url, answers) =
                    freezing(Duration::from_millis(700), Duration::from_millis(length));
                log = answers;
                (run_load(&url, &[&load[..], &["-d", "3s", "--warmup", "0"]].concat()), ())
            });
            freeze_is_named(&report, code, longest_gap_s(&log))
        };
        // A busy host makes other responses slow too, so that a short pause is as usual as they
        // are, that response times drift, or that the server wakes up late.
        let mut seen = vec![];
        while let Err(why) = attempt() {
            seen.push(format!("{load:?}: {why}"));
            assert!(seen.len() < 8, "{seen:#?}");
        }
    }
}

/// Whether a report names the one silence of a server, with the begin and end that its log has.
fn freeze_is_named(report: &Value, code: &str, logged: [f64; 2]) -> Result<(), String> {
    let silence = &report["trials"][0]["silence"];
    let named = match code {
        "outage" => ["start_ns", "end_ns"].map(|key| silence["outages"][0][key].as_f64()),
        _ => [0, 1].map(|end| silence["pauses"]["times_ns"][0][end].as_f64()),
    };
    let is_at = |(named, logged): (Option<f64>, f64)| {
        named.is_some_and(|named| (named / 1e9 - logged).abs() < 0.1)
    };
    let is_named = found(report, code).is_some() && named.into_iter().zip(logged).all(is_at);
    if !is_named || found(report, "non_stationary").is_some() {
        return Err(format!("{logged:?} s, but {silence:#} and {:#}", report["findings"]));
    }
    Ok(())
}
