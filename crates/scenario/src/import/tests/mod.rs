//! What each format becomes, and that a scenario can have it.

mod described;
mod mutated;
mod plans;
mod recordings;
mod scripts;

use super::builder::{ScenarioBuilder, StepRequest};
use super::*;
use crate::{Scenario, ScenarioInputs, parse_scenario};
use knee_load::spec::HttpRequest;
use std::collections::BTreeSet;

/// What the variables of an environment may be: a whole target, its host or its port.
const VALUES: [&str; 3] = ["http://h", "h", "80"];

/// An environment in which each variable is one of these, and records have the columns that a
/// scenario asks for.
pub(super) struct Environment {
    names: Vec<String>,
    /// Which one each has, in the order of their names: a digit for each.
    digits: usize,
    columns: Vec<String>,
}

impl Environment {
    /// All that can be, for up to four variables.
    pub(super) fn all(scenario: &str) -> impl Iterator<Item = Environment> {
        let columns = columns_of(scenario);
        let one = move |digits| Environment { names: Vec::new(), digits, columns: columns.clone() };
        (0..VALUES.len().pow(4)).map(one)
    }
}

/// The words behind a dot: columns, and others.
fn columns_of(scenario: &str) -> Vec<String> {
    let word = |text: &str| {
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
        text[..end.unwrap_or(text.len())].to_owned()
    };
    let words = scenario.split('.').skip(1).map(word).chain(["user".to_owned()]);
    let names: BTreeSet<String> =
        words.filter(|word| word.starts_with(|c: char| c.is_alphabetic() || c == '_')).collect();
    names.into_iter().collect()
}

impl ScenarioInputs for Environment {
    fn file(&mut self, name: &str) -> Result<Vec<u8>, String> {
        match name.rsplit('.').next() {
            Some("csv") => {
                let record = vec!["ann"; self.columns.len()].join(",");
                Ok(format!("{}\n{record}\n", self.columns.join(",")).into_bytes())
            }
            _ => Ok(b"bytes".to_vec()),
        }
    }

    fn program(&mut self, _: &str) -> Result<(String, String), String> {
        Err("cannot be started: there is none".to_owned())
    }

    fn variable(&mut self, name: &str) -> Option<String> {
        let at = self.names.iter().position(|other| other == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        let digit = self.digits / VALUES.len().pow(at.min(8) as u32) % VALUES.len();
        Some(VALUES[digit].to_owned())
    }
}

pub(super) fn no_file(name: &str) -> Result<Vec<u8>, String> {
    match name {
        "body.json" => Ok(b"{\"a\": [1,\n2]}".to_vec()),
        other => Err(format!("{other}: is missing")),
    }
}

/// The cases of a file: their names, sources, and what they become.
pub(super) fn cases(text: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    text.split("\n=== ").skip(1).map(|case| {
        let (head, expected) = case.split_once("--- becomes\n").expect("two parts");
        let (name, source) = head.split_once('\n').expect("a name");
        (name, source, expected.trim_end())
    })
}

/// The scenario that is written, read again.
#[track_caller]
pub(super) fn read(imported: &ImportedScenario) -> Scenario {
    read_yaml(&imported.to_yaml("a test"))
}

/// A scenario file, read again.
#[track_caller]
pub(super) fn read_yaml(yaml: &str) -> Scenario {
    let read = |mut environment| parse_scenario(yaml.as_bytes(), "f", &mut environment);
    let mut wrong = None;
    for environment in Environment::all(yaml) {
        match read(environment) {
            Ok(scenario) => return scenario,
            Err(other) => wrong = wrong.or(Some(other)),
        }
    }
    panic!("{}\n{yaml}", wrong.map_or_else(String::new, |wrong| wrong.0))
}

#[track_caller]
fn requests(imported: &ImportedScenario) -> Vec<HttpRequest> {
    read(imported).requests
}

fn header<'a>(request: &'a HttpRequest, name: &str) -> Option<&'a str> {
    let mut headers = request.headers.iter();
    headers.find_map(|(n, v)| n.eq_ignore_ascii_case(name).then_some(v.as_str()))
}

/// How many steps a file has that lie in no other.
pub(super) fn step_count(imported: &ImportedScenario) -> usize {
    imported.to_yaml("a test").matches("\n      - ").count()
}

fn curl(line: &str) -> ImportedScenario {
    curl_line(line, &mut no_file).unwrap_or_else(|e| panic!("{line}: {e}"))
}

#[test]
fn a_line_of_curl_is_a_step() {
    let imported = curl(
        "curl 'https://shop.test/cart?a=%20b&c[]=1' \\\n  -X PUT -H 'accept: */*' \\\n  \
         -H 'content-type: application/json' -b 'sid=1; t=${x}' \\\n  \
         --data-raw $'{\"note\":\"it\\'s ${x}\",\"n\":1}' --compressed --insecure | jq .",
    );
    assert_eq!(imported.targets[0].literal(), Some("https://shop.test"));
    assert_eq!(imported.left_out, ["option --insecure", "what follows curl: | jq ."]);
    let [request] = &requests(&imported)[..] else {
        panic!("one request");
    };
    assert_eq!((&*request.method, &*request.path), ("PUT", "/cart?a=%20b&c[]=1"));
    assert_eq!(&*request.body, br#"{"note":"it's ${x}","n":1}"#);
    assert_eq!(header(request, "cookie"), Some("sid=1; t=${x}"));
    assert_eq!(header(request, "accept-encoding"), Some("deflate, gzip, br, zstd"));
    assert_eq!(header(request, "content-type"), Some("application/json"));
    let yaml = imported.to_yaml("curl");
    assert!(yaml.contains("json: {\"note\": \"it's $${x}\", \"n\": 1}"), "{yaml}");
}

#[test]
fn options_of_curl_mean_what_they_mean_there() {
    for (line, method, path, body) in [
        ("curl h", "GET", "/", ""),
        ("/usr/bin/curl -sSI http://h/x", "HEAD", "/x", ""),
        ("curl -d a=1 -db=2 h", "POST", "/", "a=1&b=2"),
        ("curl -G -d a=1 'h/x?b=2#c'", "GET", "/x?b=2&a=1", ""),
        ("curl -XDELETE h/ü", "DELETE", "/%C3%BC", ""),
        ("curl --json '{\"a\":1}' h", "POST", "/", "{\"a\":1}"),
        ("curl --json @body.json h", "POST", "/", "{\"a\": [1,\n2]}"),
        ("curl --data-urlencode 'q=a b' h", "POST", "/", "q=a+b"),
        ("curl -X PURGE --url h -o /dev/null -w '%{http_code}'", "PURGE", "/", ""),
        ("curl -H 'Content-Type: text/plain' -d ' a\\ttext\"' h", "POST", "/", " a\\ttext\""),
    ] {
        let imported = curl(line);
        let request = &requests(&imported)[0];
        assert_eq!((&*request.method, &*request.path), (method, path), "{line}");
        assert_eq!(String::from_utf8_lossy(&request.body), body, "{line}");
        assert_eq!(imported.left_out, [""; 0], "{line}");
    }
    let told =
        curl("curl -L -x p:1 --digest -H 'Accept:' -b jar h --next http://other/ --next h/2");
    assert_eq!(step_count(&told), 3);
    assert_eq!(told.targets.len(), 2);
    assert!(told.to_yaml("curl").contains("redirects: 50"));
    assert_eq!(told.left_out.len(), 4, "{:?}", told.left_out);
    let user = curl("curl -u me:pw -A a/1 -e r h");
    let request = &requests(&user)[0];
    assert_eq!(header(request, "authorization"), Some("Basic bWU6cHc="));
    assert_eq!(header(request, "user-agent"), Some("a/1"));
    assert_eq!(header(request, "referer"), Some("r"));
    for (line, referer, left_out) in [
        ("curl -e ';auto' h", None, 0),
        ("curl -e 'r;auto' h", Some("r"), 0),
        ("curl -L -e r h", Some("r"), 0),
        ("curl -L -e 'r;auto' h", None, 1),
    ] {
        let imported = curl(line);
        assert_eq!(header(&requests(&imported)[0], "referer"), referer, "{line}");
        assert_eq!(imported.left_out.len(), left_out, "{line}");
    }
    let form = curl("curl -F a=1 h");
    let request = &requests(&form)[0];
    assert!(request.body.starts_with(b"------knee"), "{form:?}");
    assert!(header(request, "content-type").is_some_and(|t| t.starts_with("multipart/")));
}

#[test]
fn a_name_is_taken_as_it_is() {
    let mut all = ScenarioBuilder::default();
    let name = Some("a ${b}".to_owned());
    all.request(StepRequest { name, ..get("http://h/") });
    let imported = all.finish("none").unwrap();
    assert_eq!(read(&imported).plan.requests[0].name, "a ${b}");
}

/// A request of a GET.
fn get(url: &str) -> StepRequest {
    StepRequest { method: "GET".to_owned(), url: url.into(), ..StepRequest::default() }
}

#[test]
fn steps_are_bounded() {
    let mut all = ScenarioBuilder::default();
    for _ in 0..20 {
        all.open();
        all.request(get("http://h/"));
    }
    for _ in 0..20 {
        let steps = all.close();
        all.push_around("repeat", YamlValue::plain(2), steps);
    }
    let imported = all.finish("none").unwrap();
    assert_eq!(imported.left_out, ["steps more than 8 levels deep (12 times)"]);
    read(&imported);
}

#[test]
fn lines_that_are_no_request_are_refused() {
    for (line, wrong) in [
        ("", "there is no URL that a scenario can have"),
        ("curl -X", "--request: a value is missing"),
        ("curl 'h", "the quote ' is not closed"),
        ("curl --nonsense h", "--nonsense: unknown option of curl"),
        ("curl $'--a\\nb' h", "--a b: unknown option of curl"),
        ("curl -= h", "-=: unknown option of curl"),
        ("curl -d @gone h", "gone: is missing"),
        (
            "curl ws://h/x -d m",
            "there is no URL that a scenario can have: left out: POST ws://h/x: WebSockets are not \
             imported",
        ),
        ("curl ftp://h", "there is no URL that a scenario can have: left out: GET ftp://h: "),
    ] {
        let refused = curl_line(line, &mut no_file).unwrap_err().0;
        assert!(refused.starts_with(wrong) && !refused.contains('\n'), "{line}: {refused}");
    }
}

const HAR: &str = r#"{"log": {"version": "1.2", "entries": [
  {"startedDateTime": "2026-11-22T10:00:00.000Z", "time": 100.5, "request":
    {"method": "GET", "url": "https://shop.test/", "headers": [
      {"name": ":authority", "value": "shop.test"}, {"name": "accept", "value": "text/html"},
      {"name": "cookie", "value": "a=1"}, {"name": "user-agent", "value": "U"}]}},
  {"startedDateTime": "2026-11-22T12:00:00.050+02:00", "time": 20, "request":
    {"method": "GET", "url": "https://cdn.test/a.js", "headers": []}},
  {"startedDateTime": "2026-11-22T10:00:03.000Z", "time": 20, "request":
    {"method": "POST", "url": "https://shop.test/login", "headers": [
      {"name": "User-Agent", "value": "U"}, {"name": "user-agent", "value": "U2"},
      {"name": "Content-Length", "value": "7"}],
     "postData": {"mimeType": "application/x-www-form-urlencoded", "params": [
       {"name": "n", "value": "a b"}, {"name": "p", "value": "ü"}]}}}
]}}"#;

#[test]
fn a_recording_is_a_session_with_its_pauses() {
    let imported = har(HAR.as_bytes(), &[]).unwrap();
    let requests = requests(&imported);
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[1].path, "/login");
    assert_eq!(&*requests[1].body, b"n=a+b&p=%C3%BC");
    assert_eq!(header(&requests[1], "user-agent"), Some("U, U2"));
    assert!(imported.to_yaml("a test").contains("- think: 2899ms\n"));
    assert_eq!(imported.left_out.len(), 2, "{:?}", imported.left_out);
    assert!(imported.left_out[1].starts_with("requests to https://cdn.test: name it with"));
    for bad in ["", "[]", "{}", r#"{"log":{"entries":[]}}"#, "\u{0}"] {
        assert!(har(bad.as_bytes(), &[]).is_err(), "{bad}");
    }
    assert!(har(&[0xff], &[]).is_err());
}

#[test]
fn headers_that_do_not_fit_what_is_sent_are_dropped() {
    for (name, is_sent, with_base64) in [
        ("Content-Encoding", false, true),
        ("content-encoding", false, true),
        ("Content-MD5", false, true),
        ("Digest", false, true),
        ("Expect", false, false),
        ("Host", false, false),
        ("Transfer-Encoding", false, false),
        ("Content-Length", false, false),
        ("Content-Language", true, true),
        ("Accept-Encoding", true, true),
        ("X-Content-Encoding", true, true),
        ("Content-Type", true, true),
    ] {
        for (encoding, text, is_sent) in [("", "a=1", is_sent), ("base64", "YT0x", with_base64)] {
            let entry = format!(
                "{{\"log\": {{\"entries\": [{{\"request\": {{\"method\": \"POST\", \"url\": \
                 \"http://h/\", \"headers\": [{{\"name\": \"{name}\", \"value\": \"x/y\"}}], \
                 \"postData\": {{\"mimeType\": \"x/y\", \"text\": \"{text}\", \"encoding\": \
                 \"{encoding}\"}}}}}}]}}}}"
            );
            let request = &requests(&har(entry.as_bytes(), &[]).unwrap())[0];
            let sent = header(request, name);
            assert_eq!(sent, Some("x/y").filter(|_| is_sent), "{name} {encoding}");
            assert_eq!(&*request.body, b"a=1");
        }
    }
}

#[test]
fn headers_of_a_connection_are_kept_or_named() {
    for (header_line, sent, left_out) in [
        ("Connection: close", Some("close"), None),
        ("Connection: keep-alive", None, None),
        ("Connection: X, Close", Some("X, Close"), None),
        ("TE: trailers", Some("trailers"), None),
        ("TE: gzip", None, Some("codings of the transfer are not undone")),
        ("Upgrade: h2c", None, Some("a connection keeps its protocol")),
        ("Connection: Upgrade, X", None, Some("a connection keeps its protocol")),
        ("Transfer-Encoding: chunked", None, Some("a body is sent whole, with its Content-Length")),
        ("Keep-Alive: timeout=5", None, None),
        ("Proxy-Connection: keep-alive", None, None),
        ("Upgrade-Insecure-Requests: 1", Some("1"), None),
    ] {
        let imported = curl(&format!("curl http://h/ -H '{header_line}'"));
        let (name, _) = header_line.split_once(':').unwrap();
        assert_eq!(header(&requests(&imported)[0], name), sent, "{header_line}");
        let why = left_out.map(|why| format!("header {name}: {why}"));
        assert_eq!(imported.left_out, Vec::from_iter(why), "{header_line}");
    }
}

#[test]
fn credentials_come_from_the_environment() {
    let names = SecretNames::with(["X-Tenant".to_owned()]);
    for (options, header, value) in [
        ("-u me:pass-1", "Authorization", "Basic ${base64('me:${env(PASSWORD)}')}"),
        ("-H 'Authorization: Bearer pass-1'", "Authorization", "Bearer ${env(AUTHORIZATION)}"),
        ("-H 'authorization: pass-1'", "authorization", "${env(AUTHORIZATION)}"),
        (
            "-H 'Proxy-Authorization: Basic pass-1'",
            "Proxy-Authorization",
            "Basic ${env(PROXY_AUTHORIZATION)}",
        ),
        ("-H 'X-Api-Key: pass-1'", "X-Api-Key", "${env(API_KEY)}"),
        ("-H 'X-Tenant: pass-1'", "X-Tenant", "${env(TENANT)}"),
        ("--oauth2-bearer pass-1", "Authorization", "Bearer ${env(AUTHORIZATION)}"),
        ("-H 'X-Other: value-1'", "X-Other", "value-1"),
        ("-H 'X-CSRF-Token: value-1'", "X-CSRF-Token", "value-1"),
        ("-b 'theme=dark'", "Cookie", "theme=dark"),
        ("-H 'Accept: value-1'", "Accept", "value-1"),
    ] {
        let imported = curl(&format!("curl {options} h")).without_credentials(&names);
        let yaml = imported.to_yaml("curl");
        assert!(!yaml.contains("pass-1") && !yaml.contains("cGFzcy0x"), "{options}: {yaml}");
        assert!(yaml.contains(&format!("{header}: \"{value}\"\n")), "{options}: {yaml}");
    }
    let both = curl("curl -u a:pass-1 h --next -u b:pass-2 h --next -u c:pass-1 h");
    let yaml = both.without_credentials(&names).to_yaml("curl");
    for (text, count) in
        [("env(PASSWORD)", 2), ("env(PASSWORD_2)", 1), ("set PASSWORD, PASSWORD_2.", 1)]
    {
        assert_eq!(yaml.matches(text).count(), count, "{text}: {yaml}");
    }
}

#[test]
fn headers_that_all_requests_have_are_written_once() {
    let two = curl("curl -H 'A: 1' -H 'B: 2' h --next -H 'A: 1' -H 'B: 3' h");
    let yaml = two.to_yaml("curl");
    assert_eq!(yaml.matches("A: \"1\"").count(), 1, "{yaml}");
    assert!(yaml.contains("defaults:\n  headers:\n    A: \"1\"\n"), "{yaml}");
    let requests = requests(&two);
    for (request, b) in requests.iter().zip(["2", "3"]) {
        assert_eq!((header(request, "a"), header(request, "b")), (Some("1"), Some(b)));
    }
}

#[test]
fn no_text_breaks_the_file_that_is_written() {
    for text in [
        "",
        "a: b",
        "- a",
        "${x}",
        "$${x}",
        "'\"\\",
        "a\nb\r\tc",
        "#",
        "\u{7f}\u{85}",
        "\u{1f600}",
        "null",
        "!x",
        "@",
        "%41",
        "{",
        "}",
    ] {
        let draft = StepRequest {
            method: "POST".to_owned(),
            url: format!("http://h/{text}").into(),
            name: Some(text.to_owned()),
            headers: vec![("X".to_owned(), text.into())],
            body: text.as_bytes().to_vec(),
            ..StepRequest::default()
        };
        let mut all = ScenarioBuilder::default();
        all.leave_out(text);
        all.request(draft);
        let imported = all.finish("none").unwrap();
        let request = &requests(&imported)[0];
        assert_eq!(&*request.body, text.as_bytes(), "{text:?}");
    }
}
