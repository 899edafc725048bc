//! A guard between this process and a program: a process whose child the program is.
//!
//! The guard ends the program with all its descendants. It does so when the program ends, unless
//! what that started may stay, and when this process closes its end of a pipe. The kernel closes that however this process ends. A byte
//! in the pipe has the guard send SIGTERM, so that the program may end by itself. The guard is a
//! fork of this process that runs no other program, so it makes system calls and nothing else.

use super::check;
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Limit of sweeps, so that the guard ends even if a process cannot be killed.
const SWEEPS_MAX: u32 = 200;

/// The longest wait between two sweeps, in milliseconds. The end of a process ends the wait.
const SWEEP_MS: libc::c_int = 10;

/// The children of the calling thread, as numbers with a blank after each (proc_pid_task(5)).
const CHILDREN: &CStr = c"/proc/thread-self/children";

/// Keeps a guarded program alive: it ends once this is dropped, or this process has ended.
#[derive(Debug)]
pub struct Lifeline {
    end: File,
}

/// What becomes of the processes that a program started, once it has ended well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftovers {
    /// They end with it.
    End,
    /// They stay, as what a command in a shell leaves in the background.
    Stay,
}

impl Lifeline {
    /// Lets the guard send SIGTERM to the program and its group.
    pub fn terminate(&self) {
        // A guard that has ended reads no more.
        let _ = (&self.end).write_all(&[0]);
    }
}

/// Lets a command run under a guard. Both are in process groups of their own, which a Ctrl-C in the
/// terminal does not reach. The child that [`Command::spawn`] gives is the guard, which ends as the
/// program does: with its status or by its signal.
///
/// # Errors
/// Out of descriptors.
pub fn put_before(command: &mut Command, leftovers: Leftovers) -> io::Result<Lifeline> {
    let (reader, writer) = io::pipe()?;
    command.process_group(0);
    let split = move || split_off_guard(reader.as_raw_fd(), leftovers);
    // SAFETY: between fork and exec it makes system calls and allocates nothing.
    unsafe { command.pre_exec(split) };
    Ok(Lifeline { end: OwnedFd::from(writer).into() })
}

/// Splits a process that was just forked into the guard, which does not return, and its child,
/// which becomes the program.
fn split_off_guard(lifeline: RawFd, leftovers: Leftovers) -> io::Result<()> {
    // SAFETY: PR_SET_CHILD_SUBREAPER takes a number. Descendants whose parent ends become children
    // of the guard.
    check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1 as libc::c_ulong) })?;
    let before = block(&all_signals());
    // SAFETY: this process has one thread, as it was forked itself.
    let program = check(unsafe { libc::fork() })?;
    if program > 0 {
        keep_watch(program, lifeline, leftovers);
    }
    // The program ends with the guard, if that is killed.
    // SAFETY: the mask is a valid one; numbers and no pointers else.
    unsafe {
        libc::sigprocmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        check(libc::setpgid(0, 0))?;
        let signal = libc::SIGKILL as libc::c_ulong;
        check(libc::prctl(libc::PR_SET_PDEATHSIG, signal)).map(drop)
    }
}

fn all_signals() -> libc::sigset_t {
    // SAFETY: sigfillset fills the set, which is ours.
    unsafe {
        let mut signals: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut signals);
        signals
    }
}

/// Blocks signals and returns the previous mask.
fn block(signals: &libc::sigset_t) -> libc::sigset_t {
    // SAFETY: both masks are ours, and sigprocmask fills the second.
    unsafe {
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigprocmask(libc::SIG_BLOCK, signals, &raw mut before);
        before
    }
}

/// Runs the guard: waits until the program has ended or is to end, kills what is left, and exits
/// with its status.
fn keep_watch(program: libc::pid_t, lifeline: RawFd, leftovers: Leftovers) -> ! {
    close_all_but(lifeline);
    // SAFETY: the name is a C string; PR_SET_NAME copies it.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"knee-guard".as_ptr()) };
    let (signals, flags) = (all_signals(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
    // SAFETY: the set is valid. Where this fails, the descriptor is -1, which poll leaves alone.
    let ended = unsafe { libc::signalfd(-1, &raw const signals, flags) };
    let is_known = ended >= 0;
    let mut status = None;
    let mut is_cut_off = false;
    while status.is_none() && !has_ended(program) {
        reap(program, &mut status);
        if status.is_some() {
            break;
        }
        let wait = if is_known { -1 } else { SWEEP_MS };
        if wait_for(&mut [lifeline, ended], wait) {
            if !read_lifeline(lifeline) {
                is_cut_off = true;
                break;
            }
            // SAFETY: numbers and no pointers. The program was not waited for, so that the number
            // is its own.
            unsafe { libc::kill(-program, libc::SIGTERM) };
        }
    }
    if leftovers == Leftovers::Stay && !is_cut_off {
        reap(program, &mut status);
        if status == Some(0) {
            exit_as(status);
        }
    }
    kill_all(program, ended, &mut status);
    exit_as(status)
}

/// Closes what was inherited: pipes of others end only when all their copies are closed.
fn close_all_but(kept: RawFd) {
    let kept = kept as libc::c_uint;
    let close = |first: libc::c_uint, last: libc::c_uint| {
        // SAFETY: numbers and no pointers; nothing here uses these descriptors any more.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) == 0 }
    };
    let is_done = (kept == 0 || close(0, kept - 1)) && close(kept + 1, libc::c_uint::MAX);
    if is_done {
        return;
    }
    // Before Linux 5.9.
    // SAFETY: getrlimit fills the limit, which is ours.
    let open_max = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        limit.rlim_cur.min(1 << 20)
    };
    for fd in (0..open_max as libc::c_uint).filter(|fd| *fd != kept) {
        // SAFETY: as above.
        unsafe { libc::close(fd as RawFd) };
    }
}

/// Whether the program has ended; it stays to be waited for, so that its group is its own.
fn has_ended(program: libc::pid_t) -> bool {
    super::process::has_ended(program as u32)
}

/// Waits for children that have ended. Returns whether some are left.
fn reap(program: libc::pid_t, status: &mut Option<libc::c_int>) -> bool {
    loop {
        let mut ended_status = 0;
        // SAFETY: the pointer is to a number of our own.
        match unsafe { libc::waitpid(-1, &raw mut ended_status, libc::WNOHANG) } {
            0 => return true,
            ended if ended == program => *status = Some(ended_status),
            ended if ended < 0 => return false,
            _ => {}
        }
    }
}

/// Waits until the first descriptor is readable or has ended, or the second is readable, which is
/// then read. Returns whether it was the first.
fn wait_for(fds: &mut [RawFd; 2], ms: libc::c_int) -> bool {
    let mut polled = fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    // SAFETY: the pointer is to two entries of our own.
    unsafe { libc::poll(polled.as_mut_ptr(), 2, ms) };
    let mut buffer = [0u8; 1024];
    if polled[1].revents != 0 {
        // SAFETY: the buffer is ours and as long as said.
        unsafe { libc::read(fds[1], buffer.as_mut_ptr().cast(), buffer.len()) };
    }
    polled[0].revents != 0
}

/// Reads a byte from the lifeline; `false` at its end.
fn read_lifeline(lifeline: RawFd) -> bool {
    let mut byte = 0u8;
    // SAFETY: the pointer is to a byte of our own.
    unsafe { libc::read(lifeline, (&raw mut byte).cast(), 1) == 1 }
}

/// Kills the program, its group and its descendants, until none is left.
fn kill_all(program: libc::pid_t, ended: RawFd, status: &mut Option<libc::c_int>) {
    for _ in 0..SWEEPS_MAX {
        if status.is_none() {
            // SAFETY: numbers and no pointers. The program was not waited for, so that the number
            // is its own.
            unsafe { libc::kill(-program, libc::SIGKILL) };
        }
        kill_children();
        if !reap(program, status) {
            return;
        }
        wait_for(&mut [-1, ended], SWEEP_MS);
    }
}

/// Kills the children of the guard. Nobody else waits for them, so that no other process can have
/// their numbers.
fn kill_children() {
    let mut text = [0u8; 4096];
    // SAFETY: the path is a C string, the buffer is ours and as long as said.
    let count = unsafe {
        let file = libc::open(CHILDREN.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return;
        }
        let count = libc::read(file, text.as_mut_ptr().cast(), text.len());
        libc::close(file);
        count
    };
    let mut pid: libc::pid_t = 0;
    // A number that is cut at the end of the buffer has no blank after it, and its turn is later.
    for byte in text.iter().take(count.max(0) as usize) {
        if byte.is_ascii_digit() {
            pid = pid.wrapping_mul(10).wrapping_add(libc::pid_t::from(*byte - b'0'));
        } else {
            if pid > 1 {
                // SAFETY: numbers and no pointers.
                unsafe { libc::kill(pid, libc::SIGKILL) };
            }
            pid = 0;
        }
    }
}

/// Exits with the status or signal of the program; with 0 if that is not known.
fn exit_as(status: Option<libc::c_int>) -> ! {
    let status = status.unwrap_or(0);
    if libc::WIFSIGNALED(status) {
        let signal = libc::WTERMSIG(status);
        // SAFETY: limit and set are ours. The guard leaves no core dump.
        unsafe {
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
            let mut only: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut only);
            libc::sigaddset(&raw mut only, signal);
            libc::sigprocmask(libc::SIG_UNBLOCK, &raw const only, std::ptr::null_mut());
            libc::_exit(128 + signal)
        }
    }
    // SAFETY: _exit takes any status and does not return.
    unsafe { libc::_exit(libc::WEXITSTATUS(status)) }
}
