//! The history: every run that measured is kept, as it happens, in one SQLite file of the user's.
//!
//! Whatever is wrong with the file costs the history, with a line that says so, never a run.

mod change;
mod place;
mod process;
mod read;
mod recorder;
mod reference;
mod schema;
mod write;

#[cfg(test)]
mod tests;

pub use read::{Entry, Filter, State, Store};
pub use recorder::{Keep, Recorder};
pub use reference::{Reference, parse_name};

use crate::failure::Failure;
use knee_core::report::Report;
use std::path::PathBuf;

/// The report of a kept run: `12` (an id), `main` (a baseline's name), `last`.
///
/// # Errors
/// The reference is none, nothing of that name is kept, or the history cannot be read.
pub fn load(reference: &str) -> Result<Report, Failure> {
    let wrong = |wrong: String| Failure::argument(reference, wrong);
    let parsed = Reference::parse(reference).map_err(wrong)?;
    let Some(store) = open()? else {
        return Err(wrong(NOTHING_KEPT.to_string()));
    };
    let id = store.id(&parsed).map_err(wrong)?;
    store.report(id).map_err(wrong)
}

/// What is said where there is no history.
pub const NOTHING_KEPT: &str = "no run is kept yet";

/// The history of this user; `None` where nothing is kept yet.
///
/// # Errors
/// It cannot be read.
pub fn open() -> Result<Option<Store>, Failure> {
    let path = path()?;
    Store::open(&path).map_err(|wrong| Failure::input(of_file(&path, &wrong)))
}

/// Where it lies.
fn path() -> Result<PathBuf, Failure> {
    place::of_user().map_err(|wrong| Failure::input(format!("the history: {wrong}")))
}

/// What is wrong with the file, in a line.
fn of_file(path: &std::path::Path, wrong: &str) -> String {
    format!("the history, {}: {wrong}", path.display())
}
