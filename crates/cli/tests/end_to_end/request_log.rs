//! `knee serve http --log`: a file that measured times can be checked against.

use crate::support::{KneeServer, TempPath, run};

/// One line of the log, in nanoseconds of CLOCK_MONOTONIC.
struct Line {
    arrival: u64,
    read: u64,
    start: u64,
    end: u64,
    written: u64,
}

fn read(log: &TempPath) -> Vec<Line> {
    let text = std::fs::read_to_string(&log.0).unwrap();
    let mut lines = text.lines();
    let header = "connection,port,request,clock,arrival_ns,read_ns,start_ns,end_ns,written_ns,\
                  realtime_ahead_ns";
    assert_eq!(lines.next(), Some(header));
    let line = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!(fields.len(), 10, "{line}");
        assert!(["kernel", "process"].contains(&fields[3]), "{line}");
        let number = |i: usize| fields[i].parse::<u64>().unwrap_or_else(|_| panic!("{line}"));
        assert!(number(9) > 0, "{line}");
        Line {
            arrival: number(4),
            read: number(5),
            start: number(6),
            end: number(7),
            written: number(8),
        }
    };
    lines.map(line).collect()
}

#[test]
fn the_log_of_a_server_holds_what_a_measured_time_holds() {
    let log = TempPath::new("requests.csv");
    let options = ["--workers", "1", "--service", "fixed(2ms)"];
    let server = KneeServer::start(&[&options[..], &["--log", log.str()]].concat());
    let load = ["-R", "50", "-c", "4", "-d", "1s", "--warmup", "0"];
    let ended = run(&[&["run", &server.url(), "--json", "-"][..], &load].concat());
    let served = server.served();
    let lines = read(&log);
    assert_eq!(lines.len() as u64, served["requests"].as_u64().unwrap());
    for line in &lines {
        assert!(line.arrival <= line.read && line.read <= line.start);
        assert_eq!(line.end - line.start, 2_000_000);
        assert!(line.end <= line.written);
    }
    // Whoever waits for a response sees at least what the station took, whatever the host does.
    let least = lines.iter().map(|l| l.end - l.arrival).min().unwrap();
    let response = &ended.json()["trials"][0]["response_time_ns"];
    // On a host that gave its time to others it is known as a range.
    let seen = response["min"].as_u64().or(response["ranges"]["min"]["at_most"].as_u64());
    let seen = seen.unwrap_or_else(|| panic!("{response}"));
    assert!(seen as f64 >= least as f64 * 0.99, "{seen} of {least}");
}

#[test]
fn a_log_that_cannot_be_written_is_one_line_and_exit_2() {
    let ended = run(&["serve", "http", "--log", "/nonexistent/log.csv"]);
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("--log"), "{ended:?}");
}
