//! How well each way holds a rate.

use crate::number::{MISSING, asked, count, fixed, number, percent_cell, time};
use crate::text::bars::bar;
use crate::text::line::{Ink, Line};
use crate::text::page::{INDENT, Page};
use crate::text::table::{Align, Table};
use knee_core::experiment::throttle::report::RateRow;

/// The longest bar.
const BAR_COLUMNS: usize = 60;

/// Writes it.
pub fn show(page: &mut Page, rows: &[RateRow]) {
    show_bars(page, rows);
    page.heading("Rates", "per second");
    page.table(&table(rows));
    page.paragraph(INDENT, INDENT, Line::of(Ink::Dim, notes(rows)));
}

/// What the columns are.
pub fn notes(rows: &[RateRow]) -> String {
    let mut notes = vec![
        "drift: by how much lateness grows, ns per ms; ±: by how much stalls may have bent it; \
         p50, p99, max: begin of an operation after its moment; CV: of the gaps between \
         operations; CPU, and the operations' share of the time: % of a core",
    ];
    if rows.iter().any(|r| r.early > 0) {
        notes.push("early: before their moment, in groups");
    }
    notes.join("; ")
}

fn show_bars(page: &mut Page, rows: &[RateRow]) {
    page.heading("Achieved", "of the rate asked for");
    let unicode = page.unicode;
    let names = rows.iter().map(|r| Line::plain(r.method.clone()));
    let rates = rows.iter().map(|r| Line::plain(number(r.achieved_per_s)));
    let mut table = Table::default();
    table.column("", Align::Left, names.collect());
    table.column("", Align::Right, rates.collect());
    let width = page.inner_width().saturating_sub(table.width(unicode) + 3);
    let width = width.min(BAR_COLUMNS);
    let top = rows.iter().map(|r| r.achieved_per_s.max(r.asked_per_s));
    let top = top.fold(f64::MIN_POSITIVE, f64::max);
    let bars = rows.iter().map(|row| {
        let share = row.achieved_per_s / top;
        let mut line = Line::of(Ink::Data, bar(share, width, unicode));
        let goal = (row.asked_per_s / top * width as f64).round() as usize;
        if line.width() < goal {
            line.pad_to(goal);
            line.push(Ink::Dim, if unicode { "│" } else { "|" });
        }
        line
    });
    table.column("", Align::Left, bars.collect());
    page.table(&table);
}

/// A row for each way.
pub fn table(rows: &[RateRow]) -> Table {
    let mut table = Table::default();
    let names = rows.iter().map(|r| Line::plain(r.method.clone()));
    table.column("method", Align::Left, names.collect());
    let mut column = |title: &str, cell: fn(&RateRow) -> String| {
        let cells = rows.iter().map(|r| Line::plain(cell(r)));
        table.column(title, Align::Right, cells.collect());
    };
    column("asked", |r| asked(r.asked_per_s));
    column("achieved", achieved);
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
    table
}

/// The rate that was reached, with as many decimals as say something.
pub fn achieved(row: &RateRow) -> String {
    fixed(row.achieved_per_s, decimals(row.asked_per_s))
}

/// So many that the rate asked for has six digits.
fn decimals(asked_per_s: f64) -> usize {
    (5.0 - asked_per_s.max(1e-3).log10().floor()).clamp(0.0, 6.0) as usize
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
    fn rates_have_the_decimals_of_what_was_asked() {
        for (asked, wanted) in [(0.5, 6), (1_000.0, 2), (1e4, 1), (1e6, 0)] {
            assert_eq!(decimals(asked), wanted, "{asked}");
        }
    }

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
