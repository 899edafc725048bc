//! Processes pinned to a core: a contender, whose processor time is read, and a server.

use crate::repo;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fmt::Display;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time limit for a contender's run and for a server's end, far beyond any turn.
const LIMIT: Duration = Duration::from_secs(300);

/// A program that has ended.
#[derive(Debug)]
pub struct Ended {
    command: String,
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// An error with the command line, how the program ended, and all that it printed.
    pub fn failed(&self, why: impl Display) -> String {
        let Ended { command, status, stdout, stderr } = self;
        format!(
            "{why}\n{command}\n{status}\nstandard output:\n{}\nstandard error:\n{}",
            stdout.trim_end(),
            stderr.trim_end()
        )
    }

    /// What `read` finds in its standard output.
    ///
    /// # Errors
    /// That of `read`, with all that the program printed.
    pub fn read<T>(&self, read: impl FnOnce(&str) -> Result<T, String>) -> Result<T, String> {
        read(&self.stdout).map_err(|why| self.failed(why))
    }

    /// Its standard output.
    ///
    /// # Errors
    /// It did not succeed.
    pub fn succeeded(self) -> Result<String, String> {
        if self.status.success() { Ok(self.stdout) } else { Err(self.failed("failed:")) }
    }
}

/// A contender that has ended, with its processor time.
#[derive(Debug)]
pub struct Run {
    pub ended: Ended,
    /// Processor time in user mode.
    pub cpu_user_s: f64,
    /// Processor time in the kernel.
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

/// Runs a command to its end, at most for [`LIMIT`]. The processor time is that of the children
/// waited for meanwhile, so no other child may end at the same time.
///
/// # Errors
/// It does not start, or does not end in time.
pub fn run(command: Command) -> Result<Run, String> {
    run_within(LIMIT, command)
}

/// Runs a command to its end, or kills it after `limit`.
///
/// # Errors
/// As [`run`].
pub fn run_within(limit: Duration, mut command: Command) -> Result<Run, String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let before = children_cpu_s()?;
    let child = command.spawn().map_err(|e| format!("{command:?}: {e}"))?;
    let (output, killed) = limited(pid(&child), limit, || child.wait_with_output());
    let output = output.map_err(|e| format!("{command:?}: {e}"))?;
    let after = children_cpu_s()?;
    let ended = Ended {
        command: format!("{command:?}"),
        status: output.status,
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    if killed {
        return Err(ended.failed(format!("did not end within {limit:?}:")));
    }
    Ok(Run { ended, cpu_user_s: after.0 - before.0, cpu_system_s: after.1 - before.1 })
}

/// Waits, and kills the process if that takes longer than `limit`. Returns whether it was killed.
fn limited<T>(pid: Pid, limit: Duration, wait: impl FnOnce() -> T) -> (T, bool) {
    let (ended, watched) = mpsc::channel::<()>();
    let watchdog = thread::spawn(move || {
        let late = watched.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout);
        late && kill(pid, Signal::SIGKILL).is_ok()
    });
    let waited = wait();
    drop(ended);
    (waited, watchdog.join().unwrap_or(false))
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed())
}

/// User and system time of the children waited for so far.
///
/// # Errors
/// The kernel does not say.
pub fn children_cpu_s() -> Result<(f64, f64), String> {
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
        let column = heads.iter().position(|head| *head == name);
        *place = column.ok_or(format!("no {name} in {heads:?}"))?;
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

/// A free port.
///
/// # Errors
/// There is none.
pub fn free_port() -> Result<u16, String> {
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = socket.and_then(|socket| socket.local_addr());
    address.map(|a| a.port()).map_err(|e| format!("a port: {e}"))
}

/// A program that serves contenders until it is stopped or dropped.
pub struct BenchServer {
    command: String,
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: Option<JoinHandle<Vec<u8>>>,
    /// Output before its first line.
    output: String,
    /// The port that it listens on.
    pub port: u16,
    is_once: bool,
}

impl BenchServer {
    /// Starts it and reads its line `listening on ADDRESS:PORT`; an address is not needed.
    ///
    /// # Errors
    /// It does not start or ends without such a line.
    pub fn start(command: Command) -> Result<Self, String> {
        let mut server = BenchServer::spawn(command, 0)?;
        let mut line = String::new();
        while server.stdout.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
            // knee's server first prints the path of its certificate, iperf3's a line of dashes.
            let address = line.split_once("listening on ").map(|(_, rest)| rest);
            let address = address.and_then(|rest| rest.split_whitespace().next());
            let port = address.and_then(|address| address.rsplit(':').next()?.parse().ok());
            if let Some(port) = port {
                server.port = port;
                server.output.clear();
                return Ok(server);
            }
            server.output += &line;
            line.clear();
        }
        Err(server.failed("does not listen:"))
    }

    /// Starts a program that says nothing, and waits until it listens on `port`.
    ///
    /// # Errors
    /// It does not start, ends, or does not listen within ten seconds.
    pub fn start_on(port: u16, command: Command) -> Result<Self, String> {
        let mut server = BenchServer::spawn(command, port)?;
        for _ in 0..1_000 {
            if matches!(server.child.try_wait(), Ok(Some(_))) {
                break;
            }
            if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
                return Ok(server);
            }
            thread::sleep(Duration::from_millis(10));
        }
        Err(server.failed("does not listen:"))
    }

    /// Starts a program, which may listen on `port` later.
    ///
    /// # Errors
    /// It does not start.
    pub fn spawn(mut command: Command, port: u16) -> Result<Self, String> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let shown = format!("{command:?}");
        let mut child = command.spawn().map_err(|e| format!("{shown}: {e}"))?;
        let stdout = BufReader::new(child.stdout.take().ok_or("no standard output")?);
        let mut stderr = child.stderr.take().ok_or("no standard error")?;
        // Read at once, as a full pipe would hold the server.
        let stderr = thread::spawn(move || {
            let mut text = Vec::new();
            // Output before an error is kept.
            let _ = stderr.read_to_end(&mut text);
            text
        });
        Ok(BenchServer {
            command: shown,
            child,
            stdout,
            stderr: Some(stderr),
            output: String::new(),
            port,
            is_once: false,
        })
    }

    /// Waits for its end, at most for [`LIMIT`].
    fn ended(mut self) -> Result<Ended, String> {
        let mut stdout = Vec::new();
        let (status, _) = limited(pid(&self.child), LIMIT, || {
            self.stdout.read_to_end(&mut stdout)?;
            self.child.wait()
        });
        let status = status.map_err(|e| format!("{}: {e}", self.command))?;
        let stderr = self.stderr.take().and_then(|reader| reader.join().ok()).unwrap_or_default();
        Ok(Ended {
            command: std::mem::take(&mut self.command),
            status,
            stdout: std::mem::take(&mut self.output) + &String::from_utf8_lossy(&stdout),
            stderr: String::from_utf8_lossy(&stderr).into_owned(),
        })
    }

    /// The same server, which ends by itself after its first client.
    pub fn once(mut self) -> Self {
        self.is_once = true;
        self
    }

    /// Does work with its port, and ends it with SIGTERM unless it ends by itself.
    ///
    /// # Errors
    /// The work fails, with what the server said, or the server does.
    pub fn serve<T>(self, work: impl FnOnce(u16) -> Result<T, String>) -> Result<T, String> {
        let done = match work(self.port) {
            Ok(done) => done,
            Err(why) => return Err(self.failed(format!("{why}\nServer:"))),
        };
        let ended = if self.is_once { self.ended()? } else { self.terminated()? };
        // Programs without a handler end by the signal.
        if ended.status.signal() != Some(Signal::SIGTERM as i32) {
            ended.succeeded()?;
        }
        Ok(done)
    }

    /// Ends the program and returns an error with its command, its output and the reason.
    pub fn failed(self, why: impl Display) -> String {
        match self.terminated() {
            Ok(ended) => ended.failed(why),
            Err(e) => format!("{why}\n{e}"),
        }
    }

    fn terminated(self) -> Result<Ended, String> {
        kill(pid(&self.child), Signal::SIGTERM).map_err(|e| format!("{}: {e}", self.command))?;
        self.ended()
    }
}

impl Drop for BenchServer {
    fn drop(&mut self) {
        // Nothing is left to do if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
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
        let run = run(shell("echo out; echo err >&2; exit 3")).unwrap();
        let Ended { status, stdout, stderr, .. } = &run.ended;
        assert_eq!((status.code(), stdout.trim(), stderr.trim()), (Some(3), "out", "err"));
        let failed = run.ended.failed("no figure:");
        for part in ["no figure:", "echo err >&2", "exit status: 3", "out\n", "error:\nerr"] {
            assert!(failed.contains(part), "{failed}");
        }
        assert!(run.cpu_user_s >= 0.0 && run.cpu_system_s >= 0.0);
        assert!(run_within(Duration::from_millis(50), shell("exec sleep 60")).is_err());
    }

    #[test]
    fn a_server_says_its_port_and_ends() {
        let script = "trap 'exit' TERM; echo listening on 127.0.0.1:81; \
                      while :; do sleep 0.01; done";
        let server = BenchServer::start(shell(script)).unwrap();
        assert_eq!(server.serve(Ok).unwrap(), 81);
        let table = BenchServer::start(shell("echo ---; echo Server listening on 82 '(test #1)'"));
        assert_eq!(table.unwrap().once().serve(Ok).unwrap(), 82);
    }

    #[test]
    fn a_server_that_fails_shows_what_it_said() {
        let shows = |why: String, parts: &[&str]| {
            assert!(parts.iter().all(|part| why.contains(part)), "{why}");
        };
        let start = |script| BenchServer::start(shell(script));
        let refused = start("echo no; echo why >&2; exit 4").err().unwrap();
        shows(refused, &["does not listen", "exit status: 4", "output:\nno", "error:\nwhy"]);
        // Deaf to the signal that ends it, which may come before it has failed.
        let script = "trap '' TERM; echo lost >&2; echo listening on 83; exit 5";
        let fails = || start(script).unwrap();
        shows(fails().once().serve(Ok).unwrap_err(), &["exit status: 5", "error:\nlost"]);
        shows(fails().serve(Ok).unwrap_err(), &["exit status: 5", "error:\nlost"]);
        let well = start("echo mine >&2; echo listening on 84; exec sleep 60").unwrap();
        let beside = well.serve(|_| Err::<(), _>("the contender failed".into()));
        shows(beside.unwrap_err(), &["the contender failed", "error:\nmine"]);
    }
}
