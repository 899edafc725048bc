//! Open loops at constant rates. Checks whether each request leaves when it should, as stamped at
//! the server, and whether the waiting of requests that meet a stall is reported.

use super::contender::{
    BARE_SPIN, KNEE_EPOLL, KNEE_URING, LineValues, OHA_RATE, OPEN_LOOPS, OfferedRate,
    ResponseTimes, WRK2,
};
use super::lab::{Lab, Measured};
use super::round::{
    self, Column, ServedTurn, column, command_lines, contender_table, median, quantile,
};
use std::path::Path;

const CONNECTIONS: usize = 64;
const RATES: [f64; 4] = [1_000.0, 10_000.0, 50_000.0, 100_000.0];

/// The schedule as the server saw it, and its price.
///
/// # Errors
/// A contender or the server fails.
pub fn run(lab: &Lab) -> Result<String, String> {
    let contenders = lab.present(OPEN_LOOPS);
    let rates = if lab.small { &RATES[..2] } else { &RATES };
    let mut text = format!(
        "## Open loop: whether each request leaves when it should\n\n\
         Constant rates over {CONNECTIONS} connections. Each arrival is stamped by the server; its \
         deviation is its distance from t₀ + k/rate, with the phase t₀ fitted by the median.\n\n"
    );
    let values = |per_s| {
        let values = LineValues::of(lab.seconds(3.0)).with_rate(OfferedRate::Constant(per_s));
        values.with("connections", CONNECTIONS)
    };
    let file = lab.scratch("stamps");
    for &rate in rates {
        let rounds = round::alternate(lab, 1, &contenders, |contender| {
            let room = (rate * 8.0) as usize + 1_000;
            let server = lab.serve_lean(Some((&file, room)))?;
            let measured = lab.measure_at(server, contender, &values(rate))?;
            let seen = compare(&read_stamps(&file)?, rate)?;
            Ok(ServedTurn { measured, seen })
        })?;
        let table = contender_table("generator", &columns(), &[], &rounds);
        text += &format!("### {rate}/s\n\n{table}");
    }
    let shown = values(RATES[0]).with("port", 8080);
    Ok(text + &command_lines(contenders.iter().map(|c| c.shown(&shown)))?)
}

/// What a table says of arrivals at a constant rate.
pub fn columns() -> [Column<'static, ServedTurn<ScheduleFit>>; 5] {
    [
        column("achieved/s", 1, |t| Some(t.seen.rate_per_s)),
        column("deviation p50 µs", 1, |t| Some(t.seen.deviation_p50_us)),
        column("p99 µs", 1, |t| Some(t.seen.deviation_p99_us)),
        column("CV of gaps", 3, |t| Some(t.seen.gap_cv)),
        column("% of a core", 1, |t| Some(t.measured.core_percent())),
    ]
}

const STALLED_PER_S: f64 = 1_000.0;

/// Mean and percentiles of the response time over a stall of the server.
///
/// # Errors
/// A contender or the server fails.
pub fn run_stall(lab: &Lab) -> Result<String, String> {
    let fault = if lab.small { "stall(100ms,100ms)" } else { "stall(4s,1s)" };
    let contenders = lab.present(&[BARE_SPIN, KNEE_EPOLL, KNEE_URING, WRK2, OHA_RATE]);
    let line = format!("http --listen 127.0.0.1:0 --size 1294 --fault {fault}");
    let values = LineValues::of(lab.seconds(10.0))
        .with_rate(OfferedRate::Constant(STALLED_PER_S))
        .with("connections", 256);
    let rounds = round::alternate(lab, 1, &contenders, |contender| {
        lab.measure_at(lab.serve_knee(&line)?, contender, &values)
    })?;
    let columns = [
        column("mean ms", 1, |m: &Measured| Some(m.sample.response?.mean_us? / 1e3)),
        column("p50 ms", 1, |m| ms(m, |r| r.p50_us)),
        column("p90 ms", 1, |m| ms(m, |r| r.p90_us)),
        column("p99 ms", 1, |m| ms(m, |r| r.p99_us)),
    ];
    let ideal = ["theory, stall of 1 s in 10 s", "50", "0", "0", "900"].map(String::from);
    Ok(format!(
        "## A server that stalls\n\n\
         Constant {STALLED_PER_S}/s at `knee serve http --fault '{fault}'`.\n\n{}",
        contender_table("generator", &columns, &[ideal.to_vec()], &rounds)
    ))
}

fn ms(measured: &Measured, of: fn(&ResponseTimes) -> f64) -> Option<f64> {
    Some(of(&measured.response()) / 1e3)
}

/// Arrivals against an ideal constant schedule.
#[derive(Clone, Debug)]
pub struct ScheduleFit {
    /// Arrivals per second.
    pub rate_per_s: f64,
    /// Median distance from the ideal time, early or late, in microseconds.
    pub deviation_p50_us: f64,
    /// Its 99th percentile.
    pub deviation_p99_us: f64,
    /// Coefficient of variation of the gaps: 0 for a metronome, 1 for Poisson.
    pub gap_cv: f64,
}

/// Compares the middle 98 % of the stamps (start and end have other causes) with t₀ + k/rate. t₀ is
/// the median of tₖ − k/rate: the schedule's phase is nobody's fault.
///
/// # Errors
/// There are too few stamps.
pub fn compare(stamps_ns: &[i64], rate_per_s: f64) -> Result<ScheduleFit, String> {
    let cut = stamps_ns.len() / 100 + 1;
    let middle = stamps_ns.get(cut..stamps_ns.len().saturating_sub(cut)).unwrap_or_default();
    if middle.len() < 10 {
        return Err(format!("only {} arrivals were stamped", stamps_ns.len()));
    }
    let first = middle[0];
    let seconds: Vec<f64> = middle.iter().map(|t| (t - first) as f64 / 1e9).collect();
    let gaps: Vec<f64> = seconds.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    let ideal = |k: usize| k as f64 / rate_per_s;
    let phases: Vec<f64> = seconds.iter().enumerate().map(|(k, t)| t - ideal(k)).collect();
    let phase = median(&phases);
    let deviations: Vec<f64> = phases.iter().map(|p| (p - phase).abs() * 1e6).collect();
    Ok(ScheduleFit {
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
        assert!(kept.deviation_p99_us < 1e-3 && kept.gap_cv < 1e-6, "{kept:?}");
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
        assert!((kept.rate_per_s - 500.0).abs() < 1e-6 && kept.deviation_p50_us > 1e5, "{kept:?}");
        assert!(compare(&stamps[..5], 1_000.0).is_err());
    }
}
