//! How well each way holds a rate: four figures with the same rows, and the table.

use super::{ROW_PX, least_and_most};
use crate::html::page::Page;
use crate::html::plot::{Mark, Plot, Point, Reference, Scale, Series, Tone, Unit};
use crate::number::{asked, fixed};
use crate::text::throttle::rates as words;
use knee_core::experiment::throttle::report::RateRow;

/// Writes it.
pub fn show(page: &mut Page, rows: &[RateRow]) {
    let remark = "each way of holding the rate asked for";
    page.section("Rates held", remark, |page| {
        page.plots(&[achieved(rows), late(rows), uneven(rows), cost(rows)]);
        page.table("Rates held", &words::table(rows));
        page.note(words::notes(rows));
    });
}

fn plot(title: &str, x: Scale, rows: &[RateRow]) -> Plot {
    let names: Vec<String> = rows.iter().map(|r| r.method.clone()).collect();
    let height = ROW_PX * names.len() as u32;
    let mut plot = Plot::new(title, x, Scale::categories(names, ""));
    plot.height = height;
    plot
}

fn points(rows: &[RateRow], of: fn(&RateRow) -> f64) -> Vec<Point> {
    let rows = rows.iter().enumerate();
    rows.map(|(i, r)| Point::new(of(r), i as f64)).collect()
}

fn achieved(rows: &[RateRow]) -> Plot {
    // Room for the words beside the longest bar.
    let ends = rows
        .iter()
        .flat_map(|r| [r.asked_per_s, 1.25 * r.achieved_per_s]);
    let x = Scale::from_zero(ends, Unit::PerS, "operations");
    let bars = Series::bars("achieved", points(rows, |r| r.achieved_per_s), 0.6);
    let labels = rows.iter().map(words::achieved).collect();
    let mut plot = plot("Achieved", x, rows).with(bars.labelled(labels));
    let Some(first) = rows.first() else {
        return plot;
    };
    plot.note = format!("dashed: {}/s, as asked", asked(first.asked_per_s));
    plot.against(Reference::Vertical {
        x: first.asked_per_s,
        label: String::new(),
        tone: Tone::Muted,
        range: None,
    })
}

fn late(rows: &[RateRow]) -> Plot {
    let ends = rows
        .iter()
        .flat_map(|r| [r.error_p50_ns, r.error_p99_ns, r.error_max_ns]);
    let [least, most] = least_and_most(ends);
    let x = Scale::logarithmic(least / 1.5, most * 1.5, Unit::Time, "after its moment");
    let series = |name: &str, of: fn(&RateRow) -> f64| Series::points(name, points(rows, of));
    let p99 = series("p99", |r| r.error_p99_ns as f64).toned(Tone::Second);
    let max = series("max", |r| r.error_max_ns as f64).toned(Tone::Muted);
    plot("Begin of an operation after its moment", x, rows)
        .with(series("p50", |r| r.error_p50_ns as f64))
        .with(p99.marked(Mark::Square))
        .with(max.marked(Mark::Ring))
}

fn uneven(rows: &[RateRow]) -> Plot {
    let ends = rows.iter().map(|r| 1.15 * r.gap_cv);
    let x = Scale::from_zero(ends, Unit::Number, "coefficient");
    let bars = Series::bars("CV", points(rows, |r| r.gap_cv), 0.6).toned(Tone::Fourth);
    let labels = rows.iter().map(|r| fixed(r.gap_cv, 3)).collect();
    let title = "Unevenness of the gaps: coefficient of variation";
    plot(title, x, rows).with(bars.labelled(labels))
}

fn cost(rows: &[RateRow]) -> Plot {
    let shares = rows.iter().flat_map(|r| [r.cpu_percent, r.op_percent]);
    let x = Scale::from_zero(shares, Unit::Percent, "of a core");
    let all = Series::bars("all", points(rows, |r| r.cpu_percent), 0.6).toned(Tone::Second);
    let operations = Series::points("in operations", points(rows, |r| r.op_percent));
    plot("Processor time", x, rows)
        .with(all)
        .with(operations.toned(Tone::Muted).marked(Mark::Frame))
}
