//! Datagrams sent, received and dropped in each interval, law by law, on one scale.

use crate::axis::span;
use crate::document::series::{is_dense, stair, thinned, time_scale};
use crate::document::{Document, Layout};
use crate::number::{plural, time_short};
use crate::plot::{Dash, Plot, Point, Scale, Series, Tone, Unit};
use knee_core::experiment::udp::report::LawRow;
use knee_core::measure::Interval;

/// More points than this over all laws are thinned out, so that the page of a long run stays small.
const POINTS_MAX: usize = 2_400;

/// Adds it.
pub(super) fn show(doc: &mut Document, laws: &[LawRow]) {
    let longest = laws.iter().map(|law| law.intervals.as_slice());
    let Some(longest @ [first, ..]) = longest.max_by_key(|intervals| intervals.len()) else {
        return;
    };
    let most = (POINTS_MAX / laws.len()).max(2);
    let sums = match laws.iter().any(|law| law.trials > 1) {
        true => ", sums over all trials",
        false => "",
    };
    let thinned = match longest.len() > most {
        true => "; of neighbours the least and the most are drawn",
        false => "",
    };
    let remark = format!(
        "{} of {}{sums}{thinned}",
        plural(longest.len() as u64, "interval"),
        time_short(first.end_ns - first.start_ns)
    );
    doc.section("Over time", remark);
    let sent = laws.iter().flat_map(|law| counts(law, most, |i| i.sent));
    let y = Scale::from_zero(
        span(sent.map(|p| p.y)).unwrap_or_default(),
        Unit::Count,
        "datagrams",
    );
    let known = laws.iter().filter(|law| !law.intervals.is_empty());
    let plots: Vec<Plot> = known.map(|law| over_time(law, most, y.clone())).collect();
    let layout = match plots.len() == 1 || is_dense(longest) {
        true => Layout::Wide,
        false => Layout::Pairs,
    };
    doc.plots(plots, layout);
}

fn over_time(law: &LawRow, most: usize, y: Scale) -> Plot {
    let mut plot = Plot::new(law.label.clone(), time_scale(&law.intervals), y);
    plot.zooms = true;
    // Dashes of many short levels would only be noise.
    let received = match is_dense(&law.intervals) {
        true => Dash::Solid,
        false => Dash::Dashed,
    };
    plot.with(Series::step("sent", counts(law, most, |i| i.sent)).toned(Tone::Muted))
        .with(Series::step("received", counts(law, most, |i| i.received)).dashed(received))
        .with(Series::step("dropped", counts(law, most, |i| i.dropped)).toned(Tone::Bad))
}

/// A count in each interval; not known in some.
fn counts(law: &LawRow, most: usize, of: fn(&Interval) -> Option<u64>) -> Vec<Point> {
    let known = stair(&law.intervals, |i| of(i).map_or(f64::NAN, |n| n as f64));
    thinned(known, most)
}
