//! The conclusion in one paragraph.

use super::effects::Effect;
use super::judge::{Evidence, Hypothesis, Judged, Standing};
use crate::experiment::udp::laws::{in_words, lost_where};
use crate::experiment::udp::report::LawRow;
use crate::words::list;

/// Changes that made things worse, of which the answer names so many.
const WORSE_MAX: usize = 3;

/// The answer for a person: what both did, where it was lost, and which causes are supported. What
/// decided, and what was ruled out, the explanations themselves say. `worse` are the changes with
/// which more was lost, with what they did.
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
    let at = lost_where(&evidence.trials);
    if evidence.has_loss() && !at.is_empty() {
        sentences.push(format!("{} That is where, not why.", at.trim_start()));
    }
    let supported = || judged.iter().filter(|j| j.standing == Standing::Supported);
    let causes = supported().filter(|j| j.hypothesis != Hypothesis::ReceiveBuffer);
    let causes: Vec<&str> = causes.map(|j| j.hypothesis.claim()).collect();
    if !causes.is_empty() {
        sentences.push(format!("The data support: {}.", causes.join("; ")));
    }
    if !evidence.has_loss() {
        sentences.extend(without_loss(&made, worse));
    } else if !supported().any(|j| j.hypothesis.is_of_loss()) {
        let label = &evidence.spec.label;
        sentences.push(format!("The data support no cause of what {label} lost."));
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
