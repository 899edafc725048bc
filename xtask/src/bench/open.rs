//! Open loops at constant rates. Checks whether each request leaves when it should, as stamped at
//! the server, and whether the waiting of requests that meet a stall is reported.

use super::contender::{
    BARE_SPIN, BenchProgram, Contender, KNEE_EPOLL, KNEE_URING, LineValues, OHA_RATE, OPEN_LOOPS,
    OfferedRate, WRK2,
};
use super::lab::Lab;
use super::process::{self, BenchServer};
use super::round::{Contest, Turn, column, median, quantile};
use std::path::Path;

const CONNECTIONS: usize = 64;
const RATES: [f64; 4] = [1_000.0, 10_000.0, 50_000.0, 100_000.0];

/// The schedule as the server saw it, and its price.
///
/// # Errors
/// A contender or the server fails.
pub fn run(lab: &Lab) -> Result<String, String> {
    let rates = if lab.small { &RATES[..2] } else { &RATES };
    let mut text = format!(
        "## Open loop: whether each request leaves when it should\n\n\
         Constant rates over {CONNECTIONS} connections. Each arrival is stamped by the server; its \
         deviation is its distance from t₀ + k/rate, with the phase t₀ fitted by the median.\n\n"
    );
    for &per_s in rates {
        let values = LineValues::of(lab.seconds(3.0)).with_rate(OfferedRate::Constant(per_s));
        let contest = Contest {
            who: "generator",
            contenders: OPEN_LOOPS,
            values: values.with("connections", CONNECTIONS),
            factor: 1,
        };
        let stamps_max = (per_s * 8.0) as usize + 1_000;
        let table = schedule(lab, &contest, per_s, |_, file| {
            let line = format!("0 '{}' {stamps_max}", file.display());
            lab.serve(BenchProgram::Bare("server_epoll"), &line)
        })?;
        text += &format!("### {per_s}/s\n\n{table}");
    }
    Ok(text)
}

/// The schedule at a constant rate, from the arrivals that the servers write into a file, one per
/// line in nanoseconds.
///
/// # Errors
/// A contender or a server fails.
pub fn schedule(
    lab: &Lab,
    contest: &Contest<'_>,
    per_s: f64,
    serve: impl Fn(&Contender, &Path) -> Result<BenchServer, String>,
) -> Result<String, String> {
    let file = lab.scratch("arrivals");
    let serve = |contender: &Contender| serve(contender, &file);
    let rounds = contest.measure(lab, &serve, || compare(&read_arrivals(&file)?, per_s))?;
    let columns = [
        column("achieved/s", 1, |t: &Turn<ScheduleFit>| Some(t.at_server.rate_per_s)),
        column("deviation p50 µs", 1, |t| Some(t.at_server.deviation_p50_us)),
        column("p99 µs", 1, |t| Some(t.at_server.deviation_p99_us)),
        column("CV of gaps", 3, |t| Some(t.at_server.gap_cv)),
        column("% of a core", 1, |t| Some(t.core_percent())),
    ];
    contest.show(lab, &columns, &[], &rounds)
}

/// The arrivals in a file, in their order.
///
/// # Errors
/// It cannot be read.
pub fn read_arrivals(file: &Path) -> Result<Vec<i64>, String> {
    let text = process::read(file)?;
    let number = |line: &str| line.parse().map_err(|_| format!("an arrival {line:?}"));
    let mut arrivals: Vec<i64> = text.lines().map(number).collect::<Result<_, String>>()?;
    arrivals.sort_unstable();
    Ok(arrivals)
}

const STALLED_PER_S: f64 = 1_000.0;

/// Mean and percentiles of the response time over a stall of the server.
///
/// # Errors
/// A contender or the server fails.
pub fn run_stall(lab: &Lab) -> Result<String, String> {
    let fault = if lab.small { "stall(100ms,100ms)" } else { "stall(4s,1s)" };
    let values = LineValues::of(lab.seconds(10.0)).with_rate(OfferedRate::Constant(STALLED_PER_S));
    let contest = Contest {
        who: "generator",
        contenders: &[BARE_SPIN, KNEE_EPOLL, KNEE_URING, WRK2, OHA_RATE],
        values: values.with("connections", 256),
        factor: 1,
    };
    let line = format!("http --listen 127.0.0.1:0 --size 1294 --fault {fault}");
    let columns = [
        column("mean ms", 1, |t| Some(t.sample.response?.mean_us? / 1e3)),
        column("p50 ms", 1, |t| Some(t.response().p50_us / 1e3)),
        column("p90 ms", 1, |t| Some(t.response().p90_us / 1e3)),
        column("p99 ms", 1, |t| Some(t.response().p99_us / 1e3)),
    ];
    let ideal = ["theory, stall of 1 s in 10 s", "50", "0", "0", "900"].map(String::from);
    let rounds = contest.measure(lab, &|_| lab.serve_knee(&line), || Ok(()))?;
    Ok(format!(
        "## A server that stalls\n\n\
         Constant {STALLED_PER_S}/s at `knee serve http --fault '{fault}'`.\n\n{}",
        contest.show(lab, &columns, &[ideal.to_vec()], &rounds)?
    ))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metronome_deviates_by_nothing_whatever_its_phase() {
        let stamps: Vec<i64> = (0..10_000).map(|k| 12_345 + k * 1_000_000).collect();
        let fit = compare(&stamps, 1_000.0).unwrap();
        assert!((fit.rate_per_s - 1_000.0).abs() < 1e-6);
        assert!(fit.deviation_p99_us < 1e-3 && fit.gap_cv < 1e-6, "{fit:?}");
    }

    #[test]
    fn lateness_is_seen_in_microseconds() {
        let late = |k: i64| if k % 4 == 0 { 40_000 } else { 0 };
        let stamps: Vec<i64> = (0..10_000).map(|k| k * 1_000_000 + late(k)).collect();
        let fit = compare(&stamps, 1_000.0).unwrap();
        assert!(fit.deviation_p50_us < 1e-3, "{fit:?}");
        assert!((fit.deviation_p99_us - 40.0).abs() < 1e-3, "{fit:?}");
    }

    #[test]
    fn a_slower_rate_is_not_hidden_and_nothing_is_refused() {
        let stamps: Vec<i64> = (0..1_000).map(|k| k * 2_000_000).collect();
        let fit = compare(&stamps, 1_000.0).unwrap();
        assert!((fit.rate_per_s - 500.0).abs() < 1e-6 && fit.deviation_p50_us > 1e5, "{fit:?}");
        assert!(compare(&stamps[..5], 1_000.0).is_err());
    }
}
