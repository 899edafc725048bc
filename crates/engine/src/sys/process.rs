//! Processes that we have started: signals to them, their end, pipes to them.

use super::check;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Asks a child process to end: kill(2) with SIGTERM. `pid` is of a child that was not waited for
/// yet, so that no other process can have its number.
pub fn terminate(pid: u32) {
    if let Ok(pid) = libc::pid_t::try_from(pid) {
        // SAFETY: no pointers. That it has ended already is no error worth telling.
        unsafe { libc::kill(pid, libc::SIGTERM) };
    }
}

/// Whether a child has ended; it can be waited for afterwards: waitid(2) with WNOWAIT.
pub fn has_ended(pid: u32) -> bool {
    // SAFETY: all zeroes are a valid siginfo_t.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the pointer is to a siginfo_t of our own.
    let result = unsafe { libc::waitid(libc::P_PID, pid, &raw mut info, flags) };
    // SAFETY: waitid fills it, or leaves it as it was: zero where none has ended.
    let of = unsafe { info.si_pid() };
    // One that was waited for already has ended too.
    result < 0 || of != 0
}

/// Has reads and writes of this end of a pipe return at once: O_NONBLOCK.
///
/// # Errors
/// None for an open pipe.
pub fn set_nonblocking(pipe: &impl AsFd) -> io::Result<()> {
    let fd = pipe.as_fd().as_raw_fd();
    // SAFETY: no pointers; the descriptor is borrowed.
    let flags = check(unsafe { libc::fcntl(fd, libc::F_GETFL) })?;
    // SAFETY: as above.
    check(unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) }).map(drop)
}

/// Whether there is something to read from a pipe by now: FIONREAD (ioctl(2)).
pub fn has_input(pipe: &impl AsFd) -> bool {
    let mut count: libc::c_int = 0;
    // SAFETY: the pointer is to an int of our own; the descriptor is borrowed.
    let result = unsafe { libc::ioctl(pipe.as_fd().as_raw_fd(), libc::FIONREAD, &raw mut count) };
    result == 0 && count > 0
}
