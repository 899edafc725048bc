//! One trial as reported: every statistic that is shown anywhere.

use crate::trial::attempts::AttemptsReport;
use crate::trial::detail::{
    DatagramReport, Detail, FlowsReport, HttpDetail, LedgerReport, UdpDetail,
};
use crate::trial::figure::{Figure, RateCertainty, RateRange};
pub use crate::trial::figure::{PercentilePoint, TimesReport};
use crate::trial::messages::MessagesReport;
use crate::trial::sessions::SessionsReport;
use crate::trial::slice::Slice;
use crate::trial::timing::TimingReport;
use crate::trial::traffic::StepReport;
use crate::trial::validity::Clause;
use crate::trial::waiting::WaitReport;
use knee_load::measure::{Interval, Observed, Outcomes, StatusCodes, error_share};
use knee_load::spec::Level;
use knee_load::stats::gaps::Dispersion;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The statistics of one trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialReport {
    /// A name for people, such as `vusers=10`.
    pub label: String,
    /// The value that the experiment varied.
    pub level: Level,
    /// Length of the measured window.
    pub duration_ns: u64,
    /// Operations intended in the window.
    pub attempted: u64,
    /// Operations that ended in a whole response.
    pub completed: u64,
    /// Responses per second, as achieved in the window after the transient; `None` where not one
    /// response came within it.
    pub throughput_per_s: Option<f64>,
    /// Whether throughput and goodput are the target's, or bounds as the generator was the limit.
    #[serde(default)]
    pub throughput_is: RateCertainty,
    /// 95 % confidence interval of the throughput by batch means; `None` where the data permit
    /// none.
    pub throughput_ci95_per_s: Option<[f64; 2]>,
    /// The range of the throughput. Only reports of earlier versions have it, in the place of the
    /// throughput.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_range_per_s: Option<RateRange>,
    /// Responses that are no failure (of HTTP: with a status below 400) per second; `None` where
    /// not one response came.
    pub goodput_per_s: Option<f64>,
    /// How the operations ended; sums to `attempted`.
    pub outcomes: Outcomes,
    /// From the intended time to the last byte.
    pub response_time_ns: TimesReport,
    /// From when the request was handed to the kernel to the last byte.
    pub service_time_ns: TimesReport,
    /// The load that was offered, against the load asked for.
    pub offered: OfferedReport,
    /// The generator and its use of resources.
    pub generator: GeneratorReport,
    /// Whether throughput and response time neither drift nor jump after the initial transient.
    pub stationary: bool,
    /// Whether the generator measured the target or itself.
    pub verdict: Verdict,
    /// The clauses that make it invalid, in words; empty where valid.
    pub invalid_because: Vec<String>,
    /// The same by name, in the same order; absent where valid, and in reports of before there were
    /// names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invalid_clauses: Vec<Clause>,
    /// Bytes received in the window.
    pub bytes_received: u64,
    /// The part that depends on the kind of trial.
    #[serde(flatten)]
    pub detail: Detail,
    /// The time series.
    pub intervals: Vec<Interval>,
    /// Kernel counters that moved, by name.
    pub kernel: BTreeMap<String, i64>,
}

/// Operations and times without an answer of the target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SilenceReport {
    /// Operations that waited for an answer at the end of the measured time and never got one. Each
    /// waited far longer than an answer takes. In a closed loop: users who hang.
    pub hung: u64,
    /// Hung operations that began before the measured time and waited all through it.
    pub hung_throughout: u64,
    /// The shortest time that a hung operation had waited.
    pub hung_ns_min: Option<u64>,
    /// Times in which work waited and nothing completed: of a second or more, or with failures.
    pub outages: Vec<OutageReport>,
    /// Shorter such times.
    pub pauses: Option<PausesReport>,
}

impl SilenceReport {
    /// Whether the target answered all the time.
    pub fn is_none(&self) -> bool {
        *self == SilenceReport::default()
    }
}

/// A time in which work waited and nothing completed, of a second or more, or with failures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OutageReport {
    /// Begin, from the begin of the window; negative in the warm-up.
    pub start_ns: i64,
    /// End, likewise. It may be after the window, as what was under way is waited for.
    pub end_ns: i64,
    /// Operations that failed in it or were never answered because of it.
    pub failures: u64,
}

/// Pauses of a server, such as a collection of garbage makes: times below a second in which work
/// waited and nothing completed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PausesReport {
    /// Number of pauses.
    pub count: u64,
    /// From the begin of one to that of the next, the median; absent where they have no period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period_ns: Option<u64>,
    /// Length, the mean.
    pub length_ns: u64,
    /// Their share of the time, in percent.
    pub percent: f64,
    /// Begin and end of each, from the begin of the window, or of the sweep: the first thousand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub times_ns: Vec<[i64; 2]>,
}

impl TrialReport {
    /// The clauses that make it invalid, by name where known, with their sentences.
    pub fn clauses(&self) -> impl Iterator<Item = (Option<Clause>, &str)> {
        let names = self.invalid_clauses.iter().copied().map(Some);
        let names = names.chain(std::iter::repeat(None));
        names.zip(self.invalid_because.iter().map(String::as_str))
    }

    /// Whether this clause makes it invalid.
    pub fn breaks(&self, clause: Clause) -> bool {
        self.invalid_clauses.contains(&clause)
    }

    /// The part of a trial of HTTP; `None` for any other.
    pub fn http(&self) -> Option<&HttpDetail> {
        match &self.detail {
            Detail::Http(http) => Some(http),
            Detail::Udp(_) | Detail::Latency(_) | Detail::CutShort => None,
        }
    }

    /// The ledger of datagrams; `None` for any other trial.
    pub fn ledger(&self) -> Option<&LedgerReport> {
        self.udp().map(|udp| &udp.ledger)
    }

    /// Further figures of the datagrams; `None` for any other trial.
    pub fn datagrams(&self) -> Option<&DatagramReport> {
        self.udp().map(|udp| &udp.datagrams)
    }

    fn udp(&self) -> Option<&UdpDetail> {
        match &self.detail {
            Detail::Udp(udp) => Some(udp),
            Detail::Http(_) | Detail::Latency(_) | Detail::CutShort => None,
        }
    }

    /// The flows of a scenario; `None` for any other trial.
    pub fn flows(&self) -> Option<&FlowsReport> {
        match &self.detail {
            Detail::Latency(latency) => Some(&latency.flows),
            Detail::Http(_) | Detail::Udp(_) | Detail::CutShort => None,
        }
    }

    /// The stages of response times; `None` for any trial but one of HTTP.
    pub fn timing(&self) -> Option<&TimingReport> {
        self.http().map(|http| &http.timing)
    }

    /// Observations on the server's host, if there was an observer.
    pub fn observed(&self) -> Option<&Observed> {
        self.http()?.observed.as_ref()
    }

    /// The initial transient that is no part of the throughput.
    pub fn transient_ns(&self) -> u64 {
        self.http().map_or(0, |http| http.transient_ns)
    }

    /// Whether it did not end, so that only its intervals are known.
    pub fn is_cut_short(&self) -> bool {
        matches!(self.detail, Detail::CutShort)
    }

    /// Responses per second, with none for a trial that saw none: for conclusions that compare
    /// trials, to which that is the least there is. Where users do sessions, those that ended with
    /// a response: what was asked for are sessions then. One that found no connection had none.
    pub fn responses_per_s(&self) -> f64 {
        let per_s = match self.sessions() {
            Some(sessions) if sessions.attempts.is_some() => sessions.completed_per_s,
            Some(sessions) => sessions.answered_per_s,
            None => self.throughput_at_least_per_s(),
        };
        per_s.unwrap_or(0.0)
    }

    /// The statement about the throughput.
    pub fn throughput(&self) -> Figure<f64> {
        match (self.throughput_per_s, &self.throughput_range_per_s) {
            (Some(per_s), _) => self.throughput_is.of(per_s),
            (None, Some(range)) => Figure::Within(range.at_least, range.at_most),
            (None, None) => Figure::Absent,
        }
    }

    /// The statement about the goodput.
    pub fn goodput(&self) -> Figure<f64> {
        match (self.goodput_per_s, self.throughput_range_per_s.is_some()) {
            (Some(per_s), _) => self.throughput_is.of(per_s),
            (None, true) => self.throughput(),
            (None, false) => Figure::Absent,
        }
    }

    /// The requests of users and their attempts, where failed attempts are retried.
    pub fn requests(&self) -> Option<&AttemptsReport> {
        self.http()?.requests.as_ref()
    }

    /// The same, to change it.
    pub fn requests_mut(&mut self) -> Option<&mut AttemptsReport> {
        match &mut self.detail {
            Detail::Http(http) => http.requests.as_mut(),
            _ => None,
        }
    }

    /// Response times of the operations that succeeded, where others did not.
    pub fn served(&self) -> Option<&TimesReport> {
        self.http()?.served_time_ns.as_deref()
    }

    /// The same where most operations failed, so that the response times are those of failures.
    pub fn served_of_few(&self) -> Option<&TimesReport> {
        self.served().filter(|_| error_share(&self.outcomes) > 0.5)
    }

    pub(super) fn served_mut(&mut self) -> Option<&mut TimesReport> {
        match &mut self.detail {
            Detail::Http(http) => http.served_time_ns.as_deref_mut(),
            _ => None,
        }
    }

    /// The streams of messages of the trial, if any.
    pub fn messages(&self) -> Option<&MessagesReport> {
        self.http()?.messages.as_ref()
    }

    /// The throughput as measured, which is its lower bound where it is not determined.
    pub fn throughput_at_least_per_s(&self) -> Option<f64> {
        self.throughput().at_least()
    }

    /// Successful responses per second, or completed sessions; 0 where there was none.
    pub fn successes_per_s(&self) -> f64 {
        let per_s = match self.sessions() {
            Some(sessions) => sessions.completed_per_s,
            None => self.goodput_at_least_per_s(),
        };
        per_s.unwrap_or(0.0)
    }

    /// The goodput as measured, which is its lower bound where it is not determined.
    pub fn goodput_at_least_per_s(&self) -> Option<f64> {
        let good_share = self.outcomes.good_share();
        let at_least = || Some(self.throughput_range_per_s.as_ref()?.at_least * good_share);
        self.goodput_per_s.or_else(at_least)
    }

    /// The attempts of an overload by their outcome: operations, or sessions with a connection
    /// each.
    pub fn attempts(&self) -> &Outcomes {
        let sessions = self.sessions().and_then(|s| s.attempts.as_ref());
        sessions.map_or(&self.outcomes, |attempts| &attempts.outcomes)
    }

    /// Its place as a slice of an experiment in rounds.
    pub fn slice(&self) -> Option<&Slice> {
        self.http()?.slice.as_ref()
    }

    /// Marks it as a slice of an experiment in rounds. Only a trial of HTTP can be one.
    pub fn set_slice(&mut self, slice: Option<Slice>) {
        if let Detail::Http(http) = &mut self.detail {
            http.slice = slice;
        }
    }

    /// Sets what Little's law says of it.
    pub(crate) fn set_littles_law(&mut self, law: Option<LittlesLaw>) {
        if let Detail::Http(http) = &mut self.detail {
            http.littles_law = law;
        }
    }

    /// The sessions of users, where operations are steps of sessions.
    pub fn sessions(&self) -> Option<&SessionsReport> {
        self.http()?.sessions.as_ref()
    }
}

/// What went over the connections; its keys stand among those of the trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrafficReport {
    /// Numbers of responses by status; they sum to `completed`.
    #[serde(default, skip_serializing_if = "StatusCodes::is_empty")]
    pub status_codes: StatusCodes,
    /// Bytes of the requests that were sent whole and ended in the window.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bytes_sent: u64,
    /// Bytes sent per second of the window; absent where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_sent_per_s: Option<f64>,
    /// Bytes received in the window per second of it; absent where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_received_per_s: Option<f64>,
    /// The most connections that may be open at once; open loop only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections_limit: Option<u64>,
    /// Operations that timed out before they were sent, as they waited for a connection.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unsent: u64,
    /// Whole responses after which bytes came that nobody asked for, in the whole trial.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub surplus_responses: u64,
    /// Answers that no operation under way waited for, in the whole trial: late, repeated or never
    /// asked for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unmatched_answers: u64,
    /// Answers that did not fit into their datagrams, in the whole trial. Their operations went on
    /// over TCP.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub truncated_answers: u64,
    /// Lines of the file of questions that are none, and were not sent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped_lines: u64,
    /// Times at which all 65,536 ids of a connection were taken, in the whole trial.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ids_exhausted: u64,
    /// Each target on its own, in the order of the targets file; absent where there is one. Of
    /// sessions each step, however many there are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetReport>,
}

/// The figures of one target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetReport {
    /// `GET /path`; of the last of very many `other targets`.
    pub target: String,
    /// Number of targets that it sums up; absent for one target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum_of: Option<u64>,
    /// Operations intended in the window.
    pub attempted: u64,
    /// Operations that ended in a whole response.
    pub completed: u64,
    /// Outcomes of its operations; they sum to `attempted`.
    pub outcomes: Outcomes,
    /// Numbers of responses by status; they sum to `completed`.
    pub status_codes: StatusCodes,
    /// Response times: completed − intended.
    pub response_time_ns: TimesReport,
    /// Further figures if it is a step of sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepReport>,
}

pub(super) fn is_zero<N: Default + PartialEq>(n: &N) -> bool {
    *n == N::default()
}

/// The load that was offered, against the load asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OfferedReport {
    /// Operations asked for per second; `None` in a closed loop.
    pub asked_per_s: Option<f64>,
    /// Operations started per second.
    pub achieved_per_s: f64,
    /// The arrival process, or `closed`.
    pub arrival: String,
    /// The load changes over time by plan, as a ramp does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changes_by_plan: bool,
    /// Coefficient of variation of the gaps between starts; open loop.
    pub gap_cv: Option<f64>,
    /// Index of dispersion of counts (variance over mean) at four time scales; open loop.
    pub dispersion: Option<Dispersion>,
    /// The same of recorded times, as they were asked for; `None` with another process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<RecordedGaps>,
    /// p-value of the Kolmogorov–Smirnov test of the gaps against the exponential law; Poisson
    /// only.
    pub ks_p_value: Option<f64>,
    /// The generator's own lateness: started − intended.
    pub pacing_error_ns: QuantilesReport,
    /// Waits for a free connection; absent where operations need none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_wait_ns: Option<QuantilesReport>,
    /// The longest stall of any worker past a deadline.
    pub stall_ns_max: u64,
}

/// How uneven recorded times are, within the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordedGaps {
    /// Coefficient of variation of their gaps.
    pub gap_cv: Option<f64>,
    /// Index of dispersion of their counts at four time scales.
    pub dispersion: Dispersion,
}

/// A few percentiles in nanoseconds, `None` where the observations do not tell them, as in
/// [`TimesReport`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QuantilesReport {
    /// Median.
    pub p50: Option<u64>,
    /// 99th percentile.
    pub p99: Option<u64>,
    /// 99.9th percentile.
    pub p999: Option<u64>,
    /// Largest.
    pub max: Option<u64>,
}

/// The generator and its use of resources over the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorReport {
    /// `epoll` or `io_uring`.
    pub backend: String,
    /// Worker threads.
    pub workers: u32,
    /// Processor time in user mode.
    pub cpu_user_s: f64,
    /// Processor time in the kernel.
    pub cpu_system_s: f64,
    /// Processor time per million operations; `None` where none completed.
    pub cpu_s_per_million_ops: Option<f64>,
    /// Processor time in user mode per million operations.
    pub cpu_user_s_per_million_ops: Option<f64>,
    /// The share of a core that the busiest worker used, polling for deadlines included.
    pub busiest_worker_percent: f64,
    /// The part of that spent polling for a deadline, which yields to work.
    pub busiest_worker_spin_percent: f64,
    /// The share of the time in which it was ready to run but others had its core.
    #[serde(default)]
    pub busiest_worker_waiting_percent: f64,
    /// The share of the host's processor time that the hypervisor gave to others. `null` where the
    /// trial was too short for the host's counters, which have 100 ticks per second.
    pub steal_percent: Option<f64>,
    /// Largest resident memory of the process.
    pub peak_rss_bytes: u64,
    /// How often per second a response woke a sleeping worker. Only in a closed loop without pauses
    /// whose target is on the generator's host; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub woken_by_target_per_s: Option<f64>,
    /// How the workers waited; absent where nothing tells.
    pub wait: Option<WaitReport>,
}

/// A generator that polls spends processor time that no operation needs, from this share on.
const POLLING_PERCENT: f64 = 1.0;

impl GeneratorReport {
    /// Processor time per operation in µs; `None` where the generator polled or none completed.
    pub fn cpu_us_per_op(&self) -> Option<f64> {
        let polls = self.busiest_worker_spin_percent > POLLING_PERCENT;
        self.cpu_s_per_million_ops.filter(|us| !polls && *us > 0.0)
    }
}

/// Little's law for a closed loop: N = X·(R + Z).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LittlesLaw {
    /// Virtual users.
    pub n: f64,
    /// Throughput times the sum of mean response time and mean pause.
    pub x_times_r: f64,
    /// By how much the second deviates from the first.
    pub deviation_percent: f64,
    /// Whether the deviation is within 2.5 %.
    pub ok: bool,
}

/// Whether the generator measured the target or itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The numbers are the target's.
    #[default]
    Valid,
    /// The generator limited or distorted the result; findings say how.
    Invalid,
}
