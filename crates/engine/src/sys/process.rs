//! Signals to processes that we have started.

/// Asks a child process to end: kill(2) with SIGTERM. `pid` is of a child that was not waited for
/// yet, so that no other process can have its number.
pub fn terminate(pid: u32) {
    if let Ok(pid) = libc::pid_t::try_from(pid) {
        // SAFETY: no pointers. That it has ended already is no error worth telling.
        unsafe { libc::kill(pid, libc::SIGTERM) };
    }
}
