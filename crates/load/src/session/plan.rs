//! The plan of sessions, settled before a run. Nothing in it is looked up by name.

use super::html::CssSelector;
use super::judge::{Condition, Match, Pattern};
use super::script::ScriptPlan;
use super::template::{Fill, Template, TemplatePiece};
use crate::law::Law;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// All that the users of a run may do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionPlan {
    /// The kinds of sessions; each user that comes follows one of them, by weight.
    pub kinds: Vec<SessionKind>,
    /// What is done with each request of the target, by its number there.
    pub requests: Vec<RequestStep>,
    /// Groups of steps that are reported as a whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<StepGroup>,
    /// Records that are dealt to users.
    pub data: Vec<DataSet>,
    /// Programs that steps ask for values; each worker has one process of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<Program>,
    /// Variables of the environment that a scenario file has put into it, with their values.
    #[serde(skip)]
    pub environment: Vec<(String, String)>,
    /// What of responses is not shown.
    #[serde(default)]
    pub unshown: HiddenValues,
    /// The kind that is done once before the load, and the one after it. Their weights are 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<u16>,
    /// See `setup`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teardown: Option<u16>,
    /// The values of the variables of `setup`, once it was done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given: Vec<Vec<u8>>,
    /// The script that makes the requests; `None`: the kinds have programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Arc<ScriptPlan>>,
    /// The kind whose variables are kept where a session comes to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeps: Option<u16>,
}

/// Secrets that the report of an unexpected response hides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HiddenValues {
    /// Secrets are hidden at all.
    pub hides: bool,
    /// Variables whose values are secrets: the kind of session and the variable.
    pub variables: BTreeSet<(u16, u16)>,
    /// Expectations of secrets: the request and the number of the expectation.
    pub expectations: BTreeSet<(u32, u16)>,
}

/// A program that gives values to steps before they are sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// As the scenario calls it.
    pub name: String,
    /// Its file, with all links followed.
    pub file: String,
    /// Where it runs: the folder of the scenario.
    pub folder: String,
    /// What it is started with.
    pub arguments: Vec<String>,
    /// Where in the scenario it is named first: line and column.
    pub at: (u32, u32),
}

/// What a step asks a program for before it is sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    /// Which of the programs.
    pub program: u16,
    /// The variables that it sets, with their names.
    pub gives: Vec<(String, u16)>,
    /// Values of the session that the program receives with the request, by their names.
    pub tells: Vec<(String, TemplatePiece)>,
    /// The holes of the request that are filled once it has answered, by their numbers.
    pub waits: Vec<u16>,
}

impl SessionPlan {
    /// Whether this request has no figures of its own: it follows redirections of a step, or
    /// belongs to sessions before or after the load.
    pub fn is_unlisted(&self, request: u32) -> bool {
        let step = self.requests.get(request as usize);
        if self.script.is_some() {
            return step.is_some_and(|step| step.name.is_empty());
        }
        let kind = step.and_then(|step| self.kinds.get(usize::from(step.kind)));
        let first = self.first_of(request);
        let mut steps = self.requests.iter();
        kind.is_some_and(|kind| kind.weight == 0)
            || first != request
            || steps.any(|step| step.redirected.is_some_and(|to| to.all().contains(&first)))
    }

    /// The request that stands for this one on all servers: itself, unless it is a variant.
    pub fn first_of(&self, request: u32) -> u32 {
        let step = self.requests.get(request as usize);
        step.and_then(|step| step.variant_of).unwrap_or(request)
    }

    /// The variant of a request that goes to this server, if there is one.
    pub fn on_server(&self, request: u32, server: u16) -> Option<u32> {
        let first = self.first_of(request);
        let is_it = |number: u32| {
            let step = self.requests.get(number as usize)?;
            let is_its = number == first || step.variant_of == Some(first);
            (is_its && step.server == server).then_some(number)
        };
        is_it(first).or_else(|| is_it(first + u32::from(server)))
    }

    /// The kinds of the load, by their numbers.
    pub fn kinds_of_load(&self) -> impl Iterator<Item = (u16, &SessionKind)> {
        (0u16..).zip(&self.kinds).filter(|(_, kind)| kind.weight > 0)
    }

    /// The most branches that a session walks through at the same time, at least 1.
    pub fn width(&self) -> u32 {
        if let Some(script) = &self.script {
            return if script.is_parallel { script.batch.0.max(1) } else { 1 };
        }
        let programs = self.kinds.iter().flat_map(|kind| &kind.program);
        let forks = programs.map(|instruction| match instruction {
            Instruction::Fork(others) => 1 + others.len() as u32,
            _ => 1,
        });
        forks.max().unwrap_or(1)
    }

    /// The same plan in which all users are of this kind, and what they know at the end is kept.
    pub fn only(mut self, number: u16) -> SessionPlan {
        for (other, kind) in (0u16..).zip(&mut self.kinds) {
            kind.weight = u32::from(other == number);
        }
        self.keeps = Some(number);
        self
    }
}

/// One kind of session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionKind {
    /// Its name.
    pub name: String,
    /// Of all users, those of this kind have this share of the sum of all weights. 0 for one that
    /// no user of the load follows.
    pub weight: u32,
    /// A record of each of these data sets is dealt to a user that begins.
    pub data: Vec<u16>,
    /// Its steps. The session is over at their end.
    pub program: Vec<Instruction>,
    /// The names of its variables, by their numbers.
    pub variables: Vec<String>,
    /// Its repetitions, by their numbers.
    #[serde(default)]
    pub repetitions: Vec<Repetition>,
    /// Each session begins on a connection of its own, which ends with it. Otherwise a connection
    /// is kept for the next user.
    pub new_connection: bool,
}

impl SessionKind {
    /// The request that it begins with, where no condition says otherwise.
    pub fn first_request(&self) -> Option<u32> {
        self.program.iter().find_map(Instruction::request)
    }
}

/// A step of a session's program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Instruction {
    /// Sends this request of the target and waits for its end.
    Request(u32),
    /// Waits for a time drawn from this law.
    Think(Law),
    /// Goes on at this instruction.
    Jump(u32),
    /// Goes on at an instruction unless this is so.
    Unless {
        /// What is asked.
        condition: Condition,
        /// Where to go on otherwise.
        to: u32,
    },
    /// Begins a repetition of the session, by its number, before its first pass.
    Begin(u16),
    /// Before each pass of a repetition: goes on at `end` if there is none left.
    Pass {
        /// Its number.
        repetition: u16,
        /// The instruction after it.
        end: u32,
    },
    /// Goes on with the next instruction and at each of these, all at the same time. Each of these
    /// branches ends with a `Join`, and none forks again.
    Fork(Vec<u32>),
    /// A branch ends. Once all have, the session goes on at this instruction.
    Join(u32),
    /// Goes on at one of these instructions. Each has the sum of the weights up to its own.
    Choose(Vec<(u64, u32)>),
    /// Sets a variable.
    Set {
        /// The variable.
        variable: u16,
        /// Its value.
        value: Template,
    },
    /// A group of steps begins, by its number in the plan.
    Enter(u16),
    /// That group ends.
    Leave(u16),
}

impl Instruction {
    /// The request that it sends.
    pub fn request(&self) -> Option<u32> {
        match self {
            Instruction::Request(request) => Some(*request),
            _ => None,
        }
    }
}

/// Steps that are done several times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Repetition {
    /// How often.
    pub passes: Passes,
    /// The most passes of `While` and `Until`.
    pub at_most: u32,
    /// The variable that a pass sets: its element, or its number from 0 on.
    pub variable: Option<u16>,
}

/// How often steps are done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Passes {
    /// As often as this whole number says, read at the begin.
    Times(Template),
    /// Once for each of these values.
    List(Vec<Template>),
    /// Once for each element of this JSON array, read at the begin.
    Elements(Template),
    /// As long as this is so before a pass.
    While(Condition),
    /// Until this is so after a pass.
    Until(Condition),
}

/// Steps that are reported as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepGroup {
    /// Its name.
    pub name: String,
    /// Which kind of session it belongs to.
    pub kind: u16,
}

/// A request as a step of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestStep {
    /// How the report calls it. Requests of the same name are still measured apart.
    pub name: String,
    /// Which kind of session it belongs to.
    pub kind: u16,
    /// The server of the target that it goes to: 0, or one of the further ones from 1 on.
    #[serde(default, skip_serializing_if = "is_first")]
    pub server: u16,
    /// The request to server 0 that it is another variant of, where a response says to which server
    /// a step goes. The variant for server `n` has the number of that request plus `n`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant_of: Option<u32>,
    /// What its holes are filled with, in their order.
    pub fills: Vec<Fill>,
    /// What its response has to be. Where no status is expected, any below 400 will do.
    pub expect: Vec<Expectation>,
    /// What is kept of its response.
    pub extract: Vec<Extraction>,
    /// The most redirections that are followed. Each of them is an operation, …
    pub redirects: u32,
    /// … with one of these requests or a variant of it, where `redirects` is not 0.
    pub redirected: Option<Redirected>,
    /// Its time limit, where that is not the one of the run.
    pub timeout: Option<Nanos>,
    /// The session goes on where it fails.
    pub goes_on: bool,
    /// What it asks a program for before it is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<Ask>,
}

/// The requests of the target that follow the redirections of a step. The first hole of each is its
/// whole path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redirected {
    /// The same request again.
    pub same: u32,
    /// A GET without a body, or a HEAD after one: `same`, where the step is that already.
    pub get: u32,
    /// The step is a POST.
    pub is_post: bool,
}

impl Redirected {
    /// The request that follows a response of this status to `sent`, if that redirects (RFC 9110
    /// §15.4): what became a GET stays one.
    pub fn after(self, status: u16, sent: u32) -> Option<u32> {
        match status {
            300..=303 | 307 | 308 if sent == self.get => Some(self.get),
            303 => Some(self.get),
            301 | 302 if self.is_post => Some(self.get),
            300..=302 | 307 | 308 => Some(self.same),
            _ => None,
        }
    }

    /// Each of them.
    pub fn all(self) -> [u32; 2] {
        [self.same, self.get]
    }
}

fn is_first(server: &u16) -> bool {
    *server == 0
}

impl RequestStep {
    /// What is done with the requests that follow its redirections: nothing but to follow them, as
    /// their responses are read as the step's.
    pub fn redirected(&self) -> RequestStep {
        RequestStep {
            name: format!("{} (redirected)", self.name),
            kind: self.kind,
            timeout: self.timeout,
            goes_on: self.goes_on,
            ..RequestStep::default()
        }
    }
}

/// What a response has to be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expectation {
    /// Its status is within one of these ranges, both ends included.
    Status(Vec<(u16, u16)>),
    /// It came within this response time.
    Time(Nanos),
    /// Something in it matches.
    Value {
        /// What is looked at.
        source: Source,
        /// What it has to be.
        is: Match,
    },
}

/// A variable that is set from a response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Extraction {
    /// The variable's name, for people.
    pub name: String,
    /// The variable.
    pub variable: u16,
    /// Where its value is.
    pub source: Source,
    /// Its value if the response has none. Without a default the step fails then.
    pub otherwise: Option<String>,
}

/// A place in a response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The value at a JSON Pointer (RFC 6901) of the body: of a string what it says, of anything
    /// else its JSON.
    Json(String),
    /// The value of the first header of this name, in lowercase.
    Header(String),
    /// The value of a cookie that the response sets.
    Cookie(String),
    /// What lies in the body between the first of the one text and the next of the other.
    Between {
        /// What comes before.
        before: String,
        /// What comes after.
        after: String,
        /// Its character references of HTML are resolved.
        #[serde(default)]
        unescape: bool,
    },
    /// The first place in the body that a regular expression matches.
    Regex {
        /// The expression.
        pattern: Pattern,
        /// The group whose text it is; 0 is the whole match.
        group: u16,
        /// Its character references of HTML are resolved.
        unescape: bool,
    },
    /// The first element of an HTML body that a CSS selector matches.
    Css {
        /// The selector.
        selector: CssSelector,
        /// The attribute whose value it is, in lowercase; without one it is the element's text.
        attribute: Option<String>,
    },
    /// The whole body.
    Body,
    /// The status.
    Status,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Json(pointer) if pointer.is_empty() => f.write_str("the JSON of the body"),
            Source::Json(pointer) => write!(f, "{pointer} in the JSON of the body"),
            Source::Header(name) => write!(f, "the header {name}"),
            Source::Cookie(name) => write!(f, "the cookie {name}"),
            Source::Between { before, after, .. } => {
                write!(f, "a text between '{before}' and '{after}' in the body")
            }
            Source::Regex { pattern, .. } => write!(f, "a match of /{pattern}/ in the body"),
            Source::Css { selector, attribute: None } => {
                write!(f, "an element '{selector}' in the body")
            }
            Source::Css { selector, attribute: Some(name) } => {
                write!(f, "the attribute {name} of an element '{selector}' in the body")
            }
            Source::Body => f.write_str("the body"),
            Source::Status => f.write_str("the status"),
        }
    }
}

/// Records. Each user that begins is dealt one of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataSet {
    /// Its name.
    pub name: String,
    /// The names of its columns.
    pub columns: Vec<String>,
    /// Its records, each as long as `columns`.
    pub rows: Vec<Vec<String>>,
    /// How they are dealt.
    pub deal: Deal,
}

/// How records are dealt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deal {
    /// Each once: no two users have the same, and the run ends when none is left.
    Unique,
    /// In their order, from the first again after the last.
    InOrder,
    /// Each as likely, with repeats.
    Random,
}
