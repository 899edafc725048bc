//! eventfd(2): wakes a thread that waits in epoll.

use super::owned;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Readable from the first [`EventFd::notify`] until [`EventFd::drain`].
#[derive(Debug)]
pub struct EventFd(OwnedFd);

impl EventFd {
    /// One that is not yet readable.
    ///
    /// # Errors
    /// Out of descriptors or memory.
    pub fn new() -> io::Result<EventFd> {
        // SAFETY: no pointers.
        owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) }).map(EventFd)
    }

    /// Makes it readable. Can be called from any thread and from a signal handler.
    pub fn notify(&self) {
        let one = 1_u64;
        // SAFETY: eight bytes of our own. It fails only where the counter is full, and then it is
        // readable already.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    /// Makes it unreadable again; whether it was readable.
    pub fn drain(&self) -> bool {
        let mut count = 0_u64;
        // SAFETY: eight bytes of our own.
        unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), 8) == 8 }
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_notified_until_drained() {
        let wake = EventFd::new().unwrap();
        assert!(!wake.drain());
        wake.notify();
        wake.notify();
        assert!(wake.drain());
        assert!(!wake.drain());
    }
}
