//! The conclusion in one paragraph.

use super::effects::Effect;
use super::judge::{Evidence, Hypothesis, Judged, Standing};
use crate::experiment::udp::laws::{in_words, lost_where};
use crate::experiment::udp::report::LawRow;
use crate::words::list;

/// Changes that made things worse, of which the answer names so many.
const WORSE_MAX: usize = 3;

/// The answer for a person: what both did, where it was lost, why, and what it is not. `worse` are
/// the changes that made more be lost, with what they did.
pub(super) fn answer(
    laws: &[LawRow],
    evidence: &Evidence,
    judged: &[Judged],
    worse: &[(String, Effect)],
) -> String {
    let made: Vec<&LawRow> = laws.iter().filter(|row| row.trials > 0).collect();
    if made.is_empty() {
        return "Nothing was measured.".to_owned();
    }
    let mut sentences: Vec<String> = made.iter().map(|row| in_words(row)).collect();
    let standing = |hypothesis| {
        let judged = judged.iter().find(|j| j.hypothesis == hypothesis);
        judged.filter(|j| j.standing == Standing::Supported)
    };
    if let Some(overhead) = standing(Hypothesis::PerSendOverhead) {
        sentences.push(format!(
            "The rate is what sending leaves: {}.",
            overhead.because
        ));
    }
    match evidence.has_loss() {
        true => sentences.extend(about_loss(evidence, judged)),
        false => sentences.extend(without_loss(&made, worse)),
    }
    sentences.join(" ")
}

fn without_loss(made: &[&LawRow], worse: &[(String, Effect)]) -> Vec<String> {
    let lost = made.iter().any(|row| row.dropped_per_s > 0.0);
    let nothing = match lost {
        true => "That is too little to need a cause on this machine.",
        false => "So there is no loss to explain on this machine.",
    };
    let worse: Vec<String> = worse
        .iter()
        .take(WORSE_MAX)
        .map(|(change, effect)| format!("{change} ({})", effect.lost()))
        .collect();
    let would = match worse.is_empty() {
        true => "No change that was tried made datagrams be lost either.".to_owned(),
        false => format!("What would make datagrams be lost here: {}.", list(&worse)),
    };
    vec![nothing.to_owned(), would]
}

fn about_loss(evidence: &Evidence, judged: &[Judged]) -> Vec<String> {
    // What tells where, and what tells of the rate, are no causes of a loss.
    let is_cause = |j: &&Judged| {
        !matches!(
            j.hypothesis,
            Hypothesis::ReceiveBuffer | Hypothesis::PerSendOverhead
        )
    };
    let such = |standing| -> Vec<&Judged> {
        let causes = judged.iter().filter(is_cause);
        causes.filter(|j| j.standing == standing).collect()
    };
    let claims = |of: &[&Judged]| -> Vec<String> {
        of.iter().map(|j| j.hypothesis.claim().to_owned()).collect()
    };
    let mut sentences = Vec::new();
    let at = lost_where(&evidence.trials);
    if !at.is_empty() {
        sentences.push(format!("{} That is where, not why.", at.trim_start()));
    }
    let supported = such(Standing::Supported);
    for cause in &supported {
        sentences.push(format!(
            "Supported: {} ({}).",
            cause.hypothesis.claim(),
            cause.because
        ));
    }
    if supported.is_empty() {
        let label = &evidence.spec.label;
        sentences.push(format!(
            "No cause of what {label} lost is supported by these data."
        ));
    }
    let ruled_out = such(Standing::RuledOut);
    if !ruled_out.is_empty() {
        sentences.push(format!(
            "Ruled out: that {}.",
            claims(&ruled_out).join("; that ")
        ));
    }
    let open = such(Standing::Undecided);
    if !open.is_empty() {
        sentences.push(format!(
            "Left open: whether {}.",
            claims(&open).join("; whether ")
        ));
    }
    sentences
}
