//! How an experiment ends: its verdict from those of its trials, and findings about an early end.

use crate::finding::{Finding, Severity, codes};
use crate::trial::report::{TrialReport, Verdict};

codes! {
    STOPPED_EARLY = "stopped_early":
        cause "The experiment could not answer its question and ended before all its trials.",
        remedy "Make one request work first: knee run URL --vusers 1 -n 1.";
    UNREACHABLE = "unreachable":
        cause "The target could not be reached before the first trial, or not any more after some.",
        remedy "Start the target, or correct its address, then run it again.";
    FLEET_LOST = "fleet_lost":
        cause "An agent of the fleet, or NATS, was lost before the first trial or between two \
               trials. This says nothing of the target.",
        remedy "See why the agent or NATS ended. knee fleet ls lists the agents that are left. \
                With --allow-loss an experiment goes on with them.";
    INTERRUPTED = "interrupted":
        cause "A signal or a key ended the experiment. The report rests on what was measured \
               before.",
        remedy "Run it again to its end.";
    TRIALS_LEFT_OUT = "trials_left_out":
        cause "The generator distorted some trials. The conclusion rests on the others and is \
               valid.",
        remedy "Nothing is to be done, unless the levels left out matter: then repeat on a quieter \
                or larger machine.";
}

/// The policy ended the experiment for this reason.
pub fn stopped_early(reason: &str, next_step: Option<String>) -> Finding {
    let step = "make one request work first: knee run URL --vusers 1 -n 1";
    STOPPED_EARLY.error(
        format!("the experiment ended early: {reason}"),
        [],
        next_step.unwrap_or_else(|| step.to_owned()),
    )
}

/// The target could not be reached, for this reason.
pub fn unreachable(reason: &str) -> Finding {
    UNREACHABLE.error(format!("the target could not be reached: {reason}"), [], UNREACHABLE.step())
}

/// The fleet cannot make the load, for this reason.
pub fn fleet_lost(reason: &str) -> Finding {
    FLEET_LOST.error(
        format!("the fleet cannot go on: {reason}"),
        [],
        "see which agents are left with knee fleet ls, then repeat; or permit it: --allow-loss",
    )
}

/// The user ended it after this number of trials, the last perhaps cut short.
pub(super) fn interrupted(trials: usize) -> Finding {
    let noun = if trials == 1 { "trial" } else { "trials" };
    INTERRUPTED.info(
        format!("interrupted: this rests on {trials} {noun}, the last perhaps cut short"),
        [("trials", trials as f64)],
        INTERRUPTED.step(),
    )
}

/// Whether the user ended it.
pub(super) fn is_interruption(finding: &Finding) -> bool {
    finding.is(INTERRUPTED)
}

/// Turns a finding about distorted trials into an information, as the conclusion leaves them out.
pub(super) fn left_out(distorted: Finding) -> Finding {
    Finding {
        code: TRIALS_LEFT_OUT.name.to_owned(),
        severity: Severity::Info,
        text: format!("the conclusion leaves out invalid trials: {}", distorted.text),
        ..distorted
    }
}

/// Trials of one level whose goodputs differ by a smaller factor are alike.
const CLEARLY_MORE: f64 = 1.05;

/// The verdict on these trials.
///
/// An experiment stands on its valid trials. It is invalid where it has none. It is also invalid
/// where an invalid trial got clearly more than any of them: the most they show is then not the
/// target's most. Valid where no trial was made: nothing is claimed then.
pub fn verdict<'a>(trials: impl IntoIterator<Item = &'a TrialReport>) -> Verdict {
    let trials: Vec<&TrialReport> = trials.into_iter().collect();
    pooled_verdict(trials.iter().map(|t| (t.verdict, t.successes_per_s())))
}

/// [`verdict`] from each trial's verdict and its goodput.
fn pooled_verdict(trials: impl Iterator<Item = (Verdict, f64)> + Clone) -> Verdict {
    let most = |verdict: Verdict| {
        trials.clone().filter(|(v, _)| *v == verdict).map(|(_, per_s)| per_s).reduce(f64::max)
    };
    match (most(Verdict::Valid), most(Verdict::Invalid)) {
        (_, None) => Verdict::Valid,
        (Some(valid), Some(invalid)) if invalid <= valid * CLEARLY_MORE => Verdict::Valid,
        _ => Verdict::Invalid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_it_ended_says_what_and_what_next() {
        let gone = unreachable("cannot connect to 127.0.0.1:9: connection refused");
        assert!(gone.text.contains("reached: cannot connect to"), "{gone:?}");
        let lost = fleet_lost("agent a1 is lost: no sign of it for 10 s");
        assert!(!lost.text.contains("target") && lost.is(FLEET_LOST), "{lost:?}");
        let stopped = stopped_early("nothing answers", None);
        assert_eq!(stopped.severity, Severity::Error);
        assert!(stopped.next_step.contains("-n 1"), "{stopped:?}");
        let advised = stopped_early("nothing answers", Some("ask".to_owned()));
        assert_eq!(advised.next_step, "ask");
        let cut = interrupted(1);
        assert!(cut.text.contains("1 trial,") && is_interruption(&cut), "{cut:?}");
        assert!(!is_interruption(&left_out(gone)));
    }

    #[test]
    fn the_verdict_is_that_of_the_trials_it_stands_on() {
        use Verdict::{Invalid, Valid};
        let cases = [
            ("nothing was run", &[][..], Valid),
            ("one valid trial", &[(Valid, 100.0)], Valid),
            ("one invalid trial", &[(Invalid, 100.0)], Invalid),
            ("one below", &[(Valid, 100.0), (Invalid, 50.0)], Valid),
            ("one alike", &[(Invalid, 104.0), (Valid, 100.0)], Valid),
            ("one above", &[(Valid, 100.0), (Invalid, 110.0)], Invalid),
        ];
        for (name, trials, expected) in cases {
            assert_eq!(pooled_verdict(trials.iter().copied()), expected, "{name}");
        }
    }
}
