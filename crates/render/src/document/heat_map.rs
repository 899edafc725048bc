//! Heat maps: the number of operations by time and response time.

use super::series::time_scale;
use super::{Block, Document, Layout, Medium, keep_first_of_levels};
use crate::number::{count, plural, time_short};
use crate::plot::{Plot, PlotSeries, Point, Scale, Shade, Unit};
use knee_core::trial::report::TrialReport;
use knee_load::measure::HeatReport;

/// Height of one of several heat maps, in CSS pixels.
const LEVEL_HEIGHT: u32 = 160;

/// The heat map of a trial; `None` without at least two columns.
pub(super) fn heat_map(t: &TrialReport) -> Option<Plot> {
    let heat = t.timing()?.heat_map.as_ref()?;
    if heat.counts.len() < 2 || t.intervals.is_empty() {
        return None;
    }
    let bounds = heat.bounds_ns.iter().map(|ns| *ns as f64);
    let y = Scale::fitting(bounds, Unit::Time, "response time");
    let mut plot = Plot::new("Operations by response time", time_scale(&t.intervals), y)
        .zooming()
        .described("How many operations ended over time, by response time.")
        .noted(format!(
            "The number of operations that ended in {} of time, by response time.",
            time_short(heat.column_ns)
        ));
    let levels = &heat.levels;
    for (number, [from, to]) in levels.iter().enumerate() {
        let cells = cells(heat, [*from, *to]);
        let weaker = levels.len() - 1 - number;
        let shade = Shade(Shade::MOST.saturating_sub(weaker as u8).max(1));
        let name = name([*from, *to], number + 1 == levels.len());
        let width = heat.column_ns as f64;
        plot = plot.with(PlotSeries::cells(name, cells, width, shade));
    }
    Some(plot)
}

/// Cells of all heat maps of a page.
const CELLS_MAX: usize = 12_000;

/// Adds the heat map of the first trial of each level to a page, folded. Where they would have too
/// many cells, those of the first levels are left out.
pub(super) fn show_levels(doc: &mut Document, trials: &[TrialReport]) {
    let mut firsts: Vec<(&str, &TrialReport)> = trials.iter().map(|t| (&*t.label, t)).collect();
    keep_first_of_levels(&mut firsts);
    let (mut plots, mut cells) = (Vec::new(), 0);
    for (label, trial) in firsts.into_iter().rev() {
        let Some(mut plot) = heat_map(trial) else {
            continue;
        };
        for series in &plot.series {
            cells += series.points().len();
        }
        if cells > CELLS_MAX {
            break;
        }
        label.clone_into(&mut plot.title);
        plots.push(plot.high(LEVEL_HEIGHT));
    }
    plots.reverse();
    if !plots.is_empty() {
        let levels = plural(plots.len() as u64, "level");
        let title = format!("Operations by response time, of {levels}");
        let plots = vec![Block::Plots(plots, Layout::Pairs)];
        doc.only(Medium::Page, |doc| doc.push(Block::Folded(title, plots)));
    }
}

fn name([from, to]: [u64; 2], is_last: bool) -> String {
    let range = if from == to { count(from) } else { format!("{} to {}", count(from), count(to)) };
    if is_last { format!("{range} operations") } else { range }
}

/// The cells whose number of operations is in this range; adjacent cells of a column are joined.
fn cells(heat: &HeatReport, [from, to]: [u64; 2]) -> Vec<Point> {
    let mut cells: Vec<Point> = Vec::new();
    for (number, column) in heat.counts.iter().enumerate() {
        let x = (number as f64 + 0.5) * heat.column_ns as f64;
        let rows = column.0.iter().zip(heat.bounds_ns.windows(2));
        for (_, bounds) in rows.filter(|(count, _)| (from..=to).contains(count)) {
            let [low, high] = [bounds[0] as f64, bounds[1] as f64];
            match cells.last_mut() {
                Some(Point { x: before, range: Some([_, end]), .. })
                    if *before == x && *end == low =>
                {
                    *end = high
                }
                _ => cells.push(Point::with(x, low, Some([low, high]))),
            }
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_load::measure::HeatColumn;

    #[test]
    fn cells_of_one_level_on_top_of_each_other_are_one() {
        let heat = HeatReport {
            column_ns: 10,
            bounds_ns: vec![1, 2, 3, 4],
            counts: vec![HeatColumn(vec![5, 4, 0]), HeatColumn(vec![4, 0, 4])],
            levels: vec![[1, 5]],
        };
        let ranges = |level| -> Vec<(f64, Option<[f64; 2]>)> {
            let cells = cells(&heat, level).into_iter();
            cells.map(|p| (p.x, p.range)).collect()
        };
        let [whole, low, high] = [[1.0, 3.0], [1.0, 2.0], [3.0, 4.0]].map(Some);
        assert_eq!(ranges([4, 5]), [(5.0, whole), (15.0, low), (15.0, high)]);
        assert_eq!(ranges([5, 9]), [(5.0, low)]);
        assert_eq!(ranges([6, 9]), []);
    }
}
