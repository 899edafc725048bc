//! Users written in JavaScript, from the command line.

use crate::support::http2_servers::Nginx;
use crate::support::{Certificates, Ended, KneeServer, TempPath, knee, measured, run, signal};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

/// A script in a folder of its own, which goes with the test.
struct Script(TempPath, PathBuf);

impl Script {
    fn new(name: &str, text: &str) -> Script {
        let folder = TempPath::new(&format!("scripts-{name}"));
        std::fs::create_dir_all(&folder.0).unwrap();
        let path = folder.0.join("main.js");
        std::fs::write(&path, text).unwrap();
        Script(folder, path)
    }

    fn with(self, name: &str, text: &str) -> Script {
        std::fs::write(self.0.0.join(name), text).unwrap();
        self
    }

    fn str(&self) -> &str {
        self.1.to_str().unwrap()
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0.0);
    }
}

/// A buyer of the reference server's shop.
const BUYER: &str = r"
import http from 'k6/http';
import { check, group, sleep } from 'k6';
import { Counter, Trend } from 'k6/metrics';
import { SharedArray } from 'k6/data';
import { base } from './base.js';
const orders = new Counter('orders');
const waiting = new Trend('waits', true);
const users = new SharedArray('users', () => JSON.parse(open('./users.json')));
export const options = {
  vus: 4, iterations: 40,
  thresholds: { checks: ['rate>0.9'], http_req_duration: ['p(95)<10000'], orders: ['count>39'] },
};
export function setup() { return { began: http.get(`${base}/items`).status }; }
export default function (data) {
  const user = users[__ITER % users.length];
  const login = http.post(`${base}/login`, JSON.stringify(user), { headers: { 'Content-Type': 'application/json' } });
  check(login, { 'logged in': (r) => r.status === 200, 'set up': () => data.began === 200 });
  const headers = { Authorization: `Bearer ${login.json('token')}` };
  group('browse', () => {
    const items = http.get(`${base}/items?page=1`, { headers });
    waiting.add(items.timings.waiting);
    const id = items.json('items.0.id');
    for (let i = 0; i < 3; i++) http.get(http.url`${base}/items/${id}`, { headers });
  });
  sleep(0.001);
  orders.add(1);
}
export function teardown(data) { http.get(`${base}/items`); }
";

fn buyer(url: &str) -> Script {
    let base = format!("export const base = '{}';\n", url.trim_end_matches('/'));
    let users = r#"[{"name":"a","password":"b"},{"name":"c","password":"d"}]"#;
    let port = url.trim_end_matches('/').rsplit(':').next().unwrap();
    Script::new(&format!("buyer-{port}"), BUYER).with("base.js", &base).with("users.json", users)
}

fn check_buyers(report: &Value, iterations: u64) {
    let trial = &report["trials"][0];
    let context = || format!("{trial:#}");
    let sessions = &trial["sessions"];
    assert_eq!(sessions["kinds"][0]["completed"], iterations, "{}", context());
    let attempted = |name: &str| {
        let targets = trial["targets"].as_array().unwrap();
        let row = targets.iter().find(|row| row["target"].as_str().unwrap().contains(name));
        row.unwrap_or_else(|| panic!("{name}: {}", context()))["attempted"].clone()
    };
    assert_eq!(attempted("POST /login"), iterations);
    assert_eq!(attempted("/items/${}"), 3 * iterations);
    let checks = sessions["script"]["checks"].as_array().unwrap();
    let names: Vec<_> = checks.iter().map(|check| check["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["logged in", "set up"]);
    assert!(checks.iter().all(|check| check["succeeded"] == iterations), "{}", context());
    assert_eq!(sessions["groups"][0]["group"], "browse");
    assert_eq!(sessions["groups"][0]["completed"], iterations);
    let metrics = sessions["script"]["metrics"].as_array().unwrap();
    assert_eq!(metrics[0]["value"], iterations as f64);
    assert_eq!(metrics[1]["trend"]["count"], iterations);
}

#[test]
fn a_script_runs_over_every_version_of_http() {
    for version in [&["--http1.1"][..], &["--http2-prior-knowledge"]] {
        let server = KneeServer::start(&["--app", "shop"]);
        let script = buyer(&server.url());
        let report = measured(&[&["run", script.str()], version].concat());
        check_buyers(&report, 40);
    }
    for version in ["--http1.1", "--http2"] {
        let server = KneeServer::start(&["--app", "shop", "--tls"]);
        let certificate = server.certificate.clone().unwrap();
        let script = buyer(&server.url());
        let trust = ["--cacert", &certificate, version];
        let report = measured(&[&["run", script.str()], &trust[..]].concat());
        check_buyers(&report, 40);
    }
}

#[test]
fn the_command_line_wins_over_options() {
    let server = KneeServer::start(&["--app", "shop"]);
    let script = buyer(&server.url());
    let report = measured(&["run", script.str(), "--vusers", "2", "-n", "7"]);
    check_buyers(&report, 7);
    let report = measured(&["run", script.str(), "--rate", "50", "-d", "1s", "--warmup", "0"]);
    let kind = &report["trials"][0]["sessions"]["kinds"][0];
    assert!(kind["completed"].as_u64().unwrap() > 30, "{kind:#}");
}

#[test]
fn batches_are_under_way_at_once_and_promises_settle() {
    let server = KneeServer::start(&[]);
    let text = format!(
        "import http from 'k6/http'; const u = '{}';\n\
         export default async function () {{\n\
           const all = http.batch([['GET', u + 'a'], ['GET', u + 'b'], {{ method: 'POST', url: u + 'c', body: 'x' }}]);\n\
           const [one] = await Promise.all([http.asyncRequest('GET', u + 'd'), http.asyncRequest('GET', u + 'e')]);\n\
           if (all.length !== 3 || all[2].status !== 200 || one.status !== 200) throw new Error('wrong');\n\
         }}",
        server.url()
    );
    let script = Script::new("batch", &text);
    let report = measured(&["run", script.str(), "-n", "20", "--vusers", "4"]);
    let trial = &report["trials"][0];
    assert_eq!(trial["sessions"]["kinds"][0]["completed"], 20, "{trial:#}");
    assert_eq!(trial["outcomes"]["ok"], 100, "{trial:#}");
}

#[test]
fn what_fails_is_an_outcome_with_samples() {
    let server = KneeServer::start(&[]);
    let text = format!(
        "import http from 'k6/http';\nexport default function () {{\n  http.get('{}');\n  \
         if (__ITER % 2 === 1) null.x;\n  if (__VU === 2) while (true);\n}}",
        server.url()
    );
    let script = Script::new("fails", &text);
    let ended = run(&[
        "run",
        script.str(),
        "-n",
        "12",
        "--vusers",
        "2",
        "--script-time",
        "20ms",
        "--json",
        "-",
    ]);
    let report: Value = serde_json::from_str(&ended.stdout).expect(&ended.stdout);
    let found = &report["trials"][0]["sessions"]["script"];
    assert!(found["failed"].as_u64().unwrap() >= 6, "{found:#}");
    let failures = found["failures"].as_array().unwrap();
    assert!((1..=3).contains(&failures.len()));
    for failure in failures {
        let line = failure.as_str().unwrap();
        assert!(line.starts_with("main.js:4:") || line.contains("--script-time"), "{line}");
    }
}

#[test]
fn options_of_connections_and_users_are_followed() {
    let server = KneeServer::start(&["--app", "shop", "--tls"]);
    let port = server.url().trim_end_matches('/').rsplit(':').next().unwrap().to_owned();
    let text = format!(
        "import http from 'k6/http'; import {{ sleep }} from 'k6';\n\
         export const options = {{ insecureSkipTLSVerify: true, noConnectionReuse: true,\n\
           hosts: {{ '*.shop.test': '127.0.0.1' }}, setupTimeout: '5s',\n\
           thresholds: {{ 'http_req_duration{{kind:a}}': ['max<60000'], 'http_reqs{{kind:a}}': ['count>5'] }},\n\
           scenarios: {{ each: {{ executor: 'per-vu-iterations', vus: 3, iterations: 2 }} }} }};\n\
         export default function () {{\n\
           if (http.get('https://www.shop.test:{port}/items', {{ tags: {{ kind: 'a' }} }}).status !== 200) throw new Error('wrong');\n\
           if (__VU === 1) sleep(0.3);\n\
           if (__ITER > 1) throw new Error('too many');\n\
         }}"
    );
    let script = Script::new("options", &text);
    let report = measured(&["run", script.str(), "--threads", "2"]);
    let trial = &report["trials"][0];
    assert_eq!(trial["sessions"]["kinds"][0]["completed"], 6, "{trial:#}");
    assert_eq!(trial["sessions"]["script"]["failed"], 0, "{trial:#}");
    assert_eq!(trial["connections_opened"], 6, "{trial:#}");
    let metrics = trial["sessions"]["script"]["metrics"].as_array().unwrap();
    let counted = metrics.iter().find(|metric| metric["metric"] == "http_reqs{kind:a}");
    assert_eq!(counted.unwrap()["value"], 6.0);
}

#[test]
fn what_a_script_computes_is_a_stage_of_the_response_time() {
    let server = KneeServer::start(&[]);
    let text = format!(
        "import http from 'k6/http';\n\
         export default () => {{\n\
           const end = Date.now() + 20; while (Date.now() < end);\n\
           http.get('{0}'); http.get('{0}');\n\
         }}",
        server.url()
    );
    let script = Script::new("stage", &text);
    let report = measured(&["run", script.str(), "-R", "10", "-n", "5", "--warmup", "0"]);
    let trial = &report["trials"][0];
    // Half of the requests begin an iteration.
    let mean_ns = trial["anatomy"][0]["mean_ns"]["script"].as_u64().expect("a stage");
    assert!(mean_ns >= 9_000_000, "{trial:#}");
}

#[test]
fn servers_are_shown_the_certificates_of_tls_auth() {
    let certificates = Certificates::new();
    let nginx = Nginx { more: "ssl_verify_client on;", ..Nginx::PLAIN };
    let Some(nginx) = nginx.start(&certificates) else { return };
    let url = nginx.secure_url("small").replace("localhost", "127.0.0.1");
    let [cert, key] = [&certificates.client, &certificates.client_key]
        .map(|file| std::fs::read_to_string(file.str()).unwrap());
    // the domains of the certificate, whether the server is shown it
    for (domains, is_shown) in [
        ("", true),
        ("domains: ['127.0.0.1'],", true),
        ("domains: ['a.test', '*.0.0.1'],", true),
        ("domains: ['a.test'],", false),
    ] {
        let text = format!(
            "import http from 'k6/http';\n\
             export const options = {{ insecureSkipTLSVerify: true, iterations: 3,\n\
               tlsAuth: [{{ {domains} cert: open('cert.pem'), key: open('key.pem') }}] }};\n\
             export default () => {{ http.get('{url}'); }}"
        );
        let script = Script::new("tls-auth", &text).with("cert.pem", &cert).with("key.pem", &key);
        let trial = &measured(&["run", script.str()])["trials"][0];
        let outcome = if is_shown { "ok" } else { "http_4xx" };
        assert_eq!(trial["outcomes"][outcome], 3, "{domains} {trial:#}");
        assert!(!trial.to_string().contains("PRIVATE KEY"));
    }
}

#[test]
fn wrong_scripts_are_one_line() {
    for (text, want) in [
        ("let x = ;", "main.js:1:9: SyntaxError"),
        ("import './none.js'", "none.js"),
        (
            "import b from 'k6/browser';\nexport default () => {}",
            "main.js:1:15: import 'k6/browser'",
        ),
        ("export default () => {}", "it sends no request"),
        ("export const x = 1;", "it exports no default function"),
        ("export const options = { dns: {} }; export default () => {}", "options: 'dns'"),
        (
            "export const options = { tlsAuth: [{}] }; export default () => {}",
            "missing field `cert`",
        ),
        (
            "import http from 'k6/http'; export const options = { tlsAuth: [{ cert: 'x', key: 'y' }] };\n\
             export default () => { http.get('https://127.0.0.1:9/'); }",
            "options.tlsAuth: cert: holds no certificate in PEM form",
        ),
        (
            "export const options = { tlsAuth: [{ cert: '', key: '', password: 'p' }] };\n\
             export default () => {}",
            "keys with a password",
        ),
        ("while (true);", "--script-time"),
    ] {
        let script = Script::new("wrong", text);
        let ended = run(&["run", script.str(), "--script-time", "100ms"]);
        assert_eq!(ended.status, Some(2), "{text}: {ended:?}");
        assert!(ended.stderr.contains(want), "{text}: {}", ended.stderr);
        assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{text}: {}", ended.stderr);
    }
    let ended = run(&["run", "none-of-this-name.js"]);
    assert_eq!(ended.status, Some(2), "{ended:?}");
}

#[test]
fn a_failing_setup_ends_the_command() {
    let server = KneeServer::start(&[]);
    let text = format!(
        "import http from 'k6/http';\nexport function setup() {{ http.get('{0}'); throw new \
         Error('no account'); }}\nexport default () => {{ http.get('{0}'); }}",
        server.url()
    );
    let script = Script::new("setup", &text);
    let ended = run(&["run", script.str()]);
    assert_eq!(ended.status, Some(4), "{ended:?}");
    assert!(ended.stderr.contains("no account"), "{}", ended.stderr);
}

#[test]
fn failed_iterations_follow_at_once_and_are_said() {
    let server = KneeServer::start(&[]);
    let text = format!(
        "import http from 'k6/http';\nexport default () => {{ http.get('{}'); console.warn('hm'); null.x; }}",
        server.url()
    );
    let script = Script::new("throws", &text);
    let ended = run(&["run", script.str(), "-n", "300", "--vusers", "1"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("300 iterations failed"), "{}", ended.stdout);
    assert!(!ended.stdout.contains("no errors"), "{}", ended.stdout);
    assert!(
        ended.stderr.lines().filter(|line| *line == "warn: hm").count() > 200,
        "{}",
        ended.stderr
    );
}

#[test]
fn a_script_that_says_failed_fails_the_command() {
    let server = KneeServer::start(&[]);
    for (rest, status, want) in [
        ("exec.test.abort('enough');", 1, "the script ended the test: enough"),
        ("exec.test.fail('bad');", 1, "the script marked the test as failed: bad"),
        ("} export function teardown() { throw new Error('left');", 1, "left"),
        ("", 0, ""),
    ] {
        let text = format!(
            "import http from 'k6/http'; import exec from 'k6/execution';\n\
             export default function () {{ http.get('{}'); {rest} }}",
            server.url()
        );
        let script = Script::new("marks", &text);
        let ended = run(&["run", script.str(), "-n", "5", "--vusers", "1"]);
        assert_eq!(ended.status, Some(status), "{rest}: {ended:?}");
        assert!(ended.stderr.contains(want), "{rest}: {}", ended.stderr);
    }
    let text = "import exec from 'k6/execution'; exec.test.abort('no');";
    let ended = run(&["run", Script::new("marks-init", text).str()]);
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("the script ended the test: no"), "{}", ended.stderr);
}

#[test]
fn servers_that_are_not_there_are_responses() {
    let server = KneeServer::start(&[]);
    let text = format!(
        "import http from 'k6/http';\nconst ns = '<e xmlns=\"http://schemas.soap.invalid/e\"/>';\n\
         export default () => {{\n  const down = http.get('http://127.0.0.1:1/');\n  \
         if (http.post('{}', ns).status !== 200 || down.json === 1) throw new Error('wrong');\n  \
         if (down.status === 0 && down.error_code !== 1212) throw new Error('code');\n  \
         null.x;\n}}",
        server.url()
    );
    let script = Script::new("down", &text);
    let ended = run(&["run", script.str(), "-n", "5", "--vusers", "1", "--json", "-"]);
    let report: Value = serde_json::from_str(&ended.stdout).expect(&ended.stdout);
    let outcomes = &report["trials"][0]["outcomes"];
    assert_eq!((&outcomes["ok"], &outcomes["refused"]), (&5.into(), &5.into()), "{outcomes:#}");
    let failures = report["trials"][0]["sessions"]["script"]["failures"].to_string();
    assert!(failures.contains("main.js:7:"), "{failures}");
}

#[test]
fn scenarios_that_differ_in_function_and_variables_are_one_load() {
    let server = KneeServer::start(&[]);
    let text = format!(
        "import http from 'k6/http';\nconst one = {{ executor: 'per-vu-iterations', vus: 1, iterations: 2 }};\n\
         export const options = {{ scenarios: {{ a: {{ ...one, exec: 'fa', env: {{ W: 'A' }} }}, \
         b: {{ ...one, exec: 'fb', env: {{ W: 'B' }} }} }} }};\n\
         export function fa() {{ http.get('{0}a' + __ENV.W); }}\n\
         export function fb() {{ http.get('{0}b' + __ENV.W); }}",
        server.url()
    );
    let script = Script::new("both", &text);
    let report = measured(&["run", script.str()]);
    let targets = report["trials"][0]["targets"].as_array().unwrap();
    let rows =
        targets.iter().map(|row| (row["target"].as_str().unwrap(), row["attempted"].as_u64()));
    assert_eq!(rows.collect::<Vec<_>>(), [("GET /aA", Some(2)), ("GET /bB", Some(2))]);
}

#[test]
fn scenarios_of_different_loads_keep_their_users() {
    let server = KneeServer::start(&[]);
    let script = |name: &str, scenarios: &str| {
        let text = format!(
            "import http from 'k6/http'; import {{ sleep }} from 'k6';\n\
             export const options = {{ scenarios: {{ {scenarios} }} }};\n\
             export function fa() {{ http.get('{0}a'); sleep(0.01); }}\n\
             export function fb() {{ http.get('{0}b'); sleep(0.01); }}",
            server.url()
        );
        Script::new(name, &text)
    };
    let both = script(
        "mixed",
        "a: { executor: 'shared-iterations', vus: 3, iterations: 10, exec: 'fa' }, \
         b: { executor: 'per-vu-iterations', vus: 2, iterations: 4, startTime: '100ms', exec: 'fb' }",
    );
    for threads in ["1", "2"] {
        let report = measured(&["run", both.str(), "--threads", threads]);
        let kinds = &report["trials"][0]["sessions"]["kinds"];
        assert_eq!((&kinds[0]["completed"], &kinds[1]["completed"]), (&10.into(), &8.into()));
    }
    let rates = script(
        "rates",
        "a: { executor: 'constant-arrival-rate', rate: 40, duration: '500ms', preAllocatedVUs: 2, exec: 'fa' }, \
         b: { executor: 'constant-arrival-rate', rate: 40, duration: '500ms', startTime: '500ms', preAllocatedVUs: 2, exec: 'fb' }",
    );
    let report = measured(&["run", rates.str()]);
    let targets = report["trials"][0]["targets"].as_array().unwrap();
    let rows =
        targets.iter().map(|row| (row["target"].as_str().unwrap(), row["attempted"].as_u64()));
    assert_eq!(rows.collect::<Vec<_>>(), [("GET /a", Some(20)), ("GET /b", Some(20))]);
    let ended = run(&[
        "run",
        script(
            "rate-and-users",
            "a: { executor: 'constant-vus', vus: 1, duration: '1s', exec: 'fa' }, \
             b: { executor: 'constant-arrival-rate', rate: 1, duration: '1s', preAllocatedVUs: 1, exec: 'fb' }",
        )
        .str(),
    ]);
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("'b' has a rate and 'a' has users"), "{}", ended.stderr);
}

#[test]
fn iterations_are_numbered_within_their_scenario() {
    let server = KneeServer::start(&[]);
    let text = format!(
        "import http from 'k6/http'; import exec from 'k6/execution';\n\
         export const options = {{ scenarios: {{ \
         a: {{ executor: 'shared-iterations', vus: 3, iterations: 10 }}, \
         b: {{ executor: 'per-vu-iterations', vus: 2, iterations: 4 }} }} }};\n\
         export default () => {{ http.get('{}'); \
         console.warn(exec.scenario.name + exec.scenario.iterationInTest); }}",
        server.url()
    );
    let script = Script::new("numbers", &text);
    let ended = run(&["run", script.str(), "--threads", "2"]);
    let mut said: Vec<_> = ended.stderr.lines().filter_map(|l| l.strip_prefix("warn: ")).collect();
    said.sort_unstable();
    let want: Vec<_> =
        (0..10).map(|n| format!("a{n}")).chain((0..8).map(|n| format!("b{n}"))).collect();
    assert_eq!(said, want, "{}", ended.stderr);
}

#[test]
fn each_scenario_has_its_own_time_to_end_iterations() {
    let server = KneeServer::start(&[]);
    let text = format!(
        "import http from 'k6/http'; import {{ sleep }} from 'k6'; import exec from 'k6/execution';\n\
         const one = {{ executor: 'constant-vus', vus: 1, duration: '500ms' }};\n\
         export const options = {{ scenarios: {{ a: {{ ...one, gracefulStop: '0s' }}, b: one }} }};\n\
         export default () => {{ http.get('{}'); sleep(0.7); console.warn('ended ' + exec.scenario.name); }}",
        server.url()
    );
    let script = Script::new("own-ends", &text);
    let ended = run(&["run", script.str()]);
    let has = |name: &str| ended.stderr.contains(&format!("warn: ended {name}"));
    assert_eq!((has("a"), has("b")), (false, true), "{}", ended.stderr);
}

#[test]
fn a_script_that_cannot_be_ended_ends_by_a_signal() {
    let server = KneeServer::start(&[]);
    // Nothing looks at the time within this. The response before the load has no body.
    let text = format!(
        "import http from 'k6/http';\n\
         export default () => {{ if (http.get('{}').body) {{ console.warn('begins'); \
         http.get('{0}'); new Set(new Array(4e9)); }} }}",
        server.url()
    );
    let script = Script::new("stuck", &text);
    let mut child = knee(&["run", script.str(), "--vusers", "1", "-d", "60s"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains("begins")));
    signal(&child, libc::SIGINT);
    assert_eq!(Ended::within(Duration::from_secs(25), child).status, Some(130));
}

#[test]
fn iterations_under_way_at_the_end_finish_unmeasured() {
    let server = KneeServer::start(&[]);
    for (graceful, requests) in [("", 2), ("gracefulStop: '0s',", 1)] {
        let text = format!(
            "import http from 'k6/http'; import {{ sleep }} from 'k6';\n\
             export const options = {{ scenarios: {{ s: {{ executor: 'constant-vus', {graceful} \
             vus: 1, duration: '500ms' }} }} }};\n\
             export default () => {{ http.get('{0}a'); sleep(0.7); http.get('{0}b'); console.warn('sent'); }}",
            server.url()
        );
        let script = Script::new("graceful", &text);
        let ended = run(&["run", script.str(), "--json", "-"]);
        let report: Value = serde_json::from_str(&ended.stdout).expect(&ended.stdout);
        assert_eq!(report["trials"][0]["outcomes"]["ok"], 1, "{graceful}");
        assert_eq!(ended.stderr.contains("warn: sent"), requests == 2, "{}", ended.stderr);
    }
}

#[test]
fn requests_under_way_at_the_end_end_with_their_iterations() {
    let server = KneeServer::start(&["--service", "30s"]);
    for executor in [
        "executor: 'constant-vus', vus: 1, duration: '500ms'",
        "executor: 'per-vu-iterations', vus: 1, iterations: 2, maxDuration: '500ms'",
    ] {
        let text = format!(
            "import http from 'k6/http';\n\
             export const options = {{ scenarios: {{ s: {{ {executor}, gracefulStop: '100ms' }} }} }};\n\
             export default () => {{ http.get('{}'); }}",
            server.url()
        );
        let script = Script::new("under-way", &text);
        let ended = run(&["run", script.str(), "--json", "-"]);
        let report: Value = serde_json::from_str(&ended.stdout).expect(&ended.stdout);
        assert_eq!(report["trials"][0]["outcomes"]["in_flight"], 1, "{executor}: {report:#}");
    }
}

#[test]
fn thresholds_of_metrics_that_a_script_does_not_have_are_refused() {
    let text = "import http from 'k6/http'; import { Counter } from 'k6/metrics';\n\
                const orders = new Counter('orders');\n\
                export default () => { http.get('http://127.0.0.1:9/'); }";
    let script = Script::new("no-metric", text);
    for (threshold, want) in [
        ("metric oders count>1", "there is no metric 'oders': expected one of orders, checks"),
        ("metric orders p(95)>1", "metric orders has count, rate"),
    ] {
        let ended = run(&["run", script.str(), "--fail-if", threshold]);
        assert_eq!(ended.status, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(want), "{}", ended.stderr);
    }
}

#[test]
fn a_script_that_aborts_ends_the_users_of_all_workers() {
    let server = KneeServer::start(&[]);
    let text = format!(
        "import http from 'k6/http'; import exec from 'k6/execution'; import {{ sleep }} from 'k6';\n\
         export const options = {{ vus: 4, duration: '10m' }};\n\
         export default () => {{ http.get('{}'); if (__VU === 1) exec.test.abort('enough'); sleep(300); }}",
        server.url()
    );
    let script = Script::new("aborts-all", &text);
    let ended = run(&["run", script.str(), "--threads", "2"]);
    assert_eq!(ended.status, Some(1), "{ended:?}");
}

#[test]
fn thresholds_of_k6_are_judged_and_pass_without_values() {
    let server = KneeServer::start(&[]);
    for (thresholds, status) in [
        (
            "{ waits: ['p(97)<5', 'avg==4', 'max<=7'], http_reqs: ['count>0'], checks: ['rate>0.9'] }",
            0,
        ),
        (
            "{ 'http_req_duration{kind:none}': ['p(95)<1'], none: ['count<1'], iterations: ['count==3'] }",
            0,
        ),
        ("{ http_reqs: ['count>99'] }", 1),
        ("{ waits: ['avg>4'] }", 1),
        ("{ group_duration: ['avg<0'] }", 1),
    ] {
        let text = format!(
            "import http from 'k6/http'; import {{ group }} from 'k6'; import {{ Counter, Trend }} from 'k6/metrics';\n\
             const waits = new Trend('waits'); new Counter('none');\n\
             export const options = {{ iterations: 3, thresholds: {thresholds} }};\n\
             export default () => {{ group('g', () => http.get('{}')); waits.add(4); }}",
            server.url()
        );
        let script = Script::new("thresholds", &text);
        let ended = run(&["run", script.str()]);
        assert_eq!(ended.status, Some(status), "{thresholds}: {ended:?}");
        assert!(!ended.stdout.contains("waits: 3 values, mean 4 ms"), "{}", ended.stdout);
    }
}

#[test]
fn what_handle_summary_returns_is_written() {
    let server = KneeServer::start(&[]);
    let summarized = |body: &str, options: &[&str]| {
        let text = format!(
            "import http from 'k6/http'; import {{ check, group }} from 'k6';\n\
             import {{ textSummary }} from 'https://jslib.k6.io/k6-summary/0.0.2/index.js';\n\
             export const options = {{ vus: 2, iterations: 4, thresholds: {{ http_reqs: ['count==4'] }} }};\n\
             export const setup = () => ({{ a: 1 }});\n\
             export default () => group('g', () => check(http.get('{}'), {{ ok: (r) => r.status === 200 }}));\n\
             export function handleSummary(data) {{ {body} }}",
            server.url()
        );
        let script = Script::new(&format!("summary-{}", body.len()), &text);
        let mut command = knee(&[&["run", script.str()], options].concat());
        let ended = Ended::of(command.current_dir(&script.0.0).spawn().unwrap());
        let file = std::fs::read_to_string(script.0.0.join("data.json"));
        (ended, file.ok().map(|text| serde_json::from_str::<Value>(&text).unwrap()))
    };
    let all = "return { 'data.json': JSON.stringify(data), stdout: textSummary(data), stderr: 'to people' }";
    let (ended, data) = summarized(all, &[]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let data = data.unwrap();
    let metrics = &data["metrics"];
    assert_eq!(metrics["http_reqs"]["values"]["count"], 4.0, "{data:#}");
    assert_eq!(metrics["http_reqs"]["thresholds"]["count==4"]["ok"], true, "{data:#}");
    assert_eq!(metrics["iterations"]["values"]["count"], 4.0, "{data:#}");
    assert_eq!(metrics["checks"]["values"]["passes"], 4, "{data:#}");
    assert_eq!(metrics["vus"]["values"]["value"], 2, "{data:#}");
    assert!(metrics["http_req_duration"]["values"]["avg"].as_f64().unwrap() > 0.0, "{data:#}");
    assert_eq!(data["root_group"]["groups"][0]["name"], "g", "{data:#}");
    assert_eq!(data["root_group"]["groups"][0]["checks"][0]["passes"], 4, "{data:#}");
    assert_eq!(data["setup_data"]["a"], 1, "{data:#}");
    assert!(ended.stdout.contains("VALID") || ended.stdout.contains("INVALID"), "{ended:?}");
    assert!(ended.stdout.contains("checks.........................: 100.00% 4 out of 4"));
    assert!(ended.stderr.contains("to people"), "{ended:?}");
    // Standard output is the report's.
    let (ended, _) = summarized(all, &["--json", "-"]);
    assert_eq!(ended.json()["command"], "run");
    assert!(ended.stderr.contains("100.00% 4 out of 4"), "{ended:?}");
    for (body, line) in [
        ("return { '/tmp/knee-summary': '' }", "expected a path below the current folder"),
        ("return { '../data.json': '' }", "expected a path below the current folder"),
        ("return { 'no/such/folder.json': '' }", "'no/such/folder.json': cannot be written"),
        ("throw new Error('no more')", "handleSummary failed: main.js:6:"),
    ] {
        let (ended, data) = summarized(body, &[]);
        assert_eq!((ended.status, data), (Some(0), None), "{body}: {ended:?}");
        assert!(ended.stderr.contains(line), "{body}: {ended:?}");
    }
}

#[test]
fn a_check_shows_one_iteration() {
    let text = "import http from 'k6/http';\nexport default () => { http.get('http://h:81/a'); \
                http.post('http://h:81/b', {}); console.log('hello'); }";
    let script = Script::new("check", text);
    let ended = run(&["scenario", "check", script.str()]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert_eq!(
        ended.stdout,
        "default: 2 requests in an iteration\n  GET http://h:81/a\n  POST http://h:81/b\n\
         console: info: hello\n"
    );
}

/// k6's `rps`: what users ask for together waits for it, and that is the load that was asked for.
#[test]
fn a_script_limits_its_requests_per_second() {
    let server = KneeServer::start(&[]);
    let text = format!(
        "import http from 'k6/http';
        export const options = {{ vus: 4, duration: '2s', rps: 40 }};
        export default () => {{ http.get('{}'); }}",
        server.url()
    );
    let script = Script::new("rps", &text);
    let report = measured(&["run", script.str()]);
    let trial = &report["trials"][0];
    let requests = trial["outcomes"]["ok"].as_u64().unwrap();
    assert!(requests > 0 && requests <= 2 * 40 + 8, "{requests}");
    let because = trial["invalid_because"].to_string();
    assert!(!because.contains("rate"), "{because}");
}
