//! Stages that explain a difference in response time.

use super::answer::at_label;
use super::report::{ComparisonRow, StageChanges};
use crate::trial::timing::{AnatomyGroup, AnatomyReport, TimingReport};
use crate::words::time;
use knee_load::measure::Stage;
use std::collections::BTreeMap;

/// The percentiles that are explained, and the operations whose stages explain them.
const EXPLAINED: &[(&str, AnatomyGroup)] =
    &[("p50_ns", AnatomyGroup::Median), ("p99_ns", AnatomyGroup::Slowest1)];

/// Share of the whole change below which a stage is left out of the sentence.
const SHARE_MIN: f64 = 0.1;

/// Stages that explain the differences of these rows. `sides` are the timings of A and B at the
/// level with this label.
pub(super) fn stage_changes(
    rows: &[ComparisonRow],
    label: &str,
    sides: [&[&TimingReport]; 2],
) -> Vec<StageChanges> {
    let differs = |metric: &str| {
        let row = rows.iter().find(|r| r.metric == metric && r.label == label);
        row.is_some_and(|row| row.significant)
    };
    EXPLAINED
        .iter()
        .filter(|(metric, _)| differs(metric))
        .filter_map(|&(metric, group)| {
            let [a, b] = sides.map(|trials| StageMeans::of(trials, group));
            Some(changes(metric, group, label, &a?, &b?))
        })
        .collect()
}

/// Mean stages of a group of operations over several trials.
struct StageMeans {
    response_ns: f64,
    stages_ns: BTreeMap<Stage, f64>,
}

impl StageMeans {
    /// Weighs each operation alike. `None` if a trial has no such group.
    fn of(trials: &[&TimingReport], group: AnatomyGroup) -> Option<StageMeans> {
        let groups: Vec<&AnatomyReport> = trials
            .iter()
            .map(|t| t.anatomy.iter().find(|a| a.of == group))
            .collect::<Option<_>>()?;
        let count: f64 = groups.iter().map(|a| a.count as f64).sum();
        let mean = |time_ns: &dyn Fn(&AnatomyReport) -> u64| {
            let sum: f64 = groups.iter().map(|a| time_ns(a) as f64 * a.count as f64).sum();
            sum / count
        };
        let stage = |stage: Stage| mean(&|a| a.mean_ns.get(&stage).copied().unwrap_or(0));
        (count > 0.0).then(|| StageMeans {
            response_ns: mean(&|a| a.response_ns),
            stages_ns: Stage::all().map(|s| (s, stage(s))).collect(),
        })
    }
}

fn changes(
    metric: &str,
    group: AnatomyGroup,
    label: &str,
    a: &StageMeans,
    b: &StageMeans,
) -> StageChanges {
    let change = |stage: &Stage| b.stages_ns[stage] - a.stages_ns[stage];
    let mut changed: Vec<(Stage, f64)> = Stage::all().map(|s| (s, change(&s))).collect();
    changed.sort_by(|(_, x), (_, y)| y.abs().total_cmp(&x.abs()));
    let whole_ns = b.response_ns - a.response_ns;
    let stages: Vec<String> = changed
        .iter()
        .filter(|(_, ns)| ns.abs() >= SHARE_MIN * whole_ns.abs() && ns.abs() >= 1.0)
        .map(|(stage, ns)| {
            let sign = if *ns < 0.0 { "−" } else { "+" };
            format!("{} {sign}{}", stage.words(), time(ns.abs()))
        })
        .collect();
    let at = at_label(label);
    StageChanges {
        metric: metric.to_owned(),
        label: label.to_owned(),
        of: group,
        a_ns: a.response_ns.round() as u64,
        b_ns: b.response_ns.round() as u64,
        change_ns: changed
            .iter()
            .map(|(stage, ns)| (*stage, ns.round() as i64))
            .filter(|(_, ns)| *ns != 0)
            .collect(),
        text: format!(
            "{}{at}: {} instead of {} on average: {}.",
            group.words(),
            time(b.response_ns),
            time(a.response_ns),
            stages.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(stages: &[(Stage, u64)], count: u64) -> TimingReport {
        let group = AnatomyReport {
            of: AnatomyGroup::Slowest1,
            share_percent: 1.0,
            from_ns: 1,
            count,
            response_ns: stages.iter().map(|(_, ns)| ns).sum(),
            mean_ns: stages.iter().copied().collect(),
            stage_percent: BTreeMap::new(),
            owner_percent: BTreeMap::new(),
            both_ends_count: None,
        };
        TimingReport { anatomy: vec![group], ..TimingReport::default() }
    }

    fn row(significant: bool) -> ComparisonRow {
        ComparisonRow { metric: "p99_ns".into(), significant, ..ComparisonRow::default() }
    }

    #[test]
    fn the_stage_that_grew_is_told_where_the_percentile_differs() {
        let a = trial(&[(Stage::FirstByte, 3_000_000)], 100);
        let grown = [(Stage::ConnectionWait, 1_200_000), (Stage::FirstByte, 3_050_000)];
        let b = trial(&grown, 100);
        let changes = stage_changes(&[row(true)], "", [&[&a], &[&b]]);
        assert_eq!(changes.len(), 1);
        assert_eq!(
            changes[0].text,
            "the slowest 1 %: 4.25 ms instead of 3 ms on average: waiting for a free connection \
             +1.2 ms."
        );
        assert_eq!(changes[0].change_ns[&Stage::FirstByte], 50_000);
        assert!(stage_changes(&[row(false)], "", [&[&a], &[&b]]).is_empty());
        assert!(stage_changes(&[row(true)], "vusers=3", [&[&a], &[&b]]).is_empty());
    }

    #[test]
    fn operations_count_once_whichever_trial_they_are_of() {
        let few = trial(&[(Stage::FirstByte, 1_000)], 1);
        let many = trial(&[(Stage::FirstByte, 2_000)], 3);
        let other = trial(&[(Stage::FirstByte, 5_000)], 7);
        let changes = stage_changes(&[row(true)], "", [&[&few, &many], &[&other]]);
        assert_eq!((changes[0].a_ns, changes[0].b_ns), (1_750, 5_000));
    }
}
