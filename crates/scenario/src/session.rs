//! Sessions: steps that lie in one another become a program that knows no names.

use super::fault::{Position, Read, bail, fault, unknown};
use super::fields::{Fields, duration, named, one_or_more, parsed, text, whole, word};
use super::messages;
use super::names::{Names, TemplateScope};
use super::request::{CompiledRequest, RequestDraft, redirected};
use super::response::{Extract, expectations, extractions};
use super::schema::{self, STEP};
use super::target::TargetOrigin;
use super::tree::{Entry, Node, Value};
use super::{ScenarioInputs, condition, exec};
use knee_load::quantity::parse::quoted;
use knee_load::quantity::parse_law;
use knee_load::session::{
    Ask, DataSet, Extraction, Instruction, RequestStep, SessionKind, SessionPlan,
};
use knee_load::spec::HttpRequest;
use std::collections::HashMap;

/// The keys that name a method.
pub(super) const METHODS: [&str; 7] = ["get", "post", "put", "patch", "delete", "head", "options"];

/// The keys that only a request has.
pub(super) const OF_REQUESTS: &str = "name exec gives headers json form body body_file expect \
                                      extract redirects timeout on_failure messages \
                                      message_count end_message message_timeout";

/// The most kinds of sessions.
const KINDS_MAX: usize = 1_000;
/// The most requests of a scenario, those that follow redirections among them.
const REQUESTS_MAX: usize = 10_000;
/// The most bytes of all requests together, without files.
const BYTES_MAX: usize = 64 << 20;
/// The most variables of a session.
const VARIABLES_MAX: usize = 1_000;
/// The most repetitions of a session, and how often one is done at most.
const COUNTERS_MAX: usize = 1_000;
const TIMES_MAX: u64 = 1_000_000_000;
/// The most redirections that are followed.
const REDIRECTS_MAX: u64 = 50;
/// The largest weight.
const WEIGHT_MAX: u64 = 1_000_000;
/// The longest name.
const NAME_MAX: usize = 200;

/// What holds for all requests.
pub(super) struct RequestDefaults<'a> {
    pub(super) headers: &'a [Entry],
    pub(super) redirects: u32,
}

/// Makes a plan of sessions.
pub(super) struct PlanBuilder<'a> {
    pub(super) inputs: &'a mut dyn ScenarioInputs,
    pub(super) origin: &'a TargetOrigin,
    pub(super) common: RequestDefaults<'a>,
    pub(super) requests: Vec<HttpRequest>,
    pub(super) plan: SessionPlan,
    pub(super) bytes: usize,
}

/// A session that is being read.
struct SessionDraft {
    number: u16,
    names: Names,
    program: Vec<Instruction>,
    counters: usize,
    /// How often a step had this name.
    step_names: HashMap<String, u32>,
    has_request: bool,
}

/// Reads a number of redirections.
pub(super) fn redirects(node: Option<&Node>, default: u32) -> Read<u32> {
    let count = node.map(|node| whole(node, [0, REDIRECTS_MAX]));
    Ok(count.transpose()?.map_or(default, |count| count as u32))
}

impl PlanBuilder<'_> {
    fn scope<'b>(&'b mut self, names: &'b Names) -> TemplateScope<'b> {
        TemplateScope { names, inputs: &mut *self.inputs }
    }

    /// Reads `sessions`.
    pub(super) fn sessions(&mut self, node: &Node) -> Read<()> {
        let entries = named(node, "sessions: {NAME: {steps: [{get: /}]}}")?;
        if entries.is_empty() || entries.len() > KINDS_MAX {
            bail!(node.at, "no session, or too many: expected 1 to {KINDS_MAX}");
        }
        for (number, entry) in (0u16..).zip(entries) {
            check_name(&entry.key, entry.at)?;
            let kind = self.session(number, &entry.key, &entry.value)?;
            self.plan.kinds.push(kind);
        }
        Ok(())
    }

    fn session(&mut self, number: u16, name: &str, node: &Node) -> Read<SessionKind> {
        let fields = Fields::read(node, schema::SESSION)?;
        let weight = fields.read_key("weight", |node| whole(node, [1, WEIGHT_MAX]))?;
        let connections = [("keep", false), ("new", true)];
        let connection = fields.read_key("connection", |node| word(node, &connections))?;
        let data = fields.read_key("data", |node| dealt(node, &self.plan.data))?;
        let data = data.unwrap_or_default();
        let mut kind = SessionDraft {
            number,
            names: names(&data, &self.plan.data),
            program: Vec::new(),
            counters: 0,
            step_names: HashMap::new(),
            has_request: false,
        };
        let steps = fields.need("steps")?;
        foresee(steps, &mut kind.names, false)?;
        self.steps(steps, &mut kind)?;
        if !kind.has_request {
            bail!(
                steps.at,
                "the session {} sends nothing: expected a request, such as {{get: /}}",
                quoted(name)
            );
        }
        Ok(SessionKind {
            name: name.to_owned(),
            weight: weight.unwrap_or(1) as u32,
            data,
            program: kind.program,
            variables: kind.names.variables.len() as u16,
            counters: kind.counters as u16,
            new_connection: connection.unwrap_or(false),
        })
    }

    fn steps(&mut self, node: &Node, kind: &mut SessionDraft) -> Read<()> {
        let Value::List(steps) = &node.value else {
            let what = node.what();
            bail!(node.at, "steps are a list, not {what}: write '- get: /'");
        };
        if steps.is_empty() {
            bail!(node.at, "no step: write at least one, such as '- get: /'");
        }
        steps.iter().try_for_each(|step| self.step(step, kind))
    }

    fn step(&mut self, node: &Node, kind: &mut SessionDraft) -> Read<()> {
        let fields = Fields::read(node, STEP)?;
        let one = fields.one()?;
        refuse_other_keys(&fields, one)?;
        match &*one.key {
            "think" => {
                let law = parsed(&one.value, "a length of time such as exp(2s)", parse_law)?;
                kind.program.push(Instruction::Think(law));
                Ok(())
            }
            "repeat" => self.repeat(&fields, &one.value, kind),
            "when" => {
                let condition = condition::read(&one.value, &mut self.scope(&kind.names))?;
                let at = kind.program.len();
                kind.program.push(Instruction::Unless { condition, to: 0 });
                self.steps(fields.need("steps")?, kind)?;
                let end = kind.program.len() as u32;
                if let Some(Instruction::Unless { to, .. }) = kind.program.get_mut(at) {
                    *to = end;
                }
                Ok(())
            }
            _ => self.request(&fields, one, kind),
        }
    }

    fn repeat(&mut self, fields: &Fields<'_>, times: &Node, kind: &mut SessionDraft) -> Read<()> {
        let count = whole(times, [1, TIMES_MAX])? as u32;
        if kind.counters >= COUNTERS_MAX {
            bail!(fields.at, "too many repetitions: expected at most {COUNTERS_MAX} in a session");
        }
        let counter = kind.counters as u16;
        kind.counters += 1;
        let steps = fields.need("steps")?;
        // What a later step extracts, an earlier one has from the second time on.
        foresee(steps, &mut kind.names, true)?;
        kind.program.push(Instruction::Begin { counter, times: count });
        let to = kind.program.len() as u32;
        self.steps(steps, kind)?;
        kind.program.push(Instruction::Again { counter, to });
        Ok(())
    }

    fn request(&mut self, fields: &Fields<'_>, one: &Entry, kind: &mut SessionDraft) -> Read<()> {
        let method = one.key.to_uppercase();
        let asked = match &*one.key {
            "request" => Some(Fields::read(&one.value, schema::REQUEST)?),
            _ => None,
        };
        let (method, method_at, url) = match &asked {
            Some(asked) => {
                let node = asked.need("method")?;
                (
                    text(node, "a method such as PURGE")?.text.to_string(),
                    node.at,
                    asked.need("url")?,
                )
            }
            None => (method, one.at, &one.value),
        };
        let ask = exec::read(
            fields,
            &mut kind.names,
            &mut self.plan.programs,
            self.inputs,
            |name, node, names| variable_of(name, node.at, names, true),
        )?;
        let draft = RequestDraft {
            at: one.at,
            method: (&method, method_at),
            url,
            fields,
            common: self.common.headers,
        };
        let mut compiled = draft.compile(self.origin, &mut self.scope(&kind.names))?;
        compiled.request.messages = messages::read(fields)?;
        let name = step_name(fields, &method, url, kind)?;
        let mut step = self.what_is_done(fields, kind)?;
        step.name = name;
        step.ask = ask.map(|ask| Ask { waits: exec::waits(&ask, &compiled), ..ask });
        let number = self.register(&compiled, step, one.at)?;
        kind.program.push(Instruction::Request(number));
        kind.has_request = true;
        Ok(())
    }

    /// What is done with a request, but for its name and its fills.
    fn what_is_done(&mut self, fields: &Fields<'_>, kind: &mut SessionDraft) -> Read<RequestStep> {
        let scope = &mut self.scope(&kind.names);
        let expect = fields.read_key("expect", |node| expectations(node, scope))?;
        let extract = fields.read_key("extract", extractions)?.unwrap_or_default();
        let extract = extract.into_iter().map(|extract| known(extract, &mut kind.names));
        let ends = [("end", false), ("continue", true)];
        let goes_on = fields.read_key("on_failure", |node| word(node, &ends))?;
        Ok(RequestStep {
            kind: kind.number,
            expect: expect.unwrap_or_default(),
            extract: extract.collect::<Read<_>>()?,
            redirects: redirects(fields.get("redirects"), self.common.redirects)?,
            timeout: fields.read_key("timeout", duration)?,
            goes_on: goes_on.unwrap_or(false),
            ..RequestStep::default()
        })
    }

    /// Takes a request into the target and says its number there. Where redirections are followed,
    /// the request that does so is the next.
    fn register(
        &mut self,
        compiled: &CompiledRequest,
        step: RequestStep,
        at: Position,
    ) -> Read<u32> {
        let number = self.push(compiled, step.clone(), at)?;
        if step.redirects > 0 {
            let next = self.push(&redirected(compiled), step.redirected(), at)?;
            if let Some(step) = self.plan.requests.get_mut(number as usize) {
                step.redirected = Some(next);
            }
        }
        Ok(number)
    }

    fn push(&mut self, compiled: &CompiledRequest, step: RequestStep, at: Position) -> Read<u32> {
        let CompiledRequest { request, fills } = compiled;
        let number = self.requests.len();
        let headers = request.headers.iter().map(|(name, value)| name.len() + value.len());
        let own_body = if request.body.len() > 1 << 20 { 0 } else { request.body.len() };
        self.bytes += request.path.len() + headers.sum::<usize>() + own_body;
        if number >= REQUESTS_MAX || self.bytes > BYTES_MAX {
            bail!(
                at,
                "the scenario is too large here: expected at most {REQUESTS_MAX} requests, of \
                        {} MiB together",
                BYTES_MAX >> 20
            );
        }
        self.requests.push(request.clone());
        let fills = fills.clone();
        self.plan.requests.push(RequestStep { fills, ..step });
        Ok(number as u32)
    }
}

/// The data sets that a session is dealt records of, by their numbers.
fn dealt(node: &Node, all: &[DataSet]) -> Read<Vec<u16>> {
    let mut data = Vec::new();
    for node in one_or_more(node) {
        let name = &text(node, "the name of a set of records")?.text;
        let Some(number) = all.iter().position(|set| *set.name == **name) else {
            let known = all.iter().map(|set| set.name.as_str());
            return fault(node.at, unknown("set of records", name, known));
        };
        if data.contains(&(number as u16)) {
            bail!(node.at, "{} stands here twice: leave one out", quoted(name));
        }
        data.push(number as u16);
    }
    Ok(data)
}

fn names(data: &[u16], all: &[DataSet]) -> Names {
    let sets = data.iter().filter_map(|&number| all.get(usize::from(number)));
    Names {
        variables: Vec::new(),
        data: sets.map(|set| (set.name.clone(), set.columns.clone())).collect(),
        all_data: all.iter().map(|set| set.name.clone()).collect(),
        is_static: false,
    }
}

fn refuse_other_keys(fields: &Fields<'_>, one: &Entry) -> Read<()> {
    let is_request = METHODS.contains(&&*one.key) || &*one.key == "request";
    let has_steps = matches!(&*one.key, "repeat" | "when");
    let fits = |key: &str| {
        key == &*one.key
            || (is_request && OF_REQUESTS.split(' ').any(|of_request| of_request == key))
            || (has_steps && key == "steps")
    };
    match fields.entries().find(|entry| !fits(&entry.key)) {
        None => Ok(()),
        Some(other) if &*other.key == "steps" => {
            bail!(other.at, "'steps' belongs to 'repeat' or 'when': write one of them beside it")
        }
        Some(other) => {
            let (key, other_key) = (&one.key, &other.key);
            bail!(
                other.at,
                "'{other_key}' belongs to a request, and this step has '{key}': leave it out"
            )
        }
    }
}

/// The name of a step, which no other request of its kind of session has.
fn step_name(
    fields: &Fields<'_>,
    method: &str,
    url: &Node,
    kind: &mut SessionDraft,
) -> Read<String> {
    let name = match fields.get("name") {
        Some(node) => {
            let name = &text(node, "the name of a step")?.text;
            check_name(name, node.at)?;
            name.to_string()
        }
        None => {
            let url = text(url, "a path")?.text.trim();
            let place = url
                .split_once("://")
                .map_or(url, |(_, rest)| rest.find(['/', '?']).map_or("/", |at| &rest[at..]));
            format!("{method} {place}").chars().take(NAME_MAX).collect()
        }
    };
    let mut unique = name.clone();
    let mut count = kind.step_names.get(&name).copied().unwrap_or(0);
    while kind.step_names.contains_key(&unique) {
        count += 1;
        unique = format!("{name} ({})", count + 1);
    }
    kind.step_names.insert(unique.clone(), 0);
    kind.step_names.insert(name, count);
    Ok(unique)
}

/// A name that fits on a line of a report.
fn check_name(name: &str, at: Position) -> Read<()> {
    let is_plain = !name.trim().is_empty() && !name.chars().any(char::is_control);
    if is_plain && name.chars().count() <= NAME_MAX {
        Ok(())
    } else {
        bail!(at, "{} is no name: expected one line of 1 to {NAME_MAX} characters", quoted(name))
    }
}

/// Takes up the variables that the requests among these steps set.
fn foresee(steps: &Node, names: &mut Names, are_known: bool) -> Read<()> {
    let Value::List(steps) = &steps.value else {
        return Ok(());
    };
    for step in steps {
        let Value::Map(entries) = &step.value else {
            continue;
        };
        for entry in entries {
            match (&*entry.key, &entry.value.value) {
                ("steps", _) => foresee(&entry.value, names, are_known)?,
                ("gives", Value::List(_) | Value::Scalar(_)) => {
                    for node in one_or_more(&entry.value) {
                        if let Some(name) = node.scalar() {
                            variable_of(&name.text, node.at, names, are_known)?;
                        }
                    }
                }
                ("extract", Value::Map(variables)) => {
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
fn variable_of(name: &str, at: Position, names: &mut Names, is_known: bool) -> Read<u16> {
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

fn known(extract: Extract<'_>, names: &mut Names) -> Read<Extraction> {
    Ok(Extraction {
        name: extract.entry.key.to_string(),
        variable: variable_of(&extract.entry.key, extract.entry.at, names, true)?,
        source: extract.source,
        otherwise: extract.otherwise,
    })
}
