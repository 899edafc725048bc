//! How well arrivals stamped at the server kept the schedule that was asked for.

use super::stats::{median, quantile};
use std::path::Path;

/// Arrivals against an ideal constant schedule.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Arrivals per second.
    pub rate_per_s: f64,
    /// Median distance from the ideal time, early or late, in microseconds.
    pub deviation_p50_us: f64,
    /// Its 99th percentile.
    pub deviation_p99_us: f64,
    /// Coefficient of variation of the gaps: 0 for a metronome, 1 for Poisson.
    pub gap_cv: f64,
}

/// Compares the middle 98 % of the stamps (start and end have other causes) with t₀ + k/rate, where
/// t₀ is the median of tₖ − k/rate: the schedule's phase is nobody's fault.
///
/// # Errors
/// There are too few stamps.
pub fn compare(stamps_ns: &[i64], rate_per_s: f64) -> Result<Kept, String> {
    let cut = stamps_ns.len() / 100 + 1;
    let middle = stamps_ns
        .get(cut..stamps_ns.len().saturating_sub(cut))
        .unwrap_or_default();
    if middle.len() < 10 {
        return Err(format!("only {} arrivals were stamped", stamps_ns.len()));
    }
    let first = middle[0];
    let seconds: Vec<f64> = middle.iter().map(|t| (t - first) as f64 / 1e9).collect();
    let gaps: Vec<f64> = seconds.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    let ideal = |k: usize| k as f64 / rate_per_s;
    let phases: Vec<f64> = seconds
        .iter()
        .enumerate()
        .map(|(k, t)| t - ideal(k))
        .collect();
    let phase = median(&phases);
    let deviations: Vec<f64> = phases.iter().map(|p| (p - phase).abs() * 1e6).collect();
    Ok(Kept {
        rate_per_s: 1.0 / mean,
        deviation_p50_us: quantile(&deviations, 0.5),
        deviation_p99_us: quantile(&deviations, 0.99),
        gap_cv: variance.sqrt() / mean,
    })
}

/// Reads the stamps that the lean server wrote.
///
/// # Errors
/// The file cannot be read.
pub fn read_stamps(file: &Path) -> Result<Vec<i64>, String> {
    let bytes = std::fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let stamp = |b: &[u8]| b.try_into().map(i64::from_ne_bytes).unwrap_or_default();
    Ok(bytes.chunks_exact(8).map(stamp).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metronome_deviates_by_nothing_whatever_its_phase() {
        let stamps: Vec<i64> = (0..10_000).map(|k| 12_345 + k * 1_000_000).collect();
        let kept = compare(&stamps, 1_000.0).unwrap();
        assert!((kept.rate_per_s - 1_000.0).abs() < 1e-6);
        assert!(
            kept.deviation_p99_us < 1e-3 && kept.gap_cv < 1e-6,
            "{kept:?}"
        );
    }

    #[test]
    fn lateness_is_seen_in_microseconds() {
        let late = |k: i64| if k % 4 == 0 { 40_000 } else { 0 };
        let stamps: Vec<i64> = (0..10_000).map(|k| k * 1_000_000 + late(k)).collect();
        let kept = compare(&stamps, 1_000.0).unwrap();
        assert!(kept.deviation_p50_us < 1e-3, "{kept:?}");
        assert!((kept.deviation_p99_us - 40.0).abs() < 1e-3, "{kept:?}");
    }

    #[test]
    fn a_slower_rate_is_not_hidden_and_nothing_is_refused() {
        let stamps: Vec<i64> = (0..1_000).map(|k| k * 2_000_000).collect();
        let kept = compare(&stamps, 1_000.0).unwrap();
        assert!(
            (kept.rate_per_s - 500.0).abs() < 1e-6 && kept.deviation_p50_us > 1e5,
            "{kept:?}"
        );
        assert!(compare(&stamps[..5], 1_000.0).is_err());
    }
}
