//! Texts with parts that only a run knows, and how they are made fit for their places.

use serde::{Deserialize, Serialize};

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
    /// What the hole of this number had in the request whose redirections are followed.
    Sent(u16),
    /// A variable of the sessions before the load, by its number there.
    Setup(u16),
    /// What a function gives.
    Call(Box<Function>),
}

impl Fill {
    /// Whether it is the cookies of the session and nothing else.
    pub fn is_of_cookies(&self) -> bool {
        self.value.0 == [TemplatePiece::Cookies]
    }
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
                | TemplatePiece::Setup(_)
                | TemplatePiece::Sent(_)
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
