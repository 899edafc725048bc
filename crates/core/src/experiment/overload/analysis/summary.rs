//! All trials of an overload together.

use super::{OverloadPoint, OverloadSetting, ServerStop, recovery};
use crate::experiment::overload::report::{
    OverloadConclusion, Recovery, SClientRow, SimpleRow, parted,
};
use crate::trial::report::TrialReport;
use knee_load::measure::SynSource;
use knee_load::spec::Level;

/// A level that serves this share of the most is saturated.
const SATURATED_SHARE: f64 = 0.97;
/// Throughput falls where it is below this share of the most, with certainty; within it, it is
/// flat, …
const FALLEN_SHARE: f64 = 0.95;
/// … which is reported where at least this many times the capacity was offered.
pub const PRESSED_FACTOR: f64 = 2.0;
/// The server is overloaded from this many times its capacity on.
const OVERLOADED_FACTOR: f64 = 1.1;
/// Where no interval of confidence is known, throughput falls that is below this share of the most
/// by more than chance.
const HALVED_SHARE: f64 = 0.5;
/// Throughput that is known less well than to this share is not known to be flat.
const UNSURE_SHARE: f64 = 0.1;

/// What becomes of throughput beyond the capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BeyondCapacity<'a> {
    /// As much is served at every level; this is where the most is offered.
    Flat(&'a OverloadPoint),
    /// Less is served; this is where the least is.
    Falls(&'a OverloadPoint),
    /// Not known.
    Unknown,
}

/// All trials of an overload together.
#[derive(Clone, Debug, PartialEq)]
pub struct OverloadSummary {
    /// The trials, in the order they were run.
    pub points: Vec<OverloadPoint>,
    /// Whether attempts are requests in datagrams, and no connects.
    pub is_of_datagrams: bool,
    /// Maximum served per second, pooled over the levels that reach it.
    pub capacity_per_s: f64,
    /// First SYNs less what was served, per second, against descriptors, past saturation.
    pub beyond: Option<LineFit>,
    /// First SYNs per second against descriptors, past saturation.
    pub arriving: Option<LineFit>,
    /// By how much first SYNs differ from served + D/T at the most, past saturation, in percent.
    pub deviation_percent: Option<f64>,
    /// The highest rate of starts at which the generator kept up.
    pub generator_limit_per_s: Option<f64>,
    /// When the server stopped to serve.
    pub stops: Vec<ServerStop>,
    /// Whether service came back after the last level.
    pub recovery: Recovery,
}

impl OverloadSummary {
    /// Summarises these trials. The base load offered again is no level: it only shows whether
    /// service came back.
    pub fn of(trials: &[TrialReport], setting: &OverloadSetting) -> OverloadSummary {
        let (levels, again) = parted(trials);
        let points = OverloadPoint::all(levels, setting);
        let again = again.and_then(|trial| Some((trial, OverloadPoint::of(trial, setting)?)));
        let fitted: Vec<(f64, &OverloadPoint)> = points
            .iter()
            .filter(|p| p.past_saturation && p.counts())
            .filter_map(|p| match p.level {
                Level::Descriptors(d) => Some((f64::from(d), p)),
                _ => None,
            })
            .collect();
        let line = |y: fn(&OverloadPoint) -> f64| {
            let points: Vec<(f64, f64)> = fitted.iter().map(|(d, p)| (*d, y(p))).collect();
            LineFit::through(&points)
        };
        let capacity_per_s = capacity_per_s(&points);
        let deviations = fitted.iter().map(|(_, p)| deviation_percent(p));
        OverloadSummary {
            is_of_datagrams: setting.is_of_datagrams(),
            capacity_per_s,
            stops: ServerStop::all(&points, again.as_ref().map(|(_, p)| p), capacity_per_s),
            recovery: recovery(&points, again),
            beyond: line(|p| p.row.first_syn_per_s - p.taken_per_s),
            arriving: line(|p| p.row.first_syn_per_s),
            deviation_percent: deviations.reduce(f64::max),
            generator_limit_per_s: generator_limit_per_s(&points),
            points,
        }
    }

    /// Simple clients.
    pub fn simple(&self) -> impl Iterator<Item = &OverloadPoint> {
        self.points.iter().filter(|p| !p.is_pressing())
    }

    /// What becomes of connects that are replaced before T is over.
    pub fn taken(&self) -> &'static str {
        if self.points.iter().any(|p| p.of_sessions) {
            "established"
        } else if self.is_of_datagrams {
            "answered"
        } else {
            "served"
        }
    }

    /// S-Clients, or the schedule in their place.
    pub fn pressing(&self) -> impl Iterator<Item = &OverloadPoint> {
        self.points.iter().filter(|p| p.is_pressing())
    }

    /// The highest rate that was really offered: first SYNs of trials that count. `None` where
    /// there are none.
    pub fn most_offered_per_s(&self) -> Option<f64> {
        self.pressing().filter(|p| p.is_valid).map(|p| p.row.first_syn_per_s).reduce(f64::max)
    }

    /// Whether any level that counts offered clearly more than the server serves.
    pub fn is_overloaded(&self) -> bool {
        let offered_per_s = self.most_offered_per_s().unwrap_or(0.0);
        let is_beyond = offered_per_s > OVERLOADED_FACTOR * self.capacity_per_s;
        is_beyond || self.pressing().any(|p| p.is_valid && p.is_beyond())
    }

    /// What becomes of throughput beyond the capacity. It falls only where there is no
    /// doubt, and is flat only where that is known; a server that stopped is neither.
    pub fn beyond_capacity(&self) -> BeyondCapacity<'_> {
        let beyond = || self.pressing().filter(|p| p.counts() && p.is_beyond());
        let served = |a: &&OverloadPoint, b: &&OverloadPoint| {
            a.row.served_per_s.total_cmp(&b.row.served_per_s)
        };
        let offered = |a: &&OverloadPoint, b: &&OverloadPoint| {
            a.row.first_syn_per_s.total_cmp(&b.row.first_syn_per_s)
        };
        let Some((least, last)) = beyond().min_by(served).zip(beyond().max_by(offered)) else {
            return BeyondCapacity::Unknown;
        };
        if !self.stops.is_empty() || self.capacity_per_s <= 0.0 {
            return BeyondCapacity::Unknown;
        }
        let is_same = least.row.served_per_s >= FALLEN_SHARE * self.capacity_per_s;
        let [low, high] = least.served_between();
        let is_sure = (high - low) / 2.0 <= UNSURE_SHARE * self.capacity_per_s;
        let is_pressed = last.row.first_syn_per_s >= PRESSED_FACTOR * self.capacity_per_s;
        if is_same && is_pressed && is_sure {
            BeyondCapacity::Flat(last)
        } else if !is_same && self.is_certainly_less(least) {
            BeyondCapacity::Falls(least)
        } else {
            BeyondCapacity::Unknown
        }
    }

    fn is_certainly_less(&self, least: &OverloadPoint) -> bool {
        let Some([_, high]) = least.served_bounds_per_s() else {
            let served = least.served() as f64;
            let at_most = served + 4.0 * (served + 1.0).sqrt();
            return at_most < HALVED_SHARE * self.capacity_per_s * least.seconds;
        };
        let counted = self.points.iter().filter(|p| p.counts());
        let lows = counted.filter_map(OverloadPoint::served_bounds_per_s).map(|[low, _]| low);
        high < lows.fold(0.0, f64::max)
    }

    /// What counted the SYNs: the least trustworthy of all trials.
    pub fn source(&self) -> SynSource {
        let rank = |s: &SynSource| match s {
            SynSource::Capture => 0,
            SynSource::Counters => 1,
            SynSource::Attempts => 2,
        };
        self.points.iter().map(|p| p.source).max_by_key(rank).unwrap_or_default()
    }

    /// The conclusion but for its sentence.
    pub fn conclusion(&self, setting: &OverloadSetting) -> OverloadConclusion {
        let rates = self.points.iter().map(|p| p.row.first_syn_per_s);
        let simple = self.points.iter();
        let simple =
            simple.filter_map(|p| Some(SimpleRow { clients: p.clients()?, row: p.row.clone() }));
        let mut simple: Vec<SimpleRow> = simple.collect();
        simple.sort_by_key(|row| row.clients);
        let rows = self.points.iter().filter_map(|p| sclient_row(p, setting));
        let mut sclients: Vec<SClientRow> = rows.collect();
        sclients.sort_by_key(|row| row.descriptors);
        OverloadConclusion {
            capacity_per_s: self.capacity_per_s,
            simple,
            sclients,
            slope_per_descriptor: self.beyond.map(|line| line.slope),
            r_squared: self.arriving.map(|line| line.r_squared),
            syn_source: self.source(),
            max_syn_per_s: rates.fold(0.0, f64::max),
            generator_limit_per_s: self.generator_limit_per_s,
            deviation_percent: self.deviation_percent,
            connect_timeout_ns: setting.patience.0,
            close: setting.close,
            recovery: (!self.points.is_empty()).then(|| Box::new(self.recovery.clone())),
            answer: String::new(),
        }
    }
}

/// The most that any of these trials served per second; of valid ones, where there are any.
pub fn most_served_per_s(trials: &[TrialReport]) -> f64 {
    use crate::trial::report::Verdict::Valid;
    let most = |valid: bool| {
        let trials = trials.iter().filter(|t| (t.verdict == Valid) == valid);
        trials.map(|t| t.responses_per_s()).reduce(f64::max)
    };
    most(true).or(most(false)).unwrap_or(0.0)
}

/// The mean, weighted by the lengths of the windows, of all levels that serve nearly as much as the
/// one that serves most. A level that serves clearly less is not saturated yet, or falls. Levels
/// that the generator distorted, or in which the server stopped, count where there is no other.
fn capacity_per_s(points: &[OverloadPoint]) -> f64 {
    let grades: [fn(&OverloadPoint) -> bool; 3] = [OverloadPoint::counts, |p| p.is_valid, |_| true];
    let is_any = |grade: &&fn(&OverloadPoint) -> bool| {
        points.iter().any(|p| grade(p) && p.row.served_per_s > 0.0)
    };
    let Some(grade) = grades.iter().find(is_any) else {
        return 0.0;
    };
    let counted = || points.iter().filter(|p| grade(p));
    let most = counted().map(|p| p.row.served_per_s).fold(0.0, f64::max);
    let saturated = counted().filter(|p| p.row.served_per_s >= SATURATED_SHARE * most);
    let (served, seconds) =
        saturated.fold((0.0, 0.0), |(n, s), p| (n + p.row.served_per_s * p.seconds, s + p.seconds));
    if seconds > 0.0 { served / seconds } else { 0.0 }
}

fn generator_limit_per_s(points: &[OverloadPoint]) -> Option<f64> {
    let kept = points.iter().filter(|p| p.is_pressing() && p.is_valid && !p.is_limited());
    kept.map(|p| p.attempts_per_s).reduce(f64::max)
}

fn deviation_percent(p: &OverloadPoint) -> f64 {
    100.0 * (p.row.first_syn_per_s - p.offered_per_s).abs() / p.offered_per_s.max(f64::MIN_POSITIVE)
}

fn sclient_row(p: &OverloadPoint, setting: &OverloadSetting) -> Option<SClientRow> {
    let descriptors = match p.level {
        Level::Descriptors(d) => d,
        Level::RatePerS(_) => setting.scheduled_descriptors,
        _ => return None,
    };
    Some(SClientRow {
        descriptors,
        offered_per_s: p.offered_per_s,
        row: p.row.clone(),
        past_saturation: p.past_saturation,
    })
}

/// A line by least squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LineFit {
    /// By how much it rises for each unit of x.
    pub slope: f64,
    /// Its value at x = 0.
    pub intercept: f64,
    /// Coefficient of determination: the share of the variance of y that it accounts for.
    pub r_squared: f64,
}

impl LineFit {
    /// The line of least squares through these points; `None` of fewer than three different x, as
    /// it would fit any two.
    pub fn through(points: &[(f64, f64)]) -> Option<LineFit> {
        let mut places: Vec<f64> = points.iter().map(|p| p.0).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        if places.len() < 3 {
            return None;
        }
        let n = points.len() as f64;
        let mean = |axis: fn(&(f64, f64)) -> f64| points.iter().map(axis).sum::<f64>() / n;
        let (x, y) = (mean(|p| p.0), mean(|p| p.1));
        let sum = |product: &dyn Fn(f64, f64) -> f64| -> f64 {
            points.iter().map(|p| product(p.0 - x, p.1 - y)).sum()
        };
        let (xx, xy, yy) = (sum(&|a, _| a * a), sum(&|a, b| a * b), sum(&|_, b| b * b));
        let slope = xy / xx;
        Some(LineFit {
            slope,
            intercept: y - slope * x,
            // A constant has no variance to account for.
            r_squared: if yy > 0.0 { (xy * xy / (xx * yy)).min(1.0) } else { 0.0 },
        })
    }
}

#[cfg(test)]
mod fit_tests {
    use super::*;

    #[test]
    fn a_line_is_found_again() {
        let points: Vec<(f64, f64)> =
            [16.0, 128.0, 512.0, 975.0].map(|d| (d, 130.0 + 2.0 * d)).into();
        let line = LineFit::through(&points).expect("four points");
        assert!((line.slope - 2.0).abs() < 1e-12 && (line.intercept - 130.0).abs() < 1e-9);
        assert!((line.r_squared - 1.0).abs() < 1e-12);
        // By hand: slope 1/2, residuals −1/6, 1/3, −1/6, so 1 − (1/6)/(2/3) = 3/4.
        let line = LineFit::through(&[(0.0, 0.0), (1.0, 1.0), (2.0, 1.0)]).expect("three");
        assert!((line.slope - 0.5).abs() < 1e-12 && (line.r_squared - 0.75).abs() < 1e-12);
    }

    #[test]
    fn two_points_are_no_evidence_of_a_line() {
        assert_eq!(LineFit::through(&[(1.0, 2.0), (2.0, 4.0), (2.0, 4.1)]), None);
        assert_eq!(LineFit::through(&[]), None);
        let flat = LineFit::through(&[(1.0, 5.0), (2.0, 5.0), (3.0, 5.0)]).expect("three");
        assert_eq!((flat.slope, flat.r_squared), (0.0, 0.0));
    }
}
