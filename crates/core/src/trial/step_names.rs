//! Names of steps and of kinds of sessions.

use knee_load::measure::TARGETS_MAX;
use knee_load::session::SessionPlan;
use knee_load::spec::Target;
use std::collections::BTreeMap;

/// Names of the steps and the kinds of sessions of a target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionNames {
    /// Each step by the number of its request, no two alike; `None` of requests that are of
    /// another step.
    pub steps: Vec<Option<String>>,
    /// Each kind of session by its number.
    pub kinds: Vec<String>,
}

impl SessionNames {
    /// The names for a target; empty where operations are no steps.
    pub fn of(target: &Target) -> SessionNames {
        let Some(plan) = target.sessions.as_deref() else {
            return SessionNames::default();
        };
        let numbers = 0..plan.requests.len().min(TARGETS_MAX) as u32;
        let names = numbers.map(|number| {
            let is_sum = number as usize + 1 == TARGETS_MAX && plan.requests.len() > TARGETS_MAX;
            if is_sum {
                Some("other steps".to_owned())
            } else {
                (!plan.is_unlisted(number)).then(|| step_name(plan, number))
            }
        });
        let mut seen = BTreeMap::new();
        let steps = names.map(|name| name.map(|name| distinct(name, &mut seen)));
        SessionNames {
            steps: steps.collect(),
            kinds: plan.kinds_of_load().map(|(_, kind)| kind.name.clone()).collect(),
        }
    }
}

/// The name itself where it is the first of its kind, or else with its place among them.
pub(crate) fn distinct(name: String, seen: &mut BTreeMap<String, usize>) -> String {
    let place = seen.entry(name.clone()).or_default();
    *place += 1;
    match *place {
        1 => name,
        place => format!("{name} ({place})"),
    }
}

/// The name of a step, after that of its session where there are several.
pub(super) fn step_name(plan: &SessionPlan, request: u32) -> String {
    let Some(step) = plan.requests.get(request as usize) else {
        return String::new();
    };
    if plan.script.is_some() {
        // Functions may share rows.
        return step.name.clone();
    }
    name_in_session(plan, step.kind, &step.name)
}

/// A name, after that of its session where there are several.
pub(super) fn name_in_session(plan: &SessionPlan, kind: u16, name: &str) -> String {
    match plan.kinds.get(usize::from(kind)) {
        Some(kind) if plan.kinds_of_load().count() > 1 => format!("{}: {name}", kind.name),
        _ => name.to_owned(),
    }
}
