//! What a program answers, and the step that waits for it.

use super::plan::Ask;
use crate::time::Nanos;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// One line of a program: `{"id": 7, "set": {"signature": "…"}}`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct ProgramAnswer {
    /// The question; without it, the oldest that is not answered yet.
    pub id: Option<u64>,
    /// Values for the variables that the step is given.
    #[serde(default)]
    set: BTreeMap<String, Value>,
    /// Why there are none.
    error: Option<String>,
}

impl ProgramAnswer {
    /// The longest line that is read.
    pub const BYTES_MAX: usize = 64 << 10;

    /// Reads a line.
    ///
    /// # Errors
    /// What is wrong with it, as the end of a sentence about the program.
    pub fn read(line: &[u8]) -> Result<ProgramAnswer, String> {
        serde_json::from_slice(line).map_err(|_| {
            let text = String::from_utf8_lossy(line);
            let short: String = text.chars().take(80).collect();
            let dots = if short.len() < text.len() { "…" } else { "" };
            format!(
                "wrote '{}{dots}', which is no answer: expected a line such as {EXAMPLE}",
                crate::shown::shown(&short)
            )
        })
    }

    /// Its values for these variables, in their order: of a string what it says, of anything else
    /// its JSON.
    ///
    /// # Errors
    /// Why there are none, as the end of a sentence about the program.
    pub fn values(&self, ask: &Ask) -> Result<Vec<(u16, Vec<u8>)>, String> {
        if let Some(error) = &self.error {
            let short: String = error.chars().take(200).collect();
            return Err(format!("answered with the error '{}'", crate::shown::shown(&short)));
        }
        let values = ask.gives.iter().map(|(name, variable)| {
            let value = match self.set.get(name) {
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
                None => return Err(format!("gave no value for '{name}'")),
            };
            Ok((*variable, value.into_bytes()))
        });
        values.collect()
    }

    /// Whether it says why it has no values.
    pub fn is_error(&self) -> bool {
        self.error.is_some()
    }
}

/// An answer as it should be.
const EXAMPLE: &str = "{\"id\": 1, \"set\": {\"signature\": \"…\"}}";

/// How far an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerState {
    Not,
    /// With values.
    Given,
    /// There will be none.
    Failed,
}

/// A step that is sent once its time has come and a program has answered. What it waits for the
/// program beyond its time is the generator's own delay.
#[derive(Clone, Copy, Debug)]
pub struct PendingStep {
    /// The number of the question.
    pub id: u64,
    /// The request of the step.
    pub request: u32,
    /// Its intended time.
    pub due: Nanos,
    /// When it has waited for too long.
    pub until: Nanos,
    asked: Nanos,
    came: AnswerState,
    is_due: bool,
}

/// What an awaiting step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PendingAction {
    /// It waits on.
    Still,
    /// It is sent now.
    Nothing,
    /// It fails now: there is no answer that could be used.
    InVain,
}

impl PendingStep {
    /// A step that is intended at `due`, whose program was asked at `now`. Its time limit counts
    /// from its intended time.
    pub fn new(id: u64, request: u32, (due, limit): (Nanos, Nanos), now: Nanos) -> PendingStep {
        PendingStep {
            id,
            request,
            due,
            until: due.max(now) + limit,
            asked: now,
            came: AnswerState::Not,
            is_due: due <= now,
        }
    }

    /// The program has answered: with values, or in a way that gives none.
    pub fn answered(&mut self, with_values: bool) -> PendingAction {
        if self.came == AnswerState::Not {
            self.came = if with_values { AnswerState::Given } else { AnswerState::Failed };
        }
        self.state()
    }

    /// Its intended time has come.
    pub fn on_time(&mut self) -> PendingAction {
        self.is_due = true;
        self.state()
    }

    /// It has waited for too long at `now`.
    pub fn is_overdue(&self, now: Nanos) -> bool {
        self.came == AnswerState::Not && self.until <= now
    }

    /// The program's time by `now`, and the part of it by which the step is sent late.
    pub fn took(&self, now: Nanos) -> (Nanos, Nanos) {
        (now - self.asked, now - self.due.max(self.asked).min(now))
    }

    fn state(&self) -> PendingAction {
        match self.came {
            _ if !self.is_due => PendingAction::Still,
            AnswerState::Not => PendingAction::Still,
            AnswerState::Given => PendingAction::Nothing,
            AnswerState::Failed => PendingAction::InVain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask() -> Ask {
        Ask {
            program: 0,
            gives: vec![("signature".to_owned(), 3), ("nonce".to_owned(), 1)],
            tells: Vec::new(),
            waits: Vec::new(),
        }
    }

    #[test]
    fn values_are_taken_as_extracted_ones_are() {
        let line = br#"{"set": {"nonce": 7, "signature": "a\u00e4\"", "other": [1]}, "id": 9}"#;
        let answer = ProgramAnswer::read(line).unwrap();
        assert_eq!(answer.id, Some(9));
        let values = answer.values(&ask()).unwrap();
        assert_eq!(values[0], (3, "aä\"".as_bytes().to_vec()));
        assert_eq!(values[1], (1, b"7".to_vec()));
        let without_id =
            ProgramAnswer::read(br#"{"set": {"nonce": {"a": [true]}, "signature": ""}}"#);
        let without_id = without_id.unwrap();
        assert_eq!(without_id.id, None);
        assert_eq!(without_id.values(&ask()).unwrap()[1].1, b"{\"a\":[true]}");
    }

    #[test]
    fn what_gives_no_values_says_why() {
        for (line, want) in [
            (r#"{"set": {"signature": "x"}}"#, "gave no value for 'nonce'"),
            (r#"{"id": 1}"#, "gave no value for 'signature'"),
            (
                r#"{"error": "no key\n", "set": {"signature": "", "nonce": ""}}"#,
                "answered with the error 'no key '",
            ),
        ] {
            let answer = ProgramAnswer::read(line.as_bytes()).unwrap();
            assert_eq!(answer.values(&ask()).unwrap_err(), want, "{line}");
        }
        for line in
            ["", "x", "[]", "{", "{\"id\": -1}", "{\"id\": 1.5}", "{\"set\": 3}", "\u{1b}[2J"]
        {
            let told = ProgramAnswer::read(line.as_bytes()).unwrap_err();
            assert!(told.contains("which is no answer"), "{line}: {told}");
            assert!(!told.chars().any(char::is_control), "{told}");
        }
        let long = "x".repeat(1_000);
        let told = ProgramAnswer::read(long.as_bytes()).unwrap_err();
        assert!(told.len() < 250 && told.contains("x…'"), "{told}");
        assert!(ProgramAnswer::read(&[b'"', 0xff]).is_err());
        let deep = "[".repeat(100_000);
        assert!(ProgramAnswer::read(format!("{{\"set\":{deep}").as_bytes()).is_err());
    }

    const MS: fn(u64) -> Nanos = Nanos::from_millis;

    #[test]
    fn an_answer_that_is_early_waits_for_the_step() {
        // Asked as a pause of 20 ms begins, answered after 5 ms.
        let mut step = PendingStep::new(1, 0, (MS(120), MS(50)), MS(100));
        assert_eq!(step.took(MS(105)), (MS(5), Nanos::ZERO));
        assert_eq!(step.answered(true), PendingAction::Still);
        assert!(!step.is_overdue(MS(119)));
        assert_eq!(step.on_time(), PendingAction::Nothing);
        assert!(!step.is_overdue(MS(500)), "it has its answer");
    }

    #[test]
    fn an_answer_that_is_late_delays_the_step_and_nothing_else() {
        let mut step = PendingStep::new(1, 0, (MS(120), MS(50)), MS(100));
        assert_eq!(step.on_time(), PendingAction::Still);
        assert_eq!(step.took(MS(150)), (MS(50), MS(30)));
        assert_eq!(step.answered(true), PendingAction::Nothing);
        assert_eq!(step.due, MS(120), "it is still intended when it was");
    }

    #[test]
    fn a_step_without_a_pause_is_asked_for_at_once() {
        // The generator came to it 3 ms late: that is no fault of the program.
        let mut step = PendingStep::new(1, 0, (MS(97), MS(50)), MS(100));
        assert_eq!(step.took(MS(104)), (MS(4), MS(4)));
        assert_eq!(step.answered(true), PendingAction::Nothing);
    }

    #[test]
    fn a_step_that_is_not_answered_is_given_up() {
        let mut step = PendingStep::new(1, 0, (MS(120), MS(50)), MS(100));
        assert_eq!(step.on_time(), PendingAction::Still);
        assert!(!step.is_overdue(MS(169)));
        assert!(step.is_overdue(MS(170)));
        assert_eq!(step.answered(false), PendingAction::InVain);
        assert_eq!(step.answered(true), PendingAction::InVain, "the first one counts");
        let mut early = PendingStep::new(2, 0, (MS(120), MS(50)), MS(100));
        assert_eq!(early.answered(false), PendingAction::Still, "not before its time");
        assert_eq!(early.on_time(), PendingAction::InVain);
    }
}
