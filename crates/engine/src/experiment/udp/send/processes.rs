//! Senders in processes of their own, one per client.

use super::sender::SenderResult;
use super::tally::SentIntervals;
use super::{SendPlan, connect, send_share, term};
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
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Time after its end at which a client that has not answered is killed.
const PATIENCE: Nanos = Nanos::from_secs(10);

/// Interval of looking whether to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Input of a client's process.
#[derive(Serialize, Deserialize)]
struct ClientOrder {
    plan: SendPlan,
    client: u32,
}

/// Output of a client's process, a line each.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ClientMessage {
    /// An interval has passed: its index, and the datagrams sent in it.
    Passed { index: u64, sent: u64 },
    /// The client has ended.
    Done(Box<SenderResult>),
    /// The client could not send, for this reason.
    Failed(String),
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
    let term = term(&order.plan, stop, &failed);
    let share = Share { index: order.client, of: order.plan.spec.clients };
    let mut emit = |index, sent| {
        // Nobody reads any more: the parent process is gone.
        if write_message(&mut output, &ClientMessage::Passed { index, sent }).is_err() {
            failed.store(true, Ordering::Relaxed);
        }
    };
    let done = connect(order.plan.target)
        .map_err(|e| e.to_string())
        .and_then(|socket| send_share(&order.plan, term, share, socket, &mut emit));
    let said = match done {
        Ok(done) => ClientMessage::Done(Box::new(done)),
        Err(why) => ClientMessage::Failed(why),
    };
    write_message(&mut output, &said)
}

fn write_message(output: &mut impl Write, said: &ClientMessage) -> io::Result<()> {
    output.write_all(&control::line(said))?;
    output.flush()
}

/// Runs a process for each client and returns their results.
pub(super) fn run(
    plan: &SendPlan,
    stop: &AtomicBool,
    report: &mut dyn FnMut(u64, u64),
) -> Result<(Vec<SenderResult>, SentIntervals), RunError> {
    let clients = plan.spec.clients.max(1) as usize;
    let mut intervals = SentIntervals::new(clients);
    let mut processes = Processes(Vec::with_capacity(clients));
    let (messages, heard) = mpsc::channel();
    thread::scope(|scope| {
        let mut done: Vec<Option<SenderResult>> = (0..clients).map(|_| None).collect();
        for client in 0..clients {
            let output = match processes.start(plan, client as u32) {
                Ok(output) => output,
                Err(error) => {
                    // The threads that read from the other processes end with these.
                    processes.kill();
                    return Err(error);
                }
            };
            let messages = messages.clone();
            let listener = move || listen(client, output, &messages);
            if let Err(refused) = threads::spawn(scope, "udp-client", listener) {
                processes.kill();
                return Err(refused);
            }
        }
        drop(messages);
        let over = plan.origin.saturating_add((plan.spec.duration + PATIENCE).0);
        let mut told_to_stop = false;
        loop {
            match heard.recv_timeout(LOOK) {
                Ok((client, Some(ClientMessage::Passed { index, sent }))) => {
                    intervals.passed(client, index, sent, report);
                }
                Ok((client, Some(ClientMessage::Done(ended)))) => done[client] = Some(*ended),
                Ok((_, Some(ClientMessage::Failed(why)))) => {
                    processes.kill();
                    return Err(RunError::NotPermitted(why));
                }
                Ok((client, None)) => intervals.ended(client, report),
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

/// Passes on the messages of a client, and at last its end as `None`.
fn listen(
    client: usize,
    output: impl Read,
    messages: &mpsc::Sender<(usize, Option<ClientMessage>)>,
) {
    // The receiver is gone where another client has failed.
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        let Ok(said) = serde_json::from_str(&line) else {
            break;
        };
        let _ = messages.send((client, Some(said)));
    }
    let _ = messages.send((client, None));
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
