//! Senders in processes of their own, one per client.

use super::sender::SenderResult;
use super::tally::SentIntervals;
use super::{SendPlan, SenderMessage, connect, follow, period, send_share};
use crate::error::RunError;
use crate::sys::clock::monotonic_ns;
use crate::{control, interrupt, sys, threads};
use knee_load::spec::Share;
use knee_load::time::Nanos;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

/// Time after its end at which a client that has not answered is killed.
const PATIENCE: Nanos = Nanos::from_secs(10);

/// Input of a client's process.
#[derive(Serialize, Deserialize)]
struct ClientOrder {
    plan: SendPlan,
    client: u32,
}

/// Runs one client in this process: reads its order from `input`, sends, and writes its result to
/// `output`, in the formats of [`send`](super::send). SIGTERM ends it early.
///
/// # Errors
/// The input is no order, or the output cannot be written.
pub fn client_process(mut input: impl Read, mut output: impl Write) -> io::Result<()> {
    let mut order = Vec::new();
    input.read_to_end(&mut order)?;
    let order: ClientOrder = serde_json::from_slice(&order)?;
    let stop = interrupt::catch();
    let failed = AtomicBool::new(false);
    let period = period(&order.plan, stop, &failed);
    let share = Share { index: order.client, of: order.plan.spec.clients };
    let mut written = Ok(());
    let mut say = |message: SenderMessage| {
        written = output.write_all(&control::line(&message)).and_then(|()| output.flush());
        // Nobody reads any more: the parent process is gone.
        if written.is_err() {
            failed.store(true, Ordering::Relaxed);
        }
    };
    match connect(order.plan.target) {
        Ok(socket) => send_share(&order.plan, period, share, socket, &mut say),
        Err(error) => say(SenderMessage::Failed(error.to_string())),
    }
    written
}

/// Runs a process for each client and returns their results.
pub(super) fn run(
    plan: &SendPlan,
    stop: &AtomicBool,
    report: &mut dyn FnMut(u64, u64),
) -> Result<(Vec<SenderResult>, SentIntervals), RunError> {
    let clients = plan.spec.clients.max(1) as usize;
    let mut processes = Processes(Vec::with_capacity(clients));
    let (messages, heard) = mpsc::channel();
    thread::scope(|scope| {
        for client in 0..clients {
            let started = processes.start(plan, client as u32).and_then(|output| {
                let messages = messages.clone();
                threads::spawn(scope, "udp-client", move || listen(client, output, &messages))
            });
            if let Err(error) = started {
                // The threads that read from the other processes end with these.
                processes.kill();
                return Err(error);
            }
        }
        drop(messages);
        let over = plan.origin.saturating_add((plan.spec.duration + PATIENCE).0);
        let mut is_stopping = false;
        let followed = follow(clients, &heard, report, || {
            if monotonic_ns() > over {
                processes.kill();
            }
            if stop.load(Ordering::Relaxed) && !is_stopping {
                is_stopping = true;
                processes.terminate();
            }
        });
        if followed.is_err() {
            processes.kill();
        }
        let (results, intervals) = followed?;
        processes.wait();
        let lost = |client| {
            let program = plan.program.display();
            let why = format!("client {client}, run as `{program} udp-client`, ended early");
            RunError::NotPermitted(why)
        };
        let results = results.into_iter().enumerate();
        let results = results.map(|(client, result)| result.ok_or_else(|| lost(client)));
        Ok((results.collect::<Result<_, _>>()?, intervals))
    })
}

/// Passes on the messages of a client.
fn listen(client: usize, output: impl Read, messages: &mpsc::Sender<(usize, SenderMessage)>) {
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        let Ok(message) = serde_json::from_str(&line) else {
            return;
        };
        // The receiver is gone where another client has failed.
        let _ = messages.send((client, message));
    }
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
            // Ctrl-C reaches the parent alone: a process that it reaches twice ends without a
            // result.
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
        let order = ClientOrder { plan: plan.clone(), client };
        let order = serde_json::to_vec(&order).map_err(|e| refused(e.into()))?;
        input.write_all(&order).map_err(refused)?;
        Ok(output)
    }

    /// Lets all end early with their results so far.
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
