//! Command lines of curl as browsers copy them, with `knee run` in the place of `curl`: as the
//! shell hands them over.

mod lines;

use super::raw::{RawArgs, RawCommand};
use crate::usage;
use knee_core::spec::{Endpoint, HttpTarget};
use lines::LINES;
use std::ffi::OsString;

fn read(line: &[&str]) -> Result<RawCommand, String> {
    let argv: Vec<&str> = ["knee", "run"]
        .into_iter()
        .chain(line.iter().copied())
        .collect();
    let command = RawArgs::command_of(argv.iter().map(OsString::from));
    let read = RawArgs::read(argv);
    read.map(|raw| raw.command)
        .map_err(|e| usage::one_line(&e, &command))
}

fn target(line: &[&str]) -> Result<HttpTarget, String> {
    match read(line)? {
        RawCommand::Run(raw) => raw.target.resolve().map_err(|e| e.line),
        other => panic!("{other:?}"),
    }
}

#[test]
fn copied_lines_run_unchanged() {
    for copied in LINES {
        let line = copied.line;
        let target = target(line).unwrap_or_else(|e| panic!("{line:?}: {e}"));
        let [request] = &target.requests[..] else {
            panic!("{line:?}: one request");
        };
        let (method, host, path) = copied.request;
        assert_eq!(
            (
                request.method.as_str(),
                request.host.as_str(),
                request.path.as_str()
            ),
            (method, host, path),
            "{line:?}"
        );
        for (name, value) in copied.headers {
            let header = (name.to_string(), value.to_string());
            assert!(request.headers.contains(&header), "{line:?}: {name}");
        }
        let mut names: Vec<String> = request.headers.iter().map(|h| h.0.to_lowercase()).collect();
        let headers = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), headers, "{line:?}: no header twice");
        assert_eq!(
            String::from_utf8_lossy(&request.body),
            copied.body,
            "{line:?}"
        );
    }
}

#[test]
fn what_is_not_certain_is_refused_by_name() {
    let url = "http://h/";
    for (line, wrong) in [
        (
            &["-b", "a=1"][..],
            "-b: 'a=1' can be a cookie, as in curl, or a body: write --cookie or --body",
        ),
        (
            &["-d", "soon"],
            "--duration: 'soon' is not a duration: write one such as 10s, or --data for the data \
             of curl",
        ),
        (
            &["-m", "10"],
            "-m: '10' is no method: write --timeout for the time limit of a request",
        ),
        (
            &["--json", "@a.json"],
            "--json: '@a.json' can be a body, as in curl, or the file of the report: write \
             --json-body '@a.json', or './@a.json'",
        ),
        (
            &["--cookie", "jar.txt"],
            "--cookie: 'jar.txt' is no cookie: write NAME=VALUE; files of cookies are not read",
        ),
        (
            &["-x", "socks5://h:1"],
            "--proxy: 'socks5://h:1' is no HTTP proxy: give http://HOST:PORT",
        ),
        (
            &["-x", "proxy"],
            "--proxy: 'proxy' is no HTTP proxy: give http://HOST:PORT",
        ),
        (
            &["-x", "p:3128", "--http2-prior-knowledge"],
            "--proxy: a proxy is asked in HTTP/1.1: leave --http2-prior-knowledge out",
        ),
        (
            &["--form", "a"],
            "--form: 'a' is no part of a form: write NAME=VALUE",
        ),
        (
            &["-F", "a=1", "--data", "b"],
            "--form and --data exclude each other: leave one out",
        ),
    ] {
        let line = [&[url], line].concat();
        assert_eq!(target(&line).unwrap_err(), wrong, "{line:?}");
    }
    let secure = target(&["https://h/", "-x", "p:3128"]).unwrap_err();
    assert!(
        secure.starts_with("--proxy: a proxy for https://"),
        "{secure}"
    );
}

#[test]
fn what_is_expected_makes_a_session_of_one_step() {
    let of = |line: &[&str]| target(&[&["http://h/a"], line].concat()).unwrap();
    assert!(of(&[]).sessions.is_none());
    let followed = of(&["-L", "--expect-status", "2xx", "--expect-body", "ok"]);
    let plan = followed.sessions.unwrap();
    assert_eq!((followed.requests.len(), plan.requests.len()), (2, 2));
    assert_eq!(plan.requests[0].expect.len(), 2);
    assert_eq!(plan.requests[0].redirects, 50);
    let wrong = target(&["http://h/", "--expect-status", "20"]).unwrap_err();
    assert!(wrong.contains("is no status"), "{wrong}");
}

#[test]
fn what_knee_means_by_these_options_stays() {
    let trial = |line: &[&str]| match read(line).unwrap() {
        RawCommand::Run(raw) => {
            let spec = raw.resolve(&super::tests::MACHINE).unwrap();
            spec.trial
        }
        other => panic!("{other:?}"),
    };
    let url = "http://127.0.0.1:8080/";
    for line in [&[url, "-d", "30s"][..], &[url, "-d30s"], &["-d=30s", url]] {
        let trial = trial(line);
        assert_eq!(trial.duration.as_secs_f64(), 30.0, "{line:?}");
        assert_eq!(trial.target.requests[0].method, "GET");
    }
    for body in ["text", "a=1&b=2", r#"{"a":1}"#, "<a b=\"1\"/>"] {
        let trial = trial(&[url, "-b", body]);
        let request = &trial.target.requests[0];
        assert_eq!(
            (request.method.as_str(), &*request.body),
            ("POST", body.as_bytes())
        );
    }
    let both = trial(&[url, "-d", "a=1", "-d", "3s"]);
    assert_eq!(both.duration.as_secs_f64(), 3.0);
    assert_eq!(&*both.target.requests[0].body, b"a=1");
}

#[test]
fn a_proxy_is_asked_with_the_whole_url() {
    let target = target(&["http://shop.test/a?b=1", "-x", "http://127.0.0.1:3128/"]).unwrap();
    let endpoint = Endpoint::Tcp {
        host: "127.0.0.1".to_owned(),
        port: 3128,
    };
    assert_eq!(target.endpoint, endpoint);
    assert_eq!(target.requests[0].path, "http://shop.test/a?b=1");
    assert_eq!(target.requests[0].host, "shop.test");
}
