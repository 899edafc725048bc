//! The only place that reads a clock, and sleeps and timers on CLOCK_MONOTONIC, to the nanosecond
//! as they were asked for.

use io_uring::types::{TimeoutFlags, Timespec as UringTime};
use io_uring::{IoUring, opcode};
use knee_load::polling::ThreadTime;
use knee_load::time::{Clock, Nanos};
use rustix::io::retry_on_intr;
use rustix::thread::{ClockId, clock_nanosleep_absolute, clock_nanosleep_relative};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use serde::{Deserialize, Serialize};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::{fmt, io};

/// CLOCK_MONOTONIC, in nanoseconds since an unspecified time (on Linux: boot).
#[inline]
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// CLOCK_REALTIME, in nanoseconds since 1970: for the kernel's timestamps alone, as it may jump.
#[inline]
pub fn realtime_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// How far CLOCK_REALTIME is ahead of CLOCK_MONOTONIC, in nanoseconds: the best of three attempts,
/// as the thread may be kept waiting between the two readings.
pub fn realtime_ahead_ns() -> u64 {
    let attempt = |_| {
        let (before, real, after) = (monotonic_ns(), realtime_ns(), monotonic_ns());
        let apart = after.saturating_sub(before);
        (apart, real.saturating_sub(before + apart / 2))
    };
    (0..3).map(attempt).min().map_or(0, |(_, ahead)| ahead)
}

/// Whether the kernel calls CLOCK_REALTIME synchronised, as a service such as chrony tells it
/// (adjtimex(2)).
pub fn is_synchronised() -> bool {
    // SAFETY: all zeroes are a valid timex: nothing is set, all is read.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the struct is ours, and may be written to.
    let state = unsafe { libc::adjtimex(&raw mut timex) };
    state >= 0 && state != libc::TIME_ERROR
}

/// Processor time that this thread has used, user and kernel together, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The clock of one run: time since its origin. Workers of one run share one origin.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock {
    /// What [`monotonic_ns`] said when the run began.
    pub origin: u64,
}

impl MonotonicClock {
    /// A run that begins now.
    pub fn start() -> MonotonicClock {
        MonotonicClock { origin: monotonic_ns() }
    }

    /// Returns at the origin, or at once where it has passed. Before it all times are zero, so that
    /// whatever began and ended then would seem to have taken no time.
    pub fn wait_for_origin(&self) {
        while monotonic_ns() < self.origin {
            std::thread::yield_now();
        }
    }
}

impl Clock for MonotonicClock {
    /// Zero for times before the origin.
    #[inline]
    fn now(&self) -> Nanos {
        Nanos(monotonic_ns().saturating_sub(self.origin))
    }
}

/// Processor time of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadUse {
    /// In user mode.
    pub user: Nanos,
    /// In the kernel.
    pub system: Nanos,
    /// Time in which it was ready to run, but others had its processor. 0 if the kernel does not
    /// report it.
    pub kept_waiting: Nanos,
    /// Times that it was given a processor. 0 if the kernel does not report it.
    pub scheduled: u64,
    /// Times that it slept.
    pub sleeps: u64,
    /// Times that it was preempted.
    pub preempted: u64,
}

impl ThreadUse {
    /// Processor time of the calling thread so far: getrusage(RUSAGE_THREAD). The sum is exact; its
    /// split into user and system is the kernel's estimate from its ticks.
    pub fn now() -> ThreadUse {
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the pointer is to a whole rusage, which the call fills; all zeroes are valid too.
        let usage = unsafe {
            libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
            usage.assume_init()
        };
        let nanos = |t: libc::timeval| {
            Nanos::from_secs(t.tv_sec as u64) + Nanos::from_micros(t.tv_usec as u64)
        };
        let number = |count: libc::c_long| u64::try_from(count).unwrap_or(0);
        let (kept_waiting, scheduled) = schedule().unwrap_or_default();
        ThreadUse {
            user: nanos(usage.ru_utime),
            system: nanos(usage.ru_stime),
            kept_waiting,
            scheduled,
            // Voluntary context switches, and involuntary ones.
            sleeps: number(usage.ru_nvcsw),
            preempted: number(usage.ru_nivcsw),
        }
    }

    /// Converts for a waiting policy. `polled` is the time that the thread polled in vain.
    pub fn spent(self, polled: Nanos) -> ThreadTime {
        ThreadTime {
            used: self.user + self.system,
            polled,
            kept_waiting: self.kept_waiting,
            scheduled: self.scheduled,
        }
    }

    /// What was used since `earlier`.
    pub fn since(self, earlier: ThreadUse) -> ThreadUse {
        ThreadUse {
            user: self.user - earlier.user,
            system: self.system - earlier.system,
            kept_waiting: self.kept_waiting - earlier.kept_waiting,
            scheduled: self.scheduled.saturating_sub(earlier.scheduled),
            sleeps: self.sleeps.saturating_sub(earlier.sleeps),
            preempted: self.preempted.saturating_sub(earlier.preempted),
        }
    }
}

/// The second and third number of schedstat: nanoseconds in which the thread waited in the run
/// queue, and how often it was given a processor. Source: Documentation/scheduler/sched-stats.rst
/// of the kernel.
fn schedule() -> Option<(Nanos, u64)> {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let mut numbers = stat.split_whitespace().skip(1).map(str::parse);
    Some((Nanos(numbers.next()?.ok()?), numbers.next()?.ok()?))
}

#[inline]
fn read(clock: libc::clockid_t) -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of our own; the clocks passed exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Sleeps for a time: clock_nanosleep(2). A signal ends it early.
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
    /// Creates a timer that is not armed.
    ///
    /// # Errors
    /// Out of descriptors or memory.
    pub fn new() -> io::Result<TimerFd> {
        Ok(TimerFd(timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?))
    }

    /// Lets it expire at `first_ns` (a time above 0) and then every `every_ns`; 0: only once.
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
    fn clocks_only_go_forward() {
        let clock = MonotonicClock::start();
        let (before, cpu_before) = (clock.now(), thread_cpu_ns());
        let used = ThreadUse::now();
        while thread_cpu_ns() < cpu_before + 2_000_000 {}
        assert!(clock.now() - before >= Nanos::from_millis(2));
        let used = ThreadUse::now().since(used);
        assert!(used.user + used.system > Nanos::ZERO);
    }

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
