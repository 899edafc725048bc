//! Figures of a trial that are not over time.

use crate::axis::top;
use crate::number::{known, time_short};
use crate::plot::{Dash, Mark, Plot, Point, Reference, Scale, Series, Tone, Unit};
use knee_core::stats::gaps::Dispersion;
use knee_core::trial::report::{
    OfferedReport, PercentilePoint, QuantilesReport, TimesReport, TrialReport,
};

/// A distribution by percentile, on scales that stretch its tail; `None` where it is not known.
/// The largest observation stands at the end.
pub(super) fn spectrum(series: Vec<(Series, &[PercentilePoint])>) -> Option<Plot> {
    let known = series.iter().flat_map(|(_, points)| points.iter());
    let below = known.clone().map(|p| p.percentile).filter(|p| *p < 100.0);
    let highest = top(below);
    if highest == 0.0 {
        return None;
    }
    let x = Scale::percentiles(highest, "percentile, up to the longest");
    let y = Scale::fitting(known.map(|p| p.ns as f64), Unit::Time, "time");
    let mut plot = Plot::new("", x, y);
    plot.series = series.into_iter().map(|(series, _)| series).collect();
    Some(plot)
}

/// The points of a distribution.
pub(super) fn spectrum_points(l: &TimesReport) -> Vec<Point> {
    let points = l.spectrum.iter();
    points
        .map(|p| Point::new(p.percentile, p.ns as f64))
        .collect()
}

/// Response and service time by percentile.
pub(super) fn response_spectrum(t: &TrialReport) -> Option<Plot> {
    let (response, service) = (&t.response_time_ns, &t.service_time_ns);
    let mut series = vec![(
        Series::line("response", spectrum_points(response)),
        response.spectrum.as_slice(),
    )];
    if !service.spectrum.is_empty() {
        let line = Series::line("service", spectrum_points(service));
        let line = line.toned(Tone::Second).dashed(Dash::Dashed);
        series.insert(0, (line, service.spectrum.as_slice()));
    }
    let mut plot = spectrum(series)?;
    plot.title = "Response time by percentile".into();
    plot.note = "Response: from the intended start; service: from the sending. Where they part, \
                 operations waited here for a connection or for their turn."
        .into();
    let [p50, p99, max] =
        [response.p50, response.p99, response.max].map(|ns| known(ns, time_short));
    Some(plot.described(format!(
        "Response time by percentile: half of the operations took at most {p50}, 99 % at most \
         {p99}, the longest {max}."
    )))
}

/// How late the generator was beside what it measured.
pub(super) fn pacing(t: &TrialReport) -> Option<Plot> {
    let o = &t.offered;
    if o.asked_per_s.is_none() || t.response_time_ns.count == 0 {
        return None;
    }
    let of = |l: &TimesReport| QuantilesReport {
        p50: l.p50,
        p99: l.p99,
        p999: l.p999,
        max: l.max,
    };
    let mut rows = vec![
        ("response time", of(&t.response_time_ns)),
        ("pacing error", o.pacing_error_ns.clone()),
    ];
    let wait = o.connection_wait_ns.as_ref();
    if let Some(wait) = wait.filter(|wait| wait.max > Some(0)) {
        rows.push(("connection wait", wait.clone()));
    }
    type Figure = (
        &'static str,
        fn(&QuantilesReport) -> Option<u64>,
        Mark,
        Tone,
    );
    let marks: [Figure; 4] = [
        ("p50", |q| q.p50, Mark::Dot, Tone::First),
        ("p99", |q| q.p99, Mark::Square, Tone::Second),
        ("p99.9", |q| q.p999, Mark::Ring, Tone::Third),
        ("max", |q| q.max, Mark::Frame, Tone::Muted),
    ];
    let all = rows
        .iter()
        .flat_map(|(_, q)| marks.map(|(_, of, ..)| of(q)));
    let all = all.flatten().map(|ns| ns as f64);
    let x = Scale::fitting(all, Unit::Time, "time");
    let names = rows.iter().map(|(name, _)| name.to_string());
    let mut plot = Plot::new("The instrument beside what it measured", x, {
        Scale::categories(names.collect(), "")
    });
    plot.height = 44 * rows.len() as u32;
    plot.note = "Pacing error: how late operations started; it is the generator's own.".into();
    for (name, of, mark, tone) in marks {
        let points = rows.iter().enumerate();
        let points = points.filter_map(|(i, (_, q))| Some(Point::new(of(q)? as f64, i as f64)));
        plot = plot.with(
            Series::points(name, points.collect())
                .marked(mark)
                .toned(tone),
        );
    }
    let (p99, response) = (o.pacing_error_ns.p99, t.response_time_ns.p99);
    let (p99, response) = (known(p99, time_short), known(response, time_short));
    Some(plot.described(format!(
        "99 % of operations started at most {p99} late; 99 % of the \
                                 response times were at most {response}."
    )))
}

/// Index of dispersion of the starts at four time scales; `None` with fewer than two.
pub(super) fn dispersion(o: &OfferedReport) -> Option<Plot> {
    let Dispersion {
        ms1,
        ms10,
        ms100,
        s1,
    } = o.dispersion.clone()?;
    let scales = [(1e6, ms1), (1e7, ms10), (1e8, ms100), (1e9, s1)];
    let known = scales
        .into_iter()
        .filter_map(|(ns, index)| Some(Point::new(ns, index?)));
    let points: Vec<Point> = known.collect();
    if points.len() < 2 {
        return None;
    }
    let x = Scale::logarithmic(7e5, 1.4e9, Unit::Time, "length of a bin");
    let most = top(points.iter().map(|p| p.y).chain([1.0]));
    let y = Scale::linear(0.0, most * 1.25, Unit::Number, "variance / mean");
    let plot = Plot::new("Dispersion of starts by time scale", x, y)
        .described("Index of dispersion of the counts of starts per bin: 1 for Poisson arrivals.")
        .against(Reference::Horizontal {
            y: 1.0,
            label: "Poisson: 1 at every scale".into(),
            tone: Tone::Muted,
        })
        .with(Series::line("", points).marked(Mark::Dot));
    Some(plot)
}
