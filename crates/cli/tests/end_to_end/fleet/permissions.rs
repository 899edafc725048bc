//! The permissions that `deploy/nats.conf` gives: a fleet works with them, and the login of an
//! agent can do nothing but be that agent.

use super::ground::{Agent, LOGINS, Nats, agents, eventually};
use super::measured;
use crate::support::{Ended, KneeServer, knee};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;

const SHIPPED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/nats.conf");

/// The command, logged in as this user.
fn logged_in(user: &str, arguments: &[&str]) -> Command {
    let (_, password) = LOGINS.iter().find(|(name, _)| *name == user).unwrap();
    let mut command = knee(arguments);
    command.env("NATS_USER", user).env("NATS_PASSWORD", password);
    command
}

fn ended(user: &str, arguments: &[&str]) -> Ended {
    Ended::of(logged_in(user, arguments).spawn().unwrap())
}

/// A fleet of `loader1` and `loader2`, each with its own login.
struct Guarded {
    nats: Nats,
    server: KneeServer,
    _agents: [Agent; 2],
}

impl Guarded {
    fn start() -> Option<Guarded> {
        let nats = Nats::start(&["-c", SHIPPED])?;
        let url = nats.url();
        let before = ended("coordinator", &["fleet", "ls", "--nats", &url]);
        assert!(before.stderr.contains("no agents"), "{before:?}");
        let agents = ["loader1", "loader2"].map(|name| {
            let command = logged_in(name, &["agent", "--nats", &url, "--name", name]);
            let mut agent = Agent::of(command);
            agent.wait();
            agent
        });
        Some(Guarded { nats, server: KneeServer::start(&["--workers", "1"]), _agents: agents })
    }

    fn run(&self, user: &str, options: &[&str]) -> Ended {
        let (target, url) = (self.secret_target(), self.nats.url());
        let always = ["run", &target, "--fleet", &url, "-t", "1", "--json", "-", "--quiet"];
        let secret = ["-H", "Authorization: Bearer s3cret"];
        ended(user, &[&always[..], &secret[..], options].concat())
    }

    fn secret_target(&self) -> String {
        format!("{}?key=s3cret", self.server.url())
    }
}

/// A client of NATS that speaks the protocol itself, so that it can ask for anything.
struct Spy {
    stream: TcpStream,
    lines: BufReader<TcpStream>,
    subscriptions: u32,
    /// All that came, as text.
    heard: String,
}

impl Spy {
    fn new(nats: &Nats, user: &str) -> Spy {
        let (_, password) = LOGINS.iter().find(|(name, _)| *name == user).unwrap();
        let stream = nats.connect();
        let lines = BufReader::new(stream.try_clone().unwrap());
        let mut spy = Spy { stream, lines, subscriptions: 0, heard: String::new() };
        let login = format!(
            "CONNECT {{\"verbose\":false,\"headers\":true,\"user\":\"{user}\",\
             \"pass\":\"{password}\"}}\r\n"
        );
        spy.stream.write_all(login.as_bytes()).unwrap();
        assert_eq!(spy.errors(), [""; 0], "it may log in");
        spy
    }

    /// What the server refused since this was asked last.
    fn errors(&mut self) -> Vec<String> {
        self.stream.write_all(b"PING\r\n").unwrap();
        let mut errors = Vec::new();
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "NATS hung up");
            if line.starts_with("PONG") {
                return errors;
            }
            if line.starts_with("-ERR") {
                errors.push(line);
            } else if line.starts_with("MSG") || line.starts_with("HMSG") {
                let length = line.split_whitespace().last().unwrap().parse().unwrap();
                let mut message = vec![0; length];
                self.lines.read_exact(&mut message).unwrap();
                self.heard.push_str(&String::from_utf8_lossy(&message));
            }
        }
    }

    fn may_subscribe(&mut self, subject: &str) -> bool {
        self.subscriptions += 1;
        let line = format!("SUB {subject} {}\r\n", self.subscriptions);
        self.stream.write_all(line.as_bytes()).unwrap();
        self.errors().is_empty()
    }

    fn may_publish(&mut self, subject: &str) -> bool {
        let line = format!("PUB {subject} knee.inbox.loader2.x 2\r\n{{}}\r\n");
        self.stream.write_all(line.as_bytes()).unwrap();
        self.errors().is_empty()
    }
}

#[test]
fn fleet_works_with_the_shipped_permissions() {
    let Some(guarded) = Guarded::start() else {
        return;
    };
    let run = guarded.run("coordinator", &["-R", "200", "-n", "200"]);
    assert!(measured(&run), "{run:?}");
    let report = run.json();
    assert_eq!(report["trials"][0]["outcomes"]["ok"], 200);
    let names: Vec<&Value> = agents(&report).iter().map(|a| &a["agent"]).collect();
    assert_eq!(names, ["loader1", "loader2"]);
    // Stored, and not fetched from the agents.
    assert!(agents(&report).iter().all(|a| a["kept_because"].is_null()), "{report}");
    let url = guarded.nats.url();
    let target = guarded.server.url();
    let sweep = [
        "sweep", &target, "--fleet", &url, "--vusers", "1,2", "-d", "300ms", "--warmup", "0s",
        "-t", "1", "--json", "-", "--quiet",
    ];
    let sweep = ended("coordinator", &sweep);
    assert!(measured(&sweep), "{sweep:?}");
    for verb in ["status", "clear"] {
        let told = ended("coordinator", &["fleet", verb, "--nats", &url]);
        assert_eq!(told.status, Some(0), "{told:?}");
    }
}

#[test]
fn login_of_an_agent_is_good_for_that_agent_alone() {
    let Some(guarded) = Guarded::start() else {
        return;
    };
    let mut spy = Spy::new(&guarded.nats, "loader2");
    for subject in [
        ">",
        "knee.>",
        "knee.agent.*.*",
        "knee.agent.loader1.*",
        "knee.beat.*.*",
        "knee.live.*.loader1",
        "knee.result.>",
        "knee.inbox.>",
        "knee.inbox._coordinator.>",
        "knee.inbox.loader1.>",
        "_INBOX.>",
        "$KV.>",
        "$KV.knee-plans.>",
        "$JS.>",
    ] {
        assert!(!spy.may_subscribe(subject), "it reads {subject}");
    }
    for subject in [
        "knee.agent.loader1.prepare",
        "knee.agent.loader1.stop",
        "knee.agent.loader2.stop",
        "knee.inbox._coordinator.x",
        "knee.beat.run.loader1",
        "knee.result.run.0.loader1.0",
        "knee.result.run.0._spec.0",
        "$KV.knee-agents.loader1",
        "$KV.knee-coordinator.lease",
        "$KV.knee-plans.run",
        "$JS.API.INFO",
        "$JS.API.STREAM.NAMES",
        "$JS.API.STREAM.CREATE.spy",
        "$JS.API.STREAM.PURGE.knee-results",
        "$JS.API.STREAM.MSG.GET.KV_knee-plans",
        "$JS.API.STREAM.MSG.GET.knee-results",
        "$JS.API.DIRECT.GET.KV_knee-plans",
        "$JS.API.DIRECT.GET.KV_knee-agents.$KV.knee-agents.loader2",
        "$JS.API.CONSUMER.CREATE.knee-results",
    ] {
        assert!(!spy.may_publish(subject), "it writes {subject}");
    }
    // What it is for.
    assert!(spy.may_subscribe("knee.agent.loader2.*"));
    assert!(spy.may_subscribe("knee.inbox.loader2.>"));
    assert!(spy.may_publish("knee.beat.run.loader2"));
    // A whole run on the other agent, and nothing of it is heard.
    let run = guarded.run("coordinator", &["-R", "200", "-n", "100", "--agents", "loader1"]);
    assert!(measured(&run), "{run:?}");
    assert_eq!(spy.errors(), [""; 0]);
    assert!(!spy.heard.contains("s3cret"), "{}", spy.heard);
    assert!(!spy.heard.contains("loader1"), "{}", spy.heard);
    // Its own orders it does hear, so that it would have heard the others'.
    let run = guarded.run("coordinator", &["-R", "200", "-n", "100"]);
    assert!(measured(&run), "{run:?}");
    eventually("its own order does not come", || {
        spy.errors();
        spy.heard.contains("\"crew\"")
    });
}

#[test]
fn login_of_an_agent_neither_conducts_nor_takes_another_name() {
    let Some(guarded) = Guarded::start() else {
        return;
    };
    let run = guarded.run("loader2", &["-R", "200", "-n", "100"]);
    assert!(matches!(run.status, Some(2 | 4)), "{run:?}");
    let url = guarded.nats.url();
    let other = ended("loader2", &["agent", "--nats", &url, "--name", "other"]);
    assert_eq!(other.status, Some(2), "{other:?}");
    let words = ["Permissions Violation", ".other", "--name"];
    assert!(words.iter().all(|w| other.stderr.contains(w)), "{other:?}");
    assert_eq!(guarded.server.served()["requests"], 0);
}
