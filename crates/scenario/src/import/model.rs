//! What an imported scenario is made of, and what all its steps settle together.

use super::text::ImportedText;
use knee_core::threshold::Threshold;
use knee_load::secrets::SecretNames;
use knee_load::session::Deal;
use knee_load::time::Nanos;
use std::collections::{BTreeMap, HashSet};

/// What was imported.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imported {
    /// Each `http://host` or `https://host`, with its port where that is not the scheme's own. They
    /// may have values of the environment. There is at least one; paths alone are of the first.
    pub targets: Vec<ImportedText>,
    /// Headers that all requests have.
    pub headers: Vec<(String, ImportedText)>,
    /// The most redirections that requests follow.
    pub redirects: u32,
    /// The time limit of requests.
    pub timeout: Option<Nanos>,
    /// Sets of records.
    pub data: Vec<ImportedData>,
    /// What is done once before the load.
    pub setup: Vec<ImportedStep>,
    /// The kinds of sessions, at least one.
    pub sessions: Vec<ImportedSession>,
    /// What is done once after the load.
    pub teardown: Vec<ImportedStep>,
    /// The load, where the source has one.
    pub load: ImportedLoad,
    /// Thresholds that fail the run.
    pub fail_if: Vec<String>,
    /// What is worth knowing about the file, a sentence each.
    pub remarks: Vec<String>,
    /// What could not be taken over, in the order of the source.
    pub left_out: Vec<String>,
}

impl Imported {
    /// The same with credentials in headers given by the environment, so that the file has none.
    pub fn without_credentials(mut self, names: &SecretNames) -> Imported {
        let mut variables = BTreeMap::new();
        let mut lists = vec![&mut self.headers];
        let mut requests = Vec::new();
        let sessions = self.sessions.iter_mut().flat_map(|session| &mut session.steps);
        let steps = sessions.chain(&mut self.setup).chain(&mut self.teardown);
        steps.for_each(|step| step.requests(&mut requests));
        lists.extend(requests.into_iter().map(|request| &mut request.headers));
        for (name, value) in lists.into_iter().flatten() {
            if let Some(by) = super::credentials::of_environment(names, name, value, &mut variables)
            {
                *value = by;
            }
        }
        if !variables.is_empty() {
            let all: Vec<&str> = variables.keys().map(String::as_str).collect();
            self.remarks.push(format!(
                "The environment gives the credentials, which are not in this file: set {}.",
                all.join(", ")
            ));
        }
        self
    }

    /// The scenario file in YAML; `source` says what it was made of.
    pub fn to_yaml(&self, source: &str) -> String {
        super::write::yaml(self, source)
    }
}

/// A kind of session.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedSession {
    /// Its name; no two have the same.
    pub name: String,
    /// Its share among all, relative to the others; at least 1.
    pub weight: u32,
    /// The sets of records that it is dealt from.
    pub data: Vec<String>,
    /// What a user does, at least one request.
    pub steps: Vec<ImportedStep>,
}

/// A set of records, whose file the user has to put beside the scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedData {
    /// Its name.
    pub name: String,
    /// A CSV file, or one with a JSON object in each line.
    pub file: String,
    /// How records are dealt.
    pub order: Deal,
}

/// A load as far as it is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportedLoad {
    /// Sessions per second.
    pub rate_per_s: Option<f64>,
    /// Users.
    pub vusers: Option<u32>,
    /// Measured time.
    pub duration: Option<Nanos>,
    /// Stages, in the place of all others.
    pub stages: Vec<ImportedStage>,
    /// Whether stages are of users and not of sessions per second.
    pub stages_of_users: bool,
}

/// A time in which the load is constant or changes linearly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ImportedStage {
    /// Users or sessions per second at its begin.
    pub from: f64,
    /// The same at its end.
    pub to: f64,
    /// Its length, above 0.
    pub length: Nanos,
}

/// One thing that a user does. `R` is its request, or what stands for one.
#[derive(Clone, Debug, PartialEq)]
pub enum ImportedStep<R = Box<ImportedRequest>> {
    /// Sends a request.
    Request(R),
    /// Waits by a law: `2s`, `uniform(1s,3s)`.
    Think(String),
    /// Does steps several times.
    Repeat {
        /// How often.
        times: ImportedRepeat,
        /// The variable that has the number of the pass from 0, or the element.
        variable: Option<String>,
        /// What is done.
        steps: Vec<ImportedStep<R>>,
    },
    /// Does steps where a condition holds, and others where it does not.
    When {
        /// The condition.
        condition: ImportedCondition,
        /// Where it holds.
        steps: Vec<ImportedStep<R>>,
        /// Where it does not.
        otherwise: Vec<ImportedStep<R>>,
    },
    /// Does one of several, by their weights.
    Choose(Vec<(u32, Vec<ImportedStep<R>>)>),
    /// Does these steps at the same time.
    Parallel(Vec<ImportedStep<R>>),
    /// Sets variables.
    Set(Vec<(String, ImportedText)>),
    /// Steps that are reported as a whole too.
    Group {
        /// Its name in reports.
        name: String,
        /// What is done.
        steps: Vec<ImportedStep<R>>,
    },
}

/// How often steps are done.
#[derive(Clone, Debug, PartialEq)]
pub enum ImportedRepeat {
    /// A number, which may be a value.
    Times(ImportedText),
    /// Once for each of these.
    Each(Vec<ImportedText>),
    /// Once for each element of a JSON list.
    Elements(ImportedText),
    /// As long as a condition holds, which is asked before each pass.
    While(ImportedCondition, u32),
    /// Until a condition holds, which is asked after each pass.
    Until(ImportedCondition, u32),
}

/// A condition of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum ImportedCondition {
    /// A comparison of two texts, and of numbers if both are numbers.
    Compare(ImportedText, ImportedRelation, ImportedText),
    /// All of them hold.
    All(Vec<ImportedCondition>),
    /// Any of them holds.
    Any(Vec<ImportedCondition>),
    /// It does not hold.
    Not(Box<ImportedCondition>),
}

/// How two texts are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportedRelation {
    /// They are the same.
    Equal,
    /// They differ.
    NotEqual,
    /// The left one is less.
    Less,
    /// The left one is greater.
    Greater,
    /// The left one is less, or they are the same.
    AtMost,
    /// The left one is greater, or they are the same.
    AtLeast,
    /// The right one is a part of the left one.
    Contains,
    /// The right one is a regular expression that matches in the left one.
    Matches,
}

/// A request of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedRequest {
    /// `GET`, ….
    pub method: String,
    /// Path and query.
    pub path: ImportedText,
    /// Its name in reports.
    pub name: Option<String>,
    /// Headers, no name twice.
    pub headers: Vec<(String, ImportedText)>,
    /// Its body.
    pub content: ImportedBody,
    /// What the response has to be.
    pub expect: ImportedExpect,
    /// Variables that are set from the response.
    pub extract: Vec<ImportedExtract>,
    /// The most redirections that are followed.
    pub redirects: u32,
    /// Its time limit.
    pub timeout: Option<Nanos>,
    /// Whether a session goes on after a failure.
    pub goes_on: bool,
}

/// A body, in the form that is easiest to change.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ImportedBody {
    /// None.
    #[default]
    None,
    /// JSON on one line, with no name twice in an object.
    Json(String),
    /// JSON with values in it.
    JsonValue(ImportedJson),
    /// Names and values of a form, no name twice.
    Form(Vec<(String, ImportedText)>),
    /// Any text.
    Text(ImportedText),
    /// A file, which the user has to put beside the scenario.
    File(String),
    /// Parts of a form with their names, which may stand there several times.
    Multipart(Vec<(String, ImportedPart)>),
}

/// A value of JSON with values of the session in it.
#[derive(Clone, Debug, PartialEq)]
pub enum ImportedJson {
    /// `null`, `true`, `false` or a number.
    Plain(String),
    /// A text.
    Text(ImportedText),
    /// One value: a number, `true`, `false` or `null` if it looks so, and a text else.
    Value(ImportedText),
    /// A list.
    List(Vec<ImportedJson>),
    /// An object, no name twice.
    Object(Vec<(String, ImportedJson)>),
}

/// A part of a multipart body.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedPart {
    /// Text, or else the name of a file.
    pub content: Result<ImportedText, String>,
    /// Its content type.
    pub media: Option<String>,
    /// The name that its file has for the server.
    pub filename: Option<String>,
}

/// What a response has to be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportedExpect {
    /// `200`, `2xx` or `200-204`, any of them; below 400 if there is none.
    pub status: Vec<String>,
    /// Its response time is less.
    pub time: Option<Nanos>,
    /// Its headers.
    pub headers: Vec<(String, ImportedMatch)>,
    /// Its body, or the value at a JSON Pointer in it.
    pub body: Vec<(Option<String>, ImportedMatch)>,
}

/// What a part of a response has to be.
#[derive(Clone, Debug, PartialEq)]
pub enum ImportedMatch {
    /// This text.
    Equals(ImportedText),
    /// A text with this one in it.
    Contains(ImportedText),
    /// A text in which a regular expression matches.
    Matches(String),
    /// A number above another.
    Above(ImportedText),
    /// A number below another.
    Below(ImportedText),
    /// A number, or that one.
    AtLeast(ImportedText),
    /// A number, or that one.
    AtMost(ImportedText),
    /// Whether it is there.
    Exists(bool),
    /// The opposite.
    Not(Box<ImportedMatch>),
}

/// A variable that is set from a response.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedExtract {
    /// The variable.
    pub name: String,
    /// Where its value stands.
    pub source: ImportedSource,
    /// The value where there is none; without one the step fails.
    pub default: Option<String>,
}

/// Where a value stands in a response.
#[derive(Clone, Debug, PartialEq)]
pub enum ImportedSource {
    /// At a JSON Pointer.
    Json(String),
    /// In a header.
    Header(String),
    /// In a cookie that is set.
    Cookie(String),
    /// Between two texts.
    Between(String, String),
    /// The whole body.
    Body,
    /// The status.
    Status,
    /// Where a regular expression matches.
    Regex {
        /// The expression.
        pattern: String,
        /// The group that has the value.
        group: Option<u32>,
        /// Whether entities of HTML are replaced.
        unescape: bool,
    },
    /// In the first element of HTML that a selector has.
    Css {
        /// The selector.
        selector: String,
        /// The attribute, or else the text of the element.
        attribute: Option<String>,
    },
}

impl Imported {
    /// Takes the thresholds whose step or session there is.
    pub(super) fn take_thresholds(&mut self, thresholds: Vec<String>) {
        let mut requests = Vec::new();
        let mut names: HashSet<String> = HashSet::new();
        for session in &mut self.sessions {
            names.insert(session.name.clone());
            session.steps.iter().for_each(|step| step.groups(&mut names));
            session.steps.iter_mut().for_each(|step| step.requests(&mut requests));
        }
        let own_name = |request: &&mut ImportedRequest| {
            let path = request.path.template();
            request.name.clone().unwrap_or_else(|| format!("{} {path}", request.method))
        };
        names.extend(requests.iter().map(own_name));
        for text in thresholds {
            let of = Threshold::parse(&text).ok().and_then(|t| t.of().map(str::to_owned));
            match of.filter(|of| !names.contains(of)) {
                Some(of) => {
                    self.left_out.push(format!("threshold {text}: there is no step '{of}'"));
                }
                None if self.fail_if.contains(&text) => {}
                None => self.fail_if.push(text),
            }
        }
    }

    /// What all of several requests have is written once.
    pub(super) fn gather_defaults(&mut self) {
        let mut all = Vec::new();
        let sessions = self.sessions.iter_mut().flat_map(|session| &mut session.steps);
        let steps = sessions.chain(&mut self.setup).chain(&mut self.teardown);
        steps.for_each(|step| step.requests(&mut all));
        let Some((first, others)) = all.split_first_mut().filter(|(_, o)| !o.is_empty()) else {
            return;
        };
        let mut common = first.headers.clone();
        common.retain(|header| others.iter().all(|other| other.headers.contains(header)));
        let (redirects, timeout) = (first.redirects, first.timeout);
        let same_redirects = others.iter().all(|other| other.redirects == redirects);
        let same_timeout = others.iter().all(|other| other.timeout == timeout);
        for request in all {
            request.headers.retain(|header| !common.contains(header));
            if same_redirects {
                request.redirects = 0;
            }
            if same_timeout {
                request.timeout = None;
            }
        }
        self.headers = common;
        self.redirects = if same_redirects { redirects } else { 0 };
        self.timeout = timeout.filter(|_| same_timeout);
    }
}
