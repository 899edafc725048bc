//! A plan of sessions while it is put together, and the names in it.

use super::ScenarioInputs;
use super::fault::{Position, Read, bail};
use super::fields::one_or_more;
use super::names::{Names, TemplateScope};
use super::target::TargetOrigins;
use super::tree::{Entry, Node, Value};
use knee_load::quantity::quoted;
use knee_load::session::{Instruction, Repetition, SessionPlan};
use knee_load::spec::HttpRequest;
use std::collections::HashMap;

/// The most variables of a session.
const VARIABLES_MAX: usize = 1_000;
/// The keys that name a method.
pub(super) const METHODS: [&str; 7] = ["get", "post", "put", "patch", "delete", "head", "options"];

/// The keys that only a request has.
pub(super) const OF_REQUESTS: &str = "name exec gives headers json form multipart body body_file \
                                      expect extract redirects timeout on_failure messages \
                                      message_count end_message message_timeout stream_api";

/// The largest weight.
pub(super) const WEIGHT_MAX: u64 = 1_000_000;
/// The longest name.
pub(super) const NAME_MAX: usize = 200;

/// What holds for all requests.
pub(super) struct RequestDefaults<'a> {
    pub(super) headers: &'a [Entry],
    pub(super) redirects: u32,
}

/// Makes a plan of sessions.
pub(super) struct PlanBuilder<'a> {
    pub(super) inputs: &'a mut dyn ScenarioInputs,
    pub(super) origins: &'a TargetOrigins,
    pub(super) common: RequestDefaults<'a>,
    pub(super) requests: Vec<HttpRequest>,
    pub(super) plan: SessionPlan,
    pub(super) bytes: usize,
    /// The names of the variables of `setup`.
    pub(super) given: Vec<String>,
}

/// A session that is being read.
#[derive(Default)]
pub(super) struct SessionDraft {
    pub(super) number: u16,
    pub(super) names: Names,
    pub(super) data: Vec<u16>,
    pub(super) program: Vec<Instruction>,
    pub(super) repetitions: Vec<Repetition>,
    /// How often a step had this name.
    pub(super) step_names: HashMap<String, u32>,
    pub(super) has_request: bool,
    /// Values for others may be all that it is for.
    pub(super) may_only_set: bool,
    /// It is within a branch of several.
    pub(super) is_branch: bool,
}

impl PlanBuilder<'_> {
    pub(super) fn scope<'b>(&'b mut self, names: &'b Names) -> TemplateScope<'b> {
        TemplateScope { names, inputs: &mut *self.inputs }
    }
}

impl SessionDraft {
    /// The name, with a number where another step has it.
    pub(super) fn unique(&mut self, name: String) -> String {
        let mut unique = name.clone();
        let mut count = self.step_names.get(&name).copied().unwrap_or(0);
        while self.step_names.contains_key(&unique) {
            count += 1;
            unique = format!("{name} ({})", count + 1);
        }
        self.step_names.insert(unique.clone(), 0);
        self.step_names.insert(name, count);
        unique
    }
}

/// A name that fits on a line of a report.
pub(super) fn check_name(name: &str, at: Position) -> Read<()> {
    let is_plain = !name.trim().is_empty() && !name.chars().any(char::is_control);
    if is_plain && name.chars().count() <= NAME_MAX {
        Ok(())
    } else {
        bail!(at, "{} is no name: expected one line of 1 to {NAME_MAX} characters", quoted(name))
    }
}

/// Takes up the variables that these steps set.
pub(super) fn foresee(steps: &Node, names: &mut Names, are_known: bool) -> Read<()> {
    let Value::List(steps) = &steps.value else {
        return Ok(());
    };
    for step in steps {
        let Value::Map(entries) = &step.value else {
            continue;
        };
        for entry in entries {
            match (&*entry.key, &entry.value.value) {
                ("steps" | "else" | "choose" | "parallel", _) => {
                    foresee(&entry.value, names, are_known)?
                }
                ("gives", Value::List(_) | Value::Scalar(_)) => {
                    for node in one_or_more(&entry.value) {
                        if let Some(name) = node.scalar() {
                            variable_of(&name.text, node.at, names, are_known)?;
                        }
                    }
                }
                ("extract" | "set", Value::Map(variables)) => {
                    for variable in variables {
                        variable_of(&variable.key, variable.at, names, are_known)?;
                    }
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// The number of a variable, which may have a value from now on if it `is_known`.
pub(super) fn variable_of(
    name: &str,
    at: Position,
    names: &mut Names,
    is_known: bool,
) -> Read<u16> {
    let variables = &mut names.variables;
    if let Some(number) = variables.iter().position(|(other, _)| other == name) {
        variables[number].1 |= is_known;
        return Ok(number as u16);
    }
    if variables.len() >= VARIABLES_MAX {
        bail!(at, "too many variables: expected at most {VARIABLES_MAX} in a session");
    }
    variables.push((name.to_owned(), is_known));
    Ok((variables.len() - 1) as u16)
}
