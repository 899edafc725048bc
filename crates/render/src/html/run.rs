//! The page of `knee run`: what its users would feel, over percentiles and over time, and how well
//! the load was kept.

use super::opening;
use super::page::Page;
use super::series::{is_dense, rates, response_times};
use super::trial_plots::{dispersion, pacing, response_spectrum};
use super::words::untied;
use crate::number;
use crate::text::{observed, run as words, traffic};
use knee_core::experiment::run::report::RunConclusion;
use knee_core::report::Report;
use knee_core::trial::report::TrialReport;

/// Writes it.
pub fn show(page: &mut Page, report: &Report, conclusion: &RunConclusion) {
    let (answer, remark) = (words::answer(report, conclusion), words::remark(report));
    opening::show(page, report, &untied(&answer), &untied(&remark));
    for trial in &report.trials {
        if report.trials.len() > 1 {
            page.section(&trial.label, "", |_| {});
        }
        show_trial(page, trial);
    }
}

fn show_trial(page: &mut Page, t: &TrialReport) {
    page.section("Response time", "", |page| {
        if t.response_time_ns.count == 0 {
            page.paragraph("No operation ended.");
            return;
        }
        let plots = response_spectrum(t).into_iter();
        let over_time = (t.intervals.len() > 1).then(|| response_times(&t.intervals));
        let plots: Vec<_> = plots.chain(over_time).collect();
        match is_dense(&t.intervals) {
            true => plots.iter().for_each(|plot| page.plot(plot)),
            false => page.plots(&plots),
        }
        page.table("Response and service time", &words::latency_table(t));
    });
    if words::is_cut_short(t) {
        page.section("Throughput", "", |page| {
            if t.intervals.len() > 1 {
                page.plot(&rates(t));
            }
        });
        return;
    }
    page.section("Throughput", "", |page| {
        if t.intervals.len() > 1 {
            page.plot(&rates(t));
        }
        page.facts(&words::throughput_facts(t));
        page.subheading("Outcomes");
        page.table("Outcomes", &words::outcomes_table(t));
        page.facts(&traffic::status_facts(t));
        if !t.traffic.targets.is_empty() {
            page.subheading("Targets");
            page.table("Targets", &traffic::targets_table(&t.traffic.targets));
        }
    });
    page.section("Load", "how well it was kept", |page| {
        let plots = pacing(t).into_iter().chain(dispersion(&t.offered));
        page.plots(&plots.collect::<Vec<_>>());
        page.facts(&words::load_facts(&t.offered));
    });
    if let Some(seen) = &t.observed {
        page.section("At the server", observed::source(seen), |page| {
            page.facts(&observed::facts(seen));
        });
    }
    page.section("Generator", &words::generator(&t.generator), |page| {
        page.facts(&words::generator_facts(t));
        if !t.kernel.is_empty() {
            let title = format!("Kernel: {} that moved", counters(t.kernel.len()));
            page.folded(&title, |page| {
                page.table("Kernel counters", &words::kernel_table(t))
            });
        }
    });
}

fn counters(n: usize) -> String {
    untied(&number::plural(n as u64, "counter"))
}
