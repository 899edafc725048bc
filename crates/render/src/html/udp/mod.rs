//! Arrivals and loss: what was lost, where, and why.

mod arrivals;
mod explained;
mod ledger;
mod trial;

use super::opening;
use super::page::Page;
use super::plot::{Dash, Mark, Plot, Point, Scale, Series, Tone, Unit};
use super::series::{is_dense, stair_of_means, time_scale};
use super::words::untied;
use crate::number::time_short;
use crate::text::run as any;
use crate::text::udp::{clients, remark};
use knee_core::experiment::udp::report::{LawRow, UdpConclusion};
use knee_core::measure::Interval;
use knee_core::report::Report;
use knee_core::trial::report::TrialReport;

/// A figure and its confidence.
type Estimate = (f64, Option<[f64; 2]>);

/// More intervals than this over all laws are gathered in groups, so that the page of a long run
/// stays small.
const STEPS_MAX: usize = 2_400;

/// How series of different laws differ.
const LOOKS: [(Tone, Dash, Mark); 4] = [
    (Tone::First, Dash::Solid, Mark::Dot),
    (Tone::Second, Dash::Dashed, Mark::Square),
    (Tone::Third, Dash::DashDot, Mark::Ring),
    (Tone::Fourth, Dash::Dotted, Mark::Frame),
];

/// Writes it.
pub fn show(page: &mut Page, report: &Report, conclusion: &UdpConclusion) {
    opening::show(
        page,
        report,
        &untied(&conclusion.answer),
        &untied(&remark(report)),
    );
    let laws = &conclusion.laws;
    if report.trials.is_empty() {
        return;
    }
    explained::show(page, conclusion);
    show_clients(page, laws);
    ledger::show(page, laws);
    show_over_time(page, laws);
    arrivals::show(page, report, laws);
    match report.trials.as_slice() {
        [only] => {
            trial::show(page, only);
            show_generator(page, only);
        }
        trials => show_trials(page, trials),
    }
}

/// The look of the series of one law.
fn looking(series: Series, law: usize) -> Series {
    let (tone, dash, mark) = LOOKS[law % LOOKS.len()];
    series.toned(tone).dashed(dash).marked(mark)
}

fn show_clients(page: &mut Page, laws: &[LawRow]) {
    let trials = laws.iter().map(|law| law.trials).max().unwrap_or(0);
    let remark = match trials {
        0 | 1 => "per second".to_owned(),
        n => format!("per second, means of {n} trials with their 95 % confidence"),
    };
    page.section("Clients", &remark, |page| {
        if laws.len() > 1 {
            let sent = |law: &LawRow| (law.sent_per_s, law.sent_ci95_per_s);
            let lost = |law: &LawRow| (law.loss_percent, law.loss_ci95_percent);
            page.plots(&[
                compared("Datagrams sent", "sent", Unit::PerS, laws, &sent),
                compared("Loss", "of those sent", Unit::Percent, laws, &lost),
            ]);
        }
        page.table("Clients", &clients::table(laws));
        page.note(clients::NOTE);
    });
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

/// Datagrams sent, received and dropped in each interval, law by law, on one scale.
fn show_over_time(page: &mut Page, laws: &[LawRow]) {
    let longest = laws.iter().map(|law| law.intervals.as_slice());
    let Some(longest @ [first, ..]) = longest.max_by_key(|intervals| intervals.len()) else {
        return;
    };
    let size = longest
        .len()
        .div_ceil(STEPS_MAX / laws.len().min(STEPS_MAX));
    let several = laws.iter().any(|law| law.trials > 1);
    let sums = if several {
        ", sums over all trials"
    } else {
        ""
    };
    let means = match size {
        1 => String::new(),
        n => format!(", means of {n} at a time"),
    };
    let length = time_short(first.end_ns - first.start_ns);
    let remark = format!("datagrams in each interval of {length}{sums}{means}");
    let sent = laws.iter().flat_map(|law| counts(law, size, |i| i.sent));
    let most = sent.map(|p| p.y).fold(0.0, f64::max);
    let known = laws.iter().filter(|law| !law.intervals.is_empty());
    let plots: Vec<Plot> = known.map(|law| over_time(law, size, most)).collect();
    page.section("Over time", &remark, |page| match plots.as_slice() {
        plots if plots.len() == 1 || is_dense(longest) => {
            plots.iter().for_each(|plot| page.plot(plot));
        }
        plots => page.plots(plots),
    });
}

/// Those of one law, of which at most `most` were sent in an interval.
fn over_time(law: &LawRow, size: usize, most: f64) -> Plot {
    let y = Scale::from_zero([most], Unit::Count, "datagrams");
    let mut plot = Plot::new(law.label.clone(), time_scale(&law.intervals), y);
    plot.zooms = true;
    // Dashes of many short levels would only be noise.
    let received = match is_dense(&law.intervals) {
        true => Dash::Solid,
        false => Dash::Dashed,
    };
    plot.with(Series::step("sent", counts(law, size, |i| i.sent)).toned(Tone::Muted))
        .with(Series::step("received", counts(law, size, |i| i.received)).dashed(received))
        .with(Series::step("dropped", counts(law, size, |i| i.dropped)).toned(Tone::Bad))
}

/// A count in each interval, the mean of `size` of them at a time.
fn counts(law: &LawRow, size: usize, of: fn(&Interval) -> Option<u64>) -> Vec<Point> {
    stair_of_means(&law.intervals, size, |i| {
        of(i).map_or(f64::NAN, |n| n as f64)
    })
}

fn show_trials(page: &mut Page, trials: &[TrialReport]) {
    page.section("Trials", "in the order in which they were made", |page| {
        page.table("Trials", &clients::trials_table(trials));
        page.note(clients::TRIALS_NOTE);
    });
}

fn show_generator(page: &mut Page, t: &TrialReport) {
    page.section("Generator", &any::generator(&t.generator), |page| {
        page.facts(&any::generator_facts(t));
        if !t.kernel.is_empty() {
            page.folded("Kernel counters that moved", |page| {
                page.table("Kernel counters", &any::kernel_table(t));
            });
        }
    });
}
