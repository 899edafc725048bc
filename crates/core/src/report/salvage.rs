//! The report of an experiment whose process ended in the middle of it.

use super::result;
use crate::finding::{Finding, Severity, gravest_first};
use crate::report::Report;
use crate::trial::detail::Detail;
use crate::trial::figure::TimesReport;
use crate::trial::offered::OfferedReport;
use crate::trial::report::{GeneratorReport, TrialReport, Verdict};
use crate::trial::times::times_report;
use crate::words;
use knee_load::measure::{Histogram, Interval, Outcomes};
use knee_load::spec::Level;
use std::collections::BTreeMap;

/// The parts of an experiment that were kept.
#[derive(Clone, Debug, PartialEq)]
pub struct PartialExperiment {
    /// What its trials that had ended led to, the running one apart. Where none had, all but the
    /// conclusion, which is then made here.
    pub so_far: Report,
    /// Number of trials that had ended.
    pub ended: usize,
    /// The trial that was running, as far as its intervals show it.
    pub running: Option<RunningTrial>,
    /// Whether it still goes on, so that more will come.
    pub goes_on: bool,
}

/// The report of what is left. The trials that had ended count as they would after an interruption.
/// The running one is added to them, but only the answer of a single run rests on it. As nothing
/// shows whether the generator kept its load in that one, it is invalid.
///
/// # Errors
/// Nothing was left, in a few words.
pub fn salvage(remains: PartialExperiment) -> Result<Report, String> {
    let PartialExperiment { so_far: mut report, ended, running, goes_on } = remains;
    let running = running.filter(|trial| !trial.intervals.is_empty());
    if ended == 0 && running.is_none() {
        return Err(if goes_on {
            "it has just begun: nothing is measured yet".to_owned()
        } else {
            "it was cut short before anything was measured".to_owned()
        });
    }
    report.interrupted = true;
    report.findings.push(cut_short(ended, running.as_ref(), goes_on));
    gravest_first(&mut report.findings);
    if let Some(running) = running {
        let trial = running.report();
        if ended == 0 {
            report.verdict = Verdict::Invalid;
            let answer = report.conclusion.answer_mut();
            answer.cut_short(&trial, in_words(&trial));
        }
        report.trials.push(trial);
    }
    report.thresholds = result::judge_thresholds(&result::stored_thresholds(&report), &report);
    report.judge();
    Ok(report)
}

/// The answer of an experiment whose only trial did not end.
fn in_words(trial: &TrialReport) -> String {
    format!(
        "Cut short in its first trial, {}, after {} and {} operations.",
        trial.label,
        words::time(trial.duration_ns as f64),
        words::number(trial.attempted as f64)
    )
}

fn cut_short(ended: usize, running: Option<&RunningTrial>, goes_on: bool) -> Finding {
    let mut evidence = BTreeMap::from([("trials_ended".to_owned(), ended as f64)]);
    let trials = match ended {
        0 => "no trial had ended".to_owned(),
        1 => "1 trial had ended".to_owned(),
        n => format!("{n} trials had ended"),
    };
    let mut text = if goes_on {
        format!("it still goes on: {trials}")
    } else {
        format!("the process has gone without a report: {trials}")
    };
    if let Some(trial) = running {
        let kept_s = trial.kept_ns() as f64 / 1e9;
        evidence.insert("running_kept_s".to_owned(), kept_s);
        let planned = trial.planned_ns.map_or_else(String::new, |ns| {
            evidence.insert("running_planned_s".to_owned(), ns as f64 / 1e9);
            format!(" of {:.3} s", ns as f64 / 1e9)
        });
        text.push_str(&format!(
            "; of {} the intervals of the first {kept_s:.3} s{planned} are kept, which tell \
             neither how each operation ended nor whether the load was kept",
            trial.label
        ));
    }
    Finding {
        code: "cut_short".to_owned(),
        severity: Severity::Warning,
        text,
        evidence,
        next_step: if goes_on {
            "look again when it is over".to_owned()
        } else {
            "run it again for the whole answer".to_owned()
        },
    }
}

/// A trial that was running.
#[derive(Clone, Debug, PartialEq)]
pub struct RunningTrial {
    /// Its name for people.
    pub label: String,
    /// The value that the experiment varied.
    pub level: Level,
    /// How long it was to be measured, where that was known.
    pub planned_ns: Option<u64>,
    /// Operations asked for per second.
    pub asked_per_s: Option<f64>,
    /// Its intervals that had ended, in order.
    pub intervals: Vec<Interval>,
    /// Response times of all of them together.
    pub response: Histogram,
}

impl RunningTrial {
    /// How much of its measured window the intervals cover.
    pub fn kept_ns(&self) -> u64 {
        self.intervals.last().map_or(0, |i| i.end_ns)
    }

    /// The report from its intervals alone. Sums and rates are over all of them, transient
    /// included, since what is cut off is judged by what comes later. How each operation ended is
    /// not known, so the outcomes are empty.
    fn report(self) -> TrialReport {
        let kept_ns = self.kept_ns();
        let sum = |figure: fn(&Interval) -> u64| self.intervals.iter().map(figure).sum::<u64>();
        let sent = sum(|i| i.sent.unwrap_or(0));
        let attempted = sum(|i| i.attempted).max(sent);
        let completed = sum(|i| i.completed);
        let per_s = |n: u64| match kept_ns {
            0 => 0.0,
            ns => n as f64 * 1e9 / ns as f64,
        };
        TrialReport {
            label: self.label,
            level: self.level,
            duration_ns: kept_ns,
            attempted,
            completed,
            throughput_per_s: (completed > 0).then(|| per_s(completed)),
            throughput_ci95_per_s: None,
            throughput_is: Default::default(),
            throughput_range_per_s: None,
            goodput_per_s: (completed > 0).then(|| per_s(completed)),
            outcomes: Outcomes::default(),
            // Confidence would need the correlation of operations, which intervals do not have.
            response_time_ns: times_report(&self.response, None),
            service_time_ns: TimesReport::default(),
            offered: OfferedReport {
                asked_per_s: self.asked_per_s,
                achieved_per_s: per_s(attempted),
                ..OfferedReport::default()
            },
            generator: GeneratorReport::default(),
            stationary: false,
            verdict: Verdict::Invalid,
            invalid_because: vec![NOT_JUDGED.to_owned()],
            invalid_clauses: Vec::new(),
            bytes_received: 0,
            detail: Detail::CutShort,
            intervals: self.intervals,
            kernel: BTreeMap::new(),
        }
    }
}

const NOT_JUDGED: &str = "cut short: whether the generator kept the load is not known";

#[cfg(test)]
mod tests;
