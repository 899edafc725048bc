//! What tests of fleets run: a NATS server, agents, and a server to be loaded.

use crate::support::{Ended, KneeServer, TempPath, knee, program, signal};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The users of `deploy/nats.conf` and of `deploy/kubernetes`, with the passwords that they have in
/// tests.
pub const LOGINS: [(&str, &str); 7] = [
    ("coordinator", "of-the-coordinator"),
    ("loader1", "of-loader1"),
    ("loader2", "of-loader2"),
    ("agent-0", "of-agent-0"),
    ("agent-1", "of-agent-1"),
    ("agent-2", "of-agent-2"),
    ("agent-3", "of-agent-3"),
];

/// A process that ends with this.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A NATS server of our own; it ends with this.
pub struct Nats {
    child: Running,
    binary: PathBuf,
    port: u16,
    options: Vec<String>,
    folder: TempPath,
}

impl Nats {
    /// Starts one with JetStream; `None` where none is installed.
    pub fn start(options: &[&str]) -> Option<Nats> {
        let binary = program("nats-server")?;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let folder = TempPath::new(&format!("jetstream-{port}"));
        let options: Vec<String> = options.iter().map(|&o| o.to_owned()).collect();
        let child = spawn(&binary, port, &options, &folder);
        let nats = Nats { child, binary, port, options, folder };
        nats.wait();
        Some(nats)
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Publishes a message, in the protocol's own words.
    pub fn put(&self, subject: &str, message: &str) {
        let mut stream = self.connect();
        let length = message.len();
        let line = format!(
            "CONNECT {{\"verbose\":false}}\r\nPUB {subject} {length}\r\n{message}\r\nPING\r\n"
        );
        stream.write_all(line.as_bytes()).unwrap();
        let mut lines = BufReader::new(stream).lines();
        let answered = lines.any(|line| line.unwrap().starts_with("PONG"));
        assert!(answered, "NATS took the message");
    }

    pub fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).unwrap()
    }

    /// Ends it as a power cut would.
    pub fn kill(&mut self) {
        self.child.0.kill().unwrap();
        self.child.0.wait().unwrap();
    }

    /// Starts it again, with what it had stored.
    pub fn restart(&mut self) {
        self.child = spawn(&self.binary, self.port, &self.options, &self.folder);
        self.wait();
    }

    fn wait(&self) {
        let since = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(since.elapsed() < Duration::from_secs(30), "NATS does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn spawn(binary: &PathBuf, port: u16, options: &[String], folder: &TempPath) -> Running {
    let mut command = nats_server(binary, ("127.0.0.1", port), folder);
    Running(command.args(options).spawn().unwrap())
}

/// The server with JetStream, listening there.
pub fn nats_server(binary: &PathBuf, (address, port): (&str, u16), folder: &TempPath) -> Command {
    let mut command = Command::new(binary);
    let port = port.to_string();
    command
        .args(["-js", "-a", address, "-p", &port, "-sd", folder.str()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    for (user, password) in LOGINS {
        let name = format!("KNEE_{}_PASSWORD", user.to_uppercase().replace('-', "_"));
        command.env(name, password);
    }
    command
}

impl Drop for Nats {
    fn drop(&mut self) {
        // What it stores goes once it writes no more.
        let _ = self.child.0.kill();
        let _ = self.child.0.wait();
        let _ = std::fs::remove_dir_all(&self.folder.0);
    }
}

/// An agent in a process of its own.
pub struct Agent {
    child: Running,
    said: Arc<Mutex<Vec<String>>>,
}

impl Agent {
    /// Starts one and waits until it waits.
    pub fn start(url: &str, name: &str, options: &[&str]) -> Agent {
        let mut agent = Agent::spawn(url, name, options);
        agent.wait();
        agent
    }

    fn spawn(url: &str, name: &str, options: &[&str]) -> Agent {
        Agent::of(knee(&[&["agent", "--nats", url, "--name", name], options].concat()))
    }

    /// One that is started by this command.
    pub fn of(mut command: Command) -> Agent {
        let child = command.stderr(Stdio::inherit()).spawn().unwrap();
        Agent { child: Running(child), said: Arc::default() }
    }

    pub fn wait(&mut self) {
        let out = self.child.0.stdout.take().unwrap();
        let mut lines = BufReader::new(out).lines();
        let first = lines.next().unwrap().unwrap();
        assert!(first.starts_with("agent "), "{first}");
        let said = self.said.clone();
        let keep = move |line| said.lock().unwrap().push(line);
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(keep));
    }

    /// Whether it has printed a line with these words since it waits.
    pub fn has_said(&self, words: &str) -> bool {
        let said = self.said.lock().unwrap();
        said.iter().any(|line| line.contains(words))
    }

    /// Forgets what it has printed so far.
    pub fn forget(&self) {
        self.said.lock().unwrap().clear();
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.0.try_wait().unwrap().is_some()
    }

    pub fn signal(&self, number: libc::c_int) {
        signal(&self.child.0, number);
    }
}

/// All of it together.
pub struct Ground {
    pub nats: Nats,
    pub agents: Vec<Agent>,
    pub server: KneeServer,
}

impl Ground {
    /// With this number of agents `a1`, `a2`, … and one worker each.
    pub fn with(agents: usize) -> Option<Ground> {
        Ground::of(Nats::start(&[])?, agents)
    }

    pub fn of(nats: Nats, agents: usize) -> Option<Ground> {
        let server = KneeServer::start(&["--workers", "1"]);
        let start = |n: usize| Agent::spawn(&nats.url(), &format!("a{n}"), &[]);
        let mut agents: Vec<Agent> = (1..=agents).map(start).collect();
        agents.iter_mut().for_each(Agent::wait);
        Some(Ground { nats, agents, server })
    }

    /// `knee run` of these agents, one worker each, under way.
    pub fn begin(&self, options: &[&str]) -> Child {
        self.begin_of("run", &self.server.url(), options)
    }

    /// The same of another command, or on a scenario file.
    pub fn begin_of(&self, command: &str, target: &str, options: &[&str]) -> Child {
        let url = self.nats.url();
        let always = [command, target, "--fleet", &url, "-t", "1", "--json", "-", "--quiet"];
        knee(&[&always[..], options].concat()).spawn().unwrap()
    }

    /// The same to its end.
    pub fn run(&self, options: &[&str]) -> Ended {
        Ended::of(self.begin(options))
    }
}

/// The rows of the agents of the first trial.
pub fn agents(report: &Value) -> &Vec<Value> {
    report["trials"][0]["agents"].as_array().unwrap()
}

/// Waits until this is so.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}
