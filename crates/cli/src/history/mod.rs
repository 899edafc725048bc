//! The history: every run that measured is kept, as it happens, in one SQLite file of the user's.
//!
//! Whatever is wrong with the file costs the history, with a line that says so, never a run.
//!
//! A run of the history is named by its id, as a baseline, or as the latest.

mod recorder;
mod schema;
mod store;
mod write;

use crate::failure::Failure;
use crate::machine::user_directory;
use knee_core::report::Report;
pub use recorder::{HistoryRecorder, KeepOptions};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
pub use store::{HistoryEntry, HistoryFilter, HistoryStore, RunState};

/// The id and the report of a kept run: `12` (an id), `main` (a baseline's name), `last`.
///
/// # Errors
/// The reference is none, nothing of that name is kept, or the history cannot be read.
pub fn load(reference: &str) -> Result<(i64, Report), Failure> {
    let (store, id) = find(reference)?;
    let report = store.report(id).map_err(|wrong| Failure::argument(reference, wrong))?;
    Ok((id, report))
}

/// The history, and the id of the run that is meant.
fn find(reference: &str) -> Result<(HistoryStore, i64), Failure> {
    let wrong = |wrong: String| Failure::argument(reference, wrong);
    let parsed = RunReference::parse(reference).map_err(wrong)?;
    let store = open()?.ok_or_else(|| wrong(NOTHING_KEPT.to_string()))?;
    let id = store.id(&parsed).map_err(wrong)?;
    Ok((store, id))
}

/// Most earlier runs that tell how fast the host was.
const EARLIER_MAX: usize = 10;

/// Earlier reports of the same command and target; none if the history cannot be read.
pub fn earlier(report: &Report) -> Vec<Report> {
    let (command, target) = (report.command.to_string(), write::target(&report.spec));
    let store = open().ok().flatten();
    let found = store.and_then(|s| s.latest(&command, target, i64::MAX, EARLIER_MAX).ok());
    found.unwrap_or_default().into_iter().map(|(_, report)| report).collect()
}

/// The run that is meant and those before it of the same command and target, at most `most`, the
/// earliest first, with their ids.
///
/// # Errors
/// As of [`load`].
pub fn until(reference: &str, most: usize) -> Result<Vec<(i64, Report)>, Failure> {
    let wrong = |wrong: String| Failure::argument(reference, wrong);
    let (store, id) = find(reference)?;
    let last = store.report(id).map_err(wrong)?;
    let target = write::target(&last.spec);
    let runs = store.latest(&last.command.to_string(), target, id, most);
    let mut runs = runs.map_err(wrong)?;
    runs.reverse();
    Ok(runs)
}

/// Message where there is no history.
pub const NOTHING_KEPT: &str = "no run is kept yet";

/// The history of this user; `None` where nothing is kept yet.
///
/// # Errors
/// It cannot be read.
pub fn open() -> Result<Option<HistoryStore>, Failure> {
    let path = of_user().map_err(|wrong| Failure::input(format!("the history: {wrong}")))?;
    HistoryStore::open(&path).map_err(|wrong| Failure::input(of_file(&path, &wrong)))
}

/// What is wrong with the file, in a line.
fn of_file(path: &Path, wrong: &str) -> String {
    format!("the history, {}: {wrong}", path.display())
}

/// Names the file itself, in the place of the one in the user's data directory.
const VARIABLE: &str = "KNEE_HISTORY";

/// The file of this user; else why there is none, in one line.
fn of_user() -> Result<PathBuf, String> {
    let variable = |name: &str| std::env::var_os(name);
    let place = place(variable(VARIABLE), variable("XDG_DATA_HOME"), variable("HOME"));
    place.ok_or_else(|| {
        format!("there is no place for it: {VARIABLE}, XDG_DATA_HOME and HOME are not set")
    })
}

/// The file, by these variables.
fn place(
    file: Option<OsString>,
    data_home: Option<OsString>,
    home: Option<OsString>,
) -> Option<PathBuf> {
    let of_data = || Some(user_directory(data_home, home, ".local/share")?.join("knee/history.db"));
    file.filter(|file| !file.is_empty()).map(PathBuf::from).or_else(of_data)
}

#[cfg(test)]
mod place_tests {
    use super::*;

    #[test]
    fn the_file_goes_before_the_data_directory_and_that_before_home() {
        let given = |text: &str| Some(OsString::from(text)).filter(|t| !t.is_empty());
        for (file, data_home, home, expected) in [
            ("here.db", "/data", "/home/a", Some("here.db")),
            ("", "/data", "/home/a", Some("/data/knee/history.db")),
            ("", "data", "/home/a", Some("/home/a/.local/share/knee/history.db")),
            ("", "", "/home/a", Some("/home/a/.local/share/knee/history.db")),
            ("", "", "home", None),
            ("", "", "", None),
        ] {
            let found = place(given(file), given(data_home), given(home));
            assert_eq!(found, expected.map(PathBuf::from), "{file} {data_home} {home}");
        }
        let empty = place(Some(OsString::new()), None, given("/h"));
        assert_eq!(empty, Some(PathBuf::from("/h/.local/share/knee/history.db")));
    }
}

/// Names one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunReference {
    /// By its id.
    Id(i64),
    /// The baseline of this name.
    Baseline(String),
    /// The latest one.
    Last,
}

/// The word for the latest run.
const LAST: &str = "last";

/// No name is longer.
const NAME_MAX: usize = 100;

impl RunReference {
    /// Reads `12`, `main` or `last`.
    ///
    /// # Errors
    /// What is wrong with it and what would be right.
    pub fn parse(text: &str) -> Result<RunReference, String> {
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
            return text
                .parse()
                .map(RunReference::Id)
                .map_err(|_| "no run has such an id".to_string());
        }
        if text == LAST {
            return Ok(RunReference::Last);
        }
        parse_name(text)
            .map(RunReference::Baseline)
            .map_err(|_| "is no run: give its id, a baseline's name or 'last'".to_string())
    }
}

/// Reads the name of a baseline: `main`, `v1.2`, `feature/cache`.
///
/// # Errors
/// What is wrong with it and what would be right.
pub fn parse_name(text: &str) -> Result<String, String> {
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic());
    let goes_on = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-/".contains(&b));
    if !begins || !goes_on || text.len() > NAME_MAX {
        return Err(format!(
            "'{}' is no name: a letter, then letters, digits, '.', '_', '-' and '/', at most \
             {NAME_MAX} in all",
            text.escape_debug()
        ));
    }
    if text == LAST {
        return Err(format!("'{LAST}' is the latest run: take another name"));
    }
    Ok(text.to_string())
}

#[cfg(test)]
mod tests;
