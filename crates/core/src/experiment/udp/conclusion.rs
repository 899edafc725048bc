//! What a report asks of the conclusion of `knee udp`, and whether that agrees with all else.

use super::findings::CODES;
use super::report::UdpConclusion;
use crate::consistency::{Contradictions, Said, trial};
use crate::experiment::answer::{Answer, values};
use crate::finding::Code;
use crate::trial::report::TrialReport;
use serde_json::Value;

impl Answer for UdpConclusion {
    fn codes() -> &'static [Code] {
        CODES
    }

    fn cut_short(&mut self, _trial: &TrialReport, words: String) {
        self.answer = words;
    }

    fn rows(&self) -> usize {
        self.laws.iter().filter(|law| law.trials > 0).count()
    }

    fn table(&self) -> serde_json::Result<Vec<Value>> {
        values(&self.laws)
    }

    /// All whose clients were as asked for, with nothing changed to explain them.
    fn judged<'a>(&self, trials: &'a [TrialReport]) -> Vec<&'a TrialReport> {
        let is_asked = |t: &&TrialReport| self.laws.iter().any(|law| law.label == t.label);
        trials.iter().filter(is_asked).collect()
    }

    fn operation(&self) -> &'static str {
        "datagram"
    }

    fn fails_on_purpose(&self) -> bool {
        !self.effects.is_empty()
    }

    fn check(&self, _said: Said<'_>, found: &mut Contradictions) {
        check(self, found);
    }
}

fn check(of: &UdpConclusion, found: &mut Contradictions) {
    for law in &of.laws {
        found.within(&law.label, |found| {
            trial::ledger(&law.ledger, found);
            found.interval("sent per second", Some(law.sent_per_s), law.sent_ci95_per_s);
            found.unless((0.0..=100.0).contains(&law.loss_percent), || {
                format!("{} % lost", law.loss_percent)
            });
            let missing = law.ledger.lost.values().sum::<u64>() as i64 + law.ledger.unexplained;
            found.unless(missing <= 0 || law.loss_percent > 0.0, || {
                format!("{missing} lost, and {} %", law.loss_percent)
            });
        });
    }
    once_each(of, found);
}

/// An explanation is supported, ruled out or undecided: one of them.
fn once_each(of: &UdpConclusion, found: &mut Contradictions) {
    let lists = [&of.supported, &of.ruled_out, &of.undecided];
    let mut names: Vec<&str> = lists
        .iter()
        .flat_map(|list| list.iter())
        .filter_map(|line| line.split(':').next())
        .collect();
    names.sort_unstable();
    for pair in names.windows(2) {
        found.unless(pair[0] != pair[1], || format!("`{}` twice", pair[0]));
    }
}
