//! What went over the connections, and to which target.

use super::assess::times_report;
use crate::measure::{TargetMeasured, Trial};
use crate::spec::{HttpTarget, Load};
use crate::time::Nanos;
use crate::trial::report::{TargetReport, TimesReport, TrafficReport};
use crate::trial::sessions::step_name;
use crate::trial::steps::{step_effect, step_report};

/// The traffic of a trial, as reported.
pub(super) fn traffic_report(trial: &Trial) -> TrafficReport {
    let measured = &trial.measurement;
    let window_s = measured.window.length().as_secs_f64();
    let per_s = |bytes: u64| (window_s > 0.0).then(|| bytes as f64 / window_s);
    TrafficReport {
        status_codes: measured.status_codes.clone(),
        bytes_sent: measured.bytes_sent,
        bytes_sent_per_s: per_s(measured.bytes_sent),
        bytes_received_per_s: per_s(measured.bytes_received),
        connections_limit: match &trial.spec.load {
            Load::Open(load) => Some(load.connections_max.into()),
            Load::Closed { .. } | Load::Overload(_) => None,
        },
        unsent: measured.unsent,
        surplus_responses: measured.surplus,
        targets: targets(
            &measured.targets,
            &trial.spec.target,
            measured.window.length(),
        ),
    }
}

/// Where there are fewer measurements than requests, the last is of all further ones.
fn targets(measured: &[TargetMeasured], target: &HttpTarget, window: Nanos) -> Vec<TargetReport> {
    let (requests, plan) = (&target.requests, target.sessions.as_deref());
    let is_step = |index: usize| !plan.is_some_and(|plan| plan.is_redirected(index as u32));
    let rows = measured.iter().enumerate().map(|(index, target)| {
        let further = requests.len().saturating_sub(measured.len());
        let is_sum = further > 0 && index + 1 == measured.len();
        let name = match requests.get(index) {
            Some(request) if !is_sum => match plan {
                Some(plan) => step_name(plan, index as u32),
                None => format!("{} {}", request.method, request.path),
            },
            _ => "other targets".to_owned(),
        };
        TargetReport {
            target: name,
            sum_of: is_sum.then_some(further as u64 + 1),
            attempted: target.outcomes.total(),
            completed: target.outcomes.responses(),
            outcomes: target.outcomes.clone(),
            status_codes: target.status_codes.clone(),
            response_time_ns: TimesReport {
                spectrum: Vec::new(),
                ..times_report(&target.response, step_effect(target, window))
            },
            step: step_report(target, window),
        }
    });
    // Redirections count as operations of their steps, and have no row of their own.
    let steps = rows.enumerate().filter(|(index, _)| is_step(*index));
    steps.map(|(_, row)| row).collect()
}
