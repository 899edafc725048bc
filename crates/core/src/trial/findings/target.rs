//! Findings about the target.

use super::silence::outage;
use super::{FindingContext, TrialGroup};
use crate::finding::{Finding, Severity, codes};
use crate::trial::report::{TrialReport, Verdict};
use crate::words::{exact, number, percent, time};
use knee_load::measure::{Interval, Outcome, Outcomes, Stage, error_share};
use knee_load::spec::Level;
use knee_load::stats::course::{Course, TimedValue, course};
use knee_load::stats::sample::mean;

/// From this share on failures are a warning.
const ERRORS_PERCENT: f64 = 1.0;
/// A queue grows if at least this share of what was attempted waits at the end, …
const WAITING_SHARE: f64 = 0.01;
/// … and at least this number of operations, …
const WAITING_MIN: f64 = 10.0;
/// … and if at half time it had between these shares of its final length.
const HALF_TIME_SHARES: [f64; 2] = [0.2, 0.9];
/// Share of the operations from which on unsent ones are a finding.
const UNSENT_SHARE: f64 = 0.001;
/// A stall is a response time of at least this many nanoseconds, this many medians.
const STALL_NS: u64 = 100_000_000;
const STALL_MEDIANS: u64 = 20;
/// During it completions fall below, and after it they rise above, these shares of the usual.
const STALL_DIP: f64 = 0.7;
const STALL_BURST: f64 = 1.3;

codes! {
    NON_STATIONARY = "non_stationary":
        cause "Throughput or response time drifts or jumps within the measured time, after the \
               initial transient was cut. Caches that fill, compilation at run time, memory that \
               leaks and neighbours on the same host do this.",
        remedy "Let the target settle with a longer --warmup and measure for longer. Where it \
                still drifts, the target itself changes, and its mean is not one number.";

    ERRORS = "errors":
        cause "Operations failed: rejected by status, refused, reset, timed out or malformed. The \
               report counts each kind in `outcomes`.",
        remedy "Make one request work first (knee run URL --vusers 1 -n 1), then find the load at \
                which failures begin.";

    TARGET_QUEUE_GROWS = "target_queue_grows":
        cause "An open loop offers more than the target serves. Requests that are not served \
               wait, so the queue and every response time grow while the load lasts. Percentiles \
               then measure the length of the run.",
        remedy "Offer less than the target serves, or find the highest rate that it serves with \
                knee sweep --axis rate.";

    CONNECTIONS_LIMIT = "connections_limit":
        cause "All permitted connections were open, and operations waited for one for longer than \
               they then took, or timed out unsent. The load is limited by --connections, not by \
               the target.",
        remedy "Permit more connections with --connections, or offer less.";

    IDS_EXHAUSTED = "ids_exhausted":
        cause "Requests of the protocol have ids of 16 bits. So 65,536 may be under way on a \
               connection, which over UDP is a source port. All ids were taken, and further \
               requests waited for one. The load is limited by that, not by the target.",
        remedy "Open more source ports with --connections, shorten --timeout so that requests \
                without an answer give their ids back, or offer less.";

    SURPLUS_BYTES = "surplus_bytes":
        cause "After a whole response came bytes that no request asked for. Usually \
               Content-Length is smaller than the body.",
        remedy "See what the target sends after its body: does Content-Length say less than there \
                is? curl -i URL.";

    UNMATCHED_MESSAGES = "unmatched_messages":
        cause "The server sent messages that belong to no operation: with --subscribe those without \
               a time, or with one that is yet to come, otherwise those that are no echo, such as a \
               greeting. With --match order, one that comes behind the first message is taken for \
               its echo, and each echo after it for that of the next message.",
        remedy "Where the server sends messages back, put {seq} into -b, so that echoes are known by \
                their number. For --subscribe the server has to put {time} into what it sends, as \
                knee serve ws --publish does.";

    REDIRECTS = "redirects":
        cause "Most responses redirect to another address, and no redirection was followed, or \
               those to another server were not. What is measured is the redirection and not the \
               page that it leads to.",
        remedy "Measure the page itself: give the address that curl -I URL shows as Location, or \
                follow redirections with --location, which stays with the servers of the target.";

    DELAYED_ACK = "delayed_ack":
        cause "The end of a short response comes about 40 ms after its beginning. As long does \
               Linux wait before it acknowledges data without sending any. The target, or a proxy \
               before it, writes a response in several pieces. It holds back the last one until \
               the first is acknowledged (Nagle's algorithm).",
        remedy "Set TCP_NODELAY in the target or its proxy, or have it write each response at \
                once. Clients that send their next request without waiting, as over HTTP/2 with \
                several streams, meet it less often.";

    PACKETS_LOST = "packets_lost":
        cause "Packets with requests were lost between the generator and the target: on the \
               path, or as the target's receive buffer was full. QUIC sends their data again after \
               about a round trip, or after a time limit of some round trips, and what waits for \
               it is late. This is no time that the target worked.",
        remedy "See where packets are lost: knee udp, or nstat -z UdpRcvbufErrors at the target. \
                A larger receive buffer there, or fewer requests that leave at once (--streams), \
                keep bursts from being dropped.";

    SERVER_STALLED = "server_stalled":
        cause "The target answered almost nothing for a short time and then caught up, while the \
               generator was on time. A collection of garbage, a checkpoint or a lock does this.",
        remedy "Look at that time in the server's log (collection of garbage, a checkpoint, a \
                lock), and repeat to see whether it is periodic: --duration 60s.";
}

pub(super) fn non_stationary(trials: &TrialGroup) -> Option<Finding> {
    // A queue that grows is never stationary, and that is a finding of its own. Where the load
    // changes by plan, so does what the target does.
    let drifts = |t: &TrialReport| {
        let has_no_other_cause = !t.offered.changes_by_plan && growing_queue(t).is_none();
        !t.stationary && t.completed > 0 && has_no_other_cause
    };
    let seconds = |t: &TrialReport| drifts(t).then_some(t.duration_ns as f64 / 1e9);
    let (place, longest_s) = trials.worst(seconds, |s| *s)?;
    let levels = (!place.is_empty()).then_some(("levels", trials.count(seconds) as f64));
    let s = longest_s.max(1.0).ceil();
    let (_, change) = trials.first(|t| drifts(t).then(|| change_over_time(t)))?;
    let change = change.map_or(String::new(), |change| format!(": {change}"));
    Some(NON_STATIONARY.warning(
        format!(
            "{place}throughput or response time drifts during the measurement, so that its \
                 mean is not one number{change}"
        ),
        levels.into_iter().chain([("longest_trial_s", longest_s)]),
        format!(
            "let the target settle and measure longer: --warmup {s}s --duration {}s; if it still \
             drifts, the target itself changes",
            4.0 * s
        ),
    ))
}

/// Least share of the variance of intervals that a change told in words explains.
const CHANGE_EXPLAINED: f64 = 0.8;
/// Smallest step or cycle that is told, as a share of the mean.
const CHANGE_MIN: f64 = 0.05;

/// The step or cycle of throughput or of median response times over the intervals, in words.
fn change_over_time(t: &TrialReport) -> Option<String> {
    // The last interval may be a short one.
    let whole = t.intervals.split_last().map_or(&[][..], |(_, whole)| whole);
    let change_of = |name: &str, value: fn(&Interval) -> f64, words: fn(f64) -> String| {
        let values: Vec<f64> = whole.iter().map(value).collect();
        let all = mean(&values);
        let place = |(i, interval): (usize, &Interval)| TimedValue {
            level: 0,
            at: interval.start_ns as f64 / 1e9,
            value: values[i] / all.max(f64::MIN_POSITIVE),
        };
        let timed: Vec<TimedValue> = whole.iter().enumerate().map(place).collect();
        let fitted = course(&timed, |at| (2..=timed.len() - 2).contains(&at));
        match fitted.course {
            _ if fitted.explained < CHANGE_EXPLAINED => None,
            Course::Step { at, by } if by.abs() >= CHANGE_MIN => Some(format!(
                "{name} goes from {} to {} after {}",
                words(mean(&values[..at])),
                words(mean(&values[at..])),
                time(whole[at].start_ns as f64)
            )),
            Course::Cycle { period, amplitude } if 2.0 * amplitude >= CHANGE_MIN => Some(format!(
                "{name} goes up and down by {} every {}",
                percent(100.0 * amplitude),
                time(period * 1e9)
            )),
            _ => None,
        }
    };
    let per_s = |per_s: f64| format!("{}/s", number(per_s));
    change_of("throughput", |i| i.per_s(i.completed), per_s)
        .or_else(|| change_of("the median response time", |i| i.p50_ns as f64, time))
}

/// Any failure counts for a load of operations. Pings and connects have findings of their own.
fn failures(t: &TrialReport) -> Option<(f64, Outcome)> {
    let share = 100.0 * error_share(&t.outcomes);
    let least = match t.level {
        Level::Vusers(_) | Level::RatePerS(_) => 0.0,
        Level::Clients(_) | Level::Descriptors(_) | Level::Flows { .. } => ERRORS_PERCENT,
    };
    most_frequent_failure(&t.outcomes).filter(|_| share > least).map(|kind| (share, kind))
}

/// The most frequent kind of failure where most operations failed, if any did.
pub(crate) fn failure_kind(trials: &[&TrialReport]) -> Option<Outcome> {
    let worst = TrialGroup::at_levels(trials, FindingContext::default()).worst(failures, |f| f.0);
    worst.map(|(_, (_, kind))| kind)
}

pub(super) fn errors(trials: &TrialGroup) -> Option<Finding> {
    let (place, (share, kind)) = trials.worst(failures, |f| f.0)?;
    Some(ERRORS.finding(
        if share <= ERRORS_PERCENT { Severity::Info } else { Severity::Warning },
        format!(
            "{place}{} of the operations failed, most of them: {}",
            percent(share),
            kind.label()
        ),
        [("error_percent", share)],
        match kind {
            Outcome::HTTP_4XX if trials.first(refused_by_proxy).is_some() => {
                "give the proxy a user, as it answers 407: --proxy-user USER:PASSWORD"
            }
            Outcome::HTTP_4XX | Outcome::Malformed => {
                "see what the target answers to such a request: curl -i URL"
            }
            Outcome::Shed => {
                "offer less with a lower --rate, or permit more in flight: --max-in-flight"
            }
            _ => FIND_THE_FAILURES,
        },
    ))
}

/// A proxy asked for a user, or for another one (RFC 9110 §15.5.8).
fn refused_by_proxy(t: &TrialReport) -> Option<()> {
    let http = t.http()?;
    let is_asked = http.traffic.status_codes.iter().any(|(status, _)| status == 407);
    (is_asked && !http.routed.proxies.is_empty()).then_some(())
}

/// The next step where operations fail.
pub(crate) const FIND_THE_FAILURES: &str = "read the failures by kind in `outcomes`; find the \
                                            level where they begin: a lower --vusers or --rate";

fn most_frequent_failure(outcomes: &Outcomes) -> Option<Outcome> {
    outcomes
        .iter()
        .filter(|(o, _)| !matches!(o, Outcome::Ok | Outcome::InFlight))
        .max_by_key(|&(_, count)| count)
        .map(|(outcome, _)| outcome)
}

/// A queue of the target that grew all through the window.
pub(super) struct GrowingQueue {
    offered_per_s: f64,
    served_per_s: f64,
    waiting: f64,
}

/// With too few connections, requests wait for one at the generator, not at the target. Requests
/// that wait for a target that is away are no sign of overload.
pub(super) fn target_queue_grows(trials: &TrialGroup) -> Option<Finding> {
    let grows = |t: &TrialReport| {
        growing_queue(t).filter(|_| too_few_connections(t).is_none() && outage(t).is_none())
    };
    let (place, queue) = trials.first(grows)?;
    Some(TARGET_QUEUE_GROWS.warning(
        format!(
            "{place}more is offered than the target serves: {}/s against {}/s. Its queue and every \
             response time grow while the load lasts: {} operations were waiting at the end",
            number(queue.offered_per_s),
            number(queue.served_per_s),
            exact(queue.waiting.round())
        ),
        [
            ("offered_per_s", queue.offered_per_s),
            ("served_per_s", queue.served_per_s),
            ("waiting_at_end", queue.waiting),
        ],
        format!(
            "offer less: --rate {}, or find the highest rate served: knee sweep --axis rate",
            (0.8 * queue.served_per_s).max(1.0).floor()
        ),
    ))
}

/// Operations that were started and have not ended accumulate from beginning to end, or arrivals
/// had to be shed; open loop only.
pub(super) fn growing_queue(t: &TrialReport) -> Option<GrowingQueue> {
    let offered_per_s = t.offered.asked_per_s?;
    let waiting_after = |intervals: &[Interval]| -> f64 {
        intervals.iter().map(|i| i.attempted as f64 - (i.completed + i.errors) as f64).sum()
    };
    let attempted: u64 = t.intervals.iter().map(|i| i.attempted).sum();
    let waiting = waiting_after(&t.intervals);
    let half_time = waiting_after(&t.intervals[..t.intervals.len() / 2]) / waiting;
    let [early, late] = HALF_TIME_SHARES;
    let grows = t.intervals.len() >= 4
        && waiting >= WAITING_MIN.max(WAITING_SHARE * attempted as f64)
        && (early..=late).contains(&half_time);
    let sheds = t.outcomes.count(Outcome::Shed) as f64 > 0.001 * t.attempted as f64;
    (grows || sheds).then_some(GrowingQueue {
        offered_per_s,
        served_per_s: t.responses_per_s(),
        waiting: waiting.max(0.0),
    })
}

/// Connections that carry less than the offered load.
struct ConnectionShortage {
    connections: f64,
    service_ns: f64,
    offered_per_s: f64,
    /// What they carry: by their number, or what they did carry where each has many operations at
    /// a time, as the target may limit these.
    carried_per_s: f64,
    has_streams: bool,
    unsent: f64,
    wait_ns: f64,
}

pub(super) fn connections_limit(trials: &TrialGroup) -> Option<Finding> {
    let (place, few) = trials.first(too_few_connections)?;
    // Connections that carry what is offered, if the target takes no longer for each then.
    let needed = (few.connections * few.offered_per_s / few.carried_per_s.max(1e-9)).ceil();
    let carried = if few.has_streams {
        "with the streams permitted on each they carry".to_owned()
    } else {
        format!("at {} for each operation they carry at most", time(few.service_ns))
    };
    let unsent = if few.unsent > 0.0 {
        format!("; {} operations timed out unsent", exact(few.unsent))
    } else {
        String::new()
    };
    Some(CONNECTIONS_LIMIT.warning(
        format!(
            "{place}the load is limited by --connections {}: {carried} {}/s of the {}/s offered. \
             Half of the operations waited {} or longer for one{unsent}",
            exact(few.connections),
            number(few.carried_per_s),
            number(few.offered_per_s),
            time(few.wait_ns),
        ),
        [
            ("connections", few.connections),
            ("connections_needed", needed),
            ("service_time_ns", few.service_ns),
            ("offered_per_s", few.offered_per_s),
            ("carried_per_s", few.carried_per_s),
            ("unsent", few.unsent),
            ("connection_wait_p50_ns", few.wait_ns),
        ],
        format!(
            "permit more connections: --connections {}, enough if the target takes no longer for \
             each then; if it does, offer less: a lower --rate",
            (1.2 * needed).ceil()
        ),
    ))
}

/// All connections were open. Operations timed out as none came free, or more than half of the
/// operations waited longer for one than they then took, and less is carried than is offered. While
/// the target is away, nothing else limits the load.
fn too_few_connections(t: &TrialReport) -> Option<ConnectionShortage> {
    let http = t.http().filter(|http| http.traffic.ids_exhausted == 0 && outage(t).is_none())?;
    let has_streams = http.protocol.as_ref().is_some_and(|protocol| protocol.http.has_streams());
    let connections = http.traffic.connections_limit? as f64;
    let service_ns = t.service_time_ns.mean? as f64;
    let few = ConnectionShortage {
        connections,
        service_ns,
        offered_per_s: t.offered.asked_per_s?,
        carried_per_s: if has_streams {
            t.responses_per_s()
        } else {
            1e9 * connections / service_ns.max(1.0)
        },
        has_streams,
        unsent: http.traffic.unsent as f64,
        wait_ns: t.offered.connection_wait_ns.as_ref()?.p50.unwrap_or(0) as f64,
    };
    let starved = few.unsent > UNSENT_SHARE * t.attempted as f64;
    let waits = few.wait_ns > few.service_ns && few.carried_per_s < few.offered_per_s;
    let all_open = http.connections_max as f64 >= few.connections;
    (all_open && (starved || waits)).then_some(few)
}

pub(super) fn ids_exhausted(trials: &TrialGroup) -> Option<Finding> {
    let exhausted = |t: &TrialReport| Some(t.http()?.traffic.ids_exhausted).filter(|n| *n > 0);
    let (place, times) = trials.first(exhausted)?;
    Some(IDS_EXHAUSTED.warning(
        format!(
            "{place}all 65,536 ids of a connection were taken {}. Further requests waited",
            match times {
                1 => "once".to_owned(),
                n => format!("{} times", exact(n as f64)),
            }
        ),
        [("times", times as f64)],
        "open more source ports: a higher --connections. Or shorten --timeout, or offer less: a \
         lower --rate",
    ))
}

pub(super) fn surplus_bytes(trials: &TrialGroup) -> Option<Finding> {
    let surplus = |t: &TrialReport| Some(t.http()?.traffic.surplus_responses).filter(|n| *n > 0);
    let (place, responses) = trials.first(surplus)?;
    Some(SURPLUS_BYTES.warning(
        format!(
            "{place}surplus bytes followed {}. The responses count as they are; their connections \
             were closed",
            match responses {
                1 => "a whole response".to_owned(),
                n => format!("{} whole responses", exact(n as f64)),
            }
        ),
        [("responses", responses as f64)],
        SURPLUS_BYTES.step(),
    ))
}

pub(super) fn unmatched_messages(trials: &TrialGroup) -> Option<Finding> {
    let unmatched = |t: &TrialReport| {
        let http = t.http().filter(|http| {
            let protocol = http.protocol.as_ref();
            protocol.is_some_and(|p| p.application.as_deref() == Some("WebSocket"))
        });
        http.map(|http| http.traffic.unmatched_answers as f64).filter(|n| *n > 0.0)
    };
    let (place, n) = trials.worst(unmatched, |n| *n)?;
    let messages =
        if n > 1.0 { "messages of the server belong" } else { "message of the server belongs" };
    Some(UNMATCHED_MESSAGES.warning(
        format!("{place}{} {messages} to no operation", exact(n)),
        [("messages", n)],
        UNMATCHED_MESSAGES.step(),
    ))
}

/// Redirections among the responses where they are most of them. Sessions may follow them.
fn redirections(t: &TrialReport) -> Option<[f64; 2]> {
    let http = t.http()?;
    let is_redirection = |status: u16| matches!(status, 301 | 302 | 303 | 307 | 308);
    let mut count = [0.0, 0.0];
    for (status, n) in http.traffic.status_codes.iter() {
        count[usize::from(!is_redirection(status))] += n as f64;
    }
    (http.sessions.is_none() && count[0] > count[1]).then_some(count)
}

/// Redirections of sessions that led to another server.
fn led_away(t: &TrialReport) -> Option<f64> {
    Some(t.http()?.sessions.as_ref()?.led_away? as f64)
}

pub(super) fn redirects(trials: &TrialGroup) -> Option<Finding> {
    if let Some((place, count)) = trials.worst(led_away, |count| *count) {
        let (lead, were) = match count {
            1.0 => ("redirection leads", "was"),
            _ => ("redirections lead", "were"),
        };
        return Some(REDIRECTS.warning(
            format!("{place}{} {lead} to another server, and {were} not followed", exact(count)),
            [("redirections", count)],
            "measure the page that they lead to: give the address that curl -I URL shows as Location",
        ));
    }
    let (place, [redirections, others]) = trials.first(redirections)?;
    let share = 100.0 * redirections / (redirections + others);
    Some(REDIRECTS.warning(
        format!(
            "{place}{} of the responses are redirections, which were not followed",
            percent(share)
        ),
        [("redirections", redirections), ("redirect_percent", share)],
        "measure the page that they lead to: --location, or the address that curl -I URL shows as \
         Location",
    ))
}

/// Linux acknowledges data alone after 40 ms (`TCP_DELACK_MIN` in `include/net/tcp.h`), and a timer
/// may be a few milliseconds late.
const DELAYED_ACK_NS: [u64; 2] = [38_000_000, 50_000_000];
/// Maximum bytes of a response whose last byte comes with its first, or shortly after it.
const SHORT_RESPONSE_BYTES: f64 = 65_536.0;

/// The time that responses wait for an acknowledgement, and their bytes. At least half of them have
/// just that time between their first byte and their last.
fn waits_for_acknowledgement(t: &TrialReport) -> Option<[f64; 2]> {
    let http = t.http()?;
    // QUIC has no such algorithm, and the messages of a stream come when they are written.
    let is_quic = http.protocol.as_ref().is_some_and(|protocol| protocol.packets.is_some());
    if is_quic || http.messages.is_some() {
        return None;
    }
    let wait_ns = t.timing()?.stages_ns.get(&Stage::Receive)?.p50?;
    let [least, most] = DELAYED_ACK_NS;
    let bytes = t.bytes_received as f64 / t.completed.max(1) as f64;
    let is_delayed = (least..=most).contains(&wait_ns) && bytes <= SHORT_RESPONSE_BYTES;
    is_delayed.then_some([wait_ns as f64, bytes])
}

pub(super) fn delayed_ack(trials: &TrialGroup) -> Option<Finding> {
    let (place, [wait_ns, bytes]) = trials.first(waits_for_acknowledgement)?;
    Some(DELAYED_ACK.warning(
        format!(
            "{place}half of the responses end {} after their first byte or later, at {} bytes \
             each. The target seems to hold back the last piece until the first is acknowledged",
            time(wait_ns),
            exact(bytes.round()),
        ),
        [("receive_p50_ns", wait_ns), ("bytes_per_response", bytes)],
        DELAYED_ACK.step(),
    ))
}

/// Least share of sent packets whose loss is a finding.
const LOST_SHARE: f64 = 0.001;
/// Fewer lost packets are chance.
const LOST_MIN: u64 = 3;

/// Losses are a warning where responses beside them are slow: at least twice the median of all.
pub(super) fn packets_lost(trials: &TrialGroup) -> Option<Finding> {
    let losses = |t: &TrialReport| {
        let packets = t.http()?.protocol.as_ref()?.packets.clone()?;
        let share = packets.lost as f64 / packets.sent.max(1) as f64;
        let is_finding = packets.lost >= LOST_MIN && share >= LOST_SHARE;
        is_finding.then_some((share, packets, t.service_time_ns.p50))
    };
    let (place, (share, packets, p50)) = trials.worst(losses, |l| l.0)?;
    let mut words = format!(
        "{place}{} of the packets sent were lost before they reached the target",
        percent(100.0 * share)
    );
    let beside = packets.beside_loss_ns.p50.zip(p50);
    if let Some((beside, all)) = beside {
        let of_all = packets.responses_beside_loss as f64 / packets.responses.max(1) as f64;
        words.push_str(&format!(
            "; during {} of the responses packets were lost: their median is {}, that of all {}",
            percent(100.0 * of_all),
            time(beside as f64),
            time(all as f64)
        ));
    }
    let is_slow = beside.is_some_and(|(beside, all)| beside >= 2 * all);
    Some(PACKETS_LOST.finding(
        if is_slow { Severity::Warning } else { Severity::Info },
        words,
        [
            ("lost_percent", 100.0 * share),
            ("lost", packets.lost as f64),
            ("responses_beside_loss", packets.responses_beside_loss as f64),
        ],
        PACKETS_LOST.step(),
    ))
}

/// A stall shows as an interval with few completions and a burst at its end or in the next, while
/// the generator was on time. Response times are far beyond the median.
fn stall(t: &TrialReport) -> Option<[f64; 2]> {
    let is_named = t
        .http()
        .is_some_and(|http| http.silence.pauses.is_some() || !http.silence.outages.is_empty());
    if t.verdict == Verdict::Invalid || t.intervals.len() < 4 || is_named {
        return None;
    }
    let mut counts: Vec<u64> = t.intervals.iter().map(|i| i.completed).collect();
    counts.sort_unstable();
    let usual = counts[counts.len() / 2] as f64;
    let long = STALL_NS.max(STALL_MEDIANS * t.response_time_ns.p50?);
    let stalls: Vec<&[Interval]> = t
        .intervals
        .windows(2)
        .filter(|w| {
            let dip = (w[0].completed as f64) < STALL_DIP * usual;
            let burst = w[1].completed as f64 > STALL_BURST * usual;
            dip && burst && w[0].max_ns.max(w[1].max_ns) >= long
        })
        .collect();
    let late = t.offered.pacing_error_ns.max.unwrap_or(0);
    let on_time = late < long / 2 && t.offered.stall_ns_max < long / 2;
    let first = stalls.first().filter(|_| on_time && stalls.len() <= 3)?;
    Some([first[0].start_ns as f64, first[0].max_ns.max(first[1].max_ns) as f64])
}

pub(super) fn server_stalled(trials: &TrialGroup) -> Option<Finding> {
    let (place, [from_ns, stall_ns]) = trials.first(stall)?;
    Some(SERVER_STALLED.info(
        format!(
            "{place}the target stalled for about {} near {} into the measurement and then caught \
             up, while the generator was on time",
            time(stall_ns),
            time(from_ns)
        ),
        [("from_ns", from_ns), ("stall_ns", stall_ns)],
        SERVER_STALLED.step(),
    ))
}
