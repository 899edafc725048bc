//! Streams of messages: the reference server streams them, and knee tells when each came.

use crate::support::http_servers::launch;
use crate::support::{
    KneeServer, TempPath, backends, measured, run, run_load, unless_disturbed, until_valid,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// When messages left by the server's log: the times from arrivals to first messages, and the gaps,
/// in nanoseconds, ascending.
fn logged(log: &TempPath) -> (Vec<u64>, Vec<u64>) {
    let text = std::fs::read_to_string(&log.0).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("stream,message,arrival_ns,due_ns,written_ns"));
    let (mut first, mut gaps) = (Vec::new(), Vec::new());
    let mut last = BTreeMap::new();
    for line in lines {
        let fields: Vec<u64> = line.split(',').map(|field| field.parse().unwrap()).collect();
        let [stream, message, arrival, due, written] = fields[..] else { panic!("{line}") };
        assert!(arrival <= due && due <= written, "{line}");
        match last.insert(stream, (message, written)) {
            None => first.push(written - arrival),
            Some((before, at)) => {
                assert_eq!(message, before + 1, "{line}");
                gaps.push(written - at);
            }
        }
    }
    first.sort_unstable();
    gaps.sort_unstable();
    (first, gaps)
}

fn messages(report: &Value) -> &Value {
    &report["trials"][0]["messages"]
}

/// A server that answers each connection once, with these bytes.
fn answering(response: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            // The client may be gone already.
            let _ = stream.write_all(response);
        }
    });
    url
}

#[test]
fn every_message_is_counted_over_any_version_link_and_backend() {
    let secured: [&[&str]; 2] = [&[], &["--tls"]];
    for tls in secured {
        let law = ["--stream", "messages=5, first=fixed(5ms), gap=fixed(2ms)"];
        let server = KneeServer::start(&[&law[..], tls].concat());
        let trust = server.certificate.clone();
        let url = server.url();
        let trust: Vec<&str> = trust.iter().flat_map(|file| ["--cacert", file]).collect();
        for version in ["--http1.1", "--http2-prior-knowledge"] {
            if version == "--http2-prior-knowledge" && !tls.is_empty() {
                continue;
            }
            for backend in backends(&[&url[..]].concat()) {
                let options = ["--vusers", "4", "-n", "40", "--backend", backend, version];
                let arguments = [&["run", &url][..], &options, &trust].concat();
                let report = measured(&arguments);
                check_all_messages(&report, &format!("{arguments:?}"));
            }
        }
        if !tls.is_empty() {
            let options = ["--http2", "--vusers", "4", "-n", "40"];
            let report = measured(&[&["run", &url][..], &options, &trust].concat());
            check_all_messages(&report, "HTTP/2 over TLS");
        }
    }
}

fn check_all_messages(report: &Value, what: &str) {
    let told = messages(report);
    assert_eq!(report["trials"][0]["outcomes"]["ok"], 40, "{what}: {report}");
    assert_eq!((&told["count"], &told["units"]), (&200.into(), &200.into()), "{what}: {told}");
    assert_eq!(told["gap_ns"]["count"], 160, "{what}");
    assert_eq!(told["first_message_ns"]["count"], 40, "{what}");
    // The server never sends before a message is due.
    let least = |of: &str| told[of]["min"].as_u64().unwrap();
    assert!(least("first_message_ns") >= 4_950_000, "{what}: {told}");
    assert!(least("stream_ns") >= 12_800_000, "{what}: {told}");
    let groups = report["trials"][0]["anatomy"].as_array().unwrap();
    let all = groups.iter().find(|group| group["of"] == "all").unwrap();
    let stages = &all["mean_ns"];
    assert!(stages["streaming"].as_u64().unwrap() > 7_000_000, "{what}: {stages}");
}

#[test]
fn times_of_messages_are_those_of_the_servers_log() {
    let attempt = || {
        let (report, (first, gaps)) = until_valid(|| {
            let log = TempPath::new("messages.csv");
            let law = ["--stream", "messages=20, first=fixed(40ms), gap=uniform(10ms,30ms)"];
            let server = KneeServer::start(&[&law[..], &["--stream-log", log.str()]].concat());
            let load = ["-R", "10", "--arrival", "poisson", "-d", "3s", "--warmup", "0"];
            let ended = run(&[&["run", &server.url(), "--json", "-"][..], &load].concat());
            server.served();
            (ended, logged(&log))
        });
        let told = messages(&report);
        let mut off = vec![];
        for (of, logged) in [("first_message_ns", first), ("gap_ns", gaps)] {
            for (name, q) in [("p50", 0.5), ("p90", 0.9)] {
                let Some(measured) = told[of][name].as_u64() else { continue };
                let rank = ((logged.len() as f64 * q).ceil() as usize).clamp(1, logged.len());
                let (near, measured) = (logged[rank - 1] as f64, measured as f64);
                if (measured / near - 1.0).abs() >= 0.1 {
                    off.push(format!("{of} {name}: {measured} of {near}"));
                }
            }
        }
        off
    };
    // A busy host delays what the server writes to its log.
    let offs: Vec<_> =
        (0..5).map_while(|_| Some(attempt()).filter(|off| !off.is_empty())).collect();
    assert!(offs.len() < 5, "{offs:#?}");
}

#[test]
fn a_stream_that_is_cut_or_has_no_end_message_is_incomplete() {
    let cut = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n\
                data: a\n\ndata: b";
    let open = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n\
                 data: a\n\ndata: b\n\n";
    for (response, options, outcome) in [
        (&cut[..], &["--end-message", ""][..], "incomplete"),
        (&open[..], &[], "ok"),
        (&open[..], &["--messages", "sse"], "incomplete"),
        (&open[..], &["--end-message", ""], "ok"),
        (&open[..], &["--end-message", "b"], "ok"),
        (&open[..], &["--messages", "none"], "ok"),
    ] {
        let url = answering(response);
        let report = measured(&[&["run", &url, "--vusers", "1", "-n", "3"][..], options].concat());
        assert_eq!(report["trials"][0]["outcomes"][outcome], 3, "{options:?}: {report}");
    }
    let url = answering(open);
    let report = measured(&["run", &url, "--messages", "sse", "--vusers", "1", "-n", "3"]);
    let because = messages(&report)["incomplete_because"].as_str().unwrap();
    assert!(because.contains("without the message [DONE]"), "{because}");
    assert!(codes(&report).contains(&"streams_incomplete"), "{report}");
}

#[test]
fn a_truncated_stream_of_the_server_is_incomplete() {
    let law = ["--stream", "messages=6, first=1ms, gap=1ms", "--fault", "truncate(1)"];
    let server = KneeServer::start(&law);
    let report = measured(&["run", &server.url(), "--vusers", "1", "-n", "5"]);
    assert_eq!(report["trials"][0]["outcomes"]["incomplete"], 5, "{report}");
    assert_eq!(messages(&report)["count"], 15, "the messages that came count");
}

#[test]
fn a_stream_that_falls_silent_ends_as_message_timeout() {
    let server = KneeServer::start(&["--stream", "messages=3, first=1ms, gap=fixed(30s)"]);
    let options = ["--messages", "sse", "--message-timeout", "300ms", "--vusers", "2", "-n", "4"];
    for version in ["--http1.1", "--http2-prior-knowledge"] {
        let report = measured(&[&["run", &server.url(), version][..], &options].concat());
        assert_eq!(report["trials"][0]["outcomes"]["message_timeout"], 4, "{report}");
    }
}

#[test]
fn tokens_are_counted_where_the_usage_says() {
    let server = KneeServer::start(&["--stream", "messages=7, first=1ms, gap=1ms"]);
    let options = ["--vusers", "1", "-n", "10", "--message-count", "/usage/completion_tokens"];
    let report = measured(&[&["run", &server.url()][..], &options].concat());
    assert_eq!(
        (&messages(&report)["units"], &messages(&report)["count"]),
        (&70.into(), &70.into())
    );
    let none = ["--vusers", "1", "-n", "2", "--message-count", "/tokens"];
    let report = measured(&[&["run", &server.url()][..], &none].concat());
    assert!(codes(&report).contains(&"message_count_missing"), "{report}");
    let ended = run(&["run", &server.url(), "--message-count", "usage.tokens"]);
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("JSON Pointer"), "{ended:?}");
}

#[test]
fn goodput_counts_the_streams_that_meet_every_bound() {
    let server = KneeServer::start(&["--stream", "messages=4, first=1ms, gap=fixed(200ms)"]);
    let check = |slo: &str, is_met: fn(Option<f64>, Option<f64>) -> bool| {
        let options = ["-d", "2s", "--warmup", "0", "--vusers", "2", "--slo", slo];
        unless_disturbed(
            || run_load(&server.url(), &options),
            |report| {
                let goodput = report["trials"][0]["goodput_per_s"].as_f64();
                let share = messages(report)["good_percent"].as_f64();
                assert!(is_met(goodput, share), "{goodput:?}, {share:?} %");
            },
        );
    };
    check("gap_p50<5ms", |goodput, share| (goodput, share) == (Some(0.0), Some(0.0)));
    check("gap_p50<10s, first_message<10s, stream<20s", |goodput, share| {
        goodput.is_none_or(|per_s| per_s > 0.1) && share.is_some_and(|share| share > 50.0)
    });
    let ended = run(&["run", &server.url(), "--slo", "p99<1s"]);
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("first_message"), "{ended:?}");
}

#[test]
fn a_step_of_a_scenario_is_split_as_it_says() {
    let server = KneeServer::start(&["--stream", "messages=4, first=1ms, gap=1ms"]);
    let file = TempPath::new("chat.yaml");
    let text = format!(
        "target: {}\nsessions:\n  chat:\n    steps:\n      - get: /\n        \
         messages: sse\n        \
         message_count: /usage/completion_tokens\n",
        server.url()
    );
    std::fs::write(&file.0, text).unwrap();
    let report = measured(&["run", file.str(), "--vusers", "1", "-n", "3"]);
    assert_eq!(messages(&report)["count"], 12, "{report}");
    assert_eq!(messages(&report)["units"], 12, "{report}");
}

#[test]
fn thresholds_know_the_figures_of_messages() {
    let server = KneeServer::start(&["--stream", "messages=3, first=fixed(20ms), gap=1ms"]);
    let judged = |threshold: &str| {
        let options = ["--vusers", "1", "-n", "20", "--fail-if", threshold];
        run(&[&["run", &server.url(), "--quiet"][..], &options].concat()).status
    };
    assert!(matches!(judged("first_message_p50>1ms"), Some(1 | 3)));
    assert!(matches!(judged("first_message_p50>100s"), Some(0 | 3)));
    assert!(matches!(judged("messages<1000000"), Some(1 | 3)));
    assert!(matches!(judged("longest_stall>1h"), Some(0 | 3)));
}

/// A proxy before a server, that passes on blocks of this length. What is less waits until the
/// server has sent nothing for a quarter of a second. Its URL.
fn proxy_before(server: &KneeServer, block: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let behind = server.address.clone();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let behind = TcpStream::connect(&behind).unwrap();
            let (mut up, down) = (behind.try_clone().unwrap(), client.try_clone().unwrap());
            thread::spawn(move || std::io::copy(&mut &client, &mut up));
            thread::spawn(move || pass_on(behind, down, block));
        }
    });
    url
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, block: usize) {
    to.set_nodelay(true).unwrap();
    from.set_read_timeout(Some(Duration::from_millis(250))).unwrap();
    let (mut held, mut buffer) = (Vec::new(), [0; 16 << 10]);
    loop {
        let ready = match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(length) => {
                held.extend_from_slice(&buffer[..length]);
                held.len() / block * block
            }
            Err(_) => held.len(),
        };
        if to.write_all(&held[..ready]).is_err() {
            return;
        }
        held.drain(..ready);
    }
}

fn codes(report: &Value) -> Vec<&str> {
    let findings = report["findings"].as_array().unwrap().iter();
    findings.filter_map(|finding| finding["code"].as_str()).collect()
}

#[test]
fn a_proxy_that_buffers_a_stream_is_found() {
    let streams: [&[&str]; 2] = [
        // All of a stream fits into the proxy's buffer.
        &["--stream", "messages=20, first=fixed(10ms), gap=fixed(10ms)"],
        // A stream fills it several times.
        &["--stream", "messages=200, first=fixed(10ms), gap=fixed(5ms)"],
    ];
    for law in streams {
        let server = KneeServer::start(law);
        for (block, is_found) in [(4_096, true), (1, false)] {
            let url = proxy_before(&server, block);
            let attempt = || run_load(&url, &["--vusers", "4", "-n", "16"]);
            unless_disturbed(attempt, |report| {
                assert_eq!(report["trials"][0]["outcomes"]["ok"], 16, "{report}");
                let is_said = codes(report).contains(&"buffered_stream");
                assert_eq!(is_said, is_found, "{law:?}, {block}: {report}");
            });
        }
    }
}

#[test]
fn bursts_that_the_application_sends_are_not_taken_for_a_buffer() {
    // All streams have their messages at the end of a step, and each is whole.
    let server = KneeServer::start(&["--stream", "messages=5, first=0s, step=60ms+1ms*active"]);
    let report = measured(&["run", &server.url(), "--vusers", "8", "-n", "32"]);
    assert!(!codes(&report).contains(&"buffered_stream"), "{report}");
    // A whole stream at once, without any wait.
    let quick = KneeServer::start(&["--stream", "messages=50, first=0s, gap=0s"]);
    let report = measured(&["run", &quick.url(), "--vusers", "2", "-n", "40"]);
    assert!(!codes(&report).contains(&"buffered_stream"), "{report}");
}

#[test]
fn streams_of_node_are_whole() {
    let started = launch("node", |site, port| {
        let text = format!(
            "require('http').createServer((request, response) => {{\n\
               response.writeHead(200, {{'Content-Type': 'text/event-stream'}});\n\
               let sent = 0;\n\
               const timer = setInterval(() => {{\n\
                 const event = `id: ${{sent}}\\ndata: {{\"n\":${{sent + 1}}}}\\n\\n`;\n\
                 if (sent++ < 5) return response.write(event);\n\
                 clearInterval(timer);\n\
                 response.end('data: [DONE]\\n\\n');\n\
               }}, 5);\n\
             }}).listen({port}, '127.0.0.1');\n"
        );
        vec![site.write("server.js", &text)]
    });
    let Some(node) = started else {
        return;
    };
    let options = ["--vusers", "3", "-n", "30", "--message-count", "/n"];
    let report = measured(&[&["run", &node.url("")][..], &options].concat());
    assert_eq!(report["trials"][0]["outcomes"]["ok"], 30, "{report}");
    assert_eq!(messages(&report)["count"], 150, "{report}");
    assert_eq!(messages(&report)["units"], 30 * 15, "{report}");
}
