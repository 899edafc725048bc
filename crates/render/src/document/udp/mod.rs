//! Arrivals and loss: where each datagram went, and why.

mod arrivals;
mod clients;
mod explained;
mod ledger;
mod over_time;
mod places;
mod trial;

use super::run::show_generator;
use super::{Document, Layout, Medium};
use crate::number::{plural, time_short};
use crate::plot::{Dash, Mark, Plot, Point, Scale, Series, Tone, Unit};
use knee_core::experiment::udp::report::{LawRow, UdpConclusion};
use knee_core::report::Report;
use knee_core::trial::report::TrialReport;

/// A figure and its confidence.
type Estimate = (f64, Option<[f64; 2]>);

/// How series of different laws differ.
const LOOKS: [(Tone, Dash, Mark); 4] = [
    (Tone::First, Dash::Solid, Mark::Dot),
    (Tone::Second, Dash::Dashed, Mark::Square),
    (Tone::Third, Dash::DashDot, Mark::Ring),
    (Tone::Fourth, Dash::Dotted, Mark::Frame),
];

/// Adds it.
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
    over_time::show(doc, laws);
    arrivals::show(doc, report, laws);
    match report.trials.as_slice() {
        [only] => {
            trial::show(doc, only);
            show_generator(doc, only);
        }
        trials => {
            doc.section("Trials", "in the order in which they were made");
            doc.table("Trials", clients::trials_table(trials));
            doc.note(clients::TRIALS_NOTE);
        }
    }
}

/// How it was made.
pub(super) fn remark(report: &Report) -> String {
    match report.trials.as_slice() {
        [only] => format!(
            ", {}, sent for {}",
            only.label,
            time_short(only.duration_ns)
        ),
        trials => format!(", {}", plural(trials.len() as u64, "trial")),
    }
}

/// The look of the series of one law.
fn looking(series: Series, law: usize) -> Series {
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
            compared("Datagrams sent", "sent", Unit::PerS, laws, &sent),
            compared("Loss", "of those sent", Unit::Percent, laws, &lost),
        ];
        doc.only(Medium::Page, |doc| doc.plots(plots, Layout::Pairs));
    }
    doc.table("Clients", clients::table(laws));
    doc.note(clients::NOTE);
}

/// One figure of all laws, each with its confidence.
fn compared(
    title: &str,
    axis: &str,
    unit: Unit,
    laws: &[LawRow],
    of: &dyn Fn(&LawRow) -> Estimate,
) -> Plot {
    let ends = laws.iter().flat_map(|law| match of(law) {
        (value, Some([_, hi])) => [value, hi],
        (value, None) => [value, value],
    });
    let names = laws.iter().map(|law| law.label.clone()).collect();
    let x = Scale::from_zero(ends, unit, axis);
    let mut plot = Plot::new(title, x, Scale::categories(names, ""));
    plot.height = 40 * laws.len() as u32;
    let points = laws.iter().enumerate().map(|(i, law)| {
        let (value, ci95) = of(law);
        Point::with(value, i as f64, ci95)
    });
    plot.with(Series::points(axis, points.collect()))
}
