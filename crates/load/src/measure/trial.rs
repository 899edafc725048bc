//! The raw result of one trial, and the contribution of each agent to it: mergeable and
//! serialisable. `trial::assess` computes its statistics.

use super::sums::{add_by_name, merge_each, merge_some, merged};
use super::{
    Anatomy, AttemptsMeasured, BothEnds, GeneratorUse, Handshakes, Histogram, Interval,
    MessagesMeasured, Observed, Outcomes, PacketsMeasured, RateLimitUse, RoutedConnections,
    SentinelSample, Series, SessionsMeasured, Slowest, Split, Stage, StatusCodes, TargetMeasured,
    Timeline,
};
use crate::session::SCRIPT_ROWS;
use crate::spec::TrialSpec;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One trial as the engine ran it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Trial {
    /// The spec of the trial.
    pub spec: TrialSpec,
    /// The measurement, merged over all workers.
    pub measurement: Measurement,
    /// The generator's use of resources.
    pub generator: GeneratorUse,
    /// Kernel counters that moved during the trial, by name.
    pub kernel: BTreeMap<String, i64>,
    /// Observations on the server's host, if there was an observer.
    pub observed: Option<Observed>,
    /// The agents that made it; empty where one process did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentMeasured>,
    /// The user ended it early.
    pub interrupted: bool,
}

impl Trial {
    /// Adds what another process measured of the same trial, exactly; see [`Measurement::merge`].
    pub fn merge(&mut self, other: Trial) {
        self.measurement.merge(other.measurement);
        self.generator.merge(other.generator);
        add_by_name(&mut self.kernel, other.kernel);
        self.agents.extend(other.agents);
        self.interrupted |= other.interrupted;
    }
}

/// The part of the run that counts, in run time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Begin: the end of the warm-up.
    pub start: Nanos,
    /// End.
    pub end: Nanos,
}

impl Window {
    /// Its length.
    pub fn length(&self) -> Nanos {
        self.end - self.start
    }

    /// Whether `t` lies in it (the end excluded).
    #[inline]
    pub fn contains(&self, t: Nanos) -> bool {
        self.start <= t && t < self.end
    }
}

merged! {
/// What was measured. Latencies and outcomes are of the operations *intended* within the window,
/// however late they completed, and of those under way all through it. `series` is of what happened
/// during the window.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Measurement {
    /// The measured window as it really was.
    pub window: Window => by_hand,
    /// How many windows follow one another here, where that is more than one; the series then has
    /// gaps in time. See [`Trial::append`].
    pub slices: u32 => by_hand,
    /// Operations started in the window, whenever they were intended.
    pub started: u64 => add,
    /// How the operations intended in the window ended.
    pub outcomes: Outcomes => merge,
    /// Response times: completed − intended, censored ones with the time they had waited.
    pub response: Histogram => merge,
    /// The same without the generator's delays: completed − started, less what late starts of
    /// other operations may have added. No operation would have taken less from a punctual one.
    /// Empty where it was not measured.
    pub undelayed: Histogram => merge,
    /// The part of `response` and of `undelayed` that are operations without success.
    pub failed: Histogram => merge,
    /// See `failed`.
    pub failed_undelayed: Histogram => merge,
    /// The part of `service` that are operations which late starts of others may have held up at
    /// the target, …
    pub held_up: Histogram => merge,
    /// … and the least that these may have taken behind a punctual generator.
    pub held_up_least: Histogram => merge,
    /// Service times: completed − sent, of operations that were sent.
    pub service: Histogram => merge,
    /// The shortest response time that is not censored.
    pub response_min: Option<Nanos> => least,
    /// The shortest service time that is not censored.
    pub service_min: Option<Nanos> => least,
    /// The generator's own lateness: started − intended (open loop, and closed loop with pauses).
    pub pacing_error: Histogram => merge,
    /// Waits for a free connection: sent − started (open loop).
    pub connection_wait: Histogram => merge,
    /// The stages of response times.
    pub anatomy: Anatomy => merge,
    /// What of the time until the response was inside the server's host, of operations that an
    /// observer there saw too.
    pub split: Split => merge,
    /// The same as distributions: inside the server's host, and on the network.
    #[serde(skip_serializing_if = "BothEnds::is_empty")]
    pub both_ends: BothEnds => merge,
    /// The slowest operations.
    pub slowest: Slowest => merge_taken,
    /// The length of each stage, by `stage as usize`, of operations that came to its end; empty
    /// where it was not measured.
    pub stages: Vec<Histogram> => by_hand,
    /// From the end of an operation until the generator saw it.
    pub pick_up: Histogram => merge,
    /// Responses whose end is the kernel's receive timestamp.
    pub by_kernel: u64 => add,
    /// Responses that came in one piece with others over their connection: the arrival of each is
    /// that of the piece's last byte.
    pub shared_arrivals: u64 => add,
    /// Throughput and response times in fine slots, for tests of stationarity and batch means.
    pub series: Series => merge_taken,
    /// The intervals of the time series.
    pub intervals: Vec<Interval> => by_hand,
    /// What began and ended, from the beginning of the run to its last byte. Not of several slices.
    pub timeline: Timeline => merge_taken,
    /// The beginning of the run on CLOCK_MONOTONIC of the process that asked for the trial, in
    /// nanoseconds; 0 where it is not known.
    pub began_ns: u64 => by_hand,
    /// Responses of any status that came within the window, whenever they were asked for.
    pub answered: u64 => add,
    /// How long those had waited that were under way at the end of the window and never got a
    /// response.
    pub unanswered: Histogram => merge,
    /// Operations counted here that were intended before the window: they were under way all
    /// through it. See [`super::Recorder`].
    pub carried: u64 => add,
    /// Time within the window of operations that were intended before it, all together, however
    /// they ended. Their response times are not of the window.
    pub begun_before: Nanos => add,
    /// When operations were started, ascending within the window (open loop; the first million or
    /// so per worker, and never beyond `starts_until`).
    pub starts: Vec<Nanos> => by_hand,
    /// Up to when `starts` is complete.
    pub starts_until: Nanos => by_hand,
    /// Bytes received in the window.
    pub bytes_received: u64 => add,
    /// Bytes of the requests that were sent whole and ended in the window.
    pub bytes_sent: u64 => add,
    /// Operations that began and are not known to have ended, also outside the window. This is a
    /// fault of the generator: each must end or be under way at the end.
    pub lost: u64 => add,
    /// How many of the operations intended in the window were answered with which status.
    pub status_codes: StatusCodes => merge,
    /// Operations that timed out before they were sent.
    pub unsent: u64 => add,
    /// Each target on its own, by its number, where there are several or they are steps of
    /// sessions. Of more than [`super::TARGETS_MAX`] the last is the sum of all further ones.
    pub targets: Vec<TargetMeasured> => by_hand,
    /// Whole responses after which bytes came that nobody asked for, in the whole trial.
    pub surplus: u64 => add,
    /// Answers that no operation under way waited for, in the whole trial: late, repeated or never
    /// asked for.
    pub unmatched: u64 => add,
    /// Operations that went on over another connection, as their answers did not fit into
    /// datagrams, in the whole trial.
    pub diverted: u64 => add,
    /// Times at which a connection had as many operations under way as its protocol has numbers
    /// for, in the whole trial.
    pub exhausted: u64 => add,
    /// The fault of the first malformed response, in words.
    pub malformed_because: Option<String> => first,
    /// Why the first compressed body could not be decoded, in words.
    pub undecodable_because: Option<String> => first,
    /// How the target said, the first time, that it ended streams, in words.
    pub stream_reset_because: Option<String> => first,
    /// How connections were secured in the whole trial.
    pub handshakes: Handshakes => merge_taken,
    /// The packets of all connections in the whole trial, where the protocol numbers them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<PacketsMeasured> => merge_some,
    /// What was measured of messages, where responses are streams of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<MessagesMeasured> => merge_some,
    /// What was measured of sessions, where operations are steps of them. `started` and `starts`
    /// are of sessions then, all else of steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions: Option<SessionsMeasured> => merge_some,
    /// The sessions that came to their end, and how long they took, in fine slots.
    pub completed_sessions: Series => merge_taken,
    /// Requests and their attempts; absent where nothing is retried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<AttemptsMeasured> => merge_some,
    /// Patient operations that show how long a queue is, in the order of their starts; outside all
    /// other figures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sentinels: Vec<SentinelSample> => by_hand,
    /// Connections opened in the whole trial.
    pub connections_opened: u64 => add,
    /// Most connections open at once in the whole trial; merged as a sum, which may exceed it.
    pub connections_max: u64 => add,
    /// Where the connections of the whole trial went.
    pub routed: RoutedConnections => merge_taken,
    /// The longest time by which a worker woke late or was busy past a deadline, its own stall.
    pub stall_ns_max: u64 => most,
    /// The effect of a limit on operations per second; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimitUse> => merge_some,
}
}

impl Measurement {
    /// Completions of a closed loop per slot, as means over the times from each slot on that are as
    /// long as a usual response. They end within the window, so that there are fewer of them than
    /// whole slots.
    pub fn smoothed(&self) -> Vec<f64> {
        self.series.smoothed(self.window.length(), self.response.quantile(0.5))
    }

    /// Adds another worker's measurement of the same window, exactly: histograms and slots add,
    /// starts merge in order up to where both are complete. The window becomes the union.
    ///
    /// Intervals have only percentiles, and percentiles are never averaged: the result has none
    /// where both had some. [`super::IntervalMerger`] makes those of all workers.
    ///
    /// # Panics
    /// If the windows begin at different times: the two are not of one trial.
    pub fn merge(&mut self, mut other: Measurement) {
        assert_eq!(self.window.start, other.window.start, "measurements of different trials");
        self.align_rows(&mut other);
        self.merge_fields(&mut other);
        self.window.end = self.window.end.max(other.window.end);
        merge_each(&mut self.stages, other.stages, |mine, theirs| mine.merge(&theirs));
        merge_each(&mut self.targets, other.targets, TargetMeasured::merge);
        if self.intervals.is_empty() {
            self.intervals = other.intervals;
        } else if !other.intervals.is_empty() {
            self.intervals.clear();
        }
        self.starts = merge_sorted(&self.starts, &other.starts);
        self.cut_starts(other.starts_until);
        self.sentinels.extend(other.sentinels);
        self.sentinels.sort_by_key(|sample| sample.began_ns);
    }

    /// Gives another's requests of a script the numbers that requests of these names have here. Each
    /// process numbers names in the order in which it meets them.
    fn align_rows(&mut self, other: &mut Measurement) {
        let script =
            |of: &mut Measurement| Some(of.sessions.as_mut()?.script.as_mut()?.rows.clone());
        let (Some(mut mine), Some(theirs)) = (script(self), script(other)) else { return };
        if mine.iter().zip(&theirs).all(|(mine, theirs)| mine == theirs) {
            return;
        }
        let last = SCRIPT_ROWS - 1;
        let rows = theirs.iter().map(|name| {
            let known = mine.iter().position(|row| row == name);
            known.unwrap_or_else(|| {
                mine.push(name.clone());
                mine.len() - 1
            })
        });
        let rows: Vec<usize> = rows.map(|row| row.min(last)).collect();
        mine.truncate(last);
        let row_of = |row: usize| rows.get(row).copied().unwrap_or(row);
        let mut targets = vec![TargetMeasured::default(); other.targets.len()];
        for (row, measured) in std::mem::take(&mut other.targets).into_iter().enumerate() {
            if let Some(target) = targets.get_mut(row_of(row)) {
                target.merge(measured);
            }
        }
        other.targets = targets;
        other.slowest.map_targets(|row| row_of(row as usize) as u32);
        for kind in other.sessions.iter_mut().flat_map(|sessions| &mut sessions.kinds) {
            let failed = std::mem::take(&mut kind.failed_at).into_iter();
            add_by_name(
                &mut kind.failed_at,
                failed.map(|(row, count)| (row_of(row as usize) as u32, count)).collect(),
            );
        }
        for of in [self, other] {
            if let Some(script) = of.sessions.as_mut().and_then(|s| s.script.as_mut()) {
                script.rows.clone_from(&mine);
            }
        }
    }

    /// Operations started in the window, without further attempts of those that failed.
    pub fn started_first(&self) -> u64 {
        let retries = self.attempts.as_ref().map_or(0, |attempts| attempts.retries_started);
        // Of sessions their steps are retried.
        self.started.saturating_sub(if self.sessions.is_some() { 0 } else { retries })
    }

    /// The lengths of a stage; `None` where they were not measured.
    pub fn stage(&self, stage: Stage) -> Option<&Histogram> {
        self.stages.get(stage as usize)
    }

    /// Forgets the starts from `until` on.
    pub(super) fn cut_starts(&mut self, until: Nanos) {
        self.starts_until = self.starts_until.min(until);
        let kept = self.starts.partition_point(|&t| t < self.starts_until);
        self.starts.truncate(kept);
    }
}

/// The shorter of two optional times.
#[inline]
pub(super) fn shortest(a: Option<Nanos>, b: Option<Nanos>) -> Option<Nanos> {
    a.into_iter().chain(b).min()
}

fn merge_sorted(a: &[Nanos], b: &[Nanos]) -> Vec<Nanos> {
    let mut merged = Vec::with_capacity(a.len() + b.len());
    let (mut a, mut b) = (a, b);
    while let (Some(&first), Some(&second)) = (a.first(), b.first()) {
        if first <= second {
            merged.push(first);
            a = &a[1..];
        } else {
            merged.push(second);
            b = &b[1..];
        }
    }
    merged.extend_from_slice(a);
    merged.extend_from_slice(b);
    merged
}

/// The contribution of one agent to a trial. Times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentMeasured {
    /// Its name, by which it was asked.
    pub agent: String,
    /// Its part of the load, in percent: its workers of all workers.
    pub share_percent: f64,
    /// Worker threads.
    pub workers: u32,
    /// Why nothing is known of what it measured; absent where it delivered. The figures below are
    /// zero or absent then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_because: Option<String>,
    /// Its clock, as the coordinator read it before the trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<AgentClock>,
    /// How long after the common beginning the last of its workers began, by its own clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun_late_ns: Option<u64>,
    /// Operations intended in the window.
    pub attempted: u64,
    /// Operations that ended in a whole response.
    pub completed: u64,
    /// Operations (or sessions) started per second.
    pub started_per_s: f64,
    /// Median response time.
    pub p50_ns: Option<u64>,
    /// 90th percentile of response times.
    pub p90_ns: Option<u64>,
    /// 99th percentile of response times.
    pub p99_ns: Option<u64>,
    /// Mean response time.
    pub mean_ns: Option<f64>,
    /// 95 % confidence interval of it by batch means; absent where the data permit none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ns_ci95: Option<[f64; 2]>,
    /// 99th percentile of its own lateness: started − intended.
    pub pacing_error_p99_ns: Option<u64>,
    /// The share of a core that its busiest worker used, in percent.
    pub busiest_worker_percent: f64,
    /// Share of its host's processor time that the hypervisor gave to others, in percent.
    pub steal_percent: Option<f64>,
    /// The longest time in which its process did not run, or was late by.
    #[serde(default)]
    pub stall_ns_max: u64,
    /// Why JetStream could not store its result; absent where it did. The coordinator fetched the
    /// result from the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_because: Option<String>,
    /// Reasons for which a trial of it alone would be invalid, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invalid_because: Vec<String>,
}

/// The contribution of one agent to an interval of a running trial. It is not kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentInterval {
    /// Its name.
    pub agent: String,
    /// It has not reported this interval. Its counts come with a later one.
    pub is_silent: bool,
    /// Operations that completed with a response.
    pub completed: u64,
    /// Operations that ended otherwise.
    pub errors: u64,
    /// 99th percentile of response time, within 1 %; absent where nothing completed.
    pub p99_ns: Option<u64>,
}

/// The clock of an agent, as the coordinator read it over the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentClock {
    /// How far its time of day is ahead of the coordinator's; negative: behind.
    pub offset_ns: i64,
    /// Half the quickest round trip: the agent began within this time of the intended one.
    pub uncertainty_ns: u64,
    /// Whether its kernel says that its time of day is synchronised (adjtimex(2)).
    pub is_synchronised: bool,
    /// How far its time of day is from the true one at the most, as chrony says there; absent where
    /// chrony does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chrony_error_ns: Option<u64>,
    /// Whether `offset_ns` is no more than chrony permits, there and at the coordinator; absent
    /// where either has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agrees_with_chrony: Option<bool>,
}
