//! The ledger as an addition: its parts, a rule, and below it the datagrams that were intended.

use crate::ledger::{entries, told_by};
use crate::number::{count, signed_count};
use crate::text::line::{Ink, Line};
use crate::text::page::{INDENT, Page};
use crate::text::table::{Align, Table};
use knee_core::experiment::udp::report::LawRow;
use knee_core::trial::datagrams::LedgerReport;

/// Writes the ledgers of all laws side by side.
pub fn show(page: &mut Page, laws: &[LawRow]) {
    let ledgers: Vec<&LedgerReport> = laws.iter().map(|law| &law.ledger).collect();
    let trials: u32 = laws.iter().map(|law| law.trials).sum();
    let remark = match trials > laws.len() as u32 {
        true => "where each datagram went, all trials together",
        false => "where each datagram went",
    };
    page.heading("Ledger", remark);
    let entries = entries(&ledgers);
    let mut table = Table::default();
    let names = entries
        .iter()
        .map(|e| Line::plain(e.name.clone()))
        .chain([Line::new(), Line::of(Ink::Strong, "intended")]);
    table.column("", Align::Left, names.collect());
    let is_single = laws.len() == 1;
    for (i, law) in laws.iter().enumerate() {
        let cells = entries.iter().map(|e| {
            let is_bad = e.is_trouble && e.counts[i] != 0;
            let ink = if is_bad { Ink::Warn } else { Ink::Plain };
            Line::of(ink, signed_count(e.counts[i]))
        });
        let mut cells: Vec<Line> = cells.collect();
        let total = count(law.ledger.intended);
        let widths = cells.iter().map(Line::width);
        let rule = widths.max().unwrap_or(0).max(total.chars().count());
        let stroke = if page.unicode { "─" } else { "-" };
        cells.push(Line::of(Ink::Dim, stroke.repeat(rule)));
        cells.push(Line::of(Ink::Strong, total));
        let title = if is_single { "" } else { &law.label };
        table.column(title, Align::Right, cells);
    }
    let told: Vec<Line> = entries
        .iter()
        .map(|e| {
            let place = e.place.as_deref().unwrap_or_default();
            Line::of(Ink::Dim, told_by(place, &ledgers, is_single))
        })
        .collect();
    let widest = told.iter().map(Line::width).max().unwrap_or(0);
    let fits = table.width(page.unicode) + 2 + widest <= page.inner_width();
    if fits {
        let cells = told.iter().cloned().chain([Line::new(), Line::new()]);
        table.column("", Align::Left, cells.collect());
    }
    page.table(&table);
    if !fits {
        page.gap();
        let facts = entries.into_iter().zip(told);
        page.facts(
            facts
                .filter(|(_, told)| told.width() > 0)
                .map(|(entry, told)| (entry.name, told))
                .collect(),
        );
    }
    if ledgers
        .iter()
        .any(|l| l.evidence.iter().any(|e| e.host_wide))
    {
        let note =
            "host-wide: the counter is of the whole host, so that others may have moved it too";
        page.paragraph(INDENT, INDENT, Line::of(Ink::Dim, note));
    }
}
