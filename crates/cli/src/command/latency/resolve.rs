//! From the options to scenarios that cannot be wrong.

use super::options::Scenarios;
use super::{LatencySpec, RawLatency};
use crate::args::interval;
use crate::command::laboratory::ReportSetup;
use crate::failure::Failure;
use crate::machine::Machine;
use crate::notes::about;
use crate::resolved_options::ResolvedOptions;
use knee_core::experiment::latency::{LatencyPlan, QUICK, SCENARIOS};
use knee_core::report::Kind;
use knee_load::experiment::latency::{
    FlowSockets, LatencyTrialSpec, ProbeSpec, ScenarioEnd, Settle,
};
use knee_load::spec::{BackendChoice, EngineOptions, Level, WaitPolicy};
use knee_load::time::Nanos;

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
        let options = self.settle(interval, seed);
        let output = self.output.resolve()?;
        let setup = ReportSetup::new(Kind::Latency, seed, options, self.thresholds, output);
        Ok(LatencySpec { plan, service: self.service_address, setup })
    }

    fn refuse_contradictions(&self) -> Result<(), Failure> {
        if let (Some(option), None) = (self.token.option(), &self.service_address) {
            let wrong = "the built-in service needs none: give HOST";
            return Err(Failure::argument(option, wrong));
        }
        if self.probe_every < PROBE_EVERY_MIN {
            let wrong = format!(
                "'{}' is too often, as probes are no load: at least 1ms",
                self.probe_every.exactly()
            );
            return Err(Failure::argument("--probe-every", wrong));
        }
        let twice = |(i, name): (usize, &String)| self.cc[..i].contains(name);
        if let Some((_, name)) = self.cc.iter().enumerate().find(|each| twice(*each)) {
            let wrong = format!("'{name}' is there twice: name each once");
            return Err(Failure::argument("--cc", wrong));
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
    /// of a
    /// built-in service differs from run to run and a token is a secret: both are left out.
    fn settle(&mut self, interval: Nanos, seed: u64) -> ResolvedOptions {
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
