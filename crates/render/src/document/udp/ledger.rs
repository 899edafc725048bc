//! The ledger of datagrams: the fate of each, as bars and as a table.

use super::LOOKS;
use crate::document::line::{Ink, Line};
use crate::document::table::{Table, TableOf};
use crate::document::{Document, Layout, Medium};
use crate::number::{count, signed_count, words};
use crate::plot::{Plot, PlotSeries, Point, Scale, Tone, Unit, row_points};
use knee_core::experiment::udp::report::LawRow;
use knee_core::trial::detail::{LedgerReport, LossEvidence};
use knee_load::experiment::udp::DropPlace;
use std::collections::BTreeSet;

/// Height of one row, in CSS pixels.
const ROW_PX: u32 = 26;

/// Adds the ledgers of all laws side by side.
pub(super) fn show(doc: &mut Document, laws: &[LawRow]) {
    if laws.iter().all(|law| law.ledger.intended == 0) {
        return;
    }
    let remark = if laws.iter().any(|law| law.trials > 1) {
        "where each datagram went, all trials together"
    } else {
        "where each datagram went"
    };
    let lines = ledger_lines(laws);
    doc.section("Ledger", remark);
    let plots = [Some(intended(laws)), missing(laws, &lines)];
    doc.only(Medium::Page, |doc| doc.plots(plots.into_iter().flatten(), Layout::Pairs));
    doc.table("Ledger", table(laws, &lines));
    if laws.iter().flat_map(|law| &law.ledger.evidence).any(|evidence| evidence.host_wide) {
        doc.note(
            "host-wide: the counter is of the whole host, so that others may have moved it too",
        );
    }
}

/// Adds the table without its evidence.
pub(super) fn show_key_figures(doc: &mut Document, laws: &[LawRow]) {
    let mut table = table(laws, &ledger_lines(laws));
    table.columns.retain(|column| column.title != "told by");
    doc.table("Ledger", table);
}

/// The intended datagrams: a bar for each law, received and missing.
fn intended(laws: &[LawRow]) -> Plot {
    let intended = laws.iter().map(|law| law.ledger.intended as f64);
    let x = Scale::from_zero(intended, Unit::Count, "datagrams intended");
    let pieces = |range: fn(&LedgerReport) -> [u64; 2]| -> Vec<Point> {
        let laws = laws.iter().enumerate();
        let pieces = laws.map(|(i, law)| {
            let range = range(&law.ledger).map(|n| n as f64);
            Point::with(range[1], i as f64, Some(range))
        });
        pieces.collect()
    };
    let missing = PlotSeries::stack("missing", pieces(|l| [l.received, l.intended]), 0.6);
    let names = laws.iter().map(|law| law.label.as_str());
    let plot = Plot::of_rows("What became of them", x, names, 2 * ROW_PX);
    let height = plot.height.max(60);
    plot.high(height)
        .with(PlotSeries::stack("received", pieces(|l| [0, l.received]), 0.6))
        .with(missing.toned(Tone::Bad).unlisted())
}

/// The missing datagrams by place, on a scale of their own.
fn missing(laws: &[LawRow], lines: &[LedgerLine]) -> Option<Plot> {
    let is_shown = |line: &&LedgerLine| {
        line.is_trouble && (line.is_unexplained || line.counts.iter().any(|n| *n != 0))
    };
    let shown: Vec<&LedgerLine> = lines.iter().filter(is_shown).collect();
    let counts = shown.iter().flat_map(|line| &line.counts);
    let counts: Vec<f64> = counts.map(|n| *n.max(&0) as f64).collect();
    if counts.iter().all(|n| *n == 0.0) {
        return None;
    }
    // Room for the count beside the longest bar.
    let lengths = counts.into_iter().map(|n| n * 1.2);
    let x = Scale::from_zero(lengths, Unit::Count, "datagrams");
    let names = shown.iter().map(|line| line.name.as_str());
    let mut plot =
        Plot::of_rows("What is missing, by place", x, names, 14 + 14 * laws.len() as u32);
    plot.height = plot.height.max(60);
    let width = 0.6 / laws.len() as f64;
    for (i, law) in laws.iter().enumerate() {
        let offset = (i as f64 - (laws.len() - 1) as f64 / 2.0) * width;
        let mut points = row_points(&shown, |line| Some(line.counts[i] as f64));
        points.iter_mut().for_each(|point| point.y += offset);
        let (name, tone) = match laws.len() {
            1 => ("missing", Tone::Bad),
            _ => (law.label.as_str(), LOOKS[i % LOOKS.len()].0),
        };
        let labels = shown.iter().map(|line| signed_count(line.counts[i]));
        let bars = PlotSeries::bars(name, points, width * 0.9);
        plot = plot.with(bars.toned(tone).labelled(labels));
    }
    Some(plot)
}

/// A row for each line of the ledger, and the sum.
fn table(laws: &[LawRow], lines: &[LedgerLine]) -> Table {
    // The sum has no line.
    let rows: Vec<Option<&LedgerLine>> = lines.iter().map(Some).chain([None]).collect();
    let mut table = TableOf::new(&rows);
    table.left("", |row| match row {
        Some(line) => Line::plain(line.name.as_str()),
        None => Line::of(Ink::Strong, "intended"),
    });
    for (i, law) in laws.iter().enumerate() {
        let title = if laws.len() == 1 { "" } else { &law.label };
        table.right(title, |row| match row {
            Some(line) if line.is_trouble && line.counts[i] != 0 => {
                Line::of(Ink::Warn, signed_count(line.counts[i]))
            }
            Some(line) => Line::plain(signed_count(line.counts[i])),
            None => Line::of(Ink::Strong, count(law.ledger.intended)),
        });
    }
    table.left("told by", |row| {
        let place = row.and_then(|line| line.place.as_deref());
        let evidence = place.map(|place| evidence_for(place, laws));
        Line::of(Ink::Dim, evidence.unwrap_or_default())
    });
    table.done()
}

/// A line of the ledger.
struct LedgerLine {
    /// Its name in words.
    name: String,
    /// The place of a loss on the way.
    place: Option<String>,
    /// The count in the ledger of each law.
    counts: Vec<i64>,
    /// Whether it should be 0.
    is_trouble: bool,
    /// Whether it is the unexplained rest, which is shown even at 0.
    is_unexplained: bool,
}

/// The lines of the ledgers: received datagrams, places in the order of the path, other ends.
fn ledger_lines(laws: &[LawRow]) -> Vec<LedgerLine> {
    let line = |name: &str, count: &dyn Fn(&LedgerReport) -> i64| LedgerLine {
        name: name.to_owned(),
        place: None,
        counts: laws.iter().map(|law| count(&law.ledger)).collect(),
        is_trouble: true,
        is_unexplained: false,
    };
    let places: BTreeSet<&String> = laws.iter().flat_map(|law| law.ledger.lost.keys()).collect();
    let mut places: Vec<&String> = places.into_iter().collect();
    let on_path = |place: &str| DropPlace::ALL.iter().position(|p| p.name() == place);
    places.sort_by_key(|place| on_path(place).unwrap_or(usize::MAX));
    let mut lines =
        vec![LedgerLine { is_trouble: false, ..line("received", &|l| l.received as i64) }];
    if places.is_empty() {
        lines.push(line("lost on the way", &|_| 0));
    }
    for place in places {
        let name = format!("lost: {}", place_in_words(place));
        let count = |l: &LedgerReport| l.lost.get(place).copied().unwrap_or(0) as i64;
        lines.push(LedgerLine { place: Some(place.clone()), ..line(&name, &count) });
    }
    lines.push(line("discarded by the service", &|l| l.discarded as i64));
    lines.push(line("refused by the kernel", &|l| l.send_errors as i64));
    lines.push(line("not attempted", &|l| l.not_attempted as i64));
    lines.push(LedgerLine { is_unexplained: true, ..line("unexplained", &|l| l.unexplained) });
    lines
}

/// The name of a place in words.
fn place_in_words(place: &str) -> String {
    match place {
        "send_buffer" => "the sender's send buffer".to_owned(),
        "qdisc" => "the queue of the sending device (qdisc)".to_owned(),
        "neighbour_queue" => "waiting for a neighbour's address".to_owned(),
        "device" => "a network device".to_owned(),
        "time_to_live" => "a router (the time to live ran out)".to_owned(),
        "reassembly" => "fragments not reassembled".to_owned(),
        "path" => "between the hosts".to_owned(),
        "backlog" => "the receiving host's backlog".to_owned(),
        "ip_layer" => "the IP layer".to_owned(),
        "firewall" => "a firewall".to_owned(),
        "no_socket" => "no socket there".to_owned(),
        "checksum" => "wrong checksum".to_owned(),
        "receive_buffer" => "receive buffer full".to_owned(),
        "udp_memory" => "memory for UDP used up".to_owned(),
        "service" => "with the service, which vanished".to_owned(),
        other => words(other),
    }
}

/// The evidence for losses at a place; with its counts if there is a single ledger.
fn evidence_for(place: &str, laws: &[LawRow]) -> String {
    let mut texts: Vec<String> = Vec::new();
    let evidence = laws.iter().flat_map(|law| &law.ledger.evidence);
    for evidence in evidence.filter(|evidence| evidence.place == place) {
        let text = evidence_text(evidence, laws.len() == 1);
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts.join("; ")
}

fn evidence_text(evidence: &LossEvidence, with_count: bool) -> String {
    // The rest was never counted. Old reports do not mark it as inferred.
    let rest = [DropPlace::Service, DropPlace::Path].map(DropPlace::name);
    let is_rest = evidence.inferred || rest.contains(&evidence.place.as_str());
    let inferred = if is_rest { "inferred: " } else { "" };
    let mut text = format!("{inferred}{}", evidence.source);
    if with_count && !is_rest {
        text += &format!(" counted {}", count(evidence.counted));
    }
    if evidence.host_wide {
        text += ", host-wide";
    }
    text
}
