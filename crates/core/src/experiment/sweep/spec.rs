//! Plan of a sweep: axis, levels, bounds, budget.

use crate::experiment::sweep::report::BoundAsked;
use crate::trial::figure::{FigureKind, TimeFigure, TimesReport};
use crate::trial::messages::{GOOD_STREAMS_PERCENT, MessagesReport, TimesOf};
use crate::trial::report::TrialReport;
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
        let load = Load::Closed { vusers, pause, stages: Vec::new() };
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
    /// Virtual users of a closed loop, at least 1.
    Vusers(LevelPlan<u32>),
    /// Operations offered per second in an open loop.
    Rate(LevelPlan<Rate>),
}

/// Levels to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LevelPlan<T> {
    /// Chosen from the results so far.
    Auto,
    /// These, in this order.
    List(Vec<T>),
}

/// A limit that a level has to keep: `p90=50ms`, `gap_p99=50ms`, `good_streams=99%`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// The least share of the streams that are good, in percent.
    GoodStreams(f64),
    /// The upper limit of a figure of times.
    Time {
        /// The times.
        of: TimesOf,
        /// The bounded figure, by its key in [`TimesReport::FIGURES`].
        metric: &'static str,
        /// Its upper limit.
        limit: Nanos,
    },
}

impl Bound {
    /// The share of good streams that is asked for by default, in percent.
    pub const GOOD_STREAMS: Bound = Bound::GoodStreams(GOOD_STREAMS_PERCENT);

    fn row(&self) -> Option<&'static TimeFigure> {
        let Bound::Time { metric, .. } = self else {
            return None;
        };
        TimesReport::FIGURES.iter().find(|row| row.key == *metric)
    }

    /// The times that it is about; `None` where there are none.
    fn times<'a>(&self, figures: BoundedFigures<'a>) -> Option<&'a TimesReport> {
        let Bound::Time { of, .. } = self else {
            return None;
        };
        of.of(figures.response, figures.messages).filter(|times| times.count > 0)
    }

    /// The figure and its 95 % confidence interval, in nanoseconds, where the observations suffice.
    pub(super) fn figure(&self, figures: BoundedFigures<'_>) -> (Option<u64>, Option<[u64; 2]>) {
        let row = self.row().zip(self.times(figures));
        row.map_or((None, None), |(row, times)| (row.value(times), row.ci95(times)))
    }

    /// The bound as reported.
    pub(super) fn reported(&self) -> BoundAsked {
        match *self {
            Bound::Time { limit, .. } => {
                BoundAsked { metric: self.name(), limit_ns: limit.0, least_percent: None }
            }
            Bound::GoodStreams(least) => {
                BoundAsked { metric: self.name(), limit_ns: 0, least_percent: Some(least) }
            }
        }
    }

    /// Whether it is kept; `None` where the observations do not decide that. The confidence
    /// interval decides, where there is one.
    pub(super) fn judge(&self, figures: BoundedFigures<'_>) -> Option<bool> {
        let &Bound::Time { limit, .. } = self else {
            return Some(self.holds(figures));
        };
        match self.figure(figures) {
            (Some(_), Some([_, upper])) if upper <= limit.0 => Some(true),
            (Some(_), Some([lower, _])) if lower > limit.0 => Some(false),
            (Some(figure), None) => Some(figure <= limit.0),
            _ => None,
        }
    }

    /// Whether it is kept as measured.
    pub fn holds(&self, figures: BoundedFigures<'_>) -> bool {
        match *self {
            Bound::Time { limit, .. } => {
                let (figure, _) = self.figure(figures);
                figure.is_some_and(|ns| ns <= limit.0)
            }
            Bound::GoodStreams(least) => {
                let good = figures.messages.and_then(|messages| messages.good_percent);
                good.is_some_and(|good| good >= least)
            }
        }
    }

    /// Whether the whole confidence interval is within the limit. `false` without an interval, but
    /// for gaps and shares, which never have one.
    pub(super) fn holds_for_certain(&self, figures: BoundedFigures<'_>) -> bool {
        let (_, ci95) = self.figure(figures);
        match (self, ci95) {
            (Bound::Time { limit, .. }, Some([_, upper])) => upper <= limit.0,
            (Bound::Time { of: TimesOf::Gap, .. } | Bound::GoodStreams(_), None) => {
                self.holds(figures)
            }
            _ => false,
        }
    }

    /// Quantile of the figure, 0 to 1; that of the median for the mean.
    pub(super) fn quantile(&self) -> f64 {
        match (self, self.row().map(|row| row.kind)) {
            (Bound::GoodStreams(least), _) => least / 100.0,
            (_, Some(FigureKind::Quantile(quantile))) => quantile,
            _ => 0.5,
        }
    }

    /// Name on the command line.
    pub fn name(&self) -> String {
        match self {
            Bound::Time { of: TimesOf::Response, metric, .. } => (*metric).to_owned(),
            Bound::Time { of, metric, .. } => format!("{}_{metric}", of.key()),
            Bound::GoodStreams(_) => GOOD_STREAMS.to_owned(),
        }
    }

    /// As it is typed.
    pub fn typed(&self) -> String {
        match self {
            Bound::Time { limit, .. } => format!("{}={}", self.name(), limit.exactly()),
            Bound::GoodStreams(least) => format!("{GOOD_STREAMS}={least}%"),
        }
    }
}

/// Name of the bound on the share of good streams.
const GOOD_STREAMS: &str = "good_streams";

/// Figures of a level that bounds are about.
#[derive(Clone, Copy, Debug)]
pub struct BoundedFigures<'a> {
    /// Response times.
    pub response: &'a TimesReport,
    /// The streams of messages, if any.
    pub messages: Option<&'a MessagesReport>,
}

impl<'a> From<&'a TrialReport> for BoundedFigures<'a> {
    fn from(trial: &'a TrialReport) -> BoundedFigures<'a> {
        BoundedFigures { response: &trial.response_time_ns, messages: trial.messages() }
    }
}

/// `p90<=50ms`, `good_streams>=99%`
impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Time { limit, .. } => {
                let limit = limit.to_string().replace([' ', ','], "");
                write!(f, "{}<={limit}", self.name())
            }
            Bound::GoodStreams(least) => write!(f, "{GOOD_STREAMS}>={least}%"),
        }
    }
}

/// `p90=50ms`, `first_message_p99=500ms`, `good_streams=99%`
impl FromStr for Bound {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Bound, ParseError> {
        let error = |what: &str| {
            ParseError(format!(
                "{what}; write FIGURE=TIME, such as p90=50ms (mean, p50, p75, p90, p95, p99, \
                 p999; of streams first_message_p99, gap_p99, per_message_p99, per_token_p99, \
                 stream_p99 and answer_p99 likewise, or good_streams=99%)"
            ))
        };
        let (name, limit) =
            text.split_once('=').ok_or_else(|| error(&format!("`{text}` has no `=`")))?;
        let (name, limit) = (name.trim(), limit.trim());
        if name == GOOD_STREAMS {
            let least = limit
                .strip_suffix('%')
                .and_then(|share| share.trim().parse::<f64>().ok())
                .filter(|share| *share > 0.0 && *share <= 100.0)
                .ok_or_else(|| error(&format!("`{limit}` is no share")))?;
            return Ok(Bound::GoodStreams(least));
        }
        let (of, figure) = TimesOf::MESSAGES
            .iter()
            .find_map(|(of, key, _)| Some((*of, name.strip_prefix(key)?.strip_prefix('_')?)))
            .unwrap_or((TimesOf::Response, name));
        let row = TimesReport::FIGURES
            .iter()
            .filter(|row| !matches!(row.kind, FigureKind::Min | FigureKind::Max))
            .find(|row| row.key == figure)
            .ok_or_else(|| error(&format!("`{name}` is not a figure")))?;
        // A number without a unit would be seconds, which is more likely a mistake.
        if limit.ends_with(|c: char| c.is_ascii_digit()) {
            return Err(error(&format!("`{limit}` has no unit")));
        }
        let limit = parse_duration(limit)?;
        if limit == Nanos::ZERO {
            return Err(error("a limit of 0 cannot be met"));
        }
        Ok(Bound::Time { of, metric: row.key, limit })
    }
}
