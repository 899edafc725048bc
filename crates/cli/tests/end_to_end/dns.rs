//! Loads in DNS: against a server of these tests, `knee serve dns`, and the servers of others.

use crate::support::http_servers::{HttpServer, launch};
use crate::support::{KneeServer, TempPath, backends, measured, run};
use serde_json::Value;
use std::io::Write;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Answers queries over UDP by the first label of their name. `lost` has no answer, `twice` two,
/// `none` NXDOMAIN, and `cut` a truncated one, though nobody listens over TCP. Others have NOERROR.
struct DnsServer {
    address: SocketAddr,
    asked: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl DnsServer {
    fn start() -> DnsServer {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let address = socket.local_addr().unwrap();
        let (asked, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, end) = (Arc::clone(&asked), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let mut bytes = [0; 512];
            while !end.load(Ordering::Relaxed) {
                let Ok((length, from)) = socket.recv_from(&mut bytes) else {
                    continue;
                };
                count.fetch_add(1, Ordering::Relaxed);
                let answer = &mut bytes[..length];
                let label = answer[13..13 + usize::from(answer[12])].to_vec();
                (answer[2], answer[3]) = match &label[..] {
                    b"none" => (0x81, 0x83),
                    b"cut" => (0x83, 0x80),
                    _ => (0x81, 0x80),
                };
                let times = match &label[..] {
                    b"lost" => 0,
                    b"twice" => 2,
                    _ => 1,
                };
                for _ in 0..times {
                    socket.send_to(answer, from).unwrap();
                }
            }
        });
        DnsServer { address, asked, stop, thread: Some(thread) }
    }

    fn url(&self, question: &str) -> String {
        format!("dns://{}/{question}", self.address)
    }
}

impl Drop for DnsServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The only trial of a run with these options.
fn trial(url: &str, options: &[&str]) -> Value {
    measured(&[&["run", url], options].concat())["trials"][0].clone()
}

#[test]
fn each_query_has_its_answer_over_both_backends() {
    let server = DnsServer::start();
    let url = server.url("www.example.com?type=A");
    for backend in backends(&url) {
        let before = server.asked.load(Ordering::Relaxed);
        for load in [&["--vusers", "4"][..], &["-R", "500", "-c", "4"]] {
            let options = ["-n", "200", "--backend", backend];
            let trial = trial(&url, &[load, &options].concat());
            assert_eq!(trial["outcomes"]["ok"], 200, "{:#}", trial["outcomes"]);
            assert_eq!(trial["protocol"]["application"], "DNS over UDP");
        }
        assert_eq!(server.asked.load(Ordering::Relaxed) - before, 400);
    }
}

#[test]
fn every_query_ends_in_what_its_answer_says() {
    let server = DnsServer::start();
    let names = "; all ends\nwww.a A\nnone.a A\nlost.a AAAA\ncut.a TXT\ntwice.a MX\n";
    let file = TempPath::with("dns-ends", names);
    let url = format!("dns://{}", server.address);
    let options = ["--targets", file.str(), "-R", "500", "-n", "100", "--timeout", "300ms"];
    let trial = trial(&url, &options);
    let outcomes = &trial["outcomes"];
    assert_eq!(outcomes["ok"], 40, "{outcomes:#}");
    assert_eq!(outcomes["dns_nxdomain"], 20, "{outcomes:#}");
    assert_eq!(outcomes["refused"], 20, "{outcomes:#}");
    assert_eq!(trial["truncated_answers"], 20, "{trial:#}");
    assert_eq!(outcomes["timeout"], 20, "{outcomes:#}");
    assert_eq!(trial["unmatched_answers"], 20, "{trial:#}");
    assert_eq!(server.asked.load(Ordering::Relaxed), 100);
    // A query without an answer stays in the percentiles.
    assert!(trial["response_time_ns"]["max"].as_u64() >= Some(300_000_000), "{trial:#}");
}

#[test]
fn response_codes_are_shown_by_number() {
    let server = DnsServer::start();
    let ended = run(&["run", &server.url("none.a"), "-n", "5", "--full"]);
    assert!(ended.stdout.contains("status codes  3: 5\n"), "{}", ended.stdout);
}

#[test]
fn where_nobody_listens_queries_are_refused() {
    let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let trial = trial(&format!("dns://{free}/a"), &["-R", "100", "-n", "20"]);
    assert_eq!(trial["outcomes"]["refused"], 20, "{:#}", trial["outcomes"]);
}

#[test]
fn what_cannot_be_asked_is_one_line() {
    let file = TempPath::with("dns-wrong", "; a\nb..c A\n");
    let url = "dns://127.0.0.1:9";
    for (arguments, want) in [
        (&["dns://127.0.0.1:9/"][..], "asks for no name"),
        (&["dns://127.0.0.1:9/a..b"], "empty label"),
        (&["dns://127.0.0.1:9/a?type=AX"], "'AX' is no type"),
        (&["dns://127.0.0.1:9/a", "-b", "x"], "--body: is of HTTP"),
        (&["dns://127.0.0.1:9/a", "--http2"], "--http2: is of HTTP"),
        (&["dns://127.0.0.1:9/a", "--match", "seq"], "--match: is of WebSocket"),
        (&[url, "--targets", file.str()], "line 2: the name 'b..c' has an empty label"),
        (&["dns://127.0.0.1:9/a", "--targets", file.str()], "--targets: has the names"),
        (&["http://127.0.0.1:9/", "--targets", file.str()], "--targets: has the URLs"),
        (&["http://127.0.0.1:9/", "--edns", "1232"], "--edns: is of DNS: give dns://"),
        (&["grpc://127.0.0.1:9/a.B/C", "--no-recursion"], "--no-recursion: is of DNS"),
        (
            &["dns://127.0.0.1:9/a", "--edns", "511"],
            "'511' is not a whole number from 512 to 65535",
        ),
    ] {
        let ended = run(&[&["run", "-n", "1", "--quiet"], arguments].concat());
        assert_eq!(ended.status, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(want), "{want}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }
}

#[test]
fn lines_that_are_no_questions_are_skipped_and_counted() {
    let server = DnsServer::start();
    let names = "www.a A\nb..c A\n# a comment\n0/25.a PTR\nd XX\na?b.a TYPE65534 IN\n";
    let file = TempPath::with("dns-skipped", names);
    let url = format!("dns://{}", server.address);
    let ended = run(&["run", &url, "--targets", file.str(), "-n", "30", "--full"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("the first is line 2"), "{}", ended.stderr);
    let line = "skipped lines  2 of --targets, which are no questions\n";
    assert!(ended.stdout.contains(line), "{}", ended.stdout);
    let trial = trial(&url, &["--targets", file.str(), "-n", "30"]);
    assert_eq!((&trial["outcomes"]["ok"], &trial["skipped_lines"]), (&30.into(), &2.into()));
}

#[test]
fn queries_with_edns_have_answers_that_would_not_fit() {
    let server = serve(&["--records", "40"]);
    let url = format!("dns://{}/www.example.com", server.address);
    for (options, truncated, sent) in [
        (&[][..], Value::from(20), 20 * (33 + 35)),
        (&["--no-recursion"], 20.into(), 20 * (33 + 35)),
        (&["--edns", "4096"], Value::Null, 20 * (33 + 11)),
        (&["--dnssec", "--no-recursion"], Value::Null, 20 * (33 + 11)),
        (&["--edns", "512", "--dnssec"], 20.into(), 20 * (33 + 35 + 2 * 11)),
    ] {
        let trial = trial(&url, &[&["-n", "20"], options].concat());
        assert_eq!(trial["outcomes"]["ok"], 20, "{options:?}: {:#}", trial["outcomes"]);
        assert_eq!(trial["truncated_answers"], truncated, "{options:?}");
        assert_eq!(trial["bytes_sent"], sent, "{options:?}");
    }
}

fn serve(options: &[&str]) -> KneeServer {
    let always = &["dns", "--listen", "127.0.0.1:0", "--seed", "1", "--json", "-"];
    KneeServer::of(&[always, options].concat())
}

#[test]
fn the_reference_server_answers_over_udp_and_tcp() {
    let names = "www.example.com A\nexample.com SOA\na.example.com TXT\nexample.org A\n";
    let file = TempPath::with("dns-served", names);
    let arrivals = TempPath::new("dns-arrivals");
    let server =
        serve(&["--workers", "4", "--service", "fixed(1ms)", "--arrivals", arrivals.str()]);
    for (scheme, queries) in [("dns", "udp_queries"), ("dns+tcp", "tcp_queries")] {
        let url = format!("{scheme}://{}", server.address);
        let options = ["--targets", file.str(), "-R", "400", "-n", "200", "-c", "4"];
        let trial = trial(&url, &options);
        assert_eq!(trial["outcomes"]["ok"], 150, "{queries}: {:#}", trial["outcomes"]);
        assert_eq!(trial["outcomes"]["dns_nxdomain"], 50, "{queries}: {:#}", trial["outcomes"]);
        // On a busy host the least is not known.
        let least = trial["response_time_ns"]["min"].as_u64();
        assert!(least.is_none_or(|least| least >= 1_000_000), "{trial:#}");
    }
    let served = server.served();
    let counts = ["udp_queries", "tcp_queries", "connections_max", "unsent", "ignored", "dropped"];
    let counts = counts.map(|name| served[name].as_u64().unwrap());
    assert_eq!(counts, [200, 200, 4, 0, 0, 0], "{served}");
    assert_eq!(served["answers"], serde_json::json!({"NOERROR": 300, "NXDOMAIN": 100}));
    let times = std::fs::read_to_string(&arrivals.0).unwrap();
    let times: Result<Vec<u64>, _> = times.lines().map(str::parse).collect();
    assert_eq!(times.unwrap().len(), 400);
}

/// A client that asks and never reads: its answers fill the buffers of both kernels, and the rest is
/// counted when it leaves.
#[test]
fn answers_that_a_client_does_not_take_are_unsent() {
    let mut query = vec![0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    query.extend_from_slice(b"\x03www\x07example\x03com\x00\x00\x01\x00\x01");
    let mut framed = (query.len() as u16).to_be_bytes().to_vec();
    framed.extend_from_slice(&query);
    // A busy host takes longer for 14 MB, of which the kernels hold 10 MB at most.
    for patience_ms in [200, 1_000, 5_000] {
        let server = serve(&["--records", "250"]);
        let mut client = TcpStream::connect(&server.address).unwrap();
        client.write_all(&framed.repeat(3_500)).unwrap();
        std::thread::sleep(Duration::from_millis(patience_ms));
        drop(client);
        let served = server.served();
        let count = |name: &str| served[name].as_u64().unwrap();
        assert!(count("unsent") < count("tcp_queries"), "{served}");
        if count("unsent") > 0 {
            return;
        }
    }
    panic!("no answer is unsent");
}

#[test]
fn the_reference_server_truncates_what_does_not_fit() {
    let server = serve(&["--records", "40"]);
    let names = TempPath::with("dns-cut", "www.example.com A\nexample.com SOA\n");
    let url = |scheme: &str| format!("{scheme}://{}", server.address);
    // Header, question, and 40 records; over TCP behind its length.
    let (bare, whole) = (12 + 21, 2 + 12 + 21 + 40 * 16);
    let soa = 12 + 17 + 12 + 32;
    let over_tcp = trial(&url("dns+tcp"), &["--targets", names.str(), "-n", "20"]);
    assert_eq!(over_tcp["outcomes"]["ok"], 20, "{:#}", over_tcp["outcomes"]);
    assert_eq!(over_tcp["bytes_received"], 10 * (whole + 2 + soa), "{over_tcp:#}");
    assert_eq!(over_tcp["truncated_answers"], Value::Null);
    let udp = url("dns");
    for backend in backends(&url("dns+tcp")) {
        for load in [&["--vusers", "4"][..], &["-R", "500", "-c", "4"]] {
            let options = ["--targets", names.str(), "-n", "200", "--backend", backend];
            let trial = trial(&udp, &[load, &options].concat());
            assert_eq!(trial["outcomes"]["ok"], 200, "{:#}", trial["outcomes"]);
            assert_eq!(trial["truncated_answers"], 100, "{trial:#}");
            assert_eq!(trial["bytes_received"], 100 * (bare + whole + soa), "{trial:#}");
            assert_eq!(trial["bytes_sent"], 100 * (33 + 35 + 29), "{trial:#}");
        }
    }
    let ended = run(&["run", &format!("{udp}/www.example.com"), "-n", "5", "--full"]);
    let want = "truncated answers  5 in the whole trial, asked again over TCP\n";
    assert!(ended.stdout.contains(want), "{}", ended.stdout);
}

/// A scenario with these steps for the server at `address`.
fn scenario(name: &str, address: &str, steps: &str) -> TempPath {
    let text = format!("target: dns://{address}\nsessions:\n  user:\n    steps:\n{steps}");
    TempPath::with(name, &text)
}

#[test]
fn steps_of_a_scenario_are_queries() {
    let server = serve(&["--records", "40"]);
    let steps = "      - get: /www.example.com?type=A\n\
                 \x20     - get: /${random(1,1000000)}.example.com?type=TXT\n\
                 \x20     - { get: '/no.${uuid()}.test?type=A', on_failure: continue }\n";
    let file = scenario("dns-steps.yaml", &server.address, steps);
    for load in [&["--vusers", "3"][..], &["-R", "200"]] {
        let trial = trial(file.str(), &[load, &["-n", "40"]].concat());
        let outcomes = &trial["outcomes"];
        assert_eq!((&outcomes["ok"], &outcomes["dns_nxdomain"]), (&80.into(), &40.into()));
        // Whoever asks for an address is asked to come over TCP.
        assert_eq!(trial["truncated_answers"], 40, "{trial:#}");
    }
    let steps = "      - get: /${random(1,9)}..example.com\n";
    let ended = run(&["run", scenario("dns-empty.yaml", &server.address, steps).str(), "-n", "1"]);
    assert!(ended.stderr.contains("empty label"), "{}", ended.stderr);
    let step = "      - get: /a?type=X${random(1,9)}\n";
    let file = scenario("dns-kinds.yaml", &server.address, step);
    let trial = trial(file.str(), &["-n", "3"]);
    assert_eq!(trial["outcomes"]["unfit_value"], 3, "{trial:#}");
}

#[test]
fn steps_that_are_no_question_are_refused() {
    for (step, want) in [
        ("{ post: /a, body: x }", "a question alone"),
        ("{ get: /a, headers: { A: b } }", "a question alone"),
        ("{ get: /a, expect: { status: 200 } }", "neither 'extract' nor 'expect'"),
        ("{ get: /a?type=AX }", "'AX' is no type"),
    ] {
        let file = scenario("dns-none.yaml", "127.0.0.1:9", &format!("      - {step}\n"));
        let ended = run(&["run", file.str(), "-n", "1"]);
        assert_eq!(ended.status, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(want), "{want}: {}", ended.stderr);
    }
}

#[test]
fn answers_that_match_nothing_are_in_the_text() {
    let server = DnsServer::start();
    let ended = run(&["run", &server.url("twice.a"), "-n", "5"]);
    // The run may end before the last one comes.
    let line = ended.stdout.lines().find(|line| line.contains("unmatched answers"));
    let line = line.unwrap_or_else(|| panic!("{}", ended.stdout));
    assert!(line.ends_with(", late, repeated or never asked for"), "{line}");
}

#[test]
fn users_of_one_port_that_run_out_of_ids_are_told() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = format!("dns://{}/a", silent.local_addr().unwrap());
    for (users, is_told) in [("65535", false), ("65600", true)] {
        // Users run out where all have asked before the first timeout. A busy host takes longer.
        let timeouts: &[&str] = if is_told { &["6s", "40s"] } else { &["6s"] };
        let report = timeouts.iter().find_map(|timeout| {
            let options = ["--vusers", users, "-c", "1", "-n", users, "-t", "1"];
            let report =
                measured(&[&["run", &url], &options[..], &["--timeout", timeout]].concat());
            let trial = &report["trials"][0];
            assert_eq!(trial["outcomes"]["timeout"].to_string(), users, "{:#}", trial["outcomes"]);
            (trial["ids_exhausted"].is_u64() == is_told).then_some(report)
        });
        let report = report.unwrap_or_else(|| panic!("{users} users: {is_told}"));
        let findings = report["findings"].as_array().unwrap();
        let told = findings.iter().any(|finding| finding["code"] == "ids_exhausted");
        assert_eq!(told, is_told, "{findings:#?}");
    }
}

const ZONE: &str = "\
$ORIGIN example.com.
$TTL 60
@ SOA ns1 host 1 3600 600 86400 60
@ NS ns1
ns1 A 192.0.2.1
www A 192.0.2.2
www AAAA 2001:db8::2
0/25 TXT rfc2317
";

/// nsd and knot with a zone of two names, as far as they are installed.
fn servers() -> Vec<HttpServer> {
    let nsd = launch("nsd", |site, port| {
        let zone = site.write("zone", ZONE);
        let at = site.directory();
        let text = format!(
            "server:\n ip-address: 127.0.0.1@{port}\n username: \"\"\n chroot: \"\"\n \
             zonesdir: \"{at}\"\n zonelistfile: \"{at}/list\"\n pidfile: \"{at}/pid\"\n \
             xfrdfile: \"{at}/xfrd\"\n xfrdir: \"{at}\"\n rrl-ratelimit: 0\n\
             remote-control:\n control-enable: no\n\
             zone:\n name: \"example.com\"\n zonefile: \"{zone}\"\n"
        );
        vec!["-d".to_owned(), "-c".to_owned(), site.write("nsd.conf", &text)]
    });
    let knot = launch("knotd", |site, port| {
        let zone = site.write("zone", ZONE);
        let at = site.directory();
        let text = format!(
            "server:\n  rundir: \"{at}\"\n  listen: 127.0.0.1@{port}\n\
             database:\n  storage: \"{at}\"\n\
             zone:\n  - domain: example.com\n    storage: \"{at}\"\n    file: \"{zone}\"\n"
        );
        vec!["-c".to_owned(), site.write("knot.conf", &text)]
    });
    [nsd, knot].into_iter().flatten().collect()
}

#[test]
fn servers_of_others_answer_every_query() {
    let file =
        TempPath::with("dns-names", "www.example.com A\n0/25.example.com TXT\nx.example.com A\n");
    for server in servers() {
        for scheme in ["dns", "dns+tcp"] {
            let url = format!("{scheme}://127.0.0.1:{}", server.port);
            let options = ["--targets", file.str(), "-R", "300", "-n", "300"];
            let trial = trial(&url, &options);
            assert_eq!(trial["outcomes"]["ok"], 200, "{url}: {:#}", trial["outcomes"]);
            assert_eq!(trial["outcomes"]["dns_nxdomain"], 100, "{url}: {:#}", trial["outcomes"]);
            let options =
                [&options[..], &["--edns", "1232", "--dnssec", "--no-recursion"]].concat();
            let trial = self::trial(&url, &options);
            assert_eq!(trial["outcomes"]["ok"], 200, "{url}: {:#}", trial["outcomes"]);
        }
    }
}
