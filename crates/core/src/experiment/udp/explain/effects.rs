//! What a change does: changed against unchanged, in pairs of the same block.

use crate::experiment::udp::report::EffectRow;
use crate::stats::sample::mean_and_ci95;
use crate::trial::report::TrialReport;
use crate::words;

/// One trial changed and one unchanged, of the same block.
pub(super) type Pair<'a> = (&'a TrialReport, &'a TrialReport);

/// What a change did over several pairs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Effect {
    /// Pairs.
    pub pairs: u32,
    /// Mean loss with the change, in percent.
    pub loss: f64,
    /// Mean loss without it.
    pub loss_before: f64,
    /// Changed − unchanged, in percentage points, and its 95 % confidence interval.
    pub change: (f64, Option<[f64; 2]>),
    /// Ratio of the rates of sending (geometric mean), and its 95 % confidence interval.
    pub sent_ratio: (f64, Option<[f64; 2]>),
}

impl Effect {
    /// Of these pairs; `None` where there are none.
    pub(super) fn of(pairs: &[Pair]) -> Option<Effect> {
        if pairs.is_empty() {
            return None;
        }
        let loss = |t: &TrialReport| t.datagrams().map_or(0.0, |d| d.loss_percent);
        let sent = |t: &TrialReport| t.datagrams().map_or(0.0, |d| d.sent_per_s);
        let mean = |values: Vec<f64>| mean_and_ci95(&values).0;
        let changes: Vec<f64> = pairs.iter().map(|(a, b)| loss(a) - loss(b)).collect();
        // Logarithms, as a ratio and its inverse are equally far from 1.
        let ratios: Vec<f64> = pairs
            .iter()
            .map(|(a, b)| sent(a) / sent(b))
            .filter(|ratio| ratio.is_finite() && *ratio > 0.0)
            .map(f64::ln)
            .collect();
        let (ratio, ratio_ci95) = mean_and_ci95(&ratios);
        Some(Effect {
            pairs: pairs.len() as u32,
            loss: mean(pairs.iter().map(|(a, _)| loss(a)).collect()),
            loss_before: mean(pairs.iter().map(|(_, b)| loss(b)).collect()),
            change: mean_and_ci95(&changes),
            sent_ratio: (ratio.exp(), ratio_ci95.map(|ci| ci.map(f64::exp))),
        })
    }

    /// The loss with the change, and what the change did to the rate besides: `0.9 % lost at 0.25
    /// times the rate`.
    pub(super) fn lost(&self) -> String {
        let ratio = self.sent_ratio.0;
        let same = (1.0 / SAME_RATE..=SAME_RATE).contains(&ratio);
        let beside = match same {
            true => String::new(),
            false => format!(" at {} times the rate", words::ratio(ratio)),
        };
        format!("{} lost{beside}", words::share(self.loss))
    }

    /// As a row of the report.
    pub(super) fn row(&self, change: String, base: String) -> EffectRow {
        EffectRow {
            change,
            base,
            pairs: self.pairs,
            sent_ratio: self.sent_ratio.0,
            sent_ratio_ci95: self.sent_ratio.1,
            loss_change_points: self.change.0,
            loss_change_ci95_points: self.change.1,
        }
    }

    /// Whether the change takes most of the loss away, beyond chance.
    pub(super) fn falls(&self) -> bool {
        let surely = self.change.1.is_some_and(|[_, hi]| hi < 0.0);
        surely && self.loss <= MOST_GONE * self.loss_before
    }

    /// Whether at least half of the loss is there with the change too.
    pub(super) fn stays(&self) -> bool {
        !self.falls() && self.loss >= HALF * self.loss_before
    }

    /// Whether the change adds loss, beyond chance and by as much as matters.
    pub(super) fn rises(&self) -> bool {
        let surely = self.change.1.is_some_and(|[lo, _]| lo > 0.0);
        surely && self.change.0 >= super::LOSS_PERCENT
    }

    /// Whether a single sender that was to send as much as all clients did so.
    pub(super) fn reached_the_rate(&self) -> bool {
        self.sent_ratio.0 >= RATE_REACHED
    }
}

/// Loss that falls to this share of itself is mostly gone; one of at least …
const MOST_GONE: f64 = 0.5;
/// … this share is still there.
const HALF: f64 = 0.5;
/// Rates that differ by less than this factor are the same.
const SAME_RATE: f64 = 1.1;
/// A rate below this share of the one meant is another load.
const RATE_REACHED: f64 = 0.9;
