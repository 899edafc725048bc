//! The two tables: each way of waiting asked for each delay, and each way to hold a rate.

use super::RawThrottle;
use super::runner::{RowRunner, total};
use crate::args::parse_positive;
use crate::command::laboratory::{self, ReportSetup};
use crate::failure::{Exit, Failure};
use crate::margins;
use crate::resolved_options::ResolvedOptions;
use crate::stdio::about;
use knee_core::experiment::throttle::{self, RateTable, margins_of};
use knee_engine::experiment::throttle::{hold, is_permitted, wait};
use knee_load::arrival::{either, shapes};
use knee_load::experiment::throttle::{
    Chore, HoldMethod, HoldSpec, HoldTrial, WaitMethod, WaitSpec, WaitTrial,
};
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

/// What is measured.
#[derive(Debug, PartialEq)]
pub(super) enum Table {
    Waits {
        rows: Vec<WaitSpec>,
        /// The methods were named: one that this machine does not permit is an error, not a gap.
        is_picky: bool,
    },
    Holds(Vec<HoldSpec>),
}

impl RawThrottle {
    /// The table of waits: delay by delay, so that the methods of each stand side by side, each
    /// without and with the chore. `options` get what it uses in the place of defaults.
    pub(super) fn waits(
        &self,
        chore: Option<Chore>,
        options: &mut ResolvedOptions,
    ) -> Result<Table, Failure> {
        let methods = parse_list("--methods", &self.methods, &WaitMethod::ALL, WaitMethod::parse)?;
        let delays =
            parse_list("--delays", &self.delays, &DELAYS_US.map(Nanos::from_micros), delay)?;
        let duration = self.duration.unwrap_or(ROW_DURATION);
        let is_all = methods == WaitMethod::ALL;
        options.put("methods", if is_all { ALL.into() } else { joined(&methods, |m| m.name()) });
        options.put("delays", joined(&delays, |delay| delay.exactly()));
        options.put("duration", duration.exactly());
        let mut rows = Vec::new();
        for &delay in &delays {
            for &method in &methods {
                for chore in [Some(Chore::None), chore.clone()].into_iter().flatten() {
                    let margins = Margins::UNKNOWN;
                    rows.push(WaitSpec { method, delay, duration, chore, margins });
                }
            }
        }
        let is_picky = self.methods.as_ref().is_some_and(|text| text != ALL);
        Ok(Table::Waits { rows, is_picky })
    }

    /// The table of rates. `options` get what it uses in the place of defaults.
    pub(super) fn holds(
        &self,
        rate: Rate,
        seed: u64,
        chore: Option<Chore>,
        options: &mut ResolvedOptions,
    ) -> Result<Table, Failure> {
        let methods = parse_list("--methods", &self.methods, &HoldMethod::ALL, HoldMethod::parse)?;
        let duration = self.duration.unwrap_or(HOLD_DURATION);
        let arrival = match &self.arrival {
            None => ArrivalLaw::Constant,
            Some(asked) if asked.carries_rate() => {
                let error = format!(
                    "'{}' carries its own rate, but --rate is held here: give {}",
                    asked.text(),
                    either(&shapes(Some(false)))
                );
                return Err(Failure::argument("--arrival", error));
            }
            Some(asked) => {
                asked.law(duration, None).map_err(|e| Failure::argument("--arrival", e))?
            }
        };
        let busy = self.op_time.filter(|time| *time > Nanos::ZERO).map(Chore::Busy);
        let base = HoldSpec {
            method: HoldMethod::Throttle,
            rate,
            arrival,
            catch_up: self.policy.unwrap_or(CatchUp::ALL),
            wait_min: self.min_wait.unwrap_or_default(),
            duration,
            chore: chore.or(busy).unwrap_or(Chore::None),
            seed,
            margins: Margins::UNKNOWN,
        };
        let is_all = methods == HoldMethod::ALL;
        options.put("methods", if is_all { ALL.into() } else { joined(&methods, |m| m.name()) });
        options.put("duration", duration.exactly());
        options.put("policy", base.catch_up.to_string());
        options.put("min-wait", base.wait_min.exactly());
        options.put("arrival", base.arrival.text(""));
        let rows = methods.into_iter().map(|method| HoldSpec { method, ..base.clone() });
        Ok(Table::Holds(rows.collect()))
    }
}

/// Measures the table, reports it, and keeps the margins that it shows.
pub(super) fn measure_waits(
    setup: ReportSetup,
    mut rows: Vec<WaitSpec>,
    is_picky: bool,
) -> Result<Exit, Failure> {
    let notes = setup.output.notes();
    let mut left_out = Vec::new();
    for method in WaitMethod::ALL {
        if !rows.iter().any(|row| row.method == method) {
            continue;
        }
        match is_permitted(method) {
            Ok(()) => {}
            Err(e) if is_picky => return Err(e.into()),
            Err(e) => {
                rows.retain(|row| row.method != method);
                left_out.push((method, e.to_string()));
            }
        }
    }
    let margins = margins::of_this_machine(notes);
    rows.iter_mut().for_each(|row| row.margins = margins);
    let of_row = |row: &WaitSpec| {
        let least = Nanos(row.delay.0.saturating_mul(WaitSpec::SAMPLES_MIN));
        let waits = format!("{} {}", row.method.name(), row.delay);
        let label = match &row.chore {
            Chore::None => waits,
            chore => format!("{waits} with {}", chore.name()),
        };
        (row.duration.max(least), label)
    };
    // The first row has no chore: that nobody is there to do it should not come out only after it.
    let probe = rows.iter().find(|row| row.chore != Chore::None).map(|row| WaitSpec {
        method: WaitMethod::Spin,
        delay: Nanos::from_micros(1),
        duration: Nanos::ZERO,
        ..row.clone()
    });
    let mut runner = RowRunner {
        rows: rows.iter().map(of_row).collect(),
        measure: |spec: &WaitSpec, stop| {
            let waits = wait(spec, stop)?;
            let is_interrupted = waits.interrupted;
            Ok((WaitTrial { spec: spec.clone(), waits }, is_interrupted))
        },
        probe,
        trials: Vec::new(),
        begun: 0,
    };
    let (count, duration) = (rows.len(), rows.first().map_or(Nanos::ZERO, |row| row.duration));
    let s = if count == 1 { "" } else { "s" };
    notes.say(&format!("{count} row{s} of {duration}: about {}", about(total(&runner.rows))));
    let mut experiment = throttle::WaitTable::new(rows, left_out);
    let exit = laboratory::conduct(setup, &mut experiment, &mut runner)?;
    let is_whole = !runner.trials.iter().any(|trial| trial.waits.interrupted);
    if let Some(margins) = margins_of(&runner.trials).filter(|_| is_whole && exit != Exit::Invalid)
    {
        margins::keep(&margins, notes);
    }
    Ok(exit)
}

/// Measures the table and reports it.
pub(super) fn measure_holds(setup: ReportSetup, mut rows: Vec<HoldSpec>) -> Result<Exit, Failure> {
    let notes = setup.output.notes();
    let margins = margins::of_this_machine(notes);
    rows.iter_mut().for_each(|row| row.margins = margins);
    let mut runner = RowRunner {
        rows: rows.iter().map(|row| (row.duration, row.method.name().to_owned())).collect(),
        measure: |spec: &HoldSpec, stop| {
            let holds = hold(spec, stop)?;
            let is_interrupted = holds.interrupted;
            Ok((HoldTrial { spec: spec.clone(), holds }, is_interrupted))
        },
        probe: None,
        trials: Vec::new(),
        begun: 0,
    };
    if let Some(row) = rows.first() {
        let (count, rate, time) = (rows.len(), row.rate.exactly(), about(total(&runner.rows)));
        let s = if count == 1 { "" } else { "s" };
        notes.say(&format!("{count} way{s} to hold {rate} for {}: about {time}", row.duration));
    }
    laboratory::conduct(setup, &mut RateTable::new(rows), &mut runner)
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

/// The values of a list, none of them twice; `all` for that word, and where no list was given.
fn parse_list<T: PartialEq + Clone>(
    option: &str,
    text: &Option<String>,
    all: &[T],
    parse_one: impl Fn(&str) -> Result<T, ParseError>,
) -> Result<Vec<T>, Failure> {
    let Some(text) = text.as_ref().filter(|text| *text != ALL) else {
        return Ok(all.to_vec());
    };
    let mut values: Vec<T> = Vec::new();
    for part in text.split(',').map(str::trim) {
        let value = parse_one(part).map_err(|e| Failure::argument(option, e))?;
        if values.contains(&value) {
            let error = format!("'{part}' is there twice: once is enough");
            return Err(Failure::argument(option, error));
        }
        values.push(value);
    }
    Ok(values)
}

/// A list as it can be typed again.
fn joined<T, N: ToString>(values: &[T], name: impl Fn(&T) -> N) -> String {
    values.iter().map(|value| name(value).to_string()).collect::<Vec<_>>().join(",")
}
