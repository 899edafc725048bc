//! Scripts of k6.

use crate::import::{Imported, ImportedLoad, k6};
use crate::{ScenarioInputs, parse_scenario};
use knee_load::quantity::ParseError;

/// A bit of everything, to be damaged.
pub(super) const K6: &str = r#"
import http from 'k6/http';
import { check, sleep, group } from "k6";
export const options = {
  scenarios: { a: { executor: 'ramping-vus', stages: [{ duration: '1m', target: 5 }] } },
  thresholds: { http_req_duration: ['p(95)<500'] },
};
const BASE = __ENV.BASE || 'https://shop.test';
const params = { headers: { 'Content-Type': 'application/json' }, tags: { name: 'login' } };
export function setup() { return { t: http.get(`${BASE}/setup`).json('t') }; }
export default function (data) {
  const res = http.post(BASE + '/login', JSON.stringify({ n: 1.5, 'l': [true, data.t] }), params);
  check(res, { 'is 200': (r) => r.status === 200 && r.body.includes('x') });
  if (!res.json('token')) { return; }
  group('items', function () { http.get(`${BASE}/${res.json('a.0.b')}`); sleep(1.5); });
  for (let i = 0; i < 3; i++) { if (i === 1) continue; http.del(`${BASE}/items/${i}`); }
  let s = http.get(BASE); while (s.json('state') != "d") { s = http.get(BASE); }
  [1, 2].forEach((n) => http.post(`${BASE}/form`, { a: `b${n}`, n: Math.random() < 0.5 ? 1 : 2 }));
  switch (s.status) { case 200: try { http.get(BASE); } finally { sleep(Math.random()); } }
}
"#;

/// The script as a scenario. None of those here needs a large stack.
pub(super) fn imported(script: impl Into<Vec<u8>>) -> Result<Imported, ParseError> {
    let mut read = |path: &str| match path {
        "lib/api.js" => Ok(b"import http from 'k6/http'; export const BASE = 'http://h';
            export const get = (u) => http.get(u, { headers: { Via: 'lib' } });"
            .to_vec()),
        "config.json" => Ok(b"{\"path\": \"/cfg\"}".to_vec()),
        _ => Err("is missing".to_owned()),
    };
    k6(&script.into(), &mut read)
}

/// The files and variables that the scenarios of the cases need.
struct Beside;

impl ScenarioInputs for Beside {
    fn file(&mut self, name: &str) -> Result<Vec<u8>, String> {
        Ok(match name {
            "users.jsonl" => b"{\"name\": \"ann\"}".to_vec(),
            "rows.csv" => b"city\nx\n".to_vec(),
            _ => b"bytes".to_vec(),
        })
    }

    fn program(&mut self, _: &str) -> Result<(String, String), String> {
        Err("cannot be started: there is none".to_owned())
    }

    fn variable(&mut self, _: &str) -> Option<String> {
        Some("http://h".to_owned())
    }
}

/// What the body of a function needs.
const BEFORE_BODY: &str = "import http from 'k6/http'; \
    import { check, group, sleep, fail } from 'k6'; \
    import encoding from 'k6/encoding'; import ws from 'k6/ws'; \
    import { randomIntBetween, randomItem, uuidv4 } from 'https://jslib.k6.io/k6-utils/i.js'; \
    export default function () {\n";

/// Lines that nearly all scenarios have.
const COMMON: [&str; 7] = [
    "target: http://h",
    "defaults:",
    "redirects: 10",
    "timeout: 60s",
    "sessions:",
    "on_failure: continue",
    "",
];

#[test]
fn cases_become_what_they_say() {
    let cases = include_str!("k6_cases.txt").split("\n=== ").skip(1);
    for case in cases {
        let (name, case) = case.split_once('\n').unwrap();
        let (script, after) = case.split_once("\n--- becomes\n").unwrap();
        let (becomes, left_out) = after.split_once("--- left out\n").unwrap_or((after, ""));
        let script = if script.contains("export ") {
            script.to_owned()
        } else {
            format!("{BEFORE_BODY}{script}\n}}\n")
        };
        let imported = imported(script).unwrap_or_else(|e| panic!("{name}: {e}"));
        let yaml = imported.to_yaml("a case");
        let lines = yaml.lines().filter(|l| !l.starts_with('#') && !COMMON.contains(&l.trim()));
        let lines: Vec<&str> = lines.collect();
        let wanted: Vec<&str> = becomes.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!(lines, wanted, "{name}");
        let wanted: Vec<&str> = left_out.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!(imported.left_out, wanted, "{name}");
        if let Err(refused) = parse_scenario(yaml.as_bytes(), "f", &mut Beside) {
            panic!("{name}: {refused}\n{yaml}");
        }
    }
}

#[test]
fn responses_of_many_branches_are_checked() {
    let branch = |n: usize| format!("if (a.json('n') > {n}) {{ r = http.get('http://h/{n}'); }}\n");
    let branches: String = (1..=25).map(branch).collect();
    let script = format!(
        "{BEFORE_BODY}const a = http.get('http://h/a'); let r = http.get('http://h/0');\n{branches}\
         check(r, {{ ok: (r) => r.status === 200 }});\n}}\n"
    );
    let yaml = imported(script).unwrap().to_yaml("a test");
    assert_eq!(yaml.matches("status: 200").count(), 26, "{yaml}");
}

#[test]
fn loads_that_are_not_known_are_named() {
    for options in ["f()", "{vus: -1, duration: 'soon'}", "{stages: 1}", "{scenarios: {a: 1}}"] {
        let script = format!(
            "import http from 'k6/http'; export let options = {options};\n\
             export default () => http.get('http://h/');"
        );
        let imported = imported(script).unwrap();
        assert_eq!(imported.load, ImportedLoad::default(), "{options}");
        assert!(!imported.left_out.is_empty(), "{options}");
    }
}

#[test]
fn scripts_that_are_none_are_refused() {
    for (script, wrong) in [
        ("", "the script has no request that a scenario can have"),
        ("export default function () {", "line 1: the script is no JavaScript"),
        ("\n\nconst = 1;", "line 3: the script is no JavaScript"),
        ("export default () => http.get(url)", "the script has no request"),
        ("\u{0}", "line 1: the script is no JavaScript"),
    ] {
        let refused = imported(script).unwrap_err().0;
        assert!(refused.starts_with(wrong) && !refused.contains('\n'), "{script}: {refused}");
    }
    assert!(imported([0xff]).is_err());
}

/// Whatever a script nests or repeats, it is followed in bounded time and memory.
#[test]
fn scripts_that_would_not_end_do() {
    let body = |body: &str| format!("{BEFORE_BODY}{body}\n}}\n");
    let doubled = |n: usize| format!("const a{} = [a{n}, a{n}, `x${{a{n}}}`];\n", n + 1);
    let doubled: String = (0..200).map(doubled).collect();
    let nested = (0..8).map(|n| format!("for (let i{n} = 0; i{n} < 1000; i{n}++) {{"));
    let nested: String = nested.collect();
    let entries: String = (0..30_000).map(|n| format!("k{n}: {n}, ")).collect();
    let list = "Array.from({ length: 10000 }, (_, i) => `k${i}`)";
    for script in [
        "http.get(".repeat(50_000),
        "[".repeat(39_000),
        "(a=".repeat(10_000),
        "!".repeat(50_000),
        "`${".repeat(13_000),
        format!("const a = {}", "{a:".repeat(10_000)),
        body(&format!("{}1", "1+".repeat(30_000))),
        body(&("x".to_owned() + &".y".repeat(100_000))),
        body(&format!("const a0 = ['x'];\n{doubled}")),
        body("function f() { f(); f(); } f();"),
        body("let s = 'x'; for (;;) { s += s; }"),
        body(&format!("const a = {{ {entries} }}; http.get(`http://h/${{a.k29999}}`);")),
        body(&format!("const a = {list}.reduce((o, k) => {{ o[k] = k; return o; }}, {{}});")),
        body("const l = [1]; for (const x of l) { l.push(x, x); } while (l) l.push(l);"),
        body(&format!("{nested} http.get('http://h/' + i7 * i6); {}", "}".repeat(8))),
        body("let r = http.get('http://h/'); for (;;) { if (r.json('a')) { continue; } break; }"),
        "import './a.js'; import * as a from './lib/api.js'; a.get(a.BASE);".to_owned(),
    ] {
        if let Ok(imported) = imported(script.clone()) {
            let yaml = imported.to_yaml("a test");
            let read = parse_scenario(yaml.as_bytes(), "f", &mut Beside);
            assert!(read.is_ok(), "{}: {read:?}", script.chars().take(200).collect::<String>());
        }
    }
}
