//! Findings about uncertainty: methods that disagree, wide intervals, tables without rounds.

use crate::experiment::sweep::knee::{CurveShape, Knee, KneeAnalysis};
use crate::finding::{Finding, Severity, codes};
use crate::words::{between_users, list, percent, users};

codes! {
    KNEE_METHODS_DISAGREE = "knee_methods_disagree":
        cause "Asymptotes, Kneedle and maximum power put the knee at different levels, or the \
               curve contradicts the asymptotes. Throughput bends gradually, or the levels are far \
               apart.",
        remedy "Measure more levels between the two ends of the range.";
    CONFIDENCE_NOT_REACHED = "confidence_not_reached":
        cause "The rounds ended before the maximum was known within 2 % and the knee within 10 %, \
               usually because the host or the target is noisy.",
        remedy "Measure more rounds (--budget 3m), or use a quieter host.";
    TIME_NOT_SEPARATED = "time_not_separated":
        cause "Each level of the table was measured at one time, so a server that changed \
               meanwhile looks like one that changes with the load.",
        remedy "Measure all levels in several rounds, each round in another order, and give one \
                line for each measurement in the order they were made.";
}

/// Other methods put the knee elsewhere, or the measured curve contradicts the asymptotes.
pub(super) fn disagreement(knee: &Knee, analysis: &KneeAnalysis) -> Option<Finding> {
    let counts = |&(_, level): &(&str, f64)| knee.range.is_some() || knee.is_far_from(level);
    let others: Vec<(&'static str, f64)> = knee.alternatives().filter(counts).collect();
    if knee.range.is_none() && others.is_empty() {
        return None;
    }
    let reached_percent = 100.0 * knee.throughput_per_s / analysis.x_max_per_s;
    let stated: Vec<String> = others
        .iter()
        .map(|(method, level)| format!("{} at {}", method.replace('_', " "), users(*level)))
        .collect();
    let text = match knee.range {
        None => format!(
            "the asymptotes put the knee at {}, {}: throughput bends so gradually (or the levels \
             are so far apart) that neither is sharp",
            users(knee.level),
            list(&stated)
        ),
        Some([lo, hi]) => format!(
            "no single number is the knee: the asymptotes cross at {}, where throughput is {} of \
             its maximum{}; the knee is {}",
            users(knee.level),
            percent(reached_percent),
            if stated.is_empty() { String::new() } else { format!("; {}", list(&stated)) },
            between_users(lo, hi)
        ),
    };
    let knees = || others.iter().map(|o| o.1).chain([knee.level]);
    let span = [knees().fold(f64::INFINITY, f64::min), knees().fold(0.0, f64::max)];
    let [lo, hi] = knee.range.unwrap_or([f64::NAN; 2]);
    let asymptotes = [
        ("asymptotes", knee.level),
        ("reached_percent", reached_percent),
        ("knee_at_least", lo),
        ("knee_at_most", hi),
    ];
    Some(KNEE_METHODS_DISAGREE.finding(
        match knee.range {
            None => Severity::Info,
            Some(_) => Severity::Warning,
        },
        text,
        asymptotes.into_iter().chain(others.iter().copied()),
        levels_between(knee.range.unwrap_or(span)),
    ))
}

/// One user, and five levels from `lo` to `hi`.
fn levels_between([lo, hi]: [f64; 2]) -> String {
    let between = (0..=4).map(|i| lo * (hi / lo).powf(f64::from(i) / 4.0));
    let mut steps: Vec<u64> = between.map(|n| n.round().max(1.0) as u64).collect();
    steps.insert(0, 1);
    steps.dedup();
    let steps: Vec<String> = steps.iter().map(u64::to_string).collect();
    format!("measure between them: --vusers {}", steps.join(","))
}

/// The intervals of the answer are wide or missing.
pub(in crate::experiment::sweep) fn confidence(
    analysis: &KneeAnalysis,
    rounds: usize,
) -> Option<Finding> {
    let CurveShape::Bent(knee) = &analysis.shape else {
        return None;
    };
    if analysis.is_precise() {
        return None;
    }
    let throughput_percent = analysis.x_max_half_width.map(|half| 100.0 * half);
    let knee_percent = knee.half_width.filter(|_| knee.range.is_none()).map(|half| 100.0 * half);
    let within = |half: Option<f64>| match half {
        Some(half) => format!("within {}", percent(half)),
        None => "without a confidence interval".to_owned(),
    };
    Some(CONFIDENCE_NOT_REACHED.info(
        format!(
            "after {rounds} rounds the maximum throughput is known {} and the knee {}; wanted are \
             2 % and 10 %",
            within(throughput_percent),
            within(knee_percent)
        ),
        [
            ("throughput_percent", throughput_percent.unwrap_or(f64::NAN)),
            ("knee_percent", knee_percent.unwrap_or(f64::NAN)),
            ("rounds", rounds as f64),
        ],
        CONFIDENCE_NOT_REACHED.step(),
    ))
}

/// The table has no rounds, so that time and level cannot be distinguished.
pub(in crate::experiment::sweep) fn time_not_separated(levels: usize) -> Option<Finding> {
    (levels > 1).then(|| {
        TIME_NOT_SEPARATED.info(
            "the table has no rounds, so time and level cannot be told apart: what changed while \
             the levels were measured looks like an effect of the load",
            [("levels", levels as f64)],
            "give one line for each measurement of several rounds, or measure with knee sweep",
        )
    })
}
