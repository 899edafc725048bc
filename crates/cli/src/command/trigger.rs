//! A command that is the trigger: a shell runs it as the trigger begins.

use knee_engine::error::{RunError, reason};
use knee_engine::sys::guard::{self, Leftovers, Lifeline};
use knee_load::measure::{Histogram, Interval, IntervalWatcher};
use knee_load::time::Nanos;
use std::io::{self, Read as _};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// The command, and the time of the window in which it may run.
#[derive(Clone, Debug)]
pub(super) struct TriggerCommand {
    pub(super) line: String,
    pub(super) begins: Nanos,
    pub(super) ends: Nanos,
}

impl TriggerCommand {
    /// Runs the command in a trial whose intervals `watch` sees, and which `stop` ends.
    pub(super) fn watcher<'a>(
        &'a self,
        watch: &'a mut dyn IntervalWatcher,
        stop: &'a AtomicBool,
    ) -> CommandWatcher<'a> {
        CommandWatcher { watch, stop, command: self, run: CommandRun::Waiting }
    }
}

/// Starts and ends the command as intervals pass, which are shorter than a trigger.
pub(super) struct CommandWatcher<'a> {
    watch: &'a mut dyn IntervalWatcher,
    stop: &'a AtomicBool,
    command: &'a TriggerCommand,
    run: CommandRun,
}

enum CommandRun {
    /// For its time.
    Waiting,
    Running(RunningCommand),
    /// It is done, or was ended in time.
    Done,
    /// Why it failed.
    Failed(String),
}

/// A shell under a guard, which ends with this process; and who reads what it says of errors. What
/// it leaves in the background stays, such as a service that it has restarted.
struct RunningCommand {
    shell: Child,
    _lifeline: Lifeline,
    errors: JoinHandle<String>,
}

impl IntervalWatcher for CommandWatcher<'_> {
    fn on_note(&mut self, line: &str) {
        self.watch.on_note(line);
    }

    fn on_interval(&mut self, interval: &Interval, response: &Histogram) {
        self.watch.on_interval(interval, response);
        let now = Nanos(interval.end_ns);
        if matches!(self.run, CommandRun::Waiting) && now >= self.command.begins {
            self.run = match RunningCommand::start(&self.command.line) {
                Ok(running) => CommandRun::Running(running),
                Err(e) => CommandRun::Failed(format!("could not be started: {}", reason(&e))),
            };
        }
        self.look(now >= self.command.ends);
        if matches!(self.run, CommandRun::Failed(_)) {
            // Nothing is learnt from a trial without its trigger.
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

impl CommandWatcher<'_> {
    /// Looks whether the command has ended; ends it where its time is over.
    fn look(&mut self, is_over: bool) {
        let CommandRun::Running(running) = &mut self.run else {
            return;
        };
        let ended = running.shell.try_wait();
        if matches!(ended, Ok(None)) && !is_over {
            return;
        }
        let CommandRun::Running(running) = std::mem::replace(&mut self.run, CommandRun::Done)
        else {
            return;
        };
        match ended {
            Ok(Some(status)) if !status.success() => {
                let said = running.errors.join().unwrap_or_default();
                let said = said.lines().next().map_or(String::new(), |line| format!(": {line}"));
                self.run = CommandRun::Failed(format!("ended with {status}{said}"));
            }
            // Dropping its lifeline ends what still runs.
            Ok(_) => {}
            Err(e) => self.run = CommandRun::Failed(reason(&e)),
        }
    }

    /// The error of a command that failed.
    pub(super) fn end(mut self) -> Result<(), RunError> {
        self.look(true);
        match self.run {
            CommandRun::Failed(why) => {
                Err(RunError::NotStarted(format!("--trigger-exec: '{}' {why}", self.command.line)))
            }
            CommandRun::Waiting | CommandRun::Running(_) | CommandRun::Done => Ok(()),
        }
    }
}

impl RunningCommand {
    fn start(line: &str) -> io::Result<RunningCommand> {
        let mut command = Command::new("sh");
        command.args(["-c", line]).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::piped());
        let lifeline = guard::put_before(&mut command, Leftovers::Stay)?;
        let mut shell = command.spawn()?;
        let errors = shell.stderr.take();
        let read = move || {
            let mut said = Vec::new();
            if let Some(mut errors) = errors {
                // What is read until an error is what it said.
                let _ = errors.by_ref().take(4096).read_to_end(&mut said);
                // A service that it started goes on writing.
                let _ = io::copy(&mut errors, &mut io::sink());
            }
            String::from_utf8_lossy(&said).into_owned()
        };
        let errors = thread::Builder::new().name("trigger-errors".to_owned()).spawn(read)?;
        Ok(RunningCommand { shell, _lifeline: lifeline, errors })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nobody;

    impl IntervalWatcher for Nobody {
        fn on_interval(&mut self, _: &Interval, _: &Histogram) {}
    }

    /// What becomes of a command with a second per interval, and whether the trial was stopped.
    fn run(line: &str, begins: u64, ends: u64) -> (Result<(), String>, bool) {
        let seconds = Nanos::from_secs;
        let command =
            TriggerCommand { line: line.into(), begins: seconds(begins), ends: seconds(ends) };
        let stop = AtomicBool::new(false);
        let mut nobody = Nobody;
        let run = CommandRun::Waiting;
        let mut watch = CommandWatcher { watch: &mut nobody, stop: &stop, command: &command, run };
        for second in 1..=ends {
            let interval = Interval { end_ns: seconds(second).0, ..Interval::default() };
            watch.on_interval(&interval, &Histogram::default());
            if let CommandRun::Running(running) = &mut watch.run
                && !line.contains("sleep")
            {
                running.shell.wait().unwrap();
            }
        }
        (watch.end().map_err(|e| e.to_string()), stop.load(Ordering::Relaxed))
    }

    #[test]
    fn command_runs_or_says_why_it_failed() {
        assert_eq!(run("true", 2, 5), (Ok(()), false));
        let (failed, stopped) = run("echo no cache >&2; exit 3", 2, 5);
        let expected = "--trigger-exec: 'echo no cache >&2; exit 3' ended with exit status: 3: no \
                        cache";
        assert_eq!((failed.unwrap_err().as_str(), stopped), (expected, true));
    }

    /// A service that the command restarts stays, unless the command fails.
    #[test]
    fn what_a_command_leaves_in_the_background_stays() {
        for (status, stays) in [(0, true), (1, false)] {
            let name = format!("knee-trigger-{}-{status}", std::process::id());
            let file = std::env::temp_dir().join(name);
            let sleeps = "setsid sleep 600 >/dev/null 2>&1";
            let line = format!("{sleeps} & echo $! > {}; exit {status}", file.display());
            let mut running = RunningCommand::start(&line).unwrap();
            running.shell.wait().unwrap();
            let pid = std::fs::read_to_string(&file).unwrap();
            let process = std::path::Path::new("/proc").join(pid.trim());
            assert_eq!(process.exists(), stays, "{line}");
            let _ = Command::new("kill").arg(pid.trim()).status();
            std::fs::remove_file(&file).unwrap();
        }
    }

    #[test]
    fn command_that_is_not_done_is_ended() {
        assert_eq!(run("exec sleep 600", 1, 3), (Ok(()), false));
    }
}
