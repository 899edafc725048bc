//! The time series of a scenario on one grid, coarse enough for a report to stay small.

use super::standing::shares;
use crate::experiment::latency::measure::{LatencyTrial, Probe, ProbesMeasured};
use crate::measure::Direction;
use crate::measure::{Histogram, Interval};
use crate::stats::stationarity::{RESPONSE_SHARE, THROUGHPUT_SHARE, is_stationary};
use crate::time::Nanos;
use crate::trial::flows::LatencySeries;

/// A scenario has at most so many intervals in its report.
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

    /// What was counted per measured interval, summed.
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
        match index + 1 == self.count {
            true => (start, self.end.0.max(start)),
            false => (start, start.saturating_add(self.step.0)),
        }
    }

    /// The intervals: pings as operations, counted where they ended, and the bytes of both
    /// directions.
    pub(super) fn intervals(&self, trial: &LatencyTrial) -> Vec<Interval> {
        let ended = self.ended(&trial.tcp, trial.spec.probes.every, |p| {
            let late = p.sent - p.intended;
            late + p.back.map_or(p.waited, |back| back.round_trip)
        });
        let mut intervals: Vec<Interval> = (0..self.count)
            .map(|index| {
                let (start_ns, end_ns) = self.bounds(index);
                let of = &ended[index];
                Interval {
                    start_ns,
                    end_ns,
                    completed: of.answered,
                    errors: of.lost,
                    p50_ns: of.times.quantile(0.5).0,
                    p90_ns: of.times.quantile(0.9).0,
                    p99_ns: of.times.quantile(0.99).0,
                    max_ns: of.times.max().0,
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
        for (kind, direction) in [
            ("inside_up", Direction::Up),
            ("inside_down", Direction::Down),
        ] {
            if trial.flows.iter().any(|f| f.direction == direction) {
                series.push(self.inside(kind, trial, direction));
            }
        }
        series
    }

    fn beside(&self, kind: &str, probes: &ProbesMeasured, every: Nanos) -> LatencySeries {
        let round_trip = |p: &Probe| p.back.map_or(p.waited, |back| back.round_trip);
        let ended = self.ended(probes, every, round_trip);
        let known = |of: &Ended, value: Nanos| (!of.times.is_empty()).then_some(value.0);
        LatencySeries {
            kind: kind.to_owned(),
            p50_ns: ended
                .iter()
                .map(|of| known(of, of.times.quantile(0.5)))
                .collect(),
            max_ns: ended.iter().map(|of| known(of, of.times.max())).collect(),
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

    /// The probes by the interval in which they came back, or were given up.
    fn ended(
        &self,
        probes: &ProbesMeasured,
        every: Nanos,
        time: impl Fn(&Probe) -> Nanos,
    ) -> Vec<Ended> {
        let mut ended = vec![Ended::default(); self.count];
        for (probe, stands_for) in probes.probes.iter().zip(shares(probes, every)) {
            let waited = probe.back.map_or(probe.waited, |back| back.round_trip);
            let of = &mut ended[self.at(probe.sent + waited)];
            match probe.back {
                Some(_) => of.answered += 1,
                None => of.lost += 1,
            }
            of.times.record_n(time(probe), stands_for);
        }
        ended
    }
}

#[derive(Clone, Debug, Default)]
struct Ended {
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
