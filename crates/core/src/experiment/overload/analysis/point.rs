//! One trial of an overload.

use super::{OverloadSetting, Silence};
use crate::experiment::overload::report::LevelRow;
use crate::trial::bounds::{BUSY_PERCENT, BUSY_WINDOW};
use crate::trial::figure::RateRange;
use crate::trial::report::{TrialReport, Verdict};
use crate::trial::validity::Clause;
use knee_load::measure::{Outcome, Outcomes, SynSource};
use knee_load::spec::Level;
use knee_load::time::Nanos;
use std::collections::BTreeMap;

/// From this share of unanswered attempts on a level offers more than is served.
const UNANSWERED_SHARE: f64 = 0.02;
/// Where the accept queue is full, so does one at which this many times as much arrives.
const ABOVE_SERVED: f64 = 1.02;
/// Counts this share apart are not the same, …
const DISAGREE_SHARE: f64 = 0.001;
/// … where this many may fall on the other side of a window's ends.
const EDGE_OPERATIONS: f64 = 10.0;

/// An unanswered SYN is sent again after this long at first (RFC 6298).
pub const SYN_AGAIN: Nanos = Nanos::from_secs(1);

/// By how much a counter of the kernel rose.
fn counter_rise(kernel: &BTreeMap<String, i64>, name: &str) -> u64 {
    kernel.get(name).copied().unwrap_or(0).max(0) as u64
}

/// What one trial shows.
#[derive(Clone, Debug, PartialEq)]
pub struct OverloadPoint {
    /// The trial's level: simple clients, descriptors of S-Clients, or the rate of a schedule.
    pub level: Level,
    /// What a report shows of it.
    pub row: LevelRow,
    /// What counted the SYNs.
    pub source: SynSource,
    /// SYNs that the generator started in the window, per second: attempts less those that found
    /// no port or descriptor.
    pub attempts_per_s: f64,
    /// Attempts that were established here, per second.
    pub established_per_s: f64,
    /// Whether its attempts are sessions.
    pub of_sessions: bool,
    /// Drops on the server's whole host because the queue of a socket was full: SYNs and last
    /// segments of handshakes, or datagrams. `None` where nobody counted.
    pub queue_drops: Option<u64>,
    /// Datagrams that found their port closed on the generator's host, in the whole trial.
    pub closed_port_datagrams: u64,
    /// Connects per second that S-Clients do not wait for. They are those that are served. Of
    /// sessions, which take their time, they are those that are established, and those of later
    /// steps. Over datagrams they are those that are answered.
    pub taken_per_s: f64,
    /// Whether anything that was asked for was answered with what was wanted.
    pub has_answered: bool,
    /// Whether a time in which nothing is served shows that the server stopped.
    pub shows_stops: bool,
    /// A time in which nothing was served, although something was before or after it.
    pub silence: Option<Silence>,
    /// Connection starts per second that the level stands for.
    pub offered_per_s: f64,
    /// Whether more is offered than served.
    pub past_saturation: bool,
    /// Whether the generator measured the server, and not itself.
    pub is_valid: bool,
    /// Whether the generator did not start all that was due.
    pub fell_behind: bool,
    /// The share of a core that the busiest worker used, polling apart, in percent.
    pub busy_percent: f64,
    /// Whether it used a whole core.
    pub is_core_full: bool,
    /// What the generator should have started per second: the attempts whose time came.
    pub due_per_s: f64,
    /// Length of the window.
    pub seconds: f64,
}

impl OverloadPoint {
    /// What the trial shows; `None` of one that is no overload, or had no window.
    pub fn of(trial: &TrialReport, setting: &OverloadSetting) -> Option<OverloadPoint> {
        let seconds = trial.duration_ns as f64 / 1e9;
        let is_overload = !matches!(trial.level, Level::Vusers(_) | Level::Flows { .. });
        if !is_overload || seconds <= 0.0 {
            return None;
        }
        let outcomes = trial.attempts();
        let sent_share = 1.0 - outcomes.no_resources() as f64 / outcomes.total().max(1) as f64;
        let started_per_s = trial.offered.achieved_per_s * sent_share;
        // One attempt is one connection, but for sessions whose connection the server closed.
        let of_sessions = trial.sessions().and_then(|s| s.attempts.as_ref());
        let (attempts_per_s, established_per_s) = match of_sessions {
            Some(s) => (s.connections as f64 / seconds, s.established as f64 / seconds),
            None => (started_per_s, established(&trial.outcomes) as f64 / seconds),
        };
        let is_of_datagrams = setting.is_of_datagrams();
        // A server that answers each datagram after T serves nothing, and has not stopped.
        let shows_stops = !is_of_datagrams || outcomes.count(Outcome::Refused) > 0;
        let silence = Silence::of(trial).filter(|_| shows_stops);
        let (served_per_s, served_ci95_per_s) = served(trial, silence);
        let is_least = !trial.throughput_is.is_determined() && trial.sessions().is_none();
        let served_range_per_s = (is_least && silence.is_none()).then(|| RateRange {
            at_least: served_per_s,
            at_most: None,
            because: "the generator was the limit".to_owned(),
        });
        let waits = matches!(trial.level, Level::Clients(_)) || setting.patience >= SYN_AGAIN;
        let (source, first_syn_per_s, repeated_syn_per_s) = syn_rates(trial, attempts_per_s, waits);
        let seen = trial.observed();
        let row = LevelRow {
            syn_per_s: first_syn_per_s + repeated_syn_per_s,
            first_syn_per_s,
            served_per_s,
            served_ci95_per_s,
            served_range_per_s,
            outcomes: outcomes.clone(),
            accept_queue_max: seen.and_then(|seen| seen.accept_queue_max),
            accept_queue_limit: seen.and_then(|seen| seen.accept_queue_limit),
            server_busy_percent: seen.map(|seen| seen.cpu_busy_percent),
        };
        let (taken_per_s, answered_per_s) = if of_sessions.is_some() {
            let later_per_s = (attempts_per_s - started_per_s).max(0.0);
            (established_per_s + later_per_s, established_per_s)
        } else if is_of_datagrams {
            (trial.responses_per_s(), trial.responses_per_s())
        } else {
            (served_per_s, trial.responses_per_s())
        };
        let intended_per_s = outcomes.total() as f64 * 1e9 / trial.duration_ns as f64;
        let (offered_per_s, due_per_s) = match trial.level {
            Level::Descriptors(d) => {
                (taken_per_s + f64::from(d) / setting.patience.as_secs_f64(), intended_per_s)
            }
            Level::RatePerS(rate) => {
                let asked = trial.offered.asked_per_s.unwrap_or(rate);
                (asked, asked.max(intended_per_s))
            }
            // Simple clients offer what they start, and that is all.
            _ => (first_syn_per_s, trial.offered.achieved_per_s),
        };
        let drops: &[&str] = if is_of_datagrams {
            &["UdpRcvbufErrors"]
        } else {
            &["TcpExtListenDrops", "TcpExtListenOverflows", "TcpExtTCPReqQFullDrop"]
        };
        let queue_drops = seen.filter(|seen| seen.elapsed_ns > 0).map(|seen| {
            drops.iter().map(|name| counter_rise(&seen.kernel, name)).fold(0, u64::max)
        });
        let is_queue_full = is_queue_full(&row) && first_syn_per_s > ABOVE_SERVED * answered_per_s;
        let g = &trial.generator;
        let busy_percent = g.busiest_worker_percent - g.busiest_worker_spin_percent;
        Some(OverloadPoint {
            level: trial.level,
            source,
            attempts_per_s,
            established_per_s,
            of_sessions: of_sessions.is_some(),
            queue_drops,
            closed_port_datagrams: counter_rise(&trial.kernel, "UdpNoPorts"),
            taken_per_s,
            has_answered: served_count(&trial.outcomes) > 0,
            shows_stops,
            silence,
            offered_per_s,
            past_saturation: lacks_answers(outcomes, setting) || is_queue_full,
            is_valid: trial.verdict == Verdict::Valid,
            fell_behind: trial.breaks(Clause::FellBehind),
            busy_percent,
            is_core_full: busy_percent > BUSY_PERCENT && trial.duration_ns >= BUSY_WINDOW.0,
            due_per_s,
            seconds,
            row,
        })
    }

    /// The points of those of these trials that are overloads and had a window.
    pub fn all(trials: &[TrialReport], setting: &OverloadSetting) -> Vec<OverloadPoint> {
        trials.iter().filter_map(|trial| OverloadPoint::of(trial, setting)).collect()
    }

    /// Bounds of what was served, per second: the interval of confidence, or the range.
    pub fn served_bounds_per_s(&self) -> Option<[f64; 2]> {
        let range = self.row.served_range_per_s.as_ref();
        let bounds = range.map(|r| [r.at_least, r.at_most.unwrap_or(f64::INFINITY)]);
        self.row.served_ci95_per_s.or(bounds)
    }

    /// Bounds of what was served, per second. Where neither the interval nor the range is known, it
    /// is taken to vary as independent arrivals do.
    pub fn served_between(&self) -> [f64; 2] {
        let by_count = || count_between(self.row.served_per_s * self.seconds, self.seconds);
        self.served_bounds_per_s().unwrap_or_else(by_count)
    }

    /// SYNs that came again, per second.
    pub fn repeated_syn_per_s(&self) -> f64 {
        self.row.syn_per_s - self.row.first_syn_per_s
    }

    /// The share of the attempts that ended so, in percent.
    pub fn percent(&self, outcome: Outcome) -> f64 {
        100.0 * self.row.outcomes.count(outcome) as f64 / self.row.outcomes.total().max(1) as f64
    }

    /// The share of the established connections that ended so, in percent.
    pub fn percent_of_established(&self, outcome: Outcome) -> f64 {
        100.0 * self.row.outcomes.count(outcome) as f64 / self.established().max(1) as f64
    }

    /// Whether connections are started whatever the server does.
    pub fn is_pressing(&self) -> bool {
        self.clients().is_none()
    }

    /// How many simple clients there were; `None` where there were none.
    pub fn clients(&self) -> Option<u32> {
        match self.level {
            Level::Clients(clients) => Some(clients),
            _ => None,
        }
    }

    /// Responses that are no refusal.
    pub fn served(&self) -> u64 {
        served_count(&self.row.outcomes)
    }

    /// Whether anything was: an attempt of this window, or a part of one, or one from before it.
    pub fn has_served(&self) -> bool {
        self.has_answered || self.row.served_per_s > 0.0
    }

    /// Attempts that the server's host answered with a connection.
    pub fn established(&self) -> u64 {
        established(&self.row.outcomes)
    }

    /// Whether more arrives than is served, as SYNs without an answer or as connections that fail.
    pub fn is_beyond(&self) -> bool {
        let failed = self.row.outcomes.errors() - self.row.outcomes.no_resources();
        self.past_saturation || failed as f64 > UNANSWERED_SHARE * self.row.outcomes.total() as f64
    }

    /// Whether the generator did not start all that was due, or had no time left. The time that a
    /// connect takes is no sign of that. One that is established only after its SYN was sent again
    /// is replaced later than one that is established at once.
    pub fn is_limited(&self) -> bool {
        self.is_core_full || self.fell_behind
    }

    /// Whether it shows what a server does that is pressed, from the begin of the window to its
    /// end.
    pub fn counts(&self) -> bool {
        self.is_valid && self.silence.is_none()
    }

    /// By how much the SYNs captured differ from those that the generator started, in percent.
    /// `None` where they agree within a thousandth, or where no capture counted.
    pub fn capture_differs_percent(&self) -> Option<f64> {
        let apart = (self.row.first_syn_per_s - self.attempts_per_s).abs();
        let differs = self.source == SynSource::Capture
            && apart > DISAGREE_SHARE * self.attempts_per_s
            && apart * self.seconds > EDGE_OPERATIONS;
        let percent = 100.0 * apart / self.attempts_per_s.max(f64::MIN_POSITIVE);
        differs.then_some(percent.min(1e6))
    }
}

/// Whether the accept queue was full at some time.
pub(super) fn is_queue_full(row: &LevelRow) -> bool {
    row.accept_queue_max.zip(row.accept_queue_limit).is_some_and(|(max, limit)| max >= limit)
}

/// What counted the SYNs, first SYNs per second, and those that came again per second.
///
/// The kernel's counters do not separate a SYN that came again from a first one. Where clients
/// wait long enough to send again, what came beyond what was started is taken to have come again.
/// Where nobody looked at the server, nothing is known of that.
fn syn_rates(
    trial: &TrialReport,
    attempts_per_s: f64,
    is_sent_again: bool,
) -> (SynSource, f64, f64) {
    let seen = trial.observed().filter(|o| o.elapsed_ns > 0 && o.source != SynSource::Attempts);
    let Some(seen) = seen else {
        return (SynSource::Attempts, attempts_per_s, 0.0);
    };
    let per_s = |n: u64| n as f64 * 1e9 / seen.elapsed_ns as f64;
    let (first_per_s, repeated_per_s) = (per_s(seen.first_syns), per_s(seen.repeated_syns));
    if seen.source == SynSource::Capture {
        return (SynSource::Capture, first_per_s, repeated_per_s);
    }
    let first_alone = if is_sent_again { first_per_s.min(attempts_per_s) } else { first_per_s };
    (SynSource::Counters, first_alone, first_per_s - first_alone)
}

/// Responses per second that are no refusal, with their 95 % confidence interval. Where the server
/// stopped for a while it is what the whole window saw.
fn served(trial: &TrialReport, silence: Option<Silence>) -> (f64, Option<[f64; 2]>) {
    if let Some(sessions) = trial.sessions() {
        let ci95 = sessions.completed_ci95_per_s;
        return (trial.successes_per_s(), ci95.filter(|_| silence.is_none()));
    }
    let responses = trial.outcomes.responses();
    let refusals = responses - served_count(&trial.outcomes);
    let share = 1.0 - refusals as f64 / responses.max(1) as f64;
    if silence.is_some() {
        let came: u64 = trial.intervals.iter().map(|i| i.completed).sum();
        let seconds = trial.duration_ns as f64 / 1e9;
        return (share * came as f64 / seconds, None);
    }
    let ci95 = trial.throughput_ci95_per_s.filter(|_| refusals == 0);
    (share * trial.responses_per_s(), ci95)
}

/// The 95 % bounds of a rate by a count of independent events.
pub(super) fn count_between(count: f64, seconds: f64) -> [f64; 2] {
    let half = 2.0 * (count + 1.0).sqrt();
    [(count - half).max(0.0) / seconds, (count + half + 2.0) / seconds]
}

fn served_count(outcomes: &Outcomes) -> u64 {
    outcomes.count(Outcome::Served) + outcomes.count(Outcome::Ok)
}

/// Attempts that the server's host answered with a connection.
fn established(outcomes: &Outcomes) -> u64 {
    let unestablished = [
        Outcome::ConnectTimeout,
        Outcome::Refused,
        Outcome::Unreachable,
        Outcome::OtherError,
        Outcome::Shed,
        Outcome::InFlight,
        Outcome::Late,
    ];
    let unestablished: u64 = unestablished.map(|o| outcomes.count(o)).iter().sum();
    outcomes.total() - outcomes.no_resources() - unestablished
}

/// Whether more is offered than served: too many attempts are not answered within T.
fn lacks_answers(outcomes: &Outcomes, setting: &OverloadSetting) -> bool {
    let unanswered = outcomes.count(setting.unanswered())
        + outcomes.count(Outcome::Late)
        + outcomes.count(Outcome::Ghost);
    unanswered as f64 > UNANSWERED_SHARE * outcomes.total() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::overload::tests::trials::{SETTING, clients, report, sclients};
    use crate::trial::sessions::SessionsReport;
    use knee_load::measure::SessionAttempts;

    fn point(trial: &TrialReport) -> OverloadPoint {
        OverloadPoint::of(trial, &SETTING).expect("an overload")
    }

    #[test]
    fn what_counts_syns_in_order_of_trust() {
        let mut trial = sclients(64, 1_300);
        let observed = trial.as_http_mut().observed.as_mut().expect("captured");
        (observed.first_syns, observed.repeated_syns) = (2_000, 50);
        // The observer's window may be cut shorter than the trial's.
        observed.elapsed_ns = 5_000_000_000;
        let captured = point(&trial);
        assert_eq!((captured.row.first_syn_per_s, captured.row.syn_per_s), (400.0, 410.0));
        trial.as_http_mut().observed.as_mut().expect("counted").source = SynSource::Counters;
        let counted = point(&trial);
        assert_eq!((counted.source, counted.row.first_syn_per_s), (SynSource::Counters, 400.0));
        trial.as_http_mut().observed.as_mut().expect("nothing").elapsed_ns = 0;
        let own = point(&trial);
        // 1,300 served and 20 for each of 64 descriptors, in 10 s.
        assert_eq!((own.source, own.row.syn_per_s), (SynSource::Attempts, 258.0));
        trial.as_http_mut().observed = None;
        let row = LevelRow { server_busy_percent: None, ..own.row.clone() };
        assert_eq!(point(&trial), OverloadPoint { row, ..own });
    }

    #[test]
    fn attempts_without_a_port_sent_no_syn() {
        let ends = [(Outcome::Served, 900), (Outcome::PortExhausted, 100)];
        let p = point(&report(Level::Descriptors(1), &ends));
        assert!((p.attempts_per_s - 90.0).abs() < 1e-9);
        assert_eq!(p.capture_differs_percent(), None);
        assert!((p.established_per_s - 90.0).abs() < 1e-9);
    }

    #[test]
    fn saturation_shows_in_time_outs_or_in_a_full_queue() {
        let ends = |unanswered| {
            let ends = [(Outcome::Served, 1_000), (Outcome::ConnectTimeout, unanswered)];
            report(Level::Descriptors(10), &ends)
        };
        assert!(point(&ends(21)).past_saturation);
        assert!(!point(&ends(20)).past_saturation, "2 % of 1,020 and less");
        let mut full = ends(0);
        let observed = full.as_http_mut().observed.as_mut().expect("captured");
        (observed.accept_queue_max, observed.accept_queue_limit) = (Some(128), Some(128));
        assert!(!point(&full).past_saturation, "all that came was served");
        full.as_http_mut().observed.as_mut().expect("captured").first_syns = 1_021;
        assert!(point(&full).past_saturation);
        full.as_http_mut().observed.as_mut().expect("captured").accept_queue_max = Some(127);
        assert!(!point(&full).past_saturation);
    }

    #[test]
    fn what_is_no_overload_is_no_point() {
        let users = report(Level::Vusers(3), &[(Outcome::Ok, 10)]);
        assert_eq!(OverloadPoint::of(&users, &SETTING), None);
        let mut none = clients(1, 0);
        none.duration_ns = 0;
        assert_eq!(OverloadPoint::of(&none, &SETTING), None);
    }

    #[test]
    fn sessions_are_the_attempts_and_their_steps_are_not() {
        let steps = [(Outcome::Ok, 3_000), (Outcome::ConnectTimeout, 1_280)];
        let mut trial = report(Level::Descriptors(64), &steps);
        // Of 2,580 sessions in 10 s 20 opened another connection.
        trial.offered.achieved_per_s = 258.0;
        let ends =
            [(Outcome::Served, 1_200), (Outcome::HTTP_5XX, 100), (Outcome::ConnectTimeout, 1_280)];
        let mut attempts = SessionAttempts {
            established: 1_300,
            connections: 2_600,
            ..SessionAttempts::default()
        };
        for (end, count) in ends {
            attempts.outcomes.add_many(end, count);
        }
        trial.as_http_mut().sessions = Some(SessionsReport {
            ended_per_s: Some(258.0),
            completed_per_s: Some(120.0),
            completed_ci95_per_s: Some([118.0, 122.0]),
            attempts: Some(attempts),
            ..SessionsReport::default()
        });
        let p = point(&trial);
        assert_eq!((p.row.outcomes.total(), p.row.served_per_s), (2_580, 120.0));
        assert_eq!((p.attempts_per_s, p.established_per_s), (260.0, 130.0));
        // 130 established, 2 of later steps, and 64 descriptors over half a second.
        assert_eq!((p.taken_per_s, p.offered_per_s), (132.0, 260.0));
        assert!(p.of_sessions && p.past_saturation && p.has_served());
        assert_eq!(p.row.served_ci95_per_s, Some([118.0, 122.0]));
        let sessions = trial.as_http_mut().sessions.as_mut().unwrap();
        sessions.completed_per_s = None;
        assert!(point(&trial).has_served(), "steps were answered");
        trial.outcomes = report(trial.level, &[(Outcome::ConnectTimeout, 9)]).outcomes;
        assert!(!point(&trial).has_served());
    }
}
