//! Sleeps and timers on CLOCK_MONOTONIC, to the nanosecond as they were asked for.
//!
//! Times are those of [`super::clock::monotonic_ns`].

use io_uring::types::{TimeoutFlags, Timespec as UringTime};
use io_uring::{IoUring, opcode};
use rustix::io::retry_on_intr;
use rustix::thread::{ClockId, clock_nanosleep_absolute, clock_nanosleep_relative};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use rustix::time::{timerfd_create, timerfd_settime};
use std::os::fd::OwnedFd;
use std::{fmt, io};

/// Sleeps for a time: clock_nanosleep(2). A signal ends it early, as it would end a user's.
pub fn sleep_for(length_ns: u64) {
    let _ = clock_nanosleep_relative(ClockId::Monotonic, &timespec(length_ns));
}

/// Sleeps until a time of CLOCK_MONOTONIC: clock_nanosleep(2) with TIMER_ABSTIME. A signal ends it
/// early.
pub fn sleep_until(moment_ns: u64) {
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &timespec(moment_ns));
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
        Ok(TimerFd(timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?))
    }

    /// It expires at `first_ns` (a time, above 0) and from then on every `every_ns`; 0: never
    /// again.
    ///
    /// # Errors
    /// None in correct use.
    pub fn arm(&self, first_ns: u64, every_ns: u64) -> io::Result<()> {
        let times = Itimerspec { it_interval: timespec(every_ns), it_value: timespec(first_ns) };
        timerfd_settime(&self.0, TimerfdTimerFlags::ABSTIME, &times)?;
        Ok(())
    }

    /// Waits until it has expired and returns how often it did since it was last read or armed.
    ///
    /// # Errors
    /// None in correct use.
    pub fn read(&self) -> io::Result<u64> {
        let mut count = [0; 8];
        retry_on_intr(|| rustix::io::read(&self.0, &mut count))?;
        Ok(u64::from_ne_bytes(count))
    }
}

/// A length or a time as the kernel takes it.
pub(super) fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ }
}

/// A ring for one timeout at a time.
pub struct UringTimer {
    // Dropped first: after it the kernel reads no time.
    ring: IoUring,
    time: Box<UringTime>,
}

impl UringTimer {
    /// A new ring.
    ///
    /// # Errors
    /// Where this kernel or its policy (`kernel.io_uring_disabled`, seccomp in containers) does
    /// not permit io_uring.
    pub fn new() -> io::Result<UringTimer> {
        Ok(UringTimer { ring: IoUring::new(2)?, time: Box::new(UringTime::new()) })
    }

    /// Waits until a time of CLOCK_MONOTONIC.
    ///
    /// # Errors
    /// The kernel knows no absolute timeouts (before 5.5).
    pub fn wait_until(&mut self, moment_ns: u64) -> io::Result<()> {
        let seconds = UringTime::new().sec(moment_ns / 1_000_000_000);
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
