//! Datagrams: arrivals, losses, and the reasons for them.

mod clients;
mod explained;
mod ledger;
mod plots;
mod trial;

use super::{Document, Layout, Medium, generator};
use crate::number::{plural, time_short};
use crate::plot::{Dash, Mark, Plot, PlotSeries, Point, Scale, Tone, Unit};
use knee_core::experiment::udp::report::{LawRow, UdpConclusion};
use knee_core::report::Report;
use knee_core::trial::report::TrialReport;

/// A figure and its confidence interval.
type Estimate = (f64, Option<[f64; 2]>);

/// The looks of the series of different laws.
const LOOKS: [(Tone, Dash, Mark); 4] = [
    (Tone::First, Dash::Solid, Mark::Dot),
    (Tone::Second, Dash::Dashed, Mark::Square),
    (Tone::Third, Dash::DashDot, Mark::Ring),
    (Tone::Fourth, Dash::Dotted, Mark::Frame),
];

/// Adds all sections on datagrams.
pub(super) fn show(doc: &mut Document, report: &Report, c: &UdpConclusion) {
    let laws = &c.laws;
    if report.trials.iter().all(TrialReport::is_cut_short) {
        return;
    }
    doc.only(Medium::Screen, |doc| {
        let columns = ["", "sent", "received", "dropped", "loss", "10 ms", "burst"];
        doc.table("Clients", clients::table(laws).with_columns(&columns));
        ledger::show_key_figures(doc, laws);
        explained::show_key_figures(doc, c);
    });
    explained::show(doc, c);
    show_clients(doc, laws);
    ledger::show(doc, laws);
    plots::show_over_time(doc, laws);
    plots::show_arrivals(doc, report, laws);
    match report.trials.as_slice() {
        [only] => {
            trial::show(doc, only);
            generator::show(doc, only);
        }
        trials => {
            doc.section("Trials", "in the order in which they were made");
            doc.table("Trials", clients::trials_table(trials));
            doc.note(clients::TRIALS_NOTE);
        }
    }
}

/// The load and its duration, or the number of trials.
pub(super) fn remark(report: &Report) -> String {
    match report.trials.as_slice() {
        [only] => {
            let duration = time_short(only.duration_ns);
            format!(", {}, sent for {duration}", only.label)
        }
        trials => format!(", {}", plural(trials.len() as u64, "trial")),
    }
}

/// The look of the series of one law.
fn looking(series: PlotSeries, law: usize) -> PlotSeries {
    let (tone, dash, mark) = LOOKS[law % LOOKS.len()];
    series.toned(tone).dashed(dash).marked(mark)
}

fn show_clients(doc: &mut Document, laws: &[LawRow]) {
    let trials = laws.iter().map(|law| law.trials).max().unwrap_or(0);
    let remark = match trials {
        0 | 1 => "per second".to_owned(),
        n => format!("per second, means of {n} trials with their 95 % confidence"),
    };
    doc.section("Clients", remark);
    if laws.len() > 1 {
        let sent = |law: &LawRow| (law.sent_per_s, law.sent_ci95_per_s);
        let lost = |law: &LawRow| (law.loss_percent, law.loss_ci95_percent);
        let plots = [
            compared("Datagrams sent", "sent", Unit::PerS, laws, sent),
            compared("Loss", "of those sent", Unit::Percent, laws, lost),
        ];
        doc.only(Medium::Page, |doc| doc.plots(plots, Layout::Pairs));
    }
    doc.table("Clients", clients::table(laws));
    doc.note(clients::NOTE);
}

/// A figure of all laws with confidence intervals.
fn compared(
    title: &str,
    axis: &str,
    unit: Unit,
    laws: &[LawRow],
    of: fn(&LawRow) -> Estimate,
) -> Plot {
    let ends = laws.iter().flat_map(|law| match of(law) {
        (value, Some([_, hi])) => [value, hi],
        (value, None) => [value, value],
    });
    let points = laws.iter().enumerate().map(|(i, law)| {
        let (value, ci95) = of(law);
        Point::with(value, i as f64, ci95)
    });
    let names = laws.iter().map(|law| law.label.as_str());
    Plot::of_rows(title, Scale::from_zero(ends, unit, axis), names, 40)
        .with(PlotSeries::marks(axis, points.collect()))
}
