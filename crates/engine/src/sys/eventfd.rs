//! eventfd(2): wakes a thread that waits in epoll.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Readable from the first [`EventFd::notify`] until [`EventFd::drain`].
#[derive(Debug)]
pub struct EventFd(OwnedFd);

impl EventFd {
    /// One that is not yet readable.
    ///
    /// # Errors
    /// Out of descriptors or memory.
    pub fn new() -> io::Result<EventFd> {
        Ok(EventFd(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Makes it readable. Can be called from any thread and from a signal handler.
    pub fn notify(&self) {
        // It fails only where the counter is full, and then it is readable already.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Makes it unreadable again; whether it was readable.
    pub fn drain(&self) -> bool {
        rustix::io::read(&self.0, &mut [0_u8; 8]) == Ok(8)
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
