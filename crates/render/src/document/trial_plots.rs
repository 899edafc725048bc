//! Figures of a trial: distributions, pacing, dispersion.

use crate::axis::top;
use crate::number::{known, time_short};
use crate::plot::{Dash, Mark, Plot, PlotSeries, Point, Reference, Scale, Tone, Unit, row_points};
use knee_core::trial::report::{OfferedReport, QuantilesReport, TimesReport, TrialReport};
use knee_load::stats::gaps::Dispersion;

/// The distributions of some trials by percentile, on scales that stretch the tail; `None` if they
/// are unknown. The largest observation stands at the end.
pub(super) fn spectrum(series: Vec<(PlotSeries, &TimesReport)>) -> Option<Plot> {
    let known = series.iter().flat_map(|(_, times)| &times.spectrum);
    let below = known.clone().map(|p| p.percentile).filter(|p| *p < 100.0);
    let highest = top(below);
    if highest == 0.0 {
        return None;
    }
    let x = Scale::percentiles(highest, "percentile, up to the longest");
    let y = Scale::fitting(known.map(|p| p.ns as f64), Unit::Time, "time");
    let mut plot = Plot::new("Response time by percentile", x, y);
    plot.series = series.into_iter().map(|(series, _)| series).collect();
    Some(plot)
}

/// The distribution as a line, with the times that it shows.
pub(super) fn spectrum_line(
    name: impl Into<String>,
    times: &TimesReport,
) -> (PlotSeries, &TimesReport) {
    let points = times.spectrum.iter();
    let points = points.map(|p| Point::new(p.percentile, p.ns as f64));
    (PlotSeries::line(name, points.collect()), times)
}

/// Response and service time by percentile.
pub(super) fn response_spectrum(t: &TrialReport) -> Option<Plot> {
    let (response, service) = (&t.response_time_ns, &t.service_time_ns);
    let mut series = Vec::new();
    if !service.spectrum.is_empty() {
        let (line, times) = spectrum_line("service", service);
        series.push((line.toned(Tone::Second).dashed(Dash::Dashed), times));
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
    let of = |l: &TimesReport| QuantilesReport { p50: l.p50, p99: l.p99, p999: l.p999, max: l.max };
    let mut rows = vec![
        ("response time", of(&t.response_time_ns)),
        ("pacing error", o.pacing_error_ns.clone()),
    ];
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
    let all = rows.iter().flat_map(|(_, q)| marks.map(|(_, of, ..)| of(q)));
    let all = all.flatten().map(|ns| ns as f64);
    let x = Scale::fitting(all, Unit::Time, "time");
    let names = rows.iter().map(|(name, _)| *name);
    let mut plot = Plot::of_rows("The instrument beside what it measured", x, names, 44)
        .noted("Pacing error: how late operations started; it is the generator's own.");
    for (name, of, mark, tone) in marks {
        let points = row_points(&rows, |(_, q)| Some(of(q)? as f64));
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
    let scales = [(1e6, ms1), (1e7, ms10), (1e8, ms100), (1e9, s1)];
    let known = scales.into_iter();
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
