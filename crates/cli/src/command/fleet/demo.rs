//! A fleet on this machine, to see one at work.

use crate::failure::{Exit, Failure};
use crate::stdout;
use clap::Args;
use knee_engine::interrupt;
use std::io::{BufRead, BufReader, ErrorKind};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Agents that are started.
const AGENTS: u32 = 4;
/// A NATS server that is there starts within this.
const PATIENCE: Duration = Duration::from_secs(10);

/// Try a fleet on this machine: a NATS server, four agents and a sweep
///
/// Nothing leaves this machine. All agents share its cores, so that together they make no more load
/// than one knee would. The demo shows how they work together.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  knee fleet demo --html fleet.html")]
pub(super) struct RawFleetDemo {
    /// Where the page goes
    #[arg(long, value_name = "FILE", default_value = "knee-fleet.html")]
    html: String,

    /// The NATS server to start
    #[arg(long, value_name = "PATH", default_value = "nats-server")]
    nats_server: PathBuf,
}

/// A process that ends with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A folder that goes with this.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Starts all of it, sweeps, and ends all of it.
pub(super) fn execute(raw: &RawFleetDemo) -> Result<Exit, Failure> {
    interrupt::install().map_err(|e| Failure::input(format!("Ctrl-C cannot be handled: {e}")))?;
    let cannot = |what: &str, e: &std::io::Error| Failure::input(format!("{what}: {e}"));
    let folder = std::env::temp_dir().join(format!("knee-fleet-demo-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| cannot("a folder for NATS", &e))?;
    let folder = Folder(folder);
    let port = free_port().map_err(|e| cannot("no port for NATS", &e))?;
    let _nats = start_nats(raw, &folder, port)?;
    let url = format!("nats://127.0.0.1:{port}");
    stdout::write(|out| writeln!(out, "$ nats-server -js -a 127.0.0.1 -p {port}"))?;
    let knee = std::env::current_exe().map_err(|e| cannot("knee itself", &e))?;
    let mut agents = Vec::new();
    for number in 1..=AGENTS {
        let name = format!("demo-{number}");
        stdout::write(|out| writeln!(out, "$ knee agent --nats {url} --name {name} &"))?;
        let started = Command::new(&knee)
            .args(["agent", "--nats", &url, "--name", &name])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn();
        agents.push(Running(started.map_err(|e| cannot("an agent", &e))?));
    }
    for agent in &mut agents {
        wait_for_line(agent)?;
    }
    let arguments = format!("sweep --fleet {url} -t 1 -d 500ms --warmup 200ms --html {}", raw.html);
    stdout::write(|out| writeln!(out, "$ knee {arguments}"))?;
    let mut sweep = Command::new(&knee);
    sweep.args(["sweep", "--fleet", &url, "-t", "1", "-d", "500ms", "--warmup", "200ms"]);
    let status = sweep.args(["--html", &raw.html]).status();
    let status = status.map_err(|e| cannot("the sweep", &e))?;
    stdout::write(|out| writeln!(out, "the page: {}", raw.html))?;
    Ok(match status.code() {
        Some(0) => Exit::Fine,
        Some(1) => Exit::Failed,
        Some(2) => Exit::BadInput,
        Some(3) => Exit::Invalid,
        _ => super::super::laboratory::ended_by_signal().unwrap_or(Exit::NothingMeasured),
    })
}

fn start_nats(raw: &RawFleetDemo, folder: &Folder, port: u16) -> Result<Running, Failure> {
    let started = Command::new(&raw.nats_server)
        .args(["-js", "-a", "127.0.0.1", "-p", &port.to_string(), "-sd"])
        .arg(&folder.0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut nats = Running(started.map_err(|e| match e.kind() {
        ErrorKind::NotFound => Failure::argument(
            "--nats-server",
            format!(
                "there is no {}: install NATS (Debian: apt-get install nats-server), or give its \
                 path",
                raw.nats_server.display()
            ),
        ),
        _ => Failure::argument("--nats-server", e),
    })?);
    let since = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        let ended = nats.0.try_wait().ok().flatten();
        if ended.is_some() || since.elapsed() > PATIENCE {
            let wrong = "it does not start, or not with JetStream: try it with -js";
            return Err(Failure::argument("--nats-server", wrong));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(nats)
}

/// An agent says its name when it is ready. What it says later is read and let go, so that it never
/// waits for us.
fn wait_for_line(agent: &mut Running) -> Result<(), Failure> {
    let not_ready = || Failure::nothing_measured("an agent did not get ready");
    let out = agent.0.stdout.take().ok_or_else(not_ready)?;
    let mut lines = BufReader::new(out).lines();
    let first = lines.next().and_then(Result::ok).ok_or_else(not_ready)?;
    if !first.starts_with("agent ") {
        return Err(not_ready());
    }
    let thread = std::thread::Builder::new().spawn(move || lines.for_each(drop));
    thread.map_err(|e| Failure::input(format!("cannot start a thread: {e}")))?;
    Ok(())
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
