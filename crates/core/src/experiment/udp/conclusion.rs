//! The conclusion of `knee udp` as a report sees it, and its checks for contradictions.

use super::explain::{BUDGET_CODES, Hypothesis};
use super::findings::{self, code_at};
use super::laws::in_words;
use super::report::{LawRow, UdpConclusion};
use crate::consistency::{self, CheckedReport, ConsistencyCheck};
use crate::experiment::{Answer, values};
use crate::finding::Code;
use crate::trial::report::TrialReport;
use crate::words::exact;
use knee_load::experiment::udp::DropPlace;
use serde_json::Value;

impl Answer for UdpConclusion {
    fn codes() -> Vec<Code> {
        [findings::codes(), BUDGET_CODES.to_vec()].concat()
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
        trials.iter().filter(|t| self.laws.iter().any(|law| law.label == t.label)).collect()
    }

    fn operation(&self) -> &'static str {
        "datagram"
    }

    fn fails_on_purpose(&self) -> bool {
        !self.effects.is_empty()
    }

    fn check(&self, report: CheckedReport<'_>, check: &mut ConsistencyCheck) {
        for law in self.laws.iter().filter(|law| law.trials > 0) {
            check.within(&law.label, |check| check_law(law, &self.answer, check));
        }
        check_places(report, &self.laws, check);
        check_hypotheses(self, check);
    }
}

/// A row agrees with itself, and the answer says what it says.
fn check_law(law: &LawRow, answer: &str, check: &mut ConsistencyCheck) {
    consistency::ledger(&law.ledger, check);
    consistency::loss(law.loss_percent, &law.ledger, check);
    check.interval("sent per second", Some(law.sent_per_s), law.sent_ci95_per_s);
    let refused = law.received_per_s + law.dropped_per_s - law.sent_per_s;
    let is_sum = refused.abs() <= 1e-6 * law.sent_per_s.max(1.0);
    check.require(is_sum || (refused > 0.0 && law.ledger.send_errors > 0), || {
        format!(
            "{} sent per second, {} received, {} dropped",
            law.sent_per_s, law.received_per_s, law.dropped_per_s
        )
    });
    let words = in_words(law);
    check.require(answer.contains(&words), || format!("{words} The answer is: {answer}"));
}

/// There is a finding for each place of a loss, and for no other.
fn check_places(report: CheckedReport<'_>, laws: &[LawRow], check: &mut ConsistencyCheck) {
    for place in DropPlace::ALL {
        let code = code_at(place);
        let lost: u64 = laws.iter().filter_map(|law| law.ledger.lost.get(place.name())).sum();
        let lost = lost as f64;
        let findings = || report.findings.iter().filter(|f| f.code == code);
        let stated =
            findings().filter_map(|f| f.evidence.get("lost")).fold(0.0, |sum, lost| sum + lost);
        check.require(stated == lost, || {
            format!("{lost} lost at {}, and `{code}` states {stated}", place.name())
        });
        for finding in findings() {
            let lost = finding.evidence.get("lost").map(|n| exact(*n));
            check.require(lost.is_some_and(|n| finding.text.contains(&n)), || {
                format!("`{code}` does not say how many: {}", finding.text)
            });
        }
    }
}

/// Each explanation is supported, ruled out or undecided: exactly one of them. The answer names
/// those causes that are supported and no other.
fn check_hypotheses(udp: &UdpConclusion, check: &mut ConsistencyCheck) {
    let lists = [&udp.supported, &udp.ruled_out, &udp.undecided];
    if lists.iter().all(|list| list.is_empty()) {
        return;
    }
    for hypothesis in Hypothesis::ALL {
        let (name, claim) = (hypothesis.name(), hypothesis.claim());
        let ended = lists
            .map(|list| list.iter().filter(|line| line.split(':').next() == Some(name)).count());
        check.require(ended.iter().sum::<usize>() == 1, || {
            format!("`{name}` ended {ended:?} times as supported, ruled out, undecided")
        });
        let is_cause = ended[0] == 1 && hypothesis != Hypothesis::ReceiveBuffer;
        check.require(udp.answer.contains(claim) == is_cause, || {
            format!("`{name}` ended {ended:?}, and the answer is: {}", udp.answer)
        });
    }
}
