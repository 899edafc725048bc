//! The flows of one scenario, each as its two ends saw it.

use super::Shown;
use crate::document::Document;
use crate::document::line::{Ink, Line};
use crate::document::table::{Align, Table};
use crate::number::{bytes, count, known, number, plural, time};
use knee_core::measure::Direction;
use knee_core::trial::flows::FlowReport;

/// Of more flows than this not all are listed: so many of each direction, and those that were lost.
const FLOWS_MAX: usize = 8;
const OF_EACH: u32 = 4;

/// Adds the flows of the worst of so many scenarios, which has this name.
pub(super) fn show(doc: &mut Document, worst: &Shown, title: &str, scenarios: usize) {
    let all = &worst.flows.flows;
    let mut listed: Vec<&FlowReport> = all.iter().collect();
    let mut remark = match scenarios {
        1 => plural(all.len() as u64, "flow"),
        _ => "the scenario with the longest latency".to_owned(),
    };
    if listed.len() > FLOWS_MAX {
        listed.retain(|flow| flow.number < OF_EACH || flow.lost_because.is_some());
        remark = format!("{remark}; {} of {}", listed.len(), all.len());
    }
    if listed.is_empty() {
        return;
    }
    doc.section(format!("Flows of {title}"), remark);
    doc.table("Flows", table(&listed));
    doc.note(NOTE);
}

/// What the columns of the flows mean.
const NOTE: &str = "gap: longest time without data; resent: TCP segments sent again; RTT: \
    round trip as TCP measured it; window: its median congestion window; control: its congestion \
    control";

/// A row for each flow.
fn table(listed: &[&FlowReport]) -> Table {
    let mut table = Table::default();
    let column = |of: &dyn Fn(&FlowReport) -> Line| listed.iter().map(|f| of(f)).collect();
    let which = |f: &FlowReport| Line::plain(format!("{} {}", way(f.direction), f.number));
    table.column("", Align::Left, column(&which));
    let goodput = |f: &FlowReport| Line::plain(number(f.goodput_kib_per_s));
    table.column("KiB/s", Align::Right, column(&goodput));
    let gap = |f: &FlowReport| Line::plain(time(f.gap_ns_max));
    table.column("gap", Align::Right, column(&gap));
    let again = |f: &FlowReport| Line::plain(count(f.retransmitted));
    table.column("resent", Align::Right, column(&again));
    let rtt = |f: &FlowReport| Line::plain(known(f.rtt_ns.p50, time));
    table.column("TCP's RTT p50", Align::Right, column(&rtt));
    let rtt_max = |f: &FlowReport| Line::plain(known(f.rtt_ns.max, time));
    table.column("max", Align::Right, column(&rtt_max));
    let window = |f: &FlowReport| Line::plain(bytes(f.window_bytes));
    table.column("window", Align::Right, column(&window));
    let control = |f: &FlowReport| {
        let ecn = if f.ecn { " ECN" } else { "" };
        Line::plain(format!("{}{ecn}", f.congestion_control))
    };
    table.column("control", Align::Left, column(&control));
    if listed.iter().any(|f| f.lost_because.is_some()) {
        let lost = |f: &FlowReport| Line::of(Ink::Bad, lost(f));
        table.column("lost after", Align::Left, column(&lost));
    }
    table
}

fn way(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "up",
        Direction::Down => "down",
    }
}

fn lost(flow: &FlowReport) -> String {
    match (flow.lost_at_ns, &flow.lost_because) {
        (Some(ns), Some(_)) => time(ns),
        _ => String::new(),
    }
}
