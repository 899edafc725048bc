//! What trials of an overload show: what arrived, what was served, and how the one goes with the
//! other.
//!
//! On the server's host: why connects are not answered, and whether a silent server accepts. Over
//! the levels: whether service came back under the base load.

mod point;
mod stop;
mod summary;

use crate::experiment::overload::report::{CameBack, Recovery};
use crate::trial::report::TrialReport;
use crate::words::{number, ratio};
use knee_load::measure::{Outcome, SynSource};
use knee_load::spec::CloseKind;
use knee_load::time::Nanos;
pub use point::{OverloadPoint, SYN_AGAIN};
use point::{count_between, is_queue_full};
use std::borrow::Cow;
pub use stop::{ServerStop, Silence, StopEnd};
pub use summary::{BeyondCapacity, LineFit, OverloadSummary, PRESSED_FACTOR, most_served_per_s};

/// Settings of the overload that its trials do not have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OverloadSetting {
    /// T: the time limit of a connect, after which it is closed and replaced. Over datagrams, that
    /// of the answer.
    pub patience: Nanos,
    /// Maximum connects in flight at once where a schedule started them.
    pub scheduled_descriptors: u32,
    /// How connections were closed; `None` where attempts are requests in datagrams.
    pub close: Option<CloseKind>,
    /// How long each level was warmed up.
    pub warmup: Nanos,
    /// How many times the capacity was to be offered; `None` where levels were given.
    pub wanted_factor: Option<f64>,
}

impl OverloadSetting {
    /// Whether attempts are requests in datagrams, and no connects.
    pub fn is_of_datagrams(&self) -> bool {
        self.close.is_none()
    }

    /// How an attempt ends that the server does not answer within T.
    pub fn unanswered(&self) -> Outcome {
        if self.is_of_datagrams() { Outcome::ResponseTimeout } else { Outcome::ConnectTimeout }
    }
}

/// How many times the one goes into the other, in words: `16.3`, `2`.
pub fn times(many: f64, one: f64) -> String {
    match many / one {
        t if t >= 10.0 => number((10.0 * t).round() / 10.0),
        t => ratio(t),
    }
}

/// How unserved attempts ended, in words that follow their number.
pub fn end(how: Outcome) -> Cow<'static, str> {
    Cow::Borrowed(match how {
        Outcome::Refused => "were refused",
        Outcome::Reset => "were reset before their response",
        Outcome::Closed => "were accepted and closed without a response",
        Outcome::Truncated => "were closed in the middle of the response",
        Outcome::Malformed => "received a malformed response",
        Outcome::HTTP_4XX => "received a 4xx response",
        Outcome::HTTP_5XX => "received a 5xx response",
        Outcome::Failed(_) => return Cow::Owned(format!("received {}", how.meaning())),
        Outcome::ResponseTimeout | Outcome::Timeout => "received no whole response in time",
        Outcome::Ghost => "were established at the generator and never at the server",
        Outcome::ConnectTimeout => "received no answer to their SYN",
        Outcome::HandshakeTimeout => "were established, but not secured in time",
        Outcome::HandshakeFailed => "were established, but their TLS handshake failed",
        Outcome::ProxyRefused => "reached the proxy, which did not connect them to the server",
        Outcome::RefusedStream => "had their stream refused",
        Outcome::StreamReset => "had their stream reset",
        Outcome::Unprocessed => "were not processed before their connection was closed",
        Outcome::Unexpected => "received a response that failed a check",
        Outcome::TooManyRedirections => "were redirected more often than permitted",
        Outcome::Late => "were established only after T",
        Outcome::Unreachable => "found the host or its network unreachable",
        Outcome::InFlight => "had no end when the level ended",
        Outcome::PortExhausted => "found no local port",
        Outcome::DescriptorExhausted => "found no descriptor",
        _ => "ended in another error",
    })
}

/// The server's kernel dropped this share of the unanswered SYNs or datagrams at least where its
/// queues are the reason.
pub const DROPPED_SHARE: f64 = 0.5;
/// A server accepts that has a smaller share of its connections in the accept queue.
const ACCEPTING_SHARE: f64 = 0.1;
/// More connections than this multiple of the accept queue are established only if the server
/// accepts.
const QUEUES: u64 = 2;
/// A smaller share of the SYNs arrives where they are lost on their way.
const ARRIVED_SHARE: f64 = 0.5;

/// Why connects are not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnansweredCause {
    /// The accept queue, or that of requests, was full.
    QueueFull,
    /// SYNs reach the server's host, and none of its listening sockets dropped them.
    DroppedThere,
    /// SYNs do not reach the server's host.
    DroppedBefore,
    /// Nothing is ever answered, and nobody looked at the server.
    Silent,
    /// Nobody looked at the server.
    Unknown,
}

impl OverloadPoint {
    /// Why connects of this trial were not answered; of one in which all were it means nothing.
    pub fn why_unanswered(&self) -> UnansweredCause {
        let timeouts = self.row.outcomes.count(Outcome::ConnectTimeout) as f64;
        let Some(drops) = self.queue_drops else {
            return match self.established() {
                0 => UnansweredCause::Silent,
                _ => UnansweredCause::Unknown,
            };
        };
        let uncounted = drops == 0 && is_queue_full(&self.row);
        if drops as f64 >= DROPPED_SHARE * timeouts || uncounted {
            return UnansweredCause::QueueFull;
        }
        let is_captured = self.source == SynSource::Capture;
        if is_captured && self.row.first_syn_per_s < ARRIVED_SHARE * self.attempts_per_s {
            UnansweredCause::DroppedBefore
        } else {
            UnansweredCause::DroppedThere
        }
    }

    /// Whether a server that answered no request of this trial takes connections out of its accept
    /// queue; `None` where nobody looked.
    pub fn accepts(&self) -> Option<bool> {
        // An established connection that was never one there found the queue full.
        let ghosts = self.row.outcomes.count(Outcome::Ghost);
        let established = self.established() - ghosts;
        let Some(most) = self.row.accept_queue_max else {
            return (ghosts > 0).then_some(false);
        };
        let holds = u64::from(self.row.accept_queue_limit.unwrap_or(0).max(most)) + 1;
        let stays =
            is_queue_full(&self.row) || f64::from(most) >= ACCEPTING_SHARE * established as f64;
        Some(!stays || established > QUEUES * holds)
    }
}

/// Service has not come back where for certain less than this share of what was served at first is
/// served again; …
const LOST_SHARE: f64 = 0.9;
/// … and it has come back where at least this share is certain and more is possible.
const KNOWN_SHARE: f64 = 1.0 / 3.0;

/// The base load among these levels: the first that counts of those before the heaviest.
///
/// # Errors
/// Why there is none.
pub fn base(points: &[OverloadPoint]) -> Result<&OverloadPoint, &'static str> {
    let heaviest = heaviest(points).map(weight);
    let before = points.iter().position(|p| Some(weight(p)) == heaviest);
    let lighter = &points[..before.unwrap_or(0)];
    if lighter.is_empty() {
        return Err("no lighter level came before the heaviest");
    }
    if !lighter.iter().any(OverloadPoint::has_served) {
        return Err("nothing was served before the heaviest level");
    }
    let base = lighter.iter().find(|p| p.counts() && p.row.served_per_s > 0.0);
    base.ok_or("no level before the heaviest was measured without a fault")
}

/// The level that presses the most.
pub fn heaviest(points: &[OverloadPoint]) -> Option<&OverloadPoint> {
    let order = |a: &(bool, f64), b: &(bool, f64)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1));
    points.iter().max_by(|a, b| order(&weight(a), &weight(b)))
}

/// By what levels are ordered: any S-Clients press more than any simple clients.
fn weight(p: &OverloadPoint) -> (bool, f64) {
    (p.is_pressing(), crate::words::value(p.level))
}

/// Whether the service recovered, by the base load offered again after these levels.
fn recovery(points: &[OverloadPoint], again: Option<(&TrialReport, OverloadPoint)>) -> Recovery {
    let base = match base(points) {
        Ok(base) => base,
        Err(because) => return not_judged(because.to_owned(), Recovery::default()),
    };
    let known = Recovery {
        level: Some(base.level),
        before: Some(base.row.clone()),
        again: again.as_ref().map(|(_, p)| p.row.clone()),
        ..Recovery::default()
    };
    let Some((trial, again)) = again else {
        return not_judged("the base load was not offered again".to_owned(), known);
    };
    let is_distorted = !again.is_valid && (again.fell_behind || again.has_served());
    if let Some(why) = trial.invalid_because.first().filter(|_| is_distorted) {
        return not_judged(format!("as the base load was offered again, {why}"), known);
    }
    let before = whole_between(base);
    let is_back = |now| is_back(before, now);
    let came_back = match is_back(whole_between(&again)) {
        Some(true) => CameBack::Yes,
        Some(false) if second_half(trial, &again).and_then(is_back) == Some(true) => CameBack::Late,
        Some(false) => CameBack::No,
        None => {
            let few = "too little was served of the base load offered again";
            return not_judged(few.to_owned(), known);
        }
    };
    Recovery { came_back, ..known }
}

fn not_judged(because: String, known: Recovery) -> Recovery {
    Recovery { because, ..known }
}

/// Bounds of what was served per second, with the mean of the whole window in them. Of few
/// responses the half that was as before may look like a transient, and be cut off.
fn whole_between(point: &OverloadPoint) -> [f64; 2] {
    let [low, high] = point.served_between();
    let whole = point.served() as f64 / point.seconds;
    [low.min(whole), high.max(whole)]
}

/// Whether what lies between these bounds now is what lay between those before; `None` where that
/// is not certain.
fn is_back(before: [f64; 2], now: [f64; 2]) -> Option<bool> {
    if now[1] < LOST_SHARE * before[0] {
        return Some(false);
    }
    (now[0] >= KNOWN_SHARE * before[1]).then_some(true)
}

/// Bounds of what was served per second in the second half of a trial; `None` where responses are
/// not the same as attempts served.
fn second_half(trial: &TrialReport, point: &OverloadPoint) -> Option<[f64; 2]> {
    if point.of_sessions || trial.outcomes.responses() > point.served() {
        return None;
    }
    let late = || trial.intervals.iter().filter(|i| i.start_ns >= trial.duration_ns / 2);
    let ns: u64 = late().map(|i| i.end_ns - i.start_ns).sum();
    let served: u64 = late().map(|i| i.completed).sum();
    (ns > 0).then(|| count_between(served as f64, ns as f64 / 1e9))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::overload::tests::trials::{SETTING, report};
    use knee_load::measure::Observed;
    use knee_load::spec::Level;

    /// 1,000 connects without an answer, and this number of established ones.
    fn point(established: u64, see: impl FnOnce(&mut Observed)) -> OverloadPoint {
        let ends = [(Outcome::ConnectTimeout, 1_000), (Outcome::ResponseTimeout, established)];
        let mut trial = report(Level::Descriptors(50), &ends);
        see(trial.as_http_mut().observed.as_mut().expect("captured"));
        OverloadPoint::of(&trial, &SETTING).expect("an overload")
    }

    fn unseen(established: u64) -> OverloadPoint {
        point(established, |o| o.elapsed_ns = 0)
    }

    #[test]
    fn unanswered_connects_by_the_evidence() {
        let drops = |n: i64| {
            move |o: &mut Observed| {
                o.kernel.insert("TcpExtListenDrops".to_owned(), n);
            }
        };
        assert_eq!(point(129, drops(500)).why_unanswered(), UnansweredCause::QueueFull);
        assert_eq!(point(129, drops(499)).why_unanswered(), UnansweredCause::DroppedThere);
        let full = |o: &mut Observed| {
            (o.accept_queue_max, o.accept_queue_limit) = (Some(129), Some(128));
        };
        assert_eq!(point(129, full).why_unanswered(), UnansweredCause::QueueFull);
        let both = |o: &mut Observed| {
            full(o);
            drops(10)(o);
        };
        assert_eq!(point(129, both).why_unanswered(), UnansweredCause::DroppedThere);
        let few = |o: &mut Observed| o.first_syns = 499;
        assert_eq!(point(0, few).why_unanswered(), UnansweredCause::DroppedBefore);
        assert_eq!(
            point(0, |o| o.first_syns = 500).why_unanswered(),
            UnansweredCause::DroppedThere
        );
        assert_eq!(unseen(0).why_unanswered(), UnansweredCause::Silent);
        assert_eq!(unseen(1).why_unanswered(), UnansweredCause::Unknown);
    }

    #[test]
    fn a_silent_server_accepts_if_its_queue_is_empty() {
        let queue = |most: u32| {
            move |o: &mut Observed| {
                (o.accept_queue_max, o.accept_queue_limit) = (Some(most), Some(4_096));
            }
        };
        assert_eq!(point(500, queue(49)).accepts(), Some(true));
        assert_eq!(point(500, queue(50)).accepts(), Some(false));
        assert_eq!(point(8_194, queue(4_096)).accepts(), Some(false), "full");
        assert_eq!(point(8_195, queue(4_096)).accepts(), Some(true), "full, but it moves");
        assert_eq!(unseen(500).accepts(), None);
    }

    #[test]
    fn service_is_back_or_not_by_intervals() {
        let before = [126.0, 134.0];
        assert_eq!(is_back(before, [112.0, 124.0]), Some(true), "lower by chance");
        assert_eq!(is_back(before, [108.0, 113.5]), Some(true), "a tenth less at most");
        assert_eq!(is_back(before, [108.0, 113.3]), Some(false));
        assert_eq!(is_back(before, [0.0, 0.4]), Some(false));
        assert_eq!(is_back(before, [200.0, 210.0]), Some(true), "more than before");
        assert_eq!(is_back(before, [40.0, 200.0]), None, "hardly anything is known");
    }
}
