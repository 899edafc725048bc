//! What is told of a response, without the secrets of its session.

use super::{SessionPlan, Unexpected, Walk, text_of};
use crate::secrets::Secrets;

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
