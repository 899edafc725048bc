//! Ways to wait, each as a program would do it that knows no other, and the measurement of one of
//! them.

use super::{OpenChore, SLACK_DEFAULT_NS, SLACK_LEAST_NS, broken};
use crate::error::RunError;
use crate::kernel::host::HostTime;
use crate::reactor::{COVERED, Waiter};
use crate::sys::clock::{self, MonotonicClock, TimerFd, UringTimer, monotonic_ns, thread_cpu_ns};
use crate::sys::epoll::{Epoll, EpollEvent};
use knee_load::experiment::throttle::{WaitMethod, WaitSpec, WaitStats};
use knee_load::measure::Histogram;
use knee_load::spec::{Margins, WaitPolicy};
use knee_load::time::{Clock, Nanos};
use std::sync::atomic::{AtomicBool, Ordering};
use std::{io, thread};

/// Waits that are not counted at first: the first one of a thread touches new memory.
const WARM_UP: u32 = 3;

/// The same for `hybrid`, which learns in that time how late sleeps of this length end.
const WARM_UP_HYBRID: u32 = 300;

/// Uncounted waits take at most this share of the row's time, the first of them excepted.
const WARM_UP_SHARE: u64 = 5;

/// Interval of reading the host's stolen time. It counts in ticks of 10 ms, and a reading takes
/// some 50 µs, more with more processors.
const STEAL_BLOCK: Nanos = Nanos::from_millis(50);

/// Measures the row on the calling thread.
pub(super) fn wait(spec: &WaitSpec, stop: &AtomicBool) -> Result<WaitStats, RunError> {
    let clock = MonotonicClock::start();
    let mut way = OpenWait::open(spec.method, &spec.margins)?;
    let mut work = OpenChore::open(&spec.chore)?;
    let is_stopped = || stop.load(Ordering::Relaxed);
    // Waits once. Returns begin and end.
    let wait_once = |way: &mut OpenWait| {
        let begin = clock.now();
        let waited = way.wait(&clock, begin, spec.delay, stop);
        let end = clock.now();
        waited.map(|()| (begin, end)).map_err(|e| broken(spec.method.name(), &e))
    };
    let warm_up = if spec.method == WaitMethod::Hybrid { WARM_UP_HYBRID } else { WARM_UP };
    let warm_until = clock.now() + Nanos(spec.duration.0 / WARM_UP_SHARE);
    for _ in 0..warm_up {
        wait_once(&mut way)?;
        work.perform(&clock)?;
        if is_stopped() || clock.now() + spec.delay > warm_until {
            break;
        }
    }
    let mut waits = WaitStats {
        overshoot: Histogram::ready(),
        chore: Histogram::ready(),
        ..WaitStats::default()
    };
    let mut steal = StealWatch::new(clock.now());
    // Processor time is read within the time that it is a share of.
    let started = clock.now();
    let cpu_before = thread_cpu_ns();
    while waits.samples < WaitSpec::SAMPLES_MIN || waits.elapsed < spec.duration {
        waits.interrupted = is_stopped();
        if waits.interrupted {
            break;
        }
        let (begin, end) = wait_once(&mut way)?;
        if is_stopped() && end < begin + spec.delay {
            // The stop ended it, not its time.
            continue;
        }
        waits.record(spec.delay, end - begin);
        waits.elapsed = end - started;
        if work.is_any() {
            work.perform(&clock)?;
            waits.chore.record(clock.now() - end);
        }
        steal.read_steal(end, &mut waits);
    }
    steal.read_steal(Nanos::MAX, &mut waits);
    waits.cpu = Nanos(thread_cpu_ns() - cpu_before) - steal.cpu;
    waits.elapsed = clock.now() - started;
    waits.margin = way.margin(spec.delay);
    Ok(waits)
}

/// Counts samples that were made while the host gave processors to others.
struct StealWatch {
    last: HostTime,
    read_at: Nanos,
    /// Samples up to the last reading.
    samples: u64,
    /// Processor time of this thread for the readings.
    cpu: Nanos,
}

impl StealWatch {
    fn new(now: Nanos) -> StealWatch {
        StealWatch { last: HostTime::now(), read_at: now, samples: 0, cpu: Nanos::ZERO }
    }

    /// Ends a block of samples at `now` where it is long enough: all of them count as stolen if
    /// any time was meanwhile.
    #[inline]
    fn read_steal(&mut self, now: Nanos, waits: &mut WaitStats) {
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

/// A way to wait, with what it needs.
pub(super) enum OpenWait {
    SleepFor,
    SleepUntil,
    Timerfd(TimerFd),
    /// Kernels before 5.11 know only whole milliseconds and are asked for the next lower number.
    /// The waits then end early, and are counted as such.
    Epoll(Epoll),
    Uring(Box<UringTimer>),
    Hybrid(Box<Hybrid>),
    Spin,
    Yield,
}

/// The timer slack that the method is measured with.
pub(super) fn slack_ns(method: WaitMethod) -> u32 {
    match method {
        WaitMethod::Sleep | WaitMethod::SleepAbsolute => SLACK_DEFAULT_NS,
        _ => SLACK_LEAST_NS,
    }
}

impl OpenWait {
    /// Opens what the method needs.
    ///
    /// # Errors
    /// This machine does not permit it.
    pub(super) fn open(method: WaitMethod, margins: &Margins) -> Result<OpenWait, RunError> {
        let way = match method {
            WaitMethod::Sleep | WaitMethod::SleepMinSlack => Ok(OpenWait::SleepFor),
            WaitMethod::SleepAbsolute | WaitMethod::SleepAbsoluteMinSlack => {
                Ok(OpenWait::SleepUntil)
            }
            WaitMethod::Timerfd => TimerFd::new().map(OpenWait::Timerfd),
            WaitMethod::Epoll => Epoll::new().map(OpenWait::Epoll),
            WaitMethod::IoUring => return open_uring(),
            WaitMethod::Hybrid => Ok(OpenWait::Hybrid(Box::new(Hybrid::new(COVERED, margins)))),
            WaitMethod::Spin => Ok(OpenWait::Spin),
            WaitMethod::Yield => Ok(OpenWait::Yield),
        };
        way.map_err(|e| broken(method.name(), &e))
    }

    /// Waits for `delay` after `begin`, which is now.
    ///
    /// # Errors
    /// None in correct use.
    #[inline]
    pub(super) fn wait(
        &mut self,
        clock: &MonotonicClock,
        begin: Nanos,
        delay: Nanos,
        stop: &AtomicBool,
    ) -> io::Result<()> {
        let until = begin + delay;
        match self {
            OpenWait::SleepFor => clock::sleep_for(delay.0),
            OpenWait::SleepUntil => clock::sleep_until(clock.origin + until.0),
            OpenWait::Timerfd(timer) => {
                timer.arm(clock.origin + until.0, 0)?;
                timer.read()?;
            }
            OpenWait::Epoll(epoll) => {
                epoll.wait(&mut [EpollEvent::EMPTY], Some(delay))?;
            }
            OpenWait::Uring(timer) => timer.wait_until(clock.origin + until.0)?,
            OpenWait::Hybrid(hybrid) => hybrid.wait_until(clock, until, stop),
            OpenWait::Spin => spin_until(clock, until),
            OpenWait::Yield => {
                while clock.now() < until {
                    thread::yield_now();
                }
            }
        }
        Ok(())
    }

    /// The margin for such a delay, where there is one.
    pub(super) fn margin(&self, delay: Nanos) -> Option<Nanos> {
        match self {
            OpenWait::Hybrid(hybrid) => Some(hybrid.margins().at(delay)),
            _ => None,
        }
    }
}

/// A ring that has waited once: a policy may permit the ring and yet not its operations.
fn open_uring() -> Result<OpenWait, RunError> {
    let tried = UringTimer::new().and_then(|mut timer| {
        timer.wait_until(monotonic_ns())?;
        Ok(timer)
    });
    match tried {
        Ok(timer) => Ok(OpenWait::Uring(Box::new(timer))),
        Err(error) => Err(RunError::NotPermitted(format!(
            "io_uring: this machine does not permit it ({error}); containers often block it, \
             kernel.io_uring_disabled may forbid it, and Linux 5.5 is needed"
        ))),
    }
}

/// Sleeps until a margin before a time, then polls the clock until it has come.
#[derive(Debug)]
pub(super) struct Hybrid(Waiter);

impl Hybrid {
    /// A wait whose margins begin with `margins` and cover the share `covered` of late wake-ups.
    pub(super) fn new(covered: f64, margins: &Margins) -> Hybrid {
        Hybrid(Waiter::new(WaitPolicy::Hybrid, covered, margins))
    }

    /// Waits until `until`. Checks `stop` at least every 50 ms and returns when it is set.
    pub(super) fn wait_until(&mut self, clock: &MonotonicClock, until: Nanos, stop: &AtomicBool) {
        loop {
            let now = clock.now();
            let asked = self.0.sleep_for(now, until);
            if asked == Nanos::ZERO {
                return spin_until(clock, until);
            }
            clock::sleep_until(clock.origin + (now + asked).0);
            self.0.woke(clock.now() - (now + asked));
            if stop.load(Ordering::Relaxed) {
                return;
            }
        }
    }

    /// The margins as learnt so far.
    pub(super) fn margins(&self) -> Margins {
        self.0.margins()
    }
}

/// Polls the clock until `until`.
pub(super) fn spin_until(clock: &MonotonicClock, until: Nanos) {
    while clock.now() < until {}
}
