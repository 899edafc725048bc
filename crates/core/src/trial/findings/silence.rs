//! Findings about silences of the target: outages, operations that hang, pauses.

use super::TrialGroup;
use crate::finding::{Finding, codes};
use crate::trial::report::TrialReport;
use crate::trial::silence::{OutageReport, PausesReport};
use crate::words::{number, percent, time};
use knee_load::spec::Level;

/// So few failures are no outage, whatever else did not happen meanwhile.
const OUTAGE_FAILURES: u64 = 5;
/// A rate that is offered beside a closed loop's throughput: below capacity.
const OPEN_SHARE: f64 = 0.9;

codes! {
    OUTAGE = "outage":
        cause "For some time no good response came at all, while operations waited or failed: for \
               a second or more, or with failures. Throughput is then the mean of times with and \
               without the target.",
        remedy "Look at that time in the target's log: did it restart, or run out of something? \
                then repeat.";

    HUNG_OPERATIONS = "hung_operations":
        cause "Operations waited far longer than others and never got a response. In a closed \
               loop their users do nothing else, so that the load is smaller than it looks.",
        remedy "See at the target what these connections wait for (ss -tnp), and repeat with a \
                shorter --timeout 2s to see whether new connections hang too.";

    PAUSES = "pauses":
        cause "For less than a second no response came at all, while operations waited and the \
               generator was on time: once, or several times without a regular period. Collections \
               of garbage, locks, checkpoints and neighbours on the target's host do this.",
        remedy "Read the target's log at that time, and repeat for longer to see whether it \
                happens regularly.";

    PERIODIC_PAUSES = "periodic_pauses":
        cause "The target pauses again and again in a regular period, as a garbage collector or a \
               periodic job makes it. A closed loop hides such pauses: its users send nothing \
               meanwhile.",
        remedy "Measure with an open loop (--rate) what users feel, and look for a job of that \
                period at the target.";
}

/// Outages of a trial.
pub(super) struct OutageSummary {
    /// Of the first, from the begin of the window.
    from_ns: i64,
    /// `None` where the first had not ended.
    until_ns: Option<i64>,
    count: f64,
    lasted_ns: f64,
    failures: f64,
}

pub(super) fn outage(t: &TrialReport) -> Option<OutageSummary> {
    let known = t.http().map(|http| &http.silence.outages);
    let outages = match known.filter(|outages| !outages.is_empty()) {
        Some(outages) => outages.clone(),
        None => dead_intervals(t),
    };
    let first = outages.first()?;
    Some(OutageSummary {
        from_ns: first.start_ns,
        until_ns: Some(first.end_ns).filter(|end| *end != t.duration_ns as i64),
        count: outages.len() as f64,
        lasted_ns: outages.iter().map(|o| (o.end_ns - o.start_ns) as f64).sum(),
        failures: outages.iter().map(|o| o.failures as f64).sum(),
    })
}

/// A time of the window, in words.
fn window_time(ns: i64) -> String {
    let length = time(ns.unsigned_abs() as f64);
    if ns < 0 {
        format!("{length} before the measurement")
    } else {
        format!("{length} into the measurement")
    }
}

/// Outages from the intervals, where they are all that is known or few operations came. In a closed
/// loop users back off from a target that fails, so that an outage leaves few failures
/// among many responses. Where nothing ever came, `errors` says so.
fn dead_intervals(t: &TrialReport) -> Vec<OutageReport> {
    let dead = t.intervals.iter().filter(|i| i.completed == 0 && i.errors > 0);
    let mut outages: Vec<OutageReport> = Vec::new();
    for i in dead {
        match outages.last_mut() {
            Some(last) if last.end_ns == i.start_ns as i64 => {
                last.end_ns = i.end_ns as i64;
                last.failures += i.errors;
            }
            _ => outages.push(OutageReport {
                start_ns: i.start_ns as i64,
                end_ns: i.end_ns as i64,
                failures: i.errors,
            }),
        }
    }
    let failures: u64 = outages.iter().map(|o| o.failures).sum();
    outages.retain(|_| t.completed > 0 && failures >= OUTAGE_FAILURES);
    outages
}

pub(super) fn outages(trials: &TrialGroup) -> Option<Finding> {
    let (place, outage) = trials.first(outage)?;
    let sum = if outage.count > 1.0 {
        format!(" ({} such times, {} in all)", number(outage.count), time(outage.lasted_ns))
    } else {
        String::new()
    };
    let (from, until) = (
        window_time(outage.from_ns),
        outage.until_ns.map_or("its end".to_owned(), |ns| match ns {
            0.. => time(ns as f64),
            _ => window_time(ns),
        }),
    );
    let text = if outage.failures > 0.0 {
        format!(
            "no good response came from {from} until {until}{sum}, and {} operations failed: \
             throughput is the mean of times with and without the target",
            number(outage.failures)
        )
    } else {
        format!(
            "no response came from {from} until {until}{sum}, while operations waited: throughput \
             and response times include it"
        )
    };
    Some(OUTAGE.error(
        format!("{place}{text}"),
        [
            ("from_ns", outage.from_ns as f64),
            ("until_ns", outage.until_ns.map_or(f64::NAN, |ns| ns as f64)),
            ("count", outage.count),
            ("lasted_ns", outage.lasted_ns),
            ("failures", outage.failures),
        ],
        OUTAGE.step(),
    ))
}

/// Operations without a response.
struct HungOperations {
    count: f64,
    /// Hung operations that waited all through the window.
    throughout: f64,
    /// Users of the closed loop; `None` in an open one.
    users: Option<f64>,
    /// The shortest time that one had waited.
    waited_ns: f64,
}

/// Who hangs because the target was away at the end is in that outage.
fn hung(t: &TrialReport) -> Option<HungOperations> {
    let silence = &t.http()?.silence;
    let users = match t.level {
        Level::Vusers(n) => Some(f64::from(n)),
        _ => None,
    };
    let lasts = |o: &OutageReport| o.end_ns >= t.duration_ns as i64;
    let is_outage = silence.outages.last().is_some_and(lasts);
    let hangs = silence.hung_throughout > 0 || users.is_some() && silence.hung > 0 && !is_outage;
    hangs.then(|| HungOperations {
        count: silence.hung as f64,
        throughout: silence.hung_throughout as f64,
        users,
        waited_ns: silence.hung_ns_min.unwrap_or(0) as f64,
    })
}

pub(super) fn hung_operations(trials: &TrialGroup) -> Option<Finding> {
    let (place, hung) = trials.first(hung)?;
    let (count, waited) = (number(hung.count), time(hung.waited_ns));
    let text = match hung.users.map(number) {
        Some(n) if hung.throughout >= hung.count => format!(
            "{place}{count} of {n} users never got a response: they waited for one operation all \
             through the measured time, at least {waited}"
        ),
        Some(n) => format!(
            "{place}{count} of {n} users never got a response to their last operation, after at \
             least {waited}"
        ),
        None => format!(
            "{place}{count} operations never got a response, after at least {waited}; {} of them \
             waited all through the measured time",
            number(hung.throughout)
        ),
    };
    Some(HUNG_OPERATIONS.error(
        text,
        [
            ("hung", hung.count),
            ("throughout", hung.throughout),
            ("users", hung.users.unwrap_or(f64::NAN)),
            ("waited_ns", hung.waited_ns),
        ],
        HUNG_OPERATIONS.step(),
    ))
}

pub(super) fn pauses(trials: &TrialGroup) -> Option<Finding> {
    let pauses = |t: &TrialReport| {
        let pauses = t.http()?.silence.pauses.clone()?;
        let closed_per_s = match t.offered.asked_per_s {
            None if !trials.context.is_open_loop_known => Some(t.responses_per_s()),
            _ => None,
        };
        Some((pauses, closed_per_s))
    };
    let (place, (pauses, closed_per_s)) = trials.worst(pauses, |(pauses, _)| pauses.percent)?;
    Some(pauses_found(&place, &pauses, closed_per_s))
}

/// The finding for pauses; `closed_per_s` is the throughput of the closed loop that hides them.
pub(crate) fn pauses_found(
    place: &str,
    pauses: &PausesReport,
    closed_per_s: Option<f64>,
) -> Finding {
    let hides = match closed_per_s {
        Some(_) => {
            ". In a closed loop users send nothing meanwhile, so its percentiles show few of these \
             waits; in an open loop all who come then wait"
        }
        None => "",
    };
    let length = time(pauses.length_ns as f64);
    let share = percent(pauses.percent);
    let first = pauses.times_ns.first().map(|[start, _]| window_time(*start));
    let first = first.map_or(String::new(), |place| format!(", first {place}"));
    let (code, text, job) = match (pauses.period_ns, pauses.count) {
        (Some(period), _) => (
            PERIODIC_PAUSES,
            format!(
                "the target pauses for about {length} every {}, {share} of the time",
                time(period as f64)
            ),
            "look for a job of that period at the target, such as garbage collection",
        ),
        (None, 1) => (
            PAUSES,
            format!(
                "the target paused for {length}{}: no response came while operations waited",
                first.replace("first ", "")
            ),
            "look at that time in the target's log (garbage collection, a lock, a checkpoint), and \
             repeat for longer to see whether it happens again: --duration 60s",
        ),
        (None, n) => (
            PAUSES,
            format!(
                "the target paused {} times for about {length}, {share} of the time{first}",
                number(n as f64)
            ),
            "look at these times in the target's log (garbage collection, a lock, a checkpoint)",
        ),
    };
    let open_loop = closed_per_s.filter(|_| pauses.count > 1);
    let [from_ns, until_ns] =
        pauses.times_ns.first().map_or([f64::NAN; 2], |t| t.map(|ns| ns as f64));
    code.warning(
        format!("{place}{text}{}", if pauses.count > 1 { hides } else { "" }),
        [
            ("count", pauses.count as f64),
            ("period_ns", pauses.period_ns.map_or(f64::NAN, |ns| ns as f64)),
            ("length_ns", pauses.length_ns as f64),
            ("percent", pauses.percent),
            ("from_ns", from_ns),
            ("until_ns", until_ns),
        ],
        match open_loop {
            Some(per_s) => format!(
                "measure what users feel with an open loop: --rate {}; and {job}",
                (OPEN_SHARE * per_s).max(1.0).floor()
            ),
            None => job.to_owned(),
        },
    )
}
