//! knee in a process of its own.

use serde_json::Value;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// No run of these tests takes as long, however busy the machine: what does hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// Where knee keeps what outlives a run, in tests: not where the user's own knee does.
pub const STATE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/state");

/// The binary with these arguments, in an environment that changes nothing.
pub fn knee(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_knee"));
    command
        .args(arguments)
        .env("LC_ALL", "C.UTF-8")
        .env("XDG_STATE_HOME", STATE)
        .env("XDG_DATA_HOME", STATE)
        .env_remove("http_proxy")
        .env_remove("https_proxy")
        .env_remove("HTTPS_PROXY")
        .env_remove("all_proxy")
        .env_remove("ALL_PROXY")
        .env_remove("KNEE_HISTORY")
        .env_remove("NO_COLOR");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // SAFETY: signal is async-signal-safe.
    unsafe { command.pre_exec(heed_hang_ups) };
    command
}

/// Tests may run under nohup, which a program that they start is not meant to.
pub fn heed_hang_ups() -> std::io::Result<()> {
    // SAFETY: the default action is no function.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_DFL) };
    Ok(())
}

/// What it printed and how it ended.
#[derive(Debug)]
pub struct Ended {
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// Waits for its end; one that hangs is killed and fails the test.
    pub fn of(child: Child) -> Ended {
        Ended::within(PATIENCE, child)
    }

    /// The same of one that may take this long.
    pub fn within(patience: Duration, child: Child) -> Ended {
        let pid = child.id();
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || sender.send(child.wait_with_output()));
        let Ok(output) = receiver.recv_timeout(patience) else {
            kill(pid, libc::SIGKILL);
            panic!("knee hangs: it did not end within {patience:?}");
        };
        Ended::from(output.unwrap())
    }

    /// Standard output as one JSON document.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Ended {
        Ended {
            status: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Runs it to its end.
pub fn run(arguments: &[&str]) -> Ended {
    Ended::of(knee(arguments).spawn().unwrap())
}

/// `knee run URL` with these options, to its end; the report as JSON on standard output.
pub fn run_load(url: &str, options: &[&str]) -> Ended {
    run(&[&["run", url, "--json", "-"], options].concat())
}

/// Eight operations, four at a time, with a time limit of 300 ms.
pub fn run_impatiently(url: &str, backend: &str) -> Ended {
    let patience = ["-n", "8", "-c", "4", "--timeout", "300ms"];
    run_load(url, &[&patience[..], &["--backend", backend]].concat())
}

/// Runs it to its end with this on standard input.
pub fn run_with_input(arguments: &[&str], input: &str) -> Ended {
    let mut child = knee(arguments).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    Ended::of(child)
}

/// Sends a signal to a process that we started.
pub fn signal(child: &Child, signal: libc::c_int) {
    kill(child.id(), signal);
}

fn kill(pid: u32, signal: libc::c_int) {
    let pid = libc::pid_t::try_from(pid).unwrap();
    // SAFETY: kill(2) has no preconditions; the child was not waited for, so the pid is its.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}
