//! Datagrams sent, received and dropped in each interval, law by law.

use crate::number::{MISSING, count, plural, time_short};
use crate::text::bars::{Keep, bar, sparkline};
use crate::text::line::{Ink, Line};
use crate::text::page::Page;
use crate::text::table::{Align, Table};
use knee_core::experiment::udp::report::LawRow;
use knee_core::measure::Interval;

/// More intervals than this are shown as curves.
const ROWS_MAX: usize = 30;

/// The widest bar.
const BAR_COLUMNS: usize = 30;

/// Writes it.
pub fn show(page: &mut Page, laws: &[LawRow]) {
    let Some(longest) = laws.iter().max_by_key(|law| law.intervals.len()) else {
        return;
    };
    let [first, ..] = longest.intervals.as_slice() else {
        return;
    };
    let intervals = longest.intervals.len();
    let sums = match laws.iter().map(|law| law.trials).max() {
        Some(trials) if trials > 1 => ", sums over all trials",
        _ => "",
    };
    let remark = format!(
        "{} of {}{sums}",
        plural(intervals as u64, "interval"),
        time_short(first.end_ns - first.start_ns)
    );
    page.heading("Over time", &remark);
    if intervals > ROWS_MAX {
        show_curves(page, laws);
        return;
    }
    let mut table = Table::default();
    let from = longest
        .intervals
        .iter()
        .map(|i| Line::of(Ink::Dim, time_short(i.start_ns)));
    table.column("from", Align::Right, from.collect());
    for law in laws {
        add_law(&mut table, law, intervals, laws.len() > 1);
    }
    if let [law] = laws {
        add_bars(page, &mut table, law);
    }
    page.table(&table);
}

fn add_law(table: &mut Table, law: &LawRow, rows: usize, is_named: bool) {
    let mut column = |title: &str, is_loss: bool, of: fn(&Interval) -> Option<u64>| {
        let cell = |row: usize| {
            let n = law.intervals.get(row).map(of);
            match n {
                None => Line::new(),
                Some(None) => Line::plain(MISSING),
                Some(Some(n)) if is_loss && n > 0 => Line::of(Ink::Warn, count(n)),
                Some(Some(n)) => Line::plain(count(n)),
            }
        };
        table.column(title, Align::Right, (0..rows).map(cell).collect());
    };
    let sent = match is_named {
        true => format!("{}: sent", law.label),
        false => "sent".to_owned(),
    };
    column(&sent, false, |i| i.sent);
    column("received", false, |i| i.received);
    column("dropped", true, |i| i.dropped);
}

/// What was dropped, as bars over the most of any interval.
fn add_bars(page: &Page, table: &mut Table, law: &LawRow) {
    let most = law.intervals.iter().filter_map(|i| i.dropped).max();
    let Some(most) = most.filter(|n| *n > 0) else {
        return;
    };
    let free = page
        .inner_width()
        .saturating_sub(table.width(page.unicode) + 2);
    let width = free.min(BAR_COLUMNS);
    let bars = law.intervals.iter().map(|i| match i.dropped {
        Some(n) if n > 0 => {
            let share = n as f64 / most as f64;
            Line::of(Ink::Data, bar(share, width, page.unicode))
        }
        _ => Line::new(),
    });
    table.column("", Align::Left, bars.collect());
}

fn show_curves(page: &mut Page, laws: &[LawRow]) {
    let mut facts = Vec::new();
    for law in laws {
        let name = |what: &str| match laws.len() {
            1 => what.to_owned(),
            _ => format!("{}: {what}", law.label),
        };
        let mut row = |what: &str, keep, ink, of: fn(&Interval) -> Option<u64>| {
            let values: Vec<u64> = law.intervals.iter().filter_map(of).collect();
            let heights: Vec<f64> = values.iter().map(|n| *n as f64).collect();
            let width = page.inner_width().saturating_sub(45);
            let spark = sparkline(&heights, keep, width, page.unicode);
            let (low, high) = (values.iter().min(), values.iter().max());
            let range = match (low, high) {
                (Some(low), Some(high)) if low < high => {
                    format!("  {} to {}", count(*low), count(*high))
                }
                (_, high) => format!("  {}", high.map_or(MISSING.to_owned(), |n| count(*n))),
            };
            facts.push((name(what), Line::of(ink, spark).with(Ink::Dim, range)));
        };
        row("sent", Keep::Dips, Ink::Data, |i| i.sent);
        row("dropped", Keep::Peaks, Ink::Warn, |i| i.dropped);
    }
    page.facts(facts);
}
