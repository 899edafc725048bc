//! For each finding the smallest data that trigger it, and the nearest that do not.

use crate::experiment::sweep::conclude::conclude_points;
use crate::experiment::sweep::findings::{confidence, idle_users, retrograde, users_findings};
use crate::experiment::sweep::knee;
use crate::experiment::sweep::table::LevelPoint;
use crate::finding::Finding;

/// A table of `(users, throughput)` with intervals of this half width, as a share.
fn table(rows: &[(f64, f64)], half_width: Option<f64>) -> Vec<LevelPoint> {
    rows.iter()
        .map(|&(level, x)| LevelPoint {
            level,
            throughput_per_s: x,
            throughput_ci95: half_width.map(|h| [x * (1.0 - h), x * (1.0 + h)]),
            valid: true,
            trials: 1,
            ..LevelPoint::default()
        })
        .collect()
}

fn sweep_findings(points: &[LevelPoint]) -> Vec<Finding> {
    let reading = knee::analyse(points).expect("some row is usable");
    let mut found = users_findings(points, &reading, None, None);
    found.extend(retrograde(&reading, true));
    found
}

fn check_table(what: &str, rows: &[(f64, f64)], half_width: Option<f64>, expected: &[&str]) {
    let findings = sweep_findings(&table(rows, half_width));
    let codes: Vec<&str> = findings.iter().map(|f| f.code.as_str()).collect();
    assert_eq!(codes, expected, "{what}: {findings:?}");
}

#[test]
fn sweep_findings_at_their_thresholds() {
    let flat = &["saturated_below_range"];
    check_table("flat", &[(2.0, 100.0), (4.0, 100.0)], None, flat);
    check_table("a knee at 1", &[(1.0, 100.0), (2.0, 100.0)], None, &[]);
    let bends = &["knee_not_bracketed"];
    check_table("bends", &[(2.0, 90.0), (4.0, 100.0), (8.0, 100.0)], None, bends);

    let rises = &["not_saturated"];
    check_table("rises", &[(1.0, 100.0), (2.0, 110.0)], None, rises);
    check_table("hardly rises", &[(1.0, 100.0), (2.0, 104.0)], None, &[]);
    let noisy = Some(0.05);
    check_table("hardly rises, noisily", &[(1.0, 100.0), (2.0, 107.0)], noisy, &[]);

    check_table("one level", &[(9.0, 100.0)], None, &["too_few_levels"]);

    let falls = &["retrograde"];
    let two = [(1.0, 100.0), (2.0, 94.0)];
    check_table("two levels tell no noise", &two, None, &[]);
    check_table("falls by 4 %", &[(1.0, 100.0), (2.0, 96.0)], None, &[]);
    let exact = Some(0.01);
    check_table("by 4 %, exactly", &[(1.0, 100.0), (2.0, 96.0)], exact, falls);
    check_table("by 6 %, noisily", &[(1.0, 100.0), (2.0, 94.0)], noisy, &[]);

    let past = &["past_knee"];
    check_table("three times as long", &[(1.0, 100.0), (3.0, 100.0)], None, past);
    check_table("2.9 times", &[(10.0, 100.0), (29.0, 100.0)], None, flat);
    check_table("twice as long", &[(1.0, 100.0), (2.0, 100.0)], None, &[]);
}

#[test]
fn methods_disagree_beyond_a_factor_of_two() {
    let at = |n: f64, x: f64| (n, x);
    // The asymptotes cross at 10; throughput bends long before and rises long after.
    let gradual = [at(1.0, 100.0), at(4.0, 250.0), at(30.0, 980.0), at(60.0, 1_000.0)];
    let findings = sweep_findings(&table(&gradual, None));
    let found = findings.iter().find(|f| f.code == "knee_methods_disagree");
    let found = found.expect("kneedle says 30");
    assert!(found.text.contains("kneedle at 30 users"), "{}", found.text);
    assert!(found.text.ends_with("between 9.9 and 30 users"), "{}", found.text);
    assert_eq!(found.next_step, "measure between them: --vusers 1,10,13,17,23,30");
    let sharp = [at(1.0, 100.0), at(5.0, 500.0), at(10.0, 990.0), at(20.0, 1_000.0)];
    assert_eq!(sweep_findings(&table(&sharp, None)), []);
}

#[test]
fn failures_that_rise_are_told_from_failures_everywhere() {
    let mut points = table(&[(1.0, 100.0), (2.0, 200.0), (4.0, 200.0)], None);
    points[2].error_share = 0.011;
    let found = sweep_findings(&points);
    assert_eq!(found[0].code, "errors_rise");
    assert!(found[0].text.contains("up to 1.1 % at 4 users"), "{}", found[0].text);
    for p in &mut points {
        p.error_share = 0.03;
    }
    assert_eq!(sweep_findings(&points), []);
    points[2].error_share = 0.3;
    let codes: Vec<String> = sweep_findings(&points).into_iter().map(|f| f.code).collect();
    assert_eq!(codes, ["errors_rise"], "what is served stays the same: rejections at the maximum");
}

/// Levels of 1, 2 and 4 users with these failures among `operations` each.
fn failing(failed: [u64; 3], operations: u64) -> Vec<LevelPoint> {
    let mut points = table(&[(1.0, 100.0), (2.0, 200.0), (4.0, 200.0)], None);
    for (p, failed) in points.iter_mut().zip(failed) {
        p.error_share = failed as f64 / operations as f64;
        p.operations = operations;
    }
    points
}

#[test]
fn failures_rise_beyond_their_binomial_interval() {
    let is_said = |failed, operations| {
        let found = sweep_findings(&failing(failed, operations));
        found.iter().any(|f| f.code == "errors_rise")
    };
    assert!(is_said([0, 0, 14], 1_000));
    assert!(!is_said([0, 0, 2], 100), "2 of 100 may be chance");
    assert!(is_said([20, 22, 60], 1_000));
    assert!(!is_said([50, 66, 75], 1_000), "5 % everywhere");
    assert!(!is_said([0, 100, 0], 1_000), "in the middle alone");
}

#[test]
fn operations_fail_from_the_row_after_the_last_clean_one() {
    let answer = |failed| conclude_points(&failing(failed, 1_000)).1.answer;
    let said = |failed, from: &str| {
        let answer = answer(failed);
        assert!(answer.contains(from), "{answer}");
    };
    said([0, 10, 100], "From 2 users on operations fail (1 % of them there, 10 % at 4)");
    said([10, 0, 100], "From 4 users on operations fail (10 % of them there)");
    said([100, 100, 100], "From 1 user on operations fail (10 % of them there)");
    for failed in [[0, 100, 0], [0, 10, 20], [0, 0, 0]] {
        assert!(!answer(failed).contains("fail"), "{}", answer(failed));
    }
}

#[test]
fn a_level_that_breaks_does_not_bend_the_curve() {
    let mut points = table(&[(1.0, 100.0), (2.0, 200.0), (4.0, 20.0)], None);
    points[2].error_share = 0.9;
    let found = sweep_findings(&points);
    let codes: Vec<&str> = found.iter().map(|f| f.code.as_str()).collect();
    assert_eq!(codes, ["not_saturated", "errors_rise"]);
    assert!(found[0].text.contains("before operations fail at 4 users"), "{}", found[0].text);
}

#[test]
fn levels_past_the_knee_are_those_with_response_times() {
    let served = [(1.0, 100.0), (5.0, 500.0), (10.0, 1_000.0), (300.0, 1_000.0)];
    let mut points = table(&served, None);
    let is_named = |points: &[LevelPoint]| {
        sweep_findings(points).iter().any(|finding| finding.code == "past_knee")
    };
    assert!(is_named(&points), "a table without times has them by Little's law");
    points[..3].iter_mut().for_each(|p| p.mean_ns = Some(1e7));
    assert!(!is_named(&points), "the generator's delay may be in the last");
    points[3].mean_ns = Some(3e8);
    assert!(is_named(&points));
}

#[test]
fn users_beyond_littles_law_are_reported_as_idle() {
    let mut points = table(&[(10.0, 1_000.0), (100.0, 1_000.0), (300.0, 1_000.0)], None);
    for (p, mean_ms) in points.iter_mut().zip([10.0, 100.0, 128.0]) {
        p.mean_ns = Some(1e6 * mean_ms);
    }
    let found = idle_users(&points).expect("172 users are idle");
    assert!(found.text.starts_with("at 300 users:"), "{}", found.text);
    assert!(found.text.contains("128 of 300 users"), "{}", found.text);
    let past = sweep_findings(&points);
    let past = past.iter().find(|f| f.code == "past_knee");
    assert!(past.is_none_or(|f| f.evidence["response_time_ratio_max"] < 13.0));
    // Users who all pause for 50 ms are accounted for.
    for (p, x) in points.iter_mut().zip([166.7, 666.7, 857.1]) {
        (p.throughput_per_s, p.mean_ns) = (x, Some(1e9 * (p.level / x) - 5e7));
    }
    assert_eq!(idle_users(&points), None);
}

#[test]
fn a_wide_interval_is_told_and_a_narrow_one_is_not() {
    let rows = [(1.0, 100.0), (5.0, 500.0), (10.0, 990.0), (20.0, 1_000.0)];
    let finding = |half| confidence(&knee::analyse(&table(&rows, half)).expect("usable"), 14);
    let wide = finding(Some(0.04)).expect("4 % are more than 2 %");
    assert!(wide.text.contains("after 14 rounds"), "{}", wide.text);
    assert_eq!(wide.evidence["rounds"], 14.0);
    let unknown = finding(None).expect("nothing is known");
    assert!(unknown.text.contains("without a confidence interval"), "{}", unknown.text);
    assert_eq!(finding(Some(0.001)), None);
}
