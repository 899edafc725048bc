//! Processes that we have started: signals to them, their end, pipes to them.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::io;
use std::os::fd::AsFd;

/// Asks a child process to end: kill(2) with SIGTERM. `pid` is of a child that was not waited for
/// yet, so that no other process can have its number.
pub fn terminate(pid: u32) {
    // That it has ended already is no error worth telling.
    let _ = child(pid).map(|pid| kill_process(pid, Signal::TERM));
}

/// Whether a child has ended; it can be waited for afterwards: waitid(2) with WNOWAIT.
pub fn has_ended(pid: u32) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let waited = child(pid).map(|pid| waitid(WaitId::Pid(pid), options));
    // One that was waited for already has ended too.
    !matches!(waited, Some(Ok(None)))
}

fn child(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

/// Has reads and writes of this end of a pipe return at once: O_NONBLOCK.
///
/// # Errors
/// None for an open pipe.
pub fn set_nonblocking(pipe: &impl AsFd) -> io::Result<()> {
    Ok(rustix::io::ioctl_fionbio(pipe, true)?)
}

/// Whether there is something to read from a pipe by now: FIONREAD (ioctl(2)).
pub fn has_input(pipe: &impl AsFd) -> bool {
    rustix::io::ioctl_fionread(pipe).is_ok_and(|count| count > 0)
}
