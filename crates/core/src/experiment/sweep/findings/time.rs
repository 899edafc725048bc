//! Findings about changes during a sweep. Time is a factor that is reported, not averaged away.

use crate::experiment::sweep::answer::{at, changed};
use crate::experiment::sweep::report::{EarlierHostSpeed, RegimeChange, SweepOutage};
use crate::finding::{Finding, codes};
use crate::trial::findings::OUTAGE;
use crate::words::{levels, number, percent, time};

/// Difference between rounds from which the host's speed varies, in percent.
const HOST_PERCENT: f64 = 5.0;

codes! {
    REGIME_CHANGE = "regime_change":
        cause "Throughput changed for good during the sweep, whatever the load: the target or its \
               host is in another state since then. No mean of the two states is stated.",
        remedy "See with knee recover whether the target comes back by itself after that load.";
    DRIFTS_OVER_TIME = "drifts_over_time":
        cause "Throughput at the same load rose or fell over the rounds: the target or its host \
               changes with time.",
        remedy "Let the target settle with a longer --warmup, and look for what grows in it.";
    HOST_SPEED_VARIED = "host_speed_varied":
        cause "The generator's processor time per operation differed between rounds at the same \
               load. Other guests or programs let the host run faster and slower.",
        remedy "Compare with results of the same minutes, or use a host of its own.";
    HOST_SPEED_DIFFERS = "host_speed_differs":
        cause "The generator's processor time per operation differs from that in earlier runs of \
               the same sweep on this host. So the host is slower or faster now.",
        remedy "Repeat it later, or compare targets in turns with knee compare --live.";
    THROUGHPUT_VARIES = "throughput_varies":
        cause "Slices of the same level differ by more than 10 % beyond what their rounds explain, \
               so that the maximum is not determined within 5 %.",
        remedy "Measure for longer with a larger --budget, on a quieter host.";
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
        "see whether the target comes back by itself: knee recover URL",
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
        "let the target settle before it is measured (--warmup 30s), and look for what grows in it \
         with time (memory, files, connections)",
    )
}

/// Times without a response.
pub(in crate::experiment::sweep) fn outages(all: &[SweepOutage]) -> Option<Finding> {
    let ends = |o: &SweepOutage| o.begin_ns.zip(o.end_ns).map(|(a, b)| [a as f64, b as f64]);
    let length = |o: &SweepOutage| ends(o).map_or(0.0, |[begin, end]| end - begin);
    let longest = all.iter().max_by(|a, b| length(a).total_cmp(&length(b)))?;
    let [begin, end] = ends(longest).unwrap_or([f64::NAN; 2]);
    let when = if begin.is_nan() {
        at(None, longest.round)
    } else {
        let lasted = time(end - begin);
        format!("for {lasted}, from {} to {} into the sweep", time(begin), time(end))
    };
    let more = match all.len() {
        1 => String::new(),
        n => format!(" ({n} such times)"),
    };
    let failures: u64 = all.iter().map(|o| o.failures).sum();
    Some(OUTAGE.error(
        format!(
            "no good response came {when}, at {}{more}; {failures} operations failed",
            levels(&longest.levels)
        ),
        [
            ("from_ns", begin),
            ("until_ns", end),
            ("count", all.len() as f64),
            ("lasted_ns", all.iter().map(length).sum()),
            ("failures", failures as f64),
        ],
        "look at that time in the target's log: did it restart, or run out of something? then \
         repeat",
    ))
}

/// The host's speed varied between rounds.
pub(in crate::experiment::sweep) fn host_speed_varied(
    by_round: &[f64],
    half_percent: f64,
) -> Option<Finding> {
    let least = by_round.iter().copied().reduce(f64::min)?;
    let most = by_round.iter().copied().reduce(f64::max)?;
    let varied = 100.0 * (most / least - 1.0);
    let differ = varied.max(2.0 * half_percent);
    (varied > HOST_PERCENT).then(|| {
        HOST_SPEED_VARIED.info(
            format!(
                "the host's speed varied by {} between rounds: results of other minutes may differ \
                 by as much",
                percent(varied)
            ),
            [("varied_percent", varied), ("may_differ_percent", differ)],
            "compare with results of the same minutes, or measure on a host of its own",
        )
    })
}

/// The host is not as fast as it was in earlier runs.
pub(crate) fn host_speed_differs(of: &EarlierHostSpeed) -> Option<Finding> {
    let [more, slower, lower] =
        if of.speed < 1.0 { ["more", "slower", "lower"] } else { ["less", "faster", "higher"] };
    let differ = 100.0 * (1.0 / of.speed - 1.0);
    let runs = match of.runs {
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
            [("speed", of.speed), ("runs", f64::from(of.runs))],
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
        "measure for longer on a quieter host: --budget 5m",
    )
}
