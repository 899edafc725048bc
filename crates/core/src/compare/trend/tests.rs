use super::*;
use crate::compare::tests::{on_slower_host, report, run_of_ten_users};
use crate::trial::report::TrialReport;

/// Reports of `count` runs, the later ones as `change` makes them from run `at` on.
fn runs(count: u64, at: u64, change: fn(TrialReport) -> TrialReport) -> Vec<Report> {
    let one = |number| {
        let trial = run_of_ten_users(number + 1);
        report(if number < at { trial } else { change(trial) })
    };
    (0..count).map(one).collect()
}

fn names(reports: &[Report]) -> Vec<String> {
    (1..=reports.len()).map(|number| number.to_string()).collect()
}

fn trend(reports: &[Report], metrics: &[&str]) -> Result<TrendReport, String> {
    let names = names(reports);
    let named = names.iter().zip(reports).map(|(name, report)| NamedReport { name, report });
    let metrics: Vec<String> = metrics.iter().map(|&metric| metric.to_owned()).collect();
    History::of(&named.collect::<Vec<_>>()).trend(&metrics, "1")
}

#[test]
fn a_change_is_found_where_it_is_and_judged() {
    let reports = runs(14, 9, |trial| on_slower_host(trial, 1.3));
    let found = trend(&reports, &["throughput_per_s"]).unwrap();
    assert_eq!((found.runs.len(), found.rows.len()), (14, 1));
    let row = &found.rows[0];
    assert_eq!(row.values.len(), 14);
    let [change] = &row.changes[..] else { panic!("{:?}", row.changes) };
    assert_eq!((change.at, change.first_run.as_str()), (9, "10"));
    assert_eq!(change.verdict, ComparisonVerdict::Worse, "{change:?}");
    assert!((change.change_percent + 23.0).abs() < 3.0, "{change:?}");
    // Better is no regression, and without a change there is none.
    let faster = runs(14, 9, |trial| on_slower_host(trial, 0.7));
    let better = trend(&faster, &["throughput_per_s"]).unwrap();
    assert_eq!(better.rows[0].changes[0].verdict, ComparisonVerdict::Better);
    let same = trend(&runs(14, 9, |trial| trial), &[]).unwrap();
    assert!(same.rows.len() >= 2 && same.rows.iter().all(|row| row.changes.is_empty()));
}

#[test]
fn a_change_that_the_host_explains_is_not_judged() {
    let busy = |mut trial: TrialReport, cost| {
        trial.generator.busiest_worker_percent = 80.0;
        trial.generator.busiest_worker_spin_percent = 0.0;
        trial.generator.cpu_s_per_million_ops = Some(cost);
        trial
    };
    let mut reports = runs(14, 9, |trial| on_slower_host(trial, 1.3));
    for (number, one) in reports.iter_mut().enumerate() {
        let trial = one.trials.remove(0);
        one.trials.push(busy(trial, if number < 9 { 10.0 } else { 13.5 }));
    }
    let found = trend(&reports, &["throughput_per_s"]).unwrap();
    let change = &found.rows[0].changes[0];
    assert_eq!(change.verdict, ComparisonVerdict::Unknown, "{change:?}");
    assert!(change.because.contains("speed of the host differs by 35 %"), "{change:?}");
}

#[test]
fn runs_that_are_not_alike_are_left_out_and_too_few_refused() {
    let mut reports = runs(12, 12, |trial| trial);
    reports[3].verdict = Verdict::Invalid;
    reports[5].spec.insert("rate".to_owned(), "5/s".into());
    reports[7].knee_version = "2".to_owned();
    let found = trend(&reports, &[]).unwrap();
    assert_eq!((found.invalid_left_out, found.unlike_left_out, found.runs.len()), (1, 2, 9));
    let few = trend(&reports[..5], &[]).unwrap_err();
    assert!(few.starts_with("4 runs can be compared (1 INVALID, 0 made otherwise)"), "{few}");
    assert!(trend(&[], &[]).unwrap_err().starts_with("0 runs"));
    let unknown = trend(&reports, &["p98_ns"]).unwrap_err();
    assert!(unknown.starts_with("--metric: no figure 'p98_ns': expected throughput_per_s, "));
    let json = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<TrendReport>(&json).unwrap(), found);
}
