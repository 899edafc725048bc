//! An agent whose network is cut off from all others while it goes on to load its target.

use super::failures::lost;
use super::ground::{Agent, Running, agents, eventually, nats_server};
use super::measured;
use crate::support::{Ended, KneeServer, Link, NEAR, TempPath, knee, program};
use serde_json::Value;
use std::process::{Child, Command};
use std::time::Duration;

const PORT: u16 = 4222;
/// Each end has a server here: what is cut is the way to NATS, not the way to the target.
const TARGET: &str = "127.0.0.1:8080";

/// Two ends of a link. NATS, the coordinator and agent `here` are at this one, agent `there` at the
/// other.
struct Parted {
    link: Link,
    _nats: Running,
    _folder: TempPath,
    _agents: [Agent; 2],
    _servers: [KneeServer; 2],
}

impl Parted {
    fn new(name: &str) -> Option<Parted> {
        let binary = program("nats-server")?;
        let link = Link::through("pfifo limit 1000")?;
        let folder = TempPath::new(&format!("jetstream-{name}"));
        let mut nats = nats_server(&binary, (NEAR, PORT), &folder);
        link.here(&mut nats);
        let _nats = Running(nats.spawn().unwrap());
        let is_up = || {
            let mut status = knee(&["fleet", "status", "--nats", &url()]);
            link.here(&mut status);
            Ended::of(status.spawn().unwrap()).status == Some(0)
        };
        eventually("NATS does not start", is_up);
        let serve = ["http", "--listen", TARGET, "--workers", "1", "--json", "-"];
        let _servers = [
            KneeServer::placed(&serve, |command| link.here(command)),
            KneeServer::placed(&serve, |command| link.there(command)),
        ];
        let agent = |name: &str, place: &dyn Fn(&mut Command)| {
            let mut command = knee(&["agent", "--nats", &url(), "--name", name]);
            place(&mut command);
            let mut agent = Agent::of(command);
            agent.wait();
            agent
        };
        let _agents = [
            agent("here", &|command| link.here(command)),
            agent("there", &|command| link.there(command)),
        ];
        Some(Parted { link, _nats, _folder: folder, _agents, _servers })
    }

    fn here(&self, arguments: &[&str]) -> Child {
        let mut command = knee(arguments);
        self.link.here(&mut command);
        command.spawn().unwrap()
    }

    /// A run of both agents whose load has begun.
    fn under_way(&self, options: &[&str]) -> Child {
        let (target, url) = (format!("http://{TARGET}/"), url());
        let always = ["run", &target, "--fleet", &url, "-t", "1", "--json", "-", "--quiet"];
        let child = self.here(&[&always[..], options].concat());
        let loaded = |agent: &Agent| agent.has_said("trial 1 of run");
        eventually("the run does not begin", || self._agents.iter().all(loaded));
        // From the order to the first operation.
        std::thread::sleep(Duration::from_secs(1));
        child
    }
}

fn url() -> String {
    format!("nats://{NEAR}:{PORT}")
}

#[test]
fn an_agent_that_is_cut_off_for_seconds_goes_on_and_delivers() {
    let Some(parted) = Parted::new("parted") else {
        return;
    };
    let child = parted.under_way(&["-R", "100", "-n", "600"]);
    parted.link.cut();
    std::thread::sleep(Duration::from_secs(3));
    parted.link.mend();
    let ended = Ended::of(child);
    assert!(measured(&ended), "{ended:?}");
    let report = ended.json();
    assert!(lost(&report).is_empty(), "{ended:?}");
    assert_eq!(report["trials"][0]["outcomes"]["ok"], 600);
    assert!(agents(&report).iter().all(|a| a["completed"] == 300));
}

#[test]
fn an_agent_that_stays_cut_off_is_lost_and_its_result_is_not() {
    let Some(parted) = Parted::new("cut-off") else {
        return;
    };
    let child = parted.under_way(&["-R", "100", "-n", "600"]);
    parted.link.cut();
    let ended = Ended::of(child);
    assert_eq!(ended.status, Some(3), "{ended:?}");
    let report = ended.json();
    assert_eq!(lost(&report), ["there"]);
    assert_eq!(report["trials"][0]["invalid_clauses"][0], "agent_lost");
    assert_eq!(report["trials"][0]["outcomes"]["ok"], 300);
    // What it measured is collected once there is a way again.
    parted.link.mend();
    let collect = ["fleet", "collect", "--nats", &url(), "--json", "-"];
    let mut whole = Value::Null;
    eventually("its result does not come", || {
        let ended = Ended::of(parted.here(&collect));
        whole = serde_json::from_str(&ended.stdout).unwrap_or_default();
        measured(&ended) && lost(&whole).is_empty()
    });
    assert_eq!(whole["trials"][0]["outcomes"]["ok"], 600);
}
