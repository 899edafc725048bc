//! A single trial of datagrams: sending, arrival, service.

use crate::document::generator::{gap_facts, pacing_facts, quantiles, stall_facts};
use crate::document::line::{Ink, Line};
use crate::document::{Document, Fact, Layout, Medium, fact};
use crate::number::{asked, bytes, count, percent, plural, rate, time_short};
use crate::plot::{Plot, PlotSeries, Scale, Tone, Unit, row_points};
use knee_core::trial::detail::DatagramReport;
use knee_core::trial::report::{OfferedReport, QuantilesReport, TimesReport, TrialReport};
use std::collections::BTreeMap;

/// Adds the sections of a single trial.
pub(super) fn show(doc: &mut Document, trial: &TrialReport) {
    let Some(datagrams) = trial.datagrams() else {
        return;
    };
    doc.section("Sending", "how well the clients kept to their law");
    doc.facts(sending(trial, datagrams));
    doc.section("Arrival", "of the datagrams that were received");
    doc.facts(arrival(trial, datagrams));
    doc.section("Service", "");
    if let Some(theory) = datagrams.theory_loss_percent {
        let plot = against_theory(datagrams.loss_percent, theory);
        doc.only(Medium::Page, |doc| doc.plots([plot], Layout::Wide));
    }
    doc.facts(service(datagrams));
}

fn against_theory(measured: f64, theory: f64) -> Plot {
    // Room for the words beside the longer bar.
    let ends = [1.1 * measured, 1.1 * theory];
    let x = Scale::from_zero(ends, Unit::Percent, "loss");
    let rows = [("measured", measured), ("in theory", theory)];
    let bars = PlotSeries::bars("loss", row_points(&rows, |(_, loss)| Some(*loss)), 0.6);
    let labels = rows.map(|(_, loss)| percent(loss));
    Plot::of_rows("Loss, measured and in theory", x, rows.map(|(name, _)| name), 32)
        .noted(
            "theory: these times of sending through a buffer of this room and a server of this \
             fixed work (G/D/1/K)",
        )
        .with(bars.toned(Tone::Bad).labelled(labels))
}

fn sending(t: &TrialReport, d: &DatagramReport) -> Vec<Fact> {
    let o = &t.offered;
    let achieved = match o.asked_per_s {
        Some(per_s) => format!("{}/s asked, {} sent", asked(per_s), rate(d.sent_per_s)),
        None => format!("{} sent", rate(d.sent_per_s)),
    };
    let mut facts = vec![fact("rate", achieved)];
    facts.extend(gap_facts(o));
    facts.extend(pacing_facts(o));
    facts.extend(stall_facts(o));
    if d.blocked > 0 {
        let text = format!("{} had to wait for room", plural(d.blocked, "send"));
        facts.push(fact("send buffer full", Line::of(Ink::Warn, text)));
    }
    if !d.send_errors.is_empty() {
        let text = by_name(&d.send_errors);
        facts.push(fact("refused", Line::of(Ink::Warn, text)));
    }
    facts
}

fn arrival(t: &TrialReport, d: &DatagramReport) -> Vec<Fact> {
    if let Some(why) = &d.service_lost {
        let text = format!("not known: {why}");
        return vec![fact("received", Line::of(Ink::Bad, text))];
    }
    let mut facts = Vec::new();
    if d.one_way_delay_ns.max > Some(0) {
        let mut delay = quantiles(&d.one_way_delay_ns);
        if d.clock_uncertainty_ns > 0 {
            let off = time_short(d.clock_uncertainty_ns);
            delay += &format!("; the clocks agree to ± {off}");
        }
        facts.push(fact("one-way delay", delay));
    }
    if t.response_time_ns.count > 0 {
        facts.push(fact("round trip", round_trip(&t.response_time_ns)));
    }
    facts.extend(gap_facts(&OfferedReport {
        gap_cv: d.arrival_gap_cv,
        dispersion: Some(d.arrival_dispersion.clone()),
        ..OfferedReport::default()
    }));
    let order =
        format!("{} out of order, {} more than once", count(d.reordered), count(d.duplicates));
    let is_orderly = d.reordered == 0 && d.duplicates == 0;
    let ink = if is_orderly { Ink::Plain } else { Ink::Warn };
    facts.push(fact("order", Line::of(ink, order)));
    if !d.discarded.is_empty() {
        let text = by_name(&d.discarded);
        facts.push(fact("discarded", Line::of(Ink::Warn, text)));
    }
    let [least, most] = d.by_client;
    if least != most {
        let text = format!("{} to {}", count(least), count(most));
        facts.push(fact("of each client", text));
    }
    facts
}

fn round_trip(l: &TimesReport) -> String {
    let echoes = plural(l.count, "echo").replace("echos", "echoes");
    let times = quantiles(&QuantilesReport { p50: l.p50, p99: l.p99, p999: l.p999, max: l.max });
    format!("{echoes}, {times}")
}

fn service(d: &DatagramReport) -> Vec<Fact> {
    let mut facts = Vec::new();
    if let Some(work) = d.service_work_ns {
        facts.push(fact("work", format!("{} per datagram", time_short(work))));
    }
    facts.push(fact("receive buffer", buffer(d)));
    if let Some(theory) = d.theory_loss_percent {
        let text = format!(
            "{} through this buffer at this pace, {} measured",
            percent(theory),
            percent(d.loss_percent)
        );
        facts.push(fact("loss in theory", text));
    }
    if d.service_lost.is_none() {
        let used = format!(
            "{} of a core used; {} ready while others had it, preempted {} times",
            percent(d.service_cpu_percent),
            percent(d.service_waiting_percent),
            count(d.service_preempted)
        );
        facts.push(fact("processor", used));
        facts.push(fact("longest pause", time_short(d.service_pause_ns_max)));
    }
    facts
}

/// `8.19 kB = 9 datagrams = 1.8 ms of work`
fn buffer(d: &DatagramReport) -> String {
    let mut parts = vec![bytes(d.rcvbuf_bytes)];
    parts.extend(d.buffer_datagrams.map(|n| plural(n, "datagram")));
    let work = d.buffer_work_ns;
    parts.extend(work.map(|ns| format!("{} of work", time_short(ns))));
    parts.join(" = ")
}

fn by_name(counts: &BTreeMap<String, u64>) -> String {
    counts.iter().map(|(name, n)| format!("{name} {}", count(*n))).collect::<Vec<_>>().join(", ")
}
