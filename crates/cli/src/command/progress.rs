//! What is told of a level as it ends.

use knee_core::time::Nanos;
use knee_core::trial::report::TrialReport;

/// What an ended level of a sweep showed, in one line.
pub fn level_line(number: usize, trial: &TrialReport) -> String {
    let rate = trial.throughput_per_s.map_or_else(
        || "–".to_owned(),
        |per_s| format!("{per_s:.*}/s", usize::from(per_s < 100.0)),
    );
    let times = &trial.response_time_ns;
    let [mean, p90, p99] = [times.mean, times.p90, times.p99]
        .map(|ns| ns.map_or_else(|| "–".to_owned(), |ns| Nanos(ns).to_string()));
    let errors = trial.outcomes.errors();
    format!(
        "{:>3}  {:<14} {rate:>12}  mean {mean:>7}  p90 {p90:>7}  p99 {p99:>7}  \
         errors {errors}",
        number + 1,
        trial.label,
    )
}
