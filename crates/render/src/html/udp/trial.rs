//! One trial at length: how it was sent, how it arrived, what the service is.

use crate::html::page::Page;
use crate::html::plot::{Plot, Point, Scale, Series, Tone, Unit};
use crate::number::percent;
use crate::text::udp::trial as words;
use knee_core::trial::report::TrialReport;

/// Writes it.
pub fn show(page: &mut Page, trial: &TrialReport) {
    let Some(datagrams) = &trial.datagrams else {
        return;
    };
    page.section(
        "Sending",
        "how well the clients kept to their law",
        |page| {
            page.facts(&words::sending(trial, datagrams));
        },
    );
    page.section("Arrival", "of the datagrams that were received", |page| {
        page.facts(&words::arrival(trial, datagrams));
    });
    page.section("Service", "", |page| {
        if let Some(theory) = datagrams.theory_loss_percent {
            page.plot(&against_theory(datagrams.loss_percent, theory));
        }
        page.facts(&words::service(datagrams));
    });
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
    plot.note = "theory: these moments of sending through a buffer of this room and a server of \
                 this fixed work (G/D/1/K)"
        .into();
    let bars = vec![Point::new(measured, 0.0), Point::new(theory, 1.0)];
    let labels = vec![percent(measured), percent(theory)];
    let bars = Series::bars("loss", bars, 0.6).toned(Tone::Bad);
    plot.with(bars.labelled(labels))
}
