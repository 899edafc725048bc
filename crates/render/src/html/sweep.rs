//! The page of `knee sweep` and `knee analyze sweep`: where the target bends, and what that costs
//! its users.

use super::opening;
use super::page::Page;
use super::sweep_plots;
use super::words::untied;
use crate::text::heading;
use crate::text::line::{Ink, Line};
use crate::text::sweep as words;
use knee_core::experiment::sweep::report::SweepConclusion;
use knee_core::report::Report;

/// Writes it.
pub fn show(page: &mut Page, report: &Report, c: &SweepConclusion) {
    let (answer, remark) = (words::answer(c), words::remark(report, c));
    opening::show(page, report, &untied(&answer), &untied(&remark));
    if c.levels.len() > 1 {
        page.section("Throughput and its price", "", |page| {
            page.plot(&sweep_plots::throughput(c));
            let price = sweep_plots::response(c)
                .into_iter()
                .chain(sweep_plots::trade(c));
            page.plots(&price.collect::<Vec<_>>());
            let more = sweep_plots::spectra(report, c)
                .into_iter()
                .chain(sweep_plots::cost(c));
            page.plots(&more.collect::<Vec<_>>());
        });
    }
    page.section("Figures", "", |page| page.facts(&words::facts(c)));
    if !c.levels.is_empty() {
        page.section("Levels", "", |page| {
            page.table("Levels", &words::levels_table(&c.levels, true));
            page.note(words::legend(&c.levels));
            page.facts(&levels_out(c));
            page.facts(&heading::left_out(report));
        });
    }
    if !c.models.is_empty() {
        let remark = "fitted to throughput against load; residual as root mean square";
        page.section("Models", remark, |page| page.facts(&words::model_facts(c)));
    }
    let over_time = sweep_plots::over_time(report);
    if !over_time.is_empty() {
        page.section("Each trial over time", "", |page| {
            let shown = over_time.len();
            page.folded(&format!("Throughput of {shown} trials"), |page| {
                page.plots(&over_time)
            });
            if shown < report.trials.len() {
                let text = format!(
                    "{shown} of {} trials, those that do not count or lie nearest to the knee \
                     first; the intervals of all are in the JSON report.",
                    report.trials.len()
                );
                page.note(text);
            }
        });
    }
}

/// Which levels do not count, by the reason.
fn levels_out(c: &SweepConclusion) -> Vec<(String, Line)> {
    let mut reasons: Vec<&String> = Vec::new();
    for because in c.levels.iter().filter_map(|l| l.excluded_because.as_ref()) {
        if !reasons.contains(&because) {
            reasons.push(because);
        }
    }
    let fact = |because: &String| {
        let levels = c
            .levels
            .iter()
            .filter(|l| l.excluded_because.as_ref() == Some(because));
        let levels: Vec<String> = levels.map(|l| words::level_name(l.level)).collect();
        (
            format!("out, {because}"),
            Line::of(Ink::Warn, levels.join("; ")),
        )
    };
    reasons.into_iter().map(fact).collect()
}
