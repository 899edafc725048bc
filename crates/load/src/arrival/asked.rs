//! Arrival processes as the command line asks for them.

use super::process::{GapLaw, ProcessKind, RunContext};
use super::{ALL, ArrivalLaw};
use crate::quantity::{Call, ParseError, error, quoted};
use crate::time::Nanos;
use std::sync::Arc;

/// An arrival process as typed. Its [law](AskedArrival::law) also depends on the run.
#[derive(Clone, Debug, PartialEq)]
pub struct AskedArrival {
    text: String,
    law: ArrivalLaw,
}

impl AskedArrival {
    /// Reads `constant`, `poisson`, `burst(a,b,period)` and all others.
    ///
    /// # Errors
    /// An unknown process, the wrong number of arguments, or an argument out of its range.
    pub fn parse(text: &str) -> Result<AskedArrival, ParseError> {
        let call = Call::parse(text);
        let (name, arguments) = match &call {
            Some(call) => (call.name, call.arguments.as_slice()),
            None => (text.trim(), &[][..]),
        };
        let law = ArrivalLaw::called(name, text, arguments).unwrap_or_else(|| {
            let known = ALL.iter().find(|known| known.name == name);
            Err(wrong(
                text,
                match known {
                    None => "is no arrival process",
                    Some(known) if known.shape == known.name => "takes no arguments",
                    Some(_) if call.is_none() => "lacks its arguments",
                    Some(_) => "has the wrong number of arguments",
                },
            ))
        })?;
        Ok(AskedArrival { text: text.to_owned(), law })
    }

    /// The text as typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Name without arguments.
    pub fn name(&self) -> &'static str {
        self.law.name()
    }

    /// Whether it carries its own rate, so that --rate is not permitted beside it.
    pub fn carries_rate(&self) -> bool {
        self.law.carries_rate()
    }

    /// Whether its length is that of the run.
    pub fn takes_length(&self) -> bool {
        self.law.kind().takes_length
    }

    /// The file of recorded times that it names.
    pub fn file(&self) -> Option<&str> {
        let is_there = self.law.kind().has_file;
        let (_, inner) = self.text.split_once('(').filter(|_| is_there)?;
        inner.trim_end().strip_suffix(')')
    }

    /// The law for a run of this length, with the times recorded in its [file](Self::file).
    ///
    /// # Errors
    /// The process needs a length or recorded times, and they are missing.
    pub fn law(
        &self,
        run_length: Nanos,
        recorded: Option<Arc<[Nanos]>>,
    ) -> Result<ArrivalLaw, ParseError> {
        let mut law = self.law.clone();
        let run = RunContext { length: run_length, recorded };
        law.set(&run).map_err(|what| wrong(&self.text, what))?;
        Ok(law)
    }
}

impl ArrivalLaw {
    /// Name on the command line and in reports.
    pub fn name(&self) -> &'static str {
        self.kind().name
    }

    /// Whether it carries its own rate.
    pub fn carries_rate(&self) -> bool {
        self.kind().carries_rate
    }

    /// Law of the gaps between operations, if it promises one.
    pub fn gaps(&self) -> Option<GapLaw> {
        self.kind().gaps
    }

    /// Whether it has operations all the time. Otherwise a silence says nothing about the target.
    pub fn asks_all_the_time(&self) -> bool {
        self.kind().asks_all_the_time
    }

    /// Whether its rate is always the same. Otherwise a change of the throughput may be its own.
    pub fn is_even(&self) -> bool {
        self.kind().is_even
    }
}

/// Reads a process for a run of this length; refuses one that needs a file.
///
/// # Errors
/// As [`AskedArrival::parse`] and [`AskedArrival::law`].
pub fn parse_arrival(text: &str, run_length: Nanos) -> Result<ArrivalLaw, ParseError> {
    AskedArrival::parse(text)?.law(run_length, None)
}

/// Whether a text begins with the name of an arrival process, so that errors are best made here.
pub fn is_name(text: &str) -> bool {
    let name = text.split('(').next().unwrap_or_default().trim();
    ALL.iter().any(|known| known.name == name)
}

/// The processes as help lists them: `constant`, `burst(a,b,period)`. `carries_rate` selects those
/// that do or do not carry their own rate.
pub fn shapes(carries_rate: Option<bool>) -> Vec<&'static str> {
    let is_asked = |known: &&ProcessKind| carries_rate.is_none_or(|c| c == known.carries_rate);
    ALL.iter().filter(is_asked).map(|known| known.shape).collect()
}

/// Names of the processes that carry their own rate.
pub fn names_with_rate() -> Vec<&'static str> {
    let with_rate = ALL.iter().filter(|known| known.carries_rate);
    with_rate.map(|known| known.name).collect()
}

/// Shapes of the processes that need no file.
pub fn schedules() -> Vec<&'static str> {
    let without = ALL.iter().filter(|known| !known.has_file);
    without.map(|known| known.shape).collect()
}

/// Help of all processes.
pub fn help() -> String {
    ALL.iter().map(|known| known.help).collect::<Vec<_>>().join(" ")
}

fn wrong(text: &str, what: &str) -> ParseError {
    let all: Vec<&str> = ALL.iter().map(|known| known.meaning).collect();
    error(format!("{} {what}: give {}", quoted(text), either(&all)))
}

/// `a, b or c`.
pub fn either(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [firsts @ .., last] => format!("{} or {last}", firsts.join(", ")),
    }
}
