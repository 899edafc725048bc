//! What a person should know: one variant per finding, each with its cause and its next step.

mod evidence;
mod next_step;
mod silence;
#[cfg(test)]
mod tests;
mod text;

use crate::experiment::latency::findings::LatencyDiagnosis;
use crate::experiment::overload::findings::OverloadDiagnosis;
use crate::experiment::sweep::findings::AxisKind;
use crate::experiment::throttle::findings::ThrottleDiagnosis;
use crate::experiment::udp::findings::UdpDiagnosis;
use crate::finding::{Finding, Severity};
use crate::report::{STOPPED_EARLY, UNREACHABLE};
use crate::spec::Level;
use std::collections::BTreeMap;

/// A finding before it is put into words. `at` names the levels that it holds for; it is empty
/// where there is only one trial.
#[derive(Clone, Debug, PartialEq)]
pub enum Diagnosis {
    /// Throughput or response time drifts or jumps during a trial.
    NonStationary {
        /// Where.
        at: Vec<Level>,
        /// Length of the longest such trial, in seconds.
        longest_s: f64,
    },
    /// N and X·(R + Z) differ: the numbers of a closed loop contradict each other.
    LittlesLawViolation {
        /// Where.
        at: Vec<Level>,
        /// Users.
        n: f64,
        /// Throughput times response time and pause.
        x_times_r: f64,
        /// Difference in percent.
        deviation_percent: f64,
    },
    /// A core of the generator has no time left.
    GeneratorLimited {
        /// Where.
        at: Vec<Level>,
        /// What the busiest worker used of its core, polling apart.
        busy_percent: f64,
        /// Worker threads.
        workers: u32,
    },
    /// The generator distorted the load; the clauses say how.
    GeneratorDistorted {
        /// Where.
        at: Vec<Level>,
        /// What makes it invalid.
        clauses: Vec<String>,
    },
    /// Users paused longer than they were asked to.
    ThinkDeviation {
        /// Where.
        at: Vec<Level>,
        /// Mean pause asked for.
        asked_ns: f64,
        /// By how much the median pause overshot.
        overshoot_ns: f64,
    },
    /// Operations failed.
    Errors {
        /// Where.
        at: Vec<Level>,
        /// The largest share, in percent.
        percent: f64,
        /// The most frequent kind of failure.
        kind: &'static str,
    },
    /// Open loop: the queue at the target grows all the time, as more is offered than it serves.
    TargetQueueGrows {
        /// Where.
        at: Vec<Level>,
        /// Operations offered per second.
        offered_per_s: f64,
        /// Responses per second.
        served_per_s: f64,
        /// Operations waiting at the end of the window.
        waiting: f64,
    },
    /// Open loop: the connections that may be open carry less than is offered.
    ConnectionsLimit {
        /// Where.
        at: Vec<Level>,
        /// How many may be open.
        connections: f64,
        /// Mean time that an operation has one.
        service_ns: f64,
        /// Operations offered per second.
        offered_per_s: f64,
        /// What so many connections carry at the most, per second.
        carried_per_s: f64,
        /// Operations that timed out before they were sent.
        unsent: f64,
        /// The median wait for a connection.
        wait_ns: f64,
    },
    /// After whole responses came bytes that nobody asked for.
    SurplusBytes {
        /// Where.
        at: Vec<Level>,
        /// After how many responses.
        responses: f64,
    },
    /// The target stood still for a moment while the generator was on time.
    ServerStalled {
        /// Where.
        at: Vec<Level>,
        /// When, from the begin of the window.
        from_ns: f64,
        /// The longest response time of that moment.
        stall_ns: f64,
    },
    /// For a time not one good response came, only failures.
    Outage {
        /// Where.
        at: Vec<Level>,
        /// When it began, from the begin of the window.
        from_ns: f64,
        /// When it ended; `None` where it lasted until the end of the window.
        until_ns: Option<f64>,
        /// How many there were.
        count: f64,
        /// How long they lasted, all together.
        lasted_ns: f64,
        /// Operations that failed in them or were never answered.
        failures: f64,
    },
    /// Operations that waited at the end of the window and never got a response.
    Hung {
        /// Where.
        at: Vec<Level>,
        /// How many: in a closed loop, users.
        hung: f64,
        /// Those of them that waited all through the window.
        throughout: f64,
        /// Users of the closed loop; `None` in an open one.
        users: Option<f64>,
        /// What they had waited at the least.
        waited_ns: f64,
    },
    /// The target pauses again and again.
    PeriodicPauses {
        /// Where.
        at: Vec<Level>,
        /// How many pauses there were.
        count: f64,
        /// From one to the next.
        period_ns: f64,
        /// How long one is.
        length_ns: f64,
        /// Their share of the time, in percent.
        percent: f64,
        /// Responses per second in a closed loop, which hides pauses; `None` in an open one.
        closed_per_s: Option<f64>,
    },
    /// A pausing target's response times in a closed loop are far from those in an open one.
    ClosedLoopHidesPauses {
        /// The level of the closed loop.
        at: Level,
        /// 99th percentile of response time there.
        closed_ns: f64,
        /// What the open loop offered per second.
        per_s: f64,
        /// The same as a share of the maximum throughput, in percent.
        percent_of_maximum: f64,
        /// 99th percentile of response time in the open loop.
        open_ns: f64,
    },
    /// Every level is past saturation.
    SaturatedBelowRange {
        /// Users or rate.
        axis: AxisKind,
        /// The lowest and the highest level.
        range: [f64; 2],
        /// The throughput that all have.
        max_throughput_per_s: f64,
    },
    /// Levels beyond the knee that cost many times its response time for little.
    PastKnee {
        /// Those levels.
        at: Vec<Level>,
        /// The knee.
        knee: f64,
        /// The highest level that is not among them.
        before: f64,
        /// What they gain over it at the most, in percent.
        gain_percent: f64,
        /// Their response times over that at the knee, smallest and largest.
        times: [f64; 2],
        /// The number of users that is recommended.
        recommended: Option<u32>,
    },
    /// Throughput of the same level changes from trial to trial with time.
    DriftsBetweenTrials {
        /// The level that shows it best.
        at: Level,
        /// Its throughput at first.
        first_per_s: f64,
        /// Its throughput at last.
        last_per_s: f64,
        /// Time between the two, in seconds.
        apart_s: f64,
    },
    /// A table measured elsewhere: throughput times response time accounts for fewer users than
    /// there were.
    IdleUsers {
        /// Where.
        at: Vec<Level>,
        /// Users of the level that shows it best.
        users: f64,
        /// Those of them that are accounted for.
        active: f64,
    },
    /// Throughput still rises at the last level.
    NotSaturated {
        /// Users or rate.
        axis: AxisKind,
        /// The last level.
        last: f64,
        /// The level it is compared with.
        before: f64,
        /// What it gains over that, in percent.
        gain_percent: f64,
        /// Lower bound of the knee, where known.
        at_least: Option<f64>,
        /// A level above it at which operations failed, so that it could not go on.
        failing: Option<f64>,
    },
    /// The knee is below the levels that were measured or between the lowest two.
    KneeNotBracketed {
        /// Upper bound of the knee.
        at_most: f64,
        /// The lowest level.
        lowest: f64,
    },
    /// One level alone shows no knee.
    TooFewLevels {
        /// Users or rate.
        axis: AxisKind,
        /// That level.
        level: f64,
    },
    /// Throughput falls significantly beyond its maximum.
    Retrograde {
        /// Users or rate.
        axis: AxisKind,
        /// The highest level of the maximum.
        peak: f64,
        /// The maximum.
        max_throughput_per_s: f64,
        /// The last level.
        last: f64,
        /// Its throughput.
        throughput_per_s: f64,
    },
    /// Other ways to find the knee say something else.
    KneeMethodsDisagree {
        /// What the asymptotes say.
        asymptotes: f64,
        /// Throughput there as a percentage of the maximum.
        reached_percent: f64,
        /// The other ways' names, and what they say.
        others: Vec<(&'static str, f64)>,
        /// Where the knee lies, where no single number is borne out.
        range: Option<[f64; 2]>,
    },
    /// The intervals are wider than they should be.
    ConfidenceNotReached {
        /// Half the width of the interval of the maximum throughput, in percent, where known.
        throughput_percent: Option<f64>,
        /// The same of the knee.
        knee_percent: Option<f64>,
        /// Trials used.
        trials: usize,
    },
    /// Failures become more as the load grows.
    ErrorsRise {
        /// Where they first exceed what the lowest level has.
        at: Vec<Level>,
        /// Share at the lowest level, in percent.
        lowest_percent: f64,
        /// The largest share, in percent.
        percent: f64,
        /// The most frequent kind of failure, where known.
        kind: Option<&'static str>,
    },
    /// The server was slower at first; what was measured then is not used.
    WarmedUp {
        /// The levels whose first trials were left out.
        at: Vec<Level>,
        /// Throughput of the first such trial.
        first_per_s: f64,
        /// Throughput of the same level later.
        later_per_s: f64,
    },
    /// No level meets a bound.
    BoundUnreachable {
        /// The bound as asked.
        bound: String,
        /// The lowest level.
        lowest: Level,
        /// The bounded figure there.
        figure_ns: f64,
    },
    /// Of datagrams.
    Udp(UdpDiagnosis),
    /// Of how the machine waits and holds a rate.
    Throttle(ThrottleDiagnosis),
    /// Of flows and the latency under them.
    Latency(LatencyDiagnosis),
    /// Of load beyond capacity.
    Overload(OverloadDiagnosis),
    /// The policy gave up.
    StoppedEarly {
        /// Why.
        reason: String,
    },
    /// The target could not be reached, before the first trial or after some.
    Unreachable {
        /// What was tried and what came of it.
        reason: String,
    },
    /// The user ended the experiment early.
    Interrupted {
        /// Trials that had been made.
        trials: usize,
    },
}

impl Diagnosis {
    /// The policy gave up, for this reason.
    pub fn stopped_early(reason: &str) -> Diagnosis {
        Diagnosis::StoppedEarly {
            reason: reason.to_owned(),
        }
    }

    /// The target could not be reached, for this reason.
    pub fn unreachable(reason: &str) -> Diagnosis {
        Diagnosis::Unreachable {
            reason: reason.to_owned(),
        }
    }

    /// The user ended the experiment after so many trials, the last perhaps cut short.
    pub fn interrupted(trials: usize) -> Diagnosis {
        Diagnosis::Interrupted { trials }
    }

    /// Its stable name.
    pub fn code(&self) -> &'static str {
        match self {
            Diagnosis::NonStationary { .. } => "non_stationary",
            Diagnosis::LittlesLawViolation { .. } => "littles_law_violation",
            Diagnosis::GeneratorLimited { .. } => "generator_limited",
            Diagnosis::GeneratorDistorted { .. } => "generator_distorted",
            Diagnosis::ThinkDeviation { .. } => "think_deviation",
            Diagnosis::Errors { .. } => "errors",
            Diagnosis::TargetQueueGrows { .. } => "target_queue_grows",
            Diagnosis::ConnectionsLimit { .. } => "connections_limit",
            Diagnosis::SurplusBytes { .. } => "surplus_bytes",
            Diagnosis::ServerStalled { .. } => "server_stalled",
            Diagnosis::Outage { .. } => "outage",
            Diagnosis::Hung { .. } => "hung_operations",
            Diagnosis::PeriodicPauses { .. } => "periodic_pauses",
            Diagnosis::ClosedLoopHidesPauses { .. } => "closed_loop_hides_pauses",
            Diagnosis::SaturatedBelowRange { .. } => "saturated_below_range",
            Diagnosis::PastKnee { .. } => "past_knee",
            Diagnosis::NotSaturated { .. } => "not_saturated",
            Diagnosis::KneeNotBracketed { .. } => "knee_not_bracketed",
            Diagnosis::TooFewLevels { .. } => "too_few_levels",
            Diagnosis::Retrograde { .. } => "retrograde",
            Diagnosis::KneeMethodsDisagree { .. } => "knee_methods_disagree",
            Diagnosis::ConfidenceNotReached { .. } => "confidence_not_reached",
            Diagnosis::ErrorsRise { .. } => "errors_rise",
            Diagnosis::WarmedUp { .. } => "warmed_up",
            Diagnosis::DriftsBetweenTrials { .. } => "drifts_between_trials",
            Diagnosis::IdleUsers { .. } => "idle_users",
            Diagnosis::BoundUnreachable { .. } => "bound_unreachable",
            Diagnosis::Udp(of_datagrams) => of_datagrams.trouble.code(),
            Diagnosis::Throttle(of_throttle) => of_throttle.code(),
            Diagnosis::Latency(of_flows) => of_flows.code(),
            Diagnosis::Overload(of_overload) => of_overload.code(),
            Diagnosis::StoppedEarly { .. } => STOPPED_EARLY,
            Diagnosis::Unreachable { .. } => UNREACHABLE,
            Diagnosis::Interrupted { .. } => "interrupted",
        }
    }

    /// How grave it is.
    pub fn severity(&self) -> Severity {
        match self {
            Diagnosis::Udp(of_datagrams) => of_datagrams.trouble.severity(),
            Diagnosis::Throttle(of_throttle) => of_throttle.severity(),
            Diagnosis::Latency(of_flows) => of_flows.severity(),
            Diagnosis::Overload(of_overload) => of_overload.severity(),
            Diagnosis::GeneratorLimited { .. }
            | Diagnosis::GeneratorDistorted { .. }
            | Diagnosis::LittlesLawViolation { .. }
            | Diagnosis::Outage { .. }
            | Diagnosis::Hung { .. }
            | Diagnosis::StoppedEarly { .. }
            | Diagnosis::Unreachable { .. } => Severity::Error,
            Diagnosis::Errors { percent, .. }
                if *percent <= crate::trial::findings::ERRORS_PERCENT =>
            {
                Severity::Info
            }
            Diagnosis::PastKnee { .. }
            | Diagnosis::WarmedUp { .. }
            | Diagnosis::ServerStalled { .. }
            | Diagnosis::KneeMethodsDisagree { range: None, .. }
            | Diagnosis::Interrupted { .. } => Severity::Info,
            _ => Severity::Warning,
        }
    }

    /// It in words, with its evidence and the next step.
    pub fn finding(&self) -> Finding {
        let evidence: BTreeMap<String, f64> = self
            .evidence()
            .into_iter()
            .filter(|(_, value)| value.is_finite())
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        Finding {
            code: self.code().to_owned(),
            severity: self.severity(),
            text: self.text(),
            evidence,
            next_step: self.next_step(),
        }
    }
}
