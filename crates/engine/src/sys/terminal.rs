//! The terminal that this process was started from: whether it may be drawn on. Also how it is put
//! back if the process ends at once.

use super::check_count;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

/// Whether standard error is a terminal whose foreground process group we are in. One in the
/// background that changed the terminal's settings would be stopped (SIGTTOU, termios(3)).
pub fn is_foreground() -> bool {
    // SAFETY: both take no pointer; tcgetpgrp fails if it is no terminal of our session.
    unsafe { libc::tcgetpgrp(libc::STDERR_FILENO) == libc::getpgrp() }
}

/// What a terminal was like, and the words that bring it back there.
struct Former {
    fd: RawFd,
    settings: libc::termios,
    words: &'static [u8],
}

static FORMER: AtomicPtr<Former> = AtomicPtr::new(std::ptr::null_mut());

/// Keeps the present settings of the terminal for an end of the process by [`crate::interrupt`].
/// At that end the settings are restored and `words` is written to standard error: see
/// [`put_back`].
///
/// # Errors
/// This process has no terminal to read keys from.
pub fn remember(words: &'static [u8]) -> io::Result<()> {
    // SAFETY: isatty takes any descriptor.
    let fd = match unsafe { libc::isatty(libc::STDIN_FILENO) } {
        1 => libc::STDIN_FILENO,
        // Leaked with the rest: a signal may come at any time.
        _ => File::open("/dev/tty")?.into_raw_fd(),
    };
    // SAFETY: a zeroed termios is a valid one.
    let mut settings: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a termios of ours.
    if unsafe { libc::tcgetattr(fd.as_raw_fd(), &raw mut settings) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let former = Box::leak(Box::new(Former { fd, settings, words }));
    FORMER.store(former, Ordering::Release);
    Ok(())
}

/// Whether the terminal that [`remember`] kept has hung up. Each read from it then returns at once
/// with nothing.
pub fn has_hung_up() -> bool {
    wait(Duration::ZERO).is_some_and(|(_, has_hung_up)| has_hung_up)
}

/// What a terminal has for a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// This number of bytes, at least 1.
    Bytes(usize),
    /// Nothing, for ever.
    HungUp,
}

/// Waits for keys at the terminal that [`remember`] kept, and reads the bytes that are there, by
/// one read, which does not wait for more. `None`: none came within the time.
pub fn read(patience: Duration, into: &mut [u8]) -> Option<Input> {
    let (fd, has_hung_up) = wait(patience)?;
    if has_hung_up {
        return Some(Input::HungUp);
    }
    // SAFETY: the buffer is ours, and of this length.
    match check_count(|| unsafe { libc::read(fd, into.as_mut_ptr().cast(), into.len()) }) {
        Ok(count @ 1..) => Some(Input::Bytes(count)),
        Ok(0) | Err(_) => Some(Input::HungUp),
    }
}

/// Waits for keys. Returns the terminal, and whether it has hung up; `None`: none came in time.
fn wait(patience: Duration) -> Option<(RawFd, bool)> {
    // SAFETY: it is null or was leaked by `remember`, and is never changed.
    let Some(former) = (unsafe { FORMER.load(Ordering::Acquire).as_ref() }) else {
        std::thread::sleep(patience);
        return None;
    };
    let mut poll = libc::pollfd { fd: former.fd, events: libc::POLLIN, revents: 0 };
    let milliseconds = libc::c_int::try_from(patience.as_millis()).unwrap_or(libc::c_int::MAX);
    // SAFETY: one pollfd of ours.
    if unsafe { libc::poll(&raw mut poll, 1, milliseconds) } <= 0 {
        return None;
    }
    let is_gone = poll.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0;
    Some((former.fd, is_gone))
}

/// Whether [`remember`] was called and [`put_back`] was not yet.
pub fn is_to_be_put_back() -> bool {
    !FORMER.load(Ordering::Acquire).is_null()
}

/// Puts back what [`remember`] kept, once. Async-signal-safe: a swap, and functions that
/// signal-safety(7) lists.
pub fn put_back() {
    let former = FORMER.swap(std::ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: it is null or was leaked by `remember`, and is never changed.
    let Some(former) = (unsafe { former.as_ref() }) else {
        return;
    };
    // SAFETY: the words live for ever; a failure leaves nothing to be done.
    unsafe {
        libc::write(libc::STDERR_FILENO, former.words.as_ptr().cast(), former.words.len());
    }
    // In the background the settings are already those of the process that has the terminal.
    if is_foreground() {
        // SAFETY: the settings live for ever.
        unsafe { libc::tcsetattr(former.fd, libc::TCSANOW, &raw const former.settings) };
    }
}
