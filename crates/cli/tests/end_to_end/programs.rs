//! Programs that steps of a scenario ask for values: what they receive, and what becomes of their
//! answers. Also answers that are late, wrong or missing.

use crate::support::{Ended, KneeServer, TempPath, backends, measured, program, run};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

/// What a program does beside reading questions: `answer(ask)` says what it answers.
const PROGRAM: &str = r#"#!/usr/bin/env python3
import json, os, sys, time
asked = 0
def hexed(ask):
    text = ask["method"] + " " + ask["path"] + " " + (ask["body"] or "")
    return text.encode().hex()
for line in sys.stdin:
    ask = json.loads(line)
    mode = sys.argv[1]
    asked += 1
    late = asked > 1
    values = {"signature": hexed(ask), "pid": os.getpid()}
    answer = {"id": ask["id"], "set": values}
    if mode == "slow":
        time.sleep(0.05)
    elif mode == "files":
        values["pid"] = ",".join(sorted(os.listdir("/proc/self/fd")))
    elif mode == "unnumbered":
        del answer["id"]
    elif mode == "reversed" and late:
        # Two at a time, the later one first.
        other = json.loads(sys.stdin.readline())
        print(json.dumps({"id": other["id"], "set": {"signature": hexed(other), "pid": 1}}))
    elif mode == "dies" and asked > 5:
        print("the key has expired", file=sys.stderr, flush=True)
        sys.exit(7)
    elif mode == "rubbish" and late:
        print("what?", flush=True)
        continue
    elif mode == "long" and late:
        values["signature"] = "x" * 100_000
    elif mode == "forgets" and late:
        del values["signature"]
    elif mode == "refuses" and late:
        answer = {"id": ask["id"], "error": "no key for this"}
    elif mode == "silent" and late:
        continue
    elif mode == "ends":
        print("no key", file=sys.stderr, flush=True)
        sys.exit(3)
    elif mode == "babbles":
        print("hello", flush=True)
        continue
    print(json.dumps(answer), flush=True)
"#;

/// A folder with a scenario and its program, gone when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("knee-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let folder = Folder(path);
        folder.put("sign.py", PROGRAM, 0o755);
        folder
    }

    fn put(&self, name: &str, text: &str, mode: u32) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// A scenario whose second step asks for a signature: `exec` is what stands behind that key.
    fn scenario(&self, url: &str, exec: &str, more: &str) -> String {
        let text = format!(
            "target: {url}\nsessions:\n  buyer:\n    steps:\n      - get: /cart\n{more}\n      - \
             post: /orders?id=${{uuid()}}\n        name: order\n        exec: {exec}\n        \
             gives: [signature, pid]\n        timeout: 500ms\n        json: {{n: \
             \"${{random(1,1000000)}}\", text: \"ä\\\"\"}}\n        headers: {{X-Signature: \
             \"${{signature}}\", X-Pid: \"${{pid}}\"}}\n"
        );
        self.put("orders.yaml", &text, 0o644)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What a server received of a POST.
struct Order {
    signature: String,
    pid: String,
    /// Method, path and body, as the program signs them.
    text: String,
}

type Orders = Arc<Mutex<Vec<Order>>>;

/// A server in this process that keeps what is posted.
fn shop() -> (String, Orders) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let orders = Orders::default();
    let kept = Arc::clone(&orders);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let kept = Arc::clone(&kept);
            thread::spawn(move || while serve(&stream, &kept).is_some() {});
        }
    });
    (url, orders)
}

/// One request and its response; `None` at the end.
fn serve(stream: &TcpStream, kept: &Orders) -> Option<()> {
    // Responses are awaited before the next request, so that nothing is read too far.
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).ok().filter(|n| *n > 0)?;
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length");
    let length: usize = length.map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    if first.starts_with("POST") {
        let path = first.split(' ').nth(1).unwrap();
        let header = |name: &str| headers.get(name).cloned().unwrap_or_default();
        kept.lock().unwrap().push(Order {
            signature: header("x-signature"),
            pid: header("x-pid"),
            text: format!("POST {path} {}", String::from_utf8(body).unwrap()),
        });
    }
    let mut stream = stream;
    let response = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    stream.write_all(response).ok()
}

fn hexed(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// Runs a scenario to its end, each user once more as often as `n` says.
fn load(file: &str, more: &[&str]) -> Value {
    let plain = ["run", file, "--allow-exec", "-d", "60s"];
    measured(&[&plain, more].concat())
}

fn outcome(report: &Value, name: &str) -> u64 {
    let count = &report["trials"][0]["outcomes"][name];
    count.as_u64().unwrap_or_default()
}

fn codes(report: &Value) -> BTreeSet<&str> {
    let findings = report["findings"].as_array().unwrap().iter();
    findings.map(|f| f["code"].as_str().unwrap()).collect()
}

#[test]
fn signatures_arrive_exactly_from_one_process_for_each_worker() {
    if program("python3").is_none() {
        return;
    }
    let (url, orders) = shop();
    let folder = Folder::new("signed");
    for backend in backends(&url) {
        let workers = ["--threads", "2", "--vusers", "6", "-n", "60"];
        let file = folder.scenario(&url, "[./sign.py, plain]", "      - think: 1ms");
        let report = load(&file, &[&workers[..], &["--backend", backend]].concat());
        assert_eq!(outcome(&report, "ok"), 120, "{report:#}");
        let orders = std::mem::take(&mut *orders.lock().unwrap());
        assert_eq!(orders.len(), 60);
        for order in &orders {
            assert_eq!(order.signature, hexed(&order.text), "{}", order.text);
        }
        let pids: BTreeSet<_> = orders.iter().map(|order| order.pid.as_str()).collect();
        assert_eq!(pids.len(), 2, "{pids:?}");
        for pid in pids {
            assert!(!Path::new("/proc").join(pid).exists(), "{pid} is left over");
        }
        let answers = &report["trials"][0]["sessions"]["programs"]["answer_ns"];
        assert_eq!(answers["count"], 60, "{answers:#}");
        assert!(!codes(&report).contains("program_failed"), "{report:#}");
    }
}

/// Gives the values without which the shop accepts nothing into a cart, from those it receives.
const CLERK: &str = r#"#!/usr/bin/env python3
import json, sys
for line in sys.stdin:
    ask = json.loads(line)
    told = ask["variables"]
    given = {"authorization": "Bearer " + told["token"], "id": told["item"]}
    print(json.dumps({"id": ask["id"], "set": given}), flush=True)
"#;

const CART: &str = r#"
sessions:
  buyer:
    steps:
      - post: /login
        json: {name: "user-${seq()}", password: secret}
        extract: {token: {json: /token}}
      - {get: "/items?page=${random(1,50)}", extract: {item: {json: /items/0/id}}}
      - think: 1ms
      - post: /cart
        exec: ./clerk.py
        gives: [authorization, id]
        headers: {Authorization: "${authorization}"}
        form: {id: "${id}"}
        expect: {status: 201, body: {json: /ok, equals: true}}
      - {get: /cart, expect: {body: {contains: "${item}"}}}
"#;

#[test]
fn values_arrive_over_every_version_of_http_and_over_tls() {
    if program("python3").is_none() {
        return;
    }
    let folder = Folder::new("clerk");
    folder.put("clerk.py", CLERK, 0o755);
    for (tls, version) in
        [(false, "--http2-prior-knowledge"), (true, "--http1.1"), (true, "--http2")]
    {
        let options: &[&str] = if tls { &["--tls"] } else { &[] };
        let server = KneeServer::start(&[&["--app", "shop"], options].concat());
        let text = format!("target: {}{CART}", server.url());
        let file = folder.put("cart.yaml", &text, 0o644);
        let trust = server.certificate.as_deref().map(|file| ["--cacert", file]);
        let trust = trust.as_ref().map_or(&[][..], |trust| trust);
        let users = ["--threads", "2", "--vusers", "8", "-n", "80", version];
        let report = load(&file, &[&users[..], trust].concat());
        assert_eq!(outcome(&report, "ok"), 320, "{version}: {report:#}");
        let trial = &report["trials"][0];
        assert_eq!(trial["sessions"]["kinds"][0]["completed"], 80);
        assert_eq!(trial["sessions"]["programs"]["answer_ns"]["count"], 80);
        assert_eq!(trial["protocol"]["tls"].is_null(), !tls, "{trial:#}");
    }
}

#[test]
fn answers_find_their_steps_in_any_order_and_without_numbers() {
    if program("python3").is_none() {
        return;
    }
    let (url, orders) = shop();
    let folder = Folder::new("order");
    // Two users of one worker, so that there are always two questions in the end.
    for mode in ["reversed", "unnumbered"] {
        let file = folder.scenario(&url, &format!("[./sign.py, {mode}]"), "      - think: 5ms");
        let report = load(&file, &["--threads", "1", "--vusers", "2", "-n", "20"]);
        assert_eq!(outcome(&report, "ok"), 40, "{mode}: {report:#}");
        for order in std::mem::take(&mut *orders.lock().unwrap()) {
            assert_eq!(order.signature, hexed(&order.text), "{mode}");
        }
    }
}

#[test]
fn a_program_has_no_descriptors_but_its_pipes() {
    if program("python3").is_none() {
        return;
    }
    let (url, orders) = shop();
    let folder = Folder::new("files");
    let file = folder.scenario(&url, "[./sign.py, files]", "      - think: 1ms");
    load(&file, &["--threads", "2", "--vusers", "4", "-n", "8"]);
    let orders = orders.lock().unwrap();
    assert!(!orders.is_empty());
    // The last is of the folder that it lists.
    assert!(orders.iter().all(|order| order.pid == "0,1,2,3"), "{}", orders[0].pid);
}

/// Mean times of the step that asks, and what steps waited for the program on average.
fn timing(report: &Value) -> (u64, u64, u64) {
    let targets = report["trials"][0]["targets"].as_array().unwrap();
    let order = targets.iter().find(|t| t["target"] == "order").unwrap();
    let mean = &order["step"]["mean_ns"];
    let of = |stage: &str| mean[stage].as_u64().unwrap_or_default();
    let late = &report["trials"][0]["sessions"]["programs"]["late_ns"]["mean"];
    let rest = of("first_byte") + of("receive") + of("write");
    (of("pacing"), rest, late.as_u64().unwrap())
}

#[test]
fn what_a_step_waits_for_its_program_is_the_generators_delay() {
    if program("python3").is_none() {
        return;
    }
    const MS: u64 = 1_000_000;
    let (url, _) = shop();
    let folder = Folder::new("late");
    let users = ["--vusers", "1", "-n", "4"];
    let at_once = folder.scenario(&url, "[./sign.py, slow]", "");
    // A busy host may hold up the target too.
    let is_the_programs = |report: &Value| {
        let (pacing, rest, late) = timing(report);
        assert!(pacing >= 50 * MS && late >= 50 * MS, "{report:#}");
        assert!(codes(report).contains("program_late"), "{report:#}");
        rest < pacing / 2
    };
    let mut attempts = (0..5).map(|_| load(&at_once, &users));
    assert!(attempts.any(|report| is_the_programs(&report)), "most is of the target, 5 times");

    // In a pause that is long enough for it, it delays nothing. On a busy host that is longer.
    let in_a_pause = |seconds: u32| {
        let think = format!("      - think: {seconds}s");
        load(&folder.scenario(&url, "[./sign.py, slow]", &think), &users)
    };
    let is_in_time = |report: &Value| {
        let (pacing, _, late) = timing(report);
        pacing < 50 * MS && late < 50 * MS
    };
    let report = [1, 4, 16].into_iter().map(in_a_pause).find(is_in_time);
    let report = report.expect("a pause of 16 s is long enough");
    let answer = &report["trials"][0]["sessions"]["programs"]["answer_ns"]["min"];
    assert!(answer.as_u64().unwrap() >= 49 * MS, "it took its time all the same");
}

#[test]
fn silent_program_fails_steps_and_makes_the_trial_invalid() {
    if program("python3").is_none() {
        return;
    }
    let (url, _) = shop();
    let folder = Folder::new("failing");
    for (mode, want, ends) in [
        ("dies", "ended (exit status: 7); its last line on standard error: the key", true),
        ("rubbish", "wrote 'what?', which is no answer", false),
        ("long", "wrote a line of more than 64 KiB", false),
        ("forgets", "gave no value for 'signature'", false),
        ("refuses", "answered with the error 'no key for this'", false),
        ("silent", "did not answer within the step's time limit", false),
    ] {
        let exec = format!("[./sign.py, {mode}]");
        let file = folder.scenario(&url, &exec, "      - think: 1ms");
        let count = if ends { "1000" } else { "8" };
        let users = ["--threads", "1", "--vusers", "2", "-n", count];
        let report = load(&file, &users);
        let trial = &report["trials"][0];
        let context = || format!("{mode}: {trial:#}");
        assert_eq!(trial["verdict"], "invalid", "{}", context());
        let clauses = trial["invalid_clauses"].as_array().unwrap();
        assert!(clauses.iter().any(|c| c == "values_missing"), "{}", context());
        let because = trial["invalid_because"].to_string();
        assert!(because.contains(&want.replace('"', "\\\"")), "{because}");
        assert!(codes(&report).contains("program_failed"), "{}", context());
        let failed = outcome(&report, "program_failed");
        let sessions = &trial["sessions"]["kinds"][0];
        if ends {
            // One was answered before the load, and four after.
            assert!(failed >= 1 && outcome(&report, "ok") < 100, "{}", context());
        } else {
            assert_eq!((failed, &sessions["failed"]), (8, &8.into()), "{}", context());
        }
        assert_eq!(trial["sessions"]["programs"]["has_ended"], ends, "{}", context());
    }
}

fn refused(ended: &Ended, status: i32, wants: &[&str]) {
    assert_eq!(ended.status, Some(status), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    for want in wants {
        assert!(ended.stderr.contains(want), "{want}: {ended:?}");
    }
}

#[test]
fn a_program_that_is_not_ready_before_the_load_is_one_line() {
    if program("python3").is_none() {
        return;
    }
    let (url, orders) = shop();
    let folder = Folder::new("unready");
    folder.put("nobody.py", "#!/nowhere/python\n", 0o755);
    for (exec, status, wants) in [
        (
            "[./sign.py, ends]",
            2,
            &["exec ./sign.py (line ", "ended (exit status: 3)", "standard error: no key"][..],
        ),
        ("[./sign.py, babbles]", 2, &["wrote 'hello', which is no answer"]),
        ("./nobody.py", 4, &["exec ./nobody.py (line ", "could not be started: no such file"]),
    ] {
        let file = folder.scenario(&url, exec, "");
        let ended = run(&["run", &file, "--allow-exec", "-n", "5", "--threads", "1"]);
        refused(&ended, status, wants);
    }
    assert!(orders.lock().unwrap().is_empty());
}

#[test]
fn nothing_is_started_that_the_command_line_does_not_permit() {
    let (url, _) = shop();
    let folder = Folder::new("hostile");
    let trace = folder.0.join("started");
    folder.put("trace.sh", "#!/bin/sh\ntouch started\ncat\n", 0o755);
    folder.put("plain.txt", "no program\n", 0o644);
    let outside = TempPath::new("outside.sh");
    fs::write(&outside.0, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&outside.0, fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink(&outside.0, folder.0.join("link.sh")).unwrap();

    let file = folder.scenario(&url, "./trace.sh", "");
    let checked = run(&["scenario", "check", &file]);
    assert_eq!(checked.status, Some(0), "{checked:?}");
    for arguments in [&["run", &file, "-n", "1"][..], &["sweep", &file]] {
        let want = format!("{file}:9:15: exec starts the program './trace.sh'");
        refused(&run(arguments), 2, &[&want, "--allow-exec"]);
    }
    let fleet = ["run", &file, "--allow-exec", "--fleet", "nats://127.0.0.1:1"];
    refused(&run(&fleet), 2, &["--fleet: ", "agents have no files"]);
    assert!(!trace.exists(), "it was started");

    for (exec, want) in [
        ("./link.sh", "'./link.sh' is a link out of the folder"),
        ("../outside.sh", "is not below the folder of the scenario"),
        ("/bin/sh", "'/bin/sh' is not below the folder of the scenario"),
        ("./plain.txt", "is not executable: run chmod +x ./plain.txt"),
        ("./none.sh", "'./none.sh' cannot be started: no such file"),
        ("./", "is no file: expected a program"),
    ] {
        let file = folder.scenario(&url, exec, "");
        for arguments in [&["scenario", "check", &file][..], &["run", &file, "--allow-exec"]] {
            refused(&run(arguments), 2, &[&format!("{file}:9:15: "), want]);
        }
    }
}
