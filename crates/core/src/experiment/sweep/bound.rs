//! The most throughput within limits on response time, approached from both sides.

use super::{Bound, BoundedFigures};
use crate::experiment::sweep::axis::AxisKind;
use crate::experiment::sweep::knee::ERROR_SHARE_MAX;
use crate::experiment::sweep::report::BestWithinBound;
use crate::experiment::sweep::table::LevelPoint;
use crate::finding::{Finding, codes};
use crate::words::{levels, time};

/// Share within which throughputs are equal. Of equal ones that with fewer users is better.
const SAME_SHARE: f64 = 0.02;

/// The levels between which the bounds are crossed: the highest that keeps all of them, or 0, and
/// the lowest that does not. `None` where each level keeps them.
pub(super) fn crossing(bounds: &[Bound], table: &[LevelPoint]) -> Option<[f64; 2]> {
    let outside = table.iter().position(|p| !keeps(bounds, p))?;
    let within = outside.checked_sub(1).map_or(0.0, |i| table[i].level);
    Some([within, table[outside].level])
}

/// The level with the most throughput within all bounds; of equal ones the lowest, which answers
/// soonest.
pub(super) fn best(
    bounds: &[Bound],
    axis: AxisKind,
    table: &[LevelPoint],
) -> Option<BestWithinBound> {
    if bounds.is_empty() {
        return None;
    }
    let within: Vec<&LevelPoint> = table.iter().filter(|p| keeps(bounds, p)).collect();
    let most = within.iter().map(|p| p.throughput_per_s).fold(0.0, f64::max);
    let best = within.iter().find(|p| p.throughput_per_s >= (1.0 - SAME_SHARE) * most)?;
    let times = best.latency.as_ref()?;
    let figures = measured(best)?;
    Some(BestWithinBound {
        bound: text(bounds),
        vusers: match axis {
            AxisKind::Vusers => best.level as u32,
            AxisKind::Rate => 0,
        },
        rate_per_s: (axis == AxisKind::Rate).then_some(best.level),
        throughput_per_s: best.throughput_per_s,
        p90_ns: times.p90,
        confident: bounds.iter().all(|b| b.holds_for_certain(figures)),
    })
}

codes! {
    BOUND_UNREACHABLE = "bound_unreachable":
        cause "Not even the lowest level meets a --bound: the target is slower than that without \
               any load.",
        remedy "Ask for a bound that it can meet.";
}

/// A finding for each bound that no level keeps, with the lowest level whose figure is known.
pub(super) fn unreachable(bounds: &[Bound], axis: AxisKind, table: &[LevelPoint]) -> Vec<Finding> {
    bounds
        .iter()
        .filter(|b| table.iter().all(|p| !keeps(&[**b], p)))
        .filter_map(|b| {
            let figure = |p: &LevelPoint| b.figure(measured(p)?).0;
            let (level, ns) = table.iter().find_map(|p| Some((p.level, figure(p)?)))?;
            let limit = time(1.5 * ns as f64).replace([' ', ','], "").replace('µ', "u");
            Some(BOUND_UNREACHABLE.warning(
                format!(
                    "no level meets {b}: even {} takes {}",
                    levels(&[axis.level(level)]),
                    time(ns as f64)
                ),
                [("figure_ns", ns as f64)],
                format!("ask for what it can meet, such as --bound {}={limit}", b.name()),
            ))
        })
        .collect()
}

/// `p90<=50ms and p99<=200ms`
pub(super) fn text(bounds: &[Bound]) -> String {
    let texts: Vec<String> = bounds.iter().map(Bound::to_string).collect();
    texts.join(" and ")
}

fn keeps(bounds: &[Bound], p: &LevelPoint) -> bool {
    p.error_share <= ERROR_SHARE_MAX
        && measured(p).is_some_and(|figures| bounds.iter().all(|b| b.holds(figures)))
}

fn measured(p: &LevelPoint) -> Option<BoundedFigures<'_>> {
    let response = p.latency.as_ref().filter(|times| times.count > 0)?;
    Some(BoundedFigures { response, messages: p.messages.as_ref() })
}
