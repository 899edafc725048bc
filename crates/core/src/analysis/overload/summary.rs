//! All trials of an overload together.

use super::fit::Line;
use super::{Point, Scheme, Setting};
use crate::measure::SynSource;
use crate::report::{OverloadConclusion, SClientRow, SimpleRow, TrialReport};

/// A level that serves this share of the most is saturated.
const SATURATED_SHARE: f64 = 0.97;

/// All trials of an overload together.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The trials, in the order they were run.
    pub points: Vec<Point>,
    /// What is served at the most, per second: pooled over the levels that do so.
    pub capacity_per_s: f64,
    /// First SYNs less what was served, per second, against descriptors, past saturation.
    pub beyond: Option<Line>,
    /// First SYNs per second against descriptors, past saturation.
    pub arriving: Option<Line>,
    /// By how much first SYNs differ from served + D/T at the most, past saturation, in percent.
    pub deviation_percent: Option<f64>,
    /// The highest rate of starts at which the generator kept up.
    pub generator_limit_per_s: Option<f64>,
}

impl Summary {
    /// What these trials show together.
    pub fn of(trials: &[TrialReport], setting: &Setting) -> Summary {
        let points: Vec<Point> = trials
            .iter()
            .filter_map(|trial| Point::of(trial, setting))
            .collect();
        let fitted: Vec<(f64, &Point)> = points
            .iter()
            .filter(|p| p.past_saturation && p.is_valid)
            .filter_map(|p| match p.scheme {
                Scheme::SClients(d) => Some((f64::from(d), p)),
                Scheme::Simple(_) | Scheme::Scheduled(_) => None,
            })
            .collect();
        let line = |y: fn(&Point) -> f64| {
            let points: Vec<(f64, f64)> = fitted.iter().map(|(d, p)| (*d, y(p))).collect();
            Line::through(&points)
        };
        let deviations = fitted.iter().map(|(_, p)| deviation_percent(p));
        Summary {
            capacity_per_s: capacity_per_s(&points),
            beyond: line(|p| p.first_syn_per_s - p.served_per_s),
            arriving: line(|p| p.first_syn_per_s),
            deviation_percent: deviations.reduce(f64::max),
            generator_limit_per_s: generator_limit_per_s(&points),
            points,
        }
    }

    /// Simple clients.
    pub fn simple(&self) -> impl Iterator<Item = &Point> {
        self.points.iter().filter(|p| !p.is_pressing())
    }

    /// S-Clients, or the schedule in their place.
    pub fn pressing(&self) -> impl Iterator<Item = &Point> {
        self.points.iter().filter(|p| p.is_pressing())
    }

    /// The highest rate that was really offered: first SYNs of trials that count. `None` where
    /// there are none.
    pub fn most_offered_per_s(&self) -> Option<f64> {
        let counted = self.pressing().filter(|p| p.is_valid);
        counted.map(|p| p.first_syn_per_s).reduce(f64::max)
    }

    /// What counted the SYNs: the least trustworthy of all trials.
    pub fn source(&self) -> SynSource {
        let rank = |s: &SynSource| match s {
            SynSource::Capture => 0,
            SynSource::Counters => 1,
            SynSource::Attempts => 2,
        };
        let sources = self.points.iter().map(|p| p.source);
        sources.max_by_key(rank).unwrap_or_default()
    }

    /// The conclusion but for its sentence.
    pub fn conclusion(&self, setting: &Setting) -> OverloadConclusion {
        let rates = self.points.iter().map(|p| p.first_syn_per_s);
        let mut simple: Vec<SimpleRow> = self.points.iter().filter_map(simple_row).collect();
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
            answer: String::new(),
        }
    }
}

/// The most that any of these trials served per second; of valid ones, where there are any.
pub fn most_served_per_s(trials: &[TrialReport]) -> f64 {
    use crate::report::Verdict::Valid;
    let most = |valid: bool| {
        let such = trials.iter().filter(|t| (t.verdict == Valid) == valid);
        such.map(|t| t.responses_per_s()).reduce(f64::max)
    };
    most(true).or(most(false)).unwrap_or(0.0)
}

/// The mean, weighted by the lengths of the windows, of all levels that serve nearly as much as the
/// one that serves most. A level that serves clearly less is not saturated yet, or falls.
fn capacity_per_s(points: &[Point]) -> f64 {
    let any_valid = points.iter().any(|p| p.is_valid);
    let counted = || points.iter().filter(|p| p.is_valid || !any_valid);
    let most = counted().map(|p| p.served_per_s).fold(0.0, f64::max);
    let saturated = counted().filter(|p| p.served_per_s >= SATURATED_SHARE * most);
    let (served, seconds) = saturated.fold((0.0, 0.0), |(n, s), p| {
        (n + p.served_per_s * p.seconds, s + p.seconds)
    });
    if seconds > 0.0 { served / seconds } else { 0.0 }
}

fn generator_limit_per_s(points: &[Point]) -> Option<f64> {
    let kept = points
        .iter()
        .filter(|p| p.is_pressing() && p.is_valid && !p.is_limited());
    kept.map(|p| p.attempts_per_s).reduce(f64::max)
}

fn deviation_percent(p: &Point) -> f64 {
    100.0 * (p.first_syn_per_s - p.offered_per_s).abs() / p.offered_per_s.max(f64::MIN_POSITIVE)
}

fn simple_row(p: &Point) -> Option<SimpleRow> {
    let Scheme::Simple(clients) = p.scheme else {
        return None;
    };
    Some(SimpleRow {
        clients,
        syn_per_s: p.syn_per_s(),
        first_syn_per_s: p.first_syn_per_s,
        served_per_s: p.served_per_s,
        served_ci95_per_s: p.served_ci95_per_s,
        outcomes: p.outcomes.clone(),
        accept_queue_max: p.server.and_then(|s| s.accept_queue_max),
        accept_queue_limit: p.server.and_then(|s| s.accept_queue_limit),
        server_busy_percent: p.server.map(|s| s.busy_percent),
    })
}

fn sclient_row(p: &Point, setting: &Setting) -> Option<SClientRow> {
    let descriptors = match p.scheme {
        Scheme::SClients(d) => d,
        Scheme::Scheduled(_) => setting.scheduled_descriptors,
        Scheme::Simple(_) => return None,
    };
    Some(SClientRow {
        descriptors,
        offered_per_s: p.offered_per_s,
        syn_per_s: p.syn_per_s(),
        first_syn_per_s: p.first_syn_per_s,
        served_per_s: p.served_per_s,
        served_ci95_per_s: p.served_ci95_per_s,
        outcomes: p.outcomes.clone(),
        past_saturation: p.past_saturation,
        accept_queue_max: p.server.and_then(|s| s.accept_queue_max),
        accept_queue_limit: p.server.and_then(|s| s.accept_queue_limit),
        server_busy_percent: p.server.map(|s| s.busy_percent),
    })
}
