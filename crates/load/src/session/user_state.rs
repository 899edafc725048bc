//! What a user knows.

use super::jar::Jar;
use super::users::DealtRecord;

/// Variables, records and cookies of a user.
#[derive(Clone, Debug, Default)]
pub(super) struct UserState {
    variables: Vec<Vec<u8>>,
    rows: Vec<DealtRecord>,
    pub(super) jar: Jar,
}

impl UserState {
    /// Forgets all, for a user with this number of variables.
    pub(super) fn clear(&mut self, variables: usize) {
        self.variables.iter_mut().for_each(Vec::clear);
        self.variables.resize(variables, Vec::new());
        self.jar.clear();
        self.rows.clear();
    }

    pub(super) fn variables(&self) -> &[Vec<u8>] {
        &self.variables
    }

    pub(super) fn variable(&self, variable: u16) -> &[u8] {
        self.variables.get(usize::from(variable)).map_or(&[], Vec::as_slice)
    }

    pub(super) fn set(&mut self, variable: u16, value: Vec<u8>) {
        let at = usize::from(variable);
        if self.variables.len() <= at {
            self.variables.resize(at + 1, Vec::new());
        }
        self.variables[at] = value;
    }

    pub(super) fn row(&self, data: u16) -> DealtRecord {
        self.rows.get(usize::from(data)).copied().unwrap_or_default()
    }

    /// The record of the next data set.
    pub(super) fn add_row(&mut self, row: DealtRecord) {
        self.rows.push(row);
    }
}
