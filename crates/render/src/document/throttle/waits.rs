//! How this machine waits, and what that costs: distributions, advice, margins, and the table.

use super::{LEAST_NS, ROW_PX, least_and_most};
use crate::axis::Axis;
use crate::document::line::{Ink, Line};
use crate::document::table::{Align, Table};
use crate::document::{Document, Layout, Medium};
use crate::number::{
    MISSING, TIE, count, fixed, percent, percent_cell, time, time_short, time_to_5_digits,
    time_uncertainty,
};
use crate::plot::{Dash, Mark, Plot, Point, Scale, Series, Spread, Tone, Unit};
use knee_core::experiment::throttle::report::{MarginRow, ThrottleConclusion, WaitAdvice, WaitRow};
use std::collections::BTreeSet;

/// The delays at which all methods are compared, where they were measured, in nanoseconds.
const COMPARED_NS: [u64; 2] = [100_000, 1_000_000];

/// What stands for no chore.
const NOTHING: &str = "none";

/// Adds it.
pub(super) fn show(doc: &mut Document, c: &ThrottleConclusion) {
    doc.only(Medium::Screen, |doc| show_key_figures(doc, c));
    show_methods(doc, &c.table);
    show_advice(doc, &c.recommendations);
    doc.only(Medium::Page, |doc| show_delays(doc, &c.table));
    show_margins(doc, c);
    let remark = "mean ± half of its 99.9 % confidence interval";
    doc.section("Waits", remark);
    for rows in by_delay(&c.table).chunk_by(|a, b| a.delay_ns == b.delay_ns) {
        let delay = rows.first().map_or(0, |row| row.delay_ns);
        let delay = time_short(delay);
        doc.table(&format!("Waits for {delay}"), waits_table(&delay, rows));
    }
    doc.list(notes(&c.table));
}

/// Adds what to use, or how late each way is where nothing can be advised.
fn show_key_figures(doc: &mut Document, c: &ThrottleConclusion) {
    if !c.recommendations.is_empty() {
        return doc.table("What to use", advice_table(&c.recommendations));
    }
    for rows in by_delay(&c.table).chunk_by(|a, b| a.delay_ns == b.delay_ns) {
        let delay = rows.first().map_or(0, |row| row.delay_ns);
        let delay = time_short(delay);
        let columns = [delay.as_str(), "p50", "p99", "max", "CPU"];
        let table = waits_table(&delay, rows).with_columns(&columns);
        doc.table(&format!("Waits for {delay}"), table);
    }
}

/// A way to wait, with what was done between two waits.
fn name(row: &WaitRow) -> String {
    match row.op.as_str() {
        NOTHING => row.method.clone(),
        op => format!("{} + {op}", row.method),
    }
}

/// The names in the order in which they were measured.
fn names(rows: &[WaitRow]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in rows.iter().map(name) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// How late each method is at some delays, and beside it what it costs.
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
    doc.section(
        "Methods compared",
        "how late waits end, and what that costs",
    );
    for delay in &delays {
        let there: Vec<&WaitRow> = drawn().filter(|r| r.delay_ns == *delay).collect();
        let delay = time_short(*delay);
        let late = plot_late(&delay, &there, lateness.clone());
        let costs = plot_costs(&delay, &there, cost.clone());
        doc.only(Medium::Lines, |doc| doc.plots([late.clone()], Layout::Wide));
        doc.only(Medium::Page, |doc| doc.plots([late, costs], Layout::Pairs));
    }
}

fn plot_of_methods(title: String, x: Scale, rows: &[&WaitRow]) -> Plot {
    let names: Vec<String> = rows.iter().map(|r| name(r)).collect();
    let height = ROW_PX * names.len().max(1) as u32;
    let mut plot = Plot::new(title, x, Scale::categories(names, ""));
    plot.height = height;
    plot
}

fn plot_late(delay: &str, rows: &[&WaitRow], x: Scale) -> Plot {
    let spreads = rows.iter().enumerate().map(|(i, r)| spread(i, r)).collect();
    let figures = ["p1", "p10", "p50", "p90", "p99"];
    let mut plot = plot_of_methods(format!("Lateness of waits for {delay}"), x, rows);
    plot.note = "line: 1 % to 99 % of the waits; box: 10 % to 90 %; stroke: median".into();
    plot.with(Series::spreads("late by", spreads, figures))
}

fn plot_costs(delay: &str, rows: &[&WaitRow], x: Scale) -> Plot {
    let bars = rows.iter().enumerate();
    let bars = bars.map(|(i, r)| Point::new(r.cpu_percent, i as f64));
    let bars = Series::bars("of a core", bars.collect(), 0.6).toned(Tone::Second);
    let labels = rows.iter().map(|r| percent(r.cpu_percent)).collect();
    let mut plot = plot_of_methods(format!("Cost of waits for {delay}"), x, rows);
    plot.note = "processor time, one wait after the other".into();
    plot.with(bars.labelled(labels))
}

fn spread(at: usize, row: &WaitRow) -> Spread {
    Spread {
        at: at as f64,
        low: row.overshoot_p1_ns as f64,
        from: row.overshoot_p10_ns as f64,
        middle: row.overshoot_p50_ns as f64,
        to: row.overshoot_p90_ns as f64,
        high: row.overshoot_p99_ns as f64,
    }
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
    let ends = rows
        .iter()
        .flat_map(|r| [r.overshoot_p50_ns, r.overshoot_max_ns]);
    let late = Scale::around(least_and_most(ends), Unit::Time, "late by");
    let plot = |method: String| {
        let x = Scale::around([first, last], Unit::Time, "delay asked for");
        let y = late.clone();
        let of_method: Vec<&WaitRow> = rows.iter().filter(|r| name(r) == method).collect();
        let figure = |of: fn(&WaitRow) -> u64| -> Vec<Point> {
            let points = of_method.iter();
            points
                .map(|r| Point::new(r.delay_ns as f64, of(r) as f64))
                .collect()
        };
        let mut plot = Plot::new(method, x, y);
        plot.height = 150;
        let range = |r: &&WaitRow| Point {
            x: r.delay_ns as f64,
            y: r.overshoot_p50_ns as f64,
            // A logarithmic scale has no place for no lateness at all.
            range: Some([
                (r.overshoot_p1_ns as f64).max(LEAST_NS),
                (r.overshoot_p99_ns as f64).max(LEAST_NS),
            ]),
        };
        let ranges = of_method.iter().map(range).collect();
        plot = plot.with(Series::band("", ranges).unlisted());
        plot.with(
            Series::line("max", figure(|r| r.overshoot_max_ns))
                .toned(Tone::Muted)
                .dashed(Dash::Dotted),
        )
        .with(
            Series::line("p99", figure(|r| r.overshoot_p99_ns))
                .toned(Tone::Second)
                .dashed(Dash::Dashed),
        )
        .with(Series::line("p50", figure(|r| r.overshoot_p50_ns)).marked(Mark::Dot))
    };
    let remark = "lateness against the delay asked for, on the same axes; shaded: 1 % to 99 %";
    doc.section("Overshoot", remark);
    doc.plots(names(rows).into_iter().map(plot), Layout::Panels);
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
    let what = "how long before its deadline a sleep has to end";
    let remark = match conclusion.hybrid_margin_ns {
        Some(ns) => format!("{what}; {} for 1{TIE}ms", time_short(ns)),
        None => what.to_owned(),
    };
    doc.section("Margins of hybrid", remark);
    let sleeps = margins.iter().map(|m| m.sleep_ns as f64);
    let x = Scale::fitting(sleeps, Unit::Time, "length of the sleep, from");
    let all = margins.iter().map(|m| m.margin_ns as f64);
    let y = Scale::from_zero(all, Unit::Time, "margin");
    let points = margins.iter();
    let points = points.map(|m| Point::new(m.sleep_ns as f64, m.margin_ns as f64));
    let mut plot = Plot::new("How long before its deadline a sleep has to end", x, y)
        .with(Series::line("margin", points.collect()).marked(Mark::Dot));
    plot.height = 160;
    doc.only(Medium::Page, |doc| doc.plots([plot], Layout::Wide));
    doc.only(Medium::Lines, |doc| {
        doc.table("Margins", margins_table(margins))
    });
}

fn margins_table(margins: &[MarginRow]) -> Table {
    let mut table = Table::default();
    let cells = |of: fn(&MarginRow) -> u64| -> Vec<Line> {
        let cells = margins.iter().map(|m| Line::plain(time(of(m))));
        cells.collect()
    };
    table.column("sleeps from", Align::Right, cells(|m| m.sleep_ns));
    table.column("margin", Align::Right, cells(|m| m.margin_ns));
    let axis = Axis::from_zero(margins.iter().map(|m| m.margin_ns as f64));
    let bars = margins
        .iter()
        .map(|m| Some(axis.position(m.margin_ns as f64)));
    table.bar("", Ink::Data, bars.collect());
    table
}

/// The shortest delay first, and of each delay those of one method next to each other.
fn by_delay(rows: &[WaitRow]) -> Vec<&WaitRow> {
    let mut methods: Vec<&str> = Vec::new();
    for row in rows {
        if !methods.contains(&row.method.as_str()) {
            methods.push(&row.method);
        }
    }
    let place = |row: &WaitRow| methods.iter().position(|m| *m == row.method);
    let mut rows: Vec<&WaitRow> = rows.iter().collect();
    rows.sort_by_key(|row| (row.delay_ns, place(row), row.op != NOTHING));
    rows
}

/// A row for each method at one delay.
fn waits_table(delay: &str, rows: &[&WaitRow]) -> Table {
    let mut table = Table::default();
    let mut column = |title: &str, align, cell: &dyn Fn(&WaitRow) -> Line| {
        table.column(title, align, rows.iter().map(|r| cell(r)).collect());
    };
    column(delay, Align::Left, &|r| Line::plain(name(r)));
    if rows.iter().any(|r| r.op_mean_ns.is_some()) {
        let took = |r: &WaitRow| Line::plain(r.op_mean_ns.map_or(String::new(), time));
        column("operation", Align::Right, &took);
    }
    for (title, cell) in COLUMNS {
        column(title, Align::Right, &|r| Line::plain(cell(r)));
    }
    if rows.iter().any(|r| !marks(r).is_empty()) {
        let marks = |r: &WaitRow| Line::of(Ink::Warn, marks(r));
        column("", Align::Left, &marks);
    }
    table
}

/// The best way within each budget, at each delay.
fn advice_table(advice: &[WaitAdvice]) -> Table {
    let rows = merged(advice);
    let mut table = Table::default();
    let mut column = |title: &str, align, cell: &dyn Fn(usize, &WaitAdvice) -> String| {
        let cells = rows.iter().enumerate();
        let cells = cells.map(|(i, (a, _))| Line::plain(cell(i, a)));
        table.column(title, align, cells.collect());
    };
    column("every", Align::Right, &|i, a| {
        let is_first = i == 0 || rows[i - 1].0.delay_ns != a.delay_ns;
        if is_first {
            time_short(a.delay_ns)
        } else {
            String::new()
        }
    });
    column("budget", Align::Right, &|i, _| rows[i].1.clone());
    column("method", Align::Left, &|_, a| a.method.clone());
    column("margin", Align::Right, &|_, a| {
        a.margin_ns.map_or(MISSING.to_string(), time)
    });
    column("p50", Align::Right, &|_, a| time(a.overshoot_p50_ns));
    column("p99", Align::Right, &|_, a| time(a.overshoot_p99_ns));
    column("costs", Align::Right, &|_, a| percent(a.cpu_percent));
    table
}

/// Neighbours that say the same of one delay as one, with their budgets: `10 % and more`.
fn merged(advice: &[WaitAdvice]) -> Vec<(&WaitAdvice, String)> {
    let same = |a: &WaitAdvice, b: &WaitAdvice| {
        let of = |a: &WaitAdvice| WaitAdvice {
            budget_percent: 0.0,
            ..a.clone()
        };
        of(a) == of(b)
    };
    let budget = |group: &[WaitAdvice]| {
        let of = |a: &WaitAdvice| fixed(a.budget_percent, 0);
        match group {
            [first, .., last] => format!("{}–{}{TIE}%", of(first), of(last)),
            [only] => format!("{}{TIE}%", of(only)),
            [] => String::new(),
        }
    };
    let groups = advice.chunk_by(same);
    groups
        .filter_map(|group| Some((group.first()?, budget(group))))
        .collect()
}

/// What a column shows of a row.
type Cell = fn(&WaitRow) -> String;

/// The columns after the method's.
const COLUMNS: [(&str, Cell); 8] = [
    ("mean", |r| time_to_5_digits(r.mean_ns)),
    ("±", |r| time_uncertainty(r.error_ns)),
    ("std dev", |r| time(r.std_dev_ns)),
    ("p50", |r| time(r.overshoot_p50_ns)),
    ("p99", |r| time(r.overshoot_p99_ns)),
    ("max", |r| time(r.overshoot_max_ns)),
    ("CPU", |r| percent_cell(r.cpu_percent)),
    ("waits", |r| count(r.samples)),
];

/// What is to be said of a row below the table.
fn marks(row: &WaitRow) -> String {
    let mark = |is_so: u64, mark: &'static str| if is_so > 0 { mark } else { "" };
    let (stolen, early) = (mark(row.stolen_samples, "†"), mark(row.early_samples, "‡"));
    format!("{stolen}{early}")
}

/// What the columns and the marks are.
fn notes(rows: &[WaitRow]) -> Vec<Line> {
    let text = "p50, p99, max: by how much waits end late; CPU: processor time, % of a core";
    let mut notes = vec![Line::of(Ink::Dim, text)];
    let mut note = |mark: &str, text: &str, of: fn(&WaitRow) -> u64| {
        let most = rows.iter().map(of).max();
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
