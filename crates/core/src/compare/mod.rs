//! B against A: two runs, or several of each, of what may be the same server.
//!
//! Every figure is compared by its ratio. Its chance variation has two parts. That within a run
//! comes from the run's intervals. That between runs is assumed for single runs and measured with
//! several (`difference`). All rows together decide which differences count (`discoveries`), so
//! that equal servers are called different in fewer than 1 of 20 comparisons.

mod anatomy;
mod answer;
mod difference;
mod draft;
mod estimate;
mod host_speed;
mod levels;
mod live;
mod metrics;
mod overall;
pub mod report;
mod steps;
mod trend;
mod warnings;

#[cfg(test)]
mod tests;

use crate::compare::report::{
    COMPARISON_SCHEMA, ComparedRun, ComparedSide, Comparison, ComparisonRow,
};
use crate::report::{Conclusion, Kind, Report};
use crate::trial::report::Verdict;
use crate::words::list;
pub use answer::name as metric_name;
use draft::{ALPHA, RowDraft};
use host_speed::host_speed;
pub use host_speed::{has_host_speed, state_host_speed};
use levels::MatchedLevel;
pub use live::{LiveSide, ROUNDS_MIN, compare_live, is_b_first, is_known};
pub use trend::History;

/// A report with the name that the user gave.
#[derive(Clone, Copy, Debug)]
pub struct NamedReport<'a> {
    /// A file, or a reference into the history.
    pub name: &'a str,
    /// Its report.
    pub report: &'a Report,
}

fn reports<'a>(side: &[NamedReport<'a>]) -> Vec<&'a Report> {
    side.iter().map(|named| named.report).collect()
}

/// Compares the reports of B with those of A.
///
/// # Errors
/// One line: a side is empty, or the two have nothing in common that could be compared.
pub fn compare(
    a: &[NamedReport],
    b: &[NamedReport],
    knee_version: &str,
) -> Result<Comparison, String> {
    if a.is_empty() || b.is_empty() {
        return Err("nothing to compare: each side needs a report".to_owned());
    }
    let (reports_a, reports_b) = (reports(a), reports(b));
    let (matched, only) = levels::matched(&reports_a, &reports_b);
    let mut drafts = drafts(&reports_a, &reports_b, &matched);
    if drafts.is_empty() {
        return Err(nothing_in_common(a, b, &only));
    }
    let speed = host_speed(matched.iter().map(MatchedLevel::trials));
    if let Some(speed) = speed {
        drafts = drafts.into_iter().map(|d| speed.explain(d)).collect();
    }
    let mut warnings = warnings::warnings(a, b, &only);
    warnings.extend(speed.and_then(|speed| speed.warning()));
    if matched.iter().any(MatchedLevel::is_contended) {
        let is_single = a.len() == 1 || b.len() == 1;
        let remedy = if is_single { GIVE_SEVERAL } else { "" };
        warnings.push(format!("{CONTENDED}: {remedy}{ELSEWHERE}"));
    }
    let rows = draft::finish(drafts);
    let stage_changes = matched.iter().flat_map(|m| m.stage_changes(&rows)).collect();
    let is_invalid = |r: &&Report| {
        r.verdict == Verdict::Invalid || r.trials.iter().any(|t| t.verdict == Verdict::Invalid)
    };
    Ok(Comparison {
        has_invalid: reports_a.iter().chain(&reports_b).any(is_invalid),
        warnings,
        stage_changes,
        ..comparison([side(a), side(b)], rows, knee_version)
    })
}

/// The comparison that these rows make, without warnings and stages.
fn comparison([a, b]: [ComparedSide; 2], rows: Vec<ComparisonRow>, version: &str) -> Comparison {
    Comparison {
        schema: COMPARISON_SCHEMA.to_owned(),
        knee_version: version.to_owned(),
        answer: answer::answer(&rows),
        verdict: answer::verdict(&rows),
        has_invalid: false,
        a,
        b,
        warnings: Vec::new(),
        rows,
        stage_changes: Vec::new(),
        false_alarms_percent: 100.0 * ALPHA,
    }
}

const CONTENDED: &str =
    "the generator had to wait for a processor, so that who ran where decided on the result";

const GIVE_SEVERAL: &str = "one run on a side tells little then; give several of each, run in \
    alternation, or ";

const ELSEWHERE: &str = "put the target on other processors";

fn drafts(a: &[&Report], b: &[&Report], matched: &[MatchedLevel]) -> Vec<RowDraft> {
    let table_drafts = match (&a[0].conclusion, &b[0].conclusion) {
        (Conclusion::Sweep(x), Conclusion::Sweep(y))
            if a[0].trials.is_empty() || b[0].trials.is_empty() =>
        {
            Some(overall::table(x, y))
        }
        _ => None,
    };
    let overall = table_drafts.unwrap_or_else(|| overall::drafts(a, b));
    let kind = a[0].command.kind;
    // An average over before, during and after an overload says nothing of any of them.
    let has_levels = kind != Kind::Recover;
    let level_drafts = matched.iter().filter(|_| has_levels).flat_map(|m| m.drafts(kind));
    // Many levels would have hundreds of rows, and every row hides differences of the others.
    let step_drafts = match matched {
        [only] if has_levels && only.label.is_empty() => {
            [steps::drafts(only), steps::agent_drafts(only)].concat()
        }
        _ => Vec::new(),
    };
    overall.into_iter().chain(level_drafts).chain(step_drafts).collect()
}

fn nothing_in_common(a: &[NamedReport], b: &[NamedReport], only: &[Vec<String>; 2]) -> String {
    let describe = |side: &[NamedReport], labels: &[String]| match labels {
        [] => format!("knee {}", side[0].report.command),
        labels if labels.len() > 4 => {
            format!("knee {} with {}, …", side[0].report.command, labels[..4].join(", "))
        }
        labels => format!("knee {} with {}", side[0].report.command, list(labels)),
    };
    format!(
        "nothing in common to compare: A is of {}, B of {}",
        describe(a, &only[0]),
        describe(b, &only[1])
    )
}

fn side(reports: &[NamedReport]) -> ComparedSide {
    let run = |named: &NamedReport| {
        let report = named.report;
        let target =
            ["target", "url", "file"].iter().find_map(|key| report.spec.get(*key)?.as_str());
        ComparedRun {
            name: named.name.to_owned(),
            command: report.command.to_string(),
            target: target.unwrap_or_default().to_owned(),
            started_at: report.started_at.clone(),
            verdict: report.verdict,
        }
    };
    ComparedSide { runs: reports.iter().map(run).collect() }
}
