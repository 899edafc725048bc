//! `--rate`: each way to hold it.

use super::runner::HoldRunner;
use super::{RawThrottle, laboratory, list};
use crate::command::laboratory::ReportSetup;
use crate::failure::{Exit, Failure};
use crate::margins;
use crate::notes::about;
use knee_core::experiment::throttle::RateTable;
use knee_load::arrival::{either, shapes};
use knee_load::experiment::throttle::{Chore, HoldMethod, HoldSpec};
use knee_load::spec::{ArrivalLaw, Margins, Rate};
use knee_load::throttle::CatchUp;
use knee_load::time::Nanos;

/// How long the rate is held by each method, unless given.
const DURATION: Nanos = Nanos::from_secs(2);

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
        let methods = list::parse("--methods", methods, &HoldMethod::ALL, HoldMethod::parse)?;
        let base = HoldSpec {
            method: HoldMethod::Throttle,
            rate,
            arrival: self.arrival()?,
            catch_up: self.policy.unwrap_or(CatchUp::ALL),
            wait_min: self.min_wait.unwrap_or_default(),
            duration: self.duration.unwrap_or(DURATION),
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
        let length = self.duration.unwrap_or(DURATION);
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
pub fn execute(setup: ReportSetup, table: HoldRows) -> Result<Exit, Failure> {
    let notes = setup.output.notes();
    let rows = table.rows(&margins::of_this_machine(notes));
    let mut runner = HoldRunner::new(&rows);
    notes.tell(&announcement(&table, runner.total()));
    laboratory::conduct(setup, &mut RateTable::new(rows), &mut runner)
}

fn announcement(table: &HoldRows, total: Nanos) -> String {
    let ways = match table.methods.len() {
        1 => "1 way".to_string(),
        n => format!("{n} ways"),
    };
    let rate = table.base.rate.exactly();
    let each = table.base.duration;
    format!("{ways} to hold {rate} for {each}: about {}", about(total))
}
