//! Figures as reports state them: a value, or its range.

use super::line::{Ink, Line};
use super::table::{Align, Table};
use crate::axis::Axis;
use crate::number::{known, time, time_interval, time_short};
use knee_core::trial::figure::{Figure, TimeFigure, TimesReport};
use knee_core::trial::report::TrialReport;

/// The figure, or its range; `write` writes one of its values.
pub(super) fn stated<T: Copy>(figure: Figure<T>, write: impl Fn(T) -> String) -> String {
    match figure {
        Figure::Exactly(value) => write(value),
        Figure::Within(least, Some(most)) => format!("{}–{}", write(least), write(most)),
        Figure::Within(least, None) => format!("at least {}", write(least)),
        Figure::Absent => known(None, write),
    }
}

/// One row of the latency table: its figure, what is stated of it and, where known, its interval.
type StatedFigure = (&'static TimeFigure, Figure<u64>, Option<[u64; 2]>);

fn statistics(l: &TimesReport) -> Vec<StatedFigure> {
    let row = |row: &'static TimeFigure| {
        let ci95 = row.ci95(l).filter(|_| row.states_interval);
        (row, row.stated(l), ci95)
    };
    TimesReport::FIGURES.iter().map(row).collect()
}

/// Response and service time, a row for each statistic.
pub(super) fn latency_table(t: &TrialReport) -> Table {
    let mut table = Table::default();
    let response = statistics(&t.response_time_ns);
    let names = response.iter();
    let names = names.map(|(row, ..)| Line::of(Ink::Dim, row.title));
    table.column("", Align::Left, names.collect());
    add_latency(&mut table, "response", &response);
    if t.service_time_ns.count > 0 {
        add_latency(&mut table, "service", &statistics(&t.service_time_ns));
    }
    add_distribution(&mut table, &t.response_time_ns);
    table
}

/// The same of the figures that a person looks at first.
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
    let table = latency_table(t).with_columns(&["", "response", "service"]);
    table.with_rows(is_key)
}

/// Bars over the logarithm of the response times.
fn add_distribution(table: &mut Table, l: &TimesReport) {
    let most = |key| l.figure(key).at_most();
    let ends = [most("min").or(most("p50")), most("max")];
    let ends = ends.map(|ns| ns.unwrap_or(1).max(1) as f64);
    let axis = Axis::decades(ends, |ns| time_short(ns as u64));
    let all = statistics(l).into_iter();
    let shares = all.map(|(_, figure, _)| Some(axis.position(figure.at_most()?.max(1) as f64)));
    let title = format!("log scale from {}", (axis.label)(axis.lo));
    table.bar(title, Ink::Data, shares.collect());
}

fn add_latency(table: &mut Table, title: &str, statistics: &[StatedFigure]) {
    let values = statistics
        .iter()
        .map(|(_, figure, _)| Line::plain(stated(*figure, time)));
    table.column(title, Align::Right, values.collect());
    if statistics.iter().any(|(.., ci)| ci.is_some()) {
        let intervals = statistics
            .iter()
            .map(|(.., ci)| Line::of(Ink::Dim, ci.map_or_else(String::new, time_interval)));
        table.column("95 % interval", Align::Right, intervals.collect());
    }
}
