//! One trial as reported: every statistic that is shown anywhere.

use crate::trial::attempts::AttemptsReport;
use crate::trial::detail::{
    DatagramReport, Detail, FlowsReport, HttpDetail, LedgerReport, UdpDetail,
};
use crate::trial::figure::{Figure, RateCertainty, RateRange, TimesReport};
use crate::trial::messages::MessagesReport;
use crate::trial::offered::{LittlesLaw, OfferedReport};
use crate::trial::sessions::SessionsReport;
use crate::trial::slice::Slice;
use crate::trial::timing::TimingReport;
use crate::trial::validity::Clause;
use crate::trial::waiting::WaitReport;
use knee_load::measure::{Interval, Observed, Outcomes, error_share};
use knee_load::spec::Level;
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
