//! Times in which this process did not run: it was stopped, or its machine was.
//!
//! A worker of a closed loop that sleeps until a response comes cannot tell. A thread that only
//! looks at the clock can.

use crate::bus::now_ns;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time between two looks at the clock.
const TICK: Duration = Duration::from_millis(20);
/// A thread that is late by less was only scheduled late.
const STOP_MIN_NS: u64 = 100_000_000;

/// A time, from and to, by the monotonic clock in nanoseconds.
pub(super) type Span = [u64; 2];

/// A thread that notes stops until it is asked for them.
pub(super) struct StopWatch {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<Span>>>,
}

impl StopWatch {
    /// Starts it. Without a thread no stop is seen.
    pub(super) fn start() -> StopWatch {
        let is_over = Arc::new(AtomicBool::new(false));
        let told = is_over.clone();
        let thread = thread::Builder::new().name("stops".to_owned());
        let watch = move || {
            let mut stops = Vec::new();
            let mut due = now_ns() + TICK.as_nanos() as u64;
            while !told.load(Ordering::Relaxed) {
                thread::sleep(TICK);
                let now = now_ns();
                if now.saturating_sub(due) >= STOP_MIN_NS {
                    stops.push([due, now]);
                }
                due = now + TICK.as_nanos() as u64;
            }
            stops
        };
        StopWatch {
            is_over,
            thread: thread.spawn(watch).ok(),
        }
    }

    /// All stops so far.
    pub(super) fn end(self) -> Vec<Span> {
        self.is_over.store(true, Ordering::Relaxed);
        let stops = self.thread.map(JoinHandle::join);
        stops.and_then(Result::ok).unwrap_or_default()
    }
}

/// The longest part of a stop that lies within a window.
pub(super) fn longest_within(stops: &[Span], window: Span) -> u64 {
    let within = stops
        .iter()
        .map(|[from, to]| to.min(&window[1]).saturating_sub(*from.max(&window[0])));
    within.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_part_of_a_stop_within_the_window_counts() {
        let stops = [[0, 300], [1_000, 1_200], [5_000, 9_000]];
        assert_eq!(longest_within(&stops, [100, 4_000]), 200);
        assert_eq!(longest_within(&stops, [100, 6_000]), 1_000);
        assert_eq!(longest_within(&stops, [2_000, 4_000]), 0);
        assert_eq!(longest_within(&[], [0, 1]), 0);
    }
}
