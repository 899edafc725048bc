//! The only place that reads a clock.

use knee_load::polling::ThreadTime;
use knee_load::time::{Clock, Nanos};
use serde::{Deserialize, Serialize};
use std::mem::MaybeUninit;

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
    /// Not used: it was ready to run, but others had its processor. 0 where the kernel does not
    /// tell.
    pub kept_waiting: Nanos,
    /// Times that it was given a processor. 0 where the kernel does not tell.
    pub scheduled: u64,
    /// Times that it slept.
    pub sleeps: u64,
}

impl ThreadUse {
    /// What the calling thread has used so far: getrusage(RUSAGE_THREAD). The sum is exact, how it
    /// splits into user and system is the kernel's estimate from its ticks.
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
        let (kept_waiting, scheduled) = schedule().unwrap_or_default();
        ThreadUse {
            user: nanos(usage.ru_utime),
            system: nanos(usage.ru_stime),
            kept_waiting,
            scheduled,
            // Voluntary context switches.
            sleeps: u64::try_from(usage.ru_nvcsw).unwrap_or(0),
        }
    }

    /// The same for a waiting policy, of a thread that polled in vain for `polled`.
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
