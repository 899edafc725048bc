//! Requests from any source come together here: bounded, each fit for a scenario.

mod request;

use super::model::*;
use super::text::ImportedText;
use super::url::{ImportedTarget, split};
use super::{Imported, error};
use crate::names::is_name;
use knee_load::quantity::ParseError;
use knee_load::quantity::parse_law;
use knee_load::session::Deal;
use knee_load::shown::shown;
use knee_load::spec::Url;
use knee_load::time::Nanos;
use std::collections::HashSet;

/// The most steps of all sessions together, and how deep they lie in one another.
const STEPS_MAX: usize = 1_000;
const DEPTH_MAX: usize = 8;
/// The most variables of a session.
const VARIABLES_MAX: usize = 900;
/// The largest body, in bytes.
const BODY_MAX: usize = 1 << 20;
/// The largest sum of all bodies.
const BODIES_MAX: usize = 8 << 20;
/// The most lines about what was left out.
const LEFT_OUT_MAX: usize = 200;
/// No line about it is longer, in characters.
const LINE_MAX: usize = 300;

pub(super) const FORM: &str = "application/x-www-form-urlencoded";

/// A request as its source has it.
#[derive(Clone, Debug, Default)]
pub(super) struct SourceRequest {
    pub(super) method: String,
    /// A whole URL, or a path of the target.
    pub(super) url: ImportedText,
    pub(super) name: Option<String>,
    pub(super) headers: Vec<(String, ImportedText)>,
    /// The body as it is sent, which becomes `json` or `form` if its type says so.
    pub(super) body: Vec<u8>,
    /// The body where there are no such bytes.
    pub(super) content: ImportedBody,
    /// Sessions keep cookies themselves: those of a recording are left out.
    pub(super) drops_cookies: bool,
    pub(super) redirects: u32,
    pub(super) goes_on: bool,
    pub(super) timeout: Option<Nanos>,
    pub(super) expect: ImportedExpect,
    pub(super) extract: Vec<ImportedExtract>,
}

impl SourceRequest {
    /// Adds a header.
    pub(super) fn header(&mut self, name: &str, value: impl Into<ImportedText>) {
        self.headers.push((name.to_owned(), value.into()));
    }

    pub(super) fn has_header(&self, name: &str) -> bool {
        let mut headers = self.headers.iter();
        headers.any(|(other, _)| other.eq_ignore_ascii_case(name))
    }

    /// Sends pairs of a form: `a=1`, percent-encoded.
    pub(super) fn form(&mut self, pairs: &[String]) {
        self.body = pairs.join("&").into_bytes();
        self.header("Content-Type", FORM);
    }
}

/// What was read of a source so far.
#[derive(Debug, Default)]
pub(super) struct Collector {
    /// The servers that requests go to. Paths alone are of the first.
    targets: Vec<ImportedTarget>,
    /// The steps that are collected now, and those around them that are not at their end.
    steps: Vec<ImportedStep>,
    outer: Vec<Vec<ImportedStep>>,
    step_count: usize,
    body_bytes: usize,
    /// Variables of the session that steps have set so far, and those of `setup`.
    known: HashSet<String>,
    setup_known: HashSet<String>,
    /// What is collected is done once: it is dealt no records.
    is_once: bool,
    data: Vec<ImportedData>,
    setup: Vec<ImportedStep>,
    sessions: Vec<ImportedSession>,
    teardown: Vec<ImportedStep>,
    pub(super) load: ImportedLoad,
    fail_if: Vec<String>,
    remarks: Vec<String>,
    /// With how often each was said.
    left_out: Vec<(String, usize)>,
    /// How many more there was no room for.
    left_out_more: usize,
}

impl Collector {
    /// Names something that has no place in the scenario.
    pub(super) fn leave_out(&mut self, what: impl Into<String>) {
        let line = shown(&what.into()).replace(['\n', '\r'], " ");
        let line: String = line.chars().take(LINE_MAX).collect();
        let has_room = self.left_out.len() < LEFT_OUT_MAX;
        match self.left_out.iter_mut().find(|(other, _)| *other == line) {
            Some((_, times)) => *times += 1,
            None if has_room => self.left_out.push((line, 1)),
            None => self.left_out_more += 1,
        }
    }

    /// Says something about the scenario, once.
    pub(super) fn remark(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.remarks.contains(&what) && self.remarks.len() < LEFT_OUT_MAX {
            self.remarks.push(what);
        }
    }

    /// Settles the first target before any request names one.
    pub(super) fn set_target(&mut self, url: Url) {
        self.set_first_target(ImportedTarget::Literal(url));
    }

    fn set_first_target(&mut self, target: ImportedTarget) {
        if self.targets.is_empty() {
            self.targets.push(target);
        }
    }

    /// Settles the first target to the server that most of these URLs name.
    pub(super) fn set_target_of<'a>(&mut self, urls: impl Iterator<Item = &'a ImportedText>) {
        let mut counts: Vec<(ImportedTarget, usize)> = Vec::new();
        for target in urls.filter_map(|url| split(url).ok()?.0) {
            match counts.iter_mut().find(|(other, _)| !other.differs(&target)) {
                Some((_, count)) => *count += 1,
                None => counts.push((target, 1)),
            }
        }
        // Of several the first.
        let most = counts.into_iter().rev().max_by_key(|(_, count)| *count);
        if let Some((target, _)) = most {
            self.set_first_target(target);
        }
    }

    /// How many steps there are, those in one another among them.
    pub(super) fn len(&self) -> usize {
        self.step_count
    }

    /// The user waits.
    pub(super) fn think(&mut self, time: Nanos) {
        if time > Nanos::ZERO {
            self.push(ImportedStep::Think(time.exactly().to_string()));
        }
    }

    /// The user waits by a law such as `uniform(1s,3s)`.
    pub(super) fn think_law(&mut self, law: &str) {
        match parse_law(law) {
            Ok(_) => self.push(ImportedStep::Think(law.to_owned())),
            Err(wrong) => self.leave_out(format!("a pause of {law}: {wrong}")),
        }
    }

    /// Whether there may be one step more.
    pub(super) fn has_room(&mut self) -> bool {
        let has_room = self.step_count < STEPS_MAX && self.outer.len() <= DEPTH_MAX;
        if self.step_count >= STEPS_MAX {
            self.leave_out(format!("what follows the first {STEPS_MAX} steps"));
        } else if !has_room {
            self.leave_out(format!("steps more than {DEPTH_MAX} levels deep"));
        }
        has_room
    }

    /// What follows lies in a step, up to `close`.
    pub(super) fn open(&mut self) {
        self.outer.push(std::mem::take(&mut self.steps));
    }

    /// The steps since `open`.
    pub(super) fn close(&mut self) -> Vec<ImportedStep> {
        let outer = self.outer.pop().unwrap_or_default();
        std::mem::replace(&mut self.steps, outer)
    }

    /// Adds a step, unless there are no steps in it or it has a value that nothing sets.
    pub(super) fn push(&mut self, step: ImportedStep) {
        let step = match step {
            ImportedStep::Group { name, steps } if !steps.is_empty() => {
                let name = step_name(&name).unwrap_or_else(|| "group".to_owned());
                ImportedStep::Group { name, steps }
            }
            ImportedStep::Repeat { steps, .. }
            | ImportedStep::Group { steps, .. }
            | ImportedStep::Parallel(steps)
                if steps.is_empty() =>
            {
                return;
            }
            ImportedStep::Parallel(mut steps) if steps.len() == 1 => steps.remove(0),
            ImportedStep::When { condition, steps, otherwise } if steps.is_empty() => {
                if otherwise.is_empty() {
                    return;
                }
                let condition = condition.opposite();
                ImportedStep::When { condition, steps: otherwise, otherwise: Vec::new() }
            }
            ImportedStep::Choose(mut choices) => {
                // Each has at least one step.
                for (_, steps) in choices.iter_mut().filter(|(_, steps)| steps.is_empty()) {
                    let nothing = ("nothing".to_owned(), ImportedText::default());
                    steps.push(ImportedStep::Set(vec![nothing]));
                }
                ImportedStep::Choose(choices)
            }
            other => other,
        };
        if let Some(wrong) = step.mistake() {
            let what = step.what();
            return self.leave_out(format!("{what}: {wrong}"));
        }
        let mut texts = Vec::new();
        step.texts(&mut texts);
        if let Some(unknown) = self.unknown(texts.into_iter()) {
            let what = step.what();
            return self.leave_out(format!("{what}: nothing sets '{unknown}', which it needs"));
        }
        if let ImportedStep::Set(variables) = &step {
            variables.iter().for_each(|(name, _)| self.know(name));
        }
        if self.has_room() {
            self.step_count += 1;
            self.steps.push(step);
        }
    }

    /// Says that a variable has a value from now on.
    pub(super) fn know(&mut self, name: &str) {
        self.known.insert(name.to_owned());
    }

    /// Whether a name in a template has a value: a variable, or a column of a set of records.
    pub(super) fn is_known(&self, name: &str) -> bool {
        match name.split_once('.') {
            None => self.known.contains(name),
            Some(("setup", name)) => self.setup_known.contains(name),
            Some((set, _)) => !self.is_once && self.data.iter().any(|data| data.name == set),
        }
    }

    /// A name for a variable, made of another name.
    pub(super) fn variable(name: &str) -> String {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        let name: String = name.chars().filter(|c| is_part(*c)).take(60).collect();
        if is_name(&name) { name } else { format!("v{name}") }
    }

    /// The first name in these texts that has no value.
    fn unknown<'a>(&self, mut texts: impl Iterator<Item = &'a ImportedText>) -> Option<String> {
        texts.find_map(|text| {
            let mut names = text.names().into_iter();
            names.find(|name| !self.is_known(name)).map(str::to_owned)
        })
    }

    /// The steps so far are a kind of session, unless they send nothing.
    pub(super) fn end_session(&mut self, name: &str, weight: u32) -> Option<&ImportedSession> {
        let steps = self.end_steps();
        self.known.clear();
        if !steps.iter().any(ImportedStep::sends) {
            if !steps.is_empty() {
                self.leave_out(format!("session '{name}': it sends nothing"));
            }
            return None;
        }
        let name = step_name(name).unwrap_or_else(|| "imported".to_owned());
        let is_taken = |name: &str| self.sessions.iter().any(|session| session.name == name);
        let mut unique = name.clone();
        let mut number = 2;
        while is_taken(&unique) {
            unique = format!("{name} ({number})");
            number += 1;
        }
        let mut texts = Vec::new();
        steps.iter().for_each(|step| step.texts(&mut texts));
        let names: Vec<&str> = texts.iter().flat_map(|text| text.names()).collect();
        let is_used = |set: &&ImportedData| {
            let column = |name: &&str| name.split_once('.').is_some_and(|(of, _)| of == set.name);
            names.iter().any(column)
        };
        let data = self.data.iter().filter(is_used).map(|set| set.name.clone()).collect();
        self.sessions.push(ImportedSession { name: unique, weight: weight.max(1), data, steps });
        self.sessions.last()
    }

    /// Changes the share of a kind of session.
    pub(super) fn weigh(&mut self, name: &str, weight: u32) {
        let mut sessions = self.sessions.iter_mut();
        if let Some(session) = sessions.find(|session| session.name == name) {
            session.weight = weight.max(1);
        }
    }

    /// What follows is done once, up to `end_setup` or `end_teardown`.
    pub(super) fn begin_once(&mut self) {
        self.is_once = true;
    }

    /// The steps so far are what is done once before the load. Sessions have its variables as
    /// `setup.NAME`.
    pub(super) fn end_setup(&mut self) {
        self.is_once = false;
        self.setup = self.end_steps();
        self.setup_known = std::mem::take(&mut self.known);
    }

    /// The steps so far are what is done once after the load.
    pub(super) fn end_teardown(&mut self) {
        self.is_once = false;
        let steps = self.end_steps();
        self.teardown = self.if_it_sends("teardown", steps);
        self.known.clear();
    }

    /// Steps that are done once; none where they send nothing, which a line then says.
    fn if_it_sends(&mut self, what: &str, steps: Vec<ImportedStep>) -> Vec<ImportedStep> {
        if steps.is_empty() || steps.iter().any(ImportedStep::sends) {
            return steps;
        }
        self.leave_out(format!("{what}: it sends nothing"));
        Vec::new()
    }

    /// Whether a session, or what is done after the load, has a value of the setup.
    fn uses_setup(&self) -> bool {
        let sessions = self.sessions.iter().flat_map(|session| &session.steps);
        let mut texts = Vec::new();
        sessions.chain(&self.teardown).for_each(|step| step.texts(&mut texts));
        let mut names = texts.into_iter().flat_map(ImportedText::names);
        names.any(|name| name.starts_with("setup."))
    }

    fn end_steps(&mut self) -> Vec<ImportedStep> {
        while !self.outer.is_empty() {
            let mut inner = self.close();
            self.steps.append(&mut inner);
        }
        std::mem::take(&mut self.steps)
    }

    /// Adds a set of records, whose columns are then known. Returns its name and its file below the
    /// folder of the scenario, if it can be that. The name has a number where another set has it.
    pub(super) fn data(&mut self, name: &str, file: &str, order: Deal) -> Option<(String, String)> {
        let file = below(file)?;
        let ending = file.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
        if !is_name(name) || !matches!(ending.as_str(), "csv" | "jsonl" | "ndjson") {
            return None;
        }
        if let Some(set) = self.data.iter().find(|set| set.file == file && set.order == order) {
            return Some((set.name.clone(), file));
        }
        let numbered = (2..).map(|number| format!("{name}{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        let own = names.find(|name| self.data.iter().all(|set| set.name != *name))?;
        self.data.push(ImportedData { name: own.clone(), file: file.clone(), order });
        Some((own, file))
    }

    /// The user sends a request, unless a scenario cannot have it; whether it is a step.
    pub(super) fn request(&mut self, draft: SourceRequest) -> bool {
        self.request_after(Nanos::ZERO, draft)
    }

    /// The same after a pause, which goes with the request.
    pub(super) fn request_after(&mut self, pause: Nanos, draft: SourceRequest) -> bool {
        if !self.has_room() {
            return false;
        }
        let told = format!("{} {}", draft.method, draft.url.template());
        match self.checked(draft) {
            Ok(request) => {
                self.think(pause);
                self.step_count += 1;
                request.extract.iter().for_each(|extract| self.know(&extract.name));
                self.steps.push(ImportedStep::Request(Box::new(request)));
                true
            }
            Err(why) => {
                self.leave_out(format!("{}: {why}", shorter(&told)));
                false
            }
        }
    }

    /// All that came together.
    ///
    /// # Errors
    /// No request.
    pub(super) fn finish(mut self, nothing: &str) -> Result<Imported, ParseError> {
        self.end_session("imported", 1);
        if !self.uses_setup() {
            let steps = std::mem::take(&mut self.setup);
            self.setup = self.if_it_sends("setup", steps);
        }
        if self.targets.is_empty() || self.sessions.is_empty() {
            // The first of a request says more than that of an option.
            let sent = self.left_out.iter().find(|(line, _)| line.contains("http"));
            let first = sent.or(self.left_out.first());
            let why = first.map_or(String::new(), |(line, _)| format!(": left out: {line}"));
            return error(format!("{nothing}{why}"));
        }
        let times = |(line, times): (String, usize)| match times {
            1 => line,
            times => format!("{line} ({times} times)"),
        };
        let mut imported = Imported {
            targets: self.targets.iter().map(ImportedTarget::target).collect(),
            data: self.data,
            setup: self.setup,
            sessions: self.sessions,
            teardown: self.teardown,
            load: self.load,
            remarks: self.remarks,
            left_out: self.left_out.into_iter().map(times).collect(),
            ..Imported::default()
        };
        if self.left_out_more > 0 {
            let more = self.left_out_more;
            imported.left_out.push(format!("{more} more, which are not named here"));
        }
        imported.take_thresholds(self.fail_if);
        imported.gather_defaults();
        Ok(imported)
    }
}

/// The name of a file below the folder of the scenario, for one that may lie elsewhere.
pub(super) fn below(file: &str) -> Option<String> {
    let parts = file.split(['/', '\\']).filter(|part| !matches!(*part, "" | "." | ".."));
    let name = parts.collect::<Vec<_>>().join("/");
    let is_plain = !name.is_empty() && !name.chars().any(char::is_control);
    is_plain.then_some(name)
}

/// A name of a step: one line of 1 to 200 characters.
pub(super) fn step_name(text: &str) -> Option<String> {
    let blank = |c: char| if c.is_control() { ' ' } else { c };
    let line: String = text.chars().map(blank).take(190).collect();
    Some(line.trim().to_owned()).filter(|line| !line.is_empty())
}

fn shorter(text: &str) -> String {
    if text.chars().count() > 120 {
        text.chars().take(119).chain(['…']).collect()
    } else {
        text.to_owned()
    }
}
