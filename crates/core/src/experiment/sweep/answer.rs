//! The conclusion in one or two sentences.

use super::Bound;
use super::bound::{self, Bracket};
use crate::analysis::findings::AxisKind;
use crate::analysis::knee::{Knee, Reading, Shape};
use crate::analysis::table::LevelPoint;
use crate::analysis::words::{estimate, exact, number, ratio, time, users as n_users};

/// From this many times on, waiting longer for nothing is worth a sentence.
const LONGER_MIN: f64 = 2.0;

/// Nothing could be concluded.
pub fn nothing(table: &[LevelPoint]) -> String {
    if table.is_empty() {
        "Nothing was measured.".to_owned()
    } else {
        "No level was served: at every one of them operations failed.".to_owned()
    }
}

/// Of a sweep over users.
pub fn users(
    good: &[LevelPoint],
    reading: &Reading,
    bounds: &[Bound],
    all: &[LevelPoint],
) -> String {
    let most = number(reading.x_max_per_s);
    let mut sentences = vec![match &reading.shape {
        Shape::Bent(knee) => bent(&most, knee),
        Shape::SaturatedBelow { lowest } => format!(
            "Every level serves the same {most}/s: the knee is below {}.",
            n_users(*lowest)
        ),
        Shape::Rising { at_least, .. } => {
            let beyond = at_least.map_or(String::new(), |n| {
                format!("; the knee is at {} or beyond", n_users(n.round()))
            });
            format!("Throughput still rises at the last level, {most}/s{beyond}.")
        }
        Shape::Unbracketed { at_most } => format!(
            "At most {most}/s; the knee is at {} or below, under the levels measured.",
            n_users(at_most.round())
        ),
        Shape::OneLevel => format!("{most}/s at the one level measured; that shows no knee."),
    }];
    sentences.extend(same_for_less(good, reading));
    sentences.extend(within_bound(bounds, AxisKind::Vusers, all));
    sentences.join(" ")
}

/// Of a sweep over rates.
pub fn rate(kept: &[LevelPoint], served: Bracket, most: f64, bounds: &[Bound]) -> String {
    let mut sentences = vec![match (served.within, served.outside) {
        (Some(limit), Some(above)) => format!(
            "Up to {}/s are served without a growing queue{}; {}/s are not.",
            exact(limit),
            at_p90(kept.last().and_then(|p| p.p90_ns)),
            exact(above)
        ),
        (Some(limit), None) => format!(
            "Every rate is served, up to {}/s{}; the limit lies beyond it.",
            exact(limit),
            at_p90(kept.last().and_then(|p| p.p90_ns))
        ),
        (None, Some(_)) => format!(
            "No rate is served without a growing queue; the target serves at most {}/s.",
            number(most)
        ),
        (None, None) => "Nothing was measured.".to_owned(),
    }];
    sentences.extend(within_bound(bounds, AxisKind::Rate, kept));
    sentences.join(" ")
}

fn bent(most: &str, knee: &Knee) -> String {
    let range = knee.ci95.map_or(String::new(), |[lo, hi]| {
        format!(" ({} to {})", estimate(lo), estimate(hi))
    });
    format!(
        "At most {most}/s; the knee is at {}{range}, with {}/s there{}.",
        n_users(knee.level),
        number(knee.throughput_per_s),
        at_p90(knee.p90_ns)
    )
}

fn at_p90(ns: Option<f64>) -> String {
    ns.map_or(String::new(), |ns| format!(" at a p90 of {}", time(ns)))
}

/// The classic mistake, put right: the same throughput with fewer users is answered sooner.
fn same_for_less(points: &[LevelPoint], reading: &Reading) -> Option<String> {
    let find = |level: &f64| points.iter().find(|p| p.level == *level);
    let fewest = find(reading.plateau.first()?)?;
    let most = find(reading.plateau.last()?)?;
    let longer = most.response_ns() / fewest.response_ns();
    (longer >= LONGER_MIN).then(|| {
        format!(
            "The same maximum throughput, reached with {} instead of {}, answers about {} times \
             faster.",
            n_users(fewest.level),
            exact(most.level),
            ratio(longer)
        )
    })
}

fn within_bound(bounds: &[Bound], axis: AxisKind, table: &[LevelPoint]) -> Option<String> {
    if bounds.is_empty() {
        return None;
    }
    let text = bound::text(bounds);
    let Some(best) = bound::best(bounds, axis, table) else {
        return Some(format!("No level keeps {text}."));
    };
    let bracket = bound::bracket(bounds, table);
    let limit = match bracket.outside {
        Some(outside) => format!(
            "; it is kept up to {} and broken at {}",
            amount(axis, bracket.within.unwrap_or(0.0)),
            amount(axis, outside)
        ),
        None => String::new(),
    };
    let level = best.rate_per_s.unwrap_or(f64::from(best.vusers));
    let doubt = if best.confident {
        ""
    } else {
        ", though not for certain"
    };
    let p90 = at_p90(best.p90_ns.map(|ns| ns as f64));
    Some(format!(
        "Within {text} the most is {}/s, with {}{p90}{doubt}{limit}.",
        number(best.throughput_per_s),
        amount(axis, level),
    ))
}

fn amount(axis: AxisKind, level: f64) -> String {
    match axis {
        AxisKind::Vusers => n_users(level),
        AxisKind::Rate => format!("{}/s offered", exact(level)),
    }
}
