//! Operations under way, by number and by connection.

use super::flight::Flight;
use crate::exchange::FlightId;

/// No operation.
pub(super) const NONE: FlightId = FlightId::MAX;

/// Operations under way. Those of one connection are linked, so that its end finds them all.
#[derive(Debug, Default)]
pub(super) struct Flights {
    all: Vec<Entry>,
    free: Vec<FlightId>,
}

#[derive(Debug, Default)]
struct Entry {
    flight: Flight,
    is_live: bool,
    before: FlightId,
    after: FlightId,
}

impl Flights {
    /// Adds an operation, first among those of its connection. `first` was the first of them.
    /// Returns its number.
    #[inline]
    pub(super) fn insert(&mut self, flight: Flight, first: &mut FlightId) -> FlightId {
        let after = *first;
        let id = self.free.pop().unwrap_or_else(|| {
            self.all.push(Entry::default());
            self.all.len() as FlightId - 1
        });
        let entry = &mut self.all[id as usize];
        // Field by field, so that the flight is copied once.
        entry.flight = flight;
        (entry.is_live, entry.before, entry.after) = (true, NONE, after);
        if after != NONE {
            self.all[after as usize].before = id;
        }
        *first = id;
        id
    }

    /// Removes an operation. `first` is the first of its connection. The returned reference stays
    /// valid until the next operation begins.
    #[inline]
    pub(super) fn remove(&mut self, id: FlightId, first: &mut FlightId) -> &mut Flight {
        let entry = &mut self.all[id as usize];
        debug_assert!(entry.is_live);
        entry.is_live = false;
        let (before, after) = (entry.before, entry.after);
        match before {
            NONE => *first = after,
            before => self.all[before as usize].after = after,
        }
        if after != NONE {
            self.all[after as usize].before = before;
        }
        self.free.push(id);
        &mut self.all[id as usize].flight
    }

    #[inline]
    pub(super) fn get(&self, id: FlightId) -> &Flight {
        &self.all[id as usize].flight
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: FlightId) -> &mut Flight {
        &mut self.all[id as usize].flight
    }

    /// Removes all operations, with their numbers.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = (FlightId, Flight)> {
        self.free.clear();
        let all = (0..).zip(std::mem::take(&mut self.all));
        all.filter(|(_, entry)| entry.is_live).map(|(id, entry)| (id, entry.flight))
    }
}
