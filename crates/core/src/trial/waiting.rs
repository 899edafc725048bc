//! What a report says of how the generator's workers waited.

use super::times::{QuantilesReport, quantiles};
use knee_load::measure::{WaitUse, Window};
use knee_load::polling::WaitMode;
use knee_load::spec::WaitPolicy;
use serde::{Deserialize, Serialize};

/// How workers waited for their deadlines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitReport {
    /// The value of `--wait`.
    pub policy: WaitPolicy,
    /// The share of the window in which a worker polled all the time because `auto` decided so, in
    /// percent; mean over the workers.
    pub polling_percent: f64,
    /// The share of the window in which a worker had real-time priority, in percent; mean over the
    /// workers.
    #[serde(default)]
    pub realtime_percent: f64,
    /// The share of the window that a worker spent polling for deadlines, in percent of a core;
    /// mean over the workers.
    pub spun_percent: f64,
    /// When a worker began to poll all the time, and when it slept again.
    pub changes: Vec<WayChangeReport>,
    /// How late sleeps ended that nothing cut short, warm-up included.
    pub lateness_ns: QuantilesReport,
}

/// A decision of `--wait auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WayChangeReport {
    /// When, from the begin of the window; negative in the warm-up.
    pub at_ns: i64,
    /// The number of the worker, from 0.
    pub worker: u32,
    /// How it waited from then on.
    pub to: WaitMode,
}

impl WaitReport {
    pub(crate) fn of(used: &WaitUse, window: Window) -> WaitReport {
        let start_ns = window.start.0.cast_signed();
        let changes = used.changes.iter().map(|change| WayChangeReport {
            at_ns: change.at.0.cast_signed() - start_ns,
            worker: change.worker,
            to: change.to,
        });
        WaitReport {
            policy: used.policy,
            polling_percent: used.polling_percent,
            realtime_percent: used.realtime_percent,
            spun_percent: used.polled_percent,
            changes: changes.collect(),
            lateness_ns: quantiles(&used.lateness),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_load::measure::Histogram;
    use knee_load::polling::WaitModeChange;
    use knee_load::time::Nanos;

    #[test]
    fn changes_count_from_the_begin_of_the_window() {
        let change = |ms, to| WaitModeChange { at: Nanos::from_millis(ms), worker: 1, to };
        let mut lateness = Histogram::default();
        lateness.record_n(Nanos(60_000), 200);
        let used = WaitUse {
            policy: WaitPolicy::Auto,
            polling_percent: 30.0,
            realtime_percent: 0.0,
            polled_percent: 40.0,
            changes: vec![change(400, WaitMode::Polling), change(3_000, WaitMode::Sleeping)],
            lateness,
        };
        let window = Window { start: Nanos::from_secs(1), end: Nanos::from_secs(9) };
        let report = WaitReport::of(&used, window);
        let at: Vec<i64> = report.changes.iter().map(|c| c.at_ns).collect();
        assert_eq!(at, [-600_000_000, 2_000_000_000]);
        let late = &report.lateness_ns;
        assert!(late.p99.is_some_and(|ns| ns.abs_diff(60_000) < 100));
        assert_eq!(late.p999, None, "of 200");
    }
}
