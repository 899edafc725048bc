//! Whether service came back: the base load before the heavier levels, and after them.

use super::OverloadPoint;
use super::point::count_between;
use crate::experiment::overload::report::{CameBack, Recovery};
use crate::trial::report::TrialReport;

/// Service has not come back where for certain less than this share of what was served at first is
/// served again; …
const LOST_SHARE: f64 = 0.9;
/// … and it has come back where at least this share is certain and more is possible.
const KNOWN_SHARE: f64 = 1.0 / 3.0;

/// The base load among these levels: the first that counts of those before the heaviest.
///
/// # Errors
/// Why there is none.
pub fn base(points: &[OverloadPoint]) -> Result<&OverloadPoint, &'static str> {
    let heaviest = heaviest(points).map(weight);
    let before = points.iter().position(|p| Some(weight(p)) == heaviest);
    let lighter = &points[..before.unwrap_or(0)];
    if lighter.is_empty() {
        return Err("no lighter level came before the heaviest");
    }
    if !lighter.iter().any(OverloadPoint::has_served) {
        return Err("nothing was served before the heaviest level");
    }
    let counts = |p: &&OverloadPoint| p.counts() && p.served_per_s > 0.0;
    let base = lighter.iter().find(counts);
    base.ok_or("no level before the heaviest was measured without a fault")
}

/// The level that presses the most.
pub fn heaviest(points: &[OverloadPoint]) -> Option<&OverloadPoint> {
    let order = |a: &(bool, f64), b: &(bool, f64)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1));
    points.iter().max_by(|a, b| order(&weight(a), &weight(b)))
}

/// By what levels are ordered: any S-Clients press more than any simple clients.
fn weight(p: &OverloadPoint) -> (bool, f64) {
    (p.is_pressing(), crate::words::value(p.level))
}

/// What the base load offered again tells after these levels.
pub(super) fn recovery(
    points: &[OverloadPoint],
    again: Option<(&TrialReport, OverloadPoint)>,
) -> Recovery {
    let base = match base(points) {
        Ok(base) => base,
        Err(because) => return not_judged(because.to_owned(), Recovery::default()),
    };
    let known = Recovery {
        level: Some(base.level),
        before: Some(base.row()),
        again: again.as_ref().map(|(_, p)| p.row()),
        ..Recovery::default()
    };
    let Some((trial, again)) = again else {
        return not_judged("the base load was not offered again".to_owned(), known);
    };
    let is_distorted = !again.is_valid && (again.fell_behind || again.has_served());
    if let Some(why) = trial.invalid_because.first().filter(|_| is_distorted) {
        return not_judged(format!("as the base load was offered again, {why}"), known);
    }
    let before = whole_between(base);
    let is_back = |now| is_back(before, now);
    let came_back = match is_back(whole_between(&again)) {
        Some(true) => CameBack::Yes,
        Some(false) if second_half(trial, &again).and_then(is_back) == Some(true) => CameBack::Late,
        Some(false) => CameBack::No,
        None => {
            let few = "too little was served of the base load offered again";
            return not_judged(few.to_owned(), known);
        }
    };
    Recovery { came_back, ..known }
}

fn not_judged(because: String, known: Recovery) -> Recovery {
    Recovery { because, ..known }
}

/// Bounds of what was served per second, with the mean of the whole window in them. Of few
/// responses the half that was as before may look like a transient, and be cut off.
fn whole_between(point: &OverloadPoint) -> [f64; 2] {
    let [low, high] = point.served_between();
    let whole = point.served() as f64 / point.seconds;
    [low.min(whole), high.max(whole)]
}

/// Whether what lies between these bounds now is what lay between those before; `None` where that
/// is not certain.
fn is_back(before: [f64; 2], now: [f64; 2]) -> Option<bool> {
    if now[1] < LOST_SHARE * before[0] {
        return Some(false);
    }
    (now[0] >= KNOWN_SHARE * before[1]).then_some(true)
}

/// Bounds of what was served per second in the second half of a trial; `None` where responses are
/// not the same as attempts served.
fn second_half(trial: &TrialReport, point: &OverloadPoint) -> Option<[f64; 2]> {
    if point.of_sessions || trial.outcomes.responses() > point.served() {
        return None;
    }
    let late = || trial.intervals.iter().filter(|i| i.start_ns >= trial.duration_ns / 2);
    let ns: u64 = late().map(|i| i.end_ns - i.start_ns).sum();
    let served: u64 = late().map(|i| i.completed).sum();
    (ns > 0).then(|| count_between(served as f64, ns as f64 / 1e9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_is_back_or_not_by_intervals() {
        let before = [126.0, 134.0];
        assert_eq!(is_back(before, [112.0, 124.0]), Some(true), "lower by chance");
        assert_eq!(is_back(before, [108.0, 113.5]), Some(true), "a tenth less at most");
        assert_eq!(is_back(before, [108.0, 113.3]), Some(false));
        assert_eq!(is_back(before, [0.0, 0.4]), Some(false));
        assert_eq!(is_back(before, [200.0, 210.0]), Some(true), "more than before");
        assert_eq!(is_back(before, [40.0, 200.0]), None, "hardly anything is known");
    }
}
