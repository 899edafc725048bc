//! Processes pinned to a core: a contender, whose processor time is read, and a server.

use crate::repo;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Time limit for a contender's run, far beyond any turn.
pub const LIMIT: Duration = Duration::from_secs(120);

/// A contender that has ended.
#[derive(Debug)]
pub struct Run {
    /// Its exit code; none where a signal ended it.
    pub exit_code: Option<i32>,
    /// What it said.
    pub stdout: String,
    /// What it said on standard error.
    pub stderr: String,
    /// Its processor time in user mode.
    pub cpu_user_s: f64,
    /// Its processor time in the kernel.
    pub cpu_system_s: f64,
}

/// A command that runs on one core only. `taskset` becomes the program, so that the process that is
/// measured and signalled is the program itself. What knee keeps beyond a run stays out of the
/// user's way.
pub fn pinned(core: usize, program: &Path, args: &[String]) -> Command {
    let mut command = Command::new("taskset");
    command
        .arg("-c")
        .arg(core.to_string())
        .arg(program)
        .args(args)
        .env("XDG_STATE_HOME", repo::target().join("bench/state"))
        .env("XDG_DATA_HOME", repo::target().join("bench/state"))
        .env_remove("KNEE_HISTORY");
    command
}

/// Runs a command to its end, or kills it after `limit`. The processor time is that of the children
/// waited for meanwhile, so no other child may end at the same time.
///
/// # Errors
/// It does not start, or does not end in time.
pub fn run(mut command: Command, limit: Duration) -> Result<Run, String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let before = children_cpu_s()?;
    let child = command.spawn().map_err(|e| format!("{command:?}: {e}"))?;
    let pid = Pid::from_raw(child.id().cast_signed());
    let (ended, watched) = mpsc::channel::<()>();
    let watchdog = std::thread::spawn(move || {
        let late = watched.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout);
        late && kill(pid, Signal::SIGKILL).is_ok()
    });
    let output = child.wait_with_output().map_err(|e| format!("{command:?}: {e}"));
    drop(ended);
    let killed = watchdog.join().unwrap_or(false);
    let (output, after) = (output?, children_cpu_s()?);
    if killed {
        return Err(format!("{command:?} did not end within {limit:?}"));
    }
    Ok(Run {
        exit_code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        cpu_user_s: after.0 - before.0,
        cpu_system_s: after.1 - before.1,
    })
}

/// User and system time of the children waited for so far.
fn children_cpu_s() -> Result<(f64, f64), String> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|e| format!("getrusage: {e}"))?;
    let seconds = |t: nix::sys::time::TimeVal| t.tv_sec() as f64 + t.tv_usec() as f64 / 1e6;
    Ok((seconds(usage.user_time()), seconds(usage.system_time())))
}

/// Columns of the log of requests that `knee serve http --log` wrote, by their names.
///
/// # Errors
/// It has no such column.
pub fn log_columns<const N: usize>(log: &str, names: [&str; N]) -> Result<Vec<[i64; N]>, String> {
    let mut lines = log.lines().filter(|line| !line.starts_with('#'));
    let heads: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let mut places = [0; N];
    for (place, name) in places.iter_mut().zip(names) {
        let found = heads.iter().position(|head| *head == name);
        *place = found.ok_or(format!("no {name} in {heads:?}"))?;
    }
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let cells = places.map(|place| cells.get(place)?.parse().ok());
        cells.iter().all(Option::is_some).then(|| cells.map(Option::unwrap_or_default))
    };
    Ok(lines.filter_map(row).collect())
}

/// A file's text.
///
/// # Errors
/// It cannot be read.
pub fn read(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))
}

/// A port that nobody listens on now.
///
/// # Errors
/// There is none.
pub fn free_port() -> Result<u16, String> {
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = socket.and_then(|socket| socket.local_addr());
    address.map(|a| a.port()).map_err(|e| format!("a port: {e}"))
}

/// A server that listens until it is stopped or dropped.
pub struct BenchServer {
    child: Quiet,
    stdout: BufReader<ChildStdout>,
    /// The port that it listens on.
    pub port: u16,
}

impl BenchServer {
    /// Starts it and reads its line `listening on ADDRESS:PORT`, its first or its second.
    ///
    /// # Errors
    /// It does not start or says something else.
    pub fn start(mut command: Command) -> Result<Self, String> {
        let mut server = BenchServer::spawn(&mut command, 0)?;
        let mut line = String::new();
        // With TLS knee's server says first where its certificate is.
        while line.is_empty() || line.starts_with("certificate ") {
            line.clear();
            let read = server.stdout.read_line(&mut line);
            if read.map_err(|e| format!("{command:?}: {e}"))? == 0 {
                break;
            }
        }
        let port = line.trim().strip_prefix("listening on ").and_then(|a| a.rsplit(':').next());
        let port = port.and_then(|port| port.parse().ok());
        server.port = port.ok_or(format!("{command:?} said {line:?}"))?;
        Ok(server)
    }

    /// Starts a program that says nothing, and waits until it listens on `port`.
    ///
    /// # Errors
    /// It does not start, ends, or does not listen within ten seconds.
    pub fn start_on(port: u16, mut command: Command) -> Result<Self, String> {
        let mut server = BenchServer::spawn(&mut command, port)?;
        for _ in 0..1_000 {
            if let Ok(Some(status)) = server.child.0.try_wait() {
                return Err(format!("{command:?}: {status}"));
            }
            if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
                return Ok(server);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(format!("{command:?} does not listen"))
    }

    fn spawn(command: &mut Command, port: u16) -> Result<Self, String> {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|e| format!("{command:?}: {e}"))?;
        let stdout = child.stdout.take().ok_or("no standard output")?;
        Ok(BenchServer { child: Quiet(child), stdout: BufReader::new(stdout), port })
    }

    /// What it said after its first line, once it has ended by itself.
    ///
    /// # Errors
    /// Its output cannot be read.
    pub fn output(mut self) -> Result<String, String> {
        let mut said = String::new();
        self.stdout.read_to_string(&mut said).map_err(|e| format!("the server: {e}"))?;
        self.child.0.wait().map_err(|e| format!("the server: {e}"))?;
        Ok(said)
    }

    /// Ends it with SIGTERM and waits; what it said after its first line.
    ///
    /// # Errors
    /// Its output cannot be read.
    pub fn stop(self) -> Result<String, String> {
        let pid = Pid::from_raw(self.child.0.id().cast_signed());
        kill(pid, Signal::SIGTERM).map_err(|e| format!("stopping the server: {e}"))?;
        self.output()
    }
}

/// A process that is ended when dropped.
pub struct Quiet(Child);

impl Quiet {
    /// Starts one whose output nobody reads.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(mut command: Command) -> Result<Quiet, String> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|e| format!("{command:?}: {e}"))?;
        Ok(Quiet(child))
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // Nothing is left to tell if it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_run_tells_its_end_and_is_limited() {
        let run = run(shell("echo out; echo err >&2; exit 3"), Duration::from_secs(30)).unwrap();
        assert_eq!((run.exit_code, run.stdout.trim(), run.stderr.trim()), (Some(3), "out", "err"));
        assert!(run.cpu_user_s >= 0.0 && run.cpu_system_s >= 0.0);
        assert!(super::run(shell("exec sleep 60"), Duration::from_millis(50)).is_err());
    }

    #[test]
    fn a_server_says_its_port_and_ends() {
        let script = "trap 'echo bye; exit' TERM; echo listening on 127.0.0.1:81; \
                      while :; do sleep 0.01; done";
        let server = BenchServer::start(shell(script)).unwrap();
        assert_eq!(server.port, 81);
        assert_eq!(server.stop().unwrap().trim(), "bye");
        assert!(BenchServer::start(shell("echo no")).is_err());
    }
}
