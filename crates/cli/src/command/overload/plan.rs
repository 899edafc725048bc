//! What is said before the load: how long it takes, and what was foreseen.

use knee_core::experiment::overload::{Descriptors, OverloadSpec};
use knee_core::finding::{Finding, Severity};
use knee_core::time::Nanos;

/// How many levels there are and how long they take.
pub fn told(spec: &OverloadSpec) -> String {
    let trials = spec.trials_max();
    let (levels, again) = match trials {
        1 => (1, ""),
        _ => (trials - 1, " and the base load again,"),
    };
    let is_open = spec.scheduled.is_none() && spec.descriptors == Descriptors::Auto;
    let at_most = if is_open { "at most " } else { "" };
    let each = spec.base.warmup + spec.base.duration;
    let total = Nanos(each.0.saturating_mul(trials as u64));
    let noun = if levels == 1 { "level" } else { "levels" };
    format!(
        "{at_most}{levels} {noun}{again} of {each} each: {at_most}{total}, and after each up to \
         {} for responses still to come",
        spec.base.timeout
    )
}

/// What was foreseen, in one line.
pub fn foreseen(finding: &Finding) -> String {
    let word = match finding.severity {
        Severity::Info => "note",
        Severity::Warning | Severity::Error => "warning",
    };
    let (text, remedy) = (&finding.text, &finding.next_step);
    match remedy.is_empty() {
        true => format!("{word}: {text}"),
        false => format!("{word}: {text}. Remedy: {remedy}"),
    }
}
