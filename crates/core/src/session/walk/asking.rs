//! A user whose steps ask programs for values.

use super::{Next, STEPS_AT_ONCE_MAX, Walk};
use crate::session::fill::Scope;
use crate::session::plan::{Ask, Piece};
use crate::session::users::Users;
use crate::time::Nanos;

impl Walk {
    /// What it does after how long a pause: settled before that begins, so that a program can be
    /// asked meanwhile what it gives for the next step. Of all that a condition may ask only the
    /// time of day changes in a pause: it is that of the pause's end.
    pub fn ahead(&mut self, users: &mut Users, realtime_ns: u64) -> (Nanos, Next) {
        let mut pause = Nanos::ZERO;
        for _ in 0..STEPS_AT_ONCE_MAX {
            match self.next(users, realtime_ns.saturating_add(pause.0)) {
                Next::Think(time) => pause += time,
                next => return (pause, next),
            }
        }
        (pause, Next::Think(Nanos::ZERO))
    }

    /// A program is asked for values: those that it gave before are gone.
    pub fn forget_given(&mut self, ask: &Ask) {
        for &(_, variable) in &ask.gives {
            self.learnt.set(variable, Vec::new());
        }
    }

    /// Takes values that a program gave.
    pub fn take_given(&mut self, values: Vec<(u16, Vec<u8>)>) {
        for (variable, value) in values {
            self.learnt.set(variable, value);
        }
    }

    /// The value of a piece of a template.
    pub fn value(&self, piece: &Piece, users: &mut Users, realtime_ns: u64) -> Vec<u8> {
        let mut scope = Scope {
            learnt: &self.learnt,
            users,
            path: &self.path,
            before: &self.before,
            realtime_ns,
        };
        let mut value = Vec::new();
        scope.put(std::slice::from_ref(piece), &mut value);
        value
    }
}
