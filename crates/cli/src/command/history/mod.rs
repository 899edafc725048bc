//! `knee history`: the runs that are kept.

mod list;
mod options;
#[cfg(test)]
mod tests;
mod trend;

pub use options::RawHistory;

use crate::failure::{Exit, Failure};
use crate::history::{self, HistoryEntry, HistoryFilter, HistoryStore, NOTHING_KEPT, RunReference};
use crate::output::OutputArgs;
use crate::whole_file::OutputPlace;
use crate::{stdout, terminal};
use list::List;
use options::{RawBaseline, RawHistoryCommand, RawList};

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
        Some(RawHistoryCommand::Trend(trend)) => trend::execute(&trend),
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
        Some("-") => stdout::write(|out| list::json(shown(usize::MAX), out))?,
        Some(path) => {
            let place = OutputPlace::open("--json", path)?;
            place.write(|out| list::json(shown(usize::MAX), out))?;
        }
        None => print(&entries, shown(SHOWN), raw)?,
    }
    Ok(Exit::Fine)
}

fn print(entries: &[HistoryEntry], shown: &[HistoryEntry], raw: &RawList) -> Result<(), Failure> {
    let is_filtered = raw.command.is_some() || raw.target.is_some();
    stdout::write(|out| {
        if entries.is_empty() {
            return if is_filtered {
                writeln!(out, "no such run is kept")
            } else {
                writeln!(out, "{NOTHING_KEPT}")
            };
        }
        let list = List {
            entries: shown,
            width: terminal::stdout_width(),
            unicode: terminal::is_unicode(),
        };
        list.write(out)?;
        match entries.len() - shown.len() {
            0 => Ok(()),
            more => writeln!(out, "and {more} before; --limit {} lists all", entries.len()),
        }
    })
}

fn show(run: &str, output: &OutputArgs) -> Result<Exit, Failure> {
    let output = output.resolve()?;
    let report = history::load(run)?.without_secrets(output.secrets());
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
    stdout::write(|out| writeln!(out, "{removed} {runs} removed"))?;
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
            stdout::write(|out| writeln!(out, "{id}"))?;
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
    stdout::write(|out| {
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
