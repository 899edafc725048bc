//! A response that was not what was expected, without the secrets of its session.

use super::{SessionPlan, Walk, text_of};
use crate::secrets::Secrets;

/// A response that was not what was expected, for people.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Unexpected {
    /// The number of its request.
    pub request: u32,
    /// What was expected.
    pub expected: String,
    /// What came instead.
    pub came: String,
    /// Its status.
    pub status: u16,
    /// What its body began with, hidden characters spelt out.
    pub sample: String,
}

impl Walk {
    /// The same without the values of secret variables, of cookies and of `value`.
    pub(super) fn without_secrets(
        &self,
        told: Unexpected,
        plan: &SessionPlan,
        value: Option<&[u8]>,
    ) -> Unexpected {
        if !plan.unshown.hides {
            return told;
        }
        let kind = plan.requests[told.request as usize].kind;
        let variables = plan.unshown.variables.iter();
        let variables = variables.filter(|(of, _)| *of == kind);
        let variables = variables.map(|(_, variable)| self.learnt.variable(*variable));
        let mut secrets = Secrets::default();
        for value in variables.chain(value) {
            secrets.learn(&text_of(value));
        }
        for (name, value) in self.learnt.jar.values() {
            secrets.learn_cookies(&format!("{}={}", text_of(name), text_of(value)));
        }
        let hide = |text: String| secrets.hide(&text).into_owned();
        Unexpected {
            expected: hide(told.expected),
            came: hide(told.came),
            sample: hide(told.sample),
            ..told
        }
    }
}
