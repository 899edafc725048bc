//! The plan of sessions, settled before a run. Nothing in it is looked up by name.

use crate::law::Law;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// All that the users of a run may do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionPlan {
    /// The kinds of sessions; each user that comes follows one of them, by weight.
    pub kinds: Vec<SessionKind>,
    /// What is done with each request of the target, by its number there.
    pub requests: Vec<RequestStep>,
    /// Records that are dealt to users.
    pub data: Vec<DataSet>,
    /// Programs that steps ask for values; each worker has one process of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<Program>,
    /// What of responses is not shown.
    #[serde(default)]
    pub unshown: HiddenValues,
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
    /// Whether this request is only what redirections of a step are followed with.
    pub fn is_redirected(&self, request: u32) -> bool {
        let mut steps = self.requests.iter();
        steps.any(|step| step.redirected == Some(request))
    }
}

/// One kind of session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionKind {
    /// Its name.
    pub name: String,
    /// Of all users, those of this kind have this share of the sum of all weights. At least 1.
    pub weight: u32,
    /// A record of each of these data sets is dealt to a user that begins.
    pub data: Vec<u16>,
    /// Its steps. The session is over at their end.
    pub program: Vec<Instruction>,
    /// How many variables it has.
    pub variables: u16,
    /// How many repetitions lie in one another or after one another.
    pub counters: u16,
    /// Each session begins on a connection of its own, which ends with it. Otherwise a connection
    /// is kept for the next user.
    pub new_connection: bool,
}

impl SessionKind {
    /// The request that it begins with, where no condition says otherwise.
    pub fn first_request(&self) -> Option<u32> {
        self.program.iter().find_map(|instruction| match instruction {
            Instruction::Request(request) => Some(*request),
            _ => None,
        })
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
    /// Repeats the instructions up to the [`Again`](Instruction::Again) of the same counter, at
    /// least once.
    Begin {
        /// Its counter.
        counter: u16,
        /// How many times.
        times: u32,
    },
    /// Goes back to just after its [`Begin`](Instruction::Begin), until that was done often enough.
    Again {
        /// The counter of that.
        counter: u16,
        /// The instruction after it.
        to: u32,
    },
    /// Goes on at an instruction unless this is so.
    Unless {
        /// What is asked.
        condition: Condition,
        /// Where to go on otherwise.
        to: u32,
    },
}

/// A request as a step of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestStep {
    /// How the report calls it. Requests of the same name are still measured apart.
    pub name: String,
    /// Which kind of session it belongs to.
    pub kind: u16,
    /// What its holes are filled with, in their order.
    pub fills: Vec<Fill>,
    /// What its response has to be. Where no status is expected, any below 400 will do.
    pub expect: Vec<Expectation>,
    /// What is kept of its response.
    pub extract: Vec<Extraction>,
    /// The most redirections that are followed. Each of them is an operation, …
    pub redirects: u32,
    /// … with this request of the target, whose first hole is its whole path. Where
    /// `redirects` is not 0.
    pub redirected: Option<u32>,
    /// Its time limit, where that is not the one of the run.
    pub timeout: Option<Nanos>,
    /// The session goes on where it fails.
    pub goes_on: bool,
    /// What it asks a program for before it is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<Ask>,
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

/// What a hole is filled with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fill {
    /// The value.
    pub value: Template,
    /// What it is made fit for.
    pub escape: Escape,
}

/// How a value is made fit for the place it is put into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Escape {
    /// As it is.
    None,
    /// A part of a URL, such as a name or a value of its query: all but unreserved characters are
    /// percent-encoded (RFC 3986 §2.3).
    Component,
    /// What may be a whole segment of a path. Percent-encodes what a part of a URL does, and also
    /// `.` and `..`, as they would lead to another path.
    Segment,
    /// A piece of a URL: only bytes that no request line may have are percent-encoded (RFC 3986
    /// §2.1); `/`, `?`, `&` and `%` stay.
    #[serde(alias = "path")]
    UrlPiece,
    /// The begin of a URL: a path, a URL of the target, or a reference that is relative to the
    /// request before (RFC 3986 §4.2). Anything else is refused.
    Link,
    /// The value of a header: a control character is refused, so that no value adds a header.
    Header,
    /// A value within the header `Cookie`: as that of a header, and `;` is refused too.
    Cookie,
    /// As the inside of a JSON string (RFC 8259 §7).
    Json,
    /// As a JSON value: a number, `true`, `false` or `null` where it is one, and a string else.
    JsonValue,
    /// As a value of `application/x-www-form-urlencoded`.
    Form,
}

/// A text with parts that are put in when it is needed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Template(pub Vec<TemplatePiece>);

/// A part of a [`Template`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TemplatePiece {
    /// This text.
    Text(String),
    /// The value of a variable, empty until it has one.
    Variable(u16),
    /// A column of the record that was dealt from a data set.
    Column {
        /// Which of the data sets of its kind of session.
        data: u16,
        /// Which column.
        column: u16,
    },
    /// The cookies that the session has for this request, as in `a=1; b=2`; empty where it has
    /// none.
    Cookies,
    /// What a function gives.
    Call(Box<Function>),
}

/// What a template may call. `env` is not among them: it is settled before the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Function {
    /// A whole number from `low` to `high`, both included, each as likely.
    Random {
        /// The least.
        low: i64,
        /// The greatest, not below `low`.
        high: i64,
    },
    /// A random UUID (RFC 9562 §5.4), from the seed of the run.
    Uuid,
    /// The time of day.
    Now(TimeFormat),
    /// A number that no other call of the run gives: 1, 2, 3, … where there is one worker.
    Seq,
    /// Base64 with padding (RFC 4648 §4).
    Base64(Template),
    /// HMAC with SHA-256 (RFC 2104), in lowercase hexadecimal.
    HmacSha256 {
        /// The key.
        key: Template,
        /// What is signed.
        message: Template,
    },
    /// Percent-encoding of all but unreserved characters (RFC 3986 §2.3).
    UrlEncode(Template),
    /// The text as it is, also in a place that would encode it.
    Raw(Template),
}

impl TemplatePiece {
    /// Whether one of these pieces, or of those that a call among them is made with, is such.
    pub fn any(pieces: &[TemplatePiece], is_such: &impl Fn(&TemplatePiece) -> bool) -> bool {
        pieces.iter().any(|piece| {
            let within = |template: &Template| TemplatePiece::any(&template.0, is_such);
            let inside = match piece {
                TemplatePiece::Call(function) => match &**function {
                    Function::Base64(of) | Function::UrlEncode(of) | Function::Raw(of) => {
                        within(of)
                    }
                    Function::HmacSha256 { key, message } => within(key) || within(message),
                    Function::Random { .. } | Function::Uuid | Function::Now(_) | Function::Seq => {
                        false
                    }
                },
                TemplatePiece::Text(_)
                | TemplatePiece::Variable(_)
                | TemplatePiece::Column { .. }
                | TemplatePiece::Cookies => false,
            };
            inside || is_such(piece)
        })
    }
}

impl Function {
    /// Whether it gives a number, as JSON has them too.
    pub fn is_number(&self) -> bool {
        match self {
            Function::Random { .. } | Function::Seq => true,
            Function::Now(moment) => *moment != TimeFormat::Rfc3339,
            Function::Uuid
            | Function::Base64(_)
            | Function::HmacSha256 { .. }
            | Function::UrlEncode(_)
            | Function::Raw(_) => false,
        }
    }
}

/// How a time of day is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeFormat {
    /// Whole seconds since 1970 began.
    UnixS,
    /// Whole milliseconds since then.
    UnixMs,
    /// As in `2026-11-22T20:51:38.123Z` (RFC 3339).
    Rfc3339,
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

/// What a value has to be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Match {
    /// There is one.
    Exists,
    /// There is one, and this text is it.
    Equals(Template),
    /// There is one, and this text is in it.
    Contains(Template),
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
            Source::Between { before, after } => {
                write!(f, "a text between '{before}' and '{after}' in the body")
            }
            Source::Body => f.write_str("the body"),
            Source::Status => f.write_str("the status"),
        }
    }
}

/// Something that is so or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// The left side.
    pub left: Template,
    /// What is asked of them.
    pub relation: Relation,
    /// The right side.
    pub right: Template,
}

/// How two texts are compared: as numbers where both are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// They are the same.
    Equal,
    /// They are not.
    NotEqual,
    /// The left is less.
    Less,
    /// The left is greater.
    Greater,
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
