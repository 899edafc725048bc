//! Trials of the same level, law or scenario, compared metric by metric.

use super::anatomy::stage_changes;
use super::difference::{FailureCount, ShareSample, difference};
use super::draft::{RowDraft, RowSubject, share_draft};
use super::estimate::LogEstimate;
use super::metrics::{
    between, compared_statistics, estimate, failed, failed_by_interval, is_contended,
};
use super::report::{ComparisonRow, StageChanges};
use crate::report::Kind;
use crate::report::Report;
use crate::trial::figure::Figure;
use crate::trial::report::{TrialReport, Verdict};
use crate::trial::statistics::{Better, StatisticSource, statistic};
use crate::trial::timing::TimingReport;
use knee_load::spec::Level;
use knee_load::stats::sample::mean;

/// The trials of one level: those of each report of a side.
type LevelTrials<'a> = Vec<Vec<&'a TrialReport>>;

/// The trials of both sides at one level.
#[derive(Debug)]
pub(super) struct MatchedLevel<'a> {
    /// Its name; empty where both sides have but one level each.
    pub label: String,
    level: Option<Level>,
    sides: [LevelTrials<'a>; 2],
}

/// The levels that both sides have, in A's order, and the names of those that only A or only B
/// has. Where each side has a single level, those two are compared whatever they are.
pub(super) fn matched<'a>(
    a: &[&'a Report],
    b: &[&'a Report],
) -> (Vec<MatchedLevel<'a>>, [Vec<String>; 2]) {
    let (labels_a, labels_b) = (labels(a), labels(b));
    let is_of_one_kind = a.iter().chain(b).all(|r| r.command == a[0].command);
    if let ([(label_a, level)], [(label_b, other)]) = (&labels_a[..], &labels_b[..])
        && (is_of_one_kind || level == other)
    {
        let level = Some(*level).filter(|level| level == other);
        let sides = [trials_with_label(a, label_a), trials_with_label(b, label_b)];
        let label = String::new();
        return (vec![MatchedLevel { label, level, sides }], [vec![], vec![]]);
    }
    let common = |(label, level): &(String, Level)| MatchedLevel {
        label: label.clone(),
        level: Some(*level),
        sides: [trials_with_label(a, label), trials_with_label(b, label)],
    };
    let has = |labels: &[(String, Level)], label: &str| labels.iter().any(|(l, _)| l == label);
    let only = |ours: &[(String, Level)], theirs: &[(String, Level)]| -> Vec<String> {
        ours.iter().filter(|(l, _)| !has(theirs, l)).map(|(l, _)| l.clone()).collect()
    };
    let both = labels_a.iter().filter(|(l, _)| has(&labels_b, l));
    (both.map(common).collect(), [only(&labels_a, &labels_b), only(&labels_b, &labels_a)])
}

/// The names of the levels, in order, each once.
fn labels(reports: &[&Report]) -> Vec<(String, Level)> {
    let mut labels: Vec<(String, Level)> = Vec::new();
    for trial in reports.iter().flat_map(|r| counted(r)) {
        if !labels.iter().any(|(label, _)| *label == trial.label) {
            labels.push((trial.label.clone(), trial.level));
        }
    }
    labels
}

/// The trials that are levels. The open loop beside a sweep over users is none, as its rate follows
/// from the result of that sweep.
fn counted(report: &Report) -> impl Iterator<Item = &TrialReport> {
    let is_of_users = |t: &TrialReport| matches!(t.level, Level::Vusers(_));
    let users = report.trials.first().is_some_and(is_of_users);
    report.trials.iter().filter(move |t| !users || is_of_users(t))
}

fn trials_with_label<'a>(reports: &[&'a Report], label: &str) -> LevelTrials<'a> {
    reports.iter().map(|r| r.trials.iter().filter(|t| t.label == label).collect()).collect()
}

/// Timing of all trials; `None` if one has none.
fn timings<'a>(trials: &LevelTrials<'a>) -> Option<Vec<&'a TimingReport>> {
    trials.iter().flatten().map(|t| t.timing()).collect()
}

impl<'a> MatchedLevel<'a> {
    /// Slices of two targets, each as a run of its own.
    pub(super) fn from_slices(sides: [&'a [TrialReport]; 2]) -> MatchedLevel<'a> {
        MatchedLevel {
            label: String::new(),
            level: None,
            sides: sides.map(|side| side.iter().map(|t| vec![t]).collect()),
        }
    }
}

impl MatchedLevel<'_> {
    /// The rows of this level.
    pub(super) fn drafts(&self, kind: Kind) -> Vec<RowDraft> {
        compared_statistics(kind)
            .filter_map(|row| {
                let subject = self.subject(row.key, row.unit.name(), row.better);
                match row.source {
                    StatisticSource::Share(_) => self.share(subject, &failed),
                    _ => self.figure(subject, row.spread, &|t| estimate(row, t)),
                }
            })
            .collect()
    }

    /// All trials of A, and all of B.
    pub(super) fn trials(
        &self,
    ) -> (impl Iterator<Item = &TrialReport>, impl Iterator<Item = &TrialReport>) {
        let [a, b] = &self.sides;
        (a.iter().flatten().copied(), b.iter().flatten().copied())
    }

    /// The first trial of each side.
    pub(super) fn firsts(&self) -> [Option<&TrialReport>; 2] {
        let [a, b] = &self.sides;
        [a, b].map(|side| side.iter().flatten().next().copied())
    }

    /// Whether the generator and its target fought for processors in any of its trials.
    pub(super) fn is_contended(&self) -> bool {
        self.sides.iter().flatten().flatten().any(|t| is_contended(t))
    }

    /// Stages that explain the differences among the rows of this level.
    pub(super) fn stage_changes(&self, rows: &[ComparisonRow]) -> Vec<StageChanges> {
        match (timings(&self.sides[0]), timings(&self.sides[1])) {
            (Some(a), Some(b)) => stage_changes(rows, &self.label, [&a, &b]),
            _ => Vec::new(),
        }
    }

    /// The row of a figure; `None` where neither side has it. `estimate_of` gives the figure of a
    /// trial, `spread` its usual spread between runs.
    pub(super) fn figure(
        &self,
        subject: RowSubject,
        spread: f64,
        estimate_of: &dyn Fn(&TrialReport) -> Option<LogEstimate>,
    ) -> Option<RowDraft> {
        let estimates = |side: &LevelTrials, is_valid_only| -> Vec<LogEstimate> {
            side.iter().filter_map(|trials| pooled(estimate_of, trials, is_valid_only)).collect()
        };
        let [a, b] = self.sides.each_ref().map(|side| estimates(side, true));
        let value = |side: &LevelTrials, valid: &[LogEstimate]| {
            let any = estimates(side, false);
            let shown = if valid.is_empty() { &any[..] } else { valid };
            let logs: Vec<f64> = shown.iter().map(|e| e.log).collect();
            (!logs.is_empty()).then(|| mean(&logs).exp())
        };
        let values = [value(&self.sides[0], &a), value(&self.sides[1], &b)];
        if values == [None, None] {
            return None;
        }
        let is_bound = self.sides.each_ref().map(|side| {
            side.iter().flatten().any(|trial| {
                let row = statistic(&subject.row.metric);
                row.is_some_and(|row| matches!(row.value(trial), Figure::Within(_, None)))
            })
        });
        let is_decided = match is_bound {
            [false, false] => true,
            [true, true] => false,
            [true, false] => values[0] > values[1],
            [false, true] => values[0] < values[1],
        };
        let difference = difference(&a, &b, between(spread, self.is_contended()));
        let difference = difference.filter(|_| is_decided);
        let reason = if is_decided {
            self.why_unknown(&subject.row.metric, &a, &b)
        } else {
            "a lower bound only, as the generator was the limit".to_owned()
        };
        Some(RowDraft::of(subject, values, difference, &reason))
    }

    fn why_unknown(&self, metric: &str, a: &[LogEstimate], b: &[LogEstimate]) -> String {
        let has_range = |t: &TrialReport| {
            statistic(metric).is_some_and(|row| matches!(row.value(t), Figure::Within(..)))
        };
        for (name, side, valid) in [("A", &self.sides[0], a), ("B", &self.sides[1], b)] {
            if !valid.is_empty() {
                continue;
            }
            let mut trials = side.iter().flatten();
            return if trials.clone().any(|t| t.verdict == Verdict::Invalid) {
                format!("{name} is INVALID here")
            } else if trials.any(|t| has_range(t)) {
                format!("{name} has a range only, as its generator was late")
            } else {
                format!("{name} has too few operations here")
            };
        }
        "a single run too short to tell how far it varies: at least five intervals are needed, or \
         several runs"
            .to_owned()
    }

    /// The row of a share; `None` where neither side has any operations. `failed` counts those of a
    /// trial, `by_interval` those of its intervals.
    pub(super) fn share(
        &self,
        subject: RowSubject,
        failed: &dyn Fn(&TrialReport) -> FailureCount,
    ) -> Option<RowDraft> {
        let [a, b] = self.sides.each_ref().map(|side| shares(side, failed));
        let reason = self.why_unknown(&subject.row.metric, &[], &[]);
        share_draft(subject, &a, &b, reason)
    }

    /// Subject of a row of this level.
    pub(super) fn subject(&self, metric: &str, unit: &str, better: Better) -> RowSubject {
        let mut subject = RowSubject::new(metric, unit, better);
        subject.row.label.clone_from(&self.label);
        subject.row.level = self.level;
        subject
    }
}

/// The stationary trials; all of them where none is.
fn sound<'a>(trials: &[&'a TrialReport], is_valid_only: bool) -> Vec<&'a TrialReport> {
    let is_used = |t: &&&TrialReport| !is_valid_only || t.verdict == Verdict::Valid;
    let used: Vec<&TrialReport> = trials.iter().filter(is_used).copied().collect();
    let stationary: Vec<&TrialReport> = used.iter().filter(|t| t.stationary).copied().collect();
    if stationary.is_empty() { used } else { stationary }
}

fn pooled(
    estimate_of: &dyn Fn(&TrialReport) -> Option<LogEstimate>,
    trials: &[&TrialReport],
    is_valid_only: bool,
) -> Option<LogEstimate> {
    let used = sound(trials, is_valid_only);
    let estimates: Vec<LogEstimate> = used.iter().filter_map(|t| estimate_of(t)).collect();
    LogEstimate::pooled(&estimates)
}

fn shares(side: &LevelTrials, failed: &dyn Fn(&TrialReport) -> FailureCount) -> ShareSample {
    let mut shares = ShareSample::default();
    for trials in side {
        let used = sound(trials, true);
        shares.runs.push(FailureCount::sum(used.iter().map(|t| failed(t))));
        shares.intervals.extend(used.iter().flat_map(|t| failed_by_interval(t)));
    }
    shares.runs.retain(|run| run.all > 0);
    shares
}
