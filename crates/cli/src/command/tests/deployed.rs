//! The manifests and the chart in `deploy/` agree with each other, with `nats.conf` and with the
//! program. What needs helm is skipped where it is not installed.

use crate::command::raw::RawArgs;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The manifests that the chart makes.
const FROM_CHART: [&str; 5] =
    ["agents.yaml", "coordinator.yaml", "nats.yaml", "network-policy.yaml", "reports.yaml"];

fn deploy(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(path)
}

fn text(path: &str) -> String {
    fs::read_to_string(deploy(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The objects of a file in YAML.
fn objects(yaml: &str) -> Vec<Value> {
    let documents = serde_norway::Deserializer::from_str(yaml)
        .map(|document| Value::deserialize(document).unwrap_or_else(|e| panic!("{e}: {yaml}")));
    documents.filter(|value| !value.is_null()).collect()
}

/// All objects that `kubectl apply -k deploy/kubernetes` makes, but for the Secret.
fn manifests() -> Vec<Value> {
    FROM_CHART.iter().flat_map(|file| objects(&text(&format!("kubernetes/{file}")))).collect()
}

fn at<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("{pointer}: {value}"))
}

fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn words<'a>(value: &'a Value, pointer: &str) -> Vec<&'a str> {
    list(value, pointer).iter().map(|word| word.as_str().unwrap()).collect()
}

/// The object of a kind whose name ends so.
fn object<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let is_it = |o: &&Value| o["kind"] == kind && at(o, "/metadata/name").ends_with(name);
    objects.iter().find(is_it).unwrap_or_else(|| panic!("no {kind} {name}"))
}

/// Specs of pods, with the names of their objects.
fn pods(objects: &[Value]) -> Vec<(&str, &Value)> {
    let named = objects.iter().map(|o| (at(o, "/metadata/name"), o.pointer("/spec/template/spec")));
    named.filter_map(|(name, pod)| Some((name, pod?))).collect()
}

/// The command lines of knee in pods, as Kubernetes runs them in the pod with index 0.
fn knee_lines(objects: &[Value]) -> Vec<Vec<String>> {
    let mut lines = Vec::new();
    for (_, pod) in pods(objects) {
        for container in list(pod, "/containers") {
            let line = [words(container, "/command"), words(container, "/args")].concat();
            if line[0].ends_with("/knee") {
                let expand = |w: &&str| {
                    w.replace("$(JOB_COMPLETION_INDEX)", "0").replace("$(POD_NAME)", "knee-x")
                };
                lines.push(line.iter().map(expand).collect());
            }
        }
    }
    lines
}

fn is_taken(line: &[String]) {
    let read = RawArgs::read(line.iter().cloned());
    assert!(read.is_ok(), "{line:?}: {}", read.unwrap_err());
}

/// Runs helm, also where go installs it. The shell ends with 127 where there is none.
const HELM: &str = r#"PATH="$PATH:$HOME/go/bin" exec helm "$@""#;

/// What helm prints, and whether it succeeds; `None` where it is not installed.
fn helm(arguments: &[&str]) -> Option<(bool, String)> {
    let mut shell = Command::new("sh");
    shell.args(["-c", HELM, "helm"]).args(arguments).current_dir(deploy("helm/knee"));
    let run = shell.output().unwrap();
    if run.status.code() == Some(127) {
        println!("skipped: helm is not installed");
        return None;
    }
    let said = String::from_utf8_lossy(&run.stdout) + String::from_utf8_lossy(&run.stderr);
    Some((run.status.success(), said.into_owned()))
}

/// What the chart makes of its default values and these; `None` where helm is not installed.
fn rendered(settings: &[&str]) -> Option<(bool, String)> {
    let set = settings.iter().flat_map(|setting| ["--set", setting]);
    let always = ["template", "knee", ".", "--namespace", "knee", "--kube-version", "1.30.0"];
    helm(&always.into_iter().chain(set).collect::<Vec<_>>())
}

#[test]
fn plain_manifests_are_what_the_chart_makes() {
    let Some((is_made, yaml)) = rendered(&["logins.existingSecret=knee-logins"]) else {
        return;
    };
    assert!(is_made, "{yaml}");
    let mut files: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for document in yaml.split("---\n").skip(1) {
        let (source, document) = document.split_once('\n').unwrap();
        files.entry(source.rsplit('/').next().unwrap()).or_default().push(document);
    }
    assert_eq!(files.keys().copied().collect::<Vec<_>>(), FROM_CHART);
    for (file, documents) in files {
        let made = format!(
            "# Made of deploy/helm/knee/templates/{file} with the chart's default values: change \
             it there.\n{}",
            documents.join("---\n")
        );
        let path = deploy("kubernetes").join(file);
        if std::env::var_os("KNEE_WRITE_DOCS").is_some() {
            fs::write(&path, &made).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), made, "KNEE_WRITE_DOCS=1 updates {file}");
    }
}

#[test]
fn chart_takes_good_values_and_refuses_others() {
    let Some((is_good, said)) = helm(&["lint", "--strict", "."]) else {
        return;
    };
    assert!(is_good, "{said}");
    for good in [
        &["agents.kind=DaemonSet", "agents.hostNetwork=true", "agents.rateMax=20000"][..],
        &["agents.count=50", "agents.onePerNode=false", "imagePullSecrets[0].name=x"],
        &["coordinator.enabled=false", "networkPolicy.enabled=false"],
        &["coordinator.command={run,http://10.0.0.5/,-R,1000,--fail-if,p99>200ms}"],
        &["nats.enabled=false", "nats.url=tls://nats.example:4222", "report.existingClaim=mine"],
    ] {
        let (is_made, yaml) = rendered(good).unwrap();
        assert!(is_made, "{good:?}: {yaml}");
        let made = objects(&yaml);
        let lines = knee_lines(&made);
        assert_eq!(lines.len(), 2, "{good:?}");
        lines.iter().for_each(|line| is_taken(line));
        names_agree(&made, &keys_of(object(&made, "Secret", "knee-logins")));
    }
    for (bad, words) in [
        ("agents.count=0", "agents/count"),
        ("agents.kind=Deployment", "agents/kind"),
        ("agents.alowTargets={10.0.0.0/8}", "alowTargets"),
        ("coordinator.command=sweep", "coordinator/command"),
        ("nats.enabled=false", "nats/url"),
        ("nats.url=nats://user:secret@nats:4222", "nats/url"),
    ] {
        let (is_made, said) = rendered(&[bad]).unwrap();
        let told = said.replace('.', "/");
        assert!(!is_made && told.contains(words), "{bad}: {said}");
    }
}

#[test]
fn command_lines_of_manifests_are_taken() {
    let all = [manifests(), objects(&text("kubernetes/read-report.yaml"))].concat();
    let lines = knee_lines(&all);
    let verbs: Vec<&str> = lines.iter().map(|line| line[1].as_str()).collect();
    assert_eq!(verbs, ["agent", "sweep", "report"]);
    lines.iter().for_each(|line| is_taken(line));
}

/// Keys of a Secret.
fn keys_of(secret: &Value) -> BTreeSet<String> {
    secret["data"].as_object().unwrap().keys().cloned().collect()
}

/// Every volume, claim, config map, secret with its keys, port and label that an object names is
/// there. `keys`: those of the Secret with the passwords.
fn names_agree(objects: &[Value], keys: &BTreeSet<String>) {
    let has = |kind: &str, name: &str| {
        objects.iter().any(|o| o["kind"] == kind && at(o, "/metadata/name") == name)
    };
    for (name, pod) in pods(objects) {
        let volumes: Vec<&Value> = list(pod, "/volumes").iter().collect();
        let claimed = object_with_pod(objects, name);
        for container in list(pod, "/containers") {
            for mount in list(container, "/volumeMounts") {
                let volume = volumes.iter().any(|volume| volume["name"] == mount["name"]);
                let claim = list(claimed, "/spec/volumeClaimTemplates").iter();
                let mut claim = claim.filter(|claim| claim["metadata"]["name"] == mount["name"]);
                assert!(volume || claim.next().is_some(), "{name}: {mount}");
                let path = mount["subPathExpr"].as_str().or(mount["subPath"].as_str());
                if let Some(path) = path {
                    let key = path.replace("$(JOB_COMPLETION_INDEX)", "0");
                    assert!(keys.contains(&key), "{name}: {key} is not in {keys:?}");
                }
            }
            for variable in list(container, "/env") {
                if let Some(secret) = variable.pointer("/valueFrom/secretKeyRef") {
                    assert_eq!(secret["name"], "knee-logins");
                    assert!(keys.contains(at(secret, "/key")), "{secret}");
                }
            }
            for from in list(container, "/envFrom") {
                assert_eq!(from["secretRef"]["name"], "knee-logins");
            }
        }
        for volume in volumes {
            if let Some(map) = volume.pointer("/configMap/name") {
                assert!(has("ConfigMap", map.as_str().unwrap()), "{volume}");
            }
            if let Some(claim) = volume.pointer("/persistentVolumeClaim/claimName") {
                let claim = claim.as_str().unwrap();
                assert!(has("PersistentVolumeClaim", claim) || claim == "mine", "{volume}");
            }
            if let Some(secret) = volume.pointer("/secret/secretName") {
                assert_eq!(secret, "knee-logins");
            }
        }
    }
    let components: BTreeSet<&str> = objects
        .iter()
        .filter_map(|o| o.pointer("/spec/template/metadata/labels/app.kubernetes.io~1component"))
        .filter_map(Value::as_str)
        .collect();
    for policy in objects.iter().filter(|o| o["kind"] == "NetworkPolicy") {
        let text = policy["spec"].to_string();
        let named = ["agent", "coordinator", "nats"].into_iter();
        let named = named.filter(|component| text.contains(&format!("\"{component}\"")));
        named.for_each(|component| assert!(components.contains(component), "{policy}"));
    }
}

/// The object whose template has the pod.
fn object_with_pod<'a>(objects: &'a [Value], name: &str) -> &'a Value {
    let is_it =
        |o: &&Value| at(o, "/metadata/name") == name && o.pointer("/spec/template").is_some();
    objects.iter().find(is_it).unwrap()
}

/// Names of the variables in a file of `NAME=value` lines.
fn variables(file: &str) -> BTreeSet<String> {
    let text = text(file);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split_once('=').unwrap().0.to_owned()).collect()
}

#[test]
fn names_in_manifests_agree() {
    let made = manifests();
    let keys = variables("kubernetes/logins.env.example");
    names_agree(&made, &keys);
    // The configuration names each password, and no other.
    let conf = at(object(&made, "ConfigMap", "-nats"), "/data/nats.conf");
    let named = conf.lines().filter_map(|line| line.trim().strip_prefix("password: $"));
    assert_eq!(named.map(str::to_owned).collect::<BTreeSet<_>>(), keys);
    let agents = object(&made, "Job", "-agents");
    let count = agents["spec"]["completions"].as_u64().unwrap();
    assert_eq!(agents["spec"]["parallelism"], count);
    assert_eq!(conf.matches("user: agent-").count() as u64, count);
    let lines = knee_lines(&made);
    assert!(lines[1].contains(&format!("--agents-min={count}")), "{lines:?}");
    // Where NATS is: the Service, and the port that the server listens at.
    let service = object(&made, "Service", "-nats");
    let port = &service["spec"]["ports"][0]["port"];
    let url = format!("nats://{}:{port}", at(service, "/metadata/name"));
    assert!(lines[0].contains(&format!("--nats={url}")), "{lines:?}");
    assert!(lines[1].contains(&format!("--fleet={url}")), "{lines:?}");
    assert!(conf.contains(&format!("port: {port}\n")), "{conf}");
    let server = object(&made, "StatefulSet", "-nats");
    let labels = &server["spec"]["template"]["metadata"]["labels"];
    assert_eq!(labels, &service["spec"]["selector"]);
    assert_eq!(labels, &server["spec"]["selector"]["matchLabels"]);
    // Agents are selected by the label that they have.
    assert!(lines[0].contains(&"--labels=fleet=knee".to_owned()), "{lines:?}");
    assert!(lines[1].contains(&"--agents=fleet=knee".to_owned()), "{lines:?}");
}

#[test]
fn kustomization_patches_what_is_there() {
    let kustomization = &objects(&text("kubernetes/kustomization.yaml"))[0];
    let mut resources = words(kustomization, "/resources");
    assert_eq!(resources.remove(0), "namespace.yaml");
    resources.sort_unstable();
    assert_eq!(resources, FROM_CHART);
    let namespace = &objects(&text("kubernetes/namespace.yaml"))[0];
    assert_eq!(namespace["metadata"]["name"], kustomization["namespace"]);
    let secret = &kustomization["secretGenerator"][0];
    assert_eq!(secret["name"], "knee-logins");
    assert!(deploy(&format!("kubernetes/{}.example", at(secret, "/envs/0"))).is_file());
    let made = manifests();
    for patch in list(kustomization, "/patches") {
        let target = object(&made, at(patch, "/target/kind"), at(patch, "/target/name"));
        for operation in list(&objects(at(patch, "/patch"))[0], "") {
            // Each replaces an argument by itself, so that whoever edits it sees what it is.
            assert_eq!(target.pointer(at(operation, "/path")), Some(&operation["value"]));
        }
    }
    let image = format!("{}:{}", at(kustomization, "/images/0/name"), env!("CARGO_PKG_VERSION"));
    assert_eq!(at(kustomization, "/images/0/newTag"), env!("CARGO_PKG_VERSION"));
    let all = [made, objects(&text("kubernetes/read-report.yaml"))].concat();
    let images = pods(&all).into_iter().flat_map(|(_, pod)| list(pod, "/containers"));
    let images: BTreeSet<&str> = images.map(|container| at(container, "/image")).collect();
    assert!(images.len() == 2 && images.contains(image.as_str()), "{images:?}");
    let chart = &objects(&text("helm/knee/Chart.yaml"))[0];
    assert_eq!(at(chart, "/version"), env!("CARGO_PKG_VERSION"));
    assert_eq!(at(chart, "/appVersion"), env!("CARGO_PKG_VERSION"));
}

/// Blocks of users in a configuration of NATS by user, without comments, spaces and commas. The
/// name of an agent is NAME.
fn logins(conf: &str) -> BTreeMap<String, String> {
    let lines = conf.lines().map(|line| line.split('#').next().unwrap().trim());
    let whole: String = lines.collect::<Vec<_>>().join(" ");
    let (_, users) = whole.split_once("users: [").unwrap();
    let mut found = BTreeMap::new();
    for block in users.split("user: ").skip(1) {
        let (user, block) = block.split_once(' ').unwrap();
        let (_, permissions) = block.split_once("permissions").unwrap();
        let permissions: Vec<String> =
            permissions.replace(user, "NAME").split([' ', ',']).map(str::to_owned).collect();
        // What comes after the last brace of the block differs: the next one, or the end.
        let permissions = permissions.concat();
        let end = permissions.trim_end_matches(['{', '}', ']']).to_owned();
        found.insert(user.to_owned(), end);
    }
    found
}

#[test]
fn permissions_in_manifests_are_those_of_nats_conf() {
    let shipped = logins(&text("nats.conf"));
    assert_eq!(shipped.keys().collect::<Vec<_>>(), ["coordinator", "loader1", "loader2"]);
    assert!(shipped["loader1"].contains("\"knee.agent.NAME.*\""), "{shipped:?}");
    assert_eq!(shipped["loader1"], shipped["loader2"]);
    let made = manifests();
    let conf = logins(at(object(&made, "ConfigMap", "-nats"), "/data/nats.conf"));
    assert_eq!(conf.len(), 5);
    for (user, permissions) in conf {
        let same = if user == "coordinator" { "coordinator" } else { "loader1" };
        // 'coordinator' stands in subjects of its own.
        assert_eq!(permissions, shipped[same], "{user}");
    }
}
