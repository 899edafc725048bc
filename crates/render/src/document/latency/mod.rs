//! Latency under load: the text of the original test, all scenarios, their flows, and each scenario
//! over time.

mod plots;
mod scenarios;

use super::table::{Table, TableOf};
use super::{Document, Fact, Layout, Medium, fact, generator};
use crate::document::Block;
use crate::number::{TIE, count, known, number, time_short};
use knee_core::experiment::latency::analysis::PATH_FIGURES;
use knee_core::experiment::latency::report::{LatencyConclusion, ScenarioRow};
use knee_core::report::Report;
use knee_core::trial::detail::FlowsReport;
use knee_core::trial::report::TrialReport;

/// Adds all sections of a latency test.
pub(super) fn show(doc: &mut Document, report: &Report, c: &LatencyConclusion) {
    if c.scenarios.is_empty() {
        return;
    }
    let shown = pairs(report, c);
    doc.only(Medium::Screen, |doc| show_key_figures(doc, c, &shown));
    show_original_text(doc, c);
    show_overall(doc, c);
    scenarios::show_controls(doc, &c.by_congestion_control);
    show_scenarios(doc, c, &shown);
    if shown.is_empty() {
        return;
    }
    doc.section("Latency", scenarios::latency_remark(&shown));
    let table = scenarios::latency_table(&shown, c.idle_ns.is_some());
    doc.table("Latency", table);
    doc.section("Flows", scenarios::FLOWS_REMARK);
    doc.only(Medium::Page, |doc| doc.plots([plots::flows(&c.scenarios)], Layout::Wide));
    doc.table("Flows", scenarios::flows_table(&shown));
    doc.note(scenarios::FLOWS_NOTE);
    let worst = worst(&shown);
    plots::show_over_time(doc, &shown, worst.as_ref());
    if let Some(worst) = worst {
        let title = name(worst.row, names_controls(shown.iter().map(|s| s.row)));
        scenarios::show_worst(doc, &worst, &title, shown.len());
    }
    if let [only] = shown.as_slice() {
        generator::show(doc, only.trial);
    }
}

/// Adds the first screen.
fn show_key_figures(doc: &mut Document, c: &LatencyConclusion, shown: &[ScenarioTrial]) {
    if shown.is_empty() {
        doc.table("Scenarios", scenarios_table(&c.scenarios));
    } else {
        let mut table = scenarios::flows_table(shown).with_columns(&["", "up KiB/s", "down KiB/s"]);
        let latency = scenarios::latency_table(shown, c.idle_ns.is_some());
        let latency = latency.with_columns(&["added", "ping p50", "p99", "longest"]);
        table.columns.extend(latency.columns);
        doc.table("Scenarios", table);
    }
    doc.facts(overall(c));
}

fn show_overall(doc: &mut Document, c: &LatencyConclusion) {
    let grade = match c.path.grade.as_str() {
        "" => Vec::new(),
        _ => scenarios::grade_facts(c),
    };
    doc.section("Overall", "the worst scenario counts");
    // The text of the original test has the rest.
    doc.only(Medium::Lines, |doc| doc.facts(grade.clone()));
    doc.only(Medium::Page, |doc| doc.facts(grade.into_iter().chain(overall(c))));
}

/// The figures of the path as a whole.
fn overall(c: &LatencyConclusion) -> Vec<Fact> {
    let figure = |value, unit: &str| known(value, |n| format!("{}{TIE}{unit}", count(n)));
    vec![
        fact("least round trip", known(c.min_rtt_ns, time_short)),
        fact("upload capacity", figure(c.path.upload_capacity_kib_per_s, "KiB/s")),
        fact("download capacity", figure(c.path.download_capacity_kib_per_s, "KiB/s")),
        fact("responsiveness", figure(c.path.responsiveness_hz, "Hz")),
        fact("smoothness", figure(c.path.smoothness_hz, "Hz")),
    ]
}

fn show_scenarios(doc: &mut Document, c: &LatencyConclusion, shown: &[ScenarioTrial]) {
    doc.section("Scenarios", "uploads/downloads at a time");
    doc.only(Medium::Page, |doc| {
        doc.plots(plots::overview(c, shown), Layout::Panels);
        // Of measured scenarios the tables below have the same figures.
        if shown.is_empty() {
            doc.table("Scenarios", scenarios_table(&c.scenarios));
        }
    });
    doc.list(scenarios::ends(c));
}

fn scenarios_table(rows: &[ScenarioRow]) -> Table {
    let names = names_controls(rows.iter());
    let mut table = TableOf::new(rows);
    table.left("", |row| name(row, names));
    table.right_if_any("up KiB/s", "", |row| row.up_kib_per_s.map(number));
    table.right_if_any("down KiB/s", "", |row| row.down_kib_per_s.map(number));
    table.right_if_any("smoothness Hz", "", |row| row.smoothness_hz.map(number));
    table.right_if_any("responsiveness Hz", "", |row| row.responsiveness_hz.map(number));
    table.done()
}

/// A scenario with its trial.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScenarioTrial<'a> {
    /// Its row in the conclusion.
    pub row: &'a ScenarioRow,
    /// The trial.
    pub trial: &'a TrialReport,
    /// The flows of the trial.
    pub flows: &'a FlowsReport,
}

/// The scenarios with their trials. The idle path, a trial without flows, has no row. An analyzed
/// text has no trials. Old reports do not say to which row a trial belongs.
pub(super) fn pairs<'a>(
    report: &'a Report,
    conclusion: &'a LatencyConclusion,
) -> Vec<ScenarioTrial<'a>> {
    let with_flows = |trial: &'a TrialReport| {
        let flows = trial.flows()?;
        (flows.up.is_some() || flows.down.is_some()).then_some((trial, flows))
    };
    let mut in_order = report.trials.iter().filter_map(with_flows);
    let rows = conclusion.scenarios.iter();
    let shown = rows.filter_map(|row| {
        let (trial, flows) = match row.trial {
            Some(index) => with_flows(report.trials.get(index)?)?,
            None => in_order.next()?,
        };
        Some(ScenarioTrial { row, trial, flows })
    });
    shown.collect()
}

/// The scenario with the longest latency.
pub(super) fn worst<'a>(shown: &[ScenarioTrial<'a>]) -> Option<ScenarioTrial<'a>> {
    shown.iter().max_by_key(|s| s.flows.latency_ns_max).copied()
}

/// A scenario by its flows, uploads first: `1/31`, with its congestion control where several were
/// compared.
pub(super) fn name(row: &ScenarioRow, names_control: bool) -> String {
    if names_control && !row.congestion_control.is_empty() {
        format!("{}/{} {}", row.up, row.down, row.congestion_control)
    } else {
        format!("{}/{}", row.up, row.down)
    }
}

/// Whether scenarios of several congestion controls stand beside each other.
fn names_controls<'a>(mut rows: impl Iterator<Item = &'a ScenarioRow>) -> bool {
    let first = rows.next().map(|row| &row.congestion_control);
    rows.any(|row| Some(&row.congestion_control) != first)
}

/// Adds the text. Of several congestion controls it covers the first, as the overall figures do.
fn show_original_text(doc: &mut Document, c: &LatencyConclusion) {
    let control = c.scenarios.first().map_or("", |row| row.congestion_control.as_str());
    let mut lines = Vec::new();
    lines.extend(c.min_rtt_ns.map(|ns| format!("MinRTT: {:.1}ms", ns as f64 / 1e6)));
    let of_first = c.scenarios.iter().filter(|row| row.congestion_control == control);
    lines.extend(of_first.enumerate().map(|(i, row)| scenario(i + 1, row)));
    lines.push("OVERALL:".to_owned());
    lines.extend(PATH_FIGURES.iter().filter_map(|figure| {
        let value = (figure.of_path)(&c.path)?;
        Some(format!("{:>19}: {value} {}", figure.title(), figure.unit))
    }));
    doc.only(Medium::Lines, |doc| doc.push(Block::Verbatim(lines)));
}

/// `Scenario 4: 1 uploads, 1 downloads... 50998 KiB/s up, 85859 KiB/s down, 2.90 Hz smoothness`; a
/// direction without flows is left out.
fn scenario(number: usize, row: &ScenarioRow) -> String {
    let mut parts = Vec::new();
    for (kib_per_s, direction) in [(row.up_kib_per_s, "up"), (row.down_kib_per_s, "down")] {
        parts.extend(kib_per_s.map(|n| format!("{:.0} KiB/s {direction}", n.floor())));
    }
    // Two decimals, rounded down as the overall figure is: 2.996 Hz must not become 3. The summand
    // is for 2.90, which is a little less in binary.
    let hundredths = |hz: f64| (hz * 100.0 + 1e-6).floor() / 100.0;
    parts.extend(row.smoothness_hz.map(|hz| format!("{:.2} Hz smoothness", hundredths(hz))));
    format!("Scenario {number}: {} uploads, {} downloads... {}", row.up, row.down, parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_are_written_as_they_always_were() {
        let row = |up, down, up_kib_per_s, down_kib_per_s, smoothness_hz| ScenarioRow {
            up,
            down,
            up_kib_per_s,
            down_kib_per_s,
            smoothness_hz,
            ..ScenarioRow::default()
        };
        for (row, expected) in [
            (
                row(1, 1, Some(50_998.9), Some(85_859.0), Some(2.9)),
                "Scenario 4: 1 uploads, 1 downloads... 50998 KiB/s up, 85859 KiB/s down, \
                 2.90 Hz smoothness",
            ),
            (
                row(0, 32, None, Some(0.0), Some(0.0)),
                "Scenario 4: 0 uploads, 32 downloads... 0 KiB/s down, 0.00 Hz smoothness",
            ),
            (
                row(2, 0, Some(7.2), None, Some(2.9999)),
                "Scenario 4: 2 uploads, 0 downloads... 7 KiB/s up, 2.99 Hz smoothness",
            ),
        ] {
            assert_eq!(scenario(4, &row), expected);
        }
    }
}
