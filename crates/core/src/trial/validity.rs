//! Whether the load was the one asked for: the clauses of INVALID.
//!
//! Each clause compares what the generator did with what it promised. A target that is slow, or
//! refuses, makes no trial invalid. `bounds` has what the generator may have changed of a figure.

mod explained;

pub use explained::{INVALID, reasons};

use crate::words::{exact, number, percent, time};
use knee_load::arrival::GapLaw;
use knee_load::measure::{Histogram, RateLimitUse};
use knee_load::stats::gaps::{Gaps, KolmogorovSmirnov, WindowCounts};
use knee_load::time::Nanos;
use serde::{Deserialize, Serialize};

/// This share of the operations asked for must have been started, …
const ACHIEVED_SHARE: f64 = 0.999;
/// … where those due in this time may be started after the window's end, …
const EDGE: Nanos = Nanos::from_millis(10);
/// … and this many in any case.
const EDGE_OPERATIONS: f64 = 10.0;

/// Connects that replace others after T distort the load where their pacing error is this share of
/// T and exceeds this floor. The floors are what waking up costs on a busy virtual machine.
const PACING_P99: [(f64, u64); 2] = [(0.20, 1_000_000), (0.50, 200_000)];
/// The limit for medians, in which single late wake-ups do not show.
const PACING_P50: (f64, u64) = (0.20, 100_000);
/// Lateness from which on the generator is stalled, however long the trial.
pub(super) const STALL_NS: u64 = 100_000_000;
/// Stalls change the load of a closed loop where its throughput would be higher by this share
/// without the longest of them.
const STALLED_SHARE: f64 = 0.1;
/// Where a load has phases, a stall is left out with the intervals that it touched, unless these
/// are a larger share of all, …
const TOUCHED_SHARE: f64 = 0.1;
/// … or it is so long that what was due meanwhile and starts together is a trigger of its own.
const BURST_NS: u64 = 1_000_000_000;

/// Largest deviation of the coefficient of variation of gaps from the promised one, where gaps are
/// constant, …
const CV_CONSTANT: f64 = 0.3;
/// … and where they are random, beside four standard errors.
const CV_RANDOM: f64 = 0.1;
/// … unless the deviation is below this: at 50,000/s a coefficient of 0.3 is 6 µs.
const GAP_NOISE_NS: f64 = 200_000.0;
/// The Kolmogorov–Smirnov test rejects at this level, …
const KS_P: f64 = 0.001;
/// … if its distance is at least this large, as huge samples reject anything, …
const KS_DISTANCE: f64 = 0.05;
/// … and amounts to more than this much of time.
const KS_NOISE_NS: f64 = 50_000.0;
/// Counts deviate from Poisson's by this number of standard errors of their dispersion, …
const DISPERSION_Z: f64 = 5.0;
/// … and by this share of their mean.
const DISPERSION_SHARE: f64 = 0.2;
/// The median start is punctual where it is late by at most this share of the mean gap, …
const PUNCTUAL_SHARE: f64 = 0.1;
/// … or this.
const PUNCTUAL_NS: u64 = 50_000;
/// Counts say nothing below this mean.
const DISPERSION_COUNT: f64 = 1.0;

/// Share of the operations that may lack ports, descriptors or memory of the generator's host.
const NO_RESOURCES_SHARE: f64 = 0.001;
/// The share of the steps that may stay unsent for want of a value that fits its place.
const UNSENT_SHARE: f64 = 0.001;

/// The operations that a schedule has in the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// Operations in the window, on average.
    pub operations: f64,
    /// Number by which chance may reduce them.
    pub slack: f64,
}

/// The gaps between starts that were achieved, against those promised.
#[derive(Clone, Debug, PartialEq)]
pub struct GapEvidence {
    /// The law that gaps should have.
    pub law: GapLaw,
    /// The gaps between starts.
    pub gaps: Gaps,
    /// Their test against the exponential law; Poisson only.
    pub exponential: Option<KolmogorovSmirnov>,
    /// Counts of starts per bin of several lengths.
    pub counts: Vec<(Nanos, WindowCounts)>,
}

/// Figures of a distribution of times, in nanoseconds; 0 where there is none. With few observations
/// the 99th percentile is the largest, unlike in reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacingQuantiles {
    /// Median.
    pub p50: u64,
    /// 95th percentile.
    pub p95: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Largest.
    pub max: u64,
}

impl PacingQuantiles {
    /// The quantiles of a histogram.
    pub fn of(histogram: &Histogram) -> PacingQuantiles {
        PacingQuantiles {
            p50: histogram.quantile(0.5).0,
            p95: histogram.quantile(0.95).0,
            p99: histogram.quantile(0.99).0,
            max: histogram.max().0,
        }
    }
}

/// The facts that the verdict rests on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValidityEvidence {
    /// Operations of the schedule; `None` in a closed loop.
    pub asked: Option<Demand>,
    /// The length of the measured window.
    pub window: Nanos,
    /// Whether the loop is open.
    pub open_loop: bool,
    /// Operations intended in the window, shed ones included.
    pub attempted: u64,
    /// Operations shed because of the limit that the user set.
    pub shed: u64,
    /// Operations started in the window.
    pub started: u64,
    /// The generator's lateness; open loop only.
    pub pacing_error_ns: PacingQuantiles,
    /// The root mean square of the lateness, where ranges say what that may have changed of each
    /// figure; 0 where nothing says so.
    pub late_rms_ns: f64,
    /// T, the time after which an overload replaces a connect. Lateness is judged as a share of it.
    pub replaced_after: Option<Nanos>,
    /// Each stall changes what is measured, however few operations it held up.
    pub each_stall_counts: bool,
    /// Share of the intervals that a stall of the generator touched, where the load has phases and
    /// each interval is judged by itself; `None` elsewhere.
    pub in_phases: Option<f64>,
    /// The longest time that a worker was past a deadline of its own.
    pub stall_ns_max: u64,
    /// Gaps; where the arrival process promises something about them.
    pub gaps: Option<GapEvidence>,
    /// Operations that failed for want of ports, descriptors or memory.
    pub no_resources: u64,
    /// Steps that were not sent, as a program of the scenario gave no value.
    pub program_failed: u64,
    /// Why the program gave no value, for the first time.
    pub program_failed_because: Option<String>,
    /// Whether the program ended, which ended the load.
    pub program_ended: bool,
    /// Operations that began and are not known to have ended.
    pub lost: u64,
    /// Steps that were not sent, as a value does not fit its place.
    pub unfit_values: u64,
    /// The first of these values, and why.
    pub unfit_because: Option<String>,
    /// Lost agents, each with the reason.
    pub agents_lost: Vec<(String, String)>,
    /// The effect of a limit on operations per second; `None` without one.
    pub rate_limit: Option<RateLimitUse>,
}

/// A reason why a trial is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clause {
    /// The generator did not start all operations that were due.
    FellBehind,
    /// The generator stalled.
    Stalled,
    /// Connects that replace others were started late.
    PacedLate,
    /// Gaps between starts vary otherwise than promised.
    GapsVary,
    /// Gaps between starts are not exponential.
    GapsNotExponential,
    /// Counts of starts are not Poisson's.
    CountsNotPoisson,
    /// Others used processors that were to be the clients' alone.
    ProcessorsShared,
    /// Ports, descriptors or memory ran out on the generator's host.
    ResourcesExhausted,
    /// A program of the scenario gave no values.
    ValuesMissing,
    /// The result of an agent is lost.
    AgentLost,
    /// Operations began that neither ended nor were under way at the end.
    OperationsLost,
    /// A limit on operations per second held the load back.
    RateLimited,
    /// Neither throughput nor the median could be determined. Only reports of earlier versions have
    /// it.
    Undetermined,
    /// A clause of an earlier version of knee.
    #[serde(other)]
    Former,
}

/// The broken clauses, each with a sentence; none where the trial is valid.
pub fn broken_clauses(evidence: &ValidityEvidence) -> Vec<(Clause, String)> {
    type Check = fn(&ValidityEvidence) -> Option<String>;
    let checks: &[(Clause, Check)] = &[
        (Clause::OperationsLost, operations_are_lost),
        (Clause::AgentLost, agent_is_lost),
        (Clause::RateLimited, rate_limited),
        (Clause::FellBehind, rate_not_achieved),
        (Clause::Stalled, generator_stalled),
        (Clause::PacedLate, paced_late),
        (Clause::GapsVary, gaps_vary),
        (Clause::GapsNotExponential, gaps_not_exponential),
        (Clause::CountsNotPoisson, counts_not_poisson),
        (Clause::ResourcesExhausted, resources_exhausted),
        (Clause::ValuesMissing, values_missing),
    ];
    checks.iter().filter_map(|&(clause, check)| Some((clause, check(evidence)?))).collect()
}

/// Two ways to fall short: operations that the generator never came to, and operations that it came
/// to after the window. Neither depends on the target: an operation that waits for a connection has
/// been started.
fn rate_not_achieved(e: &ValidityEvidence) -> Option<String> {
    if !e.open_loop {
        return None;
    }
    let attempted = e.attempted as f64;
    let wanted = e.asked.map_or(attempted, |a| (a.operations - a.slack).max(attempted));
    let started = (e.started + e.shed).min(e.attempted) as f64;
    let missing = wanted * ACHIEVED_SHARE - started;
    let edge = wanted * EDGE.as_secs_f64() / e.window.as_secs_f64().max(f64::MIN_POSITIVE);
    (missing > 0.0 && wanted - started > edge.max(EDGE_OPERATIONS)).then(|| {
        format!(
            "the generator fell behind: of {} operations due in the window it did not start {} \
             ({})",
            exact(wanted.round()),
            exact((wanted - started).round()),
            percent((1.0 - started / wanted) * 100.0)
        )
    })
}

/// A stall changes few figures of a long trial, and `bounds` says which. It changes the load where
/// 5 % of the operations of an open loop started late, or the users of a closed loop did nothing
/// for a part of the time. The connects of an overload replace each other, so that each stall
/// counts.
fn generator_stalled(e: &ValidityEvidence) -> Option<String> {
    let window_ns = e.window.0 as f64;
    let (late_ns, is_another_load) = if !e.open_loop {
        let stalled_ns = e.stall_ns_max as f64;
        (e.stall_ns_max, stalled_ns >= STALLED_SHARE * (window_ns - stalled_ns))
    } else {
        let late = &e.pacing_error_ns;
        (late.max, e.each_stall_counts || late.p95 >= STALL_NS)
    };
    let is_left_out = e.in_phases.is_some_and(|share| share <= TOUCHED_SHARE) && late_ns < BURST_NS;
    (late_ns >= STALL_NS && is_another_load && !is_left_out).then(|| {
        format!(
            "the generator stalled for {}: what it measured meanwhile is its own delay",
            time(late_ns as f64)
        )
    })
}

/// In an overload, where the time between a connect and its successor is a part of the load.
fn paced_late(e: &ValidityEvidence) -> Option<String> {
    let (Nanos(t), pacing) = (e.replaced_after?, &e.pacing_error_ns);
    let distorts =
        |late: u64, (share, floor): (f64, u64)| late > floor && late as f64 > share * t as f64;
    let (name, late) = if PACING_P99.iter().any(|&limit| distorts(pacing.p99, limit)) {
        ("p99", pacing.p99)
    } else if distorts(pacing.p50, PACING_P50) {
        ("median", pacing.p50)
    } else {
        return None;
    };
    Some(format!(
        "operations started late: {name} pacing error {}, of a connect timeout of {}",
        time(late as f64),
        time(t as f64)
    ))
}

fn gaps_vary(e: &ValidityEvidence) -> Option<String> {
    let GapEvidence { law, gaps, .. } = judged_gaps(e)?;
    let promised = law.cv();
    let tolerance = match law {
        GapLaw::Constant => CV_CONSTANT,
        GapLaw::Uniform | GapLaw::Poisson => CV_RANDOM + 4.0 / (gaps.count as f64).sqrt(),
    };
    let excess = gaps.std_dev_ns.powi(2) - (promised * gaps.mean_ns).powi(2);
    let excess_ns = excess.abs().sqrt();
    let deviates = (gaps.cv() - promised).abs() > tolerance
        && excess_ns > GAP_NOISE_NS
        && !is_lateness(e, excess_ns);
    deviates.then(|| {
        format!(
            "gaps between starts vary otherwise than promised: coefficient of variation {}, not \
             {} (standard deviation {})",
            number(gaps.cv()),
            number(promised),
            time(gaps.std_dev_ns)
        )
    })
}

fn gaps_not_exponential(e: &ValidityEvidence) -> Option<String> {
    let GapEvidence { gaps, exponential, .. } = judged_gaps(e)?;
    let test = exponential.as_ref()?;
    let distance_ns = test.distance * gaps.mean_ns;
    let matters =
        test.distance > KS_DISTANCE && distance_ns > KS_NOISE_NS && !is_lateness(e, distance_ns);
    (test.p_value < KS_P && matters).then(|| {
        format!(
            "gaps between starts are not exponential: Kolmogorov–Smirnov distance {}, p below {}",
            number(test.distance),
            number(KS_P)
        )
    })
}

/// The index of dispersion of n counts has the standard error √(2/n) about 1 if they are Poisson's.
fn counts_not_poisson(e: &ValidityEvidence) -> Option<String> {
    let evidence = judged_gaps(e).filter(|g| g.law == GapLaw::Poisson)?;
    let deviating = evidence.counts.iter().find(|(bin, counts)| {
        let deviation = (counts.dispersion - 1.0).abs();
        let share = (deviation / counts.mean).sqrt();
        counts.mean >= DISPERSION_COUNT
            && deviation > DISPERSION_Z * (2.0 / counts.bins as f64).sqrt()
            && share > DISPERSION_SHARE
            && !is_lateness(e, share * bin.0 as f64)
    });
    deviating.map(|(bin, counts)| {
        format!(
            "starts are not Poisson: index of dispersion {} per {bin}, not 1",
            number(counts.dispersion)
        )
    })
}

/// Shed arrivals leave gaps that the schedule did not have.
fn judged_gaps(e: &ValidityEvidence) -> Option<&GapEvidence> {
    let few_shed = e.shed as f64 <= (1.0 - ACHIEVED_SHARE) * e.attempted as f64;
    e.gaps.as_ref().filter(|_| few_shed)
}

/// Whether such a deviation of gaps comes from single late starts, which the ranges of the figures
/// cover: most operations started when they were due. A start that is late by Δ makes the gaps
/// before and after it longer and shorter by Δ.
fn is_lateness(e: &ValidityEvidence, deviation_ns: f64) -> bool {
    let mean_gap_ns = e.gaps.as_ref().map_or(0.0, |g| g.gaps.mean_ns);
    let punctual_ns = PUNCTUAL_NS.max((PUNCTUAL_SHARE * mean_gap_ns) as u64);
    e.pacing_error_ns.p50 <= punctual_ns && deviation_ns <= 2.0 * e.late_rms_ns
}

fn resources_exhausted(e: &ValidityEvidence) -> Option<String> {
    (e.no_resources as f64 > NO_RESOURCES_SHARE * e.attempted as f64).then(|| {
        format!(
            "{} of {} operations found no port, descriptor or memory on the generator's host",
            exact(e.no_resources as f64),
            exact(e.attempted as f64)
        )
    })
}

/// Scenario and programs belong to the generator: a value that they do not give is its failure.
fn values_missing(e: &ValidityEvidence) -> Option<String> {
    if let Some(reason) = values_not_given(e) {
        return Some(reason);
    }
    let missing = e.unfit_values as f64;
    let (attempted, because) = (e.attempted as f64, e.unfit_because.as_ref()?);
    (missing > UNSENT_SHARE * attempted).then(|| {
        let (missing, attempted) = (exact(missing), exact(attempted));
        format!("{missing} of {attempted} steps were not sent: {because}")
    })
}

fn values_not_given(e: &ValidityEvidence) -> Option<String> {
    let missing = e.program_failed as f64;
    let is_missing = missing > UNSENT_SHARE * e.attempted as f64;
    let because =
        e.program_failed_because.as_ref().map_or(String::new(), |because| format!(": {because}"));
    (is_missing || e.program_ended).then(|| {
        let steps = format!("{} of {}", exact(missing), exact(e.attempted as f64));
        if e.program_ended {
            format!(
                "a program of the scenario ended during the load, and {steps} steps were not \
                 sent{because}"
            )
        } else {
            format!(
                "{steps} steps were not sent, as a program of the scenario gave no value{because}"
            )
        }
    })
}

/// Share of the operations that a limit may hold back, …
const HELD_BACK_SHARE: f64 = 0.01;
/// … and the number that it may: users begin together.
const HELD_BACK: u64 = 10;

/// Whether the books balance: operations begun equal those that ended and those under way.
fn operations_are_lost(e: &ValidityEvidence) -> Option<String> {
    (e.lost > 0).then(|| {
        format!(
            "the generator lost {} operations: they began, and their ends are not known",
            exact(e.lost as f64)
        )
    })
}

/// Lost agents that are named; a longer list would hide what else is said.
const LOST_NAMED: usize = 100;

fn agent_is_lost(e: &ValidityEvidence) -> Option<String> {
    let (first, because) = e.agents_lost.first()?;
    let [others @ .., last] = &e.agents_lost[1..] else {
        return Some(format!(
            "agent {first} is lost ({because}): its share of the load is not in the figures"
        ));
    };
    let named = others.iter().take(LOST_NAMED - 2);
    let names: String = named.map(|(agent, _)| format!(", {agent}")).collect();
    let end = match others.len().saturating_sub(LOST_NAMED - 2) {
        0 => last.0.clone(),
        more => format!("{} more", more + 1),
    };
    Some(format!(
        "agents {first}{names} and {end} are lost ({first}: {because}): their share of the load is \
         not in the figures"
    ))
}

/// The limit is the generator's. What came of the load says nothing of what the target can do.
fn rate_limited(e: &ValidityEvidence) -> Option<String> {
    let limit = e.rate_limit?;
    let share = limit.held_back as f64 / limit.started.max(1) as f64;
    (share > HELD_BACK_SHARE && limit.held_back > HELD_BACK).then(|| {
        format!(
            "--rate-max, {}/s in all, held back {} of {} operations: the generator is the limit, \
             and the target can do at least this",
            number(limit.per_s),
            exact(limit.held_back as f64),
            exact(limit.started.max(limit.held_back) as f64)
        )
    })
}

#[cfg(test)]
mod tests;
