//! Arrival processes as the command line asks for them.

use super::{ALL, ArrivalLaw, Process, Run};
use crate::quantity::ParseError;
use crate::quantity::parse::{Call, error, quoted};
use crate::time::Nanos;
use std::sync::Arc;

/// How a process is written, and what its name alone says of it.
pub(super) struct Written {
    name: &'static str,
    shape: &'static str,
    meaning: &'static str,
    help: &'static str,
    carries_rate: bool,
    takes_length: bool,
    has_file: bool,
}

impl Written {
    pub(super) const fn of<P: Process>() -> Written {
        Written {
            name: P::NAME,
            shape: P::SHAPE,
            meaning: P::MEANING,
            help: P::HELP,
            carries_rate: P::CARRIES_RATE,
            takes_length: P::TAKES_LENGTH,
            has_file: P::HAS_FILE,
        }
    }
}

/// An arrival process that was asked for. What only the run knows, such as its length, comes
/// [later](AskedArrival::law).
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
        Ok(AskedArrival {
            text: text.to_owned(),
            law,
        })
    }

    /// As it was typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its name without arguments.
    pub fn name(&self) -> &'static str {
        self.law.name()
    }

    /// Whether it carries its own rate, so that none may be given beside it.
    pub fn carries_rate(&self) -> bool {
        self.law.carries_rate()
    }

    /// Whether it takes its length from that of the run.
    pub fn takes_length(&self) -> bool {
        self.law.written().takes_length
    }

    /// The file of recorded moments that it names.
    pub fn file(&self) -> Option<&str> {
        let is_there = self.law.written().has_file;
        let (_, inner) = self.text.split_once('(').filter(|_| is_there)?;
        inner.trim_end().strip_suffix(')')
    }

    /// The law, for a run of this length and with the moments recorded in its [file](Self::file).
    ///
    /// # Errors
    /// It needs a length or moments, and there are none.
    pub fn law(
        &self,
        run_length: Nanos,
        moments: Option<Arc<[Nanos]>>,
    ) -> Result<ArrivalLaw, ParseError> {
        let mut law = self.law.clone();
        let run = Run {
            length: run_length,
            moments,
        };
        law.set(&run).map_err(|what| wrong(&self.text, what))?;
        Ok(law)
    }
}

impl ArrivalLaw {
    /// Its name on the command line and in reports.
    pub fn name(&self) -> &'static str {
        self.written().name
    }

    /// Whether it carries its own rate.
    pub fn carries_rate(&self) -> bool {
        self.written().carries_rate
    }
}

/// A process over `run_length`; one whose moments are in a file is refused.
///
/// # Errors
/// As [`AskedArrival::parse`] and [`AskedArrival::law`].
pub fn parse_arrival(text: &str, run_length: Nanos) -> Result<ArrivalLaw, ParseError> {
    AskedArrival::parse(text)?.law(run_length, None)
}

/// Whether a text begins as an arrival process does, so that its own parser knows best what is
/// wrong with it.
pub(crate) fn is_name(text: &str) -> bool {
    let name = text.split('(').next().unwrap_or_default().trim();
    ALL.iter().any(|known| known.name == name)
}

/// The processes as help lists them: `constant`, `burst(a,b,period)`; all, or those that do or do
/// not carry their own rate.
pub fn shapes(carries_rate: Option<bool>) -> Vec<&'static str> {
    let is_asked = |known: &&Written| carries_rate.is_none_or(|c| c == known.carries_rate);
    ALL.iter()
        .filter(is_asked)
        .map(|known| known.shape)
        .collect()
}

/// The names of those that carry their own rate.
pub fn names_with_rate() -> Vec<&'static str> {
    let with_rate = ALL.iter().filter(|known| known.carries_rate);
    with_rate.map(|known| known.name).collect()
}

/// The processes that can be asked for without a file.
pub(crate) fn schedules() -> Vec<&'static str> {
    let without = ALL.iter().filter(|known| !known.has_file);
    without.map(|known| known.shape).collect()
}

/// What each process does, in the words of the option's help.
pub fn help() -> String {
    ALL.iter()
        .map(|known| known.help)
        .collect::<Vec<_>>()
        .join(" ")
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
