//! A command of knee in a process of its own. Nothing but the protocol is on the server's standard
//! output, and no failure of the command ends the server.

use crate::confined::{ConfinedLimits, VARIABLE};
use knee_engine::sys::guard::{self, Lifeline};
use std::io::{self, Read};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Time to end and report after SIGTERM. Less than a session has to end.
const GRACE: Duration = Duration::from_secs(4);

/// Time between two notes on the progress.
const TICK: Duration = Duration::from_secs(1);

/// Bytes kept of the end of standard error: more than all lines of a failure.
const SAID_BYTES: usize = 64 << 10;

/// Largest document that a command may print, in bytes.
const PRINTED_MAX: u64 = 256 << 20;

/// Moves the cursor to the begin of the line and erases it, as the progress line does.
const ERASE: &str = "\u{1b}[K";

/// What the bar at the begin of a line of progress is made of.
const BAR: [char; 5] = ['━', '┄', '=', '.', ' '];

/// How a command ended, and what it printed.
#[derive(Debug)]
pub(super) struct EndedChild {
    /// The exit code; `None`: a signal ended it.
    pub(super) code: Option<i32>,
    pub(super) stdout: Vec<u8>,
    said: Vec<u8>,
    /// Whether it was ended as its time was over.
    pub(super) is_timed_out: bool,
}

impl EndedChild {
    /// What it said on standard error beside its progress, without empty lines.
    pub(super) fn errors(&self) -> String {
        let text = String::from_utf8_lossy(&self.said);
        let lines = text.split('\n').map(|line| match line.rfind(ERASE) {
            Some(at) => &line[at + ERASE.len()..],
            None => line,
        });
        let lines: Vec<&str> = lines.map(str::trim_end).filter(|line| !line.is_empty()).collect();
        lines.join("\n")
    }
}

/// A running command. Dropping it ends the process.
pub(super) struct RunningChild {
    lifeline: Option<Lifeline>,
    said: Arc<Mutex<Vec<u8>>>,
    /// Ends with its standard error.
    heard: JoinHandle<()>,
    end: JoinHandle<io::Result<(Option<i32>, Vec<u8>)>>,
}

impl RunningChild {
    /// Starts knee with these words, within these limits.
    pub(super) fn start(words: &[String], limits: &ConfinedLimits) -> io::Result<RunningChild> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(words).env(VARIABLE, serde_json::to_string(limits)?);
        command.current_dir(&limits.folder);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let lifeline = guard::put_before(&mut command)?;
        let mut child = command.spawn()?;
        let said = Arc::new(Mutex::new(Vec::new()));
        let stderr = child.stderr.take();
        let to = Arc::clone(&said);
        let heard = tokio::task::spawn_blocking(move || hear(stderr, &to));
        let end = tokio::task::spawn_blocking(move || read_to_end(child));
        Ok(RunningChild { lifeline: Some(lifeline), said, heard, end })
    }

    /// Waits for its end. It is asked to end when `stop` is cancelled or `limit` is over, and it is
    /// killed if it does not. `tick` gets the last line that it said, once per second.
    pub(super) async fn end(
        mut self,
        limit: Duration,
        stop: &CancellationToken,
        mut tick: impl FnMut(String),
    ) -> io::Result<EndedChild> {
        let mut ticks = tokio::time::interval(TICK);
        let limit = tokio::time::sleep(limit);
        let grace = tokio::time::sleep(Duration::MAX);
        tokio::pin!(limit, grace);
        let (mut is_asked, mut is_timed_out) = (false, false);
        loop {
            tokio::select! {
                ended = &mut self.end => {
                    let (code, stdout) = ended.map_err(io::Error::other)??;
                    (&mut self.heard).await.map_err(io::Error::other)?;
                    let said = std::mem::take(&mut *lock(&self.said));
                    return Ok(EndedChild { code, stdout, said, is_timed_out });
                }
                () = stop.cancelled(), if !is_asked => {
                    is_asked = self.ask_to_end();
                    grace.as_mut().reset(tokio::time::Instant::now() + GRACE);
                }
                () = &mut limit, if !is_asked => {
                    is_timed_out = true;
                    is_asked = self.ask_to_end();
                    grace.as_mut().reset(tokio::time::Instant::now() + GRACE);
                }
                () = &mut grace, if self.lifeline.is_some() => self.lifeline = None,
                _ = ticks.tick() => tick(last_line(&lock(&self.said))),
            }
        }
    }

    fn ask_to_end(&self) -> bool {
        self.lifeline.iter().for_each(Lifeline::terminate);
        true
    }
}

fn lock(said: &Mutex<Vec<u8>>) -> std::sync::MutexGuard<'_, Vec<u8>> {
    // A panic elsewhere leaves nothing half done in it.
    said.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads standard output to its end, and waits for the process.
fn read_to_end(mut child: Child) -> io::Result<(Option<i32>, Vec<u8>)> {
    let mut printed = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(PRINTED_MAX).read_to_end(&mut printed)?;
    }
    Ok((child.wait()?.code(), printed))
}

/// Keeps the end of standard error.
fn hear(stderr: Option<ChildStderr>, said: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 4096];
    let Some(mut stderr) = stderr else {
        return;
    };
    while let Ok(count @ 1..) = stderr.read(&mut buffer) {
        let mut said = lock(said);
        said.extend_from_slice(&buffer[..count]);
        let too_many = said.len().saturating_sub(SAID_BYTES);
        said.drain(..too_many);
    }
}

/// The last line that is not empty, also one that is not yet complete; before any, that it starts.
fn last_line(said: &[u8]) -> String {
    let text = String::from_utf8_lossy(said);
    let mut lines = text.rsplit(['\n', '\r']);
    let line = lines.find_map(|line| {
        let line = line.trim_start_matches(ERASE).trim_start_matches(BAR).trim();
        (!line.is_empty()).then_some(line)
    });
    line.unwrap_or("starting").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_told_from_errors() {
        let said = "\r\u{1b}[Krate=5/s  1.0 of 2.0 s\r\u{1b}[K\r\u{1b}[Ka note\n\nerror: no\n";
        let ended = EndedChild {
            code: Some(2),
            stdout: Vec::new(),
            said: said.into(),
            is_timed_out: false,
        };
        assert_eq!(ended.errors(), "a note\nerror: no");
        let running = "\r\u{1b}[Kwarming up\r\u{1b}[K\r\u{1b}[K━━┄┄  rate=5/s  1.0 of 2.0 s";
        assert_eq!(last_line(running.as_bytes()), "rate=5/s  1.0 of 2.0 s");
        assert_eq!(last_line(b""), "starting");
    }
}
