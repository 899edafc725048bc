//! What each format becomes, and that a scenario can have it.

mod described;
mod mutated;
mod nested;
mod plans;
mod recordings;
mod scripts;

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
pub(super) fn read(imported: &Imported) -> Scenario {
    let yaml = imported.to_yaml("a test");
    let read = |mut environment| parse_scenario(yaml.as_bytes(), "f", &mut environment);
    let mut wrong = None;
    for environment in Environment::all(&yaml) {
        match read(environment) {
            Ok(scenario) => return scenario,
            Err(other) => wrong = wrong.or(Some(other)),
        }
    }
    panic!("{}\n{yaml}", wrong.map_or_else(String::new, |wrong| wrong.0))
}

#[track_caller]
fn requests(imported: &Imported) -> Vec<HttpRequest> {
    read(imported).requests
}

fn header<'a>(request: &'a HttpRequest, name: &str) -> Option<&'a str> {
    let mut headers = request.headers.iter();
    headers.find_map(|(n, v)| n.eq_ignore_ascii_case(name).then_some(v.as_str()))
}

fn curl(line: &str) -> Imported {
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
    assert_eq!(imported.left_out, ["what follows curl: | jq ."]);
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
        ("curl --json @body.json h", "POST", "/", "{\"a\":[1,2]}"),
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
    assert_eq!(told.sessions[0].steps.len(), 3);
    assert_eq!(told.targets.len(), 2);
    assert!(told.to_yaml("curl").contains("redirects: 50"));
    assert_eq!(told.left_out.len(), 4, "{:?}", told.left_out);
    let user = curl("curl -u me:pw -A a/1 -e r h");
    let request = &requests(&user)[0];
    assert_eq!(header(request, "authorization"), Some("Basic bWU6cHc="));
    assert_eq!(header(request, "user-agent"), Some("a/1"));
    assert_eq!(header(request, "referer"), Some("r"));
    let form = curl("curl -F a=1 h");
    let request = &requests(&form)[0];
    assert!(request.body.starts_with(b"------knee"), "{form:?}");
    assert!(header(request, "content-type").is_some_and(|t| t.starts_with("multipart/")));
}

#[test]
fn a_name_is_taken_as_it_is() {
    let mut imported = curl("curl http://h/");
    if let [ImportedStep::Request(request)] = &mut imported.sessions[0].steps[..] {
        request.name = Some("a ${b}".to_owned());
    }
    assert_eq!(read(&imported).plan.requests[0].name, "a ${b}");
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
    assert_eq!(imported.sessions[0].steps[1], ImportedStep::Think("2899ms".to_owned()));
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
        let steps = &imported.sessions[0].steps;
        let [ImportedStep::Request(request)] = &steps[..] else {
            panic!("{steps:?}");
        };
        let found = request.headers.iter().find(|(name, _)| name == header);
        assert_eq!(found.map(|(_, value)| value.template()).as_deref(), Some(value), "{options}");
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
    assert_eq!(two.headers, [("A".to_owned(), "1".into())]);
    let requests = requests(&two);
    for (request, b) in requests.iter().zip(["2", "3"]) {
        assert_eq!((header(request, "a"), header(request, "b")), (Some("1"), Some(b)));
    }
}

const VEGETA: &str = "# targets\nGET http://h:8080/a\nX-A: 1\nX-A: 2\n\n\
    POST http://h:8080/b\nContent-Type: application/json\n@body.json\nGET http://h:8080/c\n";

#[test]
fn targets_of_vegeta_are_steps_in_their_order() {
    let imported = vegeta(VEGETA.as_bytes(), &mut no_file).unwrap();
    // Beside each is what it is redirected to.
    let mut all = requests(&imported);
    all.retain(|request| !request.path.is_empty());
    let paths: Vec<&str> = all.iter().map(|r| r.path.as_str()).collect();
    assert_eq!(paths, ["/a", "/b", "/c"]);
    assert_eq!(header(&all[0], "x-a"), Some("1, 2"));
    assert_eq!(&*all[1].body, b"{\"a\":[1,2]}");
    let json = r#"{"method":"POST","url":"http://h/x","body":"aGk=","header":{"A":["1"]}}"#;
    let imported = vegeta(json.as_bytes(), &mut no_file).unwrap();
    let all = requests(&imported);
    assert_eq!((&*all[0].body, header(&all[0], "a")), (&b"hi"[..], Some("1")));
    for (bad, wrong) in [
        ("", "the file has no target"),
        ("GET", "line 1: no target"),
        ("GET http://h/ x", "line 1: no target"),
        ("GET http://h/\nnonsense", "line 2: neither"),
        ("GET http://h/\n@gone", "line 2: gone: is missing"),
        ("{\"method\":1}", "line 1: no target"),
        ("{\"method\":\"GET\",\"url\":\"h\",\"body\":\"?\"}", "line 1: the body"),
    ] {
        let refused = vegeta(bad.as_bytes(), &mut no_file).unwrap_err().0;
        assert!(refused.starts_with(wrong) && !refused.contains('\n'), "{bad}: {refused}");
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
        let draft = SourceRequest {
            method: "POST".to_owned(),
            url: format!("http://h/{text}").into(),
            name: Some(text.to_owned()),
            headers: vec![("X".to_owned(), text.into())],
            body: text.as_bytes().to_vec(),
            ..SourceRequest::default()
        };
        let mut all = Collector::default();
        all.leave_out(text);
        all.request(draft);
        let imported = all.finish("none").unwrap();
        let request = &requests(&imported)[0];
        assert_eq!(&*request.body, text.as_bytes(), "{text:?}");
    }
}
