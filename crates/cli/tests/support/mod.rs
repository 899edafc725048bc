//! Runs the real binary.
#![allow(dead_code, reason = "each test binary uses a part")]

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

/// The binary with these arguments, in an environment that changes nothing.
pub fn knee(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_knee"));
    command
        .args(arguments)
        .env("LC_ALL", "C.UTF-8")
        .env_remove("NO_COLOR");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// What it printed and how it ended.
#[derive(Debug)]
pub struct Ended {
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    pub fn from(output: Output) -> Ended {
        Ended {
            status: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Standard output as one JSON document.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }
}

/// Runs it to its end.
pub fn run(arguments: &[&str]) -> Ended {
    Ended::from(knee(arguments).output().unwrap())
}

/// Runs it to its end with this on standard input.
pub fn run_with_input(arguments: &[&str], input: &str) -> Ended {
    let mut child = knee(arguments).stdin(Stdio::piped()).spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    Ended::from(child.wait_with_output().unwrap())
}

/// Sends a signal to a process that we started.
pub fn signal(child: &Child, signal: libc::c_int) {
    let pid = libc::pid_t::try_from(child.id()).unwrap();
    // SAFETY: kill(2) has no preconditions; the child was not waited for, so the pid is its.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

/// `knee serve http` in a process of its own; killed when dropped.
pub struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// `127.0.0.1:40123`
    pub address: String,
}

impl Server {
    /// Starts it on a free port and waits until it listens.
    pub fn start(options: &[&str]) -> Server {
        let mut arguments = vec!["serve", "http", "--listen", "127.0.0.1:0"];
        arguments.extend(options);
        let mut child = knee(&arguments).stderr(Stdio::inherit()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ");
        let address = address.unwrap_or_else(|| panic!("{line:?}")).to_string();
        Server {
            child,
            stdout,
            address,
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Ends it as a service manager does; what it printed after it listened, and its status.
    pub fn terminate(mut self) -> (String, Option<i32>) {
        signal(&self.child, libc::SIGTERM);
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        (rest, self.child.wait().unwrap().code())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Already gone after `terminate`.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A path in the system's directory for temporary files, gone when dropped.
pub struct TempPath(pub PathBuf);

impl TempPath {
    pub fn new(name: &str) -> TempPath {
        TempPath(std::env::temp_dir().join(format!("knee-{}-{name}", std::process::id())))
    }

    pub fn with(name: &str, content: &str) -> TempPath {
        let path = TempPath::new(name);
        std::fs::write(&path.0, content).unwrap();
        path
    }

    pub fn str(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for TempPath {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
