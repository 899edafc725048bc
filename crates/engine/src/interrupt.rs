//! Ctrl-C, SIGTERM and SIGHUP, as a flag that a run looks at.

use crate::sys::{clock, terminal};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

/// From here on SIGINT, SIGTERM and SIGHUP end the process at once, with the status that a shell
/// gives a process that such a signal killed: nothing is lost before [`catch`]. The first process of
/// a container has no such default. SIGHUP stays ignored where it was ignored before, as nohup(1)
/// asks.
///
/// After this call a file that may not grow any more (RLIMIT_FSIZE) is an error of that write.
/// SIGXFSZ no longer ends the process.
///
/// # Errors
/// The system refuses the handlers; never on Linux.
pub fn install() -> io::Result<()> {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        if signal == libc::SIGHUP && is_ignored(signal)? {
            continue;
        }
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
    // SAFETY: the signal is a valid one, and to ignore it needs no handler.
    match unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) } {
        libc::SIG_ERR => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Raised by the first of these signals after this call, which ends nothing by itself. A second
/// SIGINT or SIGTERM ends the process at once, as before. One within 0.1 s is taken for the first:
/// timeout(1) signals a process and then its group. A further SIGHUP changes nothing: a terminal
/// that goes away sends several.
pub fn catch() -> &'static AtomicBool {
    IS_CAUGHT.store(true, Ordering::Relaxed);
    &RAISED
}

/// Has the kernel send SIGTERM to this process when the process with this id ends, if that started
/// it (PR_SET_PDEATHSIG). The end of the thread that started it counts as that.
///
/// # Errors
/// The system refuses; never on Linux.
pub fn end_with_parent(pid: &str) -> io::Result<()> {
    let parent = rustix::process::getppid();
    if parent.is_some_and(|parent| parent.to_string() == pid) {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
    }
    Ok(())
}

fn is_ignored(signal: libc::c_int) -> io::Result<bool> {
    // SAFETY: a zeroed sigaction is a valid one.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: nothing is set; the pointer for the present action is to one of ours.
    if unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(action.sa_sigaction == libc::SIG_IGN)
}

/// Whether an error says that the terminal is gone whose end SIGHUP announced.
pub fn is_hang_up(error: &io::Error) -> bool {
    signal() == Some(libc::SIGHUP) && error.raw_os_error() == Some(libc::EIO)
}

/// Does what SIGINT does after [`catch`]: for a Ctrl-C that a terminal in raw mode hands over as
/// a key. Each key is a wish of its own.
pub fn raise() {
    on_wish(libc::SIGINT, 0);
}

/// Ends what runs as the first signal does, by the user's wish and not by a signal.
pub fn end() {
    let _ = FIRST_NS.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed);
    RAISED.store(true, Ordering::Relaxed);
}

/// The signal that ended what ran, if one did.
pub fn signal() -> Option<i32> {
    match SIGNAL.load(Ordering::Relaxed) {
        0 => None,
        signal => Some(signal),
    }
}

/// Whether the first one came.
pub fn is_raised() -> bool {
    RAISED.load(Ordering::Relaxed)
}

/// Does what a second signal does, where the first one came.
pub(crate) fn end_at_once_if_raised() {
    if is_raised() {
        end_at_once(signal().unwrap_or(libc::SIGINT));
    }
}

/// Time within which signals are one wish, in nanoseconds: too short for two by hand.
const SAME_WISH_NS: u64 = 100_000_000;

/// When the first one came, in nanoseconds of the monotonic clock; 0: none has.
static FIRST_NS: AtomicU64 = AtomicU64::new(0);
static IS_CAUGHT: AtomicBool = AtomicBool::new(false);
static RAISED: AtomicBool = AtomicBool::new(false);
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// Only atomics, the clock, what [`terminal::put_back`] does and `_exit(2)`: all async-signal-safe
/// (signal-safety(7)).
extern "C" fn on_signal(signal: libc::c_int) {
    on_wish(signal, SAME_WISH_NS);
}

/// Does the same for a signal or a key. One within `same_ns` of the first belongs to that.
fn on_wish(signal: libc::c_int, same_ns: u64) {
    if !IS_CAUGHT.load(Ordering::Relaxed) {
        end_at_once(signal);
    }
    let now_ns = clock::monotonic_ns();
    match FIRST_NS.compare_exchange(0, now_ns, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => {
            SIGNAL.store(signal, Ordering::Relaxed);
            RAISED.store(true, Ordering::Relaxed);
        }
        Err(_) if signal == libc::SIGHUP => {}
        Err(first_ns) if now_ns.saturating_sub(first_ns) < same_ns => {}
        Err(_) => end_at_once(signal),
    }
}

fn end_at_once(signal: libc::c_int) -> ! {
    terminal::put_back();
    // SAFETY: _exit takes any status and does not return.
    unsafe { libc::_exit(128 + signal) }
}
