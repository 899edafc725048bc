//! `knee history trend`: where figures changed over many runs.

use super::options::RawTrend;
use crate::failure::{Exit, Failure};
use crate::history;
use crate::output::{Files, text};
use knee_core::compare::report::{ComparisonVerdict, TrendReport};
use knee_core::compare::{History, NamedReport, metric_name};
use knee_render::{Html, Json, Markdown};
use std::io::{self, Write};

/// Finds changes, and says what they mean.
pub(super) fn execute(raw: &RawTrend) -> Result<Exit, Failure> {
    let mut files = Files::none();
    files.add("--json", raw.json.as_deref(), Box::new(Json))?;
    files.add("--html", raw.html.as_deref(), Box::new(Html))?;
    files.add("--md", raw.md.as_deref(), Box::new(Markdown))?;
    let secrets = raw.secrets.secrets();
    let runs = history::until(&raw.run, raw.limit as usize)?;
    let runs: Vec<_> = runs
        .into_iter()
        .map(|(id, report)| (id.to_string(), report.without_secrets(&secrets)))
        .collect();
    let named: Vec<_> = runs.iter().map(|(name, report)| NamedReport { name, report }).collect();
    let history = History::of(&named);
    let trend = history.trend(&raw.metric, env!("CARGO_PKG_VERSION")).map_err(Failure::input)?;
    files.deliver(&trend, &text(false))?;
    Ok(raw.exit(&trend))
}

impl RawTrend {
    fn exit(&self, trend: &TrendReport) -> Exit {
        if !self.fail_on_regression {
            return Exit::Fine;
        }
        let since = (trend.runs.len() as u64).saturating_sub(u64::from(self.recent));
        let worse = trend.rows.iter().filter_map(|row| {
            let recent = row.changes.iter().rev().take_while(|change| change.at >= since);
            let mut worse = recent.filter(|change| change.verdict == ComparisonVerdict::Worse);
            worse.next().map(|change| (row, change))
        });
        let worse = worse.map(|(row, change)| {
            format!("{} since run {}", metric_name(&row.metric), change.first_run)
        });
        let worse: Vec<String> = worse.collect();
        if worse.is_empty() {
            return Exit::Fine;
        }
        // Nobody to tell where standard error is closed.
        let _ = writeln!(io::stderr(), "--fail-on-regression: worse: {}", worse.join(", "));
        Exit::Failed
    }
}
