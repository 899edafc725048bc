//! The ways to wait, each as a program would do it that knows no other.

use super::hybrid::{Hybrid, spin_until};
use super::{SLACK_DEFAULT_NS, SLACK_LEAST_NS, broken};
use crate::error::RunError;
use crate::reactor::COVERED;
use crate::sys::clock::{MonotonicClock, monotonic_ns};
use crate::sys::epoll::{Epoll, Event};
use crate::sys::timer::UringTimer;
use crate::sys::timer::{self, TimerFd};
use knee_core::experiment::throttle::wait::WaitMethod;
use knee_core::spec::Margins;
use knee_core::time::{Clock, Nanos};
use std::io;
use std::sync::atomic::AtomicBool;
use std::thread;

/// A way to wait, with what it needs.
pub(super) enum Way {
    SleepFor,
    SleepUntil,
    Timerfd(TimerFd),
    /// Kernels before 5.11 know only whole milliseconds here and are asked for the next lower
    /// number: the waits then end early, and are counted as such.
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

impl Way {
    /// Makes what the method needs.
    ///
    /// # Errors
    /// This machine does not permit it.
    pub(super) fn open(method: WaitMethod, margins: &Margins) -> Result<Way, RunError> {
        let way = match method {
            WaitMethod::Sleep | WaitMethod::SleepMinSlack => Ok(Way::SleepFor),
            WaitMethod::SleepAbsolute | WaitMethod::SleepAbsoluteMinSlack => Ok(Way::SleepUntil),
            WaitMethod::Timerfd => TimerFd::new().map(Way::Timerfd),
            WaitMethod::Epoll => Epoll::new().map(Way::Epoll),
            WaitMethod::IoUring => return open_uring(),
            WaitMethod::Hybrid => Ok(Way::Hybrid(Box::new(Hybrid::new(COVERED, margins)))),
            WaitMethod::Spin => Ok(Way::Spin),
            WaitMethod::Yield => Ok(Way::Yield),
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
            Way::SleepFor => timer::sleep_for(delay.0),
            Way::SleepUntil => timer::sleep_until(clock.origin + until.0),
            Way::Timerfd(timer) => {
                timer.arm(clock.origin + until.0, 0)?;
                timer.read()?;
            }
            Way::Epoll(epoll) => {
                epoll.wait(&mut [Event::EMPTY], Some(delay))?;
            }
            Way::Uring(timer) => timer.wait_until(clock.origin + until.0)?,
            Way::Hybrid(hybrid) => hybrid.wait_until(clock, until, stop),
            Way::Spin => spin_until(clock, until),
            Way::Yield => {
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
            Way::Hybrid(hybrid) => Some(hybrid.margins().at(delay)),
            _ => None,
        }
    }
}

/// A ring that has waited once: a policy may permit the ring and yet not its operations.
fn open_uring() -> Result<Way, RunError> {
    let tried = UringTimer::new().and_then(|mut timer| {
        timer.wait_until(monotonic_ns())?;
        Ok(timer)
    });
    match tried {
        Ok(timer) => Ok(Way::Uring(Box::new(timer))),
        Err(error) => Err(RunError::NotPermitted(format!(
            "io_uring: this machine does not permit it ({error}); containers often block it, \
             kernel.io_uring_disabled may forbid it, and Linux 5.5 is needed"
        ))),
    }
}
