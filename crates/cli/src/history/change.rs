//! Changes what is kept: removes runs, names baselines.

use super::read::{State, Store};
use super::schema::in_words;
use super::write::set_baseline;
use rusqlite::{Transaction, TransactionBehavior};

impl Store {
    /// Removes these runs, all or none.
    pub fn remove(&mut self, ids: &[i64]) -> Result<(), String> {
        for id in ids {
            if self.entry(*id)?.state == State::Running {
                return Err(format!("run {id} still goes on"));
            }
        }
        self.change(|transaction| delete(transaction, ids))?;
        self.shrink();
        Ok(())
    }

    /// Removes all runs but the latest so many, baselines, and those that still go on. How many
    /// were removed.
    pub fn prune(&mut self, keep: usize) -> Result<usize, String> {
        let entries = self.entries(&super::Filter::default())?;
        let goes =
            |entry: &&super::Entry| entry.baselines.is_empty() && entry.state != State::Running;
        let older = entries.iter().skip(keep).filter(goes);
        let ids: Vec<i64> = older.map(|entry| entry.id).collect();
        self.change(|transaction| delete(transaction, &ids))?;
        self.shrink();
        Ok(ids.len())
    }

    /// A run that has ended with a report becomes the baseline of this name.
    pub fn set_baseline(&mut self, name: &str, id: i64) -> Result<(), String> {
        if self.entry(id)?.state != State::Complete {
            return Err(format!(
                "run {id} has no whole report, so it can be no baseline"
            ));
        }
        self.change(|transaction| set_baseline(transaction, name, id).map(drop))
    }

    /// A baseline is none any longer; its run stays.
    pub fn forget_baseline(&mut self, name: &str) -> Result<(), String> {
        let mut found = 0;
        self.change(|transaction| {
            found = transaction.execute("DELETE FROM baselines WHERE name = ?", [name])?;
            Ok(())
        })?;
        match found {
            0 => Err(format!("no baseline is named '{name}'")),
            _ => Ok(()),
        }
    }

    fn change(
        &mut self,
        change: impl FnOnce(&Transaction<'_>) -> Result<(), rusqlite::Error>,
    ) -> Result<(), String> {
        let connection = self.connection();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let transaction = transaction.map_err(in_words)?;
        change(&transaction).map_err(in_words)?;
        transaction.commit().map_err(in_words)
    }

    /// Gives the room of what was removed back to the disk. Where that cannot be done now, the next
    /// runs use it.
    fn shrink(&mut self) {
        let _ = self.connection().execute_batch("PRAGMA incremental_vacuum");
    }
}

fn delete(transaction: &Transaction<'_>, ids: &[i64]) -> Result<(), rusqlite::Error> {
    let mut statement = transaction.prepare("DELETE FROM runs WHERE id = ?")?;
    ids.iter()
        .try_for_each(|id| statement.execute([id]).map(drop))
}
