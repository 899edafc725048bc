//! A response that was not what was expected, without the secrets of its session.

use super::{Expectation, ResponseReaders, SessionPlan, Template, Users, Walk, WholeResponse};
use crate::digits;
use crate::secrets::{MASK, Secrets};
use crate::time::Nanos;
use std::rc::Rc;

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
    /// What was wrong with the response that was just answered with
    /// `AfterResponse::Unexpected`, in words: what was expected, and what came.
    pub fn describe_unexpected(
        &self,
        number: u16,
        request: u32,
        answered: WholeResponse,
        readings: &mut ResponseReaders,
        users: &mut Users,
    ) -> Unexpected {
        let plan = Rc::clone(users.plan());
        let request = self.reads_as(request, &plan);
        let step = &plan.requests[request as usize];
        let response = readings.last_response(answered.session);
        let is_secret = plan.unshown.expectations.contains(&(request, number));
        let number = usize::from(number);
        let shown_value = |value: &[u8]| {
            if is_secret { format!("'{MASK}'") } else { shown(value) }
        };
        let came = match response.value(number) {
            Some(value) => shown_value(value),
            None => response.missing_because(number),
        };
        let what = match step.expect.get(number) {
            Some(Expectation::Status(ranges)) => format!("status {}", ranges_shown(ranges)),
            Some(Expectation::Time(most)) => {
                format!("a response within {}", time(*most))
            }
            Some(Expectation::Value { source, is }) => {
                let mut show = |template: &Template| {
                    shown_value(&self.text(template, users, answered.realtime_ns))
                };
                is.description(&source.to_string(), &mut show)
            }
            None => {
                let extraction = step.extract.get(number - step.expect.len());
                extraction.map_or(String::new(), |e| format!("{} for '{}'", e.source, e.name))
            }
        };
        let came = match step.expect.get(number) {
            Some(Expectation::Status(_)) => answered.status.to_string(),
            Some(Expectation::Time(_)) => time(answered.response),
            _ => came,
        };
        let unexpected = Unexpected {
            request,
            expected: what,
            came,
            status: answered.status,
            sample: shown(response.sample()),
        };
        self.without_secrets(unexpected, &plan, response.value(number).filter(|_| is_secret))
    }

    /// The same without the values of secret variables, of cookies and of `value`.
    fn without_secrets(
        &self,
        unexpected: Unexpected,
        plan: &SessionPlan,
        value: Option<&[u8]>,
    ) -> Unexpected {
        if !plan.unshown.hides {
            return unexpected;
        }
        let kind = plan.requests[unexpected.request as usize].kind;
        let variables = plan.unshown.variables.iter();
        let variables = variables.filter(|(of, _)| *of == kind);
        let variables = variables.map(|(_, variable)| self.learnt.variable(*variable));
        let setup = plan.setup.into_iter();
        let given =
            setup.flat_map(|setup| plan.unshown.variables.range((setup, 0)..=(setup, u16::MAX)));
        let given = given.filter_map(|(_, variable)| plan.given.get(usize::from(*variable)));
        let mut secrets = Secrets::default();
        for value in variables.chain(value).chain(given.map(Vec::as_slice)) {
            secrets.learn(&text_of(value));
        }
        for (name, value) in self.learnt.jar.values() {
            secrets.learn_cookies(&format!("{}={}", text_of(name), text_of(value)));
        }
        let hide = |text: String| secrets.hide(&text).into_owned();
        Unexpected {
            expected: hide(unexpected.expected),
            came: hide(unexpected.came),
            sample: hide(unexpected.sample),
            ..unexpected
        }
    }
}

fn time(time: Nanos) -> String {
    format!("{} ms", digits::estimate(time.0 as f64 / 1e6))
}

pub(super) fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The characters of a value that are shown.
pub(super) const SHOWN_MAX: usize = 120;

/// A value for people: short, hidden characters spelt out.
fn shown(bytes: &[u8]) -> String {
    let text = text_of(bytes);
    let short: String = text.chars().take(SHOWN_MAX).collect();
    let dots = if short.len() < text.len() { "…" } else { "" };
    format!("'{}{dots}'", crate::shown::shown(&short))
}

fn ranges_shown(ranges: &[(u16, u16)]) -> String {
    let each = ranges
        .iter()
        .map(|(low, high)| if low == high { low.to_string() } else { format!("{low} to {high}") });
    each.collect::<Vec<_>>().join(" or ")
}
