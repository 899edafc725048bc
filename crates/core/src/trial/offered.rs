//! The load asked for, against the load that was offered; for closed loops also by Little's law.

use super::times::{QuantilesReport, quantiles};
use super::validity::{Demand, GapEvidence};
use knee_load::arrival::GapLaw;
use knee_load::law::Law;
use knee_load::measure::{Histogram, Measurement, Outcome, Trial, Window};
use knee_load::spec::{ArrivalLaw, ConnectScheme, Load, OverloadLoad, Pause, PauseKind, Rate};
use knee_load::stats::gaps::{
    Dispersion, Gaps, KolmogorovSmirnov, WindowCounts, counts, dispersion, exponential_test,
};
use knee_load::stats::sample::Z975;
use knee_load::time::Nanos;
use serde::{Deserialize, Serialize};

/// The load that was offered, against the load asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OfferedReport {
    /// Operations asked for per second; `None` in a closed loop.
    pub asked_per_s: Option<f64>,
    /// Operations started per second.
    pub achieved_per_s: f64,
    /// The arrival process, or `closed`.
    pub arrival: String,
    /// The load changes over time by plan, as a ramp does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changes_by_plan: bool,
    /// Coefficient of variation of the gaps between starts; open loop.
    pub gap_cv: Option<f64>,
    /// Index of dispersion of counts (variance over mean) at four time scales; open loop.
    pub dispersion: Option<Dispersion>,
    /// The same of recorded times, as they were asked for; `None` with another process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<RecordedGaps>,
    /// p-value of the Kolmogorov–Smirnov test of the gaps against the exponential law; Poisson
    /// only.
    pub ks_p_value: Option<f64>,
    /// The generator's own lateness: started − intended.
    pub pacing_error_ns: QuantilesReport,
    /// Waits for a free connection; absent where operations need none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_wait_ns: Option<QuantilesReport>,
    /// The longest stall of any worker past a deadline.
    pub stall_ns_max: u64,
}

/// How uneven recorded times are, within the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordedGaps {
    /// Coefficient of variation of their gaps.
    pub gap_cv: Option<f64>,
    /// Index of dispersion of their counts at four time scales.
    pub dispersion: Dispersion,
}

/// Little's law for a closed loop: N = X·(R + Z).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LittlesLaw {
    /// Virtual users.
    pub n: f64,
    /// Throughput times the sum of mean response time and mean pause.
    pub x_times_r: f64,
    /// By how much the second deviates from the first.
    pub deviation_percent: f64,
    /// Whether the deviation is within 2.5 %.
    pub ok: bool,
}

/// Scales at which counts are held against Poisson's, in ms.
const COUNT_SCALES_MS: [u64; 3] = [10, 100, 1_000];

/// The rate of a schedule and its arrival process.
type RateAndLaw<'a> = (Rate, &'a ArrivalLaw);

/// How well the load of a trial was kept, as reported.
pub fn offered_report(trial: &Trial) -> OfferedReport {
    let measured = &trial.measurement;
    let open = trial.spec.load.schedule();
    let known = known(measured);
    let window_s = measured.window.length().as_secs_f64();
    let gaps = open.and_then(|_| Gaps::of(&measured.starts));
    // A window that a number of operations ended is as long as the last of them took.
    let most = trial.spec.operations_max.map_or(f64::INFINITY, |n| n as f64);
    let asked = open.map(|load| operations_in(load, measured.window).min(most));
    let started = measured.started_first();
    OfferedReport {
        asked_per_s: asked.filter(|_| window_s > 0.0).map(|n| n / window_s),
        achieved_per_s: if window_s > 0.0 { started as f64 / window_s } else { 0.0 },
        arrival: arrival_name(&trial.spec.load).to_owned(),
        changes_by_plan: !is_even(&trial.spec.load),
        gap_cv: gaps.map(|g| g.cv()),
        dispersion: open.map(|_| dispersion(&measured.starts, known)),
        recorded: open.and_then(|(_, arrival)| recorded_gaps(arrival, known)),
        ks_p_value: open
            .and_then(|load| poisson_test(load, &measured.starts))
            .map(|test| test.p_value),
        pacing_error_ns: quantiles(&measured.pacing_error),
        connection_wait_ns: Some(quantiles(&measured.connection_wait)),
        stall_ns_max: measured.stall_ns_max,
    }
}

/// The unevenness of recorded times within the window.
fn recorded_gaps(arrival: &ArrivalLaw, known: Window) -> Option<RecordedGaps> {
    let ArrivalLaw::Trace(times) = arrival else {
        return None;
    };
    let from = times.partition_point(|time| *time < known.start);
    let to = times.partition_point(|time| *time < known.end);
    let times = &times[from..to.max(from)];
    let gap_cv = Gaps::of(times).map(|gaps| gaps.cv());
    Some(RecordedGaps { gap_cv, dispersion: dispersion(times, known) })
}

/// The demand of a trial's schedule in the window. `None` in a closed loop, and where a number of
/// operations, not the window, ended the schedule.
pub fn demand_of(trial: &Trial) -> Option<Demand> {
    let schedule = trial.spec.load.schedule()?;
    let demand = schedule_demand(schedule, trial.measurement.window);
    let is_counted = |n| n as f64 <= demand.operations + demand.slack;
    (!trial.spec.operations_max.is_some_and(is_counted)).then_some(demand)
}

/// The operations that a schedule has in the window.
pub(crate) fn schedule_demand(schedule: RateAndLaw<'_>, window: Window) -> Demand {
    let (rate, arrival) = schedule;
    let operations = operations_in(schedule, window);
    let slack = arrival.slack(rate, operations);
    Demand { operations, slack }
}

/// Evidence on the gaps between starts and the counts of starts. `None` where the process promises
/// nothing about them, or too little was started.
pub fn gap_evidence(trial: &Trial) -> Option<GapEvidence> {
    let measured = &trial.measurement;
    let schedule = trial.spec.load.schedule()?;
    gap_evidence_within(schedule, &measured.starts, known(measured))
}

/// [`gap_evidence`] of `starts`, which are complete within the window `known`.
pub(crate) fn gap_evidence_within(
    schedule: RateAndLaw<'_>,
    starts: &[Nanos],
    known: Window,
) -> Option<GapEvidence> {
    let law = schedule.1.gaps()?;
    let scales: Vec<(Nanos, WindowCounts)> = COUNT_SCALES_MS
        .iter()
        .map(|&ms| Nanos::from_millis(ms))
        .filter_map(|bin| Some((bin, counts(starts, known, bin)?)))
        .collect();
    Some(GapEvidence {
        law,
        gaps: Gaps::of(starts)?,
        exponential: poisson_test(schedule, starts),
        counts: scales,
    })
}

/// Whether the load is the same all the time, so that only the target changes the throughput.
pub(super) fn is_even(load: &Load) -> bool {
    match load {
        Load::Closed { stages, .. } => stages.is_empty(),
        scheduled => scheduled.schedule().is_none_or(|(_, arrival)| arrival.is_even()),
    }
}

/// The name of the arrival process, `s_clients` or `closed`.
fn arrival_name(load: &Load) -> &'static str {
    if let Some((_, arrival)) = load.schedule() {
        return arrival.name();
    }
    match load {
        Load::Overload(OverloadLoad { scheme: ConnectScheme::SClients { .. }, .. }) => "s_clients",
        _ => "closed",
    }
}

/// The part of the window in which all starts are known.
fn known(measured: &Measurement) -> Window {
    Window { start: measured.window.start, end: measured.starts_until.min(measured.window.end) }
}

fn poisson_test((rate, arrival): RateAndLaw<'_>, starts: &[Nanos]) -> Option<KolmogorovSmirnov> {
    match arrival.gaps() {
        Some(GapLaw::Poisson) => exponential_test(starts, rate.per_s()),
        _ => None,
    }
}

/// The mean number of operations that the schedule has in the window.
fn operations_in((rate, arrival): RateAndLaw<'_>, window: Window) -> f64 {
    arrival.operations(rate, [window.start, window.end])
}

/// Largest deviation that is not a finding, in percent.
const DEVIATION_PERCENT: f64 = 2.5;

/// Holds N = X·(R + Z) (Little, Operations Research 9, 1961) against a closed-loop trial of
/// `vusers` users. X operations were intended per second of the window, R is their mean response
/// time, Z the mean pause.
///
/// Of a pause from begin to begin (cycle C), what is left after the operation counts. It is taken
/// as max(C − R, 0) of the means, which is a little too small where response times vary about C.
///
/// Z is the law's mean; the pauses really drawn are a sample. What that sample may be off (95 %) is
/// permitted beside the 2.5 %. So is what the window's edges cut off. At each edge, a user has at
/// most one operation that lies partly in the window. At its end both sides of the law differ by
/// no more than the longest operations, one for each user. At its begin they differ by what lies
/// in the window of operations that began before. Both count where a target pauses, and all users
/// wait at the edge. `None` where nothing ended. `None` too where an
/// operation ended without a response: its user then waits before the next try, which is in no
/// mean.
pub fn littles_law(measured: &Measurement, vusers: u32, pause: Pause) -> Option<LittlesLaw> {
    let window_s = measured.window.length().as_secs_f64();
    let responses = measured.outcomes.responses() as f64;
    let ended = measured.outcomes.total() - measured.outcomes.count(Outcome::InFlight);
    if window_s <= 0.0 || responses == 0.0 || ended > measured.outcomes.responses() {
        return None;
    }
    let x = responses / window_s;
    let r = measured.response.mean_ns() / 1e9;
    let law_s = pause.law.mean_ns() / 1e9;
    // Between the end of an operation and the next a user also waits for the generator.
    let pick_up_s = measured.pick_up.mean_ns() / 1e9;
    let z = match pause.kind {
        PauseKind::Think => law_s + pick_up_s,
        PauseKind::Cycle => (law_s - r).max(pick_up_s),
    };
    let n = f64::from(vusers);
    let x_times_r = x * (r + z);
    let deviation_percent = (x_times_r - n) / n * 100.0;
    let sampling = Z975 * standard_deviation_s(pause.law) / (r + z) / (ended as f64).sqrt();
    // Each slice has edges of its own.
    let cut = vusers.saturating_mul(measured.slices.max(1));
    let edges_s = longest_s(&measured.response, cut) + measured.begun_before.as_secs_f64();
    let edges = edges_s / n / window_s;
    Some(LittlesLaw {
        n,
        x_times_r,
        deviation_percent,
        ok: deviation_percent.abs() <= DEVIATION_PERCENT + (sampling + edges) * 100.0,
    })
}

/// The sum of the `count` longest times, in seconds.
fn longest_s(times: &Histogram, count: u32) -> f64 {
    let mut left = u64::from(count);
    let mut recorded: Vec<(Nanos, u64)> = times.iter_recorded().collect();
    recorded.sort_by_key(|&(time, _)| std::cmp::Reverse(time));
    let longest = recorded.into_iter().map(|(time, n)| {
        let taken = n.min(left);
        left -= taken;
        time.as_secs_f64() * taken as f64
    });
    longest.sum()
}

fn standard_deviation_s(law: Law) -> f64 {
    match law {
        Law::Fixed(_) => 0.0,
        Law::Exp(mean) => mean.as_secs_f64(),
        Law::Uniform(lo, hi) => (hi - lo).as_secs_f64() / 12f64.sqrt(),
        Law::LogNormal(_, sigma) => law.mean_ns() / 1e9 * ((sigma * sigma).exp() - 1.0).sqrt(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_load::arrival::{ArrivalProcess, BurstLaw, RampLaw};
    use knee_load::measure::{Completion, Op, Recorder, RecorderConfig, Window};
    use knee_load::spec::{OpenLoad, Share};

    #[test]
    fn what_was_asked_is_what_the_schedule_has_in_the_window() {
        let rate = |per_s| Rate::per_second(per_s).expect("not zero");
        let (from, to) = (rate(100), rate(900));
        let over = Nanos::from_secs(8);
        let moments: Vec<Nanos> = (0..3_000).map(|k| Nanos::from_micros(k * k)).collect();
        for arrival in [
            ArrivalLaw::Constant,
            ArrivalLaw::Ramp(RampLaw { from, to, over }),
            ArrivalLaw::Burst(BurstLaw {
                peak_ratio: 3.0,
                peak_share: 0.2,
                period: Nanos::from_millis(500),
            }),
            ArrivalLaw::Burst(BurstLaw {
                peak_ratio: 4.0,
                peak_share: 0.25,
                period: Nanos::from_secs(5),
            }),
            ArrivalLaw::Trace(moments.into()),
        ] {
            let load =
                OpenLoad { rate: rate(500), arrival, connections_max: 1, in_flight_max: None };
            for (start, end) in [(0, 10), (2, 9), (3, 4)] {
                let window = Window { start: Nanos::from_secs(start), end: Nanos::from_secs(end) };
                let mut schedule = load.arrivals(Share::WHOLE, 1);
                let count = std::iter::from_fn(|| schedule.next())
                    .take_while(|&t| t < window.end)
                    .filter(|&t| window.contains(t))
                    .count();
                let asked = operations_in((load.rate, &load.arrival), window);
                assert!((asked - count as f64).abs() <= 1.0, "{asked}, not {count}: {load:?}");
            }
        }
    }

    const MS: fn(u64) -> Nanos = Nanos::from_millis;

    /// `vusers` users in step, each operation `response` long and begun every `cycle`.
    fn measured(vusers: u32, response: Nanos, cycle: Nanos, outcome: Outcome) -> Measurement {
        in_step(vusers, outcome, |_| (response, cycle))
    }

    /// `vusers` users in step. For an operation's begin: how long it takes, and how long later the
    /// next one begins. The first user's are always ok.
    fn in_step(
        vusers: u32,
        outcome: Outcome,
        takes: impl Fn(Nanos) -> (Nanos, Nanos),
    ) -> Measurement {
        in_step_from(MS(0), vusers, outcome, takes)
    }

    fn config(start: Nanos) -> RecorderConfig {
        RecorderConfig {
            window: Window { start, end: MS(10_000) },
            interval: MS(1_000),
            open_loop: false,
            of_sessions: false,
            starts_max: 0,
            targets: 1,
        }
    }

    /// The same with a window that begins later than the users.
    fn in_step_from(
        start: Nanos,
        vusers: u32,
        outcome: Outcome,
        takes: impl Fn(Nanos) -> (Nanos, Nanos),
    ) -> Measurement {
        let mut recorder = Recorder::new(config(start));
        let mut begin = Nanos::ZERO;
        while begin < MS(10_000) {
            let (response, cycle) = takes(begin);
            let completed = begin + response;
            for lane in 0..vusers {
                let op = Op { intended: begin, lane };
                let outcome = if lane == 0 { Outcome::Ok } else { outcome };
                let ended = Completion::at_once(op, completed, outcome);
                recorder.on_completion(&ended.exchanged(begin, begin));
            }
            begin += cycle;
        }
        recorder.finish(MS(10_000))
    }

    #[test]
    fn the_law_holds_where_users_do_as_they_should() {
        let think = |law| Pause { kind: PauseKind::Think, law };
        let cycle = |law| Pause { kind: PauseKind::Cycle, law };
        for (response, every, pause, ok, what) in [
            (10, 10, Pause::NONE, true, "no pause"),
            (10, 50, think(Law::Fixed(MS(40))), true, "a fixed pause"),
            (10, 50, cycle(Law::Fixed(MS(50))), true, "a cycle"),
            (60, 60, cycle(Law::Fixed(MS(50))), true, "a cycle shorter than the operation"),
            (10, 60, think(Law::Fixed(MS(40))), false, "pauses 20 % longer than asked"),
            (10, 52, think(Law::Fixed(MS(40))), false, "4 % too long a way round"),
            (10, 51, think(Law::Fixed(MS(40))), true, "2 % too long a way round"),
            (10, 52, think(Law::Exp(MS(40))), true, "4 %, as random pauses may come out"),
        ] {
            let trial = measured(5, MS(response), MS(every), Outcome::Ok);
            let law = littles_law(&trial, 5, pause).expect("operations ended");
            assert_eq!(law.ok, ok, "{what}: {law:?}");
        }
    }

    /// All users wait at once, also where the window ends. Operations take a millisecond, and one
    /// in each second takes 800 ms. The last of these ends half a second too late.
    #[test]
    fn a_pause_at_the_edge_of_the_window_is_no_violation() {
        let paused = |begin: Nanos| {
            let is_pause = begin.0 % MS(1_000).0 == MS(700).0;
            let takes = if is_pause { MS(800) } else { MS(1) };
            (takes, takes)
        };
        let trial = in_step(4, Outcome::Ok, paused);
        let law = littles_law(&trial, 4, Pause::NONE).expect("operations ended");
        assert!(law.ok, "{law:?}");
        // One user more than there were is more than the edges can hide.
        let law = littles_law(&trial, 5, Pause::NONE).expect("operations ended");
        assert!(!law.ok && law.deviation_percent < -15.0, "{law:?}");
    }

    /// The window begins within the only pause, 500 ms before its end.
    #[test]
    fn a_pause_at_the_begin_of_the_window_is_no_violation() {
        let paused = |begin: Nanos| {
            let takes = if begin == MS(700) { MS(800) } else { MS(1) };
            (takes, takes)
        };
        let trial = in_step_from(MS(1_000), 4, Outcome::Ok, paused);
        assert_eq!(trial.begun_before, MS(2_000));
        let law = littles_law(&trial, 4, Pause::NONE).expect("operations ended");
        assert!(law.ok && law.deviation_percent < -5.0, "{law:?}");
        let law = littles_law(&trial, 5, Pause::NONE).expect("operations ended");
        assert!(!law.ok, "a user that there is not: {law:?}");
    }

    /// One of five users waits from before the window on until it gives up.
    #[test]
    fn an_operation_from_before_the_window_that_times_out_in_it_is_no_violation() {
        let mut recorder = Recorder::new(config(MS(1_000)));
        let mut ends = |begin, end, outcome| {
            let op = Op { intended: MS(begin), lane: 0 };
            let ended = Completion::at_once(op, MS(end), outcome);
            recorder.on_completion(&ended.exchanged(MS(begin), MS(begin)));
        };
        for begin in (0..10_000).step_by(10) {
            if begin == 5_500 {
                ends(500, begin, Outcome::Timeout);
            }
            let users = if begin < 5_500 { 4 } else { 5 };
            (0..users).for_each(|_| ends(begin, begin + 10, Outcome::Ok));
        }
        let trial = recorder.finish(MS(10_000));
        let law = littles_law(&trial, 5, Pause::NONE).expect("operations ended");
        assert!(law.ok && law.deviation_percent < -9.0, "{law:?}");
    }

    #[test]
    fn users_who_failed_wait_and_the_law_says_nothing() {
        let trial = measured(4, MS(10), MS(10), Outcome::Reset);
        assert_eq!(littles_law(&trial, 4, Pause::NONE), None);
        let errors = measured(4, MS(10), MS(10), Outcome::HTTP_5XX);
        let law = littles_law(&errors, 4, Pause::NONE).expect("responses ended");
        assert!(law.ok && law.deviation_percent.abs() < 0.2, "{law:?}");
        let users_missing = littles_law(&errors, 5, Pause::NONE).expect("responses ended");
        assert!(!users_missing.ok && users_missing.deviation_percent < -19.0);
    }

    #[test]
    fn nothing_measured_says_nothing() {
        assert_eq!(littles_law(&Measurement::default(), 1, Pause::NONE), None);
    }
}
