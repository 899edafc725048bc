//! The text form of 2011, as the `loadlatency` test printed it and `knee latency` still does.

use super::conclusion;
use crate::experiment::latency::analysis::{PathFigures, harmonic_mean, overall};
use crate::experiment::latency::report::{LatencyConclusion, ScenarioRow};
use crate::finding::{Finding, Severity, codes};
use crate::words::exact;
use knee_load::spec::{ParseError, parse_duration};

/// What such a text tells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Classic {
    /// The smallest round trip on the idle path.
    pub min_rtt_ns: Option<u64>,
    /// Its scenarios in the order of their lines, at least one. What a line does not state is
    /// `None`.
    pub scenarios: Vec<ScenarioRow>,
    /// The block after `OVERALL:`, as it prints the figures.
    pub overall: PathFigures<f64>,
}

/// The most flows that a scenario's line may name, in one direction.
const FLOWS_MAX: u32 = 1_000_000;
/// Larger figures are no measurement.
const FIGURE_MAX: f64 = 1e15;

/// Reads such a text: `MinRTT: 0.0ms`, lines such as `Scenario 4: 1 uploads, 1 downloads... 50998
/// KiB/s up, 85859 KiB/s down, 2.90 Hz smoothness`, and the block after `OVERALL:`. A line may lack
/// a direction or the smoothness. Lines of any other form are skipped, and so is what a line has
/// after its figures. Of figures that come twice the last one counts.
///
/// # Errors
/// One line that names the text's line, what is wrong and what would be right. A scenario or a
/// figure cannot be read, a direction without flows has a capacity, or the text has no scenario.
pub fn parse_classic(text: &str) -> Result<Classic, String> {
    let mut classic = Classic::default();
    let mut lines = text.lines().map(str::trim).enumerate().peekable();
    while let Some((index, line)) = lines.next() {
        let mut line = line.to_owned();
        // A narrow page breaks it after a comma.
        while let Some((_, rest)) = lines.next_if(|_| is_scenario(&line) && line.ends_with(',')) {
            line = format!("{line} {rest}");
        }
        read_line(&line, &mut classic).map_err(|what| format!("line {}: {what}", index + 1))?;
    }
    if classic.scenarios.is_empty() {
        return Err(format!("no scenario found; give lines such as `{EXAMPLE}`"));
    }
    Ok(classic)
}

const EXAMPLE: &str = "Scenario 4: 1 uploads, 1 downloads... 50998 KiB/s up, 85859 KiB/s down, \
                       2.90 Hz smoothness";

fn read_line(line: &str, classic: &mut Classic) -> Result<(), String> {
    if is_scenario(line) {
        classic.scenarios.push(scenario(line)?);
        return Ok(());
    }
    let Some((name, value)) = line.split_once(':') else {
        return Ok(());
    };
    let overall = &mut classic.overall;
    let (figure, unit) = match name.trim() {
        "MinRTT" => {
            classic.min_rtt_ns = Some(min_rtt(value)?);
            return Ok(());
        }
        "Upload Capacity" => (&mut overall.upload_capacity, "KiB/s"),
        "Download Capacity" => (&mut overall.download_capacity, "KiB/s"),
        "Link Responsiveness" => (&mut overall.responsiveness_hz, "Hz"),
        "Flow Smoothness" => (&mut overall.smoothness_hz, "Hz"),
        _ => return Ok(()),
    };
    let number = value.trim().strip_suffix(unit).and_then(number);
    *figure = Some(number.ok_or_else(|| {
        let value = quoted(value.trim());
        format!("{value} is no {}: give such as `50450 {unit}`", name.trim())
    })?);
    Ok(())
}

/// `Scenario` and a number; a sentence may begin with the word too.
fn is_scenario(line: &str) -> bool {
    let rest = line.strip_prefix("Scenario").map(str::trim_start);
    rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn min_rtt(value: &str) -> Result<u64, String> {
    let time = parse_duration(value.trim()).map_err(|ParseError(why)| format!("MinRTT: {why}"))?;
    Ok(time.0)
}

fn scenario(line: &str) -> Result<ScenarioRow, String> {
    let wrong = |what: &str| format!("{what}: give such as `{EXAMPLE}`");
    let (_, rest) =
        line.split_once(':').ok_or_else(|| wrong("a scenario without a colon after its number"))?;
    let (flows, figures) = rest
        .split_once("...")
        .ok_or_else(|| wrong("a scenario without `...` before its figures"))?;
    let count = |flows: &str, word: &str| {
        let words: Vec<&str> = flows.split_whitespace().collect();
        let number = match words.as_slice() {
            [number, noun] if noun.trim_end_matches('s') == word => number.parse().ok(),
            _ => None,
        };
        number.filter(|&n: &u32| n <= FLOWS_MAX)
    };
    let (up, down) = flows
        .split_once(',')
        .and_then(|(up, down)| Some((count(up, "upload")?, count(down, "download")?)))
        .filter(|(up, down)| up + down > 0)
        .ok_or_else(|| wrong(&format!("{} are no flows", quoted(flows.trim()))))?;
    let mut scenario = ScenarioRow { up, down, ..ScenarioRow::default() };
    for part in figures.split(',') {
        figure(part.trim(), &mut scenario).map_err(|what| wrong(&what))?;
    }
    for (flows, figure, way) in
        [(up, scenario.up_kib_per_s, "up"), (down, scenario.down_kib_per_s, "down")]
    {
        if flows == 0 && figure.is_some() {
            return Err(wrong(&format!("a capacity {way} without a flow {way}")));
        }
    }
    Ok(scenario)
}

/// One figure of a scenario's line; what is none is skipped.
fn figure(part: &str, scenario: &mut ScenarioRow) -> Result<(), String> {
    let words: Vec<&str> = part.split_whitespace().collect();
    let (value, unit, figure) = match words.as_slice() {
        [value, unit @ "KiB/s", "up", ..] => (value, unit, &mut scenario.up_kib_per_s),
        [value, unit @ "KiB/s", "down", ..] => (value, unit, &mut scenario.down_kib_per_s),
        [value, unit @ "Hz", "smoothness", ..] => (value, unit, &mut scenario.smoothness_hz),
        [value, unit @ "Hz", "responsiveness", ..] => {
            (value, unit, &mut scenario.responsiveness_hz)
        }
        [_, "KiB/s" | "Hz", ..] => return Err(format!("{} is no figure", quoted(part))),
        _ => return Ok(()),
    };
    let read = number(value);
    *figure = Some(read.ok_or_else(|| format!("{} is no number of {unit}", quoted(value)))?);
    Ok(())
}

/// Digits with at most one point, not below 0.
fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let is_plain = text.chars().all(|c| c.is_ascii_digit() || c == '.');
    let value: f64 = text.parse().ok().filter(|_| is_plain)?;
    (value <= FIGURE_MAX).then_some(value)
}

/// The beginning of it in backticks, in one line.
fn quoted(text: &str) -> String {
    let shown: String = text.chars().filter(|c| !c.is_control()).take(60).collect();
    format!("`{shown}`")
}

codes! {
    RECOMPUTED_DIFFERS = "recomputed_differs":
        cause "A text prints an overall figure that its scenarios do not give. Either the figure \
               was computed before the scenarios' figures were rounded, or it is of other \
               scenarios.",
        remedy "Nothing, where rounding explains it. Otherwise trust the scenarios, and check \
                whether the text is complete.";
}

/// What such a text says: its scenarios, and the overall figures as they give them. Where it prints
/// others, a finding says so. What no scenario tells, as responsiveness in the old form, is as
/// printed.
pub fn conclude_classic(classic: &Classic) -> (Vec<Finding>, LatencyConclusion) {
    let rows = classic.scenarios.clone();
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
    let conclusion = LatencyConclusion { answer: conclusion::in_words(&conclusion), ..conclusion };
    (differences(classic), conclusion)
}

fn differences(classic: &Classic) -> Vec<Finding> {
    let (printed, rows) = (&classic.overall, &classic.scenarios);
    let mean = |shifted: Vec<f64>| harmonic_mean(&shifted);
    let worst = |shifted: Vec<f64>| shifted.into_iter().reduce(f64::min);
    let (capacity, hertz) = ([-ROUNDED_KIB, 0.0, 1.0], [-0.01, 0.0, 0.01]);
    let recomputed =
        |figure: RowFigure, shifts: [f64; 3], join: &dyn Fn(Vec<f64>) -> Option<f64>| {
            shifts.map(|shift| join(rows.iter().filter_map(figure).map(|x| x + shift).collect()))
        };
    let up = recomputed(|row| row.up_kib_per_s, capacity, &mean);
    let down = recomputed(|row| row.down_kib_per_s, capacity, &mean);
    let responsiveness = recomputed(|row| row.responsiveness_hz, hertz, &worst);
    let smoothness = recomputed(|row| row.smoothness_hz, hertz, &worst);
    let figures = [
        ("upload capacity", "KiB/s", printed.upload_capacity, up),
        ("download capacity", "KiB/s", printed.download_capacity, down),
        ("link responsiveness", "Hz", printed.responsiveness_hz, responsiveness),
        ("flow smoothness", "Hz", printed.smoothness_hz, smoothness),
    ];
    let differing = figures.into_iter().filter_map(|(figure, unit, printed, recomputed)| {
        difference(figure, unit, printed?, recomputed)
    });
    differing.collect()
}

/// A figure of a scenario.
pub(super) type RowFigure = fn(&ScenarioRow) -> Option<f64>;

/// Of a scenario's capacity, so much may have been added by rounding, or up to 1 been cut off.
const ROUNDED_KIB: f64 = 0.5;

/// `recomputed`: the least, the likely and the most that the scenarios' figures give, however they
/// were rounded.
fn difference(
    figure: &str,
    unit: &str,
    printed: f64,
    recomputed: [Option<f64>; 3],
) -> Option<Finding> {
    let [Some(least), Some(recomputed), Some(most)] = recomputed else {
        return None;
    };
    let differs = printed != recomputed.floor();
    let is_rounding = least.floor() <= printed && printed <= most;
    let (severity, why) = if is_rounding {
        (Severity::Info, "it was computed before rounding")
    } else {
        (Severity::Warning, "it is of other scenarios, or of another definition")
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

#[cfg(test)]
mod tests;
