//! The ledger as an addition: its parts, a rule, and below it the datagrams that were intended.

use crate::number::{count, signed_count, words};
use crate::text::line::{Ink, Line};
use crate::text::page::{INDENT, Page};
use crate::text::table::{Align, Table};
use knee_core::measure::DropPlace;
use knee_core::report::{LawRow, LedgerReport, LossEvidence};
use std::collections::BTreeSet;

/// A line of the ledger: its name, and its count in each of several ledgers.
struct Entry {
    name: String,
    /// The place, of what was lost on the way.
    place: Option<String>,
    counts: Vec<i64>,
    is_trouble: bool,
}

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

fn entries(ledgers: &[&LedgerReport]) -> Vec<Entry> {
    let entry = |name: &str, is_trouble, of: &dyn Fn(&LedgerReport) -> i64| Entry {
        name: name.to_owned(),
        place: None,
        counts: ledgers.iter().map(|l| of(l)).collect(),
        is_trouble,
    };
    let places: BTreeSet<&String> = ledgers.iter().flat_map(|l| l.lost.keys()).collect();
    let mut places: Vec<&String> = places.into_iter().collect();
    // In the order in which a datagram passes them.
    let passed = |place: &&String| {
        DropPlace::ALL
            .iter()
            .position(|p| p.name() == place.as_str())
    };
    places.sort_by_key(|place| passed(place).unwrap_or(usize::MAX));
    let mut entries = vec![entry("received", false, &|l| l.received as i64)];
    if places.is_empty() {
        entries.push(entry("lost on the way", true, &|_| 0));
    }
    for place in places {
        let name = format!("lost: {}", place_in_words(place));
        entries.push(Entry {
            place: Some(place.clone()),
            ..entry(&name, true, &|l| {
                l.lost.get(place).copied().unwrap_or(0) as i64
            })
        });
    }
    entries.push(entry("discarded by the service", true, &|l| {
        l.discarded as i64
    }));
    entries.push(entry("refused by the kernel", true, &|l| {
        l.send_errors as i64
    }));
    entries.push(entry("not attempted", true, &|l| l.not_attempted as i64));
    entries.push(entry("unexplained", true, &|l| l.unexplained));
    entries
}

/// A place for a person.
fn place_in_words(place: &str) -> String {
    match place {
        "send_buffer" => "the sender's send buffer".to_owned(),
        "qdisc" => "the queue of the sending device (qdisc)".to_owned(),
        "neighbour_queue" => "waiting for a neighbour's address".to_owned(),
        "device" => "a network device".to_owned(),
        "path" => "between the hosts".to_owned(),
        "backlog" => "the receiving host's backlog".to_owned(),
        "no_socket" => "no socket there".to_owned(),
        "checksum" => "wrong checksum".to_owned(),
        "receive_buffer" => "receive buffer full".to_owned(),
        "udp_memory" => "memory for UDP used up".to_owned(),
        "service" => "with the service, which vanished".to_owned(),
        other => words(other),
    }
}

/// What tells of the losses at a place; with its count where there is one ledger alone.
fn told_by(place: &str, ledgers: &[&LedgerReport], with_counts: bool) -> String {
    let mut told: Vec<String> = Vec::new();
    for evidence in ledgers.iter().flat_map(|l| &l.evidence) {
        if evidence.place != place {
            continue;
        }
        let text = one_teller(evidence, with_counts);
        if !told.contains(&text) {
            told.push(text);
        }
    }
    told.join("; ")
}

fn one_teller(evidence: &LossEvidence, with_counts: bool) -> String {
    // Nobody counted these: they are what was left.
    let is_rest = [DropPlace::Service, DropPlace::Path].map(DropPlace::name);
    let is_rest = is_rest.contains(&evidence.place.as_str());
    let counted = match with_counts && !is_rest {
        true => format!(" counted {}", count(evidence.counted)),
        false => String::new(),
    };
    let host_wide = if evidence.host_wide {
        ", host-wide"
    } else {
        ""
    };
    format!("{}{counted}{host_wide}", evidence.source)
}
