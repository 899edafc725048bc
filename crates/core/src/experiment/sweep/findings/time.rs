//! Findings about changes during a sweep. Time is a factor that is reported, not averaged away.

use crate::experiment::sweep::answer::{changed, time_or_round};
use crate::experiment::sweep::report::{
    EarlierHostSpeed, RegimeChange, SweepOutage, ThroughputCycle,
};
use crate::finding::{Finding, codes};
use crate::trial::findings::{OUTAGE, PAUSES, PERIODIC_PAUSES};
use crate::trial::silence::PausesReport;
use crate::words::{levels, list, number, percent, time};

/// Difference from earlier runs from which the host's speed differs, in percent.
const HOST_PERCENT: f64 = 5.0;
/// Share by which the host's speed has to move the maximum.
const MOVED_MIN: f64 = 0.02;

codes! {
    REGIME_CHANGE = "regime_change":
        cause "Throughput changed for good during the sweep, whatever the load, for better or \
               worse: the target or its host is in another state since then. Each state lasted \
               three rounds or more. No mean of the two states is stated.",
        remedy "See with knee recover whether the target comes back by itself after that load.";
    CYCLES_OVER_TIME = "cycles_over_time":
        cause "Throughput at the same load rises and falls in a cycle, at least two of which the \
               sweep saw: a periodic job, or a neighbour on the target's host.",
        remedy "Look for a job of that period at the target and its host.";
    DRIFTS_OVER_TIME = "drifts_over_time":
        cause "Throughput at the same load rose or fell over the rounds: the target or its host \
               changes with time. Less than two periods of a cycle look like this as well.",
        remedy "Let the target settle before it is measured (--warmup 30s), and look for what \
                grows in it with time (memory, files, connections).";
    HOST_SPEED_VARIED = "host_speed_varied":
        cause "The generator's processor time per operation differed between rounds at the same \
               load, and throughput went with it: adjusting for it moves the maximum by more than \
               2 %. Other guests or programs let the host run faster and slower.",
        remedy "Compare with results of the same minutes, or measure on a host of its own.";
    HOST_SPEED_DIFFERS = "host_speed_differs":
        cause "The generator's processor time per operation differs from that in earlier runs of \
               the same sweep on this host. So the host is slower or faster now.",
        remedy "Repeat it later, or compare targets in turns with knee compare --live.";
    THROUGHPUT_VARIES = "throughput_varies":
        cause "Slices of the same level differ by more than 10 % beyond what their rounds explain, \
               so that the maximum is not determined within 5 %.",
        remedy "Measure for longer on a quieter host: --budget 5m.";
}

/// A lasting change of the throughput.
pub(in crate::experiment::sweep) fn regime_change(change: &RegimeChange) -> Finding {
    REGIME_CHANGE.warning(
        format!("throughput {}", changed(change)),
        [
            ("before_per_s", change.before_per_s),
            ("after_per_s", change.after_per_s),
            ("at_ns", change.at_ns.map_or(f64::NAN, |ns| ns as f64)),
            ("round", f64::from(change.round)),
        ],
        if change.after_per_s > change.before_per_s {
            "warm the target up before it is measured: --warmup 30s"
        } else {
            "see whether the target comes back by itself: knee recover URL"
        },
    )
}

/// A cycle of the throughput.
pub(in crate::experiment::sweep) fn cycles_over_time(cycle: &ThroughputCycle) -> Finding {
    CYCLES_OVER_TIME.warning(
        format!(
            "throughput at the same load rises and falls by {} every {}",
            percent(cycle.amplitude_percent),
            time(cycle.period_ns as f64)
        ),
        [("amplitude_percent", cycle.amplitude_percent), ("period_ns", cycle.period_ns as f64)],
        CYCLES_OVER_TIME.step(),
    )
}

/// A drift from begin to end, in percent.
pub(in crate::experiment::sweep) fn drifts_over_time(drift_percent: f64) -> Finding {
    let way = if drift_percent < 0.0 { "fell" } else { "rose" };
    DRIFTS_OVER_TIME.warning(
        format!(
            "throughput at the same load {way} by {} over the rounds",
            percent(drift_percent.abs())
        ),
        [("drift_percent", drift_percent)],
        DRIFTS_OVER_TIME.step(),
    )
}

/// Times of an outage or a pause.
fn from_to([begin, end]: [f64; 2]) -> String {
    format!("from {} to {} into the sweep", time(begin), time(end))
}

/// The most outages and pauses whose times are in a sentence.
const TIMES_STATED: usize = 3;

/// Outages, each with its begin and end.
pub(in crate::experiment::sweep) fn outages(
    outages: &[SweepOutage],
    end_ns: Option<u64>,
) -> Option<Finding> {
    let ends = |o: &SweepOutage| o.begin_ns.zip(o.end_ns).map(|(a, b)| [a as f64, b as f64]);
    let length = |o: &SweepOutage| ends(o).map_or(0.0, |[begin, end]| end - begin);
    let longest = outages.iter().max_by(|a, b| length(a).total_cmp(&length(b)))?;
    let when = |o: &SweepOutage| match ends(o) {
        None => format!("{}, at {}", time_or_round(None, o.round), levels(&o.levels)),
        Some([begin, end]) if end_ns.is_some_and(|last| end >= last as f64) => {
            format!("from {} into the sweep to its end, at {}", time(begin), levels(&o.levels))
        }
        Some(span) => {
            format!("for {}, {}, at {}", time(length(o)), from_to(span), levels(&o.levels))
        }
    };
    let stated: Vec<String> = outages.iter().take(TIMES_STATED).map(when).collect();
    let more = match outages.len() - stated.len() {
        0 => String::new(),
        n => format!(" ({n} more times are in the JSON report)"),
    };
    let failures: u64 = outages.iter().map(|o| o.failures).sum();
    let failed = match failures {
        0 => String::new(),
        n => format!("; {} operations failed", number(n as f64)),
    };
    let [begin, end] = ends(longest).unwrap_or([f64::NAN; 2]);
    Some(OUTAGE.error(
        format!("no good response came {}{more}{failed}", list(&stated)),
        [
            ("from_ns", begin),
            ("until_ns", end),
            ("count", outages.len() as f64),
            ("lasted_ns", outages.iter().map(length).sum()),
            ("failures", failures as f64),
        ],
        OUTAGE.step(),
    ))
}

/// Pauses of the target; `per_s`: the maximum with them and between them.
pub(in crate::experiment::sweep) fn pauses(
    report: &PausesReport,
    per_s: [f64; 2],
    is_hidden: bool,
) -> Finding {
    let length = time(report.length_ns as f64);
    let first = report.times_ns.first().map_or([f64::NAN; 2], |times| times.map(|ns| ns as f64));
    let (code, text) = match (report.period_ns, report.count) {
        (Some(period), _) => {
            (PERIODIC_PAUSES, format!("pauses for about {length} every {}", time(period as f64)))
        }
        (None, 1) => (PAUSES, format!("paused for {length}, {}", from_to(first))),
        (None, n) => {
            (PAUSES, format!("paused {n} times for about {length}, first {}", from_to(first)))
        }
    };
    let takes = match report.count {
        1 => String::new(),
        _ => format!(
            ", {} of the time: the maximum is {}/s, and {}/s between pauses",
            percent(report.percent),
            number(per_s[0]),
            number(per_s[1])
        ),
    };
    let hides = if is_hidden && report.count > 1 {
        ". In a closed loop users send nothing meanwhile, so its percentiles show few of these \
         waits; in an open loop all who come then wait"
    } else {
        ""
    };
    code.warning(
        format!("the target {text}{takes}{hides}"),
        [
            ("count", report.count as f64),
            ("period_ns", report.period_ns.map_or(f64::NAN, |ns| ns as f64)),
            ("length_ns", report.length_ns as f64),
            ("percent", report.percent),
            ("from_ns", first[0]),
            ("until_ns", first[1]),
        ],
        "look at these times in the target's log (garbage collection, a lock, a checkpoint)",
    )
}

/// The host's speed varied so much that it moved the maximum by this share.
pub(in crate::experiment::sweep) fn host_speed_varied(moved: f64) -> Option<Finding> {
    let percent_moved = 100.0 * moved.exp_m1();
    (moved.abs() > MOVED_MIN).then(|| {
        let way = if moved > 0.0 { "higher" } else { "lower" };
        HOST_SPEED_VARIED.info(
            format!(
                "the host's speed varied between rounds: at its usual speed the maximum would be \
                 {} {way}",
                percent(percent_moved.abs())
            ),
            [("moved_percent", percent_moved)],
            HOST_SPEED_VARIED.step(),
        )
    })
}

/// The host is not as fast as it was in earlier runs.
pub(crate) fn host_speed_differs(host: &EarlierHostSpeed) -> Option<Finding> {
    let [more, slower, lower] =
        if host.speed < 1.0 { ["more", "slower", "lower"] } else { ["less", "faster", "higher"] };
    let differ = 100.0 * (1.0 / host.speed - 1.0);
    let runs = match host.runs {
        1 => "an earlier run".to_owned(),
        n => format!("the median of {n} earlier runs"),
    };
    (differ.abs() > HOST_PERCENT).then(|| {
        HOST_SPEED_DIFFERS.info(
            format!(
                "an operation cost the generator {} {more} processor time than in {runs} of this \
                 sweep, so the host is {slower} now: throughput may be {lower} by as much",
                percent(differ.abs())
            ),
            [("speed", host.speed), ("runs", f64::from(host.runs))],
            "to compare targets, measure them in turns: knee compare --live URL-A URL-B",
        )
    })
}

/// Slices of the same level had throughputs in this range.
pub(in crate::experiment::sweep) fn throughput_varies(
    spread_percent: f64,
    range: [f64; 2],
    has_host_speed_varied: bool,
) -> Finding {
    let because = if has_host_speed_varied {
        "with it come changes of the host's speed"
    } else {
        "neither the host's speed nor the order explains it"
    };
    THROUGHPUT_VARIES.warning(
        format!(
            "throughput at the same level varied between {} and {}/s ({} beyond what rounds \
             explain): {because}",
            number(range[0]),
            number(range[1]),
            percent(spread_percent)
        ),
        [("spread_percent", spread_percent), ("least_per_s", range[0]), ("most_per_s", range[1])],
        THROUGHPUT_VARIES.step(),
    )
}
