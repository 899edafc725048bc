//! A target of known behaviour in the place of the engine: exact curves with seeded noise.

use crate::experiment::sweep::models::MachineRepair;
use crate::experiment::sweep::report::SweepConclusion;
use crate::experiment::sweep::{Bound, LevelPlan, Sweep, SweepAxis, SweepSpec};
use crate::experiment::{Conducted, conduct};
use crate::trial::assess::assess;
use crate::trial::detail::HttpDetail;
use crate::trial::figure::TimesReport;
use crate::trial::offered::{LittlesLaw, OfferedReport};
use crate::trial::report::{GeneratorReport, TrialReport, Verdict};
use crate::trial::slice::Slice;
use knee_load::measure::{Interval, Outcome, Outcomes, Trial};
use knee_load::rng;
use knee_load::spec::{
    BackendChoice, Body, Endpoint, EngineOptions, HttpRequest, Level, Load, Pause, Pick, Target,
    TrialSpec, WaitPolicy,
};
use knee_load::time::Nanos;
use std::cell::Cell;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::rc::Rc;

/// Throughput and silence of a number of users from one time, in s, to another.
pub(crate) type During = Box<dyn FnMut(u32, f64, f64) -> (f64, Option<[f64; 2]>)>;

/// A target. `now_s` is the time since the experiment began.
pub(crate) struct Fake {
    /// Throughput of a number of users at a time.
    pub throughput: Box<dyn Fn(u32, f64) -> f64>,
    /// Share of the operations that fail with a number of users.
    pub failures: Box<dyn Fn(u32) -> f64>,
    /// Standard error of a trial's throughput as a share of it.
    pub noise: f64,
    /// What a slice from one time to another gets in place of `throughput`, and its longest time
    /// without a response within it.
    pub during: Option<During>,
    /// Share of the host's processor time that was stolen in the next slice, in percent.
    pub stolen: Rc<Cell<f64>>,
    /// Whether every trial drifts, however long.
    pub drifts: bool,
    /// Time that has passed.
    pub now_s: f64,
}

impl Fake {
    /// A target of this throughput, without failures or noise.
    pub(crate) fn new(throughput: impl Fn(u32) -> f64 + 'static) -> Fake {
        Fake {
            throughput: Box::new(move |n, _| throughput(n)),
            failures: Box::new(|_| 0.0),
            noise: 0.0,
            during: None,
            stolen: Rc::default(),
            drifts: false,
            now_s: 0.0,
        }
    }

    /// `servers` servers of this service time, and that much time outside.
    pub(crate) fn station(servers: u32, service_s: f64, overhead_s: f64) -> Fake {
        let station = MachineRepair { servers, service_s, overhead_s };
        Fake::new(move |n| station.throughput_per_s(n))
    }

    /// One trial.
    pub(crate) fn run(&mut self, spec: &TrialSpec) -> TrialReport {
        let begin_s = self.now_s + spec.warmup.as_secs_f64();
        let end_s = begin_s + spec.duration.as_secs_f64();
        self.now_s = end_s;
        let mut rng = rng::stream(spec.seed, 0);
        // A sum of twelve uniform numbers is nearly normal, with variance 1.
        let normal: f64 = (0..12).map(|_| rng::unit(&mut rng)).sum::<f64>() - 6.0;
        let noise = 1.0 + self.noise * normal;
        let mut silence = None;
        let mut report = match spec.load {
            Load::Closed { vusers, .. } if self.during.is_some() => {
                let during = self.during.as_mut().expect("there is one");
                let (throughput, silent) = during(vusers, begin_s, end_s);
                silence = silent;
                self.closed(vusers, throughput.max(0.0), spec)
            }
            Load::Closed { vusers, .. } => {
                let first = (self.throughput)(vusers, begin_s);
                let last = (self.throughput)(vusers, end_s);
                let settled = (last / first - 1.0).abs() < 0.05 && !self.drifts;
                let mut report = self.closed(vusers, noise * (first + last) / 2.0, spec);
                report.stationary = settled;
                report
            }
            Load::Open(ref open) => self.open(open.rate.per_s(), noise, spec),
            Load::Overload(_) => unreachable!("a sweep asks for no overload"),
        };
        report.label = spec.label.clone();
        let ns = |s: f64| (s * 1e9) as u64;
        let (load_begin_ns, end_ns) = (ns(begin_s - spec.warmup.as_secs_f64()), ns(end_s));
        let mut slice = Slice::at(begin_s, silence);
        (slice.load_begin_ns, slice.end_ns) = (load_begin_ns, end_ns);
        for silence in &mut slice.silences {
            silence.at_begin = silence.begin_ns <= slice.begin_ns + 1_000;
            silence.at_end = silence.end_ns + 1_000 >= end_ns;
        }
        report.generator.steal_percent = Some(self.stolen.get());
        report.set_slice(Some(slice));
        report
    }

    fn closed(&self, vusers: u32, throughput: f64, spec: &TrialSpec) -> TrialReport {
        let response_ns = 1e9 * f64::from(vusers) / throughput.max(1e-3);
        let share = (self.failures)(vusers);
        let mut report = blank(Level::Vusers(vusers), spec);
        set_figures(&mut report, throughput, response_ns, self.noise);
        report.outcomes = outcomes(report.attempted, share);
        report.goodput_per_s = report.throughput_per_s.map(|x| x * (1.0 - share));
        report.as_http_mut().littles_law = Some(LittlesLaw {
            n: f64::from(vusers),
            x_times_r: f64::from(vusers),
            deviation_percent: 0.0,
            ok: true,
        });
        report
    }

    /// In open loop the capacity is what very many users get.
    fn open(&self, offered: f64, noise: f64, spec: &TrialSpec) -> TrialReport {
        let capacity = (self.throughput)(100_000, self.now_s) * noise;
        let alone_ns = 1e9 / (self.throughput)(1, self.now_s);
        let served = offered.min(capacity);
        let mut report = blank(Level::RatePerS(offered), spec);
        let free = (1.0 - offered / capacity).max(0.01);
        set_figures(&mut report, served, alone_ns / free, self.noise);
        report.offered.asked_per_s = Some(offered);
        report.offered.achieved_per_s = offered;
        report.stationary = offered <= capacity;
        report.intervals = (0..10)
            .map(|i| Interval {
                start_ns: i * 1_000_000_000,
                end_ns: (i + 1) * 1_000_000_000,
                attempted: offered.round() as u64,
                completed: served.round() as u64,
                ..Interval::default()
            })
            .collect();
        report
    }
}

/// A simulated trial as a slice that began at this time of the experiment, which it moves on.
pub(crate) fn slice_of(trial: &Trial, now_s: &mut f64) -> TrialReport {
    let slice = Slice::of(trial, Nanos::from_secs_f64(*now_s));
    *now_s = slice.end_ns as f64 / 1e9;
    let mut report = assess(trial);
    report.set_slice(Some(slice));
    report
}

/// A sweep of a fake target from beginning to end.
pub(crate) fn sweep(
    fake: &mut Fake,
    spec: SweepSpec,
) -> (Conducted<TrialReport, SweepConclusion>, SweepConclusion) {
    let mut sweep = Sweep::new(spec);
    let run = |spec: &TrialSpec| Ok::<_, Infallible>(ControlFlow::Continue(fake.run(spec)));
    let Ok(conducted) = conduct(&mut sweep, run);
    let conclusion = conducted.conclusion.clone();
    (conducted, conclusion)
}

/// An automatic sweep over users.
pub(crate) fn automatic(seed: u64) -> SweepSpec {
    axis_spec(SweepAxis::Vusers(LevelPlan::Auto), seed)
}

/// A sweep over these users.
pub(crate) fn list(levels: &[u32]) -> SweepSpec {
    axis_spec(SweepAxis::Vusers(LevelPlan::List(levels.to_vec())), 1)
}

/// An automatic sweep over rates.
pub(crate) fn rates(seed: u64) -> SweepSpec {
    axis_spec(SweepAxis::Rate(LevelPlan::Auto), seed)
}

/// With these bounds.
pub(crate) fn bounded(mut spec: SweepSpec, bounds: &[Bound]) -> SweepSpec {
    spec.bounds = bounds.to_vec();
    spec
}

fn axis_spec(axis: SweepAxis, seed: u64) -> SweepSpec {
    SweepSpec {
        base: base(seed),
        axis,
        bounds: Vec::new(),
        budget: SweepSpec::BUDGET,
        vusers_max: SweepSpec::VUSERS_MAX,
    }
}

/// A trial of one user.
pub(crate) fn base(seed: u64) -> TrialSpec {
    TrialSpec {
        label: "vusers=1".into(),
        level: Level::Vusers(1),
        load: Load::Closed { vusers: 1, pause: Pause::NONE, stages: Vec::new() },
        target: Target {
            further: Vec::new(),
            endpoint: Endpoint::Unix { path: "/fake".into() },
            requests: vec![HttpRequest {
                method: "GET".into(),
                path: "/".into(),
                host: "fake".into(),
                headers: Vec::new(),
                body: Body::default(),
                weight: 1,
                holes: Vec::new(),
                messages: None,
                timed: None,
                answers_stream: false,
            }],
            pick: Pick::InOrder,
            keep_alive: true,
            protocol: Default::default(),
            connections_max: None,
            tls: None,
            proxy: None,
            route: Default::default(),
            sessions: None,
            recording: None,
            stream_bounds: None,
        },
        warmup: Nanos::from_millis(500),
        duration: Nanos::from_secs(4),
        operations_max: None,
        timeout: Nanos::from_secs(10),
        retry: None,
        sentinel: None,
        connect_timeout: Nanos::from_secs(5),
        interval: Nanos::from_secs(1),
        seed,
        engine: EngineOptions {
            workers: 1,
            backend: BackendChoice::Auto,
            wait: WaitPolicy::Hybrid,
            ..EngineOptions::default()
        },
    }
}

/// A sound trial in which nothing was measured yet.
pub(crate) fn blank(level: Level, spec: &TrialSpec) -> TrialReport {
    TrialReport {
        label: spec.label.clone(),
        level,
        duration_ns: spec.duration.0,
        attempted: 0,
        completed: 0,
        throughput_per_s: None,
        throughput_ci95_per_s: None,
        throughput_is: Default::default(),
        throughput_range_per_s: None,
        goodput_per_s: None,
        outcomes: Outcomes::default(),
        response_time_ns: TimesReport::default(),
        service_time_ns: TimesReport::default(),
        offered: OfferedReport::default(),
        generator: GeneratorReport { workers: 1, ..GeneratorReport::default() },
        stationary: true,
        verdict: Verdict::Valid,
        invalid_because: Vec::new(),
        invalid_clauses: Vec::new(),
        bytes_received: 0,
        detail: HttpDetail::default().into(),
        intervals: Vec::new(),
        kernel: Default::default(),
    }
}

fn set_figures(report: &mut TrialReport, throughput: f64, response_ns: f64, noise: f64) {
    let count = (throughput * report.duration_ns as f64 / 1e9).ceil() as u64;
    let half = 1.96 * noise * throughput;
    report.attempted = count;
    report.completed = count;
    report.throughput_per_s = Some(throughput);
    report.goodput_per_s = Some(throughput);
    report.throughput_ci95_per_s = Some([throughput - half, throughput + half]);
    report.outcomes = outcomes(count, 0.0);
    let ns = |factor: f64| (factor * response_ns) as u64;
    report.response_time_ns = TimesReport {
        count,
        mean: Some(ns(1.0)),
        min: Some(ns(0.9)),
        p50: Some(ns(1.0)),
        p75: Some(ns(1.01)),
        p90: Some(ns(1.02)),
        p95: Some(ns(1.03)),
        p99: Some(ns(1.05)),
        p999: Some(ns(1.1)),
        max: Some(ns(1.2)),
        p90_ci95: Some([ns(1.01), ns(1.03)]),
        p95_ci95: Some([ns(1.02), ns(1.04)]),
        mean_ci95: Some([ns(0.99), ns(1.01)]),
        p50_ci95: Some([ns(0.99), ns(1.01)]),
        p75_ci95: Some([ns(1.0), ns(1.02)]),
        p99_ci95: Some([ns(1.04), ns(1.06)]),
        p999_ci95: Some([ns(1.09), ns(1.11)]),
        ranges: std::collections::BTreeMap::new(),
        spectrum: Vec::new(),
    };
}

/// Outcomes of `count` operations. This share of them failed.
pub(crate) fn outcomes(count: u64, failed_share: f64) -> Outcomes {
    let failed = (count as f64 * failed_share).round() as u64;
    let map = [(Outcome::Ok, count - failed), (Outcome::HTTP_5XX, failed)];
    let map: std::collections::BTreeMap<&str, u64> =
        map.iter().map(|(o, n)| (o.name(), *n)).collect();
    let text = serde_json::to_string(&map).expect("a map of numbers");
    serde_json::from_str(&text).expect("names of outcomes")
}
