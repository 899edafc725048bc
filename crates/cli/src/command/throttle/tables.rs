//! The two tables: each way of waiting asked for each delay, and each way to hold a rate.

use super::runner::{HoldRunner, WaitRunner};
use super::{RawThrottle, laboratory};
use crate::args::parse_positive;
use crate::command::laboratory::ReportSetup;
use crate::failure::{Exit, Failure};
use crate::margins;
use crate::stdio::{Notes, about};
use knee_core::experiment::throttle::{self, RateTable, margins_of};
use knee_engine::experiment::throttle::is_permitted;
use knee_load::arrival::{either, shapes};
use knee_load::experiment::throttle::{Chore, WaitMethod, WaitSpec};
use knee_load::experiment::throttle::{HoldMethod, HoldSpec};
use knee_load::spec::{ArrivalLaw, Margins, ParseError, Rate};
use knee_load::throttle::CatchUp;
use knee_load::time::Nanos;

/// The word for all there are.
const ALL: &str = "all";

/// Time spent on a row, unless given.
const ROW_DURATION: Nanos = Nanos::from_millis(500);

/// How long the rate is held by each method, unless given.
const HOLD_DURATION: Nanos = Nanos::from_secs(2);

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
            methods: parse_list("--methods", methods, &WaitMethod::ALL, WaitMethod::parse)?,
            is_picky: methods.is_some_and(|text| text != ALL),
            delays: parse_list("--delays", delays, &DELAYS_US.map(Nanos::from_micros), delay)?,
            duration: self.duration.unwrap_or(ROW_DURATION),
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
pub fn measure_waits(setup: ReportSetup, mut table: WaitRows) -> Result<Exit, Failure> {
    let notes = setup.output.notes();
    let dropped = table.drop_unpermitted()?;
    let rows = table.rows(&margins::of_this_machine(notes));
    let mut runner = WaitRunner::new(&rows);
    notes.tell(&waits_announcement(rows.len(), &table, runner.rows.total()));
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

fn waits_announcement(rows: usize, table: &WaitRows, total: Nanos) -> String {
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

/// What the table has a row for.
#[derive(Clone, Debug, PartialEq)]
pub struct HoldRows {
    pub methods: Vec<HoldMethod>,
    /// What is asked of each method.
    pub base: HoldSpec,
}

impl RawThrottle {
    /// The table of rates, but for the chore and the seed.
    pub(super) fn holds(&self, rate: Rate) -> Result<HoldRows, Failure> {
        let methods = self.methods.as_deref();
        let methods = parse_list("--methods", methods, &HoldMethod::ALL, HoldMethod::parse)?;
        let base = HoldSpec {
            method: HoldMethod::Throttle,
            rate,
            arrival: self.arrival()?,
            catch_up: self.policy.unwrap_or(CatchUp::ALL),
            wait_min: self.min_wait.unwrap_or_default(),
            duration: self.duration.unwrap_or(HOLD_DURATION),
            chore: Chore::None,
            seed: 0,
            margins: Margins::UNKNOWN,
        };
        Ok(HoldRows { methods, base })
    }

    fn arrival(&self) -> Result<ArrivalLaw, Failure> {
        let Some(asked) = &self.arrival else {
            return Ok(ArrivalLaw::Constant);
        };
        if asked.carries_rate() {
            let wrong = format!(
                "'{}' carries its own rate, but --rate is held here: give {}",
                asked.text(),
                either(&shapes(Some(false)))
            );
            return Err(Failure::argument("--arrival", wrong));
        }
        let length = self.duration.unwrap_or(HOLD_DURATION);
        asked.law(length, None).map_err(|e| Failure::argument("--arrival", e))
    }
}

/// The operation of `--op-time`.
pub fn busy(time: Option<Nanos>) -> Chore {
    match time {
        None | Some(Nanos::ZERO) => Chore::None,
        Some(time) => Chore::Busy(time),
    }
}

impl HoldRows {
    /// The rows.
    pub fn rows(&self, margins: &Margins) -> Vec<HoldSpec> {
        let row = |method: &HoldMethod| HoldSpec {
            method: *method,
            margins: *margins,
            ..self.base.clone()
        };
        self.methods.iter().map(row).collect()
    }
}

/// Measures the table and reports it.
pub fn measure_holds(setup: ReportSetup, table: HoldRows) -> Result<Exit, Failure> {
    let notes = setup.output.notes();
    let rows = table.rows(&margins::of_this_machine(notes));
    let mut runner = HoldRunner::new(&rows);
    notes.tell(&holds_announcement(&table, runner.rows.total()));
    laboratory::conduct(setup, &mut RateTable::new(rows), &mut runner)
}

fn holds_announcement(table: &HoldRows, total: Nanos) -> String {
    let ways = match table.methods.len() {
        1 => "1 way".to_string(),
        n => format!("{n} ways"),
    };
    let rate = table.base.rate.exactly();
    let each = table.base.duration;
    format!("{ways} to hold {rate} for {each}: about {}", about(total))
}

/// The values of a list, none of them twice; `all` for that word, and where no list was given.
fn parse_list<T: PartialEq + Clone>(
    option: &str,
    text: Option<&str>,
    all: &[T],
    parse_one: impl Fn(&str) -> Result<T, ParseError>,
) -> Result<Vec<T>, Failure> {
    let Some(text) = text.filter(|text| *text != ALL) else {
        return Ok(all.to_vec());
    };
    let mut values: Vec<T> = Vec::new();
    for part in text.split(',').map(str::trim) {
        let value = parse_one(part).map_err(|e| Failure::argument(option, e))?;
        if values.contains(&value) {
            let wrong = format!("'{part}' is there twice: once is enough");
            return Err(Failure::argument(option, wrong));
        }
        values.push(value);
    }
    Ok(values)
}

/// A list as it can be typed again.
pub fn typed_list<T: PartialEq>(values: &[T], all: &[T], name: impl Fn(&T) -> String) -> String {
    if values == all {
        return ALL.to_string();
    }
    values.iter().map(name).collect::<Vec<_>>().join(",")
}
