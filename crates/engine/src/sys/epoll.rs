//! epoll(7): readiness of many descriptors, with timeouts in nanoseconds. eventfd(2) wakes a thread
//! that waits in it.

use super::check;
use super::clock::timespec;
use knee_load::time::Nanos;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// What to wait for; combine with `|`.
pub mod flags {
    /// There is something to read, or to accept.
    pub const READ: u32 = libc::EPOLLIN as u32;
    /// There is room to write, or a connect has ended.
    pub const WRITE: u32 = libc::EPOLLOUT as u32;
    /// Told only when it changes.
    pub const EDGE: u32 = libc::EPOLLET as u32;
    /// The peer has ended its direction.
    pub const READ_CLOSED: u32 = libc::EPOLLRDHUP as u32;
    /// An error is pending; always told.
    pub const ERROR: u32 = libc::EPOLLERR as u32;
    /// Both directions have ended; always told.
    pub const HANG_UP: u32 = libc::EPOLLHUP as u32;
}

/// Something is ready.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct EpollEvent(libc::epoll_event);

impl EpollEvent {
    /// Filler for a caller's buffer.
    pub const EMPTY: EpollEvent = EpollEvent(libc::epoll_event { events: 0, u64: 0 });

    /// The token that the descriptor was added with.
    #[inline]
    pub fn token(&self) -> u64 {
        self.0.u64
    }

    /// What is ready: [`flags`].
    #[inline]
    pub fn flags(&self) -> u32 {
        self.0.events
    }

    /// Whether a read will not block: data, end, or error.
    #[inline]
    pub fn is_readable(&self) -> bool {
        use flags::{ERROR, HANG_UP, READ, READ_CLOSED};
        self.flags() & (READ | READ_CLOSED | ERROR | HANG_UP) != 0
    }

    /// Whether a write will not block: room, or error.
    #[inline]
    pub fn is_writable(&self) -> bool {
        use flags::{ERROR, HANG_UP, WRITE};
        self.flags() & (WRITE | ERROR | HANG_UP) != 0
    }
}

/// An epoll instance.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

impl Epoll {
    /// Creates an empty instance.
    ///
    /// # Errors
    /// Out of descriptors or memory.
    pub fn new() -> io::Result<Epoll> {
        Ok(Epoll(epoll::create(CreateFlags::CLOEXEC)?))
    }

    /// Begins to watch `fd` for `flags`. Closing the descriptor ends the watch.
    ///
    /// # Errors
    /// Already watched, not watchable, out of memory.
    pub fn add(&self, fd: &impl AsFd, token: u64, flags: u32) -> io::Result<()> {
        let flags = EventFlags::from_bits_retain(flags);
        Ok(epoll::add(&self.0, fd, EventData::new_u64(token), flags)?)
    }

    /// Changes what `fd` is watched for, and rearms an edge.
    ///
    /// # Errors
    /// Not watched.
    pub fn modify(&self, fd: &impl AsFd, token: u64, flags: u32) -> io::Result<()> {
        let flags = EventFlags::from_bits_retain(flags);
        Ok(epoll::modify(&self.0, fd, EventData::new_u64(token), flags)?)
    }

    /// Ends the watch of `fd`.
    ///
    /// # Errors
    /// Not watched.
    pub fn delete(&self, fd: &impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.0, fd)?)
    }

    /// Waits until something is ready or `timeout` has passed (`None`: for ever; zero: only looks).
    /// Returns what is ready, in `events`; nothing also where a signal came.
    ///
    /// Kernels before 5.11 know only whole milliseconds. The time is then rounded down, so that it
    /// is never late on that account, and the caller polls through the rest.
    ///
    /// # Errors
    /// None in correct use.
    pub fn wait<'e>(
        &self,
        events: &'e mut [EpollEvent],
        timeout: Option<Nanos>,
    ) -> io::Result<&'e [EpollEvent]> {
        match self.wait_count(events, timeout) {
            Ok(count) => Ok(&events[..count]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(&[]),
            Err(e) => Err(e),
        }
    }

    fn wait_count(&self, events: &mut [EpollEvent], timeout: Option<Nanos>) -> io::Result<usize> {
        // Looking and waiting for ever need no fine timeout: the plain call is a little cheaper.
        let fine = timeout.filter(|t| *t > Nanos::ZERO);
        if let Some(timeout) = fine.filter(|_| !NO_PWAIT2.load(Ordering::Relaxed)) {
            match self.pwait2(events, timeout) {
                Err(e) if e.raw_os_error() == Some(libc::ENOSYS) => {
                    NO_PWAIT2.store(true, Ordering::Relaxed);
                }
                result => return result,
            }
        }
        let timeout_ms = timeout.map_or(-1, |t| (t.0 / 1_000_000).min(i32::MAX as u64) as i32);
        let capacity = events.len().min(i32::MAX as usize) as i32;
        // SAFETY: `EpollEvent` is a transparent epoll_event; the buffer holds `capacity` of them.
        let count = unsafe {
            libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr().cast(), capacity, timeout_ms)
        };
        check(count).map(|n| n as usize)
    }

    /// Called by number: glibc wraps it only since 2.35.
    fn pwait2(&self, events: &mut [EpollEvent], timeout: Nanos) -> io::Result<usize> {
        let timeout = timespec(timeout.0);
        let capacity = events.len().min(i32::MAX as usize) as i32;
        // SAFETY: the buffer holds `capacity` events, the timeout outlives the call, and no signal
        // mask is given (null, of length 0).
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.0.as_raw_fd(),
                events.as_mut_ptr(),
                capacity,
                &raw const timeout,
                std::ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        };
        check(count as libc::c_int).map(|n| n as usize)
    }
}

impl AsFd for Epoll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Set once the kernel has said that it has no epoll_pwait2.
static NO_PWAIT2: AtomicBool = AtomicBool::new(false);

/// Readable from the first [`EventFd::notify`] until [`EventFd::drain`].
#[derive(Debug)]
pub struct EventFd(OwnedFd);

impl EventFd {
    /// Creates an eventfd that is not readable.
    ///
    /// # Errors
    /// Out of descriptors or memory.
    pub fn new() -> io::Result<EventFd> {
        Ok(EventFd(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Makes it readable. Can be called from any thread and from a signal handler.
    pub fn notify(&self) {
        // It fails only if the counter is full, and then it is readable already.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Makes it unreadable again. Returns whether it was readable.
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
    use crate::sys::clock::monotonic_ns;
    use crate::sys::epoll::EventFd;

    #[test]
    fn tells_what_is_ready_and_waits_no_shorter_than_asked() {
        let epoll = Epoll::new().unwrap();
        let mut events = [EpollEvent::EMPTY; 4];
        let wake = EventFd::new().unwrap();
        epoll.add(&wake, 7, flags::READ).unwrap();

        let begin = monotonic_ns();
        let timeout = Nanos::from_micros(300);
        assert!(epoll.wait(&mut events, Some(timeout)).unwrap().is_empty());
        if !NO_PWAIT2.load(Ordering::Relaxed) {
            assert!(monotonic_ns() - begin >= timeout.0);
        }

        wake.notify();
        let ready = epoll.wait(&mut events, None).unwrap();
        assert_eq!(ready.len(), 1);
        assert!(ready[0].token() == 7 && ready[0].is_readable() && !ready[0].is_writable());

        epoll.modify(&wake, 8, 0).unwrap();
        let none = epoll.wait(&mut events, Some(Nanos::ZERO)).unwrap();
        assert!(none.is_empty());
        epoll.delete(&wake).unwrap();
        assert!(epoll.delete(&wake).is_err());
    }

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
