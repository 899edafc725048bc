//! Ctrl-C and SIGTERM, as a flag that a run looks at.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// Raised by the first SIGINT or SIGTERM after [`install`]. The second one ends the process at
/// once with status 130, as a shell reports a process that SIGINT killed.
///
/// # Errors
/// The system refuses the handlers; never on Linux.
pub fn install() -> io::Result<&'static AtomicBool> {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: a zeroed sigaction is a valid one: default action, no flags, empty mask.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        // SAFETY: the action is ours, its handler is async-signal-safe, the old one is not wanted.
        let result = unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(&RAISED)
}

static RAISED: AtomicBool = AtomicBool::new(false);

/// Only an atomic exchange and `_exit(2)`, both async-signal-safe (signal-safety(7)).
extern "C" fn on_signal(_signal: libc::c_int) {
    if RAISED.swap(true, Ordering::Relaxed) {
        // SAFETY: _exit takes any status and does not return.
        unsafe { libc::_exit(130) }
    }
}
