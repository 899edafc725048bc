//! Findings about trials of datagrams.

mod ends;
mod ledger;
mod places;
#[cfg(test)]
mod tests;

pub(super) use ends::buffer_covers_ns;

use crate::experiment::udp::explain::BUDGET_CODES;
use crate::experiment::udp::pool;
use crate::finding::{Code, Finding, gravest_first};
use crate::trial::datagrams::LedgerReport;
use crate::trial::findings::distorted;
use crate::trial::report::TrialReport;
use crate::trial::validity::Clause;
use crate::words::{exact, levels, list};
use knee_load::experiment::udp::DropPlace;
use knee_load::spec::Level;

/// All kinds of findings of `knee udp`.
pub(super) fn codes() -> Vec<Code> {
    [places::CODES, ends::CODES, ledger::CODES, BUDGET_CODES].concat()
}

/// The name of the finding about losses at a place.
pub(super) fn code_at(place: DropPlace) -> &'static str {
    let code = match place {
        DropPlace::ReceiveBuffer => ends::RECEIVE_BUFFER_OVERFLOW,
        DropPlace::Service => ends::VANISHED,
        _ => places::code_and_next_step(place).map_or(places::BETWEEN_HOSTS, |(code, _)| code),
    };
    code.name
}

/// What a person should know about these trials of datagrams, the gravest first. Where there are
/// several kinds of clients, each kind has findings of its own, which name it by its label. They
/// have the figures of all its trials together.
pub fn datagram_findings(trials: &[&TrialReport]) -> Vec<Finding> {
    findings(trials, false)
}

/// As [`datagram_findings`], for a report that has an explanation: no next step leads to it.
pub fn explained_findings(trials: &[&TrialReport]) -> Vec<Finding> {
    findings(trials, true)
}

fn findings(trials: &[&TrialReport], is_explained: bool) -> Vec<Finding> {
    let mut kinds: Vec<(&String, Vec<&TrialReport>)> = Vec::new();
    for trial in trials {
        match kinds.iter_mut().find(|(label, _)| **label == trial.label) {
            Some((_, known)) => known.push(trial),
            None => kinds.push((&trial.label, vec![trial])),
        }
    }
    let is_one = kinds.len() == 1;
    let mut findings: Vec<Finding> = Vec::new();
    for (label, trials) in kinds {
        let named = |f: Finding| {
            if is_one { f } else { Finding { text: format!("with {label}: {}", f.text), ..f } }
        };
        findings.extend(troubles(&trials, is_explained).into_iter().map(named));
    }
    findings.extend(generator_distorted(trials));
    gravest_first(&mut findings);
    findings
}

/// What makes trials invalid, but for what the generator being too slow says as well.
fn generator_distorted(trials: &[&TrialReport]) -> Option<Finding> {
    let (mut at, mut clauses): (Vec<Level>, Vec<String>) = Default::default();
    for trial in trials {
        let is_said = ends::limited(&[trial]).is_some();
        let others = trial.clauses().filter(|(c, _)| !(is_said && *c == Some(Clause::FellBehind)));
        let known = clauses.len();
        clauses.extend(others.map(|(_, text)| text.to_owned()));
        if clauses.len() > known && !at.contains(&trial.level) {
            at.push(trial.level);
        }
    }
    let place = || match trials.len() {
        1 => String::new(),
        _ => format!("at {}: ", levels(&at)),
    };
    let lighter = ", or send less: a lower --rate or fewer --clients";
    (!clauses.is_empty()).then(|| distorted(&place(), &clauses, lighter))
}

/// All that is the matter with these trials of one kind of clients.
fn troubles(trials: &[&TrialReport], is_explained: bool) -> Vec<Finding> {
    let Some(datagrams) = pool::datagrams(trials) else {
        return Vec::new();
    };
    let (l, d) = (&pool::ledger(trials), &datagrams);
    let single = [
        ends::vanished(l, d),
        ends::receive_buffer(l, d, is_explained),
        // An explanation says itself what is a cause.
        ends::saturated(d).filter(|_| !is_explained),
        ends::paused(l, d).filter(|_| !is_explained),
        ends::send_errors(l, d),
        ends::limited(trials),
        ledger::discarded(l, d),
        ledger::unexplained(trials),
        ledger::reordering(l, d),
        ledger::duplicates(l, d),
        places::host_wide(l),
    ];
    places::lost(l, d).into_iter().chain(single.into_iter().flatten()).collect()
}

fn percent_of(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

fn lost_at(ledger: &LedgerReport, place: DropPlace) -> u64 {
    ledger.lost.get(place.name()).copied().unwrap_or(0)
}

/// `1 datagram`, `12,345 datagrams`.
fn datagrams(n: u64) -> String {
    let noun = if n == 1 { "datagram" } else { "datagrams" };
    format!("{} {noun}", exact(n as f64))
}

fn was(n: u64) -> &'static str {
    if n == 1 { "was" } else { "were" }
}

/// Counts by name: `EPERM 21 and EAGAIN 9`.
fn by_name<'a>(counts: impl IntoIterator<Item = (&'a String, &'a u64)>) -> String {
    let each = counts.into_iter();
    let each = each.map(|(name, n)| format!("{} {}", name.replace('_', " "), exact(*n as f64)));
    list(&each.collect::<Vec<String>>())
}
