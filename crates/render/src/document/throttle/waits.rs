//! How this machine waits, and the cost of waiting: distributions, advice, margins, and the table.

use super::{LEAST_NS, ROW_PX, least_and_most};
use crate::document::line::{Ink, Line};
use crate::document::table::{Table, TableOf};
use crate::document::{Document, Layout, Medium, grouped};
use crate::number::{
    TIE, count, fixed, known, percent, percent_cell, time, time_short, time_to_5_digits,
    time_uncertainty,
};
use crate::plot::{
    Axis, BoxPlot, Dash, Mark, Plot, PlotSeries, Point, Scale, Shape, Tone, Unit, row_points,
};
use knee_core::experiment::throttle::report::{MarginRow, ThrottleConclusion, WaitAdvice, WaitRow};
use std::collections::BTreeSet;

/// The delays at which all methods are compared, where they were measured, in nanoseconds.
const COMPARED_NS: [u64; 2] = [100_000, 1_000_000];

/// The name of the operation that does nothing.
const NOTHING: &str = "none";

/// Adds the sections on waits.
pub(super) fn show(doc: &mut Document, c: &ThrottleConclusion) {
    doc.only(Medium::Screen, |doc| show_key_figures(doc, c));
    show_methods(doc, &c.table);
    show_advice(doc, &c.recommendations);
    doc.only(Medium::Page, |doc| show_delays(doc, &c.table));
    show_margins(doc, c);
    doc.section("Waits", "mean ± half of its 99.9 % confidence interval");
    for (delay, rows) in by_delay(&c.table) {
        doc.table(&format!("Waits for {delay}"), waits_table(&delay, &rows));
    }
    doc.list(notes(&c.table));
}

/// Adds the first screen: the advice, or the lateness of each way without advice.
fn show_key_figures(doc: &mut Document, c: &ThrottleConclusion) {
    if !c.recommendations.is_empty() {
        return doc.table("What to use", advice_table(&c.recommendations));
    }
    for (delay, rows) in by_delay(&c.table) {
        let columns = [delay.as_str(), "p50", "p99", "max", "CPU"];
        let table = waits_table(&delay, &rows).with_columns(&columns);
        doc.table(&format!("Waits for {delay}"), table);
    }
}

/// A way to wait, with the operation between two waits.
fn name(row: &WaitRow) -> String {
    match row.op.as_str() {
        NOTHING => row.method.clone(),
        op => format!("{} + {op}", row.method),
    }
}

/// Adds lateness and cost of each method at some delays.
fn show_methods(doc: &mut Document, rows: &[WaitRow]) {
    let is_measured = |ns: &u64| rows.iter().any(|r| r.delay_ns == *ns);
    let mut delays: Vec<u64> = COMPARED_NS.into_iter().filter(is_measured).collect();
    if delays.is_empty() {
        delays.extend(rows.iter().map(|r| r.delay_ns).max());
    }
    let drawn = || rows.iter().filter(|r| delays.contains(&r.delay_ns));
    let ends = drawn().flat_map(|r| [r.overshoot_p1_ns, r.overshoot_p99_ns]);
    let lateness = Scale::around(least_and_most(ends), Unit::Time, "late by");
    let cost = drawn().map(|r| r.cpu_percent).chain([1.0]);
    let cost = Scale::from_zero(cost.map(|v| 1.1 * v), Unit::Percent, "of a core");
    doc.section("Methods compared", "how late waits end, and what that costs");
    for delay in &delays {
        let rows: Vec<&WaitRow> = drawn().filter(|r| r.delay_ns == *delay).collect();
        let delay = time_short(*delay);
        let late = plot_late(&delay, &rows, lateness.clone());
        let costs = plot_costs(&delay, &rows, cost.clone());
        doc.only(Medium::Lines, |doc| doc.plots([late.clone()], Layout::Wide));
        doc.only(Medium::Page, |doc| doc.plots([late, costs], Layout::Pairs));
    }
}

fn plot_of_methods(title: String, x: Scale, rows: &[&WaitRow]) -> Plot {
    Plot::of_rows(title, x, rows.iter().map(|r| name(r)), ROW_PX)
}

fn plot_late(delay: &str, rows: &[&WaitRow], x: Scale) -> Plot {
    let boxes = rows.iter().enumerate().map(|(i, row)| BoxPlot {
        at: i as f64,
        percentiles: [
            row.overshoot_p1_ns,
            row.overshoot_p10_ns,
            row.overshoot_p50_ns,
            row.overshoot_p90_ns,
            row.overshoot_p99_ns,
        ]
        .map(|ns| ns as f64),
    });
    let figures = ["p1", "p10", "p50", "p90", "p99"];
    plot_of_methods(format!("Lateness of waits for {delay}"), x, rows)
        .noted("line: 1 % to 99 % of the waits; box: 10 % to 90 %; stroke: median")
        .with(PlotSeries::new("late by", Shape::Boxes(boxes.collect(), figures)))
}

fn plot_costs(delay: &str, rows: &[&WaitRow], x: Scale) -> Plot {
    let bars = row_points(rows, |r| Some(r.cpu_percent));
    let bars = PlotSeries::bars("of a core", bars, 0.6).toned(Tone::Second);
    plot_of_methods(format!("Cost of waits for {delay}"), x, rows)
        .noted("processor time, one wait after the other")
        .with(bars.labelled(rows.iter().map(|r| percent(r.cpu_percent))))
}

/// Lateness against the delay asked for, a small figure for each method, all on the same axes.
fn show_delays(doc: &mut Document, rows: &[WaitRow]) {
    let delays: BTreeSet<u64> = rows.iter().map(|r| r.delay_ns).collect();
    let (Some(first), Some(last)) = (delays.first(), delays.last()) else {
        return;
    };
    if first == last {
        return;
    }
    let (first, last) = (*first as f64, *last as f64);
    let ends = rows.iter().flat_map(|r| [r.overshoot_p50_ns, r.overshoot_max_ns]);
    let late = Scale::around(least_and_most(ends), Unit::Time, "late by");
    let plot = |(method, rows): (String, Vec<&WaitRow>)| {
        let points = |figure: fn(&WaitRow) -> u64| -> Vec<Point> {
            rows.iter().map(|r| Point::new(r.delay_ns as f64, figure(r) as f64)).collect()
        };
        // A logarithmic scale has no place for zero.
        let clamped = |ns: u64| (ns as f64).max(LEAST_NS);
        let ranges = rows.iter().map(|r| {
            let range = [r.overshoot_p1_ns, r.overshoot_p99_ns].map(clamped);
            Point::with(r.delay_ns as f64, r.overshoot_p50_ns as f64, Some(range))
        });
        let max = PlotSeries::line("max", points(|r| r.overshoot_max_ns)).toned(Tone::Muted);
        let p99 = PlotSeries::line("p99", points(|r| r.overshoot_p99_ns)).toned(Tone::Second);
        let p50 = PlotSeries::line("p50", points(|r| r.overshoot_p50_ns));
        let x = Scale::around([first, last], Unit::Time, "delay asked for");
        Plot::new(method, x, late.clone())
            .high(150)
            .with(PlotSeries::new("", Shape::Band(ranges.collect())).unlisted())
            .with(max.dashed(Dash::Dotted))
            .with(p99.dashed(Dash::Dashed))
            .with(p50.marked(Mark::Dot))
    };
    let remark = "lateness against the delay asked for, on the same axes; shaded: 1 % to 99 %";
    doc.section("Overshoot", remark);
    let by_method = grouped(rows.iter().map(|row| (name(row), row)));
    doc.plots(by_method.into_iter().map(plot), Layout::Panels);
}

fn show_advice(doc: &mut Document, advice: &[WaitAdvice]) {
    if advice.is_empty() {
        return;
    }
    let remark = "the least late within a budget of processor time, by the time between two waits";
    doc.section("What to use", remark);
    doc.table("What to use", advice_table(advice));
    if advice.iter().any(|a| a.margin_ns.is_some()) {
        doc.note("hybrid: what to expect of the margin, from how late sleeps ended");
    }
}

fn show_margins(doc: &mut Document, conclusion: &ThrottleConclusion) {
    let margins = &conclusion.margins;
    if margins.is_empty() {
        return;
    }
    let meaning = "how long before its deadline a sleep has to end";
    let remark = match conclusion.hybrid_margin_ns {
        Some(ns) => format!("{meaning}; {} for 1{TIE}ms", time_short(ns)),
        None => meaning.to_owned(),
    };
    doc.section("Margins of hybrid", remark);
    let sleeps = margins.iter().map(|m| m.sleep_ns as f64);
    let x = Scale::fitting(sleeps, Unit::Time, "length of the sleep, from");
    let lengths = margins.iter().map(|m| m.margin_ns as f64);
    let y = Scale::from_zero(lengths, Unit::Time, "margin");
    let points = margins.iter().map(|m| Point::new(m.sleep_ns as f64, m.margin_ns as f64));
    let plot = Plot::new("How long before its deadline a sleep has to end", x, y)
        .high(160)
        .with(PlotSeries::line("margin", points.collect()).marked(Mark::Dot));
    doc.only(Medium::Page, |doc| doc.plots([plot], Layout::Wide));
    doc.only(Medium::Lines, |doc| doc.table("Margins", margins_table(margins)));
}

fn margins_table(margins: &[MarginRow]) -> Table {
    let axis = Axis::from_zero(margins.iter().map(|m| m.margin_ns as f64));
    let mut table = TableOf::new(margins);
    table.right("sleeps from", |m| time(m.sleep_ns));
    table.right("margin", |m| time(m.margin_ns));
    table.bars("", Ink::Data, |m| Some(axis.position(m.margin_ns as f64)));
    table.done()
}

/// The rows of each delay, the shortest first, those of one method adjacent.
fn by_delay(rows: &[WaitRow]) -> Vec<(String, Vec<&WaitRow>)> {
    let place = |row: &WaitRow| rows.iter().position(|first| first.method == row.method);
    let mut sorted: Vec<&WaitRow> = rows.iter().collect();
    sorted.sort_by_key(|row| (row.delay_ns, place(row), row.op != NOTHING));
    let groups = sorted.chunk_by(|a, b| a.delay_ns == b.delay_ns);
    groups.map(|rows| (time_short(rows[0].delay_ns), rows.to_vec())).collect()
}

/// A row for each method at one delay.
fn waits_table(delay: &str, rows: &[&WaitRow]) -> Table {
    let mut table = TableOf::new(rows);
    table.left(delay, |r| name(r));
    table.right_if_any("operation", "", |r| r.op_mean_ns.map(time));
    table.right("mean", |r| time_to_5_digits(r.mean_ns));
    table.right("±", |r| time_uncertainty(r.error_ns));
    table.right("std dev", |r| time(r.std_dev_ns));
    table.right("p50", |r| time(r.overshoot_p50_ns));
    table.right("p99", |r| time(r.overshoot_p99_ns));
    table.right("max", |r| time(r.overshoot_max_ns));
    table.right("CPU", |r| percent_cell(r.cpu_percent));
    table.right("waits", |r| count(r.samples));
    table.left_if_any("", |r| Line::of(Ink::Warn, marks(r)));
    table.done()
}

/// The best way within each budget, at each delay.
fn advice_table(advice: &[WaitAdvice]) -> Table {
    let mut every_ns = None;
    let rows = merged(advice).into_iter().map(|(advice, budget)| {
        let is_first = every_ns.replace(advice.delay_ns) != Some(advice.delay_ns);
        (is_first, advice, budget)
    });
    let rows: Vec<(bool, &WaitAdvice, String)> = rows.collect();
    let mut table = TableOf::new(&rows);
    table.right(
        "every",
        |(is_first, a, _)| {
            if *is_first { time_short(a.delay_ns) } else { String::new() }
        },
    );
    table.right("budget", |(.., budget)| budget.as_str());
    table.left("method", |(_, a, _)| a.method.as_str());
    table.right("margin", |(_, a, _)| known(a.margin_ns, time));
    table.right("p50", |(_, a, _)| time(a.overshoot_p50_ns));
    table.right("p99", |(_, a, _)| time(a.overshoot_p99_ns));
    table.right("costs", |(_, a, _)| percent(a.cpu_percent));
    table.done()
}

/// Joins neighbours with the same advice for one delay, with the range of their budgets.
fn merged(advice: &[WaitAdvice]) -> Vec<(&WaitAdvice, String)> {
    let same = |a: &WaitAdvice, b: &WaitAdvice| {
        let budget_percent = b.budget_percent;
        WaitAdvice { budget_percent, ..a.clone() } == *b
    };
    let budget = |group: &[WaitAdvice]| {
        let percent = |a: &WaitAdvice| fixed(a.budget_percent, 0);
        match group {
            [first, .., last] => format!("{}–{}{TIE}%", percent(first), percent(last)),
            [only] => format!("{}{TIE}%", percent(only)),
            [] => String::new(),
        }
    };
    advice.chunk_by(same).filter_map(|group| Some((group.first()?, budget(group)))).collect()
}

/// The marks of a row, explained below the table.
fn marks(row: &WaitRow) -> String {
    let mark = |count: u64, mark: &'static str| if count > 0 { mark } else { "" };
    let (stolen, early) = (mark(row.stolen_samples, "†"), mark(row.early_samples, "‡"));
    format!("{stolen}{early}")
}

/// The legend of columns and marks.
fn notes(rows: &[WaitRow]) -> Vec<Line> {
    let text = "p50, p99, max: by how much waits end late; CPU: processor time, % of a core";
    let mut notes = vec![Line::of(Ink::Dim, text)];
    let mut note = |mark: &str, text: &str, samples: fn(&WaitRow) -> u64| {
        let most = rows.iter().map(samples).max();
        if let Some(most) = most.filter(|n| *n > 0) {
            let text = format!("{mark}{TIE}{text}, up to {}", count(most));
            notes.push(Line::of(Ink::Warn, text));
        }
    };
    let stolen = "some of these waits were made while the host gave the processors to others";
    note("†", stolen, |r| r.stolen_samples);
    let early = "some of these waits ended before their time";
    note("‡", early, |r| r.early_samples);
    notes
}
