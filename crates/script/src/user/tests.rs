//! Scripts, each in a user of its own, against responses that the test makes.

use super::*;
use crate::script::Script;
use crate::{Clock, ReadFile};
use knee_load::rng;
use knee_load::session::{Origin, ScriptPlan};
use knee_load::spec::WorkerRange;
use std::sync::Arc;
use std::time::Instant;

fn clock() -> Clock {
    let begin = Instant::now();
    Rc::new(move || Nanos(begin.elapsed().as_nanos() as u64))
}

/// Processor time of the calling thread.
fn processor() -> Clock {
    Rc::new(|| {
        let spent = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        Nanos(spent.split(' ').next().unwrap().parse().unwrap())
    })
}

pub(crate) fn setup(source: &str) -> UserSetup {
    let plan = ScriptPlan {
        main: "main.js".to_owned(),
        memory_max: 16 << 20,
        time_max: Nanos::from_millis(200),
        options: "{}".to_owned(),
        ..ScriptPlan::default()
    };
    let source = source.to_owned();
    let read: ReadFile = Rc::new(move |path| match path {
        "main.js" => Ok(source.clone().into_bytes()),
        "data.json" => Ok(b"[1,2,3]".to_vec()),
        "lib/a.js" => {
            Ok(b"export const a = 'from a'; export const text = open('./x.txt');".to_vec())
        }
        "lib/x.txt" => Ok(b"x".to_vec()),
        "lib/c.js" => Ok(b"const k6 = require('k6');\n\
            module.exports = { c: 1, d: () => typeof k6.sleep, text: open('./x.txt') };"
            .to_vec()),
        other => Err(format!("{other}: no such file")),
    });
    UserSetup {
        script: Arc::new(Script::new(Arc::new(plan))),
        number: 0,
        rng: rng::stream(1, rng::SCRIPTS),
        clock: clock(),
        processor: processor(),
        origins: Rc::new([]),
        memory_max: 16 << 20,
        read: Some(read),
    }
}

/// What an iteration returned, where `respond` answers its requests; and these, as texts.
fn run(
    source: &str,
    mut respond: impl FnMut(&ScriptRequest) -> ScriptResponse,
) -> (Result<Option<String>, Failure>, Vec<String>) {
    let mut user = match User::new(setup(source)) {
        Ok(user) => user,
        Err(failure) => return (Err(failure), Vec::new()),
    };
    iterate(&mut user, &mut respond)
}

fn iterate(
    user: &mut User,
    respond: &mut dyn FnMut(&ScriptRequest) -> ScriptResponse,
) -> (Result<Option<String>, Failure>, Vec<String>) {
    let iteration =
        Iteration { function: "default".to_owned(), wants_result: true, ..Iteration::default() };
    let mut sent = Vec::new();
    let mut due = Nanos::ZERO;
    let mut next = user.begin(iteration, due);
    for _ in 0..100_000 {
        let mut any = false;
        while let Some((operation, request)) = user.take_request() {
            any = true;
            let made = &request.made;
            let headers: Vec<_> = made.headers.iter().map(|(n, v)| format!("{n}={v}")).collect();
            sent.push(format!(
                "{} {}{} [{}] {}",
                made.method,
                made.authority,
                String::from_utf8_lossy(&made.path),
                headers.join(","),
                String::from_utf8_lossy(&made.body)
            ));
            let response = respond(&request);
            user.respond(operation, response);
        }
        match next {
            Next::Over(ended) => return (ended, sent),
            Next::Wait(until) if !any && until < Nanos::MAX => due = until,
            Next::Wait(_) | Next::Turn => due = user.now(),
        }
        next = user.advance(due);
    }
    panic!("the iteration does not end");
}

fn ok(body: &str) -> ScriptResponse {
    ScriptResponse {
        status: 200,
        head: b"Content-Type: application/json\r\nSet-Cookie: sid=7; Path=/\r\n".to_vec(),
        body: body.as_bytes().to_vec(),
        version: "HTTP/1.1",
        ..ScriptResponse::default()
    }
}

/// The value that a function body returns, as JSON.
fn value(body: &str) -> String {
    let source = format!(
        "import http from 'k6/http'; import {{ sleep, check, group }} from 'k6'; \
         import crypto from 'k6/crypto'; import encoding from 'k6/encoding';\n\
         export default function () {{ {body} }}"
    );
    match run(&source, |_| ok(r#"{"token":"t1","items":[{"id":5,"n":"a"},{"id":6,"n":"b"}]}"#)).0 {
        Ok(value) => value.unwrap_or_default(),
        Err(failure) => failure.to_string(),
    }
}

#[test]
fn a_session_of_requests() {
    let source = r#"
import http from 'k6/http';
import { check, sleep } from 'k6';
export const options = { vus: 1 };
export default function () {
  const login = http.post('http://h:81/login', JSON.stringify({ name: 'a' }), { headers: { 'Content-Type': 'application/json' } });
  const token = login.json('token');
  sleep(1);
  const items = http.get(`http://h:81/items?page=${1 + 1}`, { headers: { Authorization: `Bearer ${token}` } });
  check(items, { 'is 200': (r) => r.status === 200 });
  const cart = http.post('http://h:81/cart', { id: items.json('items.0.id'), b: 'x y&' });
  return [login.status, items.headers['Content-Type'], cart.cookies.sid[0].value, cart.timings.duration];
}"#;
    let (ended, sent) = run(source, |_| ok(r#"{"token":"t1","items":[{"id":5}]}"#));
    assert_eq!(ended, Ok(Some(r#"[200,"application/json","7",0]"#.to_owned())));
    assert_eq!(
        sent,
        [
            r#"POST h:81/login [Content-Type=application/json] {"name":"a"}"#,
            "GET h:81/items?page=2 [Authorization=Bearer t1,Cookie=sid=7] ",
            "POST h:81/cart [Content-Type=application/x-www-form-urlencoded,Cookie=sid=7] \
             b=x+y%26&id=5",
        ]
    );
}

#[test]
fn values_of_the_modules() {
    for (body, want) in [
        ("return http.get('http://h/').json('items.#.id')", "[5,6]"),
        ("return http.get('http://h/').json('items.#(n==b).id')", "6"),
        ("return http.get('http://h/').json('items.#(id>4)#|#')", "2"),
        ("return http.get('http://h/').json('items.@reverse')[0].id", "6"),
        ("return http.get('http://h/').json('items|1|id')", "6"),
        ("return http.get('http://h/').json('it*s.1.n')", "\"b\""),
        ("return http.get('http://h/').json('') === undefined", "true"),
        ("return http.get('http://h/').json('#.'.repeat(120)) === undefined", "true"),
        (
            "return crypto.sha256('abc')",
            "\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"",
        ),
        ("return crypto.hmac('sha1', 'k', 'abc', 'base64')", "\"+b7wkf4A2fUShZODbbqZ4ZPwgXQ=\""),
        ("return crypto.md5('')", "\"d41d8cd98f00b204e9800998ecf8427e\""),
        ("return encoding.b64decode(encoding.b64encode('hé'), 'std', 's')", "\"hé\""),
        (
            "return http.batch([['GET','http://h/1'],['GET','http://h/2']]).map((r) => r.url)",
            "[\"http://h/1\",\"http://h/2\"]",
        ),
        ("return Object.keys(http.batch({a:'http://h/1'}))", "[\"a\"]"),
        ("return http.get('http://h/').json('items.1.n')", "\"b\""),
        ("return http.get('http://h/').json('items.1')", "{\"id\":6,\"n\":\"b\"}"),
        ("return http.get('http://h/').json('items.2.n') === undefined", "true"),
        ("return http.get('http://h/').json('token.x') === undefined", "true"),
        (
            "const r = http.get('http://h/'); r.body = 'x'; return [r.body, r.url]",
            "[\"x\",\"http://h/\"]",
        ),
        ("return JSON.parse(JSON.stringify(http.get('http://h/'))).status", "200"),
        (
            "return http.post('http://h/', 'x', {headers: {a: 'b'}}).request",
            "{\"method\":\"POST\",\"url\":\"http://h/\",\"body\":\"x\",\"headers\":{\"A\":[\"b\"]},\
             \"cookies\":{}}",
        ),
        ("return http.get('http://h/', {responseType: 'none'}).body", "null"),
        ("return http.get('http://h/', {responseType: 'binary'}).body.byteLength", "58"),
        ("return http.get(http.url`http://h/${5}`).url", "\"http://h/5\""),
        ("return group('g', () => check(1, { one: (v) => v === 1 }))", "true"),
        ("let d = Date.now(); return d > 1.7e12", "true"),
        (
            "return [...'ab'].map((c) => c.codePointAt(0)).concat(new Uint8Array([1,2]).length)",
            "[97,98,2]",
        ),
        ("return /(\\d+)-(?<b>x)/.exec('12-x').groups.b", "\"x\""),
        (
            "const m = new Map([[1,2]]); class A { #p = 3; get p() { return this.#p; } } return new A().p + m.get(1)",
            "5",
        ),
        ("function* g() { yield 1; yield 2; } return [...g()]", "[1,2]"),
        (
            "return http.get('nope').error",
            "\"invalid URL 'nope': expected http://HOST/PATH or https://HOST/PATH\"",
        ),
        (
            "return [5, true, () => 1, [1, 2], 'x', {}, new Uint8Array(1)]\
             .map((b) => http.post('http://h/', b).status)",
            "[0,0,0,0,200,200,200]",
        ),
        (
            "const r = http.get('http://127.0.0.1:8080/a'); return [r.remote_ip, r.remote_port]",
            "[\"127.0.0.1\",8080]",
        ),
        ("return globalThis.crypto.randomUUID().length", "36"),
        ("return crypto.hexEncode('ab')", "\"6162\""),
        (
            "const d = new Date(Date.UTC(2024, 0, 15, 13, 5, 9)); d.getHours = () => 13; \
             return [d.toLocaleTimeString(), new Date(NaN).getTime()]",
            "[\"13:05:09\",null]",
        ),
        (
            "return ['z', 'ä', 'a', 'B', 'b', 'A', 'é', 'e'].sort((a, b) => a.localeCompare(b)).join('')",
            "\"aAäbBeéz\"",
        ),
        ("return [global === globalThis, http.TLS_1_2]", "[true,\"tls1.2\"]"),
        ("return encoding.b64decode('YW\\nJj', 'std', 's')", "\"abc\""),
        (
            "const jar = http.cookieJar(); jar.set('http://127.0.0.1/', 'a', 'x y;\"z'); \
             jar.set('http://h/', 's', '1', {secure: true}); \
             return [jar.cookiesForURL('http://127.0.0.1/'), jar.cookiesForURL('http://h/')]",
            "[{\"a\":[\"x yz\"]},{}]",
        ),
    ] {
        assert_eq!(value(body), want, "{body}");
    }
}

#[test]
fn promises_and_timers_settle() {
    let source = r#"
import http from 'k6/http';
export default async function () {
  const [a, b] = await Promise.all([http.asyncRequest('GET', 'http://h/a'), http.asyncRequest('GET', 'http://h/b')]);
  const later = await new Promise((resolve) => setTimeout(() => resolve('later'), 1000));
  return [a.url, b.url, later];
}"#;
    let (ended, sent) = run(source, |_| ok(""));
    assert_eq!(ended, Ok(Some(r#"["http://h/a","http://h/b","later"]"#.to_owned())));
    assert_eq!(sent.len(), 2);
}

#[test]
fn web_crypto_has_hashes_and_hmac() {
    let source = r#"
const hex = (all) => Array.from(new Uint8Array(all), (b) => b.toString(16).padStart(2, '0')).join('').slice(0, 8);
export default async function () {
  const [key, data] = [new Uint8Array([107, 101, 121]), new Uint8Array([97, 98, 99])];
  const own = await crypto.subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, true, ['sign']);
  const signature = await crypto.subtle.sign('HMAC', own, data);
  const refused = await crypto.subtle.importKey('raw', key, 'AES-GCM', true, []).catch((e) => e.message);
  return [hex(await crypto.subtle.digest('SHA-512', data)), hex(signature),
    await crypto.subtle.verify('HMAC', own, signature, data), await crypto.subtle.verify('HMAC', own, key, data),
    hex(await crypto.subtle.exportKey('raw', own)), refused];
}"#;
    let (ended, _) = run(source, |_| ok(""));
    let want = "[\"ddaf35a1\",\"9c196e32\",true,false,\"6b6579\",\"crypto.subtle: 'AES-GCM' is not \
                supported by knee: expected HMAC\"]";
    assert_eq!(ended, Ok(Some(want.to_owned())));
}

#[test]
fn modules_files_and_shared_arrays() {
    let source = r#"
import { a, text } from './lib/a.js';
import { SharedArray } from 'k6/data';
import { randomItem, uuidv4 } from 'https://jslib.k6.io/k6-utils/1.4.0/index.js';
const all = new SharedArray('numbers', () => JSON.parse(open('./data.json')));
export default () => [a, text, all.length, all[1], all.map((n) => n * 2), [...all].length, uuidv4().length, all.includes(randomItem(all))];"#;
    let (ended, _) = run(source, |_| ok(""));
    assert_eq!(ended, Ok(Some(r#"["from a","x",3,2,[2,4,6],3,36,true]"#.to_owned())));
}

#[test]
fn redirections_are_followed_with_cookies() {
    let mut left = 2;
    let (ended, sent) = run(
        "import http from 'k6/http'; export default () => { const r = http.post('http://h/a', 'x', \
         { headers: { 'Content-Type': 'text/plain' } }); return [r.url, r.status]; }",
        |_| {
            left -= 1;
            if left > 0 {
                let head = b"Location: /b?c\r\nSet-Cookie: k=v\r\n".to_vec();
                ScriptResponse { status: 302, head, version: "HTTP/1.1", ..Default::default() }
            } else {
                ok("")
            }
        },
    );
    assert_eq!(ended, Ok(Some(r#"["http://h/b?c",200]"#.to_owned())));
    assert_eq!(sent[1], "GET h/b?c [Referer=http://h/a,Cookie=k=v] ");
}

#[test]
fn heads_are_made_of_what_belongs_there() {
    for (call, want) in [
        (r"http.request('GET / HTTP/1.1\r\nX: y\r\n\r\nGET', 'http://h/')", &[][..]),
        ("http.request('BAD METHOD', 'http://h/')", &[]),
        ("http.request('', 'http://h/')", &["GET h/ [] "]),
        ("http.request('get', 'http://h/')", &["get h/ [] "]),
        (r"http.get('http://h/', {headers: {'a\r\nb': 'c'}})", &[]),
        (r"http.get('http://h/', {headers: {a: 'b\r\nc: d'}})", &[]),
        (
            "http.post('http://h/', 'x', {headers: {'content-length': 0, 'Transfer-Encoding': \
             'chunked', A: 1, a: 2}})",
            &["POST h/ [a=2] x"],
        ),
        (
            r"http.get('http://h/', {cookies: {a: 'v\r\nInjected: yes'}})",
            &[r#"GET h/ [Cookie=a="vInjected: yes"] "#],
        ),
        (
            r#"http.get('http://h/', {cookies: {a: 'x,y', b: 'x;"y', c: 'xy'}})"#,
            &[r#"GET h/ [Cookie=a="x,y"; b=xy; c=xy] "#],
        ),
        (
            "http.post('http://h/', 'x', {compression: 'lzw'}); \
             http.get('http://h/a b?q={d}')",
            &["GET h/a%20b?q={d} [] "],
        ),
        (
            "http.post('http://h/', {d: new Date(0), m: {b: 1, a: [1, null]}})",
            &["POST h/ [Content-Type=application/x-www-form-urlencoded] \
               d=1970-01-01+00%3A00%3A00+%2B0000+UTC&m=map%5Ba%3A%5B1+%3Cnil%3E%5D+b%3A1%5D"],
        ),
    ] {
        let source = format!("import http from 'k6/http'; export default () => {{ {call}; }}");
        let (ended, sent) = run(&source, |_| ok(""));
        let sent: Vec<_> = sent.iter().map(String::as_str).collect();
        assert_eq!((ended, &sent[..]), (Ok(None), want), "{call}");
    }
}

#[test]
fn redirections_that_lead_nowhere_are_said() {
    for (location, want, requests) in [
        ("/b", "", 2),
        ("", "", 1),
        ("http://other/x", "--script-host", 1),
        ("ftp://h/x", "its scheme is not http or https", 1),
    ] {
        let source = "import http from 'k6/http'; export default () => { const r = \
                      http.get('http://h/'); return [r.error, r.error_code]; }";
        let mut setup = setup(source);
        setup.origins = Rc::new([Origin::new(false, "h")]);
        let mut user = User::new(setup).unwrap();
        let mut left = 1;
        let (ended, sent) = iterate(&mut user, &mut |_| {
            left -= 1;
            let head = format!("Location: {location}\r\n").into_bytes();
            let status = if left == 0 { 302 } else { 200 };
            ScriptResponse { status, head, version: "HTTP/1.1", ..Default::default() }
        });
        let (ended, mut led_away) = (ended.unwrap().unwrap(), false);
        user.take_records(|record| led_away |= record == Record::LedAway);
        assert!(ended.contains(want), "{location}: {ended}");
        assert_eq!(ended == r#"["",0]"#, want.is_empty(), "{location}: {ended}");
        assert_eq!((sent.len(), led_away), (requests, !want.is_empty()), "{location}");
    }
}

#[test]
fn walks_over_arrays_of_holes_are_refused() {
    for body in [
        "new Array(4e9).reverse()",
        "new Array(4e9).join()",
        "String(new Array(4e9))",
        "new Array(4e9).splice(0, 1)",
        "new Array(4e9).slice(1)",
        "new Array(4e9).fill(0)",
        "new Array(4e9).sort()",
        "new Array(4e9).unshift(1)",
        "new Array(4e9).shift()",
        "new Array(4e9).copyWithin(0, 1)",
        "new Array(4e9).with(0, 1)",
        "[1].concat([2], new Array(4e9))",
        "Array.prototype.toReversed.call({ length: 2 ** 53 - 1 })",
    ] {
        let source = format!("export default () => {{ {body}; }}");
        let failure = run(&source, |_| ok("")).0.expect_err(body).to_string();
        assert!(failure.starts_with("main.js:1:") && failure.contains("RangeError"), "{failure}");
    }
    // These look at the time, or use up the memory.
    for body in [
        "new Array(4e9).indexOf(1)",
        "new Array(4e9).includes(1)",
        "new Array(4e9).forEach(() => 1)",
        "new Array(4e9).flat()",
        "[1].flatMap(() => new Array(4e9))",
        "JSON.stringify(new Array(4e9))",
        "Array.from({ length: 4e9 })",
        "[...new Array(4e9)]",
        "'x'.repeat(2 ** 29)",
    ] {
        let source = format!("export default () => {{ {body}; }}");
        let failure = run(&source, |_| ok("")).0.expect_err(body);
        assert!(failure.kind != FailureKind::Exception, "{body}: {failure}");
    }
    for (body, want) in [
        ("[3, 1, 2].sort().reverse().concat(4, [5]).join('-')", "\"3-2-1-4-5\""),
        ("[1, [2, [3, , 4]], 5].flat()", "[1,2,[3,null,4],5]"),
        ("[1, [2, [3, , 4]], 5].flat(Infinity)", "[1,2,3,4,5]"),
        ("[1, 2].flatMap((n) => [n, [n]])", "[1,[1],2,[2]]"),
        (
            "(() => { const a = [1, 2, 3, 4]; return [a.splice(1, 2), a, a.slice(-1)]; })()",
            "[[2,3],[1,4],[4]]",
        ),
        ("String([1, [2, 3]])", "\"1,2,3\""),
        ("Array.prototype.slice.call('abc', 1)", "[\"b\",\"c\"]"),
        ("[[].concat.name, Object.keys(Array.prototype).length]", "[\"concat\",0]"),
    ] {
        assert_eq!(value(&format!("return {body}")), want, "{body}");
    }
}

#[test]
fn calls_may_be_nested_deeply() {
    let source =
        "const sum = (n) => (n === 0 ? 0 : n + sum(n - 1)); export default () => sum(1500);";
    assert_eq!(run(source, |_| ok("")).0, Ok(Some("1125750".to_owned())));
}

#[test]
fn requests_to_unknown_servers_say_what_to_do() {
    let source =
        "import http from 'k6/http'; export default () => http.get('https://o:444/x').status;";
    let setup = UserSetup { origins: Rc::new([Origin::new(false, "h")]), ..setup(source) };
    let mut user = User::new(setup).unwrap();
    let failure = iterate(&mut user, &mut |_| ok("")).0.unwrap_err().to_string();
    let want = "o:444 was not known before the load: give it with --script-host https://o:444";
    assert!(failure.ends_with(want), "{failure}");
}

#[test]
fn iterations_are_numbered_by_scenario() {
    let plan = ScriptPlan { functions: vec!["a".to_owned(); 2], ..ScriptPlan::default() };
    let workers = WorkerRange { first: 3, workers: 2, of: 5 };
    let script = Script::new(Arc::new(plan)).of_workers(workers);
    let numbers: Vec<_> = [0, 1, 0, 0, 1].into_iter().map(|kind| script.begin(kind)).collect();
    assert_eq!(numbers, [[0, 3], [0, 3], [1, 4], [2, 8], [1, 4]]);
}

#[test]
fn common_modules_run() {
    let source = "import c, { d, text } from './lib/c.js'; const again = require('./lib/c.js');\n\
                  export default () => [c.c, again === c, typeof require('k6/http').get, d(), text];";
    let (ended, _) = run(source, |_| ok(""));
    assert_eq!(ended, Ok(Some(r#"[1,true,"function","function","x"]"#.to_owned())));
    let source = "const { c } = require('./lib/c.js'); exports.options = { vus: 1 }; \
                  exports.default = () => c;";
    assert_eq!(run(source, |_| ok("")).0, Ok(Some("1".to_owned())));
    let source = "module.exports.default = () => {\n  null.x;\n};";
    let failure = run(source, |_| ok("")).0.unwrap_err().to_string();
    assert!(failure.starts_with("main.js:2:"), "{failure}");
}

#[test]
fn a_test_is_marked_as_failed_and_goes_on() {
    let source = "import exec from 'k6/execution'; \
                  export default () => { exec.test.fail('bad'); exec.test.fail('more'); return 1; }";
    let mut user = User::new(setup(source)).unwrap();
    assert_eq!(iterate(&mut user, &mut |_| ok("")).0, Ok(Some("1".to_owned())));
    assert_eq!((user.take_mark().as_deref(), user.take_mark()), (Some("bad"), None));
}

#[test]
fn names_beyond_a_limit_share_one() {
    let source = "import { check } from 'k6'; export default () => { \
                  for (let i = 0; i < 1000; i++) check(1, { [`name ${i}`]: true }); }";
    let mut user = User::new(setup(source)).unwrap();
    assert!(iterate(&mut user, &mut |_| ok("")).0.is_ok());
    let names = user.shared().setup.script.names();
    assert_eq!((names.len(), &*names[199], &*names[198]), (200, "others", "name 198"));
}

#[test]
fn pages_have_what_selections_of_k6_have() {
    let page = "<ul><li data-id=1 id=a>One</li><li class=x data-b-c=y>Two</li></ul><form>\
        <select name=m multiple><option value=1 selected>a</option><option value=2 selected>b\
        </option></select><input name=q value='a b'></form><table><tr><td>1<td>2<tr><td>3</table>";
    for (body, want) in [
        ("p.find('select').val()", r#"["1","2"]"#),
        ("p.find('form').serialize()", r#""m=1&m=2&q=a+b""#),
        ("p.find('form').serializeArray()[1]", r#"{"name":"q","value":"a b"}"#),
        ("p.find('li').not('.x').text()", r#""One""#),
        ("p.find('ul').has('li').size()", "1"),
        ("p.find('li').slice(1).data()", r#"{"bC":"y"}"#),
        ("p.find('li').data('id')", "1"),
        ("p.find('li').get(0).getAttribute('id')", r#""a""#),
        (
            "(() => { const all = []; p.find('li').each((i, e) => all.push(e.textContent(), \
             e.innerHTML(), e.nodeName(), e.id())); return all; })()",
            r#"["One","One","li","a","Two","Two","li",""]"#,
        ),
        ("p.find('li').first().parent().attr('x') ?? p.find('li').parents().size()", "3"),
        ("[p.find('td').size(), p.find('tr').first().find('td').text()]", r#"[3,"12"]"#),
        ("[p.find('.x').next().text(), p.find('.x').prev().text()]", r#"["","One"]"#),
        ("[p.find('#a').nextAll().size(), p.find('td').last().prevAll().size()]", "[1,0]"),
        ("p.find('.x').siblings().map((i, e) => e.text())", r#"["One"]"#),
        ("p.find('option').closest('form').children('input').val()", r#""a b""#),
        ("p.find('option').first().parentsUntil('body').size()", "2"),
        ("p.find('li').not(p.find('.x')).is('#a')", "true"),
        ("p.find('li:contains(Two)').attr('class')", r#""x""#),
        ("p.find('ul').get(0).children().map((e) => e.nodeName())", r#"["li","li"]"#),
        ("p.find('li').get(0).nextElementSibling().textContent()", r#""Two""#),
        ("p.find('li').get(1).parentElement().firstElementChild().id()", r#""a""#),
        ("[p.find('none').html(), p.find('none').text(), p.find('none').size()]", r#"["","",0]"#),
        ("p.find('li').attr('constructor') === undefined", "true"),
    ] {
        let source = format!(
            "import {{ parseHTML }} from 'k6/html'; export default () => {{ const p = \
             parseHTML({page:?}); return {body}; }}"
        );
        assert_eq!(run(&source, |_| ok("")).0, Ok(Some(want.to_owned())), "{body}");
    }
}

#[test]
fn utils_compute_what_those_of_k6_compute() {
    let source = "import utils, { normalDistributionStages as n, findBetween } from \
                  'https://jslib.k6.io/k6-utils/1.4.0/index.js'; export default () => \
                  [n(10, 10, 3).map((s) => s.duration + s.target).join(), findBetween('a', '<', '>', true), \
                  typeof utils.tagWithCurrentStageProfile];";
    let want = r#"["2s2,3s10,3s10,3s2,2s0",null,"function"]"#;
    assert_eq!(run(source, |_| ok("")).0, Ok(Some(want.to_owned())));
}

#[test]
fn a_shared_array_is_not_of_the_memory_of_a_user() {
    // In a tenth of the memory, and in any time.
    let run = |source: &str| {
        let of = setup(source);
        let plan = ScriptPlan { time_max: Nanos::from_secs(600), ..of.script.plan().clone() };
        let script = Arc::new(Script::new(Arc::new(plan)));
        let mut user = User::new(UserSetup { script, memory_max: 2 << 20, ..of })?;
        iterate(&mut user, &mut |_| ok("")).0
    };
    let make = "() => Array.from({ length: 10000 }, (_, i) => ({ i, text: 'x'.repeat(100) }))";
    let shared = format!(
        "import {{ SharedArray }} from 'k6/data'; const all = new SharedArray('a', {make});\n\
         export default () => {{ if (all.length === 10000) return all[9999].i; }}"
    );
    assert_eq!(run(&shared), Ok(Some("9999".to_owned())));
    for (source, want) in [
        (format!("const all = ({make})(); export default () => all.length;"), "memory"),
        (shared.replace("return all", "'x'.padEnd(1e7); return all"), "memory"),
        (
            "import { SharedArray } from 'k6/data'; export default () => new SharedArray('b', () => []);"
                .to_owned(),
            "shared arrays are made in the init code",
        ),
    ] {
        let failure = run(&source).expect_err(&source).to_string();
        assert!(failure.contains(want), "{failure}");
    }
}

#[test]
fn shared_arrays_have_keys_and_nobody_changes_them() {
    let source = "import { SharedArray } from 'k6/data'; \
                  const all = new SharedArray('a', () => [{ n: { m: 1 } }, 2]); \
                  export default () => { const keys = []; for (const k in all) keys.push(k); \
                  let refused = false; try { all[0].n.m = 2; } catch { refused = true; } \
                  return [keys, Object.keys(all), [...all.entries()].length, all[0].n.m, refused]; }";
    let want = r#"[["0","1"],["0","1"],2,1,true]"#;
    assert_eq!(run(source, |_| ok("")).0, Ok(Some(want.to_owned())));
}

#[test]
fn mistakes_are_one_line_with_a_position() {
    for (source, want) in [
        (
            "export default function () { nope(); }",
            "main.js:1:30: ReferenceError: nope is not defined",
        ),
        ("let x = ;", "main.js:1:9: SyntaxError: "),
        (
            "import { nope } from './lib/a.js';\nexport default () => {}",
            "main.js:1:22: SyntaxError: ",
        ),
        (
            "export default () => { (function f() { Promise.resolve().then(f); })(); }",
            "computed for over 200 ms",
        ),
        ("export default () => { const f = () => Promise.resolve().then(f); f(); }", "--script-"),
        (
            "import http from 'k6/http'; export default () => { http.batch(5); }",
            "expected an array or an object of requests",
        ),
        (
            "import http from 'k6/http'; export default () => { for (const p = [];;) \
             p.push(http.asyncRequest('GET', 'http://h/')); }",
            "--script-memory",
        ),
        ("export const options = { vus: NaN };", "options: invalid vus: it is no number"),
        ("let x = /a/7;", "SyntaxError: invalid regular expression flags (in main.js)"),
        (
            "import ws from 'k6/ws';\nexport default () => {}",
            "main.js:1:16: import 'k6/ws': scripts speak HTTP alone",
        ),
        ("import { nope } from 'k6';\nexport default () => {}", "main.js:1:22: SyntaxError: "),
        ("import x from './none.js'", "./none.js"),
        (
            "import http from 'k6/http';\nexport default () => {\n  http.nope;\n}",
            "main.js:3:3: http.nope is not supported by knee",
        ),
        ("import http from 'k6/http'; http.get('http://h/')", "the init code sends no request"),
        ("export default () => { while (true); }", "computed for over 200 ms between two requests"),
        (
            "export default () => { for (;;) { try { while (true); } catch (e) {} } }",
            "computed for over",
        ),
        ("export default () => { 'x'.padEnd(1e9); }", "--script-memory"),
        (
            "export default () => { const f = () => f() + 1; f(); }",
            "Maximum call stack size exceeded",
        ),
        ("export default () => { /(a+)+$/.test('a'.repeat(40) + 'b'); }", "computed for over"),
        ("export default () => { throw 5; }", "5"),
        ("export default () => { throw null; }", "null was thrown: by the script, or as no memory"),
        (
            "export default async () => { await new Promise(() => {}); }",
            "a promise that nothing settles",
        ),
        ("export default async () => { await null; throw new TypeError('t'); }", "TypeError: t"),
        (
            "export default () => {\n  Promise.reject(new Error('lost'));\n}",
            "main.js:2:22: unhandled rejection of a promise: lost",
        ),
        (
            "import http from 'k6/http'; export default () => { http.get('http://h/', {timeout: 'x'}); }",
            "main.js:1:56: timeout: invalid time 'x'",
        ),
        (
            "import http from 'k6/http'; export default () => { for (const all = [];;) { const r = \
             http.get('http://h/'); all.push(r); } }",
            "--script-memory",
        ),
    ] {
        let (ended, _) = run(source, |_| ok(&"x".repeat(4_000)));
        let failure = ended.expect_err(source).to_string();
        assert!(failure.contains(want), "{source}\n{failure}");
        assert_eq!(failure.lines().count(), 1);
    }
}

#[test]
fn a_rejection_that_is_handled_later_is_none() {
    let source = "export default async () => { const p = Promise.reject(1); await null; \
                  return await p.catch(() => 'handled'); }";
    assert_eq!(run(source, |_| ok("")).0, Ok(Some("\"handled\"".to_owned())));
}

#[test]
fn an_iteration_lasts_at_least_as_long_as_asked() {
    let shared = with_options(
        "import http from 'k6/http'; export default () => { http.get('http://h/'); }",
        r#"{"minIterationDuration":"2s"}"#,
    );
    let mut user = User::new(shared).unwrap();
    let iteration = Iteration { function: "default".to_owned(), ..Iteration::default() };
    user.begin(iteration, Nanos::ZERO);
    let (operation, _) = user.take_request().unwrap();
    user.respond(operation, ok(""));
    let Next::Wait(until) = user.advance(Nanos::from_millis(5)) else { panic!("it has ended") };
    assert!(until >= Nanos::from_secs(2), "{until}");
    assert_eq!(user.advance(until), Next::Over(Ok(None)));
}

/// A user's setup, with these options in its plan.
fn with_options(source: &str, options: &str) -> UserSetup {
    let setup = setup(source);
    let plan = ScriptPlan { options: options.to_owned(), ..setup.script.plan().clone() };
    UserSetup { script: Arc::new(Script::new(Arc::new(plan))), ..setup }
}

#[test]
fn values_with_tags_are_metrics_of_thresholds() {
    let source = "import http from 'k6/http'; import { check, group } from 'k6'; import exec from 'k6/execution';\n\
                  import { Counter } from 'k6/metrics'; const c = new Counter('orders');\n\
                  export default () => { group('g', () => { http.get('http://h/', { tags: { kind: 'css' } }); \
                  http.get('http://h/'); }); exec.vu.tags.vip = 'yes'; check(1, { one: true }, { a: 'b' }); \
                  c.add(3, { kind: 'big' }); c.add(4); }";
    let options = r#"{"tags":{"run":"r"},"thresholds":{"http_reqs{kind:css,run:r}":["x<1"],
        "http_req_duration{group:::g,status:200}":["x<1"],"checks{a:b,vip:yes}":["x<1"],"orders{kind:big}":["x<1"],
        "http_req_failed{expected_response:false}":["x<1"],"http_req_waiting":["x<1"],"checks":["x<1"]}}"#;
    let mut user = User::new(with_options(source, options)).unwrap();
    let (ended, _) = iterate(&mut user, &mut |_| ok(""));
    assert!(ended.is_ok(), "{ended:?}");
    let names = user.shared().setup.script.metrics();
    let mut found = std::collections::BTreeMap::new();
    user.take_records(|record| {
        if let Record::Metric(number, value) = record {
            let all: &mut Vec<f64> = found.entry(names[number as usize].name.clone()).or_default();
            all.push(value);
        }
    });
    let found: Vec<_> = found.iter().map(|(name, all)| (&**name, &**all)).collect();
    assert_eq!(
        found,
        [
            ("checks{a:b,vip:yes}", &[1.0][..]),
            ("http_req_duration{group:::g,status:200}", &[0.0, 0.0]),
            ("http_req_waiting", &[0.0, 0.0]),
            ("http_reqs{kind:css,run:r}", &[1.0]),
            ("orders", &[3.0, 4.0]),
            ("orders{kind:big}", &[3.0]),
        ]
    );
}

/// As in k6, with its option `throw` and without.
#[test]
fn values_of_metrics_that_are_no_numbers_are_left_out() {
    let source = "import { Trend } from 'k6/metrics'; const t = new Trend('t');\n\
                  export default () => [t.add('abc'), t.add(undefined), t.add(NaN), t.add(1)];";
    for (options, want) in [
        ("{}", Ok(Some("[false,false,false,true]"))),
        (r#"{"throw":true}"#, Err("metric t: 'abc' is no number")),
    ] {
        let mut user = User::new(with_options(source, options)).unwrap();
        let (ended, _) = iterate(&mut user, &mut |_| ok(""));
        match (ended, want) {
            (Ok(value), Ok(want)) => assert_eq!(value.as_deref(), want),
            (Err(failure), Err(want)) => assert!(failure.to_string().contains(want), "{failure}"),
            (ended, _) => panic!("{options}: {ended:?}"),
        }
    }
}

#[test]
fn a_failed_iteration_leaves_the_user_whole() {
    let source =
        "let n = 0; export default () => { n += 1; if (n === 1) { while (true); } return n; }";
    let mut user = User::new(setup(source)).unwrap();
    assert!(iterate(&mut user, &mut |_| ok("")).0.is_err());
    assert_eq!(iterate(&mut user, &mut |_| ok("")).0, Ok(Some("2".to_owned())));
}

#[test]
fn a_suspended_user_ends_without_its_script_catching_that() {
    let source = "import http from 'k6/http'; export default () => { for (;;) { try { \
                  http.get('http://h/'); } catch (e) { } finally { } } }";
    let mut user = User::new(setup(source)).unwrap();
    let iteration = Iteration { function: "default".to_owned(), ..Iteration::default() };
    assert_eq!(user.begin(iteration, Nanos::ZERO), Next::Wait(Nanos::MAX));
    user.stop();
    assert!(user.stack.is_none());
    drop(user);
}

#[test]
fn a_seed_repeats_random_values() {
    let source = "export default () => [Math.random(), Math.random()]";
    let drawn = || run(source, |_| ok("")).0.unwrap();
    assert_eq!(drawn(), drawn());
}

/// Figures, for people: `cargo test -p knee-script --release -- --ignored --nocapture spike`.
#[test]
#[ignore = "figures of a release build, for people"]
fn spike() {
    let rss = || {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap();
        text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4
    };
    let source = "import http from 'k6/http'; import { check, sleep } from 'k6';\n\
                  export default () => { for (;;) http.get('http://h:81/a'); }";
    for count in [100, 1_000, 5_000] {
        let (before, begin) = (rss(), Instant::now());
        let shared = setup(source);
        let users = (0..count).map(|_| User::new(shared.clone()).unwrap());
        let mut users: Vec<User> = users.collect();
        let took = begin.elapsed() / count;
        let iteration = Iteration { function: "default".to_owned(), ..Iteration::default() };
        for user in &mut users {
            user.begin(iteration.clone(), Nanos::ZERO);
        }
        let each = (rss() - before) / u64::from(count);
        let rounds = 300_000 / count;
        let begin = Instant::now();
        for _ in 0..rounds {
            for user in &mut users {
                // Without a request it only let others go on.
                if let Some((operation, _)) = user.take_request() {
                    user.respond(operation, ok("{}"));
                }
                user.advance(Nanos::ZERO);
            }
        }
        let per = begin.elapsed() / (rounds * count);
        let begin = Instant::now();
        drop(users);
        let dropped = begin.elapsed() / count;
        println!("{count} users: start {took:?}, {each} KiB, {per:?} per request, end {dropped:?}");
    }
}
