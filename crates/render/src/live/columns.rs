//! Time from left to right: which column of a chart shows which interval.

use super::{Live, LiveKind, Moment};
use knee_core::time::Nanos;

/// An interval is never wider than so many columns.
const WIDTH_MAX: usize = 8;

/// What each column of a chart so many columns wide shows, from the left: an interval, or the gap
/// between two trials. The latest ones where not all fit; fewer than `width` where there are few.
pub(super) fn columns(live: &Live, width: usize) -> Vec<Option<&Moment>> {
    let each = column_width(live, width);
    let mut columns = Vec::with_capacity(width);
    'all: for (i, moment) in live.moments.iter().enumerate().rev() {
        let gap = moment.begins && i > 0;
        let cells = std::iter::repeat_n(Some(moment), each).chain(gap.then_some(None));
        for cell in cells {
            if columns.len() == width {
                break 'all;
            }
            columns.push(cell);
        }
    }
    columns.reverse();
    columns
}

/// How wide an interval is, so that what is expected of the running trial fits in.
fn column_width(live: &Live, width: usize) -> usize {
    let mut expected = live.moments.len();
    if let Some(trial) = &live.trial {
        let of_this = live.moments.iter().rev();
        let so_far = of_this.take_while(|m| !m.begins).count() + 1;
        let in_all = match (trial.kind, trial.total) {
            (LiveKind::Row { .. }, _) | (_, None) => so_far,
            (_, Some(total)) => ((total - trial.warmup).0 / trial.interval.0.max(1)) as usize,
        };
        let others = if live.is_running {
            live.moments.len().saturating_sub(so_far)
        } else {
            0
        };
        expected = expected.max(others + in_all) + live.begun;
    }
    (width / expected.max(1)).clamp(1, WIDTH_MAX)
}

/// The time that these columns show since the trial began, in words; empty where it is of several
/// trials.
pub(super) fn span(live: &Live, columns: &[Option<&Moment>]) -> String {
    let ends = (columns.first(), columns.last());
    let (Some(Some(first)), Some(Some(last))) = ends else {
        return String::new();
    };
    if columns.iter().any(Option::is_none) {
        return String::new();
    }
    let seconds = |ns: u64| format!("{:.1}", (live.warmup() + Nanos(ns)).as_secs_f64());
    let (from, to) = (first.interval.start_ns, last.interval.end_ns);
    format!("{} to {} s", seconds(from), seconds(to))
}
