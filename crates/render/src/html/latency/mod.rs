//! Latency under load: the scenarios at a glance, what each of their flows got, and each of them
//! over time.

mod glance;
mod over_time;

use super::opening;
use super::page::Page;
use super::plot::{Plot, Point, Scale, Series, Tone, Unit};
use super::words::{untied, write_line};
use crate::number::{MISSING, TIE, count, number, plural, time_short};
use crate::text::latency::{Shown, flows, name, names_controls, pairs, scenarios as words, worst};
use crate::text::line::Line;
use crate::text::run as any;
use crate::text::table::{Align, Table};
use knee_core::experiment::latency::report::{CongestionRow, LatencyConclusion, ScenarioRow};
use knee_core::report::Report;

/// Writes it.
pub fn show(page: &mut Page, report: &Report, c: &LatencyConclusion) {
    let remark = format!(", {}", plural(c.scenarios.len() as u64, "scenario"));
    opening::show(page, report, &untied(&c.answer), &untied(&remark));
    if c.scenarios.is_empty() {
        return;
    }
    let shown = pairs(report, c);
    page.section("Overall", "the worst scenario counts", |page| {
        let mut facts = match c.grade.as_str() {
            "" => Vec::new(),
            _ => words::grade_facts(c),
        };
        facts.extend(overall(c));
        page.facts(&facts);
    });
    show_controls(page, &c.by_congestion_control);
    show_scenarios(page, c, &shown);
    if shown.is_empty() {
        return;
    }
    page.section("Latency", &words::latency_remark(&shown), |page| {
        page.table(
            "Latency",
            &words::latency_table(&shown, c.idle_ns.is_some()),
        );
    });
    page.section("Flows", words::FLOWS_REMARK, |page| {
        page.plot(&glance::flows(&c.scenarios));
        page.table("Flows", &words::flows_table(&shown));
        page.note(words::FLOWS_NOTE);
    });
    over_time::show(page, &shown);
    if let Some(worst) = worst(&shown) {
        show_worst(page, &worst, &shown);
    }
    if let [only] = shown.as_slice() {
        let generator = &only.trial.generator;
        page.section("Generator", &any::generator(generator), |page| {
            page.facts(&any::generator_facts(only.trial));
        });
    }
}

/// The figures that stand for the path as a whole.
fn overall(c: &LatencyConclusion) -> Vec<(String, Line)> {
    let figure = |value: Option<u64>, unit: &str| {
        let text = |n| format!("{}{TIE}{unit}", count(n));
        Line::plain(value.map_or(MISSING.to_owned(), text))
    };
    let least = c.min_rtt_ns.map_or(MISSING.to_owned(), time_short);
    vec![
        any::fact("least round trip", Line::plain(least)),
        any::fact(
            "upload capacity",
            figure(c.upload_capacity_kib_per_s, "KiB/s"),
        ),
        any::fact(
            "download capacity",
            figure(c.download_capacity_kib_per_s, "KiB/s"),
        ),
        any::fact("responsiveness", figure(c.responsiveness_hz, "Hz")),
        any::fact("smoothness", figure(c.smoothness_hz, "Hz")),
    ]
}

fn show_scenarios(page: &mut Page, c: &LatencyConclusion, shown: &[Shown]) {
    let remark = "uploads/downloads at a time";
    page.section("Scenarios", remark, |page| {
        page.panels(&glance::figures(c, shown));
        // The tables below tell the same where it was measured here.
        if shown.is_empty() {
            page.table("Scenarios", &scenarios_table(&c.scenarios));
        }
        let ends = words::ends(c);
        if !ends.is_empty() {
            page.m.el("ul").with(|m| {
                for line in &ends {
                    m.el("li").with(|m| write_line(m, line));
                }
            });
        }
    });
}

fn scenarios_table(rows: &[ScenarioRow]) -> Table {
    let names = names_controls(rows.iter());
    let mut table = Table::default();
    let cells = rows.iter().map(|row| Line::plain(name(row, names)));
    table.column("", Align::Left, cells.collect());
    let mut column = |title: &str, of: fn(&ScenarioRow) -> Option<f64>| {
        if rows.iter().any(|row| of(row).is_some()) {
            let cells = rows.iter().map(|row| of(row).map_or(String::new(), number));
            table.column(title, Align::Right, cells.map(Line::plain).collect());
        }
    };
    column("up KiB/s", |row| row.up_kib_per_s);
    column("down KiB/s", |row| row.down_kib_per_s);
    column("smoothness Hz", |row| row.smoothness_hz);
    column("responsiveness Hz", |row| row.responsiveness_hz);
    table
}

fn show_controls(page: &mut Page, rows: &[CongestionRow]) {
    if rows.len() < 2 {
        return;
    }
    let remark = "the same scenarios with each of them";
    page.section("Congestion controls", remark, |page| {
        let graded = |row: &CongestionRow| match row.grade.as_str() {
            "" => row.congestion_control.clone(),
            grade => format!("{} ({grade})", row.congestion_control),
        };
        let names: Vec<String> = rows.iter().map(graded).collect();
        let plot = |title: &str, unit: Unit, tone, of: &dyn Fn(&CongestionRow) -> Option<u64>| {
            let values: Vec<f64> = rows
                .iter()
                .map(|row| of(row).map_or(f64::NAN, |n| n as f64))
                .collect();
            // Room for the words beside the longest bar.
            let x = Scale::from_zero(values.iter().map(|v| 1.45 * v), unit, "");
            let mut plot = Plot::new(title, x, Scale::categories(names.clone(), ""));
            plot.height = 30 * rows.len() as u32;
            let bars = values.iter().enumerate();
            let bars = bars.map(|(i, v)| Point::new(*v, i as f64)).collect();
            let labels = values.iter().map(|v| unit.value(*v)).collect();
            plot.with(Series::bars("", bars, 0.6).toned(tone).labelled(labels))
        };
        page.panels(&[
            plot("Latency added under load", Unit::Time, Tone::Second, &|r| {
                r.added_latency_ns
            }),
            plot("Upload capacity", Unit::KibPerS, Tone::First, &|r| {
                r.upload_capacity_kib_per_s
            }),
            plot("Download capacity", Unit::KibPerS, Tone::Third, &|r| {
                r.download_capacity_kib_per_s
            }),
        ]);
        page.table("Congestion controls", &words::controls_table(rows));
    });
}

fn show_worst(page: &mut Page, worst: &Shown, shown: &[Shown]) {
    if worst.flows.flows.is_empty() {
        return;
    }
    let title = name(worst.row, names_controls(shown.iter().map(|s| s.row)));
    let remark = match shown.len() {
        1 => String::new(),
        _ => "the scenario with the longest latency".to_owned(),
    };
    page.section(&format!("Flows of {title}"), &remark, |page| {
        let all: Vec<_> = worst.flows.flows.iter().collect();
        page.table("Flows", &flows::table(&all));
        page.note(flows::NOTE);
    });
}
