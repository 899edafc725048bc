//! How this machine waits: distributions, advice, margins, and the table.

use super::boxes::{self, Glyphs, Spread};
use crate::axis::Axis;
use crate::number::{
    MISSING, TIE, count, fixed, percent, percent_cell, time, time_short, time_to_5_digits,
    time_uncertainty,
};
use crate::text::bars::bar;
use crate::text::line::{Ink, Line};
use crate::text::page::{INDENT, Page};
use crate::text::table::{Align, Table};
use knee_core::experiment::throttle::report::{MarginRow, ThrottleConclusion, WaitAdvice, WaitRow};
use std::collections::BTreeSet;

/// The delays whose distributions are drawn, where they were measured, in nanoseconds.
const DRAWN_NS: [u64; 2] = [100_000, 1_000_000];

/// No axis begins below this, in nanoseconds: a clock tells no less.
const LEAST_NS: f64 = 10.0;

/// The longest bar.
const BAR_COLUMNS: usize = 40;

/// What stands for no chore.
pub const NOTHING: &str = "none";

/// Writes it.
pub fn show(page: &mut Page, conclusion: &ThrottleConclusion) {
    show_distributions(page, &conclusion.table);
    show_advice(page, &conclusion.recommendations);
    show_margins(page, conclusion);
    show_table(page, &conclusion.table);
}

fn show_distributions(page: &mut Page, rows: &[WaitRow]) {
    let plain: Vec<&WaitRow> = rows.iter().filter(|r| r.op == NOTHING).collect();
    let is_drawn = |ns: &u64| plain.iter().any(|r| r.delay_ns == *ns);
    let mut delays: Vec<u64> = DRAWN_NS.into_iter().filter(is_drawn).collect();
    if delays.is_empty() {
        delays.extend(plain.iter().map(|r| r.delay_ns).max());
    }
    let drawn = || plain.iter().filter(|r| delays.contains(&r.delay_ns));
    if drawn().count() < 2 {
        return;
    }
    let glyphs = Glyphs::new(page.unicode);
    let tie = TIE;
    let remark = format!(
        "by how much waits end late: {}{tie}median, {}{tie}10{tie}to{tie}90{tie}%, \
         {}{}{}{tie}1{tie}to{tie}99{tie}% of them",
        glyphs.mark, glyphs.heavy, glyphs.stops[0], glyphs.thin, glyphs.stops[1]
    );
    page.heading("Overshoot", &remark);
    let least = drawn().map(|r| r.overshoot_p1_ns as f64);
    let least = least.fold(f64::INFINITY, f64::min).max(LEAST_NS);
    let most = drawn().map(|r| r.overshoot_p99_ns as f64);
    let most = most.fold(LEAST_NS, f64::max);
    let axis = Axis::logarithmic(least / 1.5, most * 1.5, |ns| time_short(ns as u64));
    for (i, delay) in delays.iter().enumerate() {
        if i > 0 {
            page.gap();
        }
        let there = drawn().filter(|r| r.delay_ns == *delay);
        let spreads: Vec<Spread> = there.map(|r| spread(r)).collect();
        let title = format!("waits for {}", time_short(*delay));
        page.paragraph(INDENT, INDENT, Line::of(Ink::Strong, title));
        let lines = boxes::laid_out(&spreads, &axis, page.inner_width(), page.unicode);
        page.block(lines);
    }
}

fn spread(row: &WaitRow) -> Spread {
    Spread {
        name: row.method.clone(),
        ends: [row.overshoot_p1_ns as f64, row.overshoot_p99_ns as f64],
        most: [row.overshoot_p10_ns as f64, row.overshoot_p90_ns as f64],
        median: row.overshoot_p50_ns as f64,
    }
}

fn show_advice(page: &mut Page, advice: &[WaitAdvice]) {
    if advice.is_empty() {
        return;
    }
    let remark = "the least late within a budget of processor time, at one wait every so long";
    page.heading("What to use", remark);
    page.table(&advice_table(advice));
    if advice.iter().any(|a| a.margin_ns.is_some()) {
        let note = "hybrid: what to expect of the margin, from how late sleeps ended";
        page.paragraph(INDENT, INDENT, Line::of(Ink::Dim, note));
    }
}

/// The best way within each budget, at each delay.
pub fn advice_table(advice: &[WaitAdvice]) -> Table {
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

fn show_margins(page: &mut Page, conclusion: &ThrottleConclusion) {
    let margins = &conclusion.margins;
    if margins.is_empty() {
        return;
    }
    let remark = match conclusion.hybrid_margin_ns {
        Some(ns) => {
            let usual = time_short(ns);
            format!("how long before its moment a sleep has to end; {usual} for 1{TIE}ms")
        }
        None => "how long before its moment a sleep has to end".to_string(),
    };
    page.heading("Margins of hybrid", &remark);
    let most = margins
        .iter()
        .map(|m| m.margin_ns)
        .max()
        .unwrap_or(1)
        .max(1) as f64;
    let mut table = Table::default();
    let cells = |cell: &dyn Fn(&MarginRow) -> Line| margins.iter().map(cell).collect::<Vec<_>>();
    let from = cells(&|m| Line::plain(time(m.sleep_ns)));
    table.column("sleeps from", Align::Right, from);
    let margin = cells(&|m| Line::plain(time(m.margin_ns)));
    table.column("margin", Align::Right, margin);
    let width = page.inner_width() - table.width(page.unicode) - 2;
    let bars = cells(&|m| {
        let share = m.margin_ns as f64 / most;
        Line::of(Ink::Data, bar(share, width.min(BAR_COLUMNS), page.unicode))
    });
    table.column("", Align::Left, bars);
    page.table(&table);
}

fn show_table(page: &mut Page, rows: &[WaitRow]) {
    page.heading("Waits", "mean ± half of its 99.9 % confidence interval");
    let blocks: Vec<Vec<&WaitRow>> = by_delay(rows);
    let widths = widths(&blocks, page.unicode);
    for (i, block) in blocks.iter().enumerate() {
        if i > 0 {
            page.gap();
        }
        page.table(&block_table(block, &widths, page.unicode));
    }
    show_notes(page, rows);
}

/// The rows of each delay, the shortest delay first, those of one method next to each other.
pub fn by_delay(rows: &[WaitRow]) -> Vec<Vec<&WaitRow>> {
    let delays: BTreeSet<u64> = rows.iter().map(|r| r.delay_ns).collect();
    let mut methods: Vec<&str> = Vec::new();
    for row in rows {
        if !methods.contains(&row.method.as_str()) {
            methods.push(&row.method);
        }
    }
    let place = |row: &WaitRow| methods.iter().position(|m| *m == row.method);
    let block = |delay: u64| {
        let mut block: Vec<&WaitRow> = rows.iter().filter(|r| r.delay_ns == delay).collect();
        block.sort_by_key(|row| (place(row), row.op != NOTHING));
        block
    };
    delays.into_iter().map(block).collect()
}

/// What a column shows of a row.
pub type Cell = fn(&WaitRow) -> String;

/// The columns after the method's.
pub const COLUMNS: [(&str, Cell); 8] = [
    ("mean", |r| time_to_5_digits(r.mean_ns)),
    ("±", |r| time_uncertainty(r.error_ns)),
    ("std dev", |r| time(r.std_dev_ns)),
    ("p50", |r| time(r.overshoot_p50_ns)),
    ("p99", |r| time(r.overshoot_p99_ns)),
    ("max", |r| time(r.overshoot_max_ns)),
    ("CPU", |r| percent_cell(r.cpu_percent)),
    ("waits", |r| count(r.samples)),
];

/// The method, or beneath it what was done between its waits.
fn name(row: &WaitRow, before: Option<&WaitRow>) -> String {
    if row.op == NOTHING {
        return row.method.clone();
    }
    let took = row
        .op_mean_ns
        .map_or(String::new(), |ns| format!(" {}", time(ns)));
    let op = format!("+ {}{took}", row.op);
    if before.is_some_and(|b| b.method == row.method) {
        format!("  {op}")
    } else {
        format!("{} {op}", row.method)
    }
}

fn names(block: &[&WaitRow]) -> Vec<Line> {
    let before = |i: usize| i.checked_sub(1).and_then(|i| block.get(i).copied());
    let names = block.iter().enumerate();
    names
        .map(|(i, row)| Line::plain(name(row, before(i))))
        .collect()
}

/// As wide as each column is over all delays, so that the blocks stand in line.
fn widths(blocks: &[Vec<&WaitRow>], unicode: bool) -> Vec<usize> {
    let widest = |cells: &mut dyn Iterator<Item = Line>| {
        let widths = cells.map(|cell| cell.cleaned(unicode).width());
        widths.max().unwrap_or(0)
    };
    let rows = || blocks.iter().flatten();
    let names = widest(&mut blocks.iter().flat_map(|b| names(b)));
    let cells = COLUMNS
        .iter()
        .map(|(_, cell)| widest(&mut rows().map(|r| Line::plain(cell(r)))));
    [names].into_iter().chain(cells).collect()
}

fn block_table(rows: &[&WaitRow], widths: &[usize], unicode: bool) -> Table {
    let mut table = Table::default();
    let delay = rows
        .first()
        .map_or(String::new(), |r| time_short(r.delay_ns));
    let width = widths.first().copied().unwrap_or(0);
    table.column(format!("{delay:<width$}"), Align::Left, names(rows));
    for ((title, cell), width) in COLUMNS.iter().zip(widths.iter().skip(1)) {
        let cells = rows.iter().map(|r| Line::plain(cell(r)));
        table.column(format!("{title:>width$}"), Align::Right, cells.collect());
    }
    if rows.iter().any(|r| !marks(r, unicode).is_empty()) {
        let marks = rows.iter().map(|r| Line::of(Ink::Warn, marks(r, unicode)));
        table.column("", Align::Left, marks.collect());
    }
    table
}

/// What is to be said of a row below the table.
pub fn marks(row: &WaitRow, unicode: bool) -> String {
    let stolen = if unicode { "†" } else { "*" };
    let early = if unicode { "‡" } else { "<" };
    let mark = |is_so: u64, mark: &'static str| if is_so > 0 { mark } else { "" };
    let (stolen, early) = (
        mark(row.stolen_samples, stolen),
        mark(row.early_samples, early),
    );
    format!("{stolen}{early}")
}

fn show_notes(page: &mut Page, rows: &[WaitRow]) {
    for (i, note) in notes(rows, page.unicode).into_iter().enumerate() {
        // What follows a mark hangs under it.
        let hang = if i > 0 { INDENT + 2 } else { INDENT };
        page.paragraph(INDENT, hang, note);
    }
}

/// What the columns and the marks are.
pub fn notes(rows: &[WaitRow], unicode: bool) -> Vec<Line> {
    let text = "p50, p99, max: by how much waits end late; CPU: processor time, % of a core";
    let mut notes = vec![Line::of(Ink::Dim, text)];
    let mut note = |mark: &str, text: &str, of: fn(&WaitRow) -> u64| {
        let (marked, most) = rows.iter().map(of).fold((0, 0), |(marked, most), n| {
            (marked + u64::from(n > 0), most.max(n))
        });
        if marked > 0 {
            let text = format!("{mark}{TIE}{text}, up to {}", count(most));
            notes.push(Line::of(Ink::Warn, text));
        }
    };
    let stolen = "some of these waits were made while the host gave the processors to others";
    note(if unicode { "†" } else { "*" }, stolen, |r| {
        r.stolen_samples
    });
    let early = "some of these waits ended before their time";
    note(if unicode { "‡" } else { "<" }, early, |r| {
        r.early_samples
    });
    notes
}
