//! knee on a terminal: a pseudoterminal (pty(7)) whose other end is the test's.

use super::process::{Ended, STATE, heed_hang_ups, knee};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What is waited for on the screen comes sooner, or never.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running knee whose standard input and standard error are a terminal; standard output is not.
pub struct OnTerminal {
    pub child: Child,
    keyboard: File,
    /// Kept, so that the terminal's settings can be read after knee has ended.
    terminal: OwnedFd,
    settings_before: libc::termios,
    screen: Arc<Screen>,
    reader: JoinHandle<()>,
}

#[derive(Default)]
struct Screen {
    written: Mutex<Vec<u8>>,
    more: Condvar,
    /// The reader is to end.
    is_closed: AtomicBool,
}

impl OnTerminal {
    /// Starts it on a terminal of this size, with this environment besides.
    pub fn start(arguments: &[&str], size: (u16, u16), env: &[(&str, &str)]) -> OnTerminal {
        let mut command = knee(arguments);
        command.envs(env.iter().copied());
        OnTerminal::of(command, size)
    }

    /// The same with standard output on the terminal too.
    pub fn with_output(arguments: &[&str], size: (u16, u16)) -> OnTerminal {
        let mut shell = Command::new("sh");
        let program = env!("CARGO_BIN_EXE_knee");
        shell.args(["-c", "exec \"$0\" \"$@\" >&2", program]);
        shell.args(arguments).envs([("XDG_STATE_HOME", STATE), ("LC_ALL", "C.UTF-8")]);
        OnTerminal::of(shell, size)
    }

    fn of(mut command: Command, size: (u16, u16)) -> OnTerminal {
        let (master, terminal) = open(size);
        let settings_before = settings(&terminal);
        if command.get_envs().all(|(name, _)| name != "TERM") {
            command.env("TERM", "xterm");
        }
        command.stdin(Stdio::from(terminal.try_clone().unwrap()));
        command.stderr(Stdio::from(terminal.try_clone().unwrap()));
        // SAFETY: setsid and ioctl are async-signal-safe. The terminal becomes that of the new
        // session, whose foreground process group is the child's.
        unsafe {
            command.pre_exec(|| {
                heed_hang_ups()?;
                if libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY, 0) < 0 {
                    return Err(io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let child = command.spawn().unwrap();
        let screen = Arc::new(Screen::default());
        let mut shown = master.try_clone().unwrap();
        let seen = Arc::clone(&screen);
        let reader = std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while !seen.is_closed.load(Ordering::Relaxed) {
                if !has_more(&shown) {
                    continue;
                }
                let Ok(n @ 1..) = shown.read(&mut piece) else {
                    break;
                };
                seen.written.lock().unwrap().extend_from_slice(&piece[..n]);
                seen.more.notify_all();
            }
        });
        OnTerminal { child, keyboard: master, terminal, settings_before, screen, reader }
    }

    /// Takes the terminal away, as a window that is closed does, and waits for knee's end.
    pub fn hang_up(self) -> Ended {
        self.screen.is_closed.store(true, Ordering::Relaxed);
        self.reader.join().unwrap();
        drop((self.keyboard, self.terminal));
        Ended::of(self.child)
    }

    /// Waits until this was written to the terminal.
    pub fn wait_for(&self, text: &str) {
        let written = self.screen.written.lock().unwrap();
        let is_missing = |written: &mut Vec<u8>| !String::from_utf8_lossy(written).contains(text);
        let more = &self.screen.more;
        let (written, waited) = more.wait_timeout_while(written, PATIENCE, is_missing).unwrap();
        let shown = String::from_utf8_lossy(&written);
        assert!(!waited.timed_out(), "no {text:?} in {shown:?}");
    }

    /// Presses keys, all at once.
    pub fn press(&mut self, keys: impl AsRef<[u8]>) {
        self.keyboard.write_all(keys.as_ref()).unwrap();
    }

    /// Makes the terminal another size.
    pub fn resize(&self, size: (u16, u16)) {
        let size = winsize(size);
        // SAFETY: the size is ours.
        let set =
            unsafe { libc::ioctl(self.keyboard.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) };
        assert_eq!(set, 0, "{}", io::Error::last_os_error());
    }

    /// Waits for its end. Returns how it ended, with what it wrote to the terminal as standard
    /// error, and whether the terminal's settings are what they were.
    pub fn end(self) -> (Ended, bool) {
        let mut ended = Ended::of(self.child);
        let is_as_before = same(&settings(&self.terminal), &self.settings_before);
        drop(self.terminal);
        // The reader ends once it has read all and nobody holds the terminal any more.
        let begin = Instant::now();
        while !self.reader.is_finished() && begin.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
        }
        let written = self.screen.written.lock().unwrap();
        ended.stderr = String::from_utf8_lossy(&written).into_owned();
        (ended, is_as_before)
    }
}

/// Waits a little for something to read.
fn has_more(file: &File) -> bool {
    let mut poll = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one pollfd of ours.
    unsafe { libc::poll(&raw mut poll, 1, 20) > 0 }
}

fn winsize((columns, rows): (u16, u16)) -> libc::winsize {
    libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

fn open(size: (u16, u16)) -> (File, OwnedFd) {
    let size = winsize(size);
    let (mut master, mut terminal) = (-1, -1);
    let none = std::ptr::null_mut();
    // SAFETY: two integers and a size of ours; no name and no settings are wanted.
    let result = unsafe {
        libc::openpty(&raw mut master, &raw mut terminal, none, none.cast(), &raw const size)
    };
    assert_eq!(result, 0, "{}", io::Error::last_os_error());
    for fd in [master, terminal] {
        // SAFETY: a descriptor of ours.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    // SAFETY: the descriptors were just opened; nobody else has them.
    unsafe { (File::from_raw_fd(master), OwnedFd::from_raw_fd(terminal)) }
}

fn settings(terminal: &OwnedFd) -> libc::termios {
    // SAFETY: a zeroed termios is a valid one, and it is ours.
    unsafe {
        let mut settings: libc::termios = std::mem::zeroed();
        assert_eq!(libc::tcgetattr(terminal.as_raw_fd(), &raw mut settings), 0);
        settings
    }
}

fn same(a: &libc::termios, b: &libc::termios) -> bool {
    (a.c_iflag, a.c_oflag, a.c_cflag, a.c_lflag, a.c_cc)
        == (b.c_iflag, b.c_oflag, b.c_cflag, b.c_lflag, b.c_cc)
}
