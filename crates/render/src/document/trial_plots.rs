//! Figures of a trial: its intervals, distributions, pacing, dispersion and heat maps.

use super::{Block, Document, Layout, Medium, first_of_levels};
use crate::number::{self, count, known, plural, time_short};
use crate::plot::{
    Dash, Mark, Plot, PlotSeries, Point, Reference, Scale, Shade, Shape, Tone, Unit, row_points,
    top,
};
use knee_core::trial::figure::TimesReport;
use knee_core::trial::offered::OfferedReport;
use knee_core::trial::report::TrialReport;
use knee_core::trial::times::QuantilesReport;
use knee_load::measure::{HeatReport, Interval};
use knee_load::stats::gaps::Dispersion;

/// Number of intervals above which a figure needs the whole width.
const DENSE: usize = 60;

/// Whether a figure of these intervals needs the whole width.
pub(super) fn is_dense(intervals: &[Interval]) -> bool {
    intervals.len() > DENSE
}

/// The scale of time of these intervals.
pub(super) fn time_scale(intervals: &[Interval]) -> Scale {
    let end = intervals.last().map_or(1, |i| i.end_ns);
    Scale::linear(0.0, end as f64, Unit::Time, "time into the window")
}

/// A figure of each interval as a stair up to the end of the last; NaN is a gap.
pub(super) fn stair(intervals: &[Interval], mut value: impl FnMut(&Interval) -> f64) -> Vec<Point> {
    let end_ns = intervals.last().map_or(0, |i| i.end_ns);
    stair_to(end_ns, intervals.iter().map(|i| (i.start_ns, value(i))))
}

/// A level from each begin to the next, the last one to this end.
pub(super) fn stair_to(end_ns: u64, levels: impl Iterator<Item = (u64, f64)>) -> Vec<Point> {
    let points = levels.map(|(begin_ns, level)| Point::new(begin_ns as f64, level));
    let mut points: Vec<Point> = points.collect();
    points.extend(points.last().map(|last| Point::new(end_ns as f64, last.y)));
    points
}

/// A response time of an interval; a gap if nothing ended in it.
pub(super) fn or_gap(ns: u64) -> f64 {
    if ns == 0 { f64::NAN } else { ns as f64 }
}

/// About `most` of the points: the lowest and the highest of each group of neighbours, so that
/// peaks and dips remain. Each is still a measured point.
pub(super) fn thinned(points: Vec<Point>, most: usize) -> Vec<Point> {
    if points.len() <= most {
        return points;
    }
    let size = 2 * points.len().div_ceil(most.max(2));
    let ends = |group: &[Point]| -> Vec<Point> {
        let by = |a: &&Point, b: &&Point| a.y.total_cmp(&b.y);
        let known = || group.iter().filter(|p| !p.y.is_nan());
        match (known().min_by(by), known().max_by(by)) {
            (Some(low), Some(high)) if low.x < high.x => vec![*low, *high],
            (Some(low), Some(high)) if low.x > high.x => vec![*high, *low],
            (Some(level), _) => vec![*level],
            // A gap stays one.
            _ => group.first().copied().into_iter().collect(),
        }
    };
    let last = points.last().copied();
    points.chunks(size).flat_map(ends).chain(last).collect()
}

/// Response times over time: median, 90th and 99th percentile, longest.
pub(super) fn response_times(intervals: &[Interval]) -> Plot {
    let times = intervals.iter().flat_map(|i| [i.p50_ns, i.max_ns]);
    let y = Scale::fitting(times.map(or_gap), Unit::Time, "response time");
    let mut plot = Plot::new("Response time over time", time_scale(intervals), y).zooming();
    // The order of the lines distinguishes them; dashes of many short levels would only be noise.
    let dashed = |dash| {
        if is_dense(intervals) { Dash::Solid } else { dash }
    };
    type Figure = (&'static str, fn(&Interval) -> u64, Tone, Dash);
    let figures: [Figure; 4] = [
        ("max", |i| i.max_ns, Tone::Muted, Dash::Dotted),
        ("p99", |i| i.p99_ns, Tone::Second, Dash::Dashed),
        ("p90", |i| i.p90_ns, Tone::Third, Dash::DashDot),
        ("p50", |i| i.p50_ns, Tone::First, Dash::Solid),
    ];
    for (name, figure, tone, dash) in figures {
        let levels = stair(intervals, |i| or_gap(figure(i)));
        plot = plot.with(PlotSeries::step(name, levels).toned(tone).dashed(dashed(dash)));
    }
    plot.described("Median, 90th and 99th percentile and longest response time of each interval.")
}

/// The rates asked for, started and answered over time, and of errors if any.
pub(super) fn rates(trial: &TrialReport) -> Plot {
    let intervals = trial.intervals.as_slice();
    let rate = |count: fn(&Interval) -> u64| stair(intervals, |i| i.per_s(count(i)));
    let (started, answered) = (rate(|i| i.attempted), rate(|i| i.completed));
    // With sessions their rate was asked for, but these are rates of operations.
    let asked = trial.offered.asked_per_s.filter(|_| trial.sessions().is_none());
    let values = started.iter().chain(&answered).map(|p| p.y).chain(asked);
    let y = Scale::from_zero(values, Unit::PerS, "operations per second");
    let mut plot = Plot::new("Rate over time", time_scale(intervals), y).zooming();
    if let (Some(per_s), Some(last)) = (asked, intervals.last()) {
        let ends = [0, last.end_ns].map(|ns| Point::new(ns as f64, per_s));
        let line = PlotSeries::line("asked", ends.into()).toned(Tone::Muted);
        plot = plot.with(line.dashed(Dash::Dotted).unlisted());
    }
    let started = PlotSeries::step("started", started).toned(Tone::Second);
    plot = plot.with(started.dashed(Dash::Dashed)).with(PlotSeries::step("answered", answered));
    if intervals.iter().any(|i| i.errors > 0) {
        let errors = PlotSeries::step("errors", rate(|i| i.errors));
        plot = plot.with(errors.toned(Tone::Bad).dashed(Dash::DashDot));
    }
    let throughput = number::stated(trial.throughput(), number::rate);
    plot.described(format!("Operations started and answered over time; throughput {throughput}."))
}

/// The distributions of some trials by percentile, on scales that stretch the tail; `None` if they
/// are unknown. The largest observation stands at the end.
pub(super) fn spectrum(distributions: Vec<PlotSeries>) -> Option<Plot> {
    let known = distributions.iter().flat_map(PlotSeries::points);
    let highest = top(known.clone().map(|p| p.x).filter(|percentile| *percentile < 100.0));
    if highest == 0.0 {
        return None;
    }
    let x = Scale::percentiles(highest, "percentile, up to the longest");
    let y = Scale::fitting(known.map(|p| p.y), Unit::Time, "time");
    let mut plot = Plot::new("Response time by percentile", x, y);
    plot.series = distributions;
    Some(plot)
}

/// The distribution as a line.
pub(super) fn spectrum_line(name: impl Into<String>, times: &TimesReport) -> PlotSeries {
    let points = times.spectrum.iter().map(|p| Point::new(p.percentile, p.ns as f64));
    PlotSeries::line(name, points.collect())
}

/// Response and service time by percentile.
pub(super) fn response_spectrum(t: &TrialReport) -> Option<Plot> {
    let (response, service) = (&t.response_time_ns, &t.service_time_ns);
    let mut series = Vec::new();
    if !service.spectrum.is_empty() {
        let line = spectrum_line("service", service);
        series.push(line.toned(Tone::Second).dashed(Dash::Dashed));
    }
    series.push(spectrum_line("response", response));
    let plot = spectrum(series)?.noted(
        "Response: from the intended start; service: from the sending. Where they part, operations \
         waited here for a connection or for their turn.",
    );
    let [p50, p99, max] =
        [response.p50, response.p99, response.max].map(|ns| known(ns, time_short));
    Some(plot.described(format!(
        "Response time by percentile: half of the operations took at most {p50}, 99 % at most \
         {p99}, the longest {max}."
    )))
}

/// The delays of the generator beside the response times.
pub(super) fn pacing(t: &TrialReport) -> Option<Plot> {
    let o = &t.offered;
    if o.asked_per_s.is_none() || t.response_time_ns.count == 0 {
        return None;
    }
    let l = &t.response_time_ns;
    let response = QuantilesReport { p50: l.p50, p99: l.p99, p999: l.p999, max: l.max };
    let mut rows = vec![("response time", response), ("pacing error", o.pacing_error_ns.clone())];
    let wait = o.connection_wait_ns.as_ref();
    if let Some(wait) = wait.filter(|wait| wait.max > Some(0)) {
        rows.push(("connection wait", wait.clone()));
    }
    type Quantile = fn(&QuantilesReport) -> Option<u64>;
    let marks: [(&str, Quantile, Mark, Tone); 4] = [
        ("p50", |q| q.p50, Mark::Dot, Tone::First),
        ("p99", |q| q.p99, Mark::Square, Tone::Second),
        ("p99.9", |q| q.p999, Mark::Ring, Tone::Third),
        ("max", |q| q.max, Mark::Frame, Tone::Muted),
    ];
    let times = rows.iter().flat_map(|(_, q)| marks.map(|(_, figure, ..)| figure(q)));
    let times = times.flatten().map(|ns| ns as f64);
    let x = Scale::fitting(times, Unit::Time, "time");
    let names = rows.iter().map(|(name, _)| *name);
    let mut plot = Plot::of_rows("The instrument beside what it measured", x, names, 44)
        .noted("Pacing error: how late operations started; it is the generator's own.");
    for (name, figure, mark, tone) in marks {
        let points = row_points(&rows, |(_, q)| Some(figure(q)? as f64));
        plot = plot.with(PlotSeries::marks(name, points).marked(mark).toned(tone));
    }
    let (p99, response) = (o.pacing_error_ns.p99, t.response_time_ns.p99);
    let (p99, response) = (known(p99, time_short), known(response, time_short));
    Some(plot.described(format!(
        "99 % of operations started at most {p99} late; 99 % of the response times were at most \
         {response}."
    )))
}

/// The points of an index of dispersion by time scale, in nanoseconds.
pub(super) fn dispersion_points(dispersion: &Dispersion) -> Vec<Point> {
    let Dispersion { ms1, ms10, ms100, s1 } = dispersion.clone();
    let known = [(1e6, ms1), (1e7, ms10), (1e8, ms100), (1e9, s1)].into_iter();
    known.filter_map(|(ns, index)| Some(Point::new(ns, index?))).collect()
}

/// Index of dispersion of the starts at four time scales; `None` with fewer than two.
pub(super) fn dispersion(o: &OfferedReport) -> Option<Plot> {
    let points = dispersion_points(o.dispersion.as_ref()?);
    if points.len() < 2 {
        return None;
    }
    let x = Scale::logarithmic(7e5, 1.4e9, Unit::Time, "length of a bin");
    let most = top(points.iter().map(|p| p.y).chain([1.0]));
    let y = Scale::linear(0.0, most * 1.25, Unit::Number, "variance / mean");
    let plot = Plot::new("Dispersion of starts by time scale", x, y)
        .described("Index of dispersion of the counts of starts per bin: 1 for Poisson arrivals.")
        .against(Reference::y(1.0, "Poisson: 1 at every scale"))
        .with(PlotSeries::line("", points).marked(Mark::Dot));
    Some(plot)
}

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
    for (number, level) in levels.iter().enumerate() {
        let cells = cells(heat, *level);
        let weaker = levels.len() - 1 - number;
        let shade = Shade(Shade::MOST.saturating_sub(weaker as u8).max(1));
        let [from, to] = *level;
        let range =
            if from == to { count(from) } else { format!("{} to {}", count(from), count(to)) };
        let is_last = number + 1 == levels.len();
        let name = if is_last { format!("{range} operations") } else { range };
        let width = heat.column_ns as f64;
        plot = plot.with(PlotSeries::new(name, Shape::Cells(cells, width, shade)));
    }
    Some(plot)
}

/// Cells of all heat maps of a page.
const CELLS_MAX: usize = 12_000;

/// Adds the heat map of the first trial of each level to a page, folded. Where they would have too
/// many cells, those of the first levels are left out.
pub(super) fn show_heat_maps_of_levels(doc: &mut Document, trials: &[TrialReport]) {
    let (mut plots, mut cells) = (Vec::new(), 0);
    for (label, trial) in first_of_levels(trials, Some).into_iter().rev() {
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
    fn a_long_series_keeps_its_peaks_and_dips_and_nothing_else() {
        let points: Vec<Point> = (0..1_000_u32)
            .map(|i| Point::new(f64::from(i), if i == 717 { 9.0 } else { f64::from(i % 3) }))
            .collect();
        assert_eq!(thinned(points.clone(), 1_000), points);
        let few = thinned(points.clone(), 100);
        assert!((50..=102).contains(&few.len()), "{}", few.len());
        assert!(few.iter().all(|p| points.contains(p)));
        assert!(few.iter().any(|p| p.y == 9.0));
        assert!(few.windows(2).all(|w| w[0].x <= w[1].x));
    }

    #[test]
    fn cells_of_one_level_on_top_of_each_other_are_one() {
        let heat = HeatReport {
            column_ns: 10,
            bounds_ns: vec![1, 2, 3, 4],
            counts: vec![HeatColumn(vec![5, 4, 0]), HeatColumn(vec![4, 0, 4])],
            levels: vec![[1, 5]],
        };
        let ranges = |level| -> Vec<(f64, Option<[f64; 2]>)> {
            cells(&heat, level).into_iter().map(|p| (p.x, p.range)).collect()
        };
        let [whole, low, high] = [[1.0, 3.0], [1.0, 2.0], [3.0, 4.0]].map(Some);
        assert_eq!(ranges([4, 5]), [(5.0, whole), (15.0, low), (15.0, high)]);
        assert_eq!(ranges([5, 9]), [(5.0, low)]);
        assert_eq!(ranges([6, 9]), []);
    }
}
