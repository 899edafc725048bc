//! When a target did not answer: users who hang, outages, periodic pauses.
//!
//! All of it comes from the fine counts of [`ResponseBins`], whose bins do not grow with the
//! window. A pause of 150 ms shows in an hour as it does in ten seconds.

use crate::trial::report::{OutageReport, PausesReport, SilenceReport};
use knee_load::measure::{Measurement, Outcome, ResponseBins, Trial};
use knee_load::spec::{Load, PauseKind};
use knee_load::time::Nanos;
use std::ops::Range;

/// An operation hangs if it has waited for this time, …
const HUNG: Nanos = Nanos::from_secs(1);
/// … and for this number of medians of the response time.
const HUNG_MEDIANS: u64 = 20;
/// Expected good responses from which on a silence is significant. A Poisson process has none then
/// with a probability of 0.03 %. …
const EXPECTED: f64 = 8.0;
/// … It must also last this number of shortest responses, as users in step are silent for one.
const SHORTEST: u64 = 2;
/// Shortest outage.
const OUTAGE: Nanos = Nanos::from_millis(250);
/// Shortest pause, in bins.
const PAUSE_BINS: usize = 3;
/// Least number of pauses that make a period, …
const PAUSES: usize = 4;
/// … if the times between them deviate from their median by no more than this share, …
const REGULAR: f64 = 0.1;
/// … nearly all: one in this number may be off.
const MAY_BE_OFF: usize = 5;
/// A target that is silent for more than this share of a period is not paused but works in turns.
const PAUSED_SHARE: f64 = 0.5;

/// Hung operations, outages and pauses of a trial.
pub fn silence(trial: &Trial) -> SilenceReport {
    let measured = &trial.measurement;
    let (hung, hung_ns_min) = hung(trial);
    let silent = silent(measured);
    SilenceReport {
        hung,
        hung_throughout: measured.carried.min(hung),
        hung_ns_min,
        outages: outages(trial, &silent),
        // Between two slices time is missing.
        pauses: pauses(trial, &silent).filter(|_| measured.slices <= 1),
    }
}

/// Pauses of the target that began and ended within the window, as times of the window in
/// nanoseconds.
pub fn pauses_within(trial: &Trial) -> Vec<[u64; 2]> {
    let bin = trial.measurement.answers.bin.0;
    let whole = whole_pauses(trial, silent(&trial.measurement));
    whole.map(|run| [run.start as u64 * bin, run.end as u64 * bin]).collect()
}

/// Silences that began and ended within the window and are longer than responses make them.
fn whole_pauses(trial: &Trial, silent: Vec<Range<usize>>) -> impl Iterator<Item = Range<usize>> {
    let measured = &trial.measurement;
    let bin = measured.answers.bin.0;
    let median = measured.response.quantile(0.5).0;
    let end = bins(measured);
    let is_told = asks_all_the_time(&trial.spec.load) && !trial.spec.target.protocol.subscribes();
    silent.into_iter().filter(move |run| {
        let is_whole = run.start > 0 && run.end < end;
        let is_long = run.len() >= PAUSE_BINS && run.len() as u64 * bin >= SHORTEST * median;
        is_told && is_whole && is_long
    })
}

/// Operations that hang, and the shortest time that one has waited. What times out has waited long
/// enough by the user's own word.
fn hung(trial: &Trial) -> (u64, Option<u64>) {
    let measured = &trial.measurement;
    let median = measured.response.quantile(0.5);
    let long = HUNG.max(Nanos(median.0.saturating_mul(HUNG_MEDIANS)));
    let long = long.min(trial.spec.timeout);
    let mut waits = measured.unanswered.iter_recorded().filter(|(waited, _)| *waited >= long);
    let first = waits.next();
    let hung = first.map_or(0, |(_, n)| n) + waits.map(|(_, n)| n).sum::<u64>();
    (hung, first.map(|(waited, _)| waited.0))
}

/// The longest time of the window without a good response.
pub(super) fn longest_silence(measured: &Measurement) -> Option<[u64; 2]> {
    let longest = silent_runs(measured).into_iter().max_by_key(Range::len)?;
    let end = |bin: usize| bin as u64 * measured.answers.bin.0;
    let is_last = longest.end == bins(measured);
    let last = if is_last { measured.window.length().0 } else { end(longest.end) };
    Some([end(longest.start), last])
}

/// Runs of bins without a good response.
fn silent_runs(measured: &Measurement) -> Vec<Range<usize>> {
    let good = &measured.answers.good;
    let is_silent = |bin: &usize| good.get(*bin).is_none_or(|&n| n == 0);
    let mut runs: Vec<Range<usize>> = Vec::new();
    for bin in (0..bins(measured)).filter(is_silent) {
        match runs.last_mut() {
            Some(run) if run.end == bin => run.end = bin + 1,
            _ => runs.push(bin..bin + 1),
        }
    }
    runs
}

/// Runs of bins without a good response that are longer than chance and the response times make
/// them.
fn silent(measured: &Measurement) -> Vec<Range<usize>> {
    let answers = &measured.answers;
    let bins = bins(measured);
    let all: u64 = answers.good.iter().take(bins).map(|&n| u64::from(n)).sum();
    let shortest_ns = measured.response_min.map_or(0, |t| t.0) * SHORTEST;
    let mut runs = silent_runs(measured);
    runs.retain(|run| {
        let outside = (bins - run.len()).max(1) as f64;
        let expected = all as f64 * run.len() as f64 / outside;
        expected >= EXPECTED && run.len() as u64 * answers.bin.0 >= shortest_ns
    });
    runs
}

/// Number of bins in the window.
fn bins(measured: &Measurement) -> usize {
    match measured.answers.bin {
        Nanos::ZERO => 0,
        bin => (measured.window.length().0 / bin.0) as usize,
    }
}

fn outages(trial: &Trial, silent: &[Range<usize>]) -> Vec<OutageReport> {
    let measured = &trial.measurement;
    let bin = measured.answers.bin.0;
    let long = |run: &&Range<usize>| run.len() as u64 * bin >= OUTAGE.0;
    silent
        .iter()
        .filter(long)
        .map(|run| {
            let last = run.end == bins(measured);
            OutageReport {
                start_ns: run.start as u64 * bin,
                end_ns: if last { measured.window.length().0 } else { run.end as u64 * bin },
                failures: failures(trial, run),
            }
        })
        .filter(|outage| outage.failures > 0)
        .collect()
}

/// Operations that failed within a silence, that were asked then and timed out later, and those
/// that never ended.
fn failures(trial: &Trial, run: &Range<usize>) -> u64 {
    let measured = &trial.measurement;
    let ResponseBins { bin, failed, .. } = &measured.answers;
    let within = |bins: Range<usize>| -> u64 {
        let bins = bins.start.min(failed.len())..bins.end.min(failed.len());
        failed[bins].iter().map(|&n| u64::from(n)).sum()
    };
    let timeout = (trial.spec.timeout.0 / bin.0.max(1)) as usize;
    let has_timeouts = measured.outcomes.count(Outcome::Timeout) > 0;
    let later =
        if has_timeouts { run.end.max(run.start + timeout)..run.end + timeout + 1 } else { 0..0 };
    let beyond = run.start + timeout >= bins(measured);
    let never = if beyond { hung(trial).0 } else { 0 };
    within(run.clone()) + within(later) + never
}

/// Where a load has times without any operation of its own, silence says nothing.
fn asks_all_the_time(load: &Load) -> bool {
    match load {
        Load::Closed { pause, stages, .. } => {
            let is_fixed = matches!(pause.law, knee_load::law::Law::Fixed(_));
            let pauses_vary = pause.kind == PauseKind::Think && !is_fixed;
            stages.is_empty() && (pause.law.is_zero() || pauses_vary)
        }
        Load::Open(open) => open.arrival.asks_all_the_time(),
        Load::Overload(_) => false,
    }
}

fn pauses(trial: &Trial, silent: &[Range<usize>]) -> Option<PausesReport> {
    let measured = &trial.measurement;
    let bin = measured.answers.bin.0;
    let whole: Vec<Range<usize>> = whole_pauses(trial, silent.to_vec()).collect();
    let between: Vec<usize> = whole.windows(2).map(|w| w[1].start - w[0].start).collect();
    let mut sorted = between.clone();
    sorted.sort_unstable();
    let period = *sorted.get(sorted.len() / 2)?;
    let tolerance = (REGULAR * period as f64).max(1.0);
    let off = |b: &&usize| b.abs_diff(period) as f64 > tolerance;
    let off = between.iter().filter(off).count();
    // The bins at both ends of a pause hold answers: on average one of them belongs to it.
    let silent_bins: usize = whole.iter().map(|run| run.len() + 1).sum();
    let length = silent_bins as f64 / whole.len() as f64;
    let is_regular = whole.len() >= PAUSES && off * MAY_BE_OFF <= between.len();
    (is_regular && length <= PAUSED_SHARE * period as f64).then(|| PausesReport {
        count: whole.len() as u64,
        period_ns: period as u64 * bin,
        length_ns: (length * bin as f64).round() as u64,
        percent: 100.0 * silent_bins as f64 / bins(measured) as f64,
    })
}

#[cfg(test)]
mod tests;
