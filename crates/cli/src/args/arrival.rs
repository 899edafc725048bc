//! When operations start: `--arrival`, and recorded arrivals, `trace(FILE)`.

use crate::failure::Failure;
use crate::input;
use crate::resolved_options::ResolvedOptions;
use clap::Args;
use knee_load::arrival::{self, length_of_trace};
use knee_load::spec::{ArrivalLaw, AskedArrival, Rate, parse_duration};
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
        self.arrival.as_ref().and_then(AskedArrival::file).map(read).transpose()
    }

    /// Whether the arrivals carry their own rate.
    pub fn carries_rate(&self) -> bool {
        self.arrival.as_ref().is_some_and(AskedArrival::carries_rate)
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
    pub fn put_in(&self, arrival: &ArrivalLaw, options: &mut ResolvedOptions) {
        let file = self.arrival.as_ref().and_then(AskedArrival::file);
        options.put("arrival", arrival.text(file.unwrap_or_default()));
    }
}

fn long_help() -> String {
    let shapes = arrival::either(&arrival::shapes(None));
    format!("Arrival process: {shapes}\n\n{}", arrival::help())
}

/// Recorded times of arrivals.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedArrivals {
    /// Ascending, from the beginning of the run, at least one.
    pub times: Arc<[Nanos]>,
}

impl RecordedArrivals {
    /// From the beginning of the run to one mean gap after the last arrival.
    pub fn length(&self) -> Nanos {
        length_of_trace(&self.times)
    }
}

/// Reads a file with one time per line, in seconds or with a unit; empty lines and those that begin
/// with `#` are skipped.
pub fn read(path: &str) -> Result<RecordedArrivals, Failure> {
    let whole = input::read_text(path).map_err(|e| Failure::argument("--arrival", e.line))?;
    parse(&whole).map_err(|wrong| Failure::argument("--arrival", format!("{path}: {wrong}")))
}

fn parse(text: &str) -> Result<RecordedArrivals, String> {
    let mut times: Vec<Nanos> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let time = parse_duration(line).map_err(|e| format!("line {number}: {e}"))?;
        if times.last().is_some_and(|&before| time < before) {
            return Err(format!(
                "line {number}: '{line}' is earlier than the line above it; times must ascend"
            ));
        }
        times.push(time);
    }
    if times.is_empty() {
        return Err("contains no time: expected one per line, such as 0.125 or 125ms".to_string());
    }
    Ok(RecordedArrivals { times: times.into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_load::spec::{ArrivalLaw, Rate};

    fn rate(trace: &RecordedArrivals) -> Option<Rate> {
        ArrivalLaw::Trace(Arc::clone(&trace.times)).own_rate()
    }

    #[test]
    fn moments_in_seconds_or_with_a_unit() {
        let trace = parse("# begin\n0\n0.5\n\n1500ms\r\n3s").unwrap();
        let expected = [0, 500, 1_500, 3_000].map(Nanos::from_millis);
        assert_eq!(&trace.times[..], &expected);
        assert_eq!(trace.length(), Nanos::from_secs(4));
        assert_eq!(rate(&trace).unwrap().per_s(), 1.0);
    }

    #[test]
    fn errors_name_the_line() {
        for (text, expected) in [
            ("0\nsoon\n", "line 2: "),
            ("1\n\n0.5", "line 3: '0.5' is earlier than the line above it"),
            ("# nothing\n", "contains no time"),
            ("", "contains no time"),
        ] {
            let wrong = parse(text).unwrap_err();
            assert!(wrong.starts_with(expected), "{text:?}: {wrong}");
        }
    }

    #[test]
    fn a_single_moment_has_a_rate() {
        assert!(rate(&parse("0").unwrap()).is_some());
        assert_eq!(parse("2").unwrap().length(), Nanos::from_secs(4));
    }
}
