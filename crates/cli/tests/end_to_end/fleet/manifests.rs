//! The command lines, logins and permissions of `deploy/kubernetes` as processes of this machine,
//! in the order of a cluster, where everything starts at once.

use super::ground::{Agent, LOGINS, Nats, agents};
use super::measured;
use crate::support::{Ended, KneeServer, TempPath, knee};
use serde_json::Value;
use std::process::Command;

/// The objects of a manifest.
fn objects(file: &str) -> Vec<Value> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/kubernetes");
    let text = std::fs::read_to_string(format!("{folder}/{file}")).unwrap();
    let documents = serde_norway::Deserializer::from_str(&text);
    documents.map(|document| serde::Deserialize::deserialize(document).unwrap()).collect()
}

/// The only container of a Job, with what stands for its places in the cluster.
struct Container {
    spec: Value,
    places: Vec<(&'static str, String)>,
}

impl Container {
    fn of(file: &str, places: Vec<(&'static str, String)>) -> Container {
        let spec = objects(file)[0]["spec"]["template"]["spec"]["containers"][0].clone();
        Container { spec, places }
    }

    fn placed(&self, word: &Value) -> String {
        let word = word.as_str().unwrap().to_owned();
        self.places.iter().fold(word, |word, (there, here)| word.replace(there, here))
    }

    /// Its command line and environment, with further options.
    fn command(&self, more: &[&str]) -> Command {
        let words = ["command", "args"].into_iter().flat_map(|key| {
            let words = self.spec[key].as_array().unwrap();
            words.iter().map(|word| self.placed(word)).collect::<Vec<_>>()
        });
        let mut words: Vec<String> = words.collect();
        assert_eq!(words.remove(0), "/usr/local/bin/knee");
        let words: Vec<&str> =
            words.iter().map(String::as_str).chain(more.iter().copied()).collect();
        let mut command = knee(&words);
        for variable in self.spec["env"].as_array().unwrap() {
            let value = if variable["value"].is_string() {
                self.placed(&variable["value"])
            } else {
                let key = variable["valueFrom"]["secretKeyRef"]["key"].as_str().unwrap();
                assert_eq!(key, "KNEE_COORDINATOR_PASSWORD");
                password("coordinator").to_owned()
            };
            command.env(variable["name"].as_str().unwrap(), value);
        }
        command
    }
}

fn password(user: &str) -> &'static str {
    LOGINS.iter().find(|(name, _)| *name == user).unwrap().1
}

#[test]
fn fleet_of_the_kubernetes_manifests_measures() {
    let maps = objects("nats.yaml");
    let conf = maps[0]["data"]["nats.conf"].as_str().unwrap();
    let conf = TempPath::with("manifests-nats.conf", conf);
    let Some(nats) = Nats::start(&["-c", conf.str()]) else {
        return;
    };
    let server = KneeServer::start(&["--workers", "1"]);
    let state = TempPath::new("manifests-state");
    let files: Vec<TempPath> = (0..4)
        .map(|i| TempPath::with(&format!("manifests-{i}"), password(&format!("agent-{i}"))))
        .collect();
    // Agents wait for the streams, which the coordinator makes; it waits for all of them.
    let start = |(i, file): (usize, &TempPath)| {
        let places = vec![
            ("nats://knee-nats:4222", nats.url()),
            ("$(JOB_COMPLETION_INDEX)", i.to_string()),
            ("/login/password", file.str().to_owned()),
            ("/state", state.str().to_owned()),
        ];
        Agent::of(Container::of("agents.yaml", places).command(&[]))
    };
    let mut fleet: Vec<Agent> = files.iter().enumerate().map(start).collect();
    let reports = TempPath::new("manifests-reports");
    std::fs::create_dir(&reports.0).unwrap();
    let places = vec![
        ("nats://knee-nats:4222", nats.url()),
        ("http://shop.default.svc.cluster.local/", server.url()),
        ("/reports", reports.str().to_owned()),
    ];
    let coordinator = Container::of("coordinator.yaml", places.clone());
    let short = ["--vusers", "1,2,4", "-d", "300ms", "--warmup", "100ms", "-t", "1"];
    let ended = Ended::of(coordinator.command(&short).spawn().unwrap());
    fleet.iter_mut().for_each(Agent::wait);
    assert!(measured(&ended), "{ended:?}");
    let text = std::fs::read_to_string(reports.0.join("knee-1.json")).unwrap();
    let report: Value = serde_json::from_str(&text).unwrap();
    let wide = report["trials"]
        .as_array()
        .unwrap()
        .iter()
        .max_by_key(|trial| trial["agents"].as_array().map_or(0, Vec::len));
    let of_all = serde_json::json!({ "trials": [wide] });
    let names: Vec<&str> = agents(&of_all).iter().map(|a| a["agent"].as_str().unwrap()).collect();
    assert_eq!(names, ["agent-0", "agent-1", "agent-2", "agent-3"]);
    // Out of the volume, as read-report.yaml does it, and the history beside it.
    let page = Container::of("read-report.yaml", places).command(&[]).spawn().unwrap();
    let page = Ended::of(page);
    assert!(page.status == Some(0) && page.stdout.starts_with("<!doctype html>"), "{page:?}");
    assert!(reports.0.join("knee-1.html").is_file() && reports.0.join("knee").is_dir());
    let _ = std::fs::remove_dir_all(&reports.0);
    let _ = std::fs::remove_dir_all(&state.0);
}
