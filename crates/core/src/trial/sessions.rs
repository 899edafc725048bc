//! What the users of sessions came to.

use super::step_names::{name_in_session, step_name};
use super::times::times_of_part;
use crate::trial::figure::TimesReport;
use crate::trial::traffic::{rate_ci95, step_correlation};
use knee_load::measure::{
    Outcome, ProgramsMeasured, ScriptMeasured, ScriptMetric, SessionAttempts, SessionMeasured,
    Trial,
};
use knee_load::session::{SessionPlan, Unexpected, UnfitReason};
use knee_load::spec::Part;
use knee_load::stats::correlation::Correlation;
use knee_load::time::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The sessions of a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionsReport {
    /// Sessions that ended per second, whole or not; `None` where none did.
    pub ended_per_s: Option<f64>,
    /// Sessions that ended with a response to their last step, per second; `None` where none did.
    pub answered_per_s: Option<f64>,
    /// Sessions that came to their end per second; `None` where none did.
    pub completed_per_s: Option<f64>,
    /// 95 % confidence interval of that; absent where the data permit none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_ci95_per_s: Option<[f64; 2]>,
    /// By kind of session.
    pub kinds: Vec<SessionReport>,
    /// Groups of steps that are reported as a whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupReport>,
    /// The first responses that were not what a step expected, at most three.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unexpected: Vec<UnexpectedReport>,
    /// The data set that had no record left for a user, which ended the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran_out: Option<String>,
    /// Number of its records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran_out_records: Option<u64>,
    /// Time from the begin of the window until no record was left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran_out_after_ns: Option<u64>,
    /// The first value that its place in a request cannot have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfit_value: Option<UnfitReport>,
    /// Their outcomes as attempts, in an overload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<SessionAttempts>,
    /// The programs that give values to steps; `None` without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub programs: Option<ProgramsReport>,
    /// Redirections in the whole trial that led to another server, and were not followed; absent
    /// without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub led_away: Option<u64>,
    /// What a script recorded; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<ScriptReport>,
}

/// What a script recorded within the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScriptReport {
    /// Its checks, in the order of their names.
    pub checks: Vec<CheckReport>,
    /// Its own metrics, in the order of their names.
    pub metrics: Vec<ScriptMetricReport>,
    /// Iterations that it failed: it threw, or went over a limit.
    pub failed: u64,
    /// Why, of the first three.
    pub failures: Vec<String>,
    /// Why it ended the test, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aborted_because: Option<String>,
    /// Why it marked the test as failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marked_because: Option<String>,
    /// Processor time of the script per request, in nanoseconds; `None` without requests.
    pub computed_per_request_ns: Option<u64>,
    /// The first lines that it wrote to the console.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub log: String,
}

/// A check of a script.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CheckReport {
    /// Its name, after those of its groups.
    pub name: String,
    /// How often it held.
    pub succeeded: u64,
    /// How often it did not.
    pub failed: u64,
    /// The share that held, in percent.
    pub succeeded_percent: f64,
}

/// A metric that a script made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScriptMetricReport {
    /// Its name.
    pub metric: String,
    /// `counter`, `gauge`, `rate` or `trend`.
    pub kind: String,
    /// The sum of a counter, the last value of a gauge, the mean of a trend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// The least and the largest value of a gauge or a trend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// Values of a rate that are not 0, and all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hits: Option<[u64; 2]>,
    /// Values of a trend, in millionths: of a time in milliseconds these are nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trend: Option<TimesReport>,
    /// Whether values are times, in milliseconds.
    pub is_time: bool,
    /// The median of a trend, and the percentiles that the script's options name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub percentiles: BTreeMap<String, f64>,
}

/// Answers of a scenario's programs to steps that were intended within the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgramsReport {
    /// How long they took to answer.
    pub answer_ns: TimesReport,
    /// How long steps waited for that beyond their intended time. It is a part of the generator's
    /// delay.
    pub late_ns: TimesReport,
    /// Why a program gave no value, for the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_because: Option<String>,
    /// Whether a program ended, which ended the load.
    pub has_ended: bool,
}

/// One kind of session: those that ended within the window, but for the unfinished.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionReport {
    /// Its name.
    pub session: String,
    /// Sessions that completed.
    pub completed: u64,
    /// Sessions that a failed step ended.
    pub failed: u64,
    /// Sessions under way when the load ended.
    pub unfinished: u64,
    /// Completed sessions as a share of those that ended, in percent; `None` where none ended.
    pub completed_percent: Option<f64>,
    /// From the intended begin to the end of those that came to it, pauses included.
    pub session_time_ns: TimesReport,
    /// At which steps the others ended, the most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_at: Vec<FailedAt>,
}

/// A group of steps, each time that a session came to its end within the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupReport {
    /// Its name, after that of its session where there are several.
    pub group: String,
    /// How often sessions came to its end.
    pub completed: u64,
    /// From the intended begin of its first step to its end, pauses included.
    pub time_ns: TimesReport,
}

/// The number of sessions that failed at a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FailedAt {
    /// The step.
    pub step: String,
    /// Number of these sessions.
    pub count: u64,
}

/// A response that was not what its step expected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UnexpectedReport {
    /// The step.
    pub step: String,
    /// The expectation, in words.
    pub expected: String,
    /// The actual response, in words.
    pub came: String,
    /// Its status.
    pub status: u16,
    /// The begin of its body.
    pub body: String,
}

/// A value that its place in a request cannot have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UnfitReport {
    /// The step, which was not sent.
    pub step: String,
    /// The place in its request.
    pub place: String,
    /// What does not fit in the value. The value itself may be a secret.
    pub misfit: String,
    /// Why the place cannot have it.
    pub because: String,
}

impl UnfitReport {
    /// A sentence with all fields.
    pub fn sentence(&self) -> String {
        let UnfitReport { step, place, misfit, because } = self;
        format!("{place} of {step} cannot have {misfit}: {because}")
    }
}

/// The sessions of a trial, as reported; `None` where operations are no steps of any.
pub(super) fn sessions_report(trial: &Trial) -> Option<SessionsReport> {
    let measured = trial.measurement.sessions.as_ref()?;
    let plan = trial.spec.target.sessions.as_deref()?;
    let window = trial.measurement.window.length();
    let window_s = window.as_secs_f64();
    let kinds = plan.kinds_of_load().filter_map(|(number, kind)| {
        let measured = measured.kinds.get(usize::from(number))?;
        let correlation = correlation_of_steps(trial, plan, usize::from(number));
        Some(session_report(kind.name.clone(), measured, correlation, plan))
    });
    let kinds: Vec<_> = kinds.collect();
    let per_s = |count: u64| (count > 0 && window_s > 0.0).then(|| count as f64 / window_s);
    let completed = kinds.iter().map(|kind| kind.completed).sum();
    let failed: u64 = kinds.iter().map(|kind| kind.failed).sum();
    let unanswered: u64 = measured.kinds.iter().map(|kind| kind.unanswered).sum();
    let completed_per_s = per_s(completed);
    let groups = plan.groups.iter().zip(&measured.groups);
    let groups = groups
        .filter(|(group, _)| plan.kinds_of_load().any(|(number, _)| number == group.kind))
        .map(|(group, times)| GroupReport {
            group: name_in_session(plan, group.kind, &group.name),
            completed: times.count(),
            time_ns: times_of_part(
                times,
                correlation_of_steps(trial, plan, usize::from(group.kind)),
            ),
        });
    let script_groups = measured.script.iter().flat_map(|script| &script.groups);
    let script_groups = script_groups.map(|(path, times)| GroupReport {
        group: path.clone(),
        completed: times.count(),
        time_ns: times_of_part(times, None),
    });
    let in_slots = &trial.measurement.completed_sessions;
    let ran_out = measured.ran_out.as_ref();
    Some(SessionsReport {
        ended_per_s: per_s(completed + failed),
        answered_per_s: per_s((completed + failed).saturating_sub(unanswered)),
        completed_per_s,
        completed_ci95_per_s: completed_per_s.and_then(|per_s| rate_ci95(in_slots, window, per_s)),
        kinds,
        groups: groups.chain(script_groups).collect(),
        unexpected: measured
            .unexpected
            .iter()
            .map(|unexpected| unexpected_report(unexpected, plan))
            .collect(),
        ran_out: ran_out.map(|ran_out| ran_out.set.clone()),
        ran_out_records: ran_out.map(|ran_out| ran_out.records),
        ran_out_after_ns: ran_out.map(|ran_out| ran_out.after.0),
        unfit_value: unfit_report(trial),
        led_away: Some(measured.led_away).filter(|count| *count > 0),
        attempts: measured.attempts.clone(),
        programs: measured.programs.as_ref().map(programs_report),
        script: measured.script.as_ref().map(|script| script_report(script, trial)),
    })
}

/// The correlation of the times of sessions of a kind, which is at most the largest of its steps. A
/// slow change of several steps moves a session's time no more than each of them. `None` where one
/// is unknown.
fn correlation_of_steps(trial: &Trial, plan: &SessionPlan, kind: usize) -> Option<Correlation> {
    let measured = &trial.measurement;
    let window: Nanos = measured.window.length();
    if measured.targets.is_empty() {
        return None;
    }
    let steps = plan.requests.iter().zip(&measured.targets);
    let mut correlations = steps
        .filter(|(step, target)| usize::from(step.kind) == kind && !target.response.is_empty())
        .map(|(_, target)| step_correlation(target, window));
    correlations.try_fold(Correlation::NONE, |largest, of_step| Some(largest.or_larger(of_step?)))
}

fn session_report(
    name: String,
    measured: &SessionMeasured,
    correlation: Option<Correlation>,
    plan: &SessionPlan,
) -> SessionReport {
    let ended = measured.completed + measured.failed;
    let failed_at = measured
        .failed_at
        .iter()
        .map(|(&request, &count)| FailedAt { step: step_name(plan, request), count });
    let mut failed_at: Vec<_> = failed_at.collect();
    failed_at.sort_by_key(|at| std::cmp::Reverse(at.count));
    SessionReport {
        session: name,
        completed: measured.completed,
        failed: measured.failed,
        unfinished: measured.unfinished,
        completed_percent: (ended > 0).then(|| measured.completed as f64 * 100.0 / ended as f64),
        session_time_ns: times_of_part(&measured.time, correlation),
        failed_at,
    }
}

fn script_report(measured: &ScriptMeasured, trial: &Trial) -> ScriptReport {
    let checks = measured.checks.iter().map(|(name, [succeeded, failed])| CheckReport {
        name: name.clone(),
        succeeded: *succeeded,
        failed: *failed,
        succeeded_percent: *succeeded as f64 * 100.0 / (succeeded + failed).max(1) as f64,
    });
    let script = trial.spec.target.script();
    let percentiles = percentiles_named(script.map_or("", |script| &script.options));
    let metrics = measured.metrics.iter().map(|(name, metric)| {
        let report = |kind: &str, is_time| ScriptMetricReport {
            metric: name.clone(),
            kind: kind.to_owned(),
            is_time,
            ..ScriptMetricReport::default()
        };
        match metric {
            ScriptMetric::Counter { sum, is_time } => {
                ScriptMetricReport { value: Some(*sum), ..report("counter", *is_time) }
            }
            ScriptMetric::Gauge { last, min, max, is_time } => ScriptMetricReport {
                value: Some(*last),
                range: Some([*min, *max]),
                ..report("gauge", *is_time)
            },
            ScriptMetric::Rate { hits, all } => {
                ScriptMetricReport { hits: Some([*hits, *all]), ..report("rate", false) }
            }
            ScriptMetric::Trend { values, sum, min, max, is_time } => {
                // The histogram has three digits, and too few values have no upper percentiles.
                let percentile = |of: f64| {
                    let value = values.percentile(of / 100.0).map_or(*max, |t| t.0 as f64 / 1e6);
                    (of.to_string(), value.clamp(*min, *max))
                };
                ScriptMetricReport {
                    value: Some(sum / values.count().max(1) as f64),
                    range: Some([*min, *max]),
                    trend: Some(times_of_part(values, None)),
                    percentiles: percentiles.iter().copied().map(percentile).collect(),
                    ..report("trend", *is_time)
                }
            }
        }
    });
    let requests = trial.measurement.outcomes.total();
    ScriptReport {
        checks: checks.collect(),
        metrics: metrics.collect(),
        failed: measured.failed,
        failures: measured.failures.clone(),
        aborted_because: measured.aborted.clone(),
        marked_because: measured.marked.clone(),
        computed_per_request_ns: measured.computed.0.checked_div(requests),
        log: measured.log.clone(),
    }
}

/// The median, and the percentiles that options name: `p(97)`.
fn percentiles_named(options: &str) -> Vec<f64> {
    let named = options.split("p(").skip(1);
    let named = named.filter_map(|rest| rest.split_once(')')?.0.trim().parse().ok());
    [50.0].into_iter().chain(named.filter(|of| (0.0..=100.0).contains(of))).collect()
}

fn programs_report(measured: &ProgramsMeasured) -> ProgramsReport {
    ProgramsReport {
        answer_ns: times_of_part(&measured.answer, None),
        late_ns: times_of_part(&measured.late, None),
        failed_because: measured.failed.clone(),
        has_ended: measured.has_ended,
    }
}

fn unexpected_report(unexpected: &Unexpected, plan: &SessionPlan) -> UnexpectedReport {
    UnexpectedReport {
        step: step_name(plan, unexpected.request),
        expected: unexpected.expected.clone(),
        came: unexpected.came.clone(),
        status: unexpected.status,
        body: unexpected.sample.clone(),
    }
}

/// What failed in a trial of one session, in a line; `None` where nothing did.
pub fn failure_of(trial: &Trial) -> Option<String> {
    let measured = trial.measurement.sessions.as_ref()?;
    let plan = trial.spec.target.sessions.as_deref()?;
    if let Some(script) = &measured.script {
        let aborted =
            script.aborted.as_ref().map(|why| format!("the script ended the test: {why}"));
        if let Some(why) = script.failures.first().cloned().or(aborted) {
            return Some(why);
        }
    }
    if let Some(unfit) = unfit_report(trial) {
        return Some(unfit.sentence());
    }
    if let Some(unexpected) = measured.unexpected.first() {
        let UnexpectedReport { step, expected, came, status, .. } =
            unexpected_report(unexpected, plan);
        return Some(format!("{step}: expected {expected}, got {came}; status {status}"));
    }
    let mut failed = measured.kinds.iter().flat_map(|kind| kind.failed_at.keys());
    let request = *failed.next()?;
    let target = trial.measurement.targets.get(request as usize);
    let outcomes = target.map_or(&trial.measurement.outcomes, |target| &target.outcomes);
    let bad = Outcome::ALL
        .into_iter()
        .find(|outcome| *outcome != Outcome::Ok && outcomes.count(*outcome) > 0);
    let because = bad.map(|outcome| format!(": {} ({})", outcome.name(), outcome.meaning()));
    Some(format!("{} failed{}", step_name(plan, request), because.unwrap_or_default()))
}

/// The first value of a trial that its place in a request cannot have.
pub(super) fn unfit_report(trial: &Trial) -> Option<UnfitReport> {
    let unfit = trial.measurement.sessions.as_ref()?.unfit.as_ref()?;
    let target = &trial.spec.target;
    let plan = target.sessions.as_deref()?;
    let request = target.requests.get(unfit.request as usize)?;
    let hole = request.holes.get(usize::from(unfit.hole));
    let place = match hole.map(|hole| hole.part) {
        Some(Part::Header(number)) => {
            let header = request.headers.get(usize::from(number));
            format!("the header {}", header.map_or("", |(name, _)| name))
        }
        Some(Part::Path) => "the URL".to_owned(),
        Some(Part::Body) | None => "the body".to_owned(),
    };
    let place = match unfit.reason {
        UnfitReason::NoCount | UnfitReason::NoArray => "the 'repeat' before".to_owned(),
        UnfitReason::TooLong => "a 'set' before, or the request".to_owned(),
        _ => place,
    };
    let because = match unfit.reason {
        UnfitReason::Control => "a header is one line of text without control characters",
        UnfitReason::Semicolon => "';' ends the value of a cookie",
        UnfitReason::Empty => "a URL has at least one character",
        UnfitReason::Elsewhere => "all requests go to the target",
        UnfitReason::NoCount => "steps are repeated a whole number of times",
        UnfitReason::NoArray => "steps are repeated for each element of a JSON array",
        UnfitReason::TooLong => "a variable, and all values of a request, have at most 16 MiB",
    };
    Some(UnfitReport {
        step: step_name(plan, unfit.request),
        place,
        misfit: unfit.misfit.clone(),
        because: because.to_owned(),
    })
}
