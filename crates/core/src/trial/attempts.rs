//! What a trial says of requests and their attempts, where failed attempts are retried.

use super::times::times_report;
use crate::trial::figure::TimesReport;
use knee_load::measure::{AttemptsMeasured, SentinelSample, Trial};
use serde::{Deserialize, Serialize};

/// The requests of users apart from the attempts that they took. All counts are of the requests
/// whose first attempt was intended in the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AttemptsReport {
    /// Requests of users.
    pub offered: u64,
    /// Attempts of these requests, the first ones included.
    pub attempted: u64,
    /// Requests that were served within the timeout, by whichever attempt.
    pub good: u64,
    /// Requests that were served, in percent of the offered ones.
    pub good_percent: f64,
    /// Requests that failed for good.
    pub failed: u64,
    /// Requests that failed for good, in percent of the offered ones.
    pub failed_percent: f64,
    /// Requests without an end: a retry was pending or under way when the trial ended.
    pub unfinished: u64,
    /// Failed requests with retries left that the retry budget did not permit.
    pub over_budget: u64,
    /// Attempts per request: attempted / offered; `None` without any.
    pub amplification: Option<f64>,
    /// From the first intended time of a good request to its end, pauses included.
    pub served_ns: TimesReport,
    /// Time from the end of an overload until the service was back; absent where it was not, or
    /// nobody asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery_ns: Option<u64>,
    /// The window in pieces.
    pub intervals: Vec<AttemptsInterval>,
    /// Patient operations beside the load, which show how long the queue is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sentinels: Vec<SentinelSample>,
}

/// What happened in a piece of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptsInterval {
    /// Begin, from the begin of the window.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
    /// Requests whose first attempt was intended.
    pub offered: u64,
    /// Attempts started.
    pub attempted: u64,
    /// Requests that were served.
    pub good: u64,
    /// Requests that failed for good.
    pub failed: u64,
}

impl AttemptsInterval {
    /// A count per second of this piece; 0 where it has no length.
    pub fn per_s(&self, count: u64) -> f64 {
        let length_s = self.end_ns.saturating_sub(self.start_ns) as f64 / 1e9;
        if length_s > 0.0 { count as f64 / length_s } else { 0.0 }
    }
}

/// The requests of a trial, as reported; `None` where nothing is retried.
pub(super) fn attempts_report(trial: &Trial) -> Option<AttemptsReport> {
    let measured = trial.measurement.attempts.as_ref()?;
    let ended = measured.good + measured.failed;
    let percent = |n: u64| n as f64 * 100.0 / measured.offered.max(1) as f64;
    Some(AttemptsReport {
        offered: measured.offered,
        attempted: measured.attempted,
        good: measured.good,
        good_percent: percent(measured.good),
        failed: measured.failed,
        failed_percent: percent(measured.failed),
        unfinished: measured.offered.saturating_sub(ended),
        over_budget: measured.over_budget,
        amplification: (measured.offered > 0)
            .then(|| measured.attempted as f64 / measured.offered as f64),
        served_ns: times_report(&measured.served, None),
        recovery_ns: None,
        sentinels: trial.measurement.sentinels.clone(),
        intervals: intervals(measured, trial.measurement.window.length().0),
    })
}

fn intervals(measured: &AttemptsMeasured, length_ns: u64) -> Vec<AttemptsInterval> {
    let slots = measured.slots.iter().zip(0_u64..);
    let intervals = slots.map(|(slot, index)| AttemptsInterval {
        start_ns: index * measured.slot.0,
        end_ns: ((index + 1) * measured.slot.0).min(length_ns),
        offered: slot.offered,
        attempted: slot.attempted,
        good: slot.good,
        failed: slot.failed,
    });
    intervals.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_load::measure::AttemptsSlot;
    use knee_load::time::Nanos;

    #[test]
    fn last_interval_ends_with_the_window() {
        let slot = AttemptsSlot { offered: 5, attempted: 10, good: 4, failed: 1 };
        let measured = AttemptsMeasured {
            slot: Nanos::from_millis(100),
            slots: vec![slot; 2],
            ..AttemptsMeasured::default()
        };
        let intervals = intervals(&measured, 150_000_000);
        assert_eq!((intervals[1].start_ns, intervals[1].end_ns), (100_000_000, 150_000_000));
        assert_eq!(intervals[0].per_s(intervals[0].attempted), 100.0);
        assert_eq!(AttemptsInterval::default().per_s(3), 0.0);
    }
}
