//! Which figures stand where the generator distorted some of the trials.

use crate::experiment::latency::analysis::{PATH_FIGURES, overall};
use crate::experiment::latency::report::{LatencyConclusion, ScenarioRow};
use crate::finding::{Finding, codes};
use crate::trial::report::{TrialReport, Verdict};
use crate::words::{exact, levels, list};
use knee_load::spec::Level;

codes! {
    RESTS_ON_DISTORTED = "rests_on_distorted":
        cause "The generator was late in some trials, and some overall figures are computed from \
               these trials. The other figures are not affected.",
        remedy "Repeat on a quieter or larger machine, or use only the figures that are not \
                affected.";
    RUN_AGAIN = "run_again":
        cause "The generator distorted the first run of a scenario, so knee ran that scenario a \
               second time. The second run counts.",
        remedy "Nothing, if the second runs are valid. Otherwise repeat on a quieter or larger \
                machine.";
}

/// The overall figures by their keys, in words, and whether they are known.
fn figures(conclusion: &LatencyConclusion) -> Vec<(&'static str, &'static str, bool)> {
    let others = "the figures of other congestion controls";
    let path = &conclusion.path;
    let mut figures =
        vec![("min_rtt_ns", "the minimum round trip", conclusion.min_rtt_ns.is_some())];
    figures.extend(PATH_FIGURES.map(|f| (f.key, f.name, (f.of_path)(path).is_some())));
    figures.push(("grade", "the bufferbloat grade", !path.grade.is_empty()));
    let has_others = !conclusion.by_congestion_control.is_empty();
    figures.push(("by_congestion_control", others, has_others));
    figures
}

/// Fills in which figures of a conclusion are distorted. A mean is where any of its scenarios is; a
/// worst stands where a scenario that can be trusted is as bad. `first` is the congestion control
/// that the overall figures are of.
pub(super) fn mark_distorted(
    conclusion: &mut LatencyConclusion,
    idle: Option<&TrialReport>,
    first: &str,
) {
    let has_first = |row: &&ScenarioRow| row.congestion_control == first;
    let rows: Vec<&ScenarioRow> = conclusion.scenarios.iter().filter(has_first).collect();
    let sound: Vec<&ScenarioRow> = rows.iter().filter(|r| !r.distorted).copied().collect();
    let idle_distorted = idle.is_some_and(|t| t.verdict == Verdict::Invalid);
    let (all, sound) = (overall(&rows), overall(&sound));
    let is_same_grade =
        (&all.grade, all.added_latency_ns) == (&sound.grade, sound.added_latency_ns);
    let has_grade = !conclusion.path.grade.is_empty();
    let mut others = conclusion.scenarios.iter().filter(|row| !has_first(row));
    let mut distorted = vec![idle_distorted && conclusion.min_rtt_ns.is_some()];
    distorted.extend(PATH_FIGURES.map(|figure| {
        if figure.is_capacity {
            rows.iter().any(|row| row.distorted && (figure.of_row)(row).is_some())
        } else {
            (figure.of_path)(&all) != (figure.of_path)(&sound)
        }
    }));
    distorted.push(has_grade && (idle_distorted || !is_same_grade));
    distorted.push(others.any(|row| row.distorted));
    let keys = figures(conclusion).into_iter().zip(distorted);
    let keys = keys.filter(|(_, is_distorted)| *is_distorted);
    conclusion.distorted = keys.map(|((key, ..), _)| key.to_owned()).collect();
}

/// Names the figures that can be trusted and those that cannot, if there are distorted trials.
pub(super) fn rests_on_distorted(
    conclusion: &LatencyConclusion,
    counting: &[&TrialReport],
) -> Option<Finding> {
    let invalid = counting.iter().filter(|t| t.verdict == Verdict::Invalid);
    let (distorted_count, trial_count) = (invalid.count() as f64, counting.len() as f64);
    let (resting, standing) = distorted_and_sound(conclusion);
    let affected = match resting.len() {
        0 => "no overall figure rests on them".to_owned(),
        _ => format!("{} cannot be trusted", list(&resting)),
    };
    let rest = match standing.len() {
        0 => String::new(),
        1 => format!("; {} is not affected", list(&standing)),
        _ => format!("; {} are not affected", list(&standing)),
    };
    (distorted_count > 0.0).then(|| {
        RESTS_ON_DISTORTED.warning(
            format!(
                "{} of {} trials are INVALID: {affected}{rest}",
                exact(distorted_count),
                exact(trial_count)
            ),
            [
                ("distorted_trials", distorted_count),
                ("trials", trial_count),
                ("distorted_figures", resting.len() as f64),
                ("standing_figures", standing.len() as f64),
            ],
            "",
        )
    })
}

/// The figures that are known, in words: those that cannot be trusted, and those that stand.
pub(super) fn distorted_and_sound(conclusion: &LatencyConclusion) -> (Vec<String>, Vec<String>) {
    let known = figures(conclusion).into_iter().filter(|(.., is_known)| *is_known);
    let is_distorted = |key: &str| conclusion.distorted.iter().any(|d| d == key);
    let (resting, standing): (Vec<_>, Vec<_>) = known.partition(|(key, ..)| is_distorted(key));
    let words = |figures: Vec<(&str, &str, bool)>| -> Vec<String> {
        figures.into_iter().map(|(_, words, _)| words.to_owned()).collect()
    };
    (words(resting), words(standing))
}

/// Maximum distorted trials that are run again, each once. A stall of this host is over by then,
/// and a host that distorts everything is found out soon.
pub(super) const REPEATS_MAX: usize = 3;

/// The trials so far by step, with the steps that were run again.
pub(super) struct ScenarioAttempts {
    /// For each step that was begun the trial that counts: the last one.
    pub(super) counting: Vec<usize>,
    /// The steps that were run again, by the place in `counting`.
    repeated: Vec<usize>,
    /// The last step is to be run again.
    pub(super) is_to_repeat: bool,
}

impl ScenarioAttempts {
    pub(super) fn of(past: &[TrialReport]) -> ScenarioAttempts {
        let mut attempts =
            ScenarioAttempts { counting: Vec::new(), repeated: Vec::new(), is_to_repeat: false };
        for (trial, report) in past.iter().enumerate() {
            if attempts.is_to_repeat {
                attempts.counting.pop();
                attempts.repeated.push(attempts.counting.len());
            }
            attempts.counting.push(trial);
            let is_fresh = !attempts.is_to_repeat && attempts.repeated.len() < REPEATS_MAX;
            attempts.is_to_repeat = is_fresh && report.verdict == Verdict::Invalid;
        }
        attempts
    }

    pub(super) fn run_again(&self, past: &[TrialReport]) -> Option<Finding> {
        let again = || self.repeated.iter().map(|&step| &past[self.counting[step]]);
        let at: Vec<Level> = again().map(|t| t.level).collect();
        let in_vain = again().filter(|t| t.verdict == Verdict::Invalid).count() as f64;
        let repeated_count = at.len() as f64;
        (!at.is_empty()).then(|| {
            RUN_AGAIN.info(
                format!(
                    "{} ran twice, because the first run was INVALID: {}",
                    levels(&at),
                    match in_vain {
                        0.0 => "the second run of each is valid and counts".to_owned(),
                        n => format!(
                            "the second run of each counts; {} of {} are INVALID too",
                            exact(n),
                            exact(repeated_count)
                        ),
                    }
                ),
                [("run_again", repeated_count), ("in_vain", in_vain)],
                "",
            )
        })
    }
}
