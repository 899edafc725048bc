//! How this machine waits, and what waiting costs; or how well each way holds a rate.

mod rates;

use crate::html::opening;
use crate::html::page::Page;
use crate::html::plot::{Dash, Mark, Plot, Point, Scale, Series, Spread, Tone, Unit};
use crate::html::words::{plain, untied};
use crate::number::{percent, plural, time, time_short};
use crate::text::line::{Ink, Line};
use crate::text::table::{Align, Table};
use crate::text::throttle::waits as words;
use knee_core::experiment::throttle::report::{ThrottleConclusion, WaitAdvice, WaitRow};
use knee_core::report::Report;
use std::collections::BTreeSet;

/// The delays at which all methods are compared, where they were measured, in nanoseconds.
const COMPARED_NS: [u64; 2] = [100_000, 1_000_000];

/// No axis of lateness begins below this, in nanoseconds: a clock tells no less.
const LEAST_NS: f64 = 10.0;

/// Height of one row of a plot of methods, in CSS pixels.
const ROW_PX: u32 = 26;

/// Writes it.
pub fn show(page: &mut Page, report: &Report, conclusion: &ThrottleConclusion) {
    let rows = conclusion.table.len() + conclusion.rates.len();
    let remark = format!(", {}", plural(rows as u64, "row"));
    opening::show(page, report, &untied(&conclusion.answer), &untied(&remark));
    if !conclusion.rates.is_empty() {
        rates::show(page, &conclusion.rates);
    }
    if !conclusion.table.is_empty() {
        show_methods(page, &conclusion.table);
        show_advice(page, &conclusion.recommendations);
        show_delays(page, &conclusion.table);
        show_margins(page, conclusion);
        show_waits(page, &conclusion.table);
    }
}

/// A way to wait, with what was done between two waits.
fn name(row: &WaitRow) -> String {
    match row.op.as_str() {
        words::NOTHING => row.method.clone(),
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

fn least_and_most(values: impl Iterator<Item = u64>) -> [f64; 2] {
    let start = [f64::MAX, LEAST_NS];
    let [least, most] = values.fold(start, |[least, most], v| {
        [least.min(v as f64), most.max(v as f64)]
    });
    [least.max(LEAST_NS), most]
}

/// How late each method is at some delays, and beside it what it costs.
fn show_methods(page: &mut Page, rows: &[WaitRow]) {
    let is_measured = |ns: &u64| rows.iter().any(|r| r.delay_ns == *ns);
    let mut delays: Vec<u64> = COMPARED_NS.into_iter().filter(is_measured).collect();
    if delays.is_empty() {
        delays.extend(rows.iter().map(|r| r.delay_ns).max());
    }
    let drawn = || rows.iter().filter(|r| delays.contains(&r.delay_ns));
    let ends = drawn().flat_map(|r| [r.overshoot_p1_ns, r.overshoot_p99_ns]);
    let [least, most] = least_and_most(ends);
    let cost = drawn().map(|r| r.cpu_percent).fold(1.0, f64::max);
    let remark = "how late waits end, and what that costs";
    page.section("Methods compared", remark, |page| {
        for delay in &delays {
            let there: Vec<&WaitRow> = drawn().filter(|r| r.delay_ns == *delay).collect();
            let names: Vec<String> = there.iter().map(|r| name(r)).collect();
            let height = ROW_PX * names.len().max(1) as u32;
            let delay = time_short(*delay);
            let methods = || Scale::categories(names.clone(), "");
            let lateness = Scale::logarithmic(least / 1.5, most * 1.5, Unit::Time, "late by");
            let mut late = Plot::new(
                format!("Lateness of waits for {delay}"),
                lateness,
                methods(),
            );
            late.height = height;
            late.note = "line: 1 % to 99 % of the waits; box: 10 % to 90 %; stroke: median".into();
            let figures = ["p1", "p10", "p50", "p90", "p99"];
            let spreads = there
                .iter()
                .enumerate()
                .map(|(i, r)| spread(i, r))
                .collect();
            let late = late.with(Series::spreads("late by", spreads, figures));
            let share = Scale::linear(0.0, 1.16 * cost, Unit::Percent, "of a core");
            let mut costs = Plot::new(format!("Cost of waits for {delay}"), share, methods());
            costs.height = height;
            costs.note = "processor time, one wait after the other".into();
            let bars = there.iter().enumerate();
            let bars = bars.map(|(i, r)| Point::new(r.cpu_percent, i as f64));
            let costs = costs.with(
                Series::bars("of a core", bars.collect(), 0.6)
                    .toned(Tone::Second)
                    .labelled(there.iter().map(|r| percent(r.cpu_percent)).collect()),
            );
            page.plots(&[late, costs]);
        }
    });
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
fn show_delays(page: &mut Page, rows: &[WaitRow]) {
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
    let [least, most] = least_and_most(ends);
    let plot = |method: String| {
        let margin = (last / first).powf(0.06);
        let x = Scale::logarithmic(first / margin, last * margin, Unit::Time, "delay asked for");
        let y = Scale::logarithmic(least / 1.5, most * 1.5, Unit::Time, "late by");
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
    page.section("Overshoot", remark, |page| {
        let plots: Vec<Plot> = names(rows).into_iter().map(plot).collect();
        page.panels(&plots);
    });
}

fn show_advice(page: &mut Page, advice: &[WaitAdvice]) {
    if advice.is_empty() {
        return;
    }
    let remark = "the least late within a budget of processor time, at one wait every so long";
    page.section("What to use", remark, |page| {
        page.table("What to use", &words::advice_table(advice));
        if advice.iter().any(|a| a.margin_ns.is_some()) {
            page.note("hybrid: what to expect of the margin, from how late sleeps ended");
        }
    });
}

fn show_margins(page: &mut Page, conclusion: &ThrottleConclusion) {
    let margins = &conclusion.margins;
    if margins.is_empty() {
        return;
    }
    let remark = match conclusion.hybrid_margin_ns {
        Some(ns) => format!("{} before a moment 1 ms away", time_short(ns)),
        None => String::new(),
    };
    page.section("Margins of hybrid", &remark, |page| {
        let sleeps = margins.iter().map(|m| m.sleep_ns as f64);
        let x = Scale::fitting(sleeps, 2.0, Unit::Time, "length of the sleep, from");
        let all = margins.iter().map(|m| m.margin_ns as f64);
        let y = Scale::from_zero(all, Unit::Time, "margin");
        let points = margins.iter();
        let points = points.map(|m| Point::new(m.sleep_ns as f64, m.margin_ns as f64));
        let mut plot = Plot::new("How long before its moment a sleep has to end", x, y)
            .with(Series::line("margin", points.collect()).marked(Mark::Dot));
        plot.height = 160;
        page.plot(&plot);
    });
}

fn show_waits(page: &mut Page, rows: &[WaitRow]) {
    let remark = "mean ± half of its 99.9 % confidence interval";
    page.section("Waits", remark, |page| {
        page.table("Waits", &waits_table(rows));
        for note in words::notes(rows, true) {
            page.note(plain(&note));
        }
    });
}

/// A row for each delay and method, the shortest delay first.
fn waits_table(rows: &[WaitRow]) -> Table {
    let blocks = words::by_delay(rows);
    let rows: Vec<&WaitRow> = blocks.into_iter().flatten().collect();
    let mut table = Table::default();
    let mut column = |title: &str, align, cell: &dyn Fn(&WaitRow) -> Line| {
        table.column(title, align, rows.iter().map(|r| cell(r)).collect());
    };
    let delay = |r: &WaitRow| Line::plain(time_short(r.delay_ns));
    column("delay", Align::Left, &delay);
    column("method", Align::Left, &|r| Line::plain(name(r)));
    if rows.iter().any(|r| r.op_mean_ns.is_some()) {
        let took = |r: &WaitRow| Line::plain(r.op_mean_ns.map_or(String::new(), time));
        column("operation", Align::Right, &took);
    }
    for (title, cell) in words::COLUMNS {
        column(title, Align::Right, &|r| Line::plain(cell(r)));
    }
    if rows.iter().any(|r| !words::marks(r, true).is_empty()) {
        let marks = |r: &WaitRow| Line::of(Ink::Warn, words::marks(r, true));
        column("", Align::Left, &marks);
    }
    table
}
