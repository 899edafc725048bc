//! Steps that are done several times.

use super::Walk;
use crate::session::escape::UnfitReason;
use crate::session::judge::number;
use crate::session::plan::{Passes, Repetition};
use crate::session::users::Users;
use serde_json::Value;

/// The most passes of a repetition.
const PASSES_MAX: f64 = 1e9;

/// How far a user is with a repetition.
#[derive(Clone, Debug, Default)]
pub(super) struct RepetitionState {
    /// Passes that were begun.
    begun: u32,
    /// Passes in all, at most.
    most: u32,
    /// The elements of a JSON array, one for each pass.
    elements: Vec<Vec<u8>>,
}

impl Walk {
    /// The state of a repetition before its first pass.
    ///
    /// # Errors
    /// The value that says how often steps are repeated does not.
    pub(super) fn begun(
        &self,
        repetition: &Repetition,
        users: &mut Users,
        realtime_ns: u64,
    ) -> Result<RepetitionState, UnfitReason> {
        let mut elements = Vec::new();
        let most = match &repetition.passes {
            Passes::Times(times) => {
                let times = number(&self.text(times, users, realtime_ns));
                let times = times.filter(|n| (0.0..=PASSES_MAX).contains(n) && n.fract() == 0.0);
                times.ok_or(UnfitReason::NoCount)? as u32
            }
            Passes::List(list) => list.len() as u32,
            Passes::Elements(array) => {
                let text = self.text(array, users, realtime_ns);
                let array: Result<Vec<Value>, _> = serde_json::from_slice(&text);
                elements.extend(array.map_err(|_| UnfitReason::NoArray)?.into_iter().map(bytes_of));
                elements.len() as u32
            }
            Passes::While(_) | Passes::Until(_) => repetition.at_most,
        };
        Ok(RepetitionState { begun: 0, most, elements })
    }

    /// Whether a repetition has one more pass, which begins now. Its variable is set.
    pub(super) fn passes(
        &mut self,
        number: u16,
        repetition: &Repetition,
        users: &mut Users,
        realtime_ns: u64,
    ) -> bool {
        let state = &self.repetitions[usize::from(number)];
        let pass = state.begun;
        let mut fill = |template: &_| self.text(template, users, realtime_ns);
        let goes_on = pass < state.most
            && match &repetition.passes {
                Passes::While(condition) => condition.is_so(&mut fill),
                Passes::Until(condition) => pass == 0 || !condition.is_so(&mut fill),
                Passes::Times(_) | Passes::List(_) | Passes::Elements(_) => true,
            };
        if !goes_on {
            return false;
        }
        let value = repetition.variable.map(|variable| {
            let value = match &repetition.passes {
                Passes::List(list) => list.get(pass as usize).map(fill).unwrap_or_default(),
                Passes::Elements(_) => {
                    state.elements.get(pass as usize).cloned().unwrap_or_default()
                }
                _ => pass.to_string().into_bytes(),
            };
            (variable, value)
        });
        self.repetitions[usize::from(number)].begun += 1;
        if let Some((variable, value)) = value {
            self.learnt.set(variable, value);
        }
        true
    }
}

/// Of a string what it says, of anything else its JSON.
fn bytes_of(value: Value) -> Vec<u8> {
    match value {
        Value::String(text) => text.into_bytes(),
        other => other.to_string().into_bytes(),
    }
}
