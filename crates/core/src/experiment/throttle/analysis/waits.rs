//! One row of the table of waits.

use crate::experiment::throttle::report::WaitRow;
use crate::experiment::throttle::wait::Chore;
use crate::experiment::throttle::waits::WaitTrial;
use crate::stats::sample::t9995;

/// Fewer waits have no spread.
pub(super) const SAMPLES_MIN: u64 = 2;

/// The statistics of one way to wait; `None` of fewer than two waits (the user ended it early).
///
/// The error is half of the 99.9 % confidence interval of the mean by Student's t,
/// t(0.9995, n − 1)·s/√n, as benchmark harnesses print it (JMH does). It takes the waits as
/// independent, which those of one sleeping thread nearly are.
pub fn wait_row(trial: &WaitTrial) -> Option<WaitRow> {
    let (spec, waits) = (&trial.spec, &trial.waits);
    if waits.samples < SAMPLES_MIN {
        return None;
    }
    let n = waits.samples as f64;
    let std_dev = (waits.deviations_ns2 / (n - 1.0)).sqrt();
    let error = t9995(waits.samples - 1) * std_dev / n.sqrt();
    let late = |q| waits.overshoot.quantile(q).0;
    let has_chore = spec.chore != Chore::None && !waits.chore.is_empty();
    Some(WaitRow {
        method: spec.method.name().to_owned(),
        op: spec.chore.name().to_owned(),
        delay_ns: spec.delay.0,
        mean_ns: waits.mean_ns.round() as u64,
        error_ns: error.round() as u64,
        std_dev_ns: std_dev.round() as u64,
        overshoot_p50_ns: late(0.5),
        overshoot_p1_ns: late(0.01),
        overshoot_p10_ns: late(0.1),
        overshoot_p90_ns: late(0.9),
        overshoot_p99_ns: late(0.99),
        overshoot_max_ns: waits.overshoot.max().0,
        cpu_percent: waits.cpu.thread_percent(waits.elapsed),
        samples: waits.samples,
        stolen_samples: waits.stolen,
        early_samples: waits.early,
        op_mean_ns: has_chore.then(|| waits.chore.mean_ns().round() as u64),
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixture::waits;
    use super::*;
    use crate::experiment::throttle::wait::WaitMethod;
    use crate::time::Nanos;

    #[test]
    fn the_row_of_five_waits_by_hand() {
        let took = [1_050_000, 1_060_000, 1_070_000, 1_080_000, 1_090_000];
        let late = took.map(|t| t - 1_000_000);
        let mut trial = waits(WaitMethod::Sleep, Nanos::from_millis(1), &late);
        trial.waits.cpu = Nanos::from_micros(10);
        trial.waits.elapsed = Nanos::from_millis(5);
        let row = wait_row(&trial).expect("five waits");
        assert_eq!((row.method.as_str(), row.op.as_str()), ("sleep", "none"));
        assert_eq!((row.delay_ns, row.mean_ns), (1_000_000, 1_070_000));
        // s = 10,000·√2.5 = 15,811 ns; 8.610·s/√5 = 60,882 ns
        assert_eq!(row.std_dev_ns, 15_811);
        assert!(row.error_ns.abs_diff(60_882) < 20, "{}", row.error_ns);
        assert!(row.overshoot_p50_ns.abs_diff(70_000) < 70);
        assert!(row.overshoot_max_ns.abs_diff(90_000) < 90);
        assert!((row.cpu_percent - 0.2).abs() < 1e-9);
        assert_eq!((row.samples, row.op_mean_ns), (5, None));
    }

    #[test]
    fn one_wait_alone_has_no_spread_and_makes_no_row() {
        let trial = |late: &[u64]| waits(WaitMethod::Spin, Nanos::from_micros(50), late);
        assert_eq!(wait_row(&trial(&[])), None);
        assert_eq!(wait_row(&trial(&[7])), None);
        let row = wait_row(&trial(&[7, 7])).expect("two");
        assert_eq!((row.std_dev_ns, row.error_ns), (0, 0));
    }

    #[test]
    fn the_chore_is_timed_apart() {
        let mut trial = waits(WaitMethod::Spin, Nanos::from_micros(50), &[7, 7]);
        trial.spec.chore = Chore::Udp("127.0.0.1:9".into());
        trial.waits.chore.record(Nanos(4_000));
        trial.waits.chore.record(Nanos(6_000));
        let row = wait_row(&trial).expect("two");
        let op = row.op_mean_ns.expect("a chore");
        assert_eq!(row.op, "udp");
        assert!(op.abs_diff(5_000) < 10, "{op}");
    }
}
