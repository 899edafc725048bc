//! `knee sweep`: throughput and its price.

use super::demo::DemoServer;
use super::http_runner::{self, HttpRunner, PreparedHttp, level_line, report_setup};
use super::laboratory;
use crate::args::{ClosedArgs, HttpArgs, OpenArgs, TargetArgs};
use crate::args::{
    Fleet, FleetArgs, Levels, RetryArgs, parse_positive, rate_levels, refuse_first, vuser_levels,
    with_exits,
};
use crate::failure::{Exit, Failure};
use crate::machine::Machine;
use crate::margins;
use crate::output::MeasuredOutputArgs;
use crate::resolved_options::{ResolvedOptions, typed};
use clap::Args;
use clap::builder::PossibleValuesParser;
use knee_core::experiment::sweep::{Bound, LevelPlan, Sweep, SweepAxis, SweepSpec};
use knee_core::report::Kind;
use knee_load::arrival;
use knee_load::spec::{Load, Rate, Target, TrialSpec, parse_duration};
use knee_load::time::Nanos;
use serde::Serialize;

/// Find a server's maximum throughput, its knee, and the response times there
///
/// Each level is a trial: N virtual users in a closed loop or, with --axis rate, N operations per
/// second in an open loop. Throughput is always shown with mean and p90. Without a URL, knee starts
/// a built-in reference server and loads it.
#[derive(Args, Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(
    after_help = "Example:\n  \
        knee sweep http://127.0.0.1:8080/ --bound p90=50ms",
    after_long_help = with_exits("Examples:\n  \
        knee sweep\n  \
        knee sweep http://127.0.0.1:8080/ --bound p90=50ms --bound p99=200ms\n  \
        knee sweep http://127.0.0.1:8080/ --vusers 1,10,50,100,200,300 -d 10s --json sweep.json\n  \
        knee sweep http://127.0.0.1:8080/ --axis rate --rates 100,200,400,800"),
    mut_arg("arrival", |a| a.help(arrival_help()).long_help(arrival_help())),
    mut_arg("connections", |a| a.help(CONNECTIONS_HELP).long_help(CONNECTIONS_HELP)),
)]
pub struct RawSweep {
    #[command(flatten)]
    #[serde(flatten)]
    target: TargetArgs,

    /// What the levels vary: vusers (closed loop) or rate (open loop)
    #[arg(long, value_name = "AXIS", default_value = "vusers", help_heading = "Load")]
    #[arg(value_parser = PossibleValuesParser::new(["vusers", "rate"]))]
    #[arg(hide_possible_values = true)]
    axis: String,

    /// Numbers of virtual users, such as 1,10,50,100 (at most 1,000 of them), or auto: chosen
    /// around the bend that short trials find [default: auto]
    ///
    /// Levels are measured in rounds: each level once per round, in random order. Where the target
    /// pauses, auto ends with a trial in open loop, at 90 % of the maximum.
    #[arg(long, value_name = "N,N...", value_parser = vuser_levels, help_heading = "Load")]
    #[serde(serialize_with = "typed")]
    vusers: Option<Levels<u32>>,

    /// With --axis rate: operations per second, such as 100,200,400 (at most 1,000 of them), or
    /// auto [default: auto]
    ///
    /// A rate given twice is measured twice. auto searches for the highest rate without loss and
    /// for that of each --bound, with trials of a quarter of --duration at first.
    #[arg(long, value_name = "N,N...", value_parser = rate_levels, help_heading = "Load")]
    #[serde(serialize_with = "typed")]
    rates: Option<Levels<Rate>>,

    /// Response-time limit within which to find the maximum throughput, repeatable: p90=50ms (mean,
    /// p50, p75, p90, p95, p99, p999)
    ///
    /// Of streams of messages likewise first_message_p99, gap_p99, per_message_p99, stream_p99 and
    /// answer_p99, and good_streams=99%: the least share of the streams that meet --slo. With --slo
    /// that is a bound by default.
    #[arg(long, value_name = "FIGURE=T", help_heading = "Load")]
    #[serde(serialize_with = "typed")]
    bound: Vec<Bound>,

    /// Time limit of an automatic sweep over users [default: 60s; 25s for the built-in server]
    ///
    /// Rounds end sooner where the maximum is known within 2 % and the knee within 10 %.
    #[arg(long, value_name = "T", value_parser = parse_positive, help_heading = "Time")]
    #[serde(serialize_with = "typed")]
    budget: Option<Nanos>,

    #[command(flatten)]
    #[serde(flatten)]
    open: OpenArgs,

    #[command(flatten)]
    #[serde(flatten)]
    closed: ClosedArgs,

    #[command(flatten)]
    #[serde(flatten)]
    retry: RetryArgs,

    /// Measured time per level, divided into at least 5 rounds
    ///
    /// With --vusers auto: the least measured time per level. More rounds follow until the result
    /// is precise or the --budget is used.
    #[arg(short, long, value_name = "T", default_value = "2s", value_parser = parse_positive)]
    #[arg(help_heading = "Time")]
    #[serde(serialize_with = "typed")]
    duration: Nanos,

    /// Warm-up time before the first slice, excluded from the results; the most for later ones
    #[arg(long, value_name = "T", default_value = "500ms", value_parser = parse_duration)]
    #[arg(help_heading = "Time")]
    #[serde(serialize_with = "typed")]
    warmup: Nanos,

    #[command(flatten)]
    #[serde(flatten)]
    http: HttpArgs,

    #[command(flatten)]
    #[serde(skip)]
    output: MeasuredOutputArgs,
}

fn arrival_help() -> String {
    let shapes = arrival::shapes(Some(false)).join(", ");
    format!("With --axis rate: arrival process: {shapes} [default: constant]")
}

/// Budget with the built-in server, whose speed is steady.
const DEMO_BUDGET: Nanos = Nanos::from_secs(25);

const CONNECTIONS_HELP: &str = "With --axis rate: the most connections that may be open at once \
    [default: as many as the descriptors permit, up to 10,000]";

/// A sweep that cannot be wrong.
pub type ResolvedSweep = PreparedHttp<SweepSpec>;

/// Makes the sweep and reports it.
pub fn execute(mut sweep: ResolvedSweep) -> Result<Exit, Failure> {
    sweep.announce();
    let fleet = sweep.fleet.take();
    if fleet.is_none() {
        sweep.spec.base.engine.margins = margins::of_this_machine(sweep.setup.output.notes());
    }
    let runner = HttpRunner::new(&sweep.spec.base, Some(level_line), sweep.observe.clone());
    let mut runner = runner.made_by(fleet).in_slices();
    laboratory::conduct(sweep.setup, &mut Sweep::new(sweep.spec), &mut runner)
}

impl RawSweep {
    /// What is to be run; files are read here, and the reference server started if no URL is given.
    pub fn resolve(mut self, machine: &Machine) -> Result<ResolvedSweep, Failure> {
        let mut unused = None;
        if let Some(scenario) = self.target.scenario()? {
            self.http.fill(&scenario)?;
            let takes_arrival = self.is_open() && self.open.arrivals.fill(&scenario);
            unused = self.target.unused_load("a sweep", takes_arrival);
        }
        self.refuse_contradictions()?;
        let output = self.output.resolve()?;
        let (demo, share) = DemoServer::stand_in(&mut self.target, machine, DemoServer::station)?;
        let fleet = self.http.gather(&self.target)?;
        let share = FleetArgs::machine(fleet.as_ref(), &share);
        let mut spec = self.spec(&share, fleet.as_ref())?;
        let mut options = self.resolved_options(&spec.base);
        if demo.is_some() {
            spec.budget = self.budget.unwrap_or(DEMO_BUDGET);
            // The next sweep without a URL brings its own server again, on another port.
            options.leave_out("url");
        }
        let observe = self.http.observe.with_token()?;
        let (base, thresholds) = (&mut spec.base, self.http.thresholds);
        let setup = report_setup(Kind::Sweep, base, fleet.as_ref(), options, thresholds, output)?;
        Ok(ResolvedSweep { spec, unused, observe, setup, fleet, demo })
    }

    fn spec(&mut self, machine: &Machine, fleet: Option<&Fleet>) -> Result<SweepSpec, Failure> {
        let target = self.target.resolve()?;
        if target.protocol.subscribes() {
            let wrong = "the server sends by itself, and no load can be varied: use knee run";
            return Err(Failure::argument("--subscribe", wrong));
        }
        let target = http_runner::settle(target, self.http.limits.connect_timeout, fleet)?;
        let target = if self.is_open() { target } else { self.open.shared_by_users(target)? };
        let retry = self.retry.resolve(&target)?;
        let load = self.first_load(&target, machine)?;
        let engine = self.http.engine.resolve(&machine.beside(&target));
        let times = [self.warmup, self.duration];
        let base = http_runner::trial(&self.http, target, load, times, engine)?;
        let base = TrialSpec { retry, ..base };
        self.http.observe.check(&base.target)?;
        self.http.thresholds.check(&base.target)?;
        Ok(SweepSpec {
            axis: self.axis(),
            bounds: self.bounds(&base.target)?,
            budget: self.budget.unwrap_or(SweepSpec::BUDGET),
            vusers_max: SweepSpec::VUSERS_MAX.min(machine.connections_default()),
            base,
        })
    }

    /// The bounds; with `--slo` that on good streams as well.
    fn bounds(&self, target: &Target) -> Result<Vec<Bound>, Failure> {
        let mut bounds = self.bound.clone();
        let has_share = bounds.iter().any(|bound| matches!(bound, Bound::GoodStreams(_)));
        match target.stream_bounds {
            None if has_share => {
                let wrong = "good_streams needs --slo, which says what a good stream is";
                return Err(Failure::argument("--bound", wrong));
            }
            Some(_) if !has_share => bounds.push(Bound::GOOD_STREAMS),
            _ => {}
        }
        Ok(bounds)
    }

    fn is_open(&self) -> bool {
        self.axis == "rate"
    }

    fn axis(&self) -> SweepAxis {
        if self.is_open() {
            return SweepAxis::Rate(match &self.rates {
                Some(Levels::List(rates)) => LevelPlan::List(rates.clone()),
                _ => LevelPlan::Auto,
            });
        }
        SweepAxis::Vusers(match &self.vusers {
            Some(Levels::List(vusers)) => LevelPlan::List(vusers.clone()),
            _ => LevelPlan::Auto,
        })
    }

    /// The load that the base of all trials has; the sweep sets it and its level per trial.
    fn first_load(&self, target: &Target, machine: &Machine) -> Result<Load, Failure> {
        if self.is_open() {
            let rate = match &self.rates {
                Some(Levels::List(rates)) => rates.first().copied(),
                _ => Rate::per_second(1),
            };
            let load = self.open.load(rate, target, None, self.warmup + self.duration, machine)?;
            return Ok(Load::Open(load));
        }
        let vusers = match &self.vusers {
            Some(Levels::List(vusers)) => {
                let most = vusers.iter().copied().max().unwrap_or(1);
                Machine::check_users("--vusers", most)?;
                let connections = most.saturating_mul(target.lanes_per_user());
                machine.check_connections("--vusers", connections)?;
                vusers.first().copied().unwrap_or(1)
            }
            _ => 1,
        };
        let pause = self.closed.pause();
        Ok(Load::Closed { vusers, pause, stages: Vec::new() })
    }

    fn refuse_contradictions(&self) -> Result<(), Failure> {
        let (is_open, arrivals) = (self.is_open(), &self.open.arrivals);
        let pause = self.closed.given();
        let own = arrival::either(&arrival::names_with_rate());
        let varies = format!("the rate is what a sweep varies: not {own}");
        let open_only = "needs --axis rate";
        refuse_first(&[
            (
                is_open && self.vusers.is_some(),
                "--vusers",
                "with --axis rate the levels are --rates",
            ),
            (
                is_open && pause.is_some(),
                pause.unwrap_or_default(),
                "only virtual users pause: leave out --axis rate",
            ),
            (is_open && arrivals.carries_rate(), "--arrival", &varies),
            (!is_open && self.rates.is_some(), "--rates", open_only),
            (!is_open && arrivals.arrival.is_some(), "--arrival", open_only),
            (!is_open && self.open.max_in_flight.is_some(), "--max-in-flight", open_only),
        ])
    }

    /// Puts what the trials use in the place of defaults; the options that repeat the sweep.
    fn resolved_options(&mut self, base: &TrialSpec) -> ResolvedOptions {
        self.http.fill_defaults(base);
        match &base.load {
            Load::Open(load) => {
                self.rates.get_or_insert(Levels::Auto);
                self.open.connections = Some(load.connections_max);
                let mut options = ResolvedOptions::of(self);
                self.open.arrivals.put_in(&load.arrival, &mut options);
                options
            }
            Load::Closed { .. } | Load::Overload(_) => {
                self.vusers.get_or_insert(Levels::Auto);
                self.open.connections = base.target.connections_max;
                self.closed.fill_defaults();
                ResolvedOptions::of(self)
            }
        }
    }
}
