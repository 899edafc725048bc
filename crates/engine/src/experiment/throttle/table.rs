//! One row of the table of waits: one method, one delay, over and over.

use super::broken;
use super::chore::Work;
use super::ways::Way;
use crate::error::RunError;
use crate::kernel::host::HostTime;
use crate::sys::clock::{MonotonicClock, thread_cpu_ns};
use knee_core::experiment::throttle::wait::WaitStats;
use knee_core::experiment::throttle::wait::{WaitMethod, WaitSpec};
use knee_core::time::{Clock, Nanos};
use std::sync::atomic::{AtomicBool, Ordering};

/// Waits that are not counted at first: the first one of a thread touches new memory.
const WARM_UP: u32 = 3;

/// The same for `hybrid`, which learns meanwhile how late sleeps of this length end.
const WARM_UP_HYBRID: u32 = 300;

/// Waits that are not counted take at most this share of the row's time, beyond the first of them.
const WARM_UP_SHARE: u64 = 5;

/// The host's stolen time is read so often: it is told in ticks of 10 ms, and reading it takes some
/// 50 µs, more with more processors.
const STEAL_BLOCK: Nanos = Nanos::from_millis(50);

/// Measures the row on the calling thread.
pub(super) fn wait(spec: &WaitSpec, stop: &AtomicBool) -> Result<WaitStats, RunError> {
    let mut row = Row {
        spec,
        stop,
        clock: MonotonicClock::start(),
        way: Way::open(spec.method, &spec.margins)?,
        work: Work::open(&spec.chore)?,
    };
    row.warm_up()?;
    row.measure()
}

struct Row<'a> {
    spec: &'a WaitSpec,
    stop: &'a AtomicBool,
    clock: MonotonicClock,
    way: Way,
    work: Work,
}

impl Row<'_> {
    /// Waits once; begin and end.
    #[inline]
    fn wait(&mut self) -> Result<(Nanos, Nanos), RunError> {
        let (clock, spec) = (self.clock, self.spec);
        let begin = clock.now();
        let waited = self.way.wait(&clock, begin, spec.delay, self.stop);
        let end = clock.now();
        waited.map_err(|e| broken(spec.method.name(), &e))?;
        Ok((begin, end))
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn warm_up(&mut self) -> Result<(), RunError> {
        let count = match self.spec.method {
            WaitMethod::Hybrid => WARM_UP_HYBRID,
            _ => WARM_UP,
        };
        let end = self.clock.now() + Nanos(self.spec.duration.0 / WARM_UP_SHARE);
        for _ in 0..count {
            self.wait()?;
            self.work.perform(&self.clock)?;
            if self.is_stopped() || self.clock.now() + self.spec.delay > end {
                break;
            }
        }
        Ok(())
    }

    fn measure(&mut self) -> Result<WaitStats, RunError> {
        let mut waits = WaitStats::default();
        let mut steal = StealWatch::new(self.clock.now());
        // Processor time is read within the time that it is a share of.
        let started = self.clock.now();
        let cpu_before = thread_cpu_ns();
        loop {
            let is_enough = waits.samples >= WaitSpec::SAMPLES_MIN;
            if is_enough && waits.elapsed >= self.spec.duration {
                break;
            }
            waits.interrupted = self.is_stopped();
            if waits.interrupted {
                break;
            }
            let (begin, end) = self.wait()?;
            if self.is_stopped() && end < begin + self.spec.delay {
                // The stop ended it, not its time.
                continue;
            }
            waits.record(self.spec.delay, end - begin);
            waits.elapsed = end - started;
            if self.work.is_any() {
                self.work.perform(&self.clock)?;
                waits.chore.record(self.clock.now() - end);
            }
            steal.look(end, &mut waits);
        }
        steal.look(Nanos::MAX, &mut waits);
        waits.cpu = Nanos(thread_cpu_ns() - cpu_before) - steal.cpu;
        waits.elapsed = self.clock.now() - started;
        waits.margin = self.way.margin(self.spec.delay);
        Ok(waits)
    }
}

/// Tells which samples were made while the host gave processors to others.
struct StealWatch {
    last: HostTime,
    read_at: Nanos,
    /// Samples up to the last reading.
    samples: u64,
    /// What the readings took of this thread's processor time.
    cpu: Nanos,
}

impl StealWatch {
    fn new(now: Nanos) -> StealWatch {
        StealWatch {
            last: HostTime::now(),
            read_at: now,
            samples: 0,
            cpu: Nanos::ZERO,
        }
    }

    /// Ends a block of samples at `now` where it is long enough: all of them count as stolen if
    /// any time was meanwhile.
    #[inline]
    fn look(&mut self, now: Nanos, waits: &mut WaitStats) {
        if now - self.read_at < STEAL_BLOCK {
            return;
        }
        let cpu_before = thread_cpu_ns();
        let time = HostTime::now();
        if time.has_steal_since(self.last) {
            waits.stolen += waits.samples - self.samples;
        }
        self.last = time;
        self.read_at = now;
        self.samples = waits.samples;
        self.cpu += Nanos(thread_cpu_ns() - cpu_before);
    }
}
