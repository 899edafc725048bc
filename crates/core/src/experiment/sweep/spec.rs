//! What a sweep is asked to do.

use crate::experiment::sweep::report::BoundAsked;
use crate::rng;
use crate::spec::{
    ArrivalLaw, Level, Load, OpenLoad, ParseError, Pause, PauseKind, Rate, TrialSpec,
    parse_duration,
};
use crate::time::Nanos;
use crate::trial::report::TimesReport;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What a sweep is asked to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepSpec {
    /// What all trials have in common. Its load gives the pause of the users, or the arrivals and
    /// connections of an open loop; level, label, seed and the load's size are set per trial.
    pub base: TrialSpec,
    /// What is varied.
    pub axis: Axis,
    /// Limits on response time under which the most throughput is looked for.
    pub bounds: Vec<Bound>,
    /// Time that an automatic plan over users may take in all.
    pub budget: Nanos,
    /// The most users that an automatic plan may use.
    pub vusers_max: u32,
}

impl SweepSpec {
    /// The time of an automatic plan over users, unless asked otherwise.
    pub const BUDGET: Nanos = Nanos::from_secs(60);
    /// The most users of an automatic plan, unless asked otherwise.
    pub const VUSERS_MAX: u32 = 10_000;

    /// The users' mean think time in seconds; `None` in an open loop, and where a cycle is kept, of
    /// which the pause is what is left.
    pub(super) fn pause_s(&self) -> Option<f64> {
        match &self.base.load {
            Load::Closed { pause, .. } if pause.kind == PauseKind::Think => {
                Some(pause.law.mean_ns() / 1e9)
            }
            _ => None,
        }
    }

    /// Slice number `number` (from 0) of this many users.
    pub(super) fn slice(
        &self,
        vusers: u32,
        number: usize,
        warmup: Nanos,
        duration: Nanos,
    ) -> TrialSpec {
        let pause = match &self.base.load {
            Load::Closed { pause, .. } => *pause,
            Load::Open(_) | Load::Overload(_) => Pause::NONE,
        };
        let load = Load::Closed { vusers, pause };
        let label = format!("vusers={vusers}");
        TrialSpec {
            warmup,
            duration,
            interval: self.base.interval.min(duration),
            ..self.trial(label, Level::Vusers(vusers), load, number)
        }
    }

    /// Trial number `trial` (from 0) that offers this rate.
    pub(super) fn rate_trial(&self, rate: Rate, trial: usize, duration: Nanos) -> TrialSpec {
        let open = match &self.base.load {
            Load::Open(open) => OpenLoad {
                rate,
                ..open.clone()
            },
            Load::Closed { .. } | Load::Overload(_) => OpenLoad {
                rate,
                arrival: ArrivalLaw::Constant,
                connections_max: self.vusers_max,
                in_flight_max: None,
            },
        };
        let per_s = rate.per_s();
        let label = format!("rate={per_s}/s");
        let level = Level::RatePerS(per_s);
        TrialSpec {
            duration,
            ..self.trial(label, level, Load::Open(open), trial)
        }
    }

    fn trial(&self, label: String, level: Level, load: Load, trial: usize) -> TrialSpec {
        TrialSpec {
            label,
            level,
            load,
            seed: rng::of_trial(self.base.seed, trial),
            ..self.base.clone()
        }
    }
}

/// What a sweep varies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// Virtual users of a closed loop.
    Vusers(VuserPlan),
    /// Operations offered per second in an open loop.
    Rate(RatePlan),
}

/// Which numbers of users are tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VuserPlan {
    /// As the results demand.
    Auto,
    /// These, in this order; each at least 1.
    List(Vec<u32>),
}

/// Which rates are tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RatePlan {
    /// As the results demand.
    Auto,
    /// These, in this order.
    List(Vec<Rate>),
}

/// A limit on a figure of response time, written `p90=50ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    /// Which figure.
    pub metric: BoundMetric,
    /// What it may be at the most.
    pub limit: Nanos,
}

impl Bound {
    /// The figure, in nanoseconds; `None` where there are too few observations for it.
    pub fn figure_ns(&self, times: &TimesReport) -> Option<u64> {
        match self.metric {
            BoundMetric::Mean => times.mean,
            BoundMetric::P50 => times.p50,
            BoundMetric::P75 => times.p75,
            BoundMetric::P90 => times.p90,
            BoundMetric::P95 => times.p95,
            BoundMetric::P99 => times.p99,
            BoundMetric::P999 => times.p999,
        }
    }

    /// It as reported.
    pub(super) fn asked(&self) -> BoundAsked {
        BoundAsked {
            metric: self.metric.name().to_owned(),
            limit_ns: self.limit.0,
        }
    }

    /// Whether the figure is within the limit.
    pub fn holds(&self, times: &TimesReport) -> bool {
        self.figure_ns(times).is_some_and(|ns| ns <= self.limit.0)
    }

    /// Its 95 % confidence interval, in nanoseconds, where there is one.
    pub(super) fn ci95_ns(&self, times: &TimesReport) -> Option<[u64; 2]> {
        match self.metric {
            BoundMetric::Mean => times.mean_ci95,
            BoundMetric::P50 => times.p50_ci95,
            BoundMetric::P75 => times.p75_ci95,
            BoundMetric::P90 => times.p90_ci95,
            BoundMetric::P95 => times.p95_ci95,
            BoundMetric::P99 => times.p99_ci95,
            BoundMetric::P999 => times.p999_ci95,
        }
    }

    /// Whether its confidence interval is within the limit as a whole; never where it has none.
    pub fn holds_for_certain(&self, times: &TimesReport) -> bool {
        let ci95 = self.ci95_ns(times);
        ci95.is_some_and(|[_, upper]| upper <= self.limit.0)
    }
}

/// `p90<=50 ms`
impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = self.limit.to_string().replace([' ', ','], "");
        write!(f, "{}<={limit}", self.metric.name())
    }
}

/// `p90=50ms`
impl FromStr for Bound {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Bound, ParseError> {
        let wrong = |what: &str| {
            ParseError(format!(
                "{what}; write FIGURE=TIME, such as p90=50ms (mean, p50, p75, p90, p95, p99, p999)"
            ))
        };
        let (name, limit) = text
            .split_once('=')
            .ok_or_else(|| wrong(&format!("`{text}` has no `=`")))?;
        let metric = BoundMetric::ALL
            .into_iter()
            .find(|m| m.name() == name.trim())
            .ok_or_else(|| wrong(&format!("`{}` is not a figure", name.trim())))?;
        // A bare number would be seconds; a mistake is more likely.
        if limit.trim().ends_with(|c: char| c.is_ascii_digit()) {
            return Err(wrong(&format!("`{}` has no unit", limit.trim())));
        }
        let limit = parse_duration(limit.trim())?;
        if limit == Nanos::ZERO {
            return Err(wrong("a limit of 0 cannot be met"));
        }
        Ok(Bound { metric, limit })
    }
}

/// A figure of response time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundMetric {
    /// Mean.
    Mean,
    /// Median.
    P50,
    /// 75th percentile.
    P75,
    /// 90th percentile.
    P90,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// 99.9th percentile.
    P999,
}

impl BoundMetric {
    const ALL: [BoundMetric; 7] = [
        BoundMetric::Mean,
        BoundMetric::P50,
        BoundMetric::P75,
        BoundMetric::P90,
        BoundMetric::P95,
        BoundMetric::P99,
        BoundMetric::P999,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            BoundMetric::Mean => "mean",
            BoundMetric::P50 => "p50",
            BoundMetric::P75 => "p75",
            BoundMetric::P90 => "p90",
            BoundMetric::P95 => "p95",
            BoundMetric::P99 => "p99",
            BoundMetric::P999 => "p999",
        }
    }
}
