//! When operations start: `--arrival`.

use super::trace::{self, RecordedArrivals};
use crate::failure::Failure;
use crate::resolved_options::ResolvedOptions;
use clap::Args;
use knee_load::arrival;
use knee_load::spec::{ArrivalLaw, AskedArrival, Rate};
use knee_load::time::Nanos;
use knee_scenario::Scenario;
use std::sync::Arc;

#[derive(Args, Clone, Debug)]
pub struct ArrivalArgs {
    #[arg(
        long,
        value_name = "A",
        value_parser = AskedArrival::parse,
        help_heading = "Load",
        help = format!("Arrival process: {}", arrival::either(&arrival::shapes(None))),
        long_help = long_help()
    )]
    pub arrival: Option<AskedArrival>,
}

impl ArrivalArgs {
    /// Takes the arrival process of a scenario where none was given, for rates that the scenario
    /// does not choose. Whether there is one now.
    pub fn fill(&mut self, scenario: &Scenario) -> bool {
        let asked = scenario.load.as_ref().and_then(|load| load.arrival.as_ref());
        let asked = asked.filter(|asked| !asked.carries_rate());
        self.arrival = self.arrival.take().or_else(|| asked.cloned());
        self.arrival.is_some()
    }

    /// The trace, where `--arrival` names one.
    pub fn trace(&self) -> Result<Option<RecordedArrivals>, Failure> {
        let file = self.arrival.as_ref().and_then(AskedArrival::file);
        file.map(trace::read).transpose()
    }

    /// Whether the arrivals carry their own rate.
    pub fn carries_rate(&self) -> bool {
        let asked = self.arrival.as_ref();
        asked.is_some_and(AskedArrival::carries_rate)
    }

    /// The mean rate and the process at this rate (`None`: the arrivals carry it) over the whole
    /// run.
    pub fn schedule(
        &self,
        rate: Option<Rate>,
        trace: Option<&RecordedArrivals>,
        run_length: Nanos,
    ) -> Result<(Rate, ArrivalLaw), Failure> {
        let moments = trace.map(|trace| Arc::clone(&trace.times));
        let arrival = match &self.arrival {
            Some(asked) => {
                asked.law(run_length, moments).map_err(|e| Failure::argument("--arrival", e))?
            }
            None => ArrivalLaw::Constant,
        };
        let rate = rate.or_else(|| arrival.own_rate()).ok_or_else(|| {
            Failure::argument("--arrival", "needs a rate: give --rate, such as --rate 1000")
        })?;
        Ok((rate, arrival))
    }

    /// Adds the option as it can be typed again, its default settled.
    pub fn tell(&self, arrival: &ArrivalLaw, options: &mut ResolvedOptions) {
        let file = self.arrival.as_ref().and_then(AskedArrival::file);
        options.put("arrival", arrival.text(file.unwrap_or_default()));
    }
}

fn long_help() -> String {
    let shapes = arrival::either(&arrival::shapes(None));
    format!("Arrival process: {shapes}\n\n{}", arrival::help())
}
