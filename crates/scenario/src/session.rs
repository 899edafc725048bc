//! Sessions: steps that lie in one another become a program that knows no names.

use super::draft::{NAME_MAX, PlanBuilder, SessionDraft, WEIGHT_MAX, check_name, foresee};
use super::exec;
use super::fault::{Position, Read, bail, fault, unknown};
use super::fields::{Fields, duration, named, one_or_more, parsed, text, whole, word};
use super::flow::refuse_other_keys;
use super::messages;
use super::names::Names;
use super::request::{CompiledRequest, RequestDraft, redirected};
use super::response::{expectations, extractions};
use super::schema::{self, STEP};
use super::tree::{Entry, Node, Value};
use knee_load::quantity::{parse_law, quoted};
use knee_load::session::{Ask, DataSet, Instruction, Redirected, RequestStep, SessionKind};

/// The most kinds of sessions.
const KINDS_MAX: usize = 1_000;
/// The most requests of a scenario, those that follow redirections among them.
const REQUESTS_MAX: usize = 10_000;
/// The most bytes of all requests together, without files.
const BYTES_MAX: usize = 64 << 20;
/// The most redirections that are followed.
const REDIRECTS_MAX: u64 = 50;

/// Reads a number of redirections.
pub(super) fn redirects(node: Option<&Node>, default: u32) -> Read<u32> {
    let count = node.map(|node| whole(node, [0, REDIRECTS_MAX]));
    Ok(count.transpose()?.map_or(default, |count| count as u32))
}

impl PlanBuilder<'_> {
    /// Reads `sessions`, and what is done before and after them.
    pub(super) fn sessions(
        &mut self,
        node: &Node,
        [setup, teardown]: [Option<&Node>; 2],
    ) -> Read<()> {
        let entries = named(node, "sessions: {NAME: {steps: [{get: /}]}}")?;
        if entries.is_empty() || entries.len() > KINDS_MAX {
            bail!(node.at, "no session, or too many: expected 1 to {KINDS_MAX}");
        }
        // Names of what the setup gives are known before all others are read.
        let after = entries.len() as u16;
        let setup = setup.map(|steps| self.once(after, "setup", steps)).transpose()?;
        if let Some(kind) = &setup {
            self.plan.setup = Some(after);
            self.given.clone_from(&kind.variables);
        }
        for (number, entry) in (0u16..).zip(entries) {
            check_name(&entry.key, entry.at)?;
            let kind = self.session(number, &entry.key, &entry.value)?;
            self.plan.kinds.push(kind);
        }
        self.plan.kinds.extend(setup);
        if let Some(steps) = teardown {
            let number = self.plan.kinds.len() as u16;
            let kind = self.once(number, "teardown", steps)?;
            self.plan.kinds.push(kind);
            self.plan.teardown = Some(number);
        }
        Ok(())
    }

    /// Steps that are done once.
    fn once(&mut self, number: u16, name: &str, steps: &Node) -> Read<SessionKind> {
        let kind = SessionDraft { may_only_set: name == "setup", ..self.draft(number, Vec::new()) };
        Ok(SessionKind { weight: 0, ..self.kind(kind, name, steps)? })
    }

    fn session(&mut self, number: u16, name: &str, node: &Node) -> Read<SessionKind> {
        let fields = Fields::read(node, schema::SESSION)?;
        let weight = fields.read_key("weight", |node| whole(node, [1, WEIGHT_MAX]))?;
        let connections = [("keep", false), ("new", true)];
        let connection = fields.read_key("connection", |node| word(node, &connections))?;
        let data = fields.read_key("data", |node| dealt(node, &self.plan.data))?;
        let kind = self.draft(number, data.unwrap_or_default());
        Ok(SessionKind {
            weight: weight.unwrap_or(1) as u32,
            new_connection: connection.unwrap_or(false),
            ..self.kind(kind, name, fields.need("steps")?)?
        })
    }

    fn draft(&self, number: u16, data: Vec<u16>) -> SessionDraft {
        let all = &self.plan.data;
        let sets = data.iter().filter_map(|&number| all.get(usize::from(number)));
        let names = Names {
            data: sets.map(|set| (set.name.clone(), set.columns.clone())).collect(),
            all_data: all.iter().map(|set| set.name.clone()).collect(),
            setup: self.given.clone(),
            ..Names::default()
        };
        SessionDraft { number, names, data, ..SessionDraft::default() }
    }

    fn kind(&mut self, mut kind: SessionDraft, name: &str, steps: &Node) -> Read<SessionKind> {
        foresee(steps, &mut kind.names, false)?;
        self.steps(steps, &mut kind)?;
        if !kind.has_request && !kind.may_only_set {
            bail!(
                steps.at,
                "the session {} sends nothing: expected a request, such as {{get: /}}",
                quoted(name)
            );
        }
        Ok(SessionKind {
            name: name.to_owned(),
            weight: 1,
            data: kind.data,
            program: kind.program,
            variables: kind.names.variables.into_iter().map(|(name, _)| name).collect(),
            repetitions: kind.repetitions,
            new_connection: false,
        })
    }

    pub(super) fn steps(&mut self, node: &Node, kind: &mut SessionDraft) -> Read<()> {
        let Value::List(steps) = &node.value else {
            let what = node.what();
            bail!(node.at, "steps are a list, not {what}: write '- get: /'");
        };
        if steps.is_empty() {
            bail!(node.at, "no step: write at least one, such as '- get: /'");
        }
        steps.iter().try_for_each(|step| self.step(step, kind))
    }

    pub(super) fn step(&mut self, node: &Node, kind: &mut SessionDraft) -> Read<()> {
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
            "when" => self.when(&fields, &one.value, kind),
            "choose" => self.choose(&one.value, kind),
            "parallel" => self.parallel(&one.value, kind),
            "set" => self.set(&one.value, kind),
            "group" => self.group(&fields, &one.value, kind),
            _ => self.request(&fields, one, kind),
        }
    }

    fn request(&mut self, fields: &Fields<'_>, one: &Entry, kind: &mut SessionDraft) -> Read<()> {
        let (method, method_at, url) = if &*one.key == "request" {
            let asked = Fields::read(&one.value, schema::REQUEST)?;
            let node = asked.need("method")?;
            let method = text(node, "a method such as PURGE")?.text.to_string();
            (method, node.at, asked.need("url")?)
        } else {
            (one.key.to_uppercase(), one.at, &one.value)
        };
        let ask = exec::read(fields, &mut kind.names, &mut self.plan.programs, self.inputs)?;
        let draft = RequestDraft {
            at: one.at,
            method: (&method, method_at),
            url,
            fields,
            common: self.common.headers,
        };
        let mut compiled = draft.compile(self.origins, &mut self.scope(&kind.names))?;
        compiled.request.messages = messages::read(fields)?;
        let host = (compiled.server > 0).then_some(&*compiled.request.host);
        let name = step_name(fields, (&method, host), url, kind)?;
        let mut step = self.what_is_done(fields, kind)?;
        (step.name, step.server) = (name, compiled.server);
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
        let extract = fields.read_key("extract", |node| extractions(node, &mut kind.names))?;
        let ends = [("end", false), ("continue", true)];
        let goes_on = fields.read_key("on_failure", |node| word(node, &ends))?;
        Ok(RequestStep {
            kind: kind.number,
            expect: expect.unwrap_or_default(),
            extract: extract.unwrap_or_default(),
            redirects: redirects(fields.get("redirects"), self.common.redirects)?,
            timeout: fields.read_key("timeout", duration)?,
            goes_on: goes_on.unwrap_or(false),
            ..RequestStep::default()
        })
    }

    /// Takes a request into the target and says its number there. Where a value says to which
    /// target it goes, its variants for the others are the next. Then comes the request that
    /// follows redirections, with its variants.
    fn register(
        &mut self,
        compiled: &CompiledRequest,
        step: RequestStep,
        at: Position,
    ) -> Read<u32> {
        let number = self.requests.len() as u32;
        let follows = (step.redirects > 0).then(|| step.redirected());
        if compiled.leads {
            self.push_variants(step, at, |to| compiled.at(to))?;
        } else {
            self.push(compiled, step, at)?;
        }
        let Some(follows) = follows else {
            return Ok(number);
        };
        // Each variant has its own, as what is for its server alone stays there.
        for sent in number as usize..self.requests.len() {
            let server = self.plan.requests[sent].server;
            let compiled = CompiledRequest { server, ..compiled.clone() };
            let mut push = |as_get| {
                let first = self.requests.len() as u32;
                let variant = |to: (u16, &str)| redirected(&compiled, as_get, to);
                self.push_variants(follows.clone(), at, variant).map(|()| first)
            };
            let same = push(false)?;
            let get = if compiled.changes_to_get() { push(true)? } else { same };
            let is_post = compiled.request.method == "POST";
            self.plan.requests[sent].redirected = Some(Redirected { same, get, is_post });
        }
        Ok(number)
    }

    /// Takes a variant of a request for each target. The first stands for all.
    fn push_variants(
        &mut self,
        step: RequestStep,
        at: Position,
        to: impl Fn((u16, &str)) -> CompiledRequest,
    ) -> Read<()> {
        let first = self.requests.len() as u32;
        for (server, url) in self.origins.urls() {
            let variant_of = (server > 0).then_some(first);
            let step = RequestStep { server, variant_of, ..step.clone() };
            self.push(&to((server, url.host())), step, at)?;
        }
        Ok(())
    }

    fn push(&mut self, compiled: &CompiledRequest, step: RequestStep, at: Position) -> Read<()> {
        let CompiledRequest { request, fills, .. } = compiled;
        let number = self.requests.len();
        let headers = request.headers.iter().map(|(name, value)| name.len() + value.len());
        // What follows redirections has the same body, which is held once.
        let is_shared = self.requests.last().is_some_and(|last| last.body.shares(&request.body));
        let is_file = request.body.len() > 1 << 20;
        let own_body = if is_shared || is_file { 0 } else { request.body.len() };
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
        Ok(())
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

/// The name of a step, which no other request of its kind of session has.
fn step_name(
    fields: &Fields<'_>,
    (method, host): (&str, Option<&str>),
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
            let host = host.unwrap_or_default();
            format!("{method} {host}{place}").chars().take(NAME_MAX).collect()
        }
    };
    Ok(kind.unique(name))
}
