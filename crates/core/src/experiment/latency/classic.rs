//! The text form of 2011, as the `loadlatency` test printed it and `knee latency` still does.

use super::answer::in_words;
use crate::experiment::latency::analysis::{PATH_FIGURES, PathFigure, overall};
use crate::experiment::latency::report::{LatencyConclusion, PathFigures, ScenarioRow};
use crate::finding::{Finding, Severity, codes};
use crate::words::exact;
use knee_load::spec::{ParseError, parse_duration};

/// The figures of a text in the form of 2011.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Classic {
    /// The smallest round trip on the idle path.
    pub min_rtt_ns: Option<u64>,
    /// Its scenarios in the order of their lines, at least one. What a line does not state is
    /// `None`.
    pub scenarios: Vec<ScenarioRow>,
    /// The block after `OVERALL:`: what it prints of each of [`PATH_FIGURES`].
    pub overall: [Option<f64>; 4],
}

/// The most flows that a scenario's line may name, in one direction.
const FLOWS_MAX: u32 = 1_000_000;
/// Larger figures are no measurement.
const FIGURE_MAX: f64 = 1e15;

/// Reads a text in the form of 2011: `MinRTT: 0.0ms`, lines such as `Scenario 4: 1 uploads, 1
/// downloads... 50998 KiB/s up, 85859 KiB/s down, 2.90 Hz smoothness`, and the block after
/// `OVERALL:`. A line may lack a direction or the smoothness. Lines of any other form are skipped,
/// and so is what a line has after its figures. Of figures that come twice the last one counts.
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
    let name = name.trim();
    if name == "MinRTT" {
        let time =
            parse_duration(value.trim()).map_err(|ParseError(why)| format!("MinRTT: {why}"))?;
        classic.min_rtt_ns = Some(time.0);
        return Ok(());
    }
    let Some(index) = PATH_FIGURES.iter().position(|figure| figure.title() == name) else {
        return Ok(());
    };
    let unit = PATH_FIGURES[index].unit;
    let number = value.trim().strip_suffix(unit).and_then(number);
    classic.overall[index] = Some(number.ok_or_else(|| {
        let value = quoted(value.trim());
        format!("{value} is no {name}: give such as `50450 {unit}`")
    })?);
    Ok(())
}

/// `Scenario` and a number; a sentence may begin with the word too.
fn is_scenario(line: &str) -> bool {
    let rest = line.strip_prefix("Scenario").map(str::trim_start);
    rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn scenario(line: &str) -> Result<ScenarioRow, String> {
    let error = |what: &str| format!("{what}: give such as `{EXAMPLE}`");
    let (_, rest) =
        line.split_once(':').ok_or_else(|| error("a scenario without a colon after its number"))?;
    let (flows, figures) = rest
        .split_once("...")
        .ok_or_else(|| error("a scenario without `...` before its figures"))?;
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
        .ok_or_else(|| error(&format!("{} are no flows", quoted(flows.trim()))))?;
    let mut scenario = ScenarioRow { up, down, ..ScenarioRow::default() };
    for part in figures.split(',') {
        figure(part.trim(), &mut scenario).map_err(|what| error(&what))?;
    }
    for (flows, figure, way) in
        [(up, scenario.up_kib_per_s, "up"), (down, scenario.down_kib_per_s, "down")]
    {
        if flows == 0 && figure.is_some() {
            return Err(error(&format!("a capacity {way} without a flow {way}")));
        }
    }
    Ok(scenario)
}

/// Reads one figure of a scenario's line; other words are skipped.
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
    let value = number(value).ok_or_else(|| format!("{} is no number of {unit}", quoted(value)))?;
    *figure = Some(value);
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

/// The scenarios of such a text, and the overall figures computed from them. Where it prints
/// others, a finding says so. A figure that no scenario has, as responsiveness in the old form, is
/// as printed.
pub fn conclude_classic(classic: &Classic) -> (Vec<Finding>, LatencyConclusion) {
    let rows = classic.scenarios.clone();
    let recomputed = overall(&rows.iter().collect::<Vec<_>>());
    let [up, down, responsiveness, smoothness] = std::array::from_fn(|index| {
        let printed = classic.overall[index].map(|figure| figure as u64);
        (PATH_FIGURES[index].of_path)(&recomputed).or(printed)
    });
    let conclusion = LatencyConclusion {
        min_rtt_ns: classic.min_rtt_ns,
        path: PathFigures {
            upload_capacity_kib_per_s: up,
            download_capacity_kib_per_s: down,
            responsiveness_hz: responsiveness,
            smoothness_hz: smoothness,
            ..recomputed
        },
        scenarios: rows,
        ..LatencyConclusion::default()
    };
    let conclusion = LatencyConclusion { answer: in_words(&conclusion), ..conclusion };
    let findings = PATH_FIGURES.iter().zip(classic.overall).filter_map(|(figure, printed)| {
        let shifts = if figure.is_capacity { [-ROUNDED_KIB, 0.0, 1.0] } else { [-0.01, 0.0, 0.01] };
        let recomputed = shifts.map(|shift| {
            let rows = classic.scenarios.iter();
            figure.overall(&rows.filter_map(figure.of_row).map(|x| x + shift).collect::<Vec<_>>())
        });
        difference(figure, printed?, recomputed)
    });
    (findings.collect(), conclusion)
}

/// Maximum that rounding may have added to a scenario's capacity; up to 1 may have been cut off.
const ROUNDED_KIB: f64 = 0.5;

/// `recomputed`: the least, the likely and the most that the scenarios' figures give, however they
/// were rounded.
fn difference(figure: &PathFigure, printed: f64, recomputed: [Option<f64>; 3]) -> Option<Finding> {
    let [Some(least), Some(recomputed), Some(most)] = recomputed else {
        return None;
    };
    let unit = figure.unit;
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
                "the text prints {} {unit} as {}, its scenarios give {} {unit}: {why}",
                exact(printed),
                figure.name,
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
