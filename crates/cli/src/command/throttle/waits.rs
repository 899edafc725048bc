//! The instrument: each way of waiting, asked for each delay.

use super::runner::WaitRunner;
use super::{RawThrottle, laboratory, list};
use crate::args::parse_positive;
use crate::command::laboratory::ReportSetup;
use crate::failure::{Exit, Failure};
use crate::margins;
use crate::notes::{Notes, about};
use knee_core::experiment::throttle::{self, margins_of};
use knee_engine::experiment::throttle::is_permitted;
use knee_load::experiment::throttle::{Chore, WaitMethod, WaitSpec};
use knee_load::spec::{Margins, ParseError};
use knee_load::time::Nanos;

/// Time spent on a row, unless given.
const DURATION: Nanos = Nanos::from_millis(500);

/// What is asked for, unless given, in microseconds.
const DELAYS_US: [u64; 13] =
    [50, 100, 200, 500, 1_000, 2_000, 3_000, 5_000, 10_000, 15_000, 20_000, 30_000, 50_000];

/// A row of the longest delay takes five of them.
const DELAY_MAX: Nanos = Nanos::from_secs(10);

/// What the table has a row for.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitRows {
    pub methods: Vec<WaitMethod>,
    /// The methods were named: one that this machine does not permit is an error, not a gap.
    pub is_picky: bool,
    pub delays: Vec<Nanos>,
    pub duration: Nanos,
    /// A row without and a row with it.
    pub chore: Option<Chore>,
}

impl RawThrottle {
    /// The table of waits, but for the chore.
    pub(super) fn waits(&self) -> Result<WaitRows, Failure> {
        let methods = self.methods.as_deref();
        let delays = self.delays.as_deref();
        Ok(WaitRows {
            methods: list::parse("--methods", methods, &WaitMethod::ALL, WaitMethod::parse)?,
            is_picky: methods.is_some_and(|text| text != list::ALL),
            delays: list::parse("--delays", delays, &DELAYS_US.map(Nanos::from_micros), delay)?,
            duration: self.duration.unwrap_or(DURATION),
            chore: None,
        })
    }
}

impl WaitRows {
    /// The rows: delay by delay, so that the methods of each stand side by side.
    pub fn rows(&self, margins: &Margins) -> Vec<WaitSpec> {
        let chores: Vec<Chore> = [Chore::None].into_iter().chain(self.chore.clone()).collect();
        let mut rows = Vec::new();
        for &delay in &self.delays {
            for &method in &self.methods {
                rows.extend(chores.iter().map(|chore| WaitSpec {
                    method,
                    delay,
                    duration: self.duration,
                    chore: chore.clone(),
                    margins: *margins,
                }));
            }
        }
        rows
    }

    /// Takes out the methods that this machine does not permit; each with the reason. One that was
    /// asked for by name is an error.
    fn drop_unpermitted(&mut self) -> Result<Vec<(WaitMethod, String)>, Failure> {
        let mut dropped = Vec::new();
        for method in std::mem::take(&mut self.methods) {
            match is_permitted(method) {
                Ok(()) => self.methods.push(method),
                Err(e) if self.is_picky => return Err(e.into()),
                Err(e) => dropped.push((method, e.to_string())),
            }
        }
        Ok(dropped)
    }
}

/// Measures the table, reports it, and keeps the margins that it tells.
pub fn execute(setup: ReportSetup, mut table: WaitRows) -> Result<Exit, Failure> {
    let notes = setup.output.notes();
    let dropped = table.drop_unpermitted()?;
    let rows = table.rows(&margins::of_this_machine(notes));
    let mut runner = WaitRunner::new(&rows);
    notes.tell(&announcement(rows.len(), &table, runner.total()));
    let mut experiment = throttle::WaitTable::new(rows);
    for (method, reason) in dropped {
        experiment = experiment.without(method, reason);
    }
    let exit = laboratory::conduct(setup, &mut experiment, &mut runner)?;
    if exit != Exit::Invalid {
        keep_margins(&runner, notes);
    }
    Ok(exit)
}

fn keep_margins(runner: &WaitRunner, notes: Notes) {
    let trials = runner.trials();
    if let Some(margins) = trials.and_then(margins_of) {
        margins::keep(&margins, notes);
    }
}

fn announcement(rows: usize, table: &WaitRows, total: Nanos) -> String {
    let s = if rows == 1 { "" } else { "s" };
    format!("{rows} row{s} of {}: about {}", table.duration, about(total))
}

fn delay(text: &str) -> Result<Nanos, ParseError> {
    let delay = parse_positive(text)?;
    if delay > DELAY_MAX {
        return Err(ParseError(format!(
            "'{text}' is too long: at most {}, as each row makes {} waits or more",
            DELAY_MAX.exactly(),
            WaitSpec::SAMPLES_MIN
        )));
    }
    Ok(delay)
}
