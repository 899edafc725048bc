//! From what was typed to an overload that cannot be wrong.

use super::super::demo::DemoServer;
use super::super::http_runner::{self, report_setup};
use super::{RawOverload, ResolvedOverload};
use crate::args::{FleetArgs, Levels, refuse_first};
use crate::failure::Failure;
use crate::machine::Machine;
use crate::resolved_options::ResolvedOptions;
use knee_core::experiment::overload::{Descriptors, OverloadSpec};
use knee_core::report::Kind;
use knee_load::spec::{
    ArrivalLaw, CloseKind, ConnectScheme, HttpVersion, Load, OverloadLoad, Protocol, Rate, Target,
};
use knee_load::time::Nanos;

/// Default number of S-Clients.
const SCLIENTS: u32 = 12;

/// The warm-up, unless T is longer: the queues of most servers are full by then.
const WARMUP: Nanos = Nanos::from_secs(1);

/// Connections per second that a worker starts with half of its core to spare.
const STARTS_PER_WORKER: f64 = 10_000.0;

impl RawOverload {
    /// What is to be run; files are read here, and the reference server started if no URL is given.
    pub fn resolve(mut self, machine: &Machine) -> Result<ResolvedOverload, Failure> {
        let mut unused = None;
        if let Some(scenario) = self.target.scenario()? {
            if scenario.plan.script.is_some() {
                let wrong = "an overload takes a scenario file, and no script: see knee sweep";
                return Err(Failure::argument("URL", wrong));
            }
            self.http.fill(&scenario)?;
            let takes_arrival = self.rate.is_some() && self.arrivals.fill(&scenario);
            unused = self.target.unused_load("an overload", takes_arrival);
        }
        self.target
            .expect
            .refuse("an overload reads no more of a response than its status: leave it out")?;
        self.refuse_contradictions()?;
        let output = self.output.resolve()?;
        let (demo, share) = DemoServer::stand_in(&mut self.target, machine, DemoServer::small)?;
        let served_per_s = demo.as_ref().map(|_| DemoServer::SMALL.0);
        let fleet = self.http.gather(&self.target)?;
        let share = FleetArgs::machine(fleet.as_ref(), &share);
        let mut spec = self.spec(&share, served_per_s)?;
        let mut options = self.resolved_options(&spec);
        if demo.is_some() {
            // The next overload without a URL brings its own server again, on another port.
            options.leave_out("url");
        }
        let observe = self.http.observe.with_token()?;
        let (base, thresholds) = (&mut spec.base, self.http.thresholds);
        let setup =
            report_setup(Kind::Overload, base, fleet.as_ref(), options, thresholds, output)?;
        Ok(ResolvedOverload { spec, unused, observe, setup, fleet, demo })
    }

    /// The target, which an overload can have.
    fn checked_target(&self) -> Result<Target, Failure> {
        let target = self.target.resolve()?;
        self.http.thresholds.check(&target)?;
        if matches!(target.protocol, Protocol::WebSocket(_)) {
            let wrong = "an overload opens a connection for each request, and a WebSocket carries \
                         many messages: give another URL, such as http://";
            return Err(Failure::argument("URL", wrong));
        }
        if target.protocol.is_in_datagrams() && self.close == CloseKind::Rst {
            let wrong = "over UDP there is no connection to close: leave it out";
            return Err(Failure::argument("--close", wrong));
        }
        if target.sessions.as_ref().is_some_and(|plan| plan.width() > 1) {
            let wrong = "in an overload each session has one connection: write its steps one after \
                         another";
            return Err(Failure::argument("parallel", wrong));
        }
        if !target.further.is_empty() {
            let wrong = "an overload is of one server: leave out all of several targets but one";
            return Err(Failure::argument("target", wrong));
        }
        let mut target = match target.version() {
            HttpVersion::Http2 | HttpVersion::Http3 => target,
            HttpVersion::Http3IfOffered => {
                let wrong = "an overload asks nothing of its target before: give --http3";
                return Err(Failure::argument("--http3-if-offered", wrong));
            }
            HttpVersion::Auto | HttpVersion::Http11 => target.with_version(HttpVersion::Http11),
        };
        // Steps of a session share its connection.
        target.keep_alive &= target.sessions.is_some();
        Ok(target)
    }

    /// `served_per_s`: what the target serves, where that is known.
    fn spec(&self, machine: &Machine, served_per_s: Option<f64>) -> Result<OverloadSpec, Failure> {
        let target = self.checked_target()?;
        let warmup = self.warmup.unwrap_or(WARMUP.max(self.http.limits.connect_timeout));
        let scheduled = self.scheduled(warmup + self.duration, machine)?;
        let simple = self.simple(machine)?;
        let descriptors = self.descriptors(machine)?;
        let load = Load::Overload(OverloadLoad {
            scheme: match &scheduled {
                Some((rate, arrival, descriptors)) => ConnectScheme::Scheduled {
                    rate: *rate,
                    arrival: arrival.clone(),
                    descriptors: *descriptors,
                },
                None => ConnectScheme::SClients {
                    sclients: self.sclients.unwrap_or(SCLIENTS),
                    descriptors: 1,
                },
            },
            close: self.close,
        });
        let left = machine.beside(&target);
        let (times, engine) = ([warmup, self.duration], self.http.engine.resolve(&left));
        let mut spec = OverloadSpec {
            base: http_runner::trial(&self.http, target, load, times, engine)?,
            simple,
            sclients: self.sclients.unwrap_or(SCLIENTS),
            descriptors,
            offered_factor_max: OverloadSpec::OFFERED_FACTOR_MAX,
            descriptors_max: machine.connections_permitted(),
            scheduled,
        };
        spec.base.engine = self.http.engine.resolve(&workers_for(&spec, served_per_s, &left));
        Ok(spec)
    }

    /// Whether anything says what load there is to be; otherwise it is all.
    fn names_a_load(&self) -> bool {
        self.simple.is_some() || self.descriptors.is_some() || self.is_scheduled()
    }

    fn is_scheduled(&self) -> bool {
        self.rate.is_some() || self.arrivals.carries_rate()
    }

    fn simple(&self, machine: &Machine) -> Result<Vec<u32>, Failure> {
        let list = match &self.simple {
            Some(Levels::List(list)) => list.clone(),
            Some(Levels::Auto) => OverloadSpec::simple_default(),
            None if self.names_a_load() => Vec::new(),
            None => OverloadSpec::simple_default(),
        };
        let most = list.iter().copied().max().unwrap_or(1);
        machine.check_connections("--simple", most)?;
        Ok(list)
    }

    fn descriptors(&self, machine: &Machine) -> Result<Descriptors, Failure> {
        Ok(match &self.descriptors {
            _ if self.is_scheduled() => Descriptors::List(Vec::new()),
            Some(Levels::List(list)) => {
                let most = list.iter().copied().max().unwrap_or(1);
                machine.check_connections("--descriptors", most)?;
                Descriptors::List(list.clone())
            }
            Some(Levels::Auto) => Descriptors::Auto,
            None if self.names_a_load() => Descriptors::List(Vec::new()),
            None => Descriptors::Auto,
        })
    }

    fn scheduled(
        &self,
        run_length: Nanos,
        machine: &Machine,
    ) -> Result<Option<(Rate, ArrivalLaw, u32)>, Failure> {
        if !self.is_scheduled() {
            return Ok(None);
        }
        let trace = self.arrivals.trace()?;
        let (rate, arrival) = self.arrivals.schedule(self.rate, trace.as_ref(), run_length)?;
        let most = match &self.descriptors {
            Some(Levels::List(list)) => list.first().copied().unwrap_or(1),
            _ => machine.connections_default(),
        };
        machine.check_connections("--descriptors", most)?;
        Ok(Some((rate, arrival, most)))
    }

    fn refuse_contradictions(&self) -> Result<(), Failure> {
        let (limits, arrivals) = (&self.http.limits, &self.arrivals);
        let (is_scheduled, is_closed) = (self.is_scheduled(), !self.is_scheduled());
        let shares_nothing =
            self.sclients.is_some() && self.simple.is_some() && self.descriptors.is_none();
        let is_list = matches!(&self.descriptors, Some(Levels::List(list)) if list.len() > 1);
        refuse_first(&[
            (
                self.target.unix_socket.is_some(),
                "--unix-socket",
                "a Unix socket has no SYNs and no T: give the URL of a TCP port",
            ),
            (
                limits.timeout() <= limits.connect_timeout,
                "--timeout",
                "must be longer than --connect-timeout, as the response comes after the connect",
            ),
            (
                self.rate.is_some() && arrivals.carries_rate(),
                "--rate",
                "the arrivals carry their own: leave one out",
            ),
            (
                is_closed && arrivals.arrival.is_some(),
                "--arrival",
                "needs a rate: give --rate, such as --rate 1000",
            ),
            (is_closed && shares_nothing, "--sclients", "they need --descriptors to share"),
            (
                is_scheduled && self.simple.is_some(),
                "--simple",
                "simple clients keep no schedule: leave them or the rate out",
            ),
            (
                is_scheduled && self.sclients.is_some(),
                "--sclients",
                "with a rate the schedule takes their place: leave one out",
            ),
            (
                is_scheduled && is_list,
                "--descriptors",
                "with a rate they are the most in flight: give one number",
            ),
        ])
    }

    /// Puts what the trials use in the place of defaults; the options that repeat the overload.
    fn resolved_options(&mut self, spec: &OverloadSpec) -> ResolvedOptions {
        let base = &spec.base;
        let levels = |list: &Vec<u32>| (!list.is_empty()).then(|| Levels::List(list.clone()));
        self.simple = levels(&spec.simple);
        self.descriptors = match &spec.descriptors {
            Descriptors::Auto => Some(Levels::Auto),
            Descriptors::List(list) => levels(list),
        };
        self.sclients = self.descriptors.as_ref().map(|_| spec.sclients);
        self.warmup = Some(base.warmup);
        self.http.fill_defaults(base);
        let mut options = ResolvedOptions::of(self);
        if let Some((_, arrival, descriptors)) = &spec.scheduled {
            self.arrivals.put_in(arrival, &mut options);
            options.put("descriptors", *descriptors);
        }
        options
    }
}

/// The machine with as many processors as the highest expected rate can use. More workers would
/// only take cores from a server on this host.
fn workers_for(spec: &OverloadSpec, served_per_s: Option<f64>, machine: &Machine) -> Machine {
    let patience_s = spec.base.connect_timeout.as_secs_f64();
    let per_s = match (&spec.scheduled, &spec.descriptors) {
        (Some((rate, ..)), _) => rate.per_s(),
        (None, Descriptors::List(list)) if !list.is_empty() => {
            let most = list.iter().copied().max().unwrap_or(1);
            f64::from(most) / patience_s
        }
        _ => served_per_s.map_or(f64::INFINITY, |s| s * spec.offered_factor_max),
    };
    let useful = (per_s / STARTS_PER_WORKER).ceil().min(f64::from(u32::MAX));
    Machine { cpus: machine.cpus.min(useful as u32).max(1), ..*machine }
}
