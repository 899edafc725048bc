//! Where each datagram went: as bars, and to the last one as a table.

use super::places::{Entry, entries, told_by};
use crate::document::line::{Ink, Line};
use crate::document::table::{Align, Table};
use crate::document::{Document, Layout, Medium};
use crate::number::{count, signed_count};
use crate::plot::{Plot, Point, Scale, Series, Tone, Unit};
use knee_core::experiment::udp::report::LawRow;
use knee_core::trial::datagrams::LedgerReport;

/// Height of one row, in CSS pixels.
const ROW_PX: u32 = 26;

/// Adds the ledgers of all laws side by side.
pub(super) fn show(doc: &mut Document, laws: &[LawRow]) {
    let ledgers: Vec<&LedgerReport> = laws.iter().map(|law| &law.ledger).collect();
    if ledgers.iter().all(|ledger| ledger.intended == 0) {
        return;
    }
    let remark = match laws.iter().any(|law| law.trials > 1) {
        true => "where each datagram went, all trials together",
        false => "where each datagram went",
    };
    let entries = entries(&ledgers);
    doc.section("Ledger", remark);
    let plots = [Some(whole(laws)), missing(laws, &entries)];
    doc.only(Medium::Page, |doc| {
        doc.plots(plots.into_iter().flatten(), Layout::Pairs)
    });
    doc.table("Ledger", table(laws, &entries, &ledgers));
    let is_host_wide = |l: &&LedgerReport| l.evidence.iter().any(|e| e.host_wide);
    if ledgers.iter().any(is_host_wide) {
        doc.note(
            "host-wide: the counter is of the whole host, so that others may have moved it too",
        );
    }
}

/// Adds where the datagrams ended that were lost.
pub(super) fn show_key_figures(doc: &mut Document, laws: &[LawRow]) {
    let ledgers: Vec<&LedgerReport> = laws.iter().map(|law| &law.ledger).collect();
    let entries = entries(&ledgers);
    let mut table = table(laws, &entries, &ledgers);
    if laws.len() == 1 {
        table = table.with_columns(&[""]);
    } else {
        let labels = laws.iter().map(|law| law.label.as_str()).chain([""]);
        table = table.with_columns(&labels.collect::<Vec<_>>());
    }
    doc.table("Ledger", table);
}

/// All that was intended: a bar for each law, of what was received and what was not.
fn whole(laws: &[LawRow]) -> Plot {
    let all = laws.iter().map(|law| law.ledger.intended as f64);
    let x = Scale::from_zero(all, Unit::Count, "datagrams intended");
    let names = laws.iter().map(|law| law.label.clone()).collect();
    let mut plot = Plot::new("What became of them", x, Scale::categories(names, ""));
    plot.height = (ROW_PX * 2 * laws.len() as u32).max(60);
    let pieces = |from: fn(&LedgerReport) -> u64, to: fn(&LedgerReport) -> u64| -> Vec<Point> {
        let laws = laws.iter().enumerate();
        laws.map(|(i, law)| {
            let range = [from(&law.ledger) as f64, to(&law.ledger) as f64];
            Point::with(range[1], i as f64, Some(range))
        })
        .collect()
    };
    let received = pieces(|_| 0, |l| l.received);
    let missing = pieces(|l| l.received, |l| l.intended);
    plot.with(Series::stack("received", received, 0.6)).with(
        Series::stack("missing", missing, 0.6)
            .toned(Tone::Bad)
            .unlisted(),
    )
}

/// What is missing, place by place, on a scale of its own; what stays unexplained always.
fn missing(laws: &[LawRow], entries: &[Entry]) -> Option<Plot> {
    let shown: Vec<&Entry> = entries
        .iter()
        .filter(|e| e.is_trouble && (e.is_unexplained || e.counts.iter().any(|n| *n != 0)))
        .collect();
    let all = shown.iter().flat_map(|e| &e.counts);
    let all: Vec<f64> = all.map(|n| n.max(&0).to_owned() as f64).collect();
    if all.iter().all(|n| *n == 0.0) {
        return None;
    }
    // Room for the count beside the longest bar.
    let all = all.into_iter().map(|n| n * 1.2);
    let x = Scale::from_zero(all, Unit::Count, "datagrams");
    let names = shown.iter().map(|e| e.name.clone()).collect();
    let mut plot = Plot::new("What is missing, by place", x, Scale::categories(names, ""));
    plot.height = ((14 + 14 * laws.len()) * shown.len()).max(60) as u32;
    let width = 0.6 / laws.len() as f64;
    for (i, law) in laws.iter().enumerate() {
        let offset = (i as f64 - (laws.len() - 1) as f64 / 2.0) * width;
        let bars = shown.iter().enumerate().map(|(row, e)| {
            let n = e.counts[i] as f64;
            Point::new(n, row as f64 + offset)
        });
        let name = if laws.len() == 1 {
            "missing"
        } else {
            &law.label
        };
        let (tone, ..) = super::LOOKS[i % super::LOOKS.len()];
        let tone = if laws.len() == 1 { Tone::Bad } else { tone };
        let labels = shown.iter().map(|e| signed_count(e.counts[i])).collect();
        let bars = Series::bars(name, bars.collect(), width * 0.9);
        plot = plot.with(bars.toned(tone).labelled(labels));
    }
    Some(plot)
}

fn table(laws: &[LawRow], entries: &[Entry], ledgers: &[&LedgerReport]) -> Table {
    let mut table = Table::default();
    let names = entries.iter().map(|e| Line::plain(e.name.as_str()));
    let names = names.chain([Line::of(Ink::Strong, "intended")]);
    table.column("", Align::Left, names.collect());
    for (i, law) in laws.iter().enumerate() {
        let cells = entries.iter().map(|e| {
            let is_bad = e.is_trouble && e.counts[i] != 0;
            let ink = if is_bad { Ink::Warn } else { Ink::Plain };
            Line::of(ink, signed_count(e.counts[i]))
        });
        let cells = cells.chain([Line::of(Ink::Strong, count(law.ledger.intended))]);
        let title = if laws.len() == 1 {
            ""
        } else {
            law.label.as_str()
        };
        table.column(title, Align::Right, cells.collect());
    }
    let told = entries.iter().map(|e| {
        let place = e.place.as_deref().unwrap_or_default();
        Line::of(Ink::Dim, told_by(place, ledgers, laws.len() == 1))
    });
    table.column("told by", Align::Left, told.chain([Line::new()]).collect());
    table
}
