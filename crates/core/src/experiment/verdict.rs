//! The verdict on an experiment of several trials.

use crate::trial::report::{TrialReport, Verdict};

/// Trials of one level whose goodputs differ by a smaller factor are alike.
const CLEARLY_MORE: f64 = 1.05;

/// The verdict on these trials.
///
/// An experiment stands on its valid trials. It is invalid where it has none. It is also invalid
/// where an invalid trial got clearly more than any of them: the most they show is then not the
/// target's most. Valid where no trial was made: nothing is claimed then.
pub fn verdict<'a>(trials: impl IntoIterator<Item = &'a TrialReport>) -> Verdict {
    let trials: Vec<&TrialReport> = trials.into_iter().collect();
    of_pairs(trials.iter().map(|t| (t.verdict, t.successes_per_s())))
}

/// The same of each trial's verdict and a figure whose maximum counts, such as throughput.
fn of_pairs(trials: impl Iterator<Item = (Verdict, f64)> + Clone) -> Verdict {
    let most = |verdict: Verdict| {
        let such = trials.clone().filter(|(v, _)| *v == verdict);
        such.map(|(_, per_s)| per_s).reduce(f64::max)
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
            assert_eq!(of_pairs(trials.iter().copied()), expected, "{name}");
        }
    }
}
