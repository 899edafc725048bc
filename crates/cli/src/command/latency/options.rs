//! From the options of `knee latency` to scenarios that cannot be wrong.

use super::{LatencySpec, RawLatency};
use crate::args::{interval, service_address};
use crate::command::laboratory::ReportSetup;
use crate::failure::Failure;
use crate::machine::Machine;
use crate::resolved_options::{ResolvedOptions, Typed};
use crate::stdio::about;
use knee_core::experiment::latency::{LatencyPlan, QUICK, SCENARIOS, parse_scenarios};
use knee_core::report::Kind;
use knee_load::experiment::latency::{
    FlowSockets, LatencyTrialSpec, ProbeSpec, ScenarioEnd, Settle,
};
use knee_load::spec::{BackendChoice, EngineOptions, Level, ParseError, WaitPolicy};
use knee_load::time::Nanos;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// The port of a latency service, unless another is given.
pub const PORT: u16 = 7008;

/// The host of a service and, unless it is [`PORT`], its port: always `HOST:PORT` afterwards.
pub fn parse_service(text: &str) -> Result<String, ParseError> {
    service_address(text, "knee serve latency", PORT)
}

/// Uploads and downloads of each scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenarios(pub Vec<(u32, u32)>);

impl Typed for Scenarios {
    fn typed(&self) -> Value {
        self.0.iter().map(|(up, down)| format!("{up}/{down}")).collect::<Vec<_>>().join(",").into()
    }
}

/// Scenarios such as `1/1,4/4`.
pub fn parse_list(text: &str) -> Result<Scenarios, ParseError> {
    parse_scenarios(text).map(Scenarios)
}

/// A share in percent, with or without its sign, as a fraction: `5%` is 0.05.
pub fn parse_tolerance(text: &str) -> Result<f64, ParseError> {
    let number = text.trim().trim_end_matches('%').trim_end();
    match number.parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent > 0.0 && percent < 100.0 => {
            Ok(percent / 100.0)
        }
        _ => Err(ParseError(format!(
            "'{text}' is not a share above 0 % and below 100 %, such as 5%"
        ))),
    }
}

/// Serializes a share as it is typed: 0.05 is `5%`.
pub fn percent<S: Serializer>(share: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    // Twice a hundred leaves no trace of the binary fraction.
    share.map(|share| format!("{}%", (share * 1e6).round() / 1e4)).serialize(serializer)
}

/// Serializes a switch as `on` or `off`.
pub fn switch<S: Serializer>(switch: &Option<bool>, serializer: S) -> Result<S::Ok, S::Error> {
    switch.map(|on| if on { "on" } else { "off" }).serialize(serializer)
}

/// The longest name that a kernel gives a congestion control (TCP_CA_NAME_MAX, less the zero).
const CONTROL_NAME_MAX: usize = 15;

/// The name of a congestion control.
pub fn parse_control(text: &str) -> Result<String, ParseError> {
    let name = text.trim();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > CONTROL_NAME_MAX || !name.chars().all(is_name) {
        return Err(ParseError(format!(
            "'{name}' is no congestion control: give names such as cubic or cubic,bbr"
        )));
    }
    Ok(name.to_owned())
}

/// Code points by their names (IANA, Differentiated Services Field Codepoints). CS0 to CS7 and AF11
/// to AF43 follow a rule and are not listed.
const CODE_POINTS: [(&str, u8); 5] = [("BE", 0), ("DF", 0), ("LE", 1), ("VA", 44), ("EF", 46)];

/// A differentiated services code point: a number from 0 to 63, or a name.
pub fn parse_dscp(text: &str) -> Result<u8, ParseError> {
    let name = text.trim().to_ascii_uppercase();
    let number = name.parse::<u8>().ok().filter(|n| *n < 64);
    let listed = CODE_POINTS.iter().find(|(known, _)| *known == name);
    let digits = |prefix: &str| -> Vec<u32> {
        let rest = name.strip_prefix(prefix).unwrap_or_default();
        let digits: Option<Vec<u32>> = rest.chars().map(|c| c.to_digit(10)).collect();
        digits.unwrap_or_default()
    };
    let ruled = match (digits("CS").as_slice(), digits("AF").as_slice()) {
        // RFC 2474 §4.2.2.2.
        ([class @ 0..=7], _) => Some(class * 8),
        // RFC 2597 §6.
        (_, [class @ 1..=4, drop @ 1..=3]) => Some(class * 8 + drop * 2),
        _ => None,
    };
    let ruled = ruled.map(|n| n as u8);
    number.or(listed.map(|(_, n)| *n)).or(ruled).ok_or_else(|| {
        ParseError(format!(
            "'{text}' is no code point: give 0 to 63, or EF, CS0 to CS7, AF11 to AF43, LE, VA"
        ))
    })
}

/// `on` or `off`.
pub fn parse_switch(text: &str) -> Result<bool, ParseError> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(ParseError(format!("'{text}' is neither on nor off"))),
    }
}

/// What stands behind a number of bytes, and how many each is.
const UNITS: [(&str, u64); 9] = [
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("k", 1_000),
    ("K", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
];

/// An amount of data, at least a byte: `500M`, `10GiB`, `1000000`.
pub fn parse_amount(text: &str) -> Result<u64, ParseError> {
    let stem = text.trim().trim_end_matches('B');
    let (number, unit) = UNITS
        .iter()
        .find_map(|(unit, bytes)| Some((stem.strip_suffix(unit)?, *bytes)))
        .unwrap_or((stem, 1));
    let number = number.trim_end().replace('_', "");
    let is_plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
    let bytes = number.parse::<f64>().ok().filter(|_| is_plain).map(|n| n * unit as f64);
    match bytes {
        Some(bytes) if (1.0..1e18).contains(&bytes) => Ok(bytes as u64),
        _ => Err(ParseError(format!(
            "'{text}' is no amount of data: give bytes, such as 500M, 10GB or 4GiB"
        ))),
    }
}

/// A scenario that does not settle is ended then, unless another time is given.
const LIMIT: Nanos = Nanos::from_secs(600);

/// Default time for measuring the idle path.
const IDLE: Nanos = Nanos::from_secs(2);

/// More often than this probes are a load.
const PROBE_EVERY_MIN: Nanos = Nanos::from_millis(1);

/// A probe over UDP is lost then: no queue that people use holds more.
const PROBE_TIMEOUT: Nanos = Nanos::from_secs(5);

/// A scenario that is to settle has intervals as one of this length.
const LENGTH_FOR_INTERVAL: Nanos = Nanos::from_secs(5);

impl RawLatency {
    /// What is to be run.
    pub fn resolve(mut self, machine: &Machine) -> Result<LatencySpec, Failure> {
        self.refuse_contradictions()?;
        let scenarios = self.chosen();
        let flows = scenarios.iter().map(|(up, down)| up + down).max();
        machine.check_connections("--scenarios", flows.unwrap_or(1))?;
        let length = self.duration.unwrap_or(LENGTH_FOR_INTERVAL);
        let interval = interval(self.interval, length)?;
        let seed = self.seed.seed();
        let cc = self.cc.iter().cloned().map(Some);
        let mut plan = LatencyPlan {
            scenarios,
            idle: self.idle.unwrap_or(IDLE),
            congestion: cc.collect(),
            base: self.base(interval, seed),
        };
        if self.service_address.is_some() {
            plan.base.token = self.token.resolve()?;
        }
        let options = self.resolved_options(interval, seed);
        let output = self.output.resolve()?;
        let setup = ReportSetup::new(Kind::Latency, seed, options, self.thresholds, output);
        Ok(LatencySpec { plan, service: self.service_address, setup })
    }

    fn refuse_contradictions(&self) -> Result<(), Failure> {
        if let (Some(option), None) = (self.token.option(), &self.service_address) {
            return Err(Failure::argument(option, "the built-in service needs none: give HOST"));
        }
        if self.probe_every < PROBE_EVERY_MIN {
            let error = format!(
                "'{}' is too often, as probes are no load: at least 1ms",
                self.probe_every.exactly()
            );
            return Err(Failure::argument("--probe-every", error));
        }
        let twice = |(i, name): (usize, &String)| self.cc[..i].contains(name);
        if let Some((_, name)) = self.cc.iter().enumerate().find(|each| twice(*each)) {
            let error = format!("'{name}' is there twice: name each once");
            return Err(Failure::argument("--cc", error));
        }
        Ok(())
    }

    /// Uploads and downloads of each scenario.
    fn chosen(&self) -> Vec<(u32, u32)> {
        match &self.scenarios {
            Some(Scenarios(given)) => given.clone(),
            None if self.quick => QUICK.to_vec(),
            None => SCENARIOS.to_vec(),
        }
    }

    fn limit(&self) -> Nanos {
        self.scenario_limit.unwrap_or(LIMIT)
    }

    fn tolerance(&self) -> f64 {
        self.settle.unwrap_or(Settle::default().tolerance)
    }

    /// What all trials share.
    fn base(&self, interval: Nanos, seed: u64) -> LatencyTrialSpec {
        let end = match self.duration {
            Some(duration) => ScenarioEnd::After(duration),
            None => ScenarioEnd::Settled {
                settle: Settle { tolerance: self.tolerance(), ..Settle::default() },
                limit: self.limit(),
            },
        };
        LatencyTrialSpec {
            label: String::new(),
            level: Level::Flows { up: 0, down: 0 },
            // Known only once it listens.
            service: String::new(),
            // A built-in service has none.
            token: String::new(),
            up: 0,
            down: 0,
            end,
            bytes_max: self.bytes_max,
            sockets: FlowSockets { congestion_control: None, dscp: self.dscp, ecn: self.ecn },
            probes: ProbeSpec {
                every: self.probe_every,
                udp: !self.no_udp,
                timeout: PROBE_TIMEOUT,
            },
            interval,
            seed,
            engine: EngineOptions {
                workers: self.threads.unwrap_or(1),
                backend: BackendChoice::Auto,
                wait: WaitPolicy::Hybrid,
                ..EngineOptions::default()
            },
        }
    }

    /// Puts what the trials use in the place of defaults; the options that repeat them. The port
    /// of a built-in service differs from run to run and a token is a secret: both are left out.
    fn resolved_options(&mut self, interval: Nanos, seed: u64) -> ResolvedOptions {
        if self.duration.is_none() {
            self.scenario_limit = Some(self.limit());
            self.settle = Some(self.tolerance());
        }
        self.idle.get_or_insert(IDLE);
        self.interval = Some(interval);
        self.seed.seed = Some(seed);
        ResolvedOptions::of(self)
    }
}

/// What is to come, and how long it takes where that is known.
pub fn announcement(plan: &LatencyPlan) -> String {
    let number = plan.scenarios.len();
    let plural = if number == 1 { "" } else { "s" };
    let runs = plan.congestion.len().max(1);
    let controls: Vec<&str> = plan.congestion.iter().flatten().map(String::as_str).collect();
    let with_each = match controls.len() {
        0 | 1 => String::new(),
        _ => format!(" with each of {}", controls.join(" and ")),
    };
    let idle = match plan.idle {
        Nanos::ZERO => String::new(),
        idle => format!(", after {} of the idle path", idle.exactly()),
    };
    match plan.base.end {
        ScenarioEnd::After(each) => {
            let total = Nanos(each.0.saturating_mul((number * runs) as u64)) + plan.idle;
            format!(
                "{number} scenario{plural} of {}{with_each}{idle}: about {}",
                each.exactly(),
                about(total)
            )
        }
        ScenarioEnd::Settled { limit, .. } => format!(
            "{number} scenario{plural}{with_each}, each until it has settled, at most {}{idle}",
            about(limit)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_points_have_numbers_and_names() {
        for (text, n) in [
            ("0", 0),
            ("63", 63),
            ("EF", 46),
            ("ef", 46),
            ("CS0", 0),
            ("cs7", 56),
            ("AF11", 10),
            ("AF43", 38),
            ("LE", 1),
            ("VA", 44),
            ("BE", 0),
        ] {
            assert_eq!(parse_dscp(text), Ok(n), "{text}");
        }
        for text in ["", "64", "-1", "CS8", "AF51", "AF14", "AF1", "CS", "EFF", "1.5"] {
            assert!(parse_dscp(text).is_err(), "{text}");
        }
    }

    #[test]
    fn amounts_have_units() {
        for (text, n) in [
            ("1", 1),
            ("1_000", 1_000),
            ("500M", 500_000_000),
            ("1.5k", 1_500),
            ("10GB", 10_000_000_000),
            ("4 GiB", 4 << 30),
            ("64KiB", 65_536),
            ("7B", 7),
        ] {
            assert_eq!(parse_amount(text), Ok(n), "{text}");
        }
        for text in ["", "0", "M", "-5M", "5X", "1e3", "5MM", "0.1", "99999999T", "infM"] {
            assert!(parse_amount(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shares_controls_and_switches() {
        assert_eq!(parse_tolerance("5"), Ok(0.05));
        assert_eq!(parse_tolerance("2.5 %"), Ok(0.025));
        for text in ["0", "100%", "-1", "", "%", "inf", "nan"] {
            assert!(parse_tolerance(text).is_err(), "{text}");
        }
        assert_eq!(parse_control(" cubic").as_deref(), Ok("cubic"));
        for text in ["", "cubic bbr", "a_name_that_is_too_long", "../bbr"] {
            assert!(parse_control(text).is_err(), "{text}");
        }
        assert_eq!((parse_switch("on"), parse_switch("off")), (Ok(true), Ok(false)));
        assert!(parse_switch("yes").is_err());
    }
}
