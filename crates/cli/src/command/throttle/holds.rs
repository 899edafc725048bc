//! `--rate`: each way to hold it.

use super::stand::HoldStand;
use super::{RawThrottle, laboratory, list};
use crate::command::laboratory::Order;
use crate::failure::{Exit, Failure};
use crate::margins;
use crate::words::{self, Words};
use knee_core::arrival::{either, shapes};
use knee_core::experiment::throttle::RateTable;
use knee_core::experiment::throttle::hold::{HoldMethod, HoldSpec};
use knee_core::experiment::throttle::wait::Chore;
use knee_core::spec::{ArrivalLaw, Margins, Rate};
use knee_core::throttle::CatchUp;
use knee_core::time::Nanos;

/// How long the rate is held by each method, unless given.
const DURATION: Nanos = Nanos::from_secs(2);

/// What the table has a row for.
#[derive(Clone, Debug, PartialEq)]
pub struct HoldTable {
    pub methods: Vec<HoldMethod>,
    /// What is asked of each method.
    pub base: HoldSpec,
}

impl RawThrottle {
    /// The table of rates, but for the chore and the seed.
    pub(super) fn holds(&self, rate: Rate) -> Result<HoldTable, Failure> {
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
        Ok(HoldTable { methods, base })
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
        asked
            .law(length, None)
            .map_err(|e| Failure::argument("--arrival", e))
    }
}

/// The operation of `--op-time`.
pub fn busy(time: Option<Nanos>) -> Chore {
    match time {
        None | Some(Nanos::ZERO) => Chore::None,
        Some(time) => Chore::Busy(time),
    }
}

impl HoldTable {
    /// The options in the words of the command line.
    pub fn tell(&self, words: &mut Words) {
        let method = |m: &HoldMethod| m.name().to_string();
        let methods = list::tell(&self.methods, &HoldMethod::ALL, method);
        words.put("methods", methods);
        words.put("rate", self.base.rate.exactly());
        words.put("arrival", self.base.arrival.text(""));
        words.put("policy", self.base.catch_up.to_string());
        words.put("min-wait", self.base.wait_min.exactly());
        words.put("duration", self.base.duration.exactly());
    }

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
pub fn execute(order: Order, table: HoldTable) -> Result<Exit, Failure> {
    let notes = order.output.notes();
    let rows = table.rows(&margins::of_this_machine(notes));
    let mut stand = HoldStand::new(&rows);
    notes.tell(&announcement(&table, stand.total()));
    laboratory::conduct(order, &mut RateTable::new(rows), &mut stand)
}

fn announcement(table: &HoldTable, total: Nanos) -> String {
    let ways = match table.methods.len() {
        1 => "1 way".to_string(),
        n => format!("{n} ways"),
    };
    let rate = table.base.rate.exactly();
    let each = table.base.duration;
    format!(
        "{ways} to hold {rate} for {each}: about {}",
        words::about(total)
    )
}
