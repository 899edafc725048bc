//! How early a sleep has to end on this machine: measured once, kept for the runs to come.
//!
//! A file of the user's holds what was measured, for each machine apart, as home directories are
//! shared. It is only ever replaced as a whole. Whatever is wrong with it costs the time to measure
//! again, never a run.

use crate::stdio::Notes;
use crate::{machine, whole_file};
use knee_core::report::Host;
use knee_engine::input;
use knee_load::spec::Margins;
use knee_load::time::Nanos;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The time that a first measurement takes.
const BUDGET: Nanos = Nanos::from_millis(150);

/// What this version writes and reads.
const SCHEMA: &str = "knee.margins/1";

/// Machines whose margins are kept, the latest first.
const MACHINES_MAX: usize = 16;

/// Largest size of the file in bytes, beyond that of [`MACHINES_MAX`] machines.
const SIZE_MAX: u64 = 1 << 20;

/// A margin beyond this was not measured by anyone.
const CREDIBLE_MAX: Nanos = Nanos::from_millis(10);

/// The margins of this machine: those kept, or else measured now and kept. A note of one line says
/// what is wrong with the file.
pub fn of_this_machine(notes: Notes) -> Margins {
    let store = Store::of_user();
    let machine = MachineKey::this();
    let unusable = match store.find(&machine) {
        Ok(Some(margins)) => return margins,
        Ok(None) => None,
        Err(trouble) => Some(trouble),
    };
    let Ok(margins) = knee_engine::experiment::throttle::measure_margins(BUDGET) else {
        // No thread can be had: the run says so, which needs more of them.
        return Margins::UNKNOWN;
    };
    let unkept = store.keep(machine, &margins).err();
    if let Some(trouble) = unkept.or(unusable) {
        notes.say(&trouble);
    }
    margins
}

/// Keeps what was measured of this machine at length.
pub fn keep(margins: &Margins, notes: Notes) {
    if let Err(trouble) = Store::of_user().keep(MachineKey::this(), margins) {
        notes.say(&trouble);
    }
}

/// What tells one machine from another as far as its wake-ups go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct MachineKey {
    kernel: String,
    cpu_model: String,
    /// Those that the process may use: a core that it is pinned to wakes up differently.
    cpus: u32,
}

impl MachineKey {
    fn this() -> MachineKey {
        let Host { kernel, cpu_model, cpus, .. } = knee_engine::host();
        MachineKey { kernel, cpu_model, cpus }
    }
}

/// The file as a whole.
#[derive(Debug, Serialize, Deserialize)]
struct Document {
    schema: String,
    /// The latest first.
    machines: Vec<Measured>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Measured {
    machine: MachineKey,
    /// RFC 3339, in UTC.
    measured_at: String,
    margins_ns: Margins,
}

impl Measured {
    fn is_credible(&self) -> bool {
        let credible = |ns: u64| Nanos(ns) <= CREDIBLE_MAX;
        self.margins_ns.by_bucket().into_iter().all(credible)
    }
}

/// The file, where there is a place for one.
#[derive(Clone, Debug)]
struct Store {
    path: Option<PathBuf>,
}

impl Store {
    /// Where programs keep what should outlive a run and may be lost.
    fn of_user() -> Store {
        let [named, home] = ["XDG_STATE_HOME", "HOME"].map(std::env::var_os);
        let directory = machine::user_directory(named, home, ".local/state");
        Store { path: directory.map(|d| d.join("knee/margins.json")) }
    }

    /// What was kept of a machine, if anything; else why the file cannot be used, in one line.
    fn find(&self, machine: &MachineKey) -> Result<Option<Margins>, String> {
        let Some(path) = &self.path else {
            return Ok(None);
        };
        let document = read(path).map_err(|wrong| {
            format!("{} {wrong}: this machine's margins were measured again", path.display())
        })?;
        let found = document.machines.iter().find(|m| m.machine == *machine);
        Ok(found.map(|m| m.margins_ns))
    }

    /// Keeps what was measured of a machine, beside what is known of others; else why it cannot, in
    /// one line.
    fn keep(&self, machine: MachineKey, margins: &Margins) -> Result<(), String> {
        let Some(path) = &self.path else {
            return Err("this machine's margins cannot be kept, as there is no place for them: \
                 XDG_STATE_HOME and HOME are not set"
                .to_string());
        };
        // What cannot be read is replaced.
        let mut machines = read(path).map_or_else(|_| Vec::new(), |d| d.machines);
        machines.retain(|m| m.machine != machine);
        machines.truncate(MACHINES_MAX - 1);
        let measured = Measured { machine, measured_at: machine::now(), margins_ns: *margins };
        machines.insert(0, measured);
        let document = Document { schema: SCHEMA.to_string(), machines };
        replace(path, &document).map_err(|e| {
            format!("this machine's margins cannot be kept in {}: {e}", path.display())
        })
    }
}

/// The file's content; empty where there is no file. Else what is wrong with it.
fn read(path: &Path) -> Result<Document, String> {
    let is_missing = |e: &io::Error| e.kind() == io::ErrorKind::NotFound;
    if fs::metadata(path).is_err_and(|e| is_missing(&e)) {
        return Ok(Document { schema: SCHEMA.to_string(), machines: Vec::new() });
    }
    let bytes = input::read_kept(path, SIZE_MAX)?;
    let document: Document =
        serde_json::from_slice(&bytes).map_err(|e| format!("is broken ({e})"))?;
    if document.schema != SCHEMA {
        return Err(format!("has the schema '{}'", document.schema));
    }
    if !document.machines.iter().all(Measured::is_credible) {
        return Err("has margins that nobody measured".to_string());
    }
    Ok(document)
}

/// Puts a new file in the place of the old one at once. No reader ever sees half of it, and of two
/// writers one wins.
fn replace(path: &Path, document: &Document) -> io::Result<()> {
    let text = serde_json::to_string_pretty(document)? + "\n";
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    whole_file::replace(path, text.as_bytes())
}

#[cfg(test)]
mod tests;
