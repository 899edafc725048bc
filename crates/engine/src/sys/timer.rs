//! Sleeps and timers on CLOCK_MONOTONIC, to the nanosecond as they were asked for.
//!
//! Times are those of [`super::clock::monotonic_ns`].

use super::{check, check_count, owned};
use io_uring::types::{TimeoutFlags, Timespec};
use io_uring::{IoUring, opcode};
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// Sleeps for a time: clock_nanosleep(2). A signal ends it early, as it would end a user's.
pub fn sleep_for(length_ns: u64) {
    nanosleep(0, length_ns);
}

/// Sleeps until a time of CLOCK_MONOTONIC: clock_nanosleep(2) with TIMER_ABSTIME. A signal ends it
/// early.
pub fn sleep_until(moment_ns: u64) {
    nanosleep(libc::TIMER_ABSTIME, moment_ns);
}

fn nanosleep(flags: libc::c_int, ns: u64) {
    let time = timespec(ns);
    let no_rest = std::ptr::null_mut();
    // SAFETY: the timespec outlives the call; what was left is not asked for.
    unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, flags, &raw const time, no_rest) };
}

/// A descriptor that becomes readable when a timer expires: timerfd_create(2). Reads block.
#[derive(Debug)]
pub struct TimerFd(OwnedFd);

impl TimerFd {
    /// One that is not armed.
    ///
    /// # Errors
    /// Out of descriptors or memory.
    pub fn new() -> io::Result<TimerFd> {
        let flags = libc::TFD_CLOEXEC;
        // SAFETY: no pointers.
        owned(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) }).map(TimerFd)
    }

    /// It expires at `first_ns` (a time, above 0) and from then on every `every_ns`; 0: never
    /// again.
    ///
    /// # Errors
    /// None in correct use.
    pub fn arm(&self, first_ns: u64, every_ns: u64) -> io::Result<()> {
        let times =
            libc::itimerspec { it_interval: timespec(every_ns), it_value: timespec(first_ns) };
        let (fd, old) = (self.0.as_raw_fd(), std::ptr::null_mut());
        // SAFETY: the times outlive the call; the old ones are not asked for.
        check(unsafe { libc::timerfd_settime(fd, libc::TFD_TIMER_ABSTIME, &raw const times, old) })
            .map(drop)
    }

    /// Waits until it has expired and returns how often it did since it was last read or armed.
    ///
    /// # Errors
    /// None in correct use.
    pub fn read(&self) -> io::Result<u64> {
        let mut count = 0_u64;
        let fd = self.0.as_raw_fd();
        // SAFETY: eight bytes of our own.
        check_count(|| unsafe { libc::read(fd, (&raw mut count).cast(), 8) })?;
        Ok(count)
    }
}

fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / 1_000_000_000) as _,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    }
}

/// A ring for one timeout at a time.
pub struct UringTimer {
    // Dropped first: after it the kernel reads no time.
    ring: IoUring,
    time: Box<Timespec>,
}

impl UringTimer {
    /// A new ring.
    ///
    /// # Errors
    /// Where this kernel or its policy (`kernel.io_uring_disabled`, seccomp in containers) does
    /// not permit io_uring.
    pub fn new() -> io::Result<UringTimer> {
        Ok(UringTimer { ring: IoUring::new(2)?, time: Box::new(Timespec::new()) })
    }

    /// Waits until a time of CLOCK_MONOTONIC.
    ///
    /// # Errors
    /// The kernel knows no absolute timeouts (before 5.5).
    pub fn wait_until(&mut self, moment_ns: u64) -> io::Result<()> {
        let seconds = Timespec::new().sec(moment_ns / 1_000_000_000);
        *self.time = seconds.nsec((moment_ns % 1_000_000_000) as u32);
        let timeout = opcode::Timeout::new(&raw const *self.time).flags(TimeoutFlags::ABS);
        // SAFETY: the time stays in its box until the ring is gone.
        let queued = unsafe { self.ring.submission().push(&timeout.build()) };
        queued.map_err(|_| io::Error::from(io::ErrorKind::WouldBlock))?;
        loop {
            match self.ring.submit_and_wait(1) {
                Err(e) if e.kind() != io::ErrorKind::Interrupted => return Err(e),
                _ => {}
            }
            let completed = self.ring.completion().next();
            match completed.map(|c| -c.result()) {
                None => {}
                Some(libc::ETIME) => return Ok(()),
                Some(error) => return Err(io::Error::from_raw_os_error(error)),
            }
        }
    }
}

impl fmt::Debug for UringTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UringTimer")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::clock::monotonic_ns;

    #[test]
    fn nothing_ends_before_its_time() {
        let timer = TimerFd::new().unwrap();
        let ways: [&dyn Fn(u64); 3] =
            [&|ns| sleep_for(ns), &|ns| sleep_until(monotonic_ns() + ns), &|ns| {
                timer.arm(monotonic_ns() + ns, 0).unwrap();
                assert_eq!(timer.read().unwrap(), 1);
            }];
        for (number, wait) in ways.iter().enumerate() {
            let begin = monotonic_ns();
            wait(2_000_000);
            assert!(monotonic_ns() - begin >= 2_000_000, "way {number}");
        }
    }

    #[test]
    fn a_periodic_timer_counts_what_it_was_not_read_for() {
        let timer = TimerFd::new().unwrap();
        let begin = monotonic_ns();
        timer.arm(begin + 1_000_000, 1_000_000).unwrap();
        sleep_until(begin + 10_500_000);
        let count = timer.read().unwrap();
        let most = (monotonic_ns() - begin) / 1_000_000;
        assert!((10..=most).contains(&count), "{count} of {most}");
    }
}
