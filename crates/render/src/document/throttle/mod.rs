//! Throttling: how well each way holds a rate; or how this machine waits, and the cost of waiting.

mod waits;

use super::line::Ink;
use super::table::{Table, TableOf};
use super::{Document, Layout, Medium};
use crate::number::{
    MISSING, count, decimals_of_6_digits, fixed, known, percent_cell, time, whole_or_rounded,
};
use crate::plot::{Axis, Mark, Plot, PlotSeries, Reference, Scale, Tone, Unit, row_points, span};
use knee_core::experiment::throttle::report::{RateRow, ThrottleConclusion};

/// The least begin of an axis of lateness, in nanoseconds: the resolution of a clock.
const LEAST_NS: f64 = 10.0;

/// Height of one row of a plot of methods, in CSS pixels.
const ROW_PX: u32 = 26;

/// Adds all sections of a throttle experiment.
pub(super) fn show(doc: &mut Document, c: &ThrottleConclusion) {
    if !c.rates.is_empty() {
        show_rates(doc, &c.rates);
    }
    if !c.table.is_empty() {
        waits::show(doc, c);
    }
}

fn least_and_most(values: impl Iterator<Item = u64>) -> [f64; 2] {
    let [least, most] = span(values.map(|ns| ns as f64)).unwrap_or([LEAST_NS; 2]);
    [least.max(LEAST_NS), most.max(LEAST_NS)]
}

/// Adds the sections on rates.
fn show_rates(doc: &mut Document, rows: &[RateRow]) {
    let key = ["method", "asked", "achieved", "p50", "p99", "CV", "CPU", "skipped"];
    let key = table(rows).with_columns(&key);
    doc.only(Medium::Screen, |doc| doc.table("Rates held", key));
    doc.section("Rates held", "each way of holding the rate asked for; per second");
    let plots = [plot_achieved(rows), plot_late(rows), plot_uneven(rows), plot_cost(rows)];
    doc.only(Medium::Page, |doc| doc.plots(plots, Layout::Pairs));
    doc.table("Rates held", table(rows));
    doc.note(notes(rows));
}

fn plot(title: &str, x: Scale, rows: &[RateRow]) -> Plot {
    Plot::of_rows(title, x, rows.iter().map(|r| r.method.as_str()), ROW_PX)
}

fn bars(name: &str, rows: &[RateRow], figure: fn(&RateRow) -> f64) -> PlotSeries {
    PlotSeries::bars(name, row_points(rows, |r| Some(figure(r))), 0.6)
}

fn marks(name: &str, rows: &[RateRow], figure: fn(&RateRow) -> f64) -> PlotSeries {
    PlotSeries::marks(name, row_points(rows, |r| Some(figure(r))))
}

fn plot_achieved(rows: &[RateRow]) -> Plot {
    // Room for the words beside the longest bar.
    let ends = rows.iter().flat_map(|r| [r.asked_per_s, 1.25 * r.achieved_per_s.unwrap_or(0.0)]);
    let x = Scale::from_zero(ends, Unit::PerS, "operations");
    let achieved = PlotSeries::bars("achieved", row_points(rows, |r| r.achieved_per_s), 0.6);
    let plot = plot("Achieved", x, rows).with(achieved.labelled(rows.iter().map(achieved_text)));
    let Some(first) = rows.first() else {
        return plot;
    };
    plot.noted(format!("dashed: {}/s, as asked", whole_or_rounded(first.asked_per_s)))
        .against(Reference::x(first.asked_per_s, ""))
}

fn plot_late(rows: &[RateRow]) -> Plot {
    let ends = rows.iter().flat_map(|r| [r.error_p50_ns, r.error_p99_ns, r.error_max_ns]);
    let x = Scale::around(least_and_most(ends), Unit::Time, "after its intended time");
    let p99 = marks("p99", rows, |r| r.error_p99_ns as f64).toned(Tone::Second);
    let max = marks("max", rows, |r| r.error_max_ns as f64).toned(Tone::Muted);
    plot("Start of an operation after its intended time", x, rows)
        .with(marks("p50", rows, |r| r.error_p50_ns as f64))
        .with(p99.marked(Mark::Square))
        .with(max.marked(Mark::Ring))
}

fn plot_uneven(rows: &[RateRow]) -> Plot {
    let ends = rows.iter().map(|r| 1.15 * r.gap_cv);
    let x = Scale::from_zero(ends, Unit::Number, "coefficient");
    let cv = bars("CV", rows, |r| r.gap_cv).toned(Tone::Fourth);
    let title = "Unevenness of the gaps: coefficient of variation";
    plot(title, x, rows).with(cv.labelled(rows.iter().map(|r| fixed(r.gap_cv, 3))))
}

fn plot_cost(rows: &[RateRow]) -> Plot {
    let shares = rows.iter().flat_map(|r| [r.cpu_percent, r.op_percent]);
    let x = Scale::from_zero(shares, Unit::Percent, "of a core");
    let operations = marks("in operations", rows, |r| r.op_percent).toned(Tone::Muted);
    plot("Processor time", x, rows)
        .with(bars("all", rows, |r| r.cpu_percent).toned(Tone::Second))
        .with(operations.marked(Mark::Frame))
}

/// The legend of the table.
fn notes(rows: &[RateRow]) -> String {
    let mut notes = vec![
        "drift: by how much lateness grows, ns per ms; ±: by how much stalls may have bent it; \
         p50, p99, max: start of an operation after its intended time; CV: of the gaps between \
         operations; CPU, and the operations' share of the time: % of a core",
    ];
    if rows.iter().any(|r| r.early > 0) {
        notes.push("early: before their intended time, in groups");
    }
    notes.join("; ")
}

/// A row for each way.
fn table(rows: &[RateRow]) -> Table {
    let mut table = TableOf::new(rows);
    table.left("method", |r| r.method.as_str());
    table.right("asked", |r| whole_or_rounded(r.asked_per_s));
    table.right("achieved", achieved_text);
    table.right("drift ppm", |r| known(r.achieved_per_s, |_| drift(r.drift_ppm)));
    table.right_if_any("±", MISSING, |r| r.drift_error_ppm.map(drift));
    table.right("p50", |r| time(r.error_p50_ns));
    table.right("p99", |r| time(r.error_p99_ns));
    table.right("max", |r| time(r.error_max_ns));
    table.right("CV", |r| known(r.achieved_per_s, |_| fixed(r.gap_cv, 3)));
    table.right("CPU", |r| percent_cell(r.cpu_percent));
    table.right("ops", |r| percent_cell(r.op_percent));
    let mut right_if_above_zero =
        |title: &str, number: fn(&RateRow) -> u64, text: fn(u64) -> String| {
            if rows.iter().any(|r| number(r) > 0) {
                table.right(title, |r| text(number(r)));
            }
        };
    right_if_above_zero("early", |r| r.early, count);
    right_if_above_zero("skipped", |r| r.skipped, count);
    right_if_above_zero("shifted", |r| r.shifted_ns, time);
    let ends = rows.iter().flat_map(|r| [r.achieved_per_s.unwrap_or(0.0), r.asked_per_s]);
    let axis = Axis::from_zero(ends);
    table.bars("achieved", Ink::Data, |r| Some(axis.position(r.achieved_per_s?)));
    table.done()
}

/// The achieved rate, with the decimals that six digits of the rate asked for have.
fn achieved_text(row: &RateRow) -> String {
    known(row.achieved_per_s, |per_s| fixed(per_s, decimals_of_6_digits(row.asked_per_s)))
}

/// Two decimals below 100, and no sign before zero.
fn drift(ppm: f64) -> String {
    match ppm.abs() {
        v if v < 0.005 => "0.00".to_string(),
        v if v < 100.0 => fixed(ppm, 2),
        _ => fixed(ppm, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_operation_has_no_rate() {
        let row = RateRow { asked_per_s: 1_000.0, operations: 1, ..RateRow::default() };
        let table = table(std::slice::from_ref(&row));
        for title in ["achieved", "drift ppm", "CV"] {
            let column = table.columns.iter().find(|column| column.title == title);
            assert_eq!(column.expect("it is there").cells[0].text(), MISSING, "{title}");
        }
        plot_achieved(&[row]);
    }

    #[test]
    fn drift_has_no_idle_digits() {
        for (ppm, text) in
            [(-0.001, "0.00"), (0.0213, "0.02"), (-12.345, "-12.35"), (1_003_241.7, "1,003,242")]
        {
            assert_eq!(drift(ppm), text);
        }
    }
}
