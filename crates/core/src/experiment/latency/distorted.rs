//! Which figures stand where the generator distorted some of the trials.

use crate::experiment::latency::analysis::{added_latency_ns, grade_of, overall};
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
fn figures(of: &LatencyConclusion) -> [(&'static str, &'static str, bool); 7] {
    let others = "the figures of other congestion controls";
    [
        ("min_rtt_ns", "the minimum round trip", of.min_rtt_ns.is_some()),
        ("upload_capacity_kib_per_s", "upload capacity", of.upload_capacity_kib_per_s.is_some()),
        (
            "download_capacity_kib_per_s",
            "download capacity",
            of.download_capacity_kib_per_s.is_some(),
        ),
        ("responsiveness_hz", "link responsiveness", of.responsiveness_hz.is_some()),
        ("smoothness_hz", "flow smoothness", of.smoothness_hz.is_some()),
        ("grade", "the bufferbloat grade", !of.grade.is_empty()),
        ("by_congestion_control", others, !of.by_congestion_control.is_empty()),
    ]
}

/// Fills in which figures of a conclusion are distorted. A mean is where any of its scenarios is; a
/// worst stands where a scenario that can be trusted is as bad. `first` is the congestion control
/// that the overall figures are of.
pub(super) fn mark_distorted(
    conclusion: &mut LatencyConclusion,
    idle: Option<&TrialReport>,
    first: &str,
) {
    let of_first = |row: &&ScenarioRow| row.congestion_control == first;
    let rows: Vec<&ScenarioRow> = conclusion.scenarios.iter().filter(of_first).collect();
    let sound: Vec<&ScenarioRow> = rows.iter().filter(|r| !r.distorted).copied().collect();
    let is_any = |of: fn(&ScenarioRow) -> Option<f64>| {
        rows.iter().any(|row| row.distorted && of(row).is_some())
    };
    let idle_distorted = idle.is_some_and(|t| t.verdict == Verdict::Invalid);
    let (all, own) = (overall(&rows), overall(&sound));
    let by = ScenarioRow::by_ping;
    let same_grade = grade_of(&rows, by) == grade_of(&sound, by)
        && added_latency_ns(&rows, by) == added_latency_ns(&sound, by);
    let has_grade = !conclusion.grade.is_empty();
    let others = conclusion.scenarios.iter().filter(|row| !of_first(row));
    let distorted = [
        idle_distorted && conclusion.min_rtt_ns.is_some(),
        is_any(|row| row.up_kib_per_s),
        is_any(|row| row.down_kib_per_s),
        all.responsiveness_hz != own.responsiveness_hz,
        all.smoothness_hz != own.smoothness_hz,
        has_grade && (idle_distorted || !same_grade),
        others.into_iter().any(|row| row.distorted),
    ];
    let keys = figures(conclusion).into_iter().zip(distorted);
    let keys = keys.filter(|(_, is_distorted)| *is_distorted);
    conclusion.distorted = keys.map(|((key, ..), _)| key.to_owned()).collect();
}

/// What stands and what does not, where something does not.
pub(super) fn rests_on_distorted(
    conclusion: &LatencyConclusion,
    counting: &[&TrialReport],
) -> Option<Finding> {
    let invalid = counting.iter().filter(|t| t.verdict == Verdict::Invalid);
    let (trials, of_all) = (invalid.count() as f64, counting.len() as f64);
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
    (trials > 0.0).then(|| {
        RESTS_ON_DISTORTED.warning(
            format!("{} of {} trials are INVALID: {affected}{rest}", exact(trials), exact(of_all)),
            [
                ("distorted_trials", trials),
                ("trials", of_all),
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
        let words = figures.into_iter().map(|(_, words, _)| words.to_owned());
        words.collect()
    };
    (words(resting), words(standing))
}

/// Maximum distorted trials that are run again, each once. A stall of this host is over by then,
/// and a host that distorts everything is found out soon.
pub(super) const REPEATS_MAX: usize = 3;

/// What each trial so far was: a step, or a step again.
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
        let of = at.len() as f64;
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
                            exact(of)
                        ),
                    }
                ),
                [("run_again", of), ("in_vain", in_vain)],
                "",
            )
        })
    }
}
