//! The dashboard for Grafana: its metrics are those that knee exports, and a Prometheus that
//! scrapes knee answers each of its queries.

use crate::support::{Ended, KneeServer, TempPath, knee, program, signal};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const DASHBOARD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/grafana/knee.json");

/// All values under this key, wherever they are.
fn values_of(key: &str, value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(text) if name == key => {
                        found.insert(text.clone());
                    }
                    _ => values_of(key, field, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| values_of(key, item, found)),
        _ => {}
    }
}

/// The queries of its panels.
fn queries() -> BTreeSet<String> {
    let dashboard = std::fs::read_to_string(DASHBOARD).unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    let mut found = BTreeSet::new();
    values_of("expr", &dashboard, &mut found);
    assert!(found.len() > 20, "{found:?}");
    found
}

/// The metrics in texts, without the suffixes of samples.
fn metrics_in<'a>(texts: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = texts.into_iter().flat_map(|text| text.split(|c| !is_of_name(c)));
    let names = words.filter(|word| word.starts_with("knee_")).map(|name| {
        let suffixes = ["_total", "_bucket", "_count", "_sum", "_info"];
        let cut = suffixes.iter().find_map(|suffix| name.strip_suffix(suffix));
        cut.unwrap_or(name).to_owned()
    });
    names.collect()
}

/// What knee measures in these tests, each with every kind of metric of its own.
struct Measured {
    server: KneeServer,
    scenario: TempPath,
}

impl Measured {
    fn start(name: &str) -> Measured {
        let server = KneeServer::start(&["--app", "shop"]);
        let url = server.url();
        let scenario = format!(
            "target: {}\nsessions:\n  whole:\n    steps:\n      - {{get: /, name: front}}\n  \
             broken:\n    steps:\n      - {{get: /missing, name: lost, expect: {{status: 200}}}}\n",
            url.trim_end_matches('/')
        );
        Measured { server, scenario: TempPath::with(&format!("{name}.yaml"), &scenario) }
    }

    /// A run with failures, one of sessions, flows and datagrams; each serves its metrics at the
    /// next of these ports.
    fn measure(&self, ports: &[u16]) -> Vec<Child> {
        let missing = format!("{}missing", self.server.url());
        let load = ["--rate", "50", "-d", "8s", "--warmup", "0s"];
        let commands = [
            [&["run", self.scenario.str()][..], &load].concat(),
            [&["run", &missing][..], &load].concat(),
            vec!["latency", "--quick"],
            vec!["udp", "-R", "100", "-d", "8s"],
        ];
        let always = ["--json", "/dev/null", "--no-save"];
        let start = |(command, port): (Vec<&str>, &u16)| {
            let mut command = knee(&[&command, &always[..]].concat());
            command.args(["--metrics", &format!("127.0.0.1:{port}")]);
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        };
        commands.into_iter().zip(ports).map(start).collect()
    }
}

/// Ports that were free just now.
fn free_ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

/// The body of the answer to a GET; `None`: nobody answers, or not with 200. What asks as
/// Prometheus does is waited for at the end of a run.
fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let as_prometheus = "X-Prometheus-Scrape-Timeout-Seconds: 1";
    write!(stream, "GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n{as_prometheus}\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.split(' ').nth(1).is_some_and(|status| status == "200").then(|| body.to_owned())
}

/// Ends what still runs.
fn end(runs: Vec<Child>) {
    for child in runs {
        signal(&child, libc::SIGINT);
        Ended::of(child);
    }
}

const PATIENCE: Duration = Duration::from_secs(100);

#[test]
fn its_metrics_are_those_that_knee_exports() {
    let queries = queries();
    let asked = metrics_in(queries.iter().map(String::as_str));
    let measured = Measured::start("exported");
    let ports = free_ports::<4>();
    let runs = measured.measure(&ports);
    let mut exported = BTreeSet::new();
    let begin = Instant::now();
    while exported != asked && begin.elapsed() < PATIENCE {
        for page in ports.iter().filter_map(|port| get(*port, "/metrics")) {
            let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
            let names = types.filter_map(|line| line.split(' ').next());
            exported.extend(names.map(str::to_owned));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    end(runs);
    assert_eq!(asked, exported);
}

#[test]
fn prometheus_answers_each_query() {
    let Some(prometheus) = program("prometheus") else {
        return;
    };
    let [port, ports @ ..] = free_ports::<5>();
    let targets = ports.map(|port| format!("'127.0.0.1:{port}'")).join(", ");
    let configuration = TempPath::with(
        "prometheus.yml",
        &format!(
            "scrape_configs:\n  - job_name: knee\n    scrape_interval: 1s\n    \
             static_configs: [{{targets: [{targets}]}}]\n"
        ),
    );
    let storage = TempPath::new("prometheus");
    let mut server = Command::new(prometheus);
    server.arg(format!("--config.file={}", configuration.str()));
    server.arg(format!("--storage.tsdb.path={}", storage.str()));
    server.arg(format!("--web.listen-address=127.0.0.1:{port}"));
    let mut server = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let unanswered = unanswered(port, &ports);
    let _ = server.kill();
    let _ = server.wait();
    let _ = std::fs::remove_dir_all(storage.str());
    assert_eq!(unanswered, BTreeMap::new());
}

/// The queries that Prometheus at `port` answers with nothing, each with its last answer.
fn unanswered(port: u16, ports: &[u16]) -> BTreeMap<String, String> {
    let begin = Instant::now();
    while get(port, "/-/ready").is_none() && begin.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(100));
    }
    let measured = Measured::start("queried");
    let runs = measured.measure(ports);
    let mut left: BTreeMap<_, _> =
        queries().into_iter().map(|query| (query, String::new())).collect();
    let begin = Instant::now();
    while !left.is_empty() && begin.elapsed() < PATIENCE {
        left.retain(|query, last| {
            let answer = get(port, &format!("/api/v1/query?query={}", encoded(query)));
            *last = answer.unwrap_or_default();
            let answer: Value = serde_json::from_str(last).unwrap_or_default();
            let result = answer["data"]["result"].as_array();
            result.is_none_or(Vec::is_empty)
        });
        std::thread::sleep(Duration::from_millis(200));
    }
    end(runs);
    left
}

/// A query with Grafana's variables filled in, as a component of a URL.
fn encoded(query: &str) -> String {
    let filled = query.replace("$__rate_interval", "10s").replace("$__range", "10m");
    let filled = filled.replace("$job", ".*").replace("$instance", ".*");
    let bytes = filled.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    bytes.collect()
}
