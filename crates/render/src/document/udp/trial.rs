//! Trials of datagrams: sending, arrival and service of a single one, and rows of clients and
//! trials.

use crate::document::generator::{gap_facts, pacing_facts, quantiles, stall_facts};
use crate::document::line::{Ink, Line};
use crate::document::table::{Table, TableOf};
use crate::document::{Document, Fact, Layout, Medium, fact};
use crate::number::{
    MISSING, bytes, count, estimate, fixed, known, number, percent, plural, rate, time, time_short,
    whole_or_rounded,
};
use crate::plot::{Plot, PlotSeries, Scale, Tone, Unit, row_points};
use knee_core::experiment::udp::report::LawRow;
use knee_core::trial::detail::DatagramReport;
use knee_core::trial::figure::TimesReport;
use knee_core::trial::offered::OfferedReport;
use knee_core::trial::report::{TrialReport, Verdict};
use knee_core::trial::times::QuantilesReport;
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
    // The theory is of the datagrams that the kernel took.
    let all_sent = datagrams.send_errors.is_empty();
    if let Some(theory) = datagrams.theory_loss_percent.filter(|_| all_sent) {
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
        Some(per_s) => format!("{}/s asked, {} sent", whole_or_rounded(per_s), rate(d.sent_per_s)),
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
        let mut text = format!("{} through this buffer at this pace", percent(theory));
        if d.send_errors.is_empty() {
            text += &format!(", {} measured", percent(d.loss_percent));
        }
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

/// The legend of the table of clients.
pub(super) const CLIENTS_NOTE: &str = "loss: of the datagrams sent or refused; 1 ms, 10 ms: index of \
                                       dispersion, the variance over the mean of the arrivals in \
                                       bins of that length: 1 for Poisson, 0 for a metronome; \
                                       burst: the most arrivals in any millisecond";

/// The legend of the table of trials.
pub(super) const TRIALS_NOTE: &str = "gap CV: coefficient of variation of the gaps between sends; \
                                      delay: arrival − send; preempted: how often others took the \
                                      service's processor";

/// A row for each law.
pub(super) fn clients_table(laws: &[LawRow]) -> Table {
    let dispersion_1_ms = |law: &LawRow| {
        let mut scales = law.dispersion_by_scale.iter();
        scales.find(|at| at.scale_ns == 1_000_000).map(|at| at.index)
    };
    let mut table = TableOf::new(laws);
    table.left("", |law| law.label.as_str());
    if laws.iter().any(|law| law.ledger.send_errors > 0) {
        table.right("tried", |law| number(law.received_per_s + law.dropped_per_s));
    }
    table.right("sent", |law| number(law.sent_per_s));
    if laws.iter().any(|law| law.sent_ci95_per_s.is_some()) {
        table.right("95 %", |law| interval(law.sent_ci95_per_s, estimate));
    }
    table.right("received", |law| number(law.received_per_s));
    table.right("dropped", |law| Line::of(loss_ink(law), number(law.dropped_per_s)));
    table.right("loss", |law| Line::of(loss_ink(law), percent(law.loss_percent)));
    if laws.iter().any(|law| law.loss_ci95_percent.is_some()) {
        table.right("95 %", |law| interval(law.loss_ci95_percent, estimate));
    }
    table.right("1 ms", |law| known(dispersion_1_ms(law), estimate));
    table.right("10 ms", |law| known(law.dispersion, estimate));
    table.right("burst", |law| number(law.burst_max as f64));
    table.done()
}

fn loss_ink(law: &LawRow) -> Ink {
    if law.dropped_per_s > 0.0 { Ink::Warn } else { Ink::Plain }
}

/// A confidence interval.
pub(super) fn interval(ci: Option<[f64; 2]>, shown: fn(f64) -> String) -> Line {
    let text = known(ci, |[lo, hi]| format!("{}–{}", shown(lo), shown(hi)));
    Line::of(Ink::Dim, text)
}

/// A row for each trial.
pub(super) fn trials_table(trials: &[TrialReport]) -> Table {
    let nothing = DatagramReport::default();
    let rows = trials.iter().map(|t| (t, t.datagrams().unwrap_or(&nothing)));
    let rows: Vec<(&TrialReport, &DatagramReport)> = rows.collect();
    let mut table = TableOf::new(&rows);
    table.left("", |(t, _)| t.label.as_str());
    table.right("sent/s", |(_, d)| number(d.sent_per_s));
    table.right("loss", |(_, d)| percent(d.loss_percent));
    table.right_if_any("in theory", MISSING, |(_, d)| d.theory_loss_percent.map(percent));
    table.right("gap CV", |(t, _)| known(t.offered.gap_cv, |cv| fixed(cv, 2)));
    if trials.iter().any(|t| t.offered.pacing_error_ns.max > Some(0)) {
        table.right("late p99", |(t, _)| known(t.offered.pacing_error_ns.p99, time));
    }
    table.right("delay p50", |(_, d)| known(d.one_way_delay_ns.p50, time));
    table.right("p99", |(_, d)| known(d.one_way_delay_ns.p99, time));
    table.right("preempted", |(_, d)| number(d.service_preempted as f64));
    table.left_if_any("", |(t, _)| match t.verdict {
        Verdict::Valid => Line::default(),
        Verdict::Invalid => Line::of(Ink::Bad, "invalid"),
    });
    table.done()
}
