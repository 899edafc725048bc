//! What can be told of an experiment whose process has gone in the middle of it.

mod partial;
#[cfg(test)]
mod tests;

pub use partial::RunningTrial;

use super::thresholds;
use crate::finding::{Finding, Severity, gravest_first};
use crate::report::Report;
use crate::trial::report::{TrialReport, Verdict};
use crate::words;
use std::collections::BTreeMap;

/// What was kept of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Remains {
    /// What its trials that had ended led to, the running one apart. Where none had, all but the
    /// conclusion, which is then made here.
    pub so_far: Report,
    /// How many trials had ended.
    pub ended: usize,
    /// The trial that was running, as far as its intervals tell of it.
    pub running: Option<RunningTrial>,
    /// Whether it still goes on, so that more will come.
    pub goes_on: bool,
}

/// The report of what is left. The trials that had ended count as they would after an interruption
/// there; the running one is added to them, but only the answer of a single run rests on it. As
/// nothing tells whether the generator kept its load in that one, it is invalid.
///
/// # Errors
/// Nothing was left, in a few words.
pub fn salvage(remains: Remains) -> Result<Report, String> {
    let Remains {
        so_far: mut report,
        ended,
        running,
        goes_on,
    } = remains;
    let running = running.filter(|trial| !trial.intervals.is_empty());
    if ended == 0 && running.is_none() {
        return Err(match goes_on {
            true => "it has just begun: nothing is measured yet".to_owned(),
            false => "it was cut short before anything was measured".to_owned(),
        });
    }
    report.interrupted = true;
    report
        .findings
        .push(cut_short(ended, running.as_ref(), goes_on));
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
    report.thresholds = thresholds::judge(&thresholds::asked_for(&report), &report);
    report.judge();
    Ok(report)
}

/// What all there is says, a trial that did not end.
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
    let mut text = match goes_on {
        true => format!("it still goes on: {trials}"),
        false => format!("the process has gone without a report: {trials}"),
    };
    if let Some(trial) = running {
        let kept_s = trial.kept_ns() as f64 / 1e9;
        evidence.insert("running_kept_s".to_owned(), kept_s);
        let of = trial.planned_ns.map_or_else(String::new, |ns| {
            evidence.insert("running_planned_s".to_owned(), ns as f64 / 1e9);
            format!(" of {:.3} s", ns as f64 / 1e9)
        });
        text.push_str(&format!(
            "; of {} the intervals of the first {kept_s:.3} s{of} are kept, which tell neither how \
             each operation ended nor whether the load was kept",
            trial.label
        ));
    }
    Finding {
        code: "cut_short".to_owned(),
        severity: Severity::Warning,
        text,
        evidence,
        next_step: match goes_on {
            true => "look again when it is over".to_owned(),
            false => "run it again for the whole answer".to_owned(),
        },
    }
}
