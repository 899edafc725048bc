//! One trial at length: how it was sent, how it arrived, what the service is.

use crate::document::line::{Ink, Line};
use crate::document::run::{gap_facts, quantiles};
use crate::document::{Document, Fact, Layout, Medium, fact};
use crate::number::{asked, bytes, count, percent, plural, rate, time_short};
use crate::plot::{Plot, Point, Scale, Series, Tone, Unit};
use knee_core::trial::datagrams::DatagramReport;
use knee_core::trial::report::{QuantilesReport, TimesReport, TrialReport};
use std::collections::BTreeMap;

/// Adds it.
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
    let names = vec!["measured".to_owned(), "in theory".to_owned()];
    let mut plot = Plot::new(
        "Loss, measured and in theory",
        x,
        Scale::categories(names, ""),
    );
    plot.height = 64;
    plot.note = "theory: these times of sending through a buffer of this room and a server of \
                 this fixed work (G/D/1/K)"
        .into();
    let bars = vec![Point::new(measured, 0.0), Point::new(theory, 1.0)];
    let labels = vec![percent(measured), percent(theory)];
    let bars = Series::bars("loss", bars, 0.6).toned(Tone::Bad);
    plot.with(bars.labelled(labels))
}

/// What is known of the sending.
fn sending(t: &TrialReport, d: &DatagramReport) -> Vec<Fact> {
    let o = &t.offered;
    let achieved = match o.asked_per_s {
        Some(per_s) => format!("{}/s asked, {} sent", asked(per_s), rate(d.sent_per_s)),
        None => format!("{} sent", rate(d.sent_per_s)),
    };
    let mut facts = vec![fact("rate", Line::plain(achieved))];
    facts.extend(gap_facts(o));
    if o.asked_per_s.is_some() || o.pacing_error_ns.max > Some(0) {
        facts.push(fact("pacing error", quantiles(&o.pacing_error_ns)));
    }
    if o.stall_ns_max > 0 {
        let longest = time_short(o.stall_ns_max);
        facts.push(fact("longest stall", Line::plain(longest)));
    }
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

/// What is known of the arrivals.
fn arrival(t: &TrialReport, d: &DatagramReport) -> Vec<Fact> {
    if let Some(why) = &d.service_lost {
        let text = format!("not known: {why}");
        return vec![fact("received", Line::of(Ink::Bad, text))];
    }
    let mut delay = quantiles(&d.one_way_delay_ns);
    if d.clock_uncertainty_ns > 0 {
        let off = time_short(d.clock_uncertainty_ns);
        delay.push(Ink::Plain, format!("; the clocks agree to ± {off}"));
    }
    let mut facts = Vec::new();
    if d.one_way_delay_ns.max > Some(0) {
        facts.push(fact("one-way delay", delay));
    }
    if t.response_time_ns.count > 0 {
        facts.push(fact("round trip", round_trip(&t.response_time_ns)));
    }
    let arrivals = gap_facts(&knee_core::trial::report::OfferedReport {
        gap_cv: d.arrival_gap_cv,
        dispersion: Some(d.arrival_dispersion.clone()),
        ..knee_core::trial::report::OfferedReport::default()
    });
    facts.extend(arrivals);
    let order = format!(
        "{} out of order, {} more than once",
        count(d.reordered),
        count(d.duplicates)
    );
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
        facts.push(fact("of each client", Line::plain(text)));
    }
    facts
}

fn round_trip(l: &TimesReport) -> Line {
    let mut line = Line::plain(format!(
        "{}, ",
        plural(l.count, "echo").replace("echos", "echoes")
    ));
    line.append(quantiles(&QuantilesReport {
        p50: l.p50,
        p99: l.p99,
        p999: l.p999,
        max: l.max,
    }));
    line
}

/// What is known of the service.
fn service(d: &DatagramReport) -> Vec<Fact> {
    let mut facts = Vec::new();
    if let Some(work) = d.service_work_ns {
        let text = format!("{} per datagram", time_short(work));
        facts.push(fact("work", Line::plain(text)));
    }
    facts.push(fact("receive buffer", Line::plain(buffer(d))));
    if let Some(theory) = d.theory_loss_percent {
        let text = format!(
            "{} through this buffer at this pace, {} measured",
            percent(theory),
            percent(d.loss_percent)
        );
        facts.push(fact("loss in theory", Line::plain(text)));
    }
    if d.service_lost.is_none() {
        let used = format!(
            "{} of a core used; {} ready while others had it, preempted {} times",
            percent(d.service_cpu_percent),
            percent(d.service_waiting_percent),
            count(d.service_preempted)
        );
        facts.push(fact("processor", Line::plain(used)));
        let pause = time_short(d.service_pause_ns_max);
        facts.push(fact("longest pause", Line::plain(pause)));
    }
    facts
}

/// `8.19 kB = 9 datagrams = 1.8 ms of work`
fn buffer(d: &DatagramReport) -> String {
    let mut parts = vec![bytes(d.rcvbuf_bytes)];
    parts.extend(d.buffer_datagrams.map(|n| plural(n, "datagram")));
    parts.extend(
        d.buffer_work_ns
            .map(|ns| format!("{} of work", time_short(ns))),
    );
    parts.join(" = ")
}

fn by_name(counts: &BTreeMap<String, u64>) -> String {
    let counts = counts
        .iter()
        .map(|(name, n)| format!("{name} {}", count(*n)));
    counts.collect::<Vec<_>>().join(", ")
}
