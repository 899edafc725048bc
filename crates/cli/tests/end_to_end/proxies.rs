//! Loads through HTTP proxies, against what curl does.

use crate::support::{Ended, KneeServer, LoggingProxy, ProxyAnswer, knee, program, run};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::process::Command;

const ONE: &[&str] = &["-n", "1", "--vusers", "1", "--json", "-", "--no-save", "--quiet"];

const OK: ProxyAnswer = ProxyAnswer::Head("HTTP/1.1 200 OK");

/// One operation with these options and variables.
fn one(url: &str, options: &[&str], variables: &[(&str, &str)]) -> Ended {
    let mut command = knee(&[&["run", url], ONE, options].concat());
    command.envs(variables.iter().copied());
    Ended::of(command.spawn().unwrap())
}

/// The same by curl, which has no other variables; `None` where it is not installed.
fn curl(url: &str, options: &[&str], variables: &[(&str, &str)]) -> Option<()> {
    let mut command = Command::new(program("curl")?);
    let always = ["-q", "-s", "-o", "/dev/null", "--max-time", "20"];
    command.env_clear().envs(variables.iter().copied()).args(always).args(options).arg(url);
    // Whether it succeeded does not matter.
    command.output().unwrap();
    Some(())
}

/// A port of the loopback where nobody listens.
fn closed_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn trial(ended: &Ended) -> Value {
    assert!(matches!(ended.status, Some(0 | 1 | 3)), "{ended:?}");
    ended.json()["trials"][0].clone()
}

#[test]
fn hosts_without_a_proxy_are_those_of_curl() {
    let proxy = LoggingProxy::start(OK);
    let port = closed_port();
    let of_port = format!("example.test:{port}");
    let rows = [
        ("example.test", "", false),
        ("example.test", "*", true),
        ("example.test", "example.test", true),
        ("www.example.test", "example.test", true),
        ("nonexample.test", "example.test", false),
        ("www.example.test", ".example.test", true),
        ("example.test", ".example.test", true),
        ("example.test", "example.test.", true),
        ("EXAMPLE.test", "example.TEST", true),
        ("example.test", "a.test, example.test", true),
        ("example.test", "a.test example.test", true),
        ("example.test", "a.test,*", false),
        ("example.test", of_port.as_str(), false),
        ("example.test", "*.test", false),
        ("example.test", "..test", false),
        ("test", "example.test", false),
        ("127.0.0.1", "127.0.0.1", true),
        ("127.0.0.1", "127.0.0.0/8", true),
        ("127.0.0.1", "10.0.0.0/8", false),
        ("127.0.0.1", "127.0.0.0/0", false),
        ("127.0.0.1", "127.0.0.1/32", true),
        ("127.0.0.1", "127.0.0.0/33", false),
        ("127.0.0.1", "127.0.0.1/x", true),
        ("127.0.0.1", "0.0.1", false),
        ("127.0.0.1", "localhost", false),
        ("localhost", "127.0.0.1", false),
        ("[::1]", "::1", true),
        ("[::1]", "fe80::/10", false),
    ];
    for (host, list, is_direct) in rows {
        let url = format!("http://{host}:{port}/");
        let rule = format!("{host}:{port}:127.0.0.1");
        let by_name = host.contains("test").then_some(["--resolve", rule.as_str()]);
        let options = by_name.as_ref().map_or(&[][..], |options| options);
        let variables = [("http_proxy", proxy.address.as_str()), ("no_proxy", list)];
        let ended = one(&url, options, &variables);
        assert_eq!(proxy.seen().is_empty(), is_direct, "{host} {list}: {ended:?}");
        assert_eq!(ended.status == Some(4), is_direct, "{host} {list}: {ended:?}");
        if curl(&url, options, &variables).is_some() {
            assert_eq!(proxy.seen().is_empty(), is_direct, "curl: {host} {list}");
        }
    }
}

#[test]
fn requests_and_credentials_are_those_of_curl() {
    let proxy = LoggingProxy::start(OK);
    let at = |user: &str| format!("http://{user}{}", proxy.address);
    let (plain, with_user) = (at(""), at("u:canary%401@"));
    let rows: &[(&str, &[&str])] = &[
        ("http://h.test/a?b", &["-x", &plain]),
        ("http://h.test", &["-x", &with_user]),
        ("http://h.test:81/", &["-x", &at("u@")]),
        ("http://h.test/", &["-x", &plain, "-U", "o:canary-2"]),
        ("http://h.test/", &["-x", &with_user, "--proxy-user", "o:canary-2"]),
        ("http://h.test/", &["-x", &plain, "-H", "Host: other"]),
        ("http://[::1]:81/x", &["-x", &plain]),
        ("http://bücher.test/", &["-x", &plain]),
        ("https://h.test/", &["-x", &plain, "-U", "o:canary-2"]),
        ("https://[::1]:4433/", &["-x", &with_user]),
    ];
    for (url, options) in rows {
        let ended = one(url, options, &[]);
        let asked = proxy.seen();
        assert_eq!(asked.len(), 1, "{url} {options:?}: {ended:?}");
        for secret in ["canary", "dTpjYW5hcnlAMQ==", "bzpjYW5hcnktMg=="] {
            let told = format!("{}{}", ended.stdout, ended.stderr);
            assert!(!told.contains(secret), "{url} {options:?}: {told}");
        }
        if curl(url, &[options, &["--http1.1"][..]].concat(), &[("LC_ALL", "C.UTF-8")]).is_some() {
            assert_eq!(asked, proxy.seen(), "{url} {options:?}");
        }
    }
}

#[test]
fn tunnels_lead_to_servers_of_every_protocol() {
    for (kind, scheme, path, options) in [
        (&["http"][..], "http", "", &[][..]),
        (&["http", "--tls"], "https", "", &["-k"]),
        (&["http", "--tls"], "https", "", &["-k", "--http1.1"]),
        (&["http"], "http", "", &["--http2-prior-knowledge"]),
        (&["ws"], "ws", "chat", &[]),
        (&["grpc"], "grpc", "knee.Echo/Say", &["-b", r#"{"text":"hi"}"#]),
    ] {
        let server = KneeServer::of(&[kind, &["--listen", "127.0.0.1:0"]].concat());
        let proxy = LoggingProxy::start(ProxyAnswer::To(server.address.clone()));
        for backend in crate::support::backends(&server.url()) {
            proxy.seen();
            let url = format!("{scheme}://{}/{path}", server.address);
            let many = ["-n", "20", "--vusers", "2", "-x", &proxy.address, "--backend", backend];
            let output = ["--json", "-", "--no-save", "--quiet"];
            let ended = run(&[&["run", &url][..], options, &many, &output].concat());
            let trial = trial(&ended);
            assert_eq!(trial["outcomes"], json!({"ok": 20}), "{scheme} {options:?}: {ended:?}");
            let through = json!([format!("http://{} (--proxy)", proxy.address)]);
            assert_eq!(trial["routed"]["proxies"], through, "{scheme}");
            let tunnel = format!("CONNECT {}", server.address);
            let seen = proxy.seen();
            let tunnels = seen.iter().filter(|asked| **asked == tunnel).count();
            if scheme == "http" && options.is_empty() {
                assert!(seen.iter().all(|asked| *asked == format!("GET {url}")), "{seen:?}");
                assert_eq!(seen.len(), 20);
            } else {
                assert!(tunnels >= 1 && tunnels == seen.len(), "{scheme}: {seen:?}");
            }
        }
    }
}

#[test]
fn refusal_of_a_proxy_is_named_as_its_own() {
    for (answer, told) in [
        (
            ProxyAnswer::Head("HTTP/1.1 407 Proxy Authentication Required"),
            "it answered 407 Proxy Authentication Required: give it a user with --proxy-user",
        ),
        (ProxyAnswer::Head("HTTP/1.1 502 Bad Gateway"), "it answered 502 Bad Gateway"),
        (ProxyAnswer::Head("HTTP/1.1 503"), "it answered 503"),
        (ProxyAnswer::Head("SSH-2.0-x"), "it does not answer in HTTP/1.1"),
        (ProxyAnswer::Nothing, "it closed the connection before it had answered"),
    ] {
        let proxy = LoggingProxy::start(answer);
        let ended = one("https://h.test/", &[], &[("HTTPS_PROXY", &proxy.address)]);
        assert_eq!((ended.status, ended.stdout.as_str()), (Some(4), ""), "{ended:?}");
        let line = format!(
            "the proxy http://{} (HTTPS_PROXY) did not connect to h.test:443: {told}",
            proxy.address
        );
        let last = ended.stderr.lines().last().unwrap_or_default();
        assert!(last.contains(&line), "{ended:?}");
    }
    let closed = format!("127.0.0.1:{}", closed_port());
    let ended = one("http://h.test/", &["-x", &closed], &[]);
    assert_eq!(ended.status, Some(4), "{ended:?}");
    let line = format!("the proxy http://{closed} (--proxy): cannot connect to {closed}: ");
    assert!(ended.stderr.contains(&line), "{ended:?}");
    let ended = one("http://h.test/", &[], &[("http_proxy", "socks5://u:canary@p:1")]);
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("http_proxy: 'socks5://***@p:1' is a proxy of"), "{ended:?}");
}

#[test]
fn environment_is_told_and_left_out_on_demand() {
    let server = KneeServer::with(&["--listen", "127.0.0.1:0"]);
    let proxy = LoggingProxy::start(ProxyAnswer::To(server.address.clone()));
    let variables = [("http_proxy", proxy.address.as_str())];
    let through = format!("through the proxy http://{} (http_proxy)", proxy.address);
    let mut command = knee(&["run", &server.url(), "-n", "2", "--vusers", "1", "--no-save"]);
    let ended = Ended::of(command.envs(variables).spawn().unwrap());
    assert!(ended.stdout.contains(&through), "{ended:?}");
    assert!(
        ended.stderr.contains(&format!("{through}; --noproxy '*' goes without it")),
        "{ended:?}"
    );
    assert_eq!(proxy.seen().len(), 2);
    let ended = one(&server.url(), &["--noproxy", "*"], &variables);
    assert_eq!((trial(&ended)["routed"].clone(), proxy.seen()), (Value::Null, Vec::new()));
    // A built-in server is reached without one.
    let mut command = knee(&["sweep", "--vusers", "1", "-d", "100ms", "--no-save", "--quiet"]);
    let ended = Ended::of(command.envs(variables).spawn().unwrap());
    assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
    assert!(proxy.seen().is_empty());
    let refused = run(&["run", "dns://127.0.0.1/a", "-x", &proxy.address]);
    assert_eq!(refused.status, Some(2), "{refused:?}");
}
