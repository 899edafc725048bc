//! From the options to trials that cannot be wrong.

use super::options::{Cpus, Preset, UdpTask};
use super::{Plan, RawUdp, UdpSpec};
use crate::args::{RecordedArrivals, interval, read_trace};
use crate::command::laboratory::ReportSetup;
use crate::failure::Failure;
use crate::machine::Machine;
use crate::resolved_options::ResolvedOptions;
use knee_core::experiment::udp::ExplainSpec;
use knee_core::experiment::udp::client_wait::{parse_client_wait, parse_clients};
use knee_core::report::Kind;
use knee_load::experiment::udp::{ClientWait, ClientsAs, ServiceSetup, UdpTrialSpec};
use knee_load::spec::{
    ArrivalLaw, AskedArrival, BackendChoice, EngineOptions, Level, OpenLoad, Rate, WaitPolicy,
};
use knee_load::time::Nanos;
use std::sync::Arc;

/// What is explained, unless given: the two clients of the puzzle.
const EXPLAINED: [&str; 2] = ["yield*64", "exp(200us)*128"];

/// The same on a machine of that time. Its kernel made 20 ms of a sleep of 200 µs, so 128 clients
/// send 6,400/s at most. Its only processor took 75 µs for a datagram, so 64 clients that only
/// yield send about twice as much: 13,300/s, less the service's share.
const PUBLISHED: [&str; 2] = ["yield*64", "tick(10ms)*128"];
const PUBLISHED_SEND_COST: Nanos = Nanos::from_micros(75);

/// Default rate in datagrams per second.
const RATE: u64 = 10_000;

/// Datagrams per second that a thread sends with most of its core to spare.
const RATE_PER_THREAD: f64 = 100_000.0;

/// What the kernel gives every program.
const TIMER_SLACK: Nanos = Nanos::from_micros(50);

/// Trials per kind of clients of a comparison, unless given.
const REPEATS: u32 = 3;

/// The receive buffer of the preset: room for a third of the 128 datagrams that a tick lets go.
const PUBLISHED_RCVBUF: u32 = 16_384;

/// Clients of one kind.
struct Clients {
    label: String,
    wait: ClientWait,
    clients: u32,
}

impl RawUdp {
    /// What is to be sent; files are read here.
    pub fn resolve(mut self, machine: &Machine) -> Result<UdpSpec, Failure> {
        self.expand_preset();
        self.refuse_contradictions()?;
        let trace = self.trace()?;
        let duration = self.length(trace.as_ref());
        let interval = interval(self.interval, duration)?;
        let seed = self.seed.seed();
        let laws = self.laws(duration, trace.as_ref())?;
        self.refuse_what_none_needs(&laws)?;
        // A built-in service has none.
        let token = match self.service_address {
            Some(_) => self.token.resolve()?,
            None => String::new(),
        };
        let trials: Vec<UdpTrialSpec> = laws
            .into_iter()
            .map(|law| self.trial(law, &token, duration, interval, seed, machine))
            .collect();
        let plan = self.plan(trials, seed)?;
        let options = self.resolved_options(&plan, seed);
        let output = self.output.resolve()?;
        let setup = ReportSetup::new(Kind::Udp, seed, options, self.thresholds, output);
        Ok(UdpSpec { plan, service: self.service_address, token, setup })
    }

    /// Puts what a preset stands for in the place of its name; what is given besides stays.
    fn expand_preset(&mut self) {
        if self.preset != Some(Preset::Published) {
            return;
        }
        let kinds = || PUBLISHED.map(str::to_owned).to_vec();
        match &mut self.explain {
            Some(laws) if laws.is_empty() => *laws = kinds(),
            Some(_) => {}
            None => self.compare = kinds(),
        }
        self.clients_as.get_or_insert(ClientsAs::Processes);
        self.send_cost.get_or_insert(PUBLISHED_SEND_COST);
        self.rcvbuf.get_or_insert(PUBLISHED_RCVBUF);
        if let Some(&first) = self.cpus().first() {
            self.client_cpus.get_or_insert(Cpus(vec![first]));
            self.service_cpu.get_or_insert(first);
        }
    }

    fn plan(&self, mut trials: Vec<UdpTrialSpec>, seed: u64) -> Result<Plan, Failure> {
        match self.kind() {
            UdpTask::Run => Ok(Plan::Run(Box::new(trials.swap_remove(0)))),
            UdpTask::Compare => Ok(Plan::Compare(trials, self.repeats.unwrap_or(REPEATS))),
            UdpTask::Explain => {
                let second = trials.swap_remove(1);
                let spec = ExplainSpec {
                    first: trials.swap_remove(0),
                    second,
                    repeats: self.repeats.unwrap_or(REPEATS),
                    cpus: self.cpus(),
                    // Known once the service was asked; where it may not, it takes less time.
                    realtime: true,
                    seed,
                    left_out: 0,
                    cut: None,
                };
                let spec = spec
                    .fit(self.duration, self.repeats)
                    .map_err(|error| Failure::argument("--explain", error))?;
                Ok(Plan::Explain(Box::new(spec)))
            }
        }
    }

    pub(super) fn carried_as(&self) -> ClientsAs {
        let default = match self.kind() {
            UdpTask::Explain => ClientsAs::Processes,
            UdpTask::Run | UdpTask::Compare => ClientsAs::Multiplexed,
        };
        self.clients_as.unwrap_or(default)
    }

    /// Where an explanation may put clients and service: only on the machine that both are on.
    fn cpus(&self) -> Vec<u32> {
        let host = self.service_address.as_deref().map(|address| {
            address.rsplit_once(':').map_or(address, |(host, _)| host).trim_matches(['[', ']'])
        });
        let is_here = host.is_none_or(|host| {
            let address = host.parse::<std::net::IpAddr>();
            host == "localhost" || address.is_ok_and(|a| a.to_canonical().is_loopback())
        });
        if is_here { knee_engine::sys::thread::affinity().unwrap_or_default() } else { Vec::new() }
    }

    /// The time of a trial.
    fn length(&self, trace: Option<&RecordedArrivals>) -> Nanos {
        match (self.duration, trace) {
            (Some(t), _) => t,
            (None, Some(trace)) => trace.length(),
            (None, None) if self.datagrams.is_some() => Nanos::from_secs(24 * 3600),
            (None, None) if self.kind() == UdpTask::Explain => Nanos::from_millis(500),
            (None, None) => Nanos::from_secs(10),
        }
    }

    /// The option that says when datagrams are sent, and what it says.
    fn when(&self) -> (&'static str, &str) {
        match (&self.arrival, &self.wait) {
            (Some(arrival), _) => ("--arrival", arrival.text()),
            (None, Some(wait)) => ("--wait", wait),
            (None, None) => ("--wait", "constant"),
        }
    }

    fn trace(&self) -> Result<Option<RecordedArrivals>, Failure> {
        self.schedule().as_ref().and_then(AskedArrival::file).map(read_trace).transpose()
    }

    /// The schedule, where one is asked for.
    pub(super) fn schedule(&self) -> Option<AskedArrival> {
        let wait = || AskedArrival::parse(self.wait.as_deref()?).ok();
        self.arrival.clone().or_else(wait)
    }

    fn laws(
        &self,
        duration: Nanos,
        trace: Option<&RecordedArrivals>,
    ) -> Result<Vec<Clients>, Failure> {
        let listed = |option: &str, texts: &[String]| {
            let one = |text: &String| {
                let (wait, clients) = parse_clients(text, duration)
                    .map_err(|e| Failure::argument(option, with_hint(text, e)))?;
                Ok(Clients::new(wait, clients))
            };
            texts.iter().map(one).collect::<Result<Vec<_>, Failure>>()
        };
        match (self.kind(), &self.explain) {
            (UdpTask::Explain, Some(texts)) if !texts.is_empty() => listed("--explain", texts),
            (UdpTask::Explain, _) => listed("--explain", &EXPLAINED.map(str::to_owned)),
            (UdpTask::Compare, _) => listed("--compare", &self.compare),
            (UdpTask::Run, _) => {
                let wait = self.wait(duration, trace)?;
                Ok(vec![Clients::new(wait, self.clients.unwrap_or(1))])
            }
        }
    }

    /// What each client of a run does between two datagrams.
    fn wait(
        &self,
        duration: Nanos,
        trace: Option<&RecordedArrivals>,
    ) -> Result<ClientWait, Failure> {
        let (option, text) = self.when();
        if let Some(trace) = trace {
            if self.rate.is_some() {
                let error = format!("'{text}' carries its own rate: leave one out");
                return Err(Failure::argument("--rate", error));
            }
            let arrival = ArrivalLaw::Trace(Arc::clone(&trace.times));
            let Some(rate) = arrival.own_rate() else {
                return Err(Failure::argument(option, "the trace has no rate"));
            };
            return Ok(ClientWait::Schedule { rate, arrival });
        }
        let nothing_said = self.wait.is_none() && self.arrival.is_none();
        let default = Rate::per_second(RATE).filter(|_| nothing_said);
        parse_client_wait(text, self.rate.or(default), duration).map_err(|e| {
            let about_rate = e.0.contains(" rate");
            let option = if about_rate && self.rate.is_some() { "--rate" } else { option };
            if about_rate && self.rate.is_none() {
                let error = format!("'{text}' needs a rate: give --rate, such as --rate 1000");
                Failure::argument(option, error)
            } else {
                Failure::argument(option, e)
            }
        })
    }

    fn refuse_what_none_needs(&self, laws: &[Clients]) -> Result<(), Failure> {
        let sleeps = |law: &Clients| law.wait.sleeps();
        // Of the explanation's cells some always do.
        let varies = self.kind() == UdpTask::Explain;
        if self.timer_slack.is_some() && !varies && !laws.iter().any(sleeps) {
            let error = "only clients that sleep have it: give --wait sleep(T), exp(T) or tick(T)";
            return Err(Failure::argument("--timer-slack", error));
        }
        let is_scheduled = |law: &Clients| matches!(law.wait, ClientWait::Schedule { .. });
        if self.wait_policy.is_some() && !varies && !laws.iter().any(is_scheduled) {
            let error = "only a schedule is waited for: give --rate, or leave it out";
            return Err(Failure::argument("--wait-policy", error));
        }
        Ok(())
    }

    fn trial(
        &self,
        law: Clients,
        token: &str,
        duration: Nanos,
        interval: Nanos,
        seed: u64,
        machine: &Machine,
    ) -> UdpTrialSpec {
        let useful = (law.per_s() / RATE_PER_THREAD).ceil().max(1.0) as u32;
        let engine = EngineOptions {
            workers: self.threads.unwrap_or(useful.min(machine.cpus)),
            backend: BackendChoice::Auto,
            wait: self.wait_policy.unwrap_or(WaitPolicy::Hybrid),
            ..EngineOptions::default()
        };
        UdpTrialSpec {
            label: law.label,
            level: Level::Clients(law.clients),
            // Known only once it listens.
            service: String::new(),
            token: token.to_owned(),
            clients: law.clients,
            wait: law.wait,
            carried_as: self.carried_as(),
            unsynchronised: false,
            size: self.size,
            gso: self.gso,
            timer_slack: self.timer_slack.unwrap_or(TIMER_SLACK),
            send_cost: self.send_cost.unwrap_or(Nanos::ZERO),
            client_cpus: self.client_cpus.clone().map_or(Vec::new(), |cpus| cpus.0),
            setup: ServiceSetup {
                mode: self.mode,
                work: self.service,
                rcvbuf: self.rcvbuf,
                cpu: self.service_cpu,
                realtime: false,
            },
            duration,
            datagrams_max: self.datagrams,
            interval,
            seed,
            engine,
        }
    }

    /// Puts what the trials use in the place of defaults; the options that repeat them. The port
    /// of a built-in service differs from run to run and a token is a secret: both are left out.
    fn resolved_options(&mut self, plan: &Plan, seed: u64) -> ResolvedOptions {
        self.clients_as = Some(self.carried_as());
        let first = match plan {
            Plan::Run(trial) => {
                let (rate, wait) = match &trial.wait {
                    ClientWait::Schedule { rate, arrival } => {
                        let rate = (!arrival.carries_rate()).then_some(*rate);
                        (rate, self.when().1.trim().to_owned())
                    }
                    other => (None, other.name()),
                };
                self.clients = Some(trial.clients);
                self.rate = rate;
                self.wait = Some(wait);
                trial
            }
            Plan::Compare(trials, repeats) => {
                self.repeats = Some(*repeats);
                &trials[0]
            }
            Plan::Explain(spec) => {
                self.repeats = Some(spec.repeats);
                &spec.first
            }
        };
        self.duration = Some(first.duration);
        self.interval = Some(first.interval);
        self.seed.seed = Some(seed);
        ResolvedOptions::of(self)
    }
}

impl Clients {
    fn new(wait: ClientWait, clients: u32) -> Clients {
        let name = match &wait {
            ClientWait::Schedule { rate, arrival } if !arrival.carries_rate() => {
                format!("{}@{}", wait.name(), rate.exactly())
            }
            _ => wait.name(),
        };
        let label = match clients {
            1 => name,
            n => format!("{name}*{n}"),
        };
        Clients { label, wait, clients }
    }

    /// Datagrams per second of all of them, as far as it is asked for; 0 where it is not.
    fn per_s(&self) -> f64 {
        match &self.wait {
            ClientWait::Schedule { rate, arrival } => OpenLoad {
                rate: *rate,
                arrival: arrival.clone(),
                connections_max: 1,
                in_flight_max: None,
            }
            .peak_per_s(),
            ClientWait::Sleep(law) => f64::from(self.clients) * 1e9 / law.mean_ns().max(1.0),
            ClientWait::Tick(period) => f64::from(self.clients) / period.as_secs_f64(),
            ClientWait::None | ClientWait::Yield | ClientWait::SleepZero => 0.0,
        }
    }
}

/// A service after the kinds of clients is taken for one of them.
fn with_hint(text: &str, e: knee_load::spec::ParseError) -> String {
    match super::options::parse_service(text) {
        Ok(_) if text.contains(':') => {
            format!("'{text}' is no way to wait: HOST goes before this option")
        }
        _ => e.0,
    }
}
