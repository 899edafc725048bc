//! Runs trials against an HTTP server, and walks through the sessions before and after a load.

use super::demo::DemoServer;
use super::laboratory::{ReportSetup, TrialOutput, TrialRunner};
use super::trigger::TriggerCommand;
use crate::args::{Fleet, FleetArgs, HttpArgs, ObserveArgs, ThresholdArgs, left_out};
use crate::failure::Failure;
use crate::output::Output;
use crate::resolved_options::ResolvedOptions;
use crate::script::handle_summary;
use crate::watch::{LiveKind, LiveTrial, UpcomingTrial};
use crate::{confined, stdio};
use knee_core::report::{Kind, Report};
use knee_core::trial::assess::assess;
use knee_core::trial::figure::Figure;
use knee_core::trial::report::TrialReport;
use knee_core::trial::sessions::failure_of;
use knee_core::trial::slice::Slice;
use knee_core::trial::step_names::SessionNames;
use knee_engine::Http3Offer;
use knee_engine::error::RunError;
use knee_engine::observe::Vantage;
use knee_engine::sys::clock::monotonic_ns;
use knee_load::measure::{Histogram, Interval, IntervalWatcher};
use knee_load::session::SessionPlan;
use knee_load::spec::{
    DnsSettings, Endpoint, EngineOptions, HttpVersion, Level, Load, Pause, Protocol, SkippedLines,
    Target, TrialSpec,
};
use knee_load::time::Nanos;
use knee_render::metrics::HttpServerLabels;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// An experiment over HTTP that cannot be wrong, and what it needs beside its spec.
#[derive(Debug)]
pub struct PreparedHttp<S> {
    pub spec: S,
    /// What of a scenario's load is not used, in a line.
    pub unused: Option<String>,
    pub observe: ObserveArgs,
    pub setup: ReportSetup,
    /// Who makes the trials; `None`: this process.
    pub fleet: Option<Fleet>,
    /// The reference server, where no URL was given; it serves as long as this lives.
    pub demo: Option<DemoServer>,
}

impl<S> PreparedHttp<S> {
    /// Says which server stands in for a URL, and what of a scenario's load is not used.
    pub fn announce(&self) {
        let demo = self.demo.as_ref().map(DemoServer::announcement);
        for line in demo.iter().chain(&self.unused) {
            self.setup.output.note(line);
        }
    }
}

/// What the report of an experiment over HTTP needs; `base`: what its trials are made of.
///
/// # Errors
/// Such a trial goes beyond the limits of this process.
pub fn report_setup(
    kind: Kind,
    base: &mut TrialSpec,
    fleet: Option<&Fleet>,
    mut options: ResolvedOptions,
    thresholds: ThresholdArgs,
    mut output: Output,
) -> Result<ReportSetup, Failure> {
    confined::check(base)?;
    if sends_what_looks_like_cookies(&base.target) {
        output.note("note: -b gives the body of the request; for a cookie give --cookie");
    }
    if thresholds.replaces_others {
        output.note("note: --fail-if takes the place of the thresholds of the file");
    }
    if let Some(note) = left_out(&base.target) {
        output.note(&note);
    }
    if let Protocol::Dns(DnsSettings { skipped: SkippedLines { count: 1.., first }, .. }) =
        base.target.protocol
    {
        output.note(&format!(
            "note: --targets has lines that are no questions; the first is line {first}, and the \
             report counts them"
        ));
    }
    for proxy in base.target.proxies().into_iter().filter(|proxy| proxy.named_by != "--proxy") {
        output.note(&format!(
            "note: connections go through the proxy {proxy:?}; --noproxy '*' goes without it"
        ));
    }
    FleetArgs::tell(fleet, &mut options);
    base.target.keep_credentials_at_origin(output.secrets.names());
    output.secrets.learn_target(&mut base.target);
    Ok(ReportSetup::new(kind, base.seed, options, thresholds, output))
}

/// Whether a body without a content type looks like cookies, which curl takes with `-b`.
fn sends_what_looks_like_cookies(target: &Target) -> bool {
    let [request] = &target.requests[..] else {
        return false;
    };
    let is_typed =
        request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let text = std::str::from_utf8(&request.body).unwrap_or_default();
    let is_cookie = |pair: &str| {
        let (name, value) = pair.trim().split_once('=').unwrap_or_default();
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        !name.is_empty() && name.chars().all(is_name) && !value.contains(['&', '=', ' ', '\n'])
    };
    !is_typed && text.split(';').all(is_cookie)
}

/// An HTTP target, and who sends the load to it.
#[derive(Debug)]
pub struct HttpRunner {
    /// What trials are made of.
    base: TrialSpec,
    /// The plan of the sessions with what the steps before the load gave them; `None` where there
    /// are no such steps.
    set_up: Option<Arc<SessionPlan>>,
    /// Makes the line that follows each trial.
    line: Option<LevelLine>,
    /// Trials are slices of an experiment in rounds.
    in_slices: bool,
    /// When the first trial was begun, on CLOCK_MONOTONIC: time of an experiment in slices counts
    /// from here.
    began_ns: Option<u64>,
    observe: ObserveArgs,
    /// The target was looked for already, and is watched as it is to be.
    is_found: bool,
    /// The command that runs in each trial.
    trigger: Option<TriggerCommand>,
    source: LoadSource,
}

/// Makes the line on a trial that has ended, of its number (from 0) and its report.
pub type LevelLine = fn(usize, &TrialReport) -> String;

/// Who makes the trials.
#[derive(Debug)]
enum LoadSource {
    /// This process, with the place where the server is watched from, once that is prepared and
    /// where somebody asked.
    Here(Option<Box<Vantage>>),
    /// Agents, watched likewise.
    Fleet(Box<Fleet>, Option<Box<Vantage>>),
}

impl HttpRunner {
    /// A runner of such trials. `line`: of each as it ends.
    pub fn new(spec: &TrialSpec, line: Option<LevelLine>, observe: ObserveArgs) -> HttpRunner {
        HttpRunner {
            base: spec.clone(),
            set_up: None,
            line,
            in_slices: false,
            began_ns: None,
            observe,
            is_found: false,
            trigger: None,
            source: LoadSource::Here(None),
        }
    }

    /// Makes each trial a slice, from which trials of several slices can be made.
    pub fn in_slices(mut self) -> HttpRunner {
        self.in_slices = true;
        self
    }

    /// Takes the target as it was found, and watches it from there in each trial to come.
    pub fn on_found(mut self, vantage: Option<Vantage>) -> HttpRunner {
        self.watch_from(vantage);
        self.is_found = true;
        self
    }

    /// Runs this command in each trial.
    pub fn triggered_by(mut self, command: Option<TriggerCommand>) -> HttpRunner {
        self.trigger = command;
        self
    }

    /// Watches the server from there in each trial to come.
    fn watch_from(&mut self, from: Option<Vantage>) {
        match &mut self.source {
            LoadSource::Here(vantage) | LoadSource::Fleet(_, vantage) => {
                *vantage = from.map(Box::new)
            }
        }
    }

    /// The trial with what the steps before the load gave to its sessions.
    fn given<'a>(&self, spec: &'a TrialSpec) -> Cow<'a, TrialSpec> {
        let Some(plan) = &self.set_up else {
            return Cow::Borrowed(spec);
        };
        let mut spec = spec.clone();
        spec.target.sessions = Some(Arc::clone(plan));
        Cow::Owned(spec)
    }

    /// Has the trials made by a fleet, where there is one.
    pub fn made_by(mut self, fleet: Option<Fleet>) -> HttpRunner {
        if let Some(fleet) = fleet {
            self.source = LoadSource::Fleet(Box::new(fleet), None);
        }
        self
    }
}

impl TrialRunner for HttpRunner {
    type Spec = TrialSpec;
    type Trial = TrialReport;

    fn find(&mut self) -> Result<(), RunError> {
        if !self.is_found {
            let (target, connect_timeout) = (&self.base.target, self.base.connect_timeout);
            let address = match &self.source {
                LoadSource::Here(_) => knee_engine::preflight(target, connect_timeout)?.0,
                // Whether it can be reached from here says nothing of the agents.
                LoadSource::Fleet(fleet, _) => fleet.greet(target, connect_timeout)?.0,
            };
            self.watch_from(self.observe.vantage(&address)?);
        }
        Ok(())
    }

    /// The steps before the load, if the target has any, are done from this machine.
    fn set_up(&mut self, stop: &AtomicBool) -> Result<(), RunError> {
        if let Some(plan) = &self.base.target.sessions
            && let Some(kind) = plan.setup
        {
            let given = walk_once(&self.base, kind, stop)?;
            self.set_up = Some(Arc::new(SessionPlan { given, ..(**plan).clone() }));
        }
        Ok(())
    }

    /// The steps after the load, if the target has any, are done from this machine.
    fn tear_down(&mut self, stop: &AtomicBool) -> Result<(), RunError> {
        let teardown = self.base.target.sessions.as_ref().and_then(|plan| plan.teardown);
        let Some(kind) = teardown else {
            return Ok(());
        };
        let never = AtomicBool::new(false);
        let stop = if stop.load(Ordering::Relaxed) { &never } else { stop };
        walk_once(&self.given(&self.base), kind, stop).map(drop)
    }

    fn must_tear_down(&self) -> bool {
        let sessions = self.base.target.sessions.as_ref();
        sessions.is_some_and(|plan| plan.script.is_some())
    }

    fn reported(&mut self, report: &Report, has_stdout: bool) {
        if report.command.kind == Kind::Run
            && let Some(sessions) = self.set_up.as_ref().or(self.base.target.sessions.as_ref())
        {
            handle_summary(sessions, report, has_stdout);
        }
    }

    fn upcoming(&mut self, spec: &TrialSpec) -> UpcomingTrial {
        let is_timed = spec.operations_max.is_none();
        let live = LiveTrial {
            label: spec.label.clone(),
            kind: LiveKind::Operations,
            warmup: spec.warmup,
            // Sentinels may let it go on.
            total: is_timed.then(|| match spec.sentinel {
                Some(sentinel) => spec.warmup + sentinel.ends_from,
                None => spec.window_end(),
            }),
            interval: spec.interval,
            asked_per_s: spec.load.schedule().map(|(rate, _)| rate.per_s()),
            names: SessionNames::of(&spec.target),
        };
        let http = HttpServerLabels::of(&spec.target);
        UpcomingTrial { live, level: Some(spec.level), http }
    }

    fn run(
        &mut self,
        spec: &TrialSpec,
        watch: &mut dyn IntervalWatcher,
        stop: &AtomicBool,
    ) -> Result<TrialOutput<TrialReport>, RunError> {
        let Some(command) = self.trigger.clone() else {
            return self.measure(spec, watch, stop);
        };
        let mut watch = command.watcher(watch, stop);
        let trial = self.measure(spec, &mut watch, stop);
        watch.end()?;
        trial
    }

    fn line(&self, number: usize, trial: &TrialReport) -> Option<String> {
        self.line.map(|line| line(number, trial))
    }

    fn report(trial: &TrialReport) -> Option<&TrialReport> {
        Some(trial)
    }
}

impl HttpRunner {
    /// Runs one trial, and judges what it measured.
    fn measure(
        &mut self,
        spec: &TrialSpec,
        watch: &mut dyn IntervalWatcher,
        stop: &AtomicBool,
    ) -> Result<TrialOutput<TrialReport>, RunError> {
        let is_later = self.began_ns.is_some();
        let began_ns = *self.began_ns.get_or_insert_with(monotonic_ns);
        let mut spec = self.given(spec);
        // A target that is away in a later slice is what the slice shows.
        if self.in_slices && is_later {
            spec.to_mut().engine.was_reached = true;
        }
        let trial = match &mut self.source {
            LoadSource::Here(vantage) => {
                knee_engine::run_observed(&spec, watch, stop, vantage.as_deref_mut())?
            }
            LoadSource::Fleet(fleet, vantage) => {
                fleet.run(&spec, vantage.as_deref_mut(), watch, stop)?
            }
        };
        let mut report = assess(&trial);
        if self.in_slices {
            let began = Nanos(trial.measurement.began_ns) - Nanos(began_ns);
            report.set_slice(Some(Slice::of(&trial, began)));
        }
        Ok(TrialOutput {
            trial: report,
            interrupted: trial.interrupted,
            backend: trial.generator.backend,
        })
    }
}

/// The same target with its version of HTTP settled: where that is the server's choice, the server
/// is asked.
///
/// # Errors
/// It does not answer, or not as it should.
pub(super) fn settle(
    target: Target,
    connect_timeout: Nanos,
    fleet: Option<&Fleet>,
) -> Result<Target, Failure> {
    let target = match target.version() {
        HttpVersion::Http3IfOffered if fleet.is_some() => {
            let wrong = "asks from this machine, and the agents make the load: give --http3";
            return Err(Failure::argument("--http3-if-offered", wrong));
        }
        HttpVersion::Http3IfOffered => match knee_engine::http3_offer(&target, connect_timeout)? {
            Some(offer) => offered(target, offer),
            None => target.with_version(HttpVersion::Auto),
        },
        _ => target,
    };
    let version = match (target.version(), fleet) {
        (HttpVersion::Auto, None) => knee_engine::preflight(&target, connect_timeout)?.1.version,
        (HttpVersion::Auto, Some(fleet)) => fleet.greet(&target, connect_timeout)?.1,
        (version, _) => version,
    };
    Ok(target.with_version(version))
}

/// The same target over HTTP/3, at the place where its server offers that. The certificate is that
/// of the URL's host wherever it is (RFC 7838 §2.1).
fn offered(mut target: Target, offer: Http3Offer) -> Target {
    if let Endpoint::Tcp { host, port } = &mut target.endpoint {
        *port = offer.port;
        if let Some(other) = offer.host.filter(|other| other != host) {
            let own = std::mem::replace(host, other);
            if let Some(tls) = &mut target.tls {
                tls.server_name.get_or_insert(own);
            }
        }
    }
    target.with_version(HttpVersion::Http3)
}

/// A trial with this load on this target, as these options ask for: warm-up and measured time are
/// `times`. All operations end with it, and none is tried again.
///
/// # Errors
/// The time limits do not fit, or the interval is too short.
pub fn trial(
    http: &HttpArgs,
    target: Target,
    load: Load,
    times: [Nanos; 2],
    engine: EngineOptions,
) -> Result<TrialSpec, Failure> {
    let level = load.level();
    let [warmup, duration] = times;
    Ok(TrialSpec {
        label: label(level),
        level,
        load,
        timeout: http.limits.timeout_for(&target)?,
        target,
        warmup,
        duration,
        operations_max: None,
        retry: None,
        sentinel: None,
        connect_timeout: http.limits.connect_timeout,
        interval: http.limits.interval(duration)?,
        seed: http.engine.seed(),
        engine,
    })
}

/// The figures of a level that has ended, in one line.
pub(super) fn level_line(number: usize, trial: &TrialReport) -> String {
    let per_s = |per_s: f64| format!("{per_s:.*}/s", usize::from(per_s < 100.0));
    let rate = match trial.throughput() {
        Figure::Exactly(rate) => per_s(rate),
        Figure::Within(least, _) => format!("≥{}", per_s(least)),
        Figure::Absent => "–".to_owned(),
    };
    let times = &trial.response_time_ns;
    let [mean, p90, p99] = [times.mean, times.p90, times.p99]
        .map(|ns| ns.map_or_else(|| "–".to_owned(), |ns| Nanos(ns).to_string()));
    let errors = trial.outcomes.errors();
    format!(
        "{:>3}  {:<14} {rate:>12}  mean {mean:>7}  p90 {p90:>7}  p99 {p99:>7}  \
         errors {errors}",
        number + 1,
        trial.label,
    )
}

/// A trial's name for people: `vusers=10`, `rate=1000/s`.
fn label(level: Level) -> String {
    match level {
        Level::Vusers(n) => format!("vusers={n}"),
        // Recorded times have a rate with many digits.
        Level::RatePerS(rate) => format!("rate={}/s", (rate * 1e3).round() / 1e3),
        Level::Clients(n) => format!("clients={n}"),
        Level::Descriptors(n) => format!("descriptors={n}"),
        Level::Flows { up, down } => format!("{up} up, {down} down"),
    }
}

/// The longest that these steps may take together.
const LASTS_AT_MOST: Nanos = Nanos::from_secs(600);

/// Has one user do the steps of this kind of session of the target, as `base` would. Returns the
/// values of its variables.
///
/// # Errors
/// A step failed, or all of them took more than ten minutes.
fn walk_once(base: &TrialSpec, kind: u16, stop: &AtomicBool) -> Result<Vec<Vec<u8>>, RunError> {
    let mut spec = TrialSpec {
        level: Level::Vusers(1),
        load: Load::Closed { vusers: 1, pause: Pause::NONE, stages: Vec::new() },
        warmup: Nanos::ZERO,
        duration: LASTS_AT_MOST,
        operations_max: Some(1),
        retry: None,
        ..base.clone()
    };
    let mut name = String::new();
    if let Some(plan) = &mut spec.target.sessions {
        let plan = Arc::make_mut(plan);
        if let Some(script) = &plan.script {
            let (setup, teardown) = script.around_max;
            spec.duration = if plan.setup == Some(kind) { setup } else { teardown };
        }
        *plan = std::mem::take(plan).only(kind);
        name = plan.kinds.get(usize::from(kind)).map_or(name, |kind| kind.name.clone());
    }
    let trial = knee_engine::run(&spec, &mut ConsoleAlone, stop)?;
    let kept = trial.measurement.sessions.as_ref().and_then(|sessions| sessions.kept.clone());
    kept.ok_or_else(|| {
        let why = match failure_of(&trial) {
            Some(why) => why,
            None if trial.interrupted => "was interrupted".to_owned(),
            None => format!("took more than {}", spec.duration),
        };
        RunError::NotStarted(format!("{name}: {why}"))
    })
}

/// Shows what a script writes to its console, and nothing else of a trial.
struct ConsoleAlone;

impl IntervalWatcher for ConsoleAlone {
    fn on_interval(&mut self, _: &Interval, _: &Histogram) {}

    fn on_note(&mut self, line: &str) {
        stdio::say(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_names() {
        assert_eq!(label(Level::Vusers(10)), "vusers=10");
        assert_eq!(label(Level::RatePerS(1.5)), "rate=1.5/s");
    }
}
