//! Which numbers of descriptors an automatic plan tries.

use super::OverloadSpec;

/// The lowest level adds this share of the capacity to it by its descriptors.
const LOWEST: f64 = 0.25;
/// So many levels, each the same factor above the one before it.
pub(super) const LEVELS: usize = 9;
/// Where nothing is known of the capacity, or nothing is served, these.
const UNKNOWN: [u32; 5] = [64, 128, 256, 512, 1_024];
/// Where no simple client goes before, the capacity is found with so many descriptors.
pub(super) const PROBE: u32 = 16;

/// Numbers of descriptors D, ascending, such that the rate offered, served + D/T, goes from a
/// quarter above the capacity to `offered_factor_max` times it, as far as descriptors last.
pub(super) fn automatic(spec: &OverloadSpec, capacity_per_s: f64) -> Vec<u32> {
    let patience_s = spec.base.connect_timeout.as_secs_f64();
    let most = spec.descriptors_max.max(1);
    let highest = (spec.offered_factor_max - 1.0).max(LOWEST);
    let step = (highest / LOWEST).powf(1.0 / (LEVELS - 1) as f64);
    let descriptors = |share: f64| {
        // Not a descriptor too few: the highest is to reach the factor that was asked for.
        let wanted = (share * capacity_per_s * patience_s - 1e-6).ceil();
        (wanted.max(1.0) as u32).min(most)
    };
    let mut levels: Vec<u32> = if capacity_per_s > 0.0 {
        (0..LEVELS)
            .map(|k| descriptors(LOWEST * step.powi(k as i32)))
            .collect()
    } else {
        UNKNOWN.iter().map(|&d| d.min(most)).collect()
    };
    levels.dedup();
    levels
}

#[cfg(test)]
mod tests {
    use super::super::tests::spec;
    use super::*;
    use crate::time::Nanos;

    #[test]
    fn levels_reach_from_a_quarter_above_the_capacity_to_the_factor() {
        let spec = spec();
        let levels = automatic(&spec, 130.0);
        assert_eq!(levels, [17, 28, 46, 76, 126, 210, 351, 585, 975]);
        let offered = 130.0 + f64::from(levels[8]) / 0.5;
        assert!(offered >= 16.0 * 130.0, "{offered}");
    }

    #[test]
    fn descriptors_end_where_there_are_no_more() {
        let mut spec = spec();
        spec.descriptors_max = 100;
        assert_eq!(automatic(&spec, 130.0), [17, 28, 46, 76, 100]);
        assert_eq!(automatic(&spec, 0.0), [64, 100], "nothing is served");
        spec.base.connect_timeout = Nanos::from_millis(1);
        assert_eq!(automatic(&spec, 130.0), [1, 2], "few descriptors do");
    }
}
