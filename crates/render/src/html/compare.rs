//! The page of a comparison: what differs, by how much at the least and at the most, and all that
//! was compared.

use super::opening::{CROSS, INFORMATION, TICK, WARNING, first_sentence, show_shape};
use super::page::Page;
use super::plot::{Plot, Point, Reference, Scale, Series, Tone, Unit};
use super::words::{tied, untied};
use crate::compared::metric;
use crate::text::compare::{heading, not_judged, note, side, table};
use knee_core::compare::report::{Comparison, ComparisonRow, ComparisonVerdict};

/// The title of its page.
pub fn title(comparison: &Comparison) -> String {
    let names = |side: &knee_core::compare::report::ComparedSide| {
        let names: Vec<&str> = side.runs.iter().map(|r| r.name.as_str()).collect();
        names.join(", ")
    };
    format!(
        "knee compare: {} against {}",
        names(&comparison.b),
        names(&comparison.a)
    )
}

/// Writes it.
pub fn show(page: &mut Page, comparison: &Comparison) {
    show_answer(page, comparison);
    page.facts(&[
        ("A".to_owned(), side(&comparison.a)),
        ("B".to_owned(), side(&comparison.b)),
    ]);
    if !comparison.warnings.is_empty() {
        page.section("Read with care", "", |page| {
            page.m.el("ul").with(|m| {
                for warning in &comparison.warnings {
                    m.el("li").text(warning);
                }
            });
        });
    }
    page.section("Compared", "B against A", |page| {
        page.plots(&plots(&comparison.rows));
        page.table("B against A", &table(&comparison.rows, true));
        page.note(untied(&note(comparison)));
    });
    let reasons = not_judged(&comparison.rows);
    if !reasons.is_empty() {
        page.section("Not judged", "", |page| {
            for (reason, metrics) in reasons {
                page.paragraph(format_args!("{}: {reason}", metrics.join(", ")));
            }
        });
    }
    page.note(format_args!("knee {}", comparison.knee_version));
}

fn show_answer(page: &mut Page, comparison: &Comparison) {
    let (class, shape) = match comparison.verdict {
        ComparisonVerdict::Better => ("verdict good", TICK),
        ComparisonVerdict::Worse => ("verdict bad", CROSS),
        ComparisonVerdict::Same => ("verdict", INFORMATION),
        ComparisonVerdict::Different | ComparisonVerdict::Unknown => ("verdict warn", WARNING),
    };
    let tag = page.heading_tag(0);
    page.m.el("header").with(|m| {
        m.el("p").attr("class", class).with(|m| {
            show_shape(m, shape);
            m.text(heading(comparison.verdict));
        });
        let answer = untied(&comparison.answer);
        let (first, rest) = first_sentence(&answer);
        m.el(tag).text(tied(first));
        if !rest.is_empty() {
            m.el("p").attr("class", "lead").text(rest);
        }
    });
}

/// A figure of more rows than this is no longer seen at a glance.
const NAMES_MAX: usize = 16;

/// Height of one row, in CSS pixels.
const ROW_PX: u32 = 28;

/// The ratios with their intervals: those of the whole beside each other, those of levels over the
/// levels, metric by metric.
fn plots(rows: &[ComparisonRow]) -> Vec<Plot> {
    let with_interval = || rows.iter().filter(|r| r.ratio_ci95.is_some());
    let whole: Vec<(String, &ComparisonRow)> = with_interval()
        .filter(|r| r.label.is_empty())
        .map(|r| (metric(r), r))
        .collect();
    let mut plots: Vec<Plot> = plot("B/A", &whole).into_iter().collect();
    let mut metrics: Vec<&str> = Vec::new();
    for row in with_interval().filter(|r| !r.label.is_empty()) {
        if !metrics.contains(&row.metric.as_str()) {
            metrics.push(&row.metric);
        }
    }
    for name in metrics {
        let of_levels = with_interval().filter(|r| !r.label.is_empty() && r.metric == name);
        let of_levels: Vec<(String, &ComparisonRow)> =
            of_levels.map(|r| (r.label.clone(), r)).collect();
        let Some((_, first)) = of_levels.first() else {
            continue;
        };
        let bare = ComparisonRow {
            label: String::new(),
            ..(*first).clone()
        };
        plots.extend(plot(&format!("B/A in {}", metric(&bare)), &of_levels));
    }
    plots
}

fn plot(title: &str, rows: &[(String, &ComparisonRow)]) -> Option<Plot> {
    if rows.is_empty() || rows.len() > NAMES_MAX {
        return None;
    }
    let bounds = rows.iter().filter_map(|(_, r)| r.ratio_ci95).flatten();
    let (low, high) = bounds.fold((0.9, 1.1), |(low, high): (f64, f64), v| {
        (low.min(v), high.max(v))
    });
    let x = Scale::logarithmic(low / 1.02, high * 1.02, Unit::Number, "B/A");
    let y = Scale::categories(rows.iter().map(|(name, _)| name.clone()).collect(), "");
    let points = |is_found: bool| -> Vec<Point> {
        let numbered = (0..).zip(rows);
        let such = numbered.filter(|(_, (_, r))| r.significant == is_found);
        such.map(|(i, (_, r))| Point::with(r.ratio.unwrap_or(f64::NAN), f64::from(i), r.ratio_ci95))
            .collect()
    };
    let mut plot = Plot::new(title, x, y)
        .described("The ratio of B to A with its 95 % confidence interval; 1 is no difference.")
        .against(Reference::Vertical {
            x: 1.0,
            label: "no difference".to_owned(),
            tone: Tone::Muted,
            range: None,
        });
    plot.height = ROW_PX * rows.len() as u32;
    let kinds = [
        ("differs", Tone::Second, points(true)),
        ("within chance", Tone::First, points(false)),
    ];
    for (name, tone, points) in kinds {
        if !points.is_empty() {
            plot = plot.with(Series::points(name, points).toned(tone));
        }
    }
    Some(plot)
}
