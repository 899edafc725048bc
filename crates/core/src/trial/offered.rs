//! The load asked for, against the load that was offered.

use super::validity::{Demand, GapEvidence};
use crate::trial::report::{OfferedReport, QuantilesReport, RecordedGaps};
use knee_load::arrival::GapLaw;
use knee_load::measure::{Histogram, Measurement, Trial, Window};
use knee_load::spec::{ArrivalLaw, ConnectScheme, Load, OverloadLoad, Rate};
use knee_load::stats::gaps::{
    Gaps, KolmogorovSmirnov, WindowCounts, counts, dispersion, exponential_test,
};
use knee_load::time::Nanos;

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
    let asked = open.map(|load| asked_in(load, measured.window));
    let started = measured.started_first();
    OfferedReport {
        asked_per_s: asked.filter(|_| window_s > 0.0).map(|n| n / window_s),
        achieved_per_s: if window_s > 0.0 { started as f64 / window_s } else { 0.0 },
        arrival: arrival_name(&trial.spec.load).to_owned(),
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

/// What the schedule wanted of the window, and how far chance may take it from that. `None` in a
/// closed loop, and where a number of operations, not the window, ended the schedule.
pub fn asked(trial: &Trial) -> Option<Demand> {
    let schedule = trial.spec.load.schedule()?;
    if trial.spec.operations_max.is_some() {
        return None;
    }
    Some(asked_of(schedule, trial.measurement.window))
}

/// The operations that a schedule has in the window.
pub(crate) fn asked_of(schedule: RateAndLaw<'_>, window: Window) -> Demand {
    let (rate, arrival) = schedule;
    let operations = asked_in(schedule, window);
    let slack = arrival.slack(rate, operations);
    Demand { operations, slack }
}

/// What the gaps between starts, and the counts of starts, are to be judged by. `None` where the
/// process promises nothing about them, or too little was started.
pub fn gap_evidence(trial: &Trial) -> Option<GapEvidence> {
    let measured = &trial.measurement;
    let schedule = trial.spec.load.schedule()?;
    gap_evidence_of(schedule, &measured.starts, known(measured))
}

/// The same for `starts`, which are complete within the window `known`.
pub(crate) fn gap_evidence_of(
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

/// A few percentiles of a histogram.
pub fn quantiles(histogram: &Histogram) -> QuantilesReport {
    let percentile = |q| histogram.percentile(q).map(|t| t.0);
    QuantilesReport {
        p50: percentile(0.5),
        p99: percentile(0.99),
        p999: percentile(0.999),
        max: (!histogram.is_empty()).then(|| histogram.max().0),
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
fn asked_in((rate, arrival): RateAndLaw<'_>, window: Window) -> f64 {
    arrival.operations(rate, [window.start, window.end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_load::arrival::{ArrivalProcess, BurstLaw, RampLaw};
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
                let asked = asked_in((load.rate, &load.arrival), window);
                assert!((asked - count as f64).abs() <= 1.0, "{asked}, not {count}: {load:?}");
            }
        }
    }
}
