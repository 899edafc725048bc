//! A program beside a worker that gives values to steps: its process and its non-blocking pipes.
//!
//! Its parent is a guard (`sys::guard`), a fork of this process that makes system calls alone. The
//! guard ends the program with all its descendants when the pipe from this process closes, however
//! this process ends. The program's pipes never block. The reactor watches them beside the
//! connections (`Backend::watch`), so that no further thread is needed.
//! `pool::session_client::asking` asks when a pause begins; `knee_load::session` says when the step
//! goes.

use crate::error::reason;
use crate::sys::guard::{self, Leftovers, Lifeline};
use crate::sys::process;
use knee_load::session::{Program, ProgramAnswer};
use knee_load::shown::shown;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes per read. Bounds the delay of operations by a program that writes a lot.
const READ_BYTES: usize = 64 << 10;

/// Bytes kept of the end of its standard error.
const SAID_BYTES: usize = 4 << 10;

/// Bytes kept that the program has not read.
const UNSENT_BYTES_MAX: usize = 16 << 20;

/// Time limit for its end after the end of its input.
const GRACE: Duration = Duration::from_millis(500);

/// Time limit for the end of all processes that it started.
const KILLED: Duration = Duration::from_secs(3);

/// Time limit for its exit status after the end of its output.
const END_KNOWN: Duration = Duration::from_millis(50);

/// A process of a program.
pub(crate) struct ChildProgram {
    name: String,
    /// The guard before it, which ends as it does.
    child: Child,
    /// `None`: the guard ends the program with all that it started.
    lifeline: Option<Lifeline>,
    /// `None`: it reads no more.
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    stderr: ChildStderr,
    /// Bytes that the pipe had no room for, and how many of them were written since.
    unsent: (Vec<u8>, usize),
    /// The incomplete line.
    line: Vec<u8>,
    /// Whether the rest of a too long line is skipped.
    is_skipping: bool,
    /// The end of its standard error.
    said: Vec<u8>,
    buffer: Box<[u8]>,
}

impl ChildProgram {
    /// Starts a program. It has no descriptors but its pipes. It ends with this process, however
    /// that ends, and what it started ends with it.
    ///
    /// # Errors
    /// There is no such program, or it is not permitted to start it.
    pub(crate) fn start(program: &Program) -> io::Result<ChildProgram> {
        let mut command = Command::new(&program.file);
        command
            .args(&program.arguments)
            .current_dir(&program.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let lifeline = guard::put_before(&mut command, Leftovers::End)?;
        let mut child = command.spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        process::set_nonblocking(&stdin)?;
        process::set_nonblocking(&stdout)?;
        process::set_nonblocking(&stderr)?;
        Ok(ChildProgram {
            name: program.name.clone(),
            child,
            lifeline: Some(lifeline),
            stdin: Some(stdin),
            stdout,
            stderr,
            unsent: (Vec::new(), 0),
            line: Vec::new(),
            is_skipping: false,
            said: Vec::new(),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
        })
    }

    /// Its name in the scenario.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Its standard output and standard error, for the reactor.
    ///
    /// # Errors
    /// Out of descriptors.
    pub(crate) fn outputs(&self) -> io::Result<[OwnedFd; 2]> {
        Ok([self.stdout.as_fd().try_clone_to_owned()?, self.stderr.as_fd().try_clone_to_owned()?])
    }

    /// Writes a line; [`ChildProgram::write_rest`] writes the rest if the pipe is full. `false` if
    /// the program is gone or far behind.
    pub(crate) fn write(&mut self, line: &[u8]) -> bool {
        if self.stdin.is_none() || self.unsent.0.len() + line.len() > UNSENT_BYTES_MAX {
            return false;
        }
        self.unsent.0.extend_from_slice(line);
        self.write_rest();
        true
    }

    /// Whether bytes wait for room in the pipe.
    pub(crate) fn is_behind(&self) -> bool {
        !self.unsent.0.is_empty()
    }

    /// Writes as much of the rest as the pipe has room for.
    pub(crate) fn write_rest(&mut self) {
        let (unsent, gone) = &mut self.unsent;
        while let (Some(stdin), rest @ [_, ..]) = (&mut self.stdin, &unsent[*gone..]) {
            match stdin.write(rest) {
                Ok(count) => *gone += count,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                // It reads no more. What it has written before is still to be read.
                Err(_) => self.stdin = None,
            }
        }
        if *gone == unsent.len() || self.stdin.is_none() {
            unsent.clear();
            *gone = 0;
        } else if *gone > unsent.len() / 2 {
            unsent.drain(..*gone);
            *gone = 0;
        }
    }

    /// Reads once and passes each whole line to `on_line`, `None` for a too long one. Returns
    /// `false` at the end of its output.
    pub(crate) fn read(&mut self, on_line: &mut dyn FnMut(Option<&[u8]>)) -> bool {
        match self.stdout.read(&mut self.buffer) {
            Ok(0) => false,
            Ok(count) => {
                for piece in self.buffer[..count].split_inclusive(|byte| *byte == b'\n') {
                    let (piece, is_whole) = match piece {
                        [piece @ .., b'\n'] => (piece, true),
                        piece => (piece, false),
                    };
                    let length = self.line.len() + piece.len();
                    if !self.is_skipping && length > ProgramAnswer::BYTES_MAX {
                        self.is_skipping = true;
                        on_line(None);
                    }
                    if !self.is_skipping {
                        self.line.extend_from_slice(piece);
                    }
                    if is_whole {
                        if !std::mem::take(&mut self.is_skipping) {
                            on_line(Some(&self.line));
                        }
                        self.line.clear();
                    }
                }
                true
            }
            Err(e) => matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
        }
    }

    /// Reads its standard error once and keeps the end. `false` at the end of its output.
    pub(crate) fn listen(&mut self) -> bool {
        match self.stderr.read(&mut self.buffer) {
            Ok(0) => false,
            Ok(count) => {
                self.said.extend_from_slice(&self.buffer[..count]);
                let surplus = self.said.len().saturating_sub(SAID_BYTES);
                self.said.drain(..surplus);
                true
            }
            Err(e) => matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
        }
    }

    /// How the program ended, once its output has, as the end of a sentence. Has the last line that
    /// it wrote to its standard error.
    pub(crate) fn ended(&mut self) -> String {
        self.stdin = None;
        let how = if self.await_end(END_KNOWN) {
            match self.child.wait() {
                Ok(status) => format!("ended ({status})"),
                Err(e) => format!("ended ({})", reason(&e)),
            }
        } else {
            "closed its standard output".to_owned()
        };
        while self.listen() && process::has_input(&self.stderr) {}
        format!("{how}{}", self.last_words())
    }

    /// Waits for its end, for `limit` at most. Returns whether it has ended.
    fn await_end(&mut self, limit: Duration) -> bool {
        let begin = Instant::now();
        while !process::has_ended(self.child.id()) {
            if begin.elapsed() >= limit {
                return false;
            }
            // What it has to say must not keep it.
            while self.listen() && process::has_input(&self.stderr) {}
            thread::sleep(Duration::from_millis(1));
        }
        true
    }

    /// The last line that it wrote to its standard error, as the end of a sentence.
    pub(crate) fn last_words(&self) -> String {
        let said = String::from_utf8_lossy(&self.said);
        let mut lines = said.lines().map(str::trim);
        let Some(last) = lines.rfind(|line| !line.is_empty()) else {
            return String::new();
        };
        let short: String = last.chars().take(200).collect();
        format!("; its last line on standard error: {}", shown(&short))
    }
}

impl Drop for ChildProgram {
    fn drop(&mut self) {
        self.stdin = None;
        self.await_end(GRACE);
        self.lifeline = None;
        self.await_end(KILLED);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn shell(script: &str) -> ChildProgram {
        let program = Program {
            name: "./it".to_owned(),
            file: "/bin/sh".to_owned(),
            folder: "/tmp".to_owned(),
            arguments: vec!["-c".to_owned(), script.to_owned()],
            at: (1, 1),
        };
        ChildProgram::start(&program).unwrap()
    }

    /// The lines that it writes until its output ends, or `count` of them.
    fn lines(running: &mut ChildProgram, count: usize) -> Vec<Option<String>> {
        let mut lines = Vec::new();
        let begin = Instant::now();
        while lines.len() < count && begin.elapsed() < Duration::from_secs(30) {
            let is_open = running.read(&mut |line| {
                let text = line.map(|line| String::from_utf8_lossy(line).into_owned());
                lines.push(text);
            });
            if !is_open {
                break;
            }
            running.write_rest();
            thread::sleep(Duration::from_millis(1));
        }
        lines
    }

    /// Whether a process runs: one that has ended may wait for whoever inherited it.
    fn runs(pid: &str) -> bool {
        let stat = PathBuf::from("/proc").join(pid).join("stat");
        let stat = std::fs::read_to_string(stat).unwrap_or_default();
        let state = stat.rsplit(") ").next().unwrap_or_default();
        !(state.is_empty() || state.starts_with(['Z', 'X']))
    }

    #[test]
    fn lines_go_both_ways_and_a_long_one_is_left_out() {
        let mut echo = shell("cat");
        let long = "x".repeat(ProgramAnswer::BYTES_MAX + 1);
        let longest = "y".repeat(ProgramAnswer::BYTES_MAX);
        for line in ["one", "", &long, "three", &longest] {
            assert!(echo.write(format!("{line}\n").as_bytes()));
        }
        let some = |text: &str| Some(text.to_owned());
        let want = [some("one"), some(""), None, some("three"), some(&longest)];
        assert!(lines(&mut echo, 5) == want);
        assert!(!echo.is_behind());
    }

    #[test]
    fn what_it_said_last_is_told_with_its_end() {
        let mut ending =
            shell("head -c 100000 /dev/zero >&2; printf 'a\\nno key\\n\\n' >&2; exit 9");
        let begin = Instant::now();
        // Nobody listens meanwhile but for this: the end has to come all the same.
        while ending.listen() && begin.elapsed() < Duration::from_secs(30) {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(lines(&mut ending, 1), []);
        assert_eq!(
            ending.ended(),
            "ended (exit status: 9); its last line on standard error: no key"
        );
        assert!(ending.said.len() <= SAID_BYTES);
        assert!(!ending.write(b"more\n"), "it takes nothing any more");
    }

    #[test]
    fn who_does_not_read_keeps_nobody_waiting() {
        let mut deaf = shell("exec sleep 1000");
        let line = vec![b'x'; 1 << 20];
        let taken = (0..64).take_while(|_| deaf.write(&line)).count();
        assert!((15..=17).contains(&taken), "{taken} MiB");
        assert!(deaf.is_behind());
    }

    #[test]
    fn it_ends_with_its_owner_and_so_does_what_it_started() {
        // It takes no notice of the end of its input, nor of a request to end.
        let mut stubborn = shell("trap '' TERM HUP; sleep 1000 & echo $!; echo $$; wait; wait");
        let pids: Vec<_> = lines(&mut stubborn, 2).into_iter().flatten().collect();
        assert!(pids.len() == 2 && pids.iter().all(|pid| runs(pid)), "{pids:?}");
        drop(stubborn);
        check_ended(&pids);
    }

    fn check_ended(pids: &[String]) {
        let begin = Instant::now();
        while pids.iter().any(|pid| runs(pid)) {
            assert!(begin.elapsed() < Duration::from_secs(30), "{pids:?}");
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn what_left_the_group_of_a_program_ends_with_it() {
        // One in a session of its own, and one whose parent has ended as well.
        let leaves = "setsid sleep 1000 & echo $!; \
                      setsid sh -c 'setsid sleep 1000 & echo $!'";
        let mut owned = shell(&format!("{leaves}; exec cat"));
        let pids: Vec<_> = lines(&mut owned, 2).into_iter().flatten().collect();
        assert!(pids.len() == 2 && pids.iter().all(|pid| runs(pid)));
        drop(owned);
        check_ended(&pids);

        // It ends itself, and they keep its output open.
        let mut ending = shell(&format!("{leaves}; exit 3"));
        let pids: Vec<_> = lines(&mut ending, 3).into_iter().flatten().collect();
        assert_eq!(pids.len(), 2);
        check_ended(&pids);
        assert_eq!(ending.ended(), "ended (exit status: 3)");
    }

    #[test]
    fn a_program_that_a_signal_ends_is_told_so() {
        for (signal, want) in [("KILL", "9 (SIGKILL)"), ("TERM", "15 (SIGTERM)")] {
            let mut killed = shell(&format!("kill -{signal} $$"));
            assert_eq!(lines(&mut killed, 1), []);
            assert_eq!(killed.ended(), format!("ended (signal: {want})"));
        }
    }

    #[test]
    fn a_program_that_cannot_be_started_is_an_error() {
        let program = Program {
            name: "./none".to_owned(),
            file: "/nowhere/none".to_owned(),
            folder: "/tmp".to_owned(),
            arguments: Vec::new(),
            at: (1, 1),
        };
        let refused = ChildProgram::start(&program).err().unwrap();
        assert_eq!(refused.kind(), io::ErrorKind::NotFound);
    }
}
