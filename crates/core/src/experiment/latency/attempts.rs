//! Which trials count: a scenario that the generator distorted is run again.

use crate::finding::{Code, Finding, Severity};
use crate::spec::Level;
use crate::trial::report::{TrialReport, Verdict};
use crate::words::{exact, levels};

pub(super) const RUN_AGAIN: Code = Code {
    name: "run_again",
    cause: "The generator distorted the first run of a scenario, so knee ran that scenario a \
            second time. The second run counts.",
    remedy: "Nothing, if the second runs are valid. Otherwise repeat on a quieter or larger \
             machine.",
};

/// So many distorted trials are run again, each once: a stall of this host is over by then, and a
/// host that distorts everything is told soon.
pub(super) const REPEATS_MAX: usize = 3;

/// What each trial so far was: a step, or a step again.
pub(super) struct Attempts {
    /// For each step that was begun the trial that counts: the last one.
    pub(super) counting: Vec<usize>,
    /// The steps that were run again, by the place in `counting`.
    repeated: Vec<usize>,
    /// The last step is to be run again.
    pub(super) is_to_repeat: bool,
}

impl Attempts {
    pub(super) fn of(past: &[TrialReport]) -> Attempts {
        let mut attempts = Attempts {
            counting: Vec::new(),
            repeated: Vec::new(),
            is_to_repeat: false,
        };
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
            RUN_AGAIN.finding(
                Severity::Info,
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
