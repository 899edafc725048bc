//! The time series of a scenario on one grid, coarse enough for a report to stay small.

use crate::trial::detail::LatencySeries;
use crate::trial::figure::TimesReport;
use crate::trial::times::times_report;
use knee_load::experiment::latency::{LatencyTrial, Probe, ProbesMeasured};
use knee_load::measure::{Direction, Histogram, Interval};
use knee_load::stats::stationarity::{RESPONSE_SHARE, THROUGHPUT_SHARE, is_stationary};
use knee_load::time::Nanos;

/// Maximum intervals of a scenario in its report.
const INTERVALS_MAX: u64 = 240;

/// Equal intervals from the beginning of the measured time to its end. The last one also has what
/// is left: it is between a half and one and a half as long as the others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    /// Length of one: a multiple of that which was measured.
    step: Nanos,
    /// How many of those that were measured make one.
    factor: usize,
    count: usize,
    end: Nanos,
}

impl Grid {
    pub(super) fn of(trial: &LatencyTrial) -> Grid {
        let measured = trial.spec.interval.0.max(1);
        let factor = trial.elapsed.0.div_ceil(measured).div_ceil(INTERVALS_MAX);
        let step = measured.saturating_mul(factor.max(1));
        let count = trial.elapsed.0.saturating_add(step / 2) / step;
        Grid {
            step: Nanos(step),
            factor: factor.max(1) as usize,
            count: count.max(1) as usize,
            end: trial.elapsed,
        }
    }

    /// Sums of counts per measured interval.
    pub(super) fn sums(&self, measured: &[u64]) -> Vec<u64> {
        let mut sums = vec![0_u64; self.count];
        for (index, n) in measured.iter().enumerate() {
            let at = (index / self.factor).min(self.count - 1);
            sums[at] = sums[at].saturating_add(*n);
        }
        sums
    }

    fn at(&self, moment: Nanos) -> usize {
        ((moment.0 / self.step.0) as usize).min(self.count - 1)
    }

    /// The bounds of one.
    fn bounds(&self, index: usize) -> (u64, u64) {
        let start = self.step.0.saturating_mul(index as u64);
        if index + 1 == self.count {
            (start, self.end.0.max(start))
        } else {
            (start, start.saturating_add(self.step.0))
        }
    }

    /// The intervals: pings as operations, counted where they ended, and the bytes of both
    /// directions.
    pub(super) fn intervals(&self, trial: &LatencyTrial) -> Vec<Interval> {
        let ended = self.ended(&trial.tcp, trial.spec.probes.every, |p| {
            let late = p.sent - p.intended;
            late + p.time()
        });
        let mut intervals: Vec<Interval> = (0..self.count)
            .map(|index| {
                let (start_ns, end_ns) = self.bounds(index);
                let tally = &ended[index];
                Interval {
                    start_ns,
                    end_ns,
                    completed: tally.answered,
                    errors: tally.lost,
                    p50_ns: tally.times.quantile(0.5).0,
                    p90_ns: tally.times.quantile(0.9).0,
                    p99_ns: tally.times.quantile(0.99).0,
                    max_ns: tally.times.max().0,
                    ..Interval::default()
                }
            })
            .collect();
        for probe in &trial.tcp.probes {
            intervals[self.at(probe.sent)].attempted += 1;
        }
        for direction in [Direction::Up, Direction::Down] {
            let flows = trial.flows.iter().filter(|f| f.direction == direction);
            let counted = flows.map(|f| self.sums(&f.by_interval));
            let total = counted.reduce(|a, b| a.iter().zip(&b).map(|(x, y)| x + y).collect());
            let bytes = total.unwrap_or_else(|| vec![0; self.count]);
            for (interval, bytes) in intervals.iter_mut().zip(bytes) {
                match direction {
                    Direction::Up => interval.up_bytes = Some(bytes),
                    Direction::Down => interval.down_bytes = Some(bytes),
                }
            }
        }
        intervals
    }

    /// Every kind of latency over time.
    pub(super) fn series(&self, trial: &LatencyTrial) -> Vec<LatencySeries> {
        let every = trial.spec.probes.every;
        let mut series = vec![self.beside("tcp", &trial.tcp, every)];
        series.extend(trial.udp.as_ref().map(|udp| self.beside("udp", udp, every)));
        for (kind, direction) in [("inside_up", Direction::Up), ("inside_down", Direction::Down)] {
            if trial.flows.iter().any(|f| f.direction == direction) {
                series.push(self.inside(kind, trial, direction));
            }
        }
        series
    }

    fn beside(&self, kind: &str, probes: &ProbesMeasured, every: Nanos) -> LatencySeries {
        let ended = self.ended(probes, every, Probe::time);
        let known = |tally: &ProbeTally, value: Nanos| (!tally.times.is_empty()).then_some(value.0);
        LatencySeries {
            kind: kind.to_owned(),
            p50_ns: ended.iter().map(|tally| known(tally, tally.times.quantile(0.5))).collect(),
            max_ns: ended.iter().map(|tally| known(tally, tally.times.max())).collect(),
        }
    }

    fn inside(&self, kind: &str, trial: &LatencyTrial, direction: Direction) -> LatencySeries {
        let mut longest = vec![0_u64; self.count];
        for flow in trial.flows.iter().filter(|f| f.direction == direction) {
            for (index, latency) in flow.inside_max_by_interval.iter().enumerate() {
                let at = (index / self.factor).min(self.count - 1);
                longest[at] = longest[at].max(latency.0);
            }
        }
        LatencySeries {
            kind: kind.to_owned(),
            p50_ns: vec![None; self.count],
            max_ns: longest.iter().map(|&ns| (ns > 0).then_some(ns)).collect(),
        }
    }

    /// The probes by the interval in which they came back or timed out.
    fn ended(
        &self,
        probes: &ProbesMeasured,
        every: Nanos,
        time: impl Fn(&Probe) -> Nanos,
    ) -> Vec<ProbeTally> {
        let mut ended = vec![ProbeTally::default(); self.count];
        for (probe, stands_for) in probes.probes.iter().zip(shares(probes, every)) {
            let tally = &mut ended[self.at(probe.sent + probe.time())];
            match probe.back {
                Some(_) => tally.answered += 1,
                None => tally.lost += 1,
            }
            tally.times.record_n(time(probe), stands_for);
        }
        ended
    }
}

#[derive(Clone, Debug, Default)]
struct ProbeTally {
    answered: u64,
    lost: u64,
    times: Histogram,
}

/// Whether neither what the flows carried nor how long the pings took drifts or jumps.
pub(super) fn is_steady(intervals: &[Interval]) -> bool {
    let whole = &intervals[..intervals.len().saturating_sub(1)];
    let bytes = |i: &Interval| i.up_bytes.unwrap_or(0) + i.down_bytes.unwrap_or(0);
    let carried: Vec<f64> = whole.iter().map(|i| bytes(i) as f64).collect();
    let answered = whole.iter().filter(|i| i.completed > 0);
    let latency: Vec<f64> = answered.map(|i| i.p50_ns as f64).collect();
    is_stationary(&carried, THROUGHPUT_SHARE) && is_stationary(&latency, RESPONSE_SHARE)
}

/// How many times of the schedule each of these probes stands for, where one is due `every` so
/// often. Only what was held back adds to one: a generator that was late adds nothing.
pub(super) fn shares(measured: &ProbesMeasured, every: Nanos) -> Vec<u64> {
    let probes = &measured.probes;
    let mut shares = vec![1; probes.len()];
    let mut held_back = measured.held_back;
    if every == Nanos::ZERO {
        return shares;
    }
    for (index, pair) in probes.windows(2).enumerate() {
        let apart = pair[1].intended.0.saturating_sub(pair[0].intended.0);
        let due = (apart + every.0 / 2) / every.0;
        let held = due.saturating_sub(1).min(held_back);
        held_back -= held;
        shares[index] += held.div_ceil(2);
        shares[index + 1] += held / 2;
    }
    // Of more probes than are kept, the last that is has others after it.
    let all_are_kept = measured.sent == probes.len() as u64;
    if let Some(last) = shares.last_mut().filter(|_| all_are_kept) {
        *last += held_back;
    }
    shares
}

/// Times of probes, with what each stands for.
#[derive(Debug)]
pub(super) struct WeightedTimes {
    /// Each probe once.
    each: Histogram,
    /// Each as often as it stands for.
    standing: Histogram,
}

impl WeightedTimes {
    pub(super) fn of(
        measured: &ProbesMeasured,
        every: Nanos,
        time: impl Fn(&Probe) -> Nanos,
    ) -> WeightedTimes {
        let (mut each, mut standing) = (Histogram::default(), Histogram::default());
        for (probe, n) in measured.probes.iter().zip(shares(measured, every)) {
            each.record(time(probe));
            standing.record_n(time(probe), n);
        }
        WeightedTimes { each, standing }
    }

    /// The figures of the measured time. There are as many observations as probes, so that a
    /// percentile is known where the probes themselves determine it.
    pub(super) fn report(&self) -> TimesReport {
        let is_known = |q| self.each.percentile(q).is_some();
        let times = times_report(&self.standing, None);
        TimesReport {
            count: self.each.count(),
            p75: times.p75.filter(|_| is_known(0.75)),
            p90: times.p90.filter(|_| is_known(0.9)),
            p95: times.p95.filter(|_| is_known(0.95)),
            p99: times.p99.filter(|_| is_known(0.99)),
            p999: times.p999.filter(|_| is_known(0.999)),
            ..times
        }
    }
}

#[cfg(test)]
mod standing_tests {
    use super::*;
    use knee_load::experiment::latency::ProbeBack;
    use proptest::prelude::*;

    const EVERY: Nanos = Nanos::from_millis(10);

    fn probe(sent: Nanos, round_trip: Nanos) -> Probe {
        Probe {
            intended: sent,
            sent,
            back: Some(ProbeBack { round_trip, up: round_trip, down: Nanos::ZERO }),
            waited: Nanos::ZERO,
        }
    }

    fn round_trip(probe: &Probe) -> Nanos {
        probe.back.map_or(probe.waited, |back| back.round_trip)
    }

    /// A minute over a queue with the delay `delay_ns` at a time: the times that all probes would
    /// have measured, and the pings. `here`: share of a ping's delay before it leaves this host.
    fn minute(delay_ns: impl Fn(u64) -> u64, here: f64) -> (Histogram, ProbesMeasured) {
        let (mut all, mut measured) = (Histogram::default(), ProbesMeasured::default());
        let mut free_ns = 0;
        for tick in 0..6_000 {
            let now_ns = tick * EVERY.0;
            let delay = delay_ns(now_ns);
            all.record(Nanos(delay));
            if now_ns < free_ns {
                measured.held_back += 1;
                continue;
            }
            free_ns = now_ns + (delay as f64 * here) as u64;
            measured.probes.push(probe(Nanos(now_ns), Nanos(delay)));
        }
        measured.sent = measured.probes.len() as u64;
        (all, measured)
    }

    proptest! {
        /// A queue on this host that fills and empties. The quartiles of what each ping stands for
        /// are those over time, within what the queue changes in half the time between two pings.
        /// The median of the pings alone is less.
        #[test]
        fn figures_are_of_the_time_and_not_of_when_pings_could_go(
            period_ms in 2_000_u64..10_000,
            length_ms in 100_u64..500,
            rises in 0.3_f64..0.9,
        ) {
            let (period, length) = (period_ms * 1_000_000, length_ms * 1_000_000);
            // It empties slowly where it rises fast.
            let delay = |now: u64| {
                let at = (now % period) as f64 / period as f64;
                let filled = if at < rises { at / rises } else { (1.0 - at) / (1.0 - rises) };
                1_000_000 + (filled * length as f64) as u64
            };
            let (all, measured) = minute(delay, 1.0);
            let times = WeightedTimes::of(&measured, EVERY, round_trip);
            // A time of the schedule is at most half the longest ping away from the ping that
            // stands for it. The longest ping is as long as the queue. The rest is for the last
            // ping.
            let per_ns = length as f64 / (period as f64 * rises.min(1.0 - rises));
            let changes = per_ns * (length / 2 + 2 * EVERY.0) as f64 + length as f64 / 50.0;
            for q in [0.25, 0.5, 0.75] {
                let off = times.standing.quantile(q).0.abs_diff(all.quantile(q).0);
                prop_assert!((off as f64) < changes, "{q}: off by {off} of {length}, {changes}");
            }
            prop_assert!(times.each.quantile(0.5) < all.quantile(0.5));
            let standing: u64 = shares(&measured, EVERY).iter().sum();
            prop_assert_eq!(standing, 6_000);
        }

        /// Where nothing is held back, each ping stands for itself, late or not.
        #[test]
        fn without_any_held_back_each_ping_is_one(
            late in prop::collection::vec(0_u64..30, 2..200),
        ) {
            let at = |n: usize| Nanos(EVERY.0 * n as u64 * 2);
            let probes = late.iter().enumerate().map(|(n, late)| Probe {
                sent: at(n) + Nanos::from_millis(*late),
                ..probe(at(n), Nanos::from_millis(*late + 1))
            });
            let probes: Vec<Probe> = probes.collect();
            let sent = probes.len() as u64;
            let measured = ProbesMeasured { sent, probes, ..ProbesMeasured::default() };
            let times = WeightedTimes::of(&measured, EVERY, round_trip);
            prop_assert_eq!(times.report(), times_report(&times.each, None));
        }
    }

    #[test]
    fn few_pings_tell_no_percentile_however_much_they_stand_for() {
        let probes = (0..50).map(|n| probe(Nanos::from_secs(n), Nanos::from_millis(900)));
        let measured = ProbesMeasured {
            sent: 50,
            probes: probes.collect(),
            held_back: 50 * 99,
            ..ProbesMeasured::default()
        };
        let report = WeightedTimes::of(&measured, EVERY, round_trip).report();
        assert_eq!((report.count, report.p99), (50, None));
        assert!(report.p50.is_some() && report.p95.is_some());
    }
}
