//! Figures as reports state them, a value or its range, and the table of latencies.

use super::line::{Ink, Line};
use super::table::{Table, TableOf};
use crate::axis::Axis;
use crate::number::{known, time, time_interval, time_short};
use knee_core::trial::figure::{Figure, TimeFigure, TimesReport};
use knee_core::trial::report::TrialReport;

/// The figure, or its range; `write` formats one value.
pub(super) fn stated<T: Copy>(figure: Figure<T>, write: impl Fn(T) -> String) -> String {
    match figure {
        Figure::Exactly(value) => write(value),
        Figure::Within(least, Some(most)) => format!("{}–{}", write(least), write(most)),
        Figure::Within(least, None) => format!("at least {}", write(least)),
        Figure::Absent => known(None, write),
    }
}

/// A figure, what is stated of it and, if known, its confidence interval.
type StatedFigure = (&'static TimeFigure, Figure<u64>, Option<[u64; 2]>);

fn statistics(l: &TimesReport) -> Vec<StatedFigure> {
    let row = |row: &'static TimeFigure| {
        let ci95 = row.ci95(l).filter(|_| row.states_interval);
        (row, row.stated(l), ci95)
    };
    TimesReport::FIGURES.iter().map(row).collect()
}

/// Response and service time, a row for each statistic, with bars over the logarithm of the
/// response times.
pub(super) fn latency_table(t: &TrialReport) -> Table {
    let response = statistics(&t.response_time_ns);
    let rows = response.into_iter().zip(statistics(&t.service_time_ns));
    let rows: Vec<(StatedFigure, StatedFigure)> = rows.collect();
    let mut table = TableOf::new(&rows);
    table.left("", |((figure, ..), _)| Line::of(Ink::Dim, figure.title));
    add_times(&mut table, "response", |row| &row.0);
    if t.service_time_ns.count > 0 {
        add_times(&mut table, "service", |row| &row.1);
    }
    let most = |key| t.response_time_ns.figure(key).at_most();
    let ends = [most("min").or(most("p50")), most("max")].map(|ns| ns.unwrap_or(1).max(1) as f64);
    let axis = Axis::decades(ends, |ns| time_short(ns as u64));
    let title = format!("log scale from {}", (axis.label)(axis.lo));
    table.bars(title, Ink::Data, |((_, figure, _), _)| {
        Some(axis.position(figure.at_most()?.max(1) as f64))
    });
    table.done()
}

/// The rows of the latency table for the first screen.
pub(super) fn key_times_table(t: &TrialReport) -> Table {
    let times = &t.response_time_ns;
    let is_key = |row: usize| {
        let (row, figure, _) = statistics(times)[row];
        match row.title {
            "p50" => true,
            "p90" | "p99" | "p99.9" | "max" => times.count > 1 && figure != Figure::Absent,
            _ => false,
        }
    };
    latency_table(t).with_columns(&["", "response", "service"]).with_rows(is_key)
}

/// Adds the figures of one kind of time with their intervals.
fn add_times<T>(table: &mut TableOf<T>, title: &str, of: impl Fn(&T) -> &StatedFigure) {
    table.right(title, |row| stated(of(row).1, time));
    table.right_if_any("95 % interval", "", |row| {
        Some(Line::of(Ink::Dim, time_interval(of(row).2?)))
    });
}
