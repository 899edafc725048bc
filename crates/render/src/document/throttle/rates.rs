//! How well each way holds a rate: four figures with the same rows, and the table.

use super::{ROW_PX, least_and_most};
use crate::axis::Axis;
use crate::document::line::{Ink, Line};
use crate::document::table::{Align, Table};
use crate::document::{Document, Layout, Medium};
use crate::number::{MISSING, asked, count, decimals_of_6_digits, fixed, percent_cell, time};
use crate::plot::{Mark, Plot, Point, Reference, Scale, Series, Tone, Unit};
use knee_core::experiment::throttle::report::RateRow;

/// Adds it.
pub(super) fn show(doc: &mut Document, rows: &[RateRow]) {
    let key = [
        "method", "asked", "achieved", "p50", "p99", "CV", "CPU", "skipped",
    ];
    let key = table(rows).with_columns(&key);
    doc.only(Medium::Screen, |doc| doc.table("Rates held", key));
    doc.section(
        "Rates held",
        "each way of holding the rate asked for; per second",
    );
    let plots = [
        plot_achieved(rows),
        plot_late(rows),
        plot_uneven(rows),
        plot_cost(rows),
    ];
    doc.only(Medium::Page, |doc| doc.plots(plots, Layout::Pairs));
    doc.table("Rates held", table(rows));
    doc.note(notes(rows));
}

fn plot(title: &str, x: Scale, rows: &[RateRow]) -> Plot {
    let names: Vec<String> = rows.iter().map(|r| r.method.clone()).collect();
    let height = ROW_PX * names.len() as u32;
    let mut plot = Plot::new(title, x, Scale::categories(names, ""));
    plot.height = height;
    plot
}

fn points(rows: &[RateRow], of: fn(&RateRow) -> f64) -> Vec<Point> {
    let rows = rows.iter().enumerate();
    rows.map(|(i, r)| Point::new(of(r), i as f64)).collect()
}

fn plot_achieved(rows: &[RateRow]) -> Plot {
    // Room for the words beside the longest bar.
    let ends = rows
        .iter()
        .flat_map(|r| [r.asked_per_s, 1.25 * r.achieved_per_s]);
    let x = Scale::from_zero(ends, Unit::PerS, "operations");
    let bars = Series::bars("achieved", points(rows, |r| r.achieved_per_s), 0.6);
    let labels = rows.iter().map(achieved_text).collect();
    let mut plot = plot("Achieved", x, rows).with(bars.labelled(labels));
    let Some(first) = rows.first() else {
        return plot;
    };
    plot.note = format!("dashed: {}/s, as asked", asked(first.asked_per_s));
    plot.against(Reference::Vertical {
        x: first.asked_per_s,
        label: String::new(),
        tone: Tone::Muted,
        range: None,
    })
}

fn plot_late(rows: &[RateRow]) -> Plot {
    let ends = rows
        .iter()
        .flat_map(|r| [r.error_p50_ns, r.error_p99_ns, r.error_max_ns]);
    let x = Scale::around(least_and_most(ends), Unit::Time, "after its intended time");
    let series = |name: &str, of: fn(&RateRow) -> f64| Series::points(name, points(rows, of));
    let p99 = series("p99", |r| r.error_p99_ns as f64).toned(Tone::Second);
    let max = series("max", |r| r.error_max_ns as f64).toned(Tone::Muted);
    plot("Start of an operation after its intended time", x, rows)
        .with(series("p50", |r| r.error_p50_ns as f64))
        .with(p99.marked(Mark::Square))
        .with(max.marked(Mark::Ring))
}

fn plot_uneven(rows: &[RateRow]) -> Plot {
    let ends = rows.iter().map(|r| 1.15 * r.gap_cv);
    let x = Scale::from_zero(ends, Unit::Number, "coefficient");
    let bars = Series::bars("CV", points(rows, |r| r.gap_cv), 0.6).toned(Tone::Fourth);
    let labels = rows.iter().map(|r| fixed(r.gap_cv, 3)).collect();
    let title = "Unevenness of the gaps: coefficient of variation";
    plot(title, x, rows).with(bars.labelled(labels))
}

fn plot_cost(rows: &[RateRow]) -> Plot {
    let shares = rows.iter().flat_map(|r| [r.cpu_percent, r.op_percent]);
    let x = Scale::from_zero(shares, Unit::Percent, "of a core");
    let all = Series::bars("all", points(rows, |r| r.cpu_percent), 0.6).toned(Tone::Second);
    let operations = Series::points("in operations", points(rows, |r| r.op_percent));
    plot("Processor time", x, rows)
        .with(all)
        .with(operations.toned(Tone::Muted).marked(Mark::Frame))
}

/// What the columns are.
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
    let mut table = Table::default();
    let names = rows.iter().map(|r| Line::plain(r.method.clone()));
    table.column("method", Align::Left, names.collect());
    let mut column = |title: &str, cell: fn(&RateRow) -> String| {
        let cells = rows.iter().map(|r| Line::plain(cell(r)));
        table.column(title, Align::Right, cells.collect());
    };
    column("asked", |r| asked(r.asked_per_s));
    column("achieved", achieved_text);
    column("drift ppm", |r| drift(r.drift_ppm));
    if rows.iter().any(|r| r.drift_error_ppm.is_some()) {
        column("±", |r| {
            r.drift_error_ppm.map_or(MISSING.to_string(), drift)
        });
    }
    column("p50", |r| time(r.error_p50_ns));
    column("p99", |r| time(r.error_p99_ns));
    column("max", |r| time(r.error_max_ns));
    column("CV", |r| fixed(r.gap_cv, 3));
    column("CPU", |r| percent_cell(r.cpu_percent));
    column("ops", |r| percent_cell(r.op_percent));
    let mut where_any = |title: &str, of: fn(&RateRow) -> u64, shown: fn(u64) -> String| {
        if rows.iter().any(|r| of(r) > 0) {
            let cells = rows.iter().map(|r| Line::plain(shown(of(r))));
            table.column(title, Align::Right, cells.collect());
        }
    };
    where_any("early", |r| r.early, count);
    where_any("skipped", |r| r.skipped, count);
    where_any("shifted", |r| r.shifted_ns, time);
    let axis = Axis::from_zero(rows.iter().flat_map(|r| [r.achieved_per_s, r.asked_per_s]));
    let bars = rows.iter().map(|r| Some(axis.position(r.achieved_per_s)));
    table.bar("achieved", Ink::Data, bars.collect());
    table
}

/// The rate that was reached, with as many decimals as say something.
fn achieved_text(row: &RateRow) -> String {
    fixed(row.achieved_per_s, decimals_of_6_digits(row.asked_per_s))
}

/// Two decimals where they say something, and no sign before nothing.
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
    fn drift_has_no_idle_digits() {
        for (ppm, text) in [
            (-0.001, "0.00"),
            (0.0213, "0.02"),
            (-12.345, "-12.35"),
            (1_003_241.7, "1,003,242"),
        ] {
            assert_eq!(drift(ppm), text);
        }
    }
}
