//! A process with limits (`KNEE_CONFINED`), as a server for agents starts them: what it refuses.

use crate::support::{Ended, KneeServer, TempPath, knee};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::thread;

/// Limits, and a folder with files.
struct Confined {
    limits: Value,
    folder: PathBuf,
}

impl Confined {
    /// Load to loopback, in a folder of its own.
    fn new(name: &str) -> Confined {
        let folder = TempPath::new(&format!("confined-{name}")).0.clone();
        fs::create_dir_all(&folder).unwrap();
        let folder = folder.canonicalize().unwrap();
        let (targets, most_ns) = (json!([]), 600_000_000_000_u64);
        let limits = json!({
            "targets": targets, "rate_max": null, "duration_max": most_ns, "folder": folder,
        });
        Confined { limits, folder }
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        let mut command = knee(arguments);
        command.current_dir(&self.folder).env("KNEE_CONFINED", self.limits.to_string());
        Ended::of(command.env("XDG_DATA_HOME", &self.folder).spawn().unwrap())
    }

    /// The line with which a command line is refused before any load.
    fn refused(&self, arguments: &[&str]) -> String {
        let ended = self.run(arguments);
        assert!(matches!(ended.status, Some(2 | 4)), "{arguments:?}: {ended:?}");
        ended.stderr
    }
}

impl Drop for Confined {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn targets_beyond_loopback_need_permission() {
    let mut confined = Confined::new("targets");
    confined.limits["targets"] = json!(["192.0.2.0/24"]);
    let scenario = "target: http://198.51.100.9/\nsessions: {s: {steps: [{get: /}]}}\n";
    confined.file("scenario.yaml", scenario);
    for arguments in [
        &["run", "http://198.51.100.9/"][..],
        &["run", "--insecure", "https://198.51.100.9/"],
        &["run", "ws://198.51.100.9/"],
        &["run", "dns://198.51.100.9/example.com"],
        &["run", "http://[::ffff:198.51.100.9]/"],
        &["run", "scenario.yaml"],
        &["sweep", "http://198.51.100.9/"],
    ] {
        let line = confined.refused(arguments);
        assert!(line.contains("--allow-target 198.51.100.9"), "{arguments:?}: {line}");
    }
    let line = confined.refused(&["run", "http://192.0.2.1:1/", "--timeout=1s"]);
    assert!(!line.contains("--allow-target"), "{line}");
}

/// A server that leads to another one is not followed there, permitted or not.
#[test]
fn redirects_lead_to_no_other_server() {
    let (first, other) = (listener(), listener());
    let [url, elsewhere] = [&first, &other].map(|l| format!("http://{}/", l.local_addr().unwrap()));
    let response =
        format!("HTTP/1.1 302 Found\r\nlocation: {elsewhere}\r\ncontent-length: 0\r\n\r\n");
    thread::spawn(move || {
        for mut connection in first.incoming().map_while(Result::ok) {
            let mut lines = BufReader::new(connection.try_clone().unwrap()).lines();
            while lines.by_ref().map_while(Result::ok).any(|line| line.is_empty()) {
                let _ = connection.write_all(response.as_bytes());
            }
        }
    });
    let confined = Confined::new("redirects");
    let load = ["run", "--location", "--requests=3", "--vusers=1", "--json=-", &url];
    assert_eq!(confined.run(&load).json()["interrupted"], false);
    other.set_nonblocking(true).unwrap();
    assert_eq!(other.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

fn listener() -> TcpListener {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()
}

#[test]
fn files_are_read_below_the_folder_only() {
    let server = KneeServer::start(&[]);
    let confined = Confined::new("files");
    symlink("/etc/hostname", confined.folder.join("link")).unwrap();
    confined.file("body", "12345");
    let url = server.url();
    // A file that has no name any more cannot be looked up by its path.
    let gone = confined.file("gone", "of another");
    let open = fs::File::open(&gone).unwrap();
    fs::remove_file(&gone).unwrap();
    let gone = format!("/proc/{}/fd/{}", std::process::id(), open.as_raw_fd());
    symlink(&gone, confined.folder.join("magic")).unwrap();
    for name in ["/etc/hostname", "../../../../../etc/hostname", "link", "magic", &gone] {
        for option in [format!("--body=@{name}"), format!("--arrival=trace({name})")] {
            let line = confined.refused(&["run", &option, &url]);
            assert!(line.contains("may not be read: expected a file below"), "{line}");
        }
    }
    for arguments in [
        &["scenario", "check", "/etc/passwd"][..],
        &["compare", "/etc/passwd", "/etc/passwd"],
        &["run", "/etc/passwd.yaml/../passwd.jsonl"],
    ] {
        let line = confined.refused(arguments);
        assert!(line.contains("may not be read") || line.contains("No such file"), "{line}");
    }
    let ended = confined.run(&["run", "--body=@body", "--requests=1", "--json=-", &url]);
    assert_eq!(ended.json()["result"], "passed", "{ended:?}");
}

#[test]
fn programs_are_started_only_where_that_is_permitted() {
    let server = KneeServer::start(&[]);
    let confined = Confined::new("exec");
    let text = "#!/bin/sh\nwhile read -r line; do echo '{\"set\": {\"x\": \"1\"}}'; done\n";
    let program = confined.file("program.sh", text);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let scenario = format!(
        "target: {}\nsessions: {{s: {{steps: [{{get: /, exec: ./program.sh, gives: x, \
         headers: {{X: '${{x}}'}}}}]}}}}\n",
        server.url()
    );
    confined.file("scenario.yaml", &scenario);
    let line = confined.refused(&["run", "--requests=2", "scenario.yaml"]);
    assert!(line.contains("--allow-exec"), "{line}");
    let ended = confined.run(&["run", "--allow-exec", "--requests=2", "--json=-", "scenario.yaml"]);
    assert_eq!(ended.json()["result"], "passed", "{ended:?}");
}

/// A schedule beyond the limit is refused. Users are held back, and the result is not the server's.
#[test]
fn rate_is_limited() {
    let server = KneeServer::start(&[]);
    let mut confined = Confined::new("rate");
    confined.limits["rate_max"] = json!(50.0);
    let line = confined.refused(&["run", "--rate=51", &server.url()]);
    assert!(
        line.ends_with("error: --rate: 51/s is more than the --rate-max of this server, 50/s\n")
    );
    let other = KneeServer::start(&[]);
    for load in [
        &["run", "--vusers=8", "--duration=1s", "--warmup=0s", "--json=-", &server.url()][..],
        &["sweep", "--vusers=1,2", "--duration=1s", "--json=-", &other.url()],
    ] {
        let report = confined.run(load).json();
        assert_eq!(report["verdict"], "invalid");
        let trials = report["trials"].to_string();
        assert!(trials.contains("--rate-max, 50/s in all, held back"), "{trials}");
    }
    // 50 in a second, and the burst that each of the workers may have earned.
    let served = server.served()["responses"].as_u64().unwrap();
    assert!((1..=80).contains(&served), "{served}");
}

#[test]
fn measurement_beyond_the_longest_time_is_refused() {
    let server = KneeServer::start(&[]);
    let mut confined = Confined::new("duration");
    confined.limits["duration_max"] = json!(2_000_000_000_u64);
    let line = confined.refused(&["run", "--duration=3s", &server.url()]);
    let expected = "error: --duration: 4 s with the warm-up is more than this server's";
    assert!(line.contains(expected), "{line}");
}

#[test]
fn limits_that_cannot_be_read_let_nothing_run() {
    let mut confined = Confined::new("unread");
    confined.limits = json!({});
    let line = confined.refused(&["explain"]);
    assert!(line.starts_with("error: KNEE_CONFINED: missing field"), "{line}");
}
