//! Senders in processes of their own, one per client.

use super::intervals::Intervals;
use super::sender::Done;
use super::{SendPlan, threads};
use crate::error::RunError;
use crate::generator::WorkerUse;
use crate::sys::clock::{ThreadUse, monotonic_ns};
use crate::{interrupt, sys};
use knee_core::experiment::udp::measure::UdpSent;
use knee_core::spec::Share;
use knee_core::time::Nanos;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// A client that has not answered so long after its time is over is killed.
const PATIENCE: Nanos = Nanos::from_secs(10);

/// How often it is looked whether to stop.
const LOOK: Duration = Duration::from_millis(50);

/// What a client's process reads.
#[derive(Serialize, Deserialize)]
struct Order {
    plan: SendPlan,
    client: u32,
}

/// What it writes, a line each.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    /// An interval has passed, in which it sent so many.
    Passed { index: u64, sent: u64 },
    /// It has ended.
    Done(Box<ClientDone>),
    /// It could not send, because.
    Failed(String),
}

/// What a client's process brings back.
#[derive(Serialize, Deserialize)]
struct ClientDone {
    sent: UdpSent,
    user: Nanos,
    system: Nanos,
    kept_waiting: Nanos,
    polled: Nanos,
    over: Nanos,
    interrupted: bool,
}

impl From<Done> for ClientDone {
    fn from(done: Done) -> ClientDone {
        ClientDone {
            sent: done.sent,
            user: done.cost.used.user,
            system: done.cost.used.system,
            kept_waiting: done.cost.used.kept_waiting,
            polled: done.cost.polled,
            over: done.cost.over,
            interrupted: done.interrupted,
        }
    }
}

impl From<ClientDone> for Done {
    fn from(done: ClientDone) -> Done {
        Done {
            sent: done.sent,
            cost: WorkerUse {
                used: ThreadUse {
                    user: done.user,
                    system: done.system,
                    kept_waiting: done.kept_waiting,
                    ..ThreadUse::default()
                },
                polled: done.polled,
                over: done.over,
            },
            interrupted: done.interrupted,
        }
    }
}

/// The client that `input` orders, in this process; see [`super::client_process`].
pub(super) fn client(mut input: impl Read, mut output: impl Write) -> io::Result<()> {
    let mut order = Vec::new();
    input.read_to_end(&mut order)?;
    let order: Order = serde_json::from_slice(&order)?;
    let stop = interrupt::install()?;
    let failed = AtomicBool::new(false);
    let term = threads::term(&order.plan, stop, &failed);
    let share = Share {
        index: order.client,
        of: order.plan.spec.clients,
    };
    let mut emit = |index, sent| {
        // Nobody listens any more: the process that ordered it has gone.
        if say(&mut output, &Said::Passed { index, sent }).is_err() {
            failed.store(true, Ordering::Relaxed);
        }
    };
    let done = threads::connect(order.plan.target)
        .map_err(|e| e.to_string())
        .and_then(|socket| threads::send_share(&order.plan, term, share, socket, &mut emit));
    let said = match done {
        Ok(done) => Said::Done(Box::new(done.into())),
        Err(why) => Said::Failed(why),
    };
    say(&mut output, &said)
}

fn say(output: &mut impl Write, said: &Said) -> io::Result<()> {
    let mut line = serde_json::to_vec(said)?;
    line.push(b'\n');
    output.write_all(&line)?;
    output.flush()
}

/// Runs a process for each client and returns what each brought back.
pub(super) fn run(
    plan: &SendPlan,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(u64, u64),
) -> Result<(Vec<Done>, Intervals), RunError> {
    let clients = plan.spec.clients.max(1) as usize;
    let mut intervals = Intervals::new(clients);
    let mut processes = Processes(Vec::with_capacity(clients));
    let (told, heard) = mpsc::channel();
    thread::scope(|scope| {
        let mut done: Vec<Option<Done>> = (0..clients).map(|_| None).collect();
        for client in 0..clients {
            let output = match processes.start(plan, client as u32) {
                Ok(output) => output,
                Err(error) => {
                    // Those who listen to the others end with them.
                    processes.kill();
                    return Err(error);
                }
            };
            let told = told.clone();
            let listener = move || listen(client, output, &told);
            if let Err(refused) = crate::threads::spawn(scope, "udp-client", listener) {
                processes.kill();
                return Err(refused);
            }
        }
        drop(told);
        let over = plan
            .origin
            .saturating_add((plan.spec.duration + PATIENCE).0);
        let mut told_to_stop = false;
        loop {
            match heard.recv_timeout(LOOK) {
                Ok((client, Some(Said::Passed { index, sent }))) => {
                    intervals.passed(client, index, sent, tell);
                }
                Ok((client, Some(Said::Done(ended)))) => done[client] = Some((*ended).into()),
                Ok((_, Some(Said::Failed(why)))) => {
                    processes.kill();
                    return Err(RunError::NotPermitted(why));
                }
                Ok((client, None)) => intervals.ended(client, tell),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if monotonic_ns() > over => processes.kill(),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if stop.load(Ordering::Relaxed) && !told_to_stop {
                told_to_stop = true;
                processes.terminate();
            }
        }
        processes.wait();
        let lost = |client| {
            let program = plan.program.display();
            let why = format!("client {client}, run as `{program} udp-client`, ended early");
            RunError::NotPermitted(why)
        };
        let done = done.into_iter().enumerate();
        let done = done.map(|(client, done)| done.ok_or_else(|| lost(client)));
        Ok((done.collect::<Result<_, _>>()?, intervals))
    })
}

/// Passes on what a client says, and at last that it has ended.
fn listen(client: usize, output: impl Read, told: &mpsc::Sender<(usize, Option<Said>)>) {
    // The receiver is gone where another client has failed.
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        let Ok(said) = serde_json::from_str(&line) else {
            break;
        };
        let _ = told.send((client, Some(said)));
    }
    let _ = told.send((client, None));
}

/// Processes that are killed unless they have ended when this is dropped.
struct Processes(Vec<Child>);

impl Processes {
    fn start(&mut self, plan: &SendPlan, client: u32) -> Result<impl Read + use<>, RunError> {
        let refused = |e: io::Error| {
            let program = plan.program.display();
            RunError::NotPermitted(format!(
                "cannot run `{program} udp-client` for client {client}: {e}"
            ))
        };
        let mut child = Command::new(&plan.program)
            .arg("udp-client")
            // Ctrl-C comes to us alone: whom it comes to twice ends without a word.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(refused)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        self.0.push(child);
        let (Some(mut input), Some(output)) = (input, output) else {
            return Err(refused(io::ErrorKind::BrokenPipe.into()));
        };
        let order = Order {
            plan: plan.clone(),
            client,
        };
        let order = serde_json::to_vec(&order).map_err(|e| refused(e.into()))?;
        input.write_all(&order).map_err(refused)?;
        Ok(output)
    }

    /// Asks all to end with what they have.
    fn terminate(&self) {
        for child in &self.0 {
            sys::process::terminate(child.id());
        }
    }

    fn kill(&mut self) {
        for child in &mut self.0 {
            // Where it has ended already there is nothing to kill.
            let _ = child.kill();
        }
    }

    fn wait(&mut self) {
        for child in &mut self.0 {
            let _ = child.wait();
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.kill();
        self.wait();
    }
}
