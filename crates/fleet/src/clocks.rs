//! Offset of two clocks, from exchanges over a network.
//!
//! Each answer has four times. The asker notes when it asked and when the answer came back, the
//! other when the question came and when the answer went. The quickest of many is the most exact.
//! Whatever the network did to it, the other clock is known to half of its round trip (RFC 5905
//! §8).
//!
//! The host's chrony is also asked for its own bound.

use crate::bus::now_ns;
use crate::protocol::ClockReading;
use knee_load::measure::AgentClock;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Readings of a clock for a trial.
pub(crate) const READINGS: usize = 24;

/// Estimate of an agent's clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClockEstimate {
    /// Its monotonic clock minus this host's.
    pub ahead_ns: i64,
    /// Half of the quickest round trip, without the time that the agent took.
    pub uncertainty_ns: u64,
    /// The reading of that round trip.
    pub reading: ClockReading,
}

/// The best of several exchanges: times of the request and the answer on this host, and the answer.
pub(crate) fn best_estimate(exchanges: &[(u64, u64, ClockReading)]) -> Option<ClockEstimate> {
    let estimate = |&(sent_ns, received_ns, reading): &(u64, u64, ClockReading)| {
        let answering_ns = reading.went_ns.saturating_sub(reading.came_ns);
        let round_trip = received_ns.saturating_sub(sent_ns).saturating_sub(answering_ns);
        let difference = |theirs: u64, ours: u64| i128::from(theirs) - i128::from(ours);
        let ahead =
            (difference(reading.came_ns, sent_ns) + difference(reading.went_ns, received_ns)) / 2;
        ClockEstimate { ahead_ns: ahead as i64, uncertainty_ns: round_trip / 2, reading }
    };
    exchanges.iter().map(estimate).min_by_key(|r| r.uncertainty_ns)
}

impl ClockEstimate {
    /// The agent's clocks for the report. `ahead_ns` is how far this host's time of day is ahead of
    /// its monotonic clock, and `own_error_ns` the error that chrony reports on this host.
    pub(crate) fn for_report(&self, ahead_ns: i64, own_error_ns: Option<u64>) -> AgentClock {
        let offset_ns = self.ahead_ns + self.reading.realtime_ahead_ns - ahead_ns;
        let errors = self.reading.chrony_error_ns.zip(own_error_ns);
        let permitted = errors.map(|(theirs, ours)| theirs + ours + self.uncertainty_ns);
        AgentClock {
            offset_ns,
            uncertainty_ns: self.uncertainty_ns,
            is_synchronised: self.reading.is_synchronised,
            chrony_error_ns: self.reading.chrony_error_ns,
            agrees_with_chrony: permitted.map(|most| offset_ns.unsigned_abs() <= most),
        }
    }

    /// Converts a time of this host's monotonic clock to the agent's.
    pub(crate) fn agent_ns(&self, own_ns: u64) -> u64 {
        own_ns.saturating_add_signed(self.ahead_ns)
    }
}

/// The largest error of the time of day, in nanoseconds. `None` if chrony does not run or is not
/// synchronised. It asks a program and waits for its answer.
pub(crate) fn chrony_error_ns_max() -> Option<u64> {
    let mut ask = Command::new("chronyc");
    ask.args(["-n", "-c", "tracking"]).stdin(Stdio::null());
    let answer = ask.stderr(Stdio::null()).output().ok()?;
    parse_tracking(&String::from_utf8_lossy(&answer.stdout))
}

/// Parses chrony's bound: remaining correction, root dispersion and half of the root delay
/// (chronyc(1), "Root dispersion").
fn parse_tracking(line: &str) -> Option<u64> {
    let fields: Vec<&str> = line.trim().split(',').collect();
    let [_, _, _, _, left, _, _, _, _, _, delay, dispersion, _, leap] = fields[..] else {
        return None;
    };
    let seconds = |text: &str| text.parse::<f64>().ok().filter(|s| s.is_finite());
    let bound = seconds(left)?.abs() + seconds(dispersion)?.abs() + seconds(delay)?.abs() / 2.0;
    (leap != "Not synchronised").then_some((bound * 1e9) as u64)
}

// Times in which this process did not run, because it or its machine was stopped. A worker of a
// closed loop that sleeps until a response comes does not notice; a thread that reads the
// clock does.

/// Interval of reading the clock.
const TICK: Duration = Duration::from_millis(20);
/// Least stop, in nanoseconds. A shorter delay is one of scheduling.
const STOP_MIN_NS: u64 = 100_000_000;

/// A time, from and to, by the monotonic clock in nanoseconds.
pub(crate) type TimeSpan = [u64; 2];

/// A thread that notes stops of this process.
pub(crate) struct PauseWatch {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<TimeSpan>>>,
}

impl PauseWatch {
    /// Starts the thread. If it cannot be started, no stops are noted.
    pub(crate) fn start() -> PauseWatch {
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = is_over.clone();
        let thread = thread::Builder::new().name("stops".to_owned());
        let watch = move || {
            let mut stops = Vec::new();
            let mut due = now_ns() + TICK.as_nanos() as u64;
            while !ends.load(Ordering::Relaxed) {
                thread::sleep(TICK);
                let now = now_ns();
                if now.saturating_sub(due) >= STOP_MIN_NS {
                    stops.push([due, now]);
                }
                due = now + TICK.as_nanos() as u64;
            }
            stops
        };
        PauseWatch { is_over, thread: thread.spawn(watch).ok() }
    }

    /// Ends it and returns all stops.
    pub(crate) fn end(self) -> Vec<TimeSpan> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.map(JoinHandle::join).and_then(Result::ok).unwrap_or_default()
    }
}

/// The longest part of a stop that lies within a window.
pub(crate) fn longest_within(stops: &[TimeSpan], window: TimeSpan) -> u64 {
    let within =
        stops.iter().map(|[from, to]| to.min(&window[1]).saturating_sub(*from.max(&window[0])));
    within.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_time_of_day_that_chrony_vouches_for_is_held_against_it() {
        let read = |ahead_ns, chrony_error_ns| ClockEstimate {
            ahead_ns,
            uncertainty_ns: 50_000,
            reading: ClockReading {
                realtime_ahead_ns: 1_000_000,
                is_synchronised: true,
                chrony_error_ns,
                ..ClockReading::default()
            },
        };
        let agrees = |read: ClockEstimate, own| read.for_report(1_000_000, own).agrees_with_chrony;
        assert_eq!(agrees(read(200_000, Some(100_000)), Some(60_000)), Some(true));
        assert_eq!(agrees(read(-220_000, Some(100_000)), Some(60_000)), Some(false));
        assert_eq!(agrees(read(5_000_000_000, Some(100_000)), None), None);
        assert_eq!(agrees(read(5_000_000_000, None), Some(1)), None);
        assert_eq!(read(-7, None).for_report(1_000_000, None).offset_ns, -7);
    }

    proptest! {
        #[test]
        fn the_true_offset_is_within_the_uncertainty(
            ahead in -5_000_000_000_i64..5_000_000_000,
            ways in proptest::collection::vec((1_u64..900_000, 1_u64..900_000, 0_u64..9_999), 1..9),
        ) {
            let mut now = 10_000_000_000_u64;
            let mut exchanges = Vec::new();
            for (to, fro, work) in ways {
                let came_ns = (now + to).saturating_add_signed(ahead);
                let went_ns = came_ns + work;
                let reading = ClockReading { came_ns, went_ns, ..ClockReading::default() };
                exchanges.push((now, now + to + work + fro, reading));
                now += 1_000_000;
            }
            let read = best_estimate(&exchanges).unwrap();
            prop_assert!(read.ahead_ns.abs_diff(ahead) <= read.uncertainty_ns + 1);
            let agent_ns = read.agent_ns(now);
            let truly = now.saturating_add_signed(ahead);
            prop_assert!(agent_ns.abs_diff(truly) <= read.uncertainty_ns + 1);
        }
    }

    #[test]
    fn the_bound_is_what_chrony_calls_it() {
        let line = "A9FEA97B,169.254.169.123,4,1795408165.495735528,-0.000002500,0.000000813,\
            0.000008412,-9.512,0.001,0.021,0.000400000,0.000100000,16.2,Normal\n";
        assert_eq!(parse_tracking(line), Some(2_500 + 100_000 + 200_000));
        let alone = "7F7F0101,,10,1795408165.495735528,0.000000000,0.000000000,0.000000000,0.000,\
            0.000,0.000,0.000000000,0.000000000,0.0,Normal";
        assert_eq!(parse_tracking(alone), Some(0));
        assert_eq!(parse_tracking(&line.replace("Normal", "Not synchronised")), None);
        for other in ["", "506 Cannot talk to daemon\n", &line[..60]] {
            assert_eq!(parse_tracking(other), None, "{other}");
        }
    }

    #[test]
    fn only_the_part_of_a_stop_within_the_window_counts() {
        let stops = [[0, 300], [1_000, 1_200], [5_000, 9_000]];
        assert_eq!(longest_within(&stops, [100, 4_000]), 200);
        assert_eq!(longest_within(&stops, [100, 6_000]), 1_000);
        assert_eq!(longest_within(&stops, [2_000, 4_000]), 0);
        assert_eq!(longest_within(&[], [0, 1]), 0);
    }
}
