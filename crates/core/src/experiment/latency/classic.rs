//! `knee analyze latency`: the overall figures of a text, computed again.

use super::answer;
use crate::experiment::latency::analysis::figures::harmonic_mean;
use crate::experiment::latency::analysis::{Classic, overall};
use crate::experiment::latency::report::{LatencyConclusion, ScenarioRow};
use crate::finding::{Code, Finding, Severity};
use crate::words::exact;

pub(super) const RECOMPUTED_DIFFERS: Code = Code {
    name: "recomputed_differs",
    cause: "A text prints an overall figure that its scenarios do not give. Either the figure was \
            computed before the scenarios' figures were rounded, or it is of other scenarios.",
    remedy: "Nothing, where rounding explains it. Otherwise trust the scenarios, and check whether \
             the text is complete.",
};

/// What such a text says: its scenarios, and the overall figures as they give them. Where it prints
/// others, a finding says so. What no scenario tells, as responsiveness in the old form, is as
/// printed.
pub fn conclude_classic(classic: &Classic) -> (Vec<Finding>, LatencyConclusion) {
    let rows: Vec<ScenarioRow> = classic
        .scenarios
        .iter()
        .map(|s| ScenarioRow {
            up: s.up,
            down: s.down,
            up_kib_per_s: s.up_kib_per_s,
            down_kib_per_s: s.down_kib_per_s,
            smoothness_hz: s.smoothness_hz,
            responsiveness_hz: s.responsiveness_hz,
            ..ScenarioRow::default()
        })
        .collect();
    let figures = overall(&rows.iter().collect::<Vec<_>>());
    let printed = &classic.overall;
    let or_printed = |own: Option<u64>, printed: Option<f64>| own.or(printed.map(|hz| hz as u64));
    let conclusion = LatencyConclusion {
        min_rtt_ns: classic.min_rtt_ns,
        upload_capacity_kib_per_s: or_printed(figures.upload_capacity, printed.upload_capacity),
        download_capacity_kib_per_s: or_printed(
            figures.download_capacity,
            printed.download_capacity,
        ),
        responsiveness_hz: or_printed(figures.responsiveness_hz, printed.responsiveness_hz),
        smoothness_hz: or_printed(figures.smoothness_hz, printed.smoothness_hz),
        scenarios: rows,
        ..LatencyConclusion::default()
    };
    let findings = differences(classic, &conclusion.scenarios);
    let answer = answer::of(&conclusion);
    (
        findings,
        LatencyConclusion {
            answer,
            ..conclusion
        },
    )
}

fn differences(classic: &Classic, rows: &[ScenarioRow]) -> Vec<Finding> {
    let printed = &classic.overall;
    let mean = |shift: f64, figure: Figure| {
        let shifted = rows.iter().filter_map(figure).map(|x| x + shift);
        harmonic_mean(&shifted.collect::<Vec<_>>())
    };
    let worst = |shift: f64, figure: Figure| {
        let shifted = rows.iter().filter_map(figure).map(|x| x + shift);
        shifted.reduce(f64::min)
    };
    let capacity = |figure: Figure| [-ROUNDED_KIB, 0.0, 1.0].map(|shift| mean(shift, figure));
    let hertz = |figure: Figure| [-0.01, 0.0, 0.01].map(|shift| worst(shift, figure));
    let differing = [
        difference(
            ("upload capacity", "KiB/s"),
            printed.upload_capacity,
            capacity(|row| row.up_kib_per_s),
        ),
        difference(
            ("download capacity", "KiB/s"),
            printed.download_capacity,
            capacity(|row| row.down_kib_per_s),
        ),
        difference(
            ("link responsiveness", "Hz"),
            printed.responsiveness_hz,
            hertz(|row| row.responsiveness_hz),
        ),
        difference(
            ("flow smoothness", "Hz"),
            printed.smoothness_hz,
            hertz(|row| row.smoothness_hz),
        ),
    ];
    differing.into_iter().flatten().collect()
}

type Figure = fn(&ScenarioRow) -> Option<f64>;

/// Of a scenario's capacity, so much may have been added by rounding, or up to 1 been cut off.
const ROUNDED_KIB: f64 = 0.5;

/// `recomputed`: the least, the likely and the most that the scenarios' figures give, however they
/// were rounded.
fn difference(
    (figure, unit): (&'static str, &'static str),
    printed: Option<f64>,
    recomputed: [Option<f64>; 3],
) -> Option<Finding> {
    let printed = printed?;
    let [Some(least), Some(recomputed), Some(most)] = recomputed else {
        return None;
    };
    let differs = printed != recomputed.floor();
    let is_rounding = least.floor() <= printed && printed <= most;
    let (severity, why) = match is_rounding {
        true => (Severity::Info, "it was computed before rounding"),
        false => (
            Severity::Warning,
            "it is of other scenarios, or of another definition",
        ),
    };
    differs.then(|| {
        RECOMPUTED_DIFFERS.finding(
            severity,
            format!(
                "the text prints {} {unit} as {figure}, its scenarios give {} {unit}: {why}",
                exact(printed),
                tenths(recomputed)
            ),
            [("printed", printed), ("recomputed", recomputed)],
            "",
        )
    })
}

/// With one digit after the point, so that a rounding shows.
fn tenths(value: f64) -> String {
    let whole = exact(value.floor());
    let tenth = ((value - value.floor()) * 10.0).floor();
    format!("{whole}.{tenth:.0}")
}
