//! What a sweep varies, and its levels.

use crate::words::{exact, users};
use knee_load::spec::Level;

/// Quantity that a sweep varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AxisKind {
    /// Users of a closed loop.
    Vusers,
    /// Operations offered per second.
    Rate,
}

impl AxisKind {
    /// The level with this number.
    pub(crate) fn level(self, number: f64) -> Level {
        match self {
            AxisKind::Vusers => Level::Vusers(number as u32),
            AxisKind::Rate => Level::RatePerS(number),
        }
    }

    /// `5,000 users`, `5,000/s`.
    pub(super) fn amount(self, level: f64) -> String {
        match self {
            AxisKind::Vusers => users(level),
            AxisKind::Rate => format!("{}/s", exact(level)),
        }
    }

    /// Two levels to the decade, from the beginning to just below `lowest`.
    pub(super) fn lower_levels(self, lowest: f64) -> String {
        let first = match self {
            AxisKind::Vusers => 1.0,
            AxisKind::Rate => 10f64.powf((lowest / 100.0).log10().floor()),
        };
        let steps: Vec<String> = (0..12)
            .map(|i| first * [1.0, 3.0][i % 2] * 10f64.powi(i as i32 / 2))
            .take_while(|&level| level < lowest)
            .map(|level| level.to_string())
            .collect();
        let steps = if steps.is_empty() { "1".to_owned() } else { steps.join(",") };
        match self {
            AxisKind::Vusers => format!("start at 1: --vusers {steps} (or --vusers auto)"),
            AxisKind::Rate => format!("start lower: --axis rate --rates {steps}"),
        }
    }

    pub(super) fn higher_levels(self, last: f64) -> String {
        let steps = [1.0, 2.0, 4.0, 8.0].map(|f| (f * last).round().to_string());
        let steps = steps.join(",");
        match self {
            AxisKind::Vusers => format!("go on: --vusers 1,{steps} (or --vusers auto)"),
            AxisKind::Rate => format!("go on: --axis rate --rates {steps}"),
        }
    }
}

/// The users of a slice's level.
pub(super) fn level_vusers(level: Level) -> u32 {
    match level {
        Level::Vusers(n) => n,
        _ => 0,
    }
}
