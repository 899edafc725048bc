//! Why a script ended an iteration, or cannot run.

use rquickjs::{CatchResultExt as _, CaughtError, Ctx, Error, Exception, Value};
use std::fmt;

/// What ended an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// An exception that the script did not catch.
    Exception,
    /// It computed for longer than it may.
    Time,
    /// It used more memory than it may.
    Memory,
    /// The load ended meanwhile.
    Stopped,
    /// The script ended the test (`exec.test.abort`).
    Abort,
}

/// Why a script ended an iteration, or cannot run: one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What ended it.
    pub kind: FailureKind,
    /// What is wrong, without a position.
    pub message: String,
    /// File, line and column, if known.
    pub at: Option<(String, u32, u32)>,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Failure {
        Failure { kind: FailureKind::Exception, message: one_line(&message.into()), at: None }
    }

    /// Why a call of the script failed.
    pub(crate) fn of(ctx: &Ctx<'_>, error: Error) -> Failure {
        match Err::<(), Error>(error).catch(ctx) {
            Ok(()) => Failure::new("unknown error"),
            Err(CaughtError::Exception(exception)) => {
                Failure::of_value(exception.as_object().as_value())
            }
            Err(CaughtError::Value(value)) => Failure::of_value(&value),
            Err(CaughtError::Error(error)) => Failure::new(error.to_string()),
        }
    }

    /// What a script threw.
    pub(crate) fn of_value(thrown: &Value<'_>) -> Failure {
        if thrown.is_null() {
            // The engine does so where no memory is left for an error.
            let line = "null was thrown: by the script, or as no memory was left (--script-memory)";
            return Failure::new(line);
        }
        let Some(exception) = thrown.as_exception() else {
            let text = thrown.get::<rquickjs::Coerced<String>>().map(|text| text.0);
            let none = || "a value that is no error was thrown".to_owned();
            return Failure::new(text.unwrap_or_else(|_| none()));
        };
        let name: String = exception.as_object().get("name").unwrap_or_default();
        let message = exception.message().unwrap_or_default();
        let line = match (&*name, &*message) {
            ("" | "Error", message) => message.to_owned(),
            (name, "") => name.to_owned(),
            (name, message) => format!("{name}: {message}"),
        };
        let at = exception.stack().and_then(|stack| position(&stack));
        Failure { at, ..Failure::new(line) }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.at {
            Some((file, line, column)) => write!(f, "{file}:{line}:{column}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// Throws an exception with this message.
pub(crate) fn throw(ctx: &Ctx<'_>, why: &str) -> Error {
    Exception::throw_message(ctx, why)
}

/// Longest message, in bytes.
const MESSAGE_BYTES_MAX: usize = 300;

/// A text in one line, without control characters.
fn one_line(text: &str) -> String {
    let mut line = String::new();
    for c in text.chars() {
        if line.len() > MESSAGE_BYTES_MAX {
            line.push('…');
            break;
        }
        line.push(if c.is_control() { ' ' } else { c });
    }
    line
}

/// The first position in a file of the script.
fn position(stack: &str) -> Option<(String, u32, u32)> {
    stack.lines().find_map(|line| {
        let place = line.trim().strip_prefix("at ")?;
        let place = match place.rsplit_once('(') {
            Some((_, place)) => place.strip_suffix(')')?,
            None => place,
        };
        let (rest, column) = place.rsplit_once(':')?;
        let (file, line) = rest.rsplit_once(':')?;
        let is_eval = ["<eval>", "eval_script"].contains(&file);
        let is_of_script = !crate::built_in::is_built_in(file) && !is_eval;
        is_of_script.then_some(())?;
        Some((file.to_owned(), line.parse().ok()?, column.parse().ok()?))
    })
}
