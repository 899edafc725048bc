//! Plan of a sweep: axis, levels, bounds, budget.

use crate::experiment::sweep::report::BoundAsked;
use crate::trial::figure::{FigureKind, TimeFigure, TimesReport};
use knee_load::rng;
use knee_load::spec::{
    ArrivalLaw, Level, Load, OpenLoad, ParseError, Pause, PauseKind, Rate, TrialSpec,
    parse_duration,
};
use knee_load::time::Nanos;
use std::fmt;
use std::str::FromStr;

/// Plan of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepSpec {
    /// Spec that all trials share. Its load gives the pause of the users, or the arrivals and
    /// connections of an open loop. Level, label, seed and size of the load are set per trial.
    pub base: TrialSpec,
    /// The varied quantity and its levels.
    pub axis: SweepAxis,
    /// Limits on response time within which the maximum is searched.
    pub bounds: Vec<Bound>,
    /// Time limit of an automatic plan over users.
    pub budget: Nanos,
    /// Most users of an automatic plan.
    pub vusers_max: u32,
}

impl SweepSpec {
    /// Default of `budget`.
    pub const BUDGET: Nanos = Nanos::from_secs(60);
    /// Default of `vusers_max`.
    pub const VUSERS_MAX: u32 = 10_000;

    /// Mean think time of the users in seconds; `None` in an open loop, and with a cycle, where the
    /// pause is the rest of it.
    pub(super) fn pause_s(&self) -> Option<f64> {
        match &self.base.load {
            Load::Closed { pause, .. } if pause.kind == PauseKind::Think => {
                Some(pause.law.mean_ns() / 1e9)
            }
            _ => None,
        }
    }

    /// Slice number `number` (from 0) with this number of users.
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
            Load::Open(open) => OpenLoad { rate, ..open.clone() },
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
        TrialSpec { duration, ..self.trial(label, level, Load::Open(open), trial) }
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

/// Quantity that a sweep varies, with its levels.
#[derive(Clone, Debug, PartialEq)]
pub enum SweepAxis {
    /// Virtual users of a closed loop.
    Vusers(VuserPlan),
    /// Operations offered per second in an open loop.
    Rate(RatePlan),
}

/// Numbers of users to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VuserPlan {
    /// Chosen from the results so far.
    Auto,
    /// These, in this order; each at least 1.
    List(Vec<u32>),
}

/// Rates to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RatePlan {
    /// Chosen from the results so far.
    Auto,
    /// These, in this order.
    List(Vec<Rate>),
}

/// A limit on a figure of response time, written `p90=50ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The figure, by its key in [`TimesReport::FIGURES`].
    metric: &'static str,
    /// Its upper limit.
    pub limit: Nanos,
}

impl Bound {
    /// Key of the figure: `p90`.
    pub fn metric(&self) -> &'static str {
        self.metric
    }

    fn row(&self) -> Option<&'static TimeFigure> {
        TimesReport::FIGURES.iter().find(|row| row.key == self.metric)
    }

    /// Quantile of the figure, 0 to 1; that of the median for the mean.
    pub(super) fn quantile(&self) -> f64 {
        match self.row().map(|row| row.kind) {
            Some(FigureKind::Quantile(quantile)) => quantile,
            _ => 0.5,
        }
    }

    /// The figure and its 95 % confidence interval, in nanoseconds, where the observations suffice.
    pub(super) fn figure(&self, times: &TimesReport) -> (Option<u64>, Option<[u64; 2]>) {
        self.row().map_or((None, None), |row| (row.value(times), row.ci95(times)))
    }

    /// The bound as reported.
    pub(super) fn asked(&self) -> BoundAsked {
        BoundAsked { metric: self.metric.to_owned(), limit_ns: self.limit.0 }
    }

    /// Whether the figure is within the limit.
    pub fn holds(&self, times: &TimesReport) -> bool {
        let (figure, _) = self.figure(times);
        figure.is_some_and(|ns| ns <= self.limit.0)
    }

    /// Whether the whole confidence interval is within the limit. `false` without an interval.
    pub(super) fn holds_for_certain(&self, times: &TimesReport) -> bool {
        let (_, ci95) = self.figure(times);
        ci95.is_some_and(|[_, upper]| upper <= self.limit.0)
    }
}

/// `p90<=50 ms`
impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = self.limit.to_string().replace([' ', ','], "");
        write!(f, "{}<={limit}", self.metric)
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
        let (name, limit) =
            text.split_once('=').ok_or_else(|| wrong(&format!("`{text}` has no `=`")))?;
        let mut bounded = TimesReport::FIGURES.iter();
        let is_it = |row: &&TimeFigure| {
            row.key == name.trim() && !matches!(row.kind, FigureKind::Min | FigureKind::Max)
        };
        let row = bounded
            .find(is_it)
            .ok_or_else(|| wrong(&format!("`{}` is not a figure", name.trim())))?;
        // A number without a unit would be seconds, which is more likely a mistake.
        if limit.trim().ends_with(|c: char| c.is_ascii_digit()) {
            return Err(wrong(&format!("`{}` has no unit", limit.trim())));
        }
        let limit = parse_duration(limit.trim())?;
        if limit == Nanos::ZERO {
            return Err(wrong("a limit of 0 cannot be met"));
        }
        Ok(Bound { metric: row.key, limit })
    }
}
