//! Figures as reports state them: a value, or its range.

use super::line::{Ink, Line};
use super::table::{Align, Table};
use crate::axis::Axis;
use crate::number::{known, time, time_interval, time_short};
use knee_core::trial::figure::Figure;
use knee_core::trial::report::{TimesReport, TrialReport};

/// The figure, or its range; `write` writes one of its values.
pub(super) fn stated<T: Copy>(figure: Figure<T>, write: impl Fn(T) -> String) -> String {
    match figure {
        Figure::Exactly(value) => write(value),
        Figure::Within(least, Some(most)) => format!("{}–{}", write(least), write(most)),
        Figure::Within(least, None) => format!("at least {}", write(least)),
        Figure::Absent => known(None, write),
    }
}

/// One row of the latency table: name, figure and, where known, its confidence interval.
type Statistic = (&'static str, Figure<u64>, Option<[u64; 2]>);

fn statistics(l: &TimesReport) -> [Statistic; 9] {
    let row = |title, name, ci95| (title, l.figure(name), ci95);
    [
        row("mean", "mean", None),
        row("min", "min", None),
        row("p50", "p50", None),
        row("p75", "p75", None),
        row("p90", "p90", l.p90_ci95),
        row("p95", "p95", l.p95_ci95),
        row("p99", "p99", l.p99_ci95),
        row("p99.9", "p999", None),
        row("max", "max", None),
    ]
}

/// Response and service time, a row for each statistic.
pub(super) fn latency_table(t: &TrialReport) -> Table {
    let mut table = Table::default();
    let response = statistics(&t.response_time_ns);
    let names = response.iter().map(|(name, ..)| Line::of(Ink::Dim, *name));
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
        let (name, figure, _) = statistics(times)[row];
        match name {
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
    let all = statistics(l).map(|(_, figure, _)| figure.at_most());
    let [_, min, p50, .., max] = all;
    let ends = [min.or(p50), max].map(|ns| ns.unwrap_or(1).max(1) as f64);
    let axis = Axis::decades(ends, |ns| time_short(ns as u64));
    let shares = all.map(|ns| Some(axis.position(ns?.max(1) as f64)));
    let title = format!("log scale from {}", (axis.label)(axis.lo));
    table.bar(title, Ink::Data, shares.into());
}

fn add_latency(table: &mut Table, title: &str, statistics: &[Statistic]) {
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
