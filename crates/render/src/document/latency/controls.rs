//! The overall figures of each congestion control, where several were compared.

use super::scenarios::controls_table;
use crate::document::{Document, Layout, Medium};
use crate::plot::{Plot, Point, Scale, Series, Tone, Unit};
use knee_core::experiment::latency::report::CongestionRow;

/// What is drawn of a control.
type Figure = fn(&CongestionRow) -> Option<u64>;

/// Adds them.
pub(super) fn show(doc: &mut Document, rows: &[CongestionRow]) {
    if rows.len() < 2 {
        return;
    }
    doc.section(
        "Congestion controls",
        "the same scenarios with each of them",
    );
    let figures: [(&str, Unit, Tone, Figure); 3] = [
        ("Latency added under load", Unit::Time, Tone::Second, |r| {
            r.added_latency_ns
        }),
        ("Upload capacity", Unit::KibPerS, Tone::First, |r| {
            r.upload_capacity_kib_per_s
        }),
        ("Download capacity", Unit::KibPerS, Tone::Third, |r| {
            r.download_capacity_kib_per_s
        }),
    ];
    let plots = figures.map(|(title, unit, tone, of)| plot(title, unit, tone, rows, of));
    doc.only(Medium::Page, |doc| doc.plots(plots, Layout::Panels));
    doc.table("Congestion controls", controls_table(rows));
}

fn plot(title: &str, unit: Unit, tone: Tone, rows: &[CongestionRow], of: Figure) -> Plot {
    let graded = |row: &CongestionRow| match row.grade.as_str() {
        "" => row.congestion_control.clone(),
        grade => format!("{} ({grade})", row.congestion_control),
    };
    let values = rows
        .iter()
        .map(|row| of(row).map_or(f64::NAN, |n| n as f64));
    let values: Vec<f64> = values.collect();
    // Room for the words beside the longest bar.
    let x = Scale::from_zero(values.iter().map(|v| 1.45 * v), unit, "");
    let names = rows.iter().map(graded).collect();
    let mut plot = Plot::new(title, x, Scale::categories(names, ""));
    plot.height = 30 * rows.len() as u32;
    let bars = values.iter().enumerate();
    let bars = bars.map(|(i, v)| Point::new(*v, i as f64)).collect();
    let labels = values.iter().map(|v| unit.value(*v)).collect();
    plot.with(Series::bars("", bars, 0.6).toned(tone).labelled(labels))
}
