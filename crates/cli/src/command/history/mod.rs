//! `knee history`: the runs that are kept, and where figures changed over many of them.

mod options;

use crate::failure::{Exit, Failure};
use crate::history::{self, HistoryEntry, HistoryFilter, HistoryStore, NOTHING_KEPT, RunReference};
use crate::output::{Files, OutputArgs, text};
use crate::stdio;
use knee_core::compare::report::{ComparisonVerdict, TrendReport};
use knee_core::compare::{History, NamedReport, metric_name};
use knee_render::{Html, Json, Markdown, Renderer};
pub use options::RawHistory;
use options::{List, RawBaseline, RawHistoryCommand, RawList, RawTrend};

/// Runs that are listed by default.
const SHOWN: usize = 30;

/// Lists runs, shows one, or changes what is kept.
pub fn execute(raw: RawHistory) -> Result<Exit, Failure> {
    match raw.command {
        None => list(&raw.list),
        Some(RawHistoryCommand::Show(show)) => self::show(&show.run, &show.output),
        Some(RawHistoryCommand::Rm(rm)) => remove(&rm.runs),
        Some(RawHistoryCommand::Prune(prune)) => self::prune(prune.keep),
        Some(RawHistoryCommand::Baseline(baseline)) => self::baseline(&baseline),
        Some(RawHistoryCommand::Trend(raw)) => trend(&raw),
    }
}

fn list(raw: &RawList) -> Result<Exit, Failure> {
    let filter = HistoryFilter { command: raw.command.clone(), target: raw.target.clone() };
    let entries = match history::open()? {
        Some(store) => store.entries(&filter).map_err(unreadable)?,
        None => Vec::new(),
    };
    let secrets = raw.secrets.secrets();
    let entries: Vec<HistoryEntry> =
        entries.into_iter().map(|entry| entry.without_secrets(&secrets)).collect();
    let shown = |unasked: usize| &entries[..raw.limit.unwrap_or(unasked).min(entries.len())];
    match raw.json.as_deref() {
        None => print(&entries, shown(SHOWN), raw)?,
        path => stdio::write_to("--json", path, |out| options::json(shown(usize::MAX), out))?,
    }
    Ok(Exit::Fine)
}

fn print(entries: &[HistoryEntry], shown: &[HistoryEntry], raw: &RawList) -> Result<(), Failure> {
    let is_filtered = raw.command.is_some() || raw.target.is_some();
    stdio::write(|out| {
        if entries.is_empty() {
            return if is_filtered {
                writeln!(out, "no such run is kept")
            } else {
                writeln!(out, "{NOTHING_KEPT}")
            };
        }
        let list =
            List { entries: shown, width: stdio::stdout_width(), unicode: stdio::is_unicode() };
        list.write(out)?;
        match entries.len() - shown.len() {
            0 => Ok(()),
            more => writeln!(out, "and {more} before; --limit {} lists all", entries.len()),
        }
    })
}

fn show(run: &str, output: &OutputArgs) -> Result<Exit, Failure> {
    let mut output = output.resolve()?;
    let (id, report) = history::load(run)?;
    let report = report.without_secrets(&output.secrets);
    output.kept_as = Some(id);
    output.deliver(&report)?;
    Ok(Exit::Fine)
}

fn remove(runs: &[String]) -> Result<Exit, Failure> {
    let mut store = opened(&runs[0])?;
    let mut ids = Vec::new();
    for run in runs {
        ids.push(id(&store, run)?);
    }
    store.remove(&ids).map_err(|wrong| Failure::argument(&runs.join(" "), wrong))?;
    Ok(Exit::Fine)
}

fn prune(keep: usize) -> Result<Exit, Failure> {
    let removed = match history::open()? {
        Some(mut store) => store.prune(keep).map_err(unreadable)?,
        None => 0,
    };
    let runs = if removed == 1 { "run" } else { "runs" };
    stdio::write(|out| writeln!(out, "{removed} {runs} removed"))?;
    Ok(Exit::Fine)
}

fn baseline(raw: &RawBaseline) -> Result<Exit, Failure> {
    let Some(name) = &raw.name else {
        return list_baselines();
    };
    let mut store = opened(raw.run.as_deref().unwrap_or(name))?;
    let wrong = |wrong| Failure::argument(name, wrong);
    match &raw.run {
        Some(run) => {
            let id = id(&store, run)?;
            store.set_baseline(name, id).map_err(wrong)?;
        }
        None if raw.remove => store.forget_baseline(name).map_err(wrong)?,
        None => {
            let id = store.id(&RunReference::Baseline(name.clone())).map_err(wrong)?;
            stdio::write(|out| writeln!(out, "{id}"))?;
        }
    }
    Ok(Exit::Fine)
}

fn list_baselines() -> Result<Exit, Failure> {
    let baselines = match history::open()? {
        Some(store) => store.baselines().map_err(unreadable)?,
        None => Vec::new(),
    };
    let widest = baselines.iter().map(|(name, _)| name.len()).max();
    stdio::write(|out| {
        if baselines.is_empty() {
            return writeln!(
                out,
                "there is no baseline; 'knee history baseline NAME RUN' sets one"
            );
        }
        baselines.iter().try_for_each(|(name, id)| {
            writeln!(out, "{name:<width$}  {id}", width = widest.unwrap_or(0))
        })
    })?;
    Ok(Exit::Fine)
}

/// The history, which has to be there for `argument` to be in it.
fn opened(argument: &str) -> Result<HistoryStore, Failure> {
    history::open()?.ok_or_else(|| Failure::argument(argument, NOTHING_KEPT))
}

fn id(store: &HistoryStore, run: &str) -> Result<i64, Failure> {
    let wrong = |wrong| Failure::argument(run, wrong);
    let reference = RunReference::parse(run).map_err(wrong)?;
    store.id(&reference).map_err(wrong)
}

fn unreadable(wrong: String) -> Failure {
    Failure::input(format!("the history: {wrong}"))
}

/// Finds changes, and says what they mean.
fn trend(raw: &RawTrend) -> Result<Exit, Failure> {
    let files: [(_, _, Box<dyn Renderer<TrendReport>>); 3] = [
        ("--json", &raw.json, Box::new(Json)),
        ("--html", &raw.html, Box::new(Html)),
        ("--md", &raw.md, Box::new(Markdown)),
    ];
    let files = Files::of(files)?;
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
        stdio::say(&format!("--fail-on-regression: worse: {}", worse.join(", ")));
        Exit::Failed
    }
}

#[cfg(test)]
mod tests;
