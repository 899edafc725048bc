//! How many users come: `load` and `fail_if`.

use super::fault::{Read, bail, fault, unknown};
use super::fields::{Fields, duration, one_or_more, parsed, whole};
use super::schema;
use super::stages::{LoadStages, RateStage};
use super::tree::{Node, Value};
use knee_core::threshold::Threshold;
use knee_load::arrival::AskedArrival;
use knee_load::quantity::{ParseError, Rate, error, parse_duration, parse_rate, quoted};
use knee_load::session::SessionPlan;
use knee_load::spec::{HttpRequest, UserStage};
use knee_load::time::Nanos;

/// The load that a scenario file asks for. The command line wins over it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScenarioLoad {
    /// Sessions that begin per second: an open loop.
    pub rate: Option<Rate>,
    /// Their arrival process.
    pub arrival: Option<AskedArrival>,
    /// Rates or numbers of users one after another, in the place of `rate` and `vusers`.
    pub stages: LoadStages,
    /// Users, each with one session after another: a closed loop.
    pub vusers: Option<u32>,
    /// Sessions after which the run ends.
    pub iterations: Option<u64>,
    /// Measured time.
    pub duration: Option<Nanos>,
    /// Warm-up time.
    pub warmup: Option<Nanos>,
    /// How long after the end iterations of a script go on.
    pub graceful_stop: Nanos,
}

/// The most thresholds, and the bytes of the longest.
const THRESHOLDS_MAX: usize = 1_000;
const THRESHOLD_MAX: usize = 1_000;
/// The most stages.
const STAGES_MAX: usize = 1_000;
/// The most users.
const USERS_MAX: u32 = 1_000_000;

/// Reads `load`.
pub(super) fn read(node: &Node) -> Read<ScenarioLoad> {
    let fields = Fields::read(node, schema::LOAD)?;
    let rate = |node| parsed(node, "a rate such as 200/s", parse_rate);
    let warmup = |node| parsed(node, "a length of time, such as 5s,", parse_duration);
    let users = [1, USERS_MAX.into()];
    let mut load = ScenarioLoad {
        rate: fields.read_key("rate", rate)?,
        arrival: fields.read_key("arrival", arrival)?,
        stages: LoadStages::default(),
        vusers: fields.read_key("vusers", |node| whole(node, users))?.map(|count| count as u32),
        iterations: None,
        duration: fields.read_key("duration", duration)?,
        warmup: fields.read_key("warmup", warmup)?,
        graceful_stop: Nanos::ZERO,
    };
    let stages = fields.read_key("stages", |node| stages(node, load.rate))?;
    load.stages = stages.unwrap_or_default();
    refuse_contradictions(&fields, &load)?;
    Ok(load)
}

fn arrival(node: &Node) -> Read<AskedArrival> {
    let arrival = parsed(node, "an arrival process such as poisson", AskedArrival::parse)?;
    match arrival.file() {
        Some(_) => {
            bail!(node.at, "a trace cannot stand here: give it on the command line, with --arrival")
        }
        None => Ok(arrival),
    }
}

fn refuse_contradictions(fields: &Fields<'_>, load: &ScenarioLoad) -> Read<()> {
    let carries_rate = load.arrival.as_ref().is_some_and(AskedArrival::carries_rate);
    let refused = [
        ("vusers", "rate", "users make a closed loop, a rate an open one: leave one out"),
        (
            "vusers",
            "arrival",
            "users make a closed loop, an arrival process is of an open one: leave one out",
        ),
        ("vusers", "stages", "the stages say how many users or sessions there are: leave one out"),
        ("stages", "duration", "the stages say how long the run is: leave 'duration' out"),
    ];
    for (one, other, why) in refused {
        if let (Some(_), Some(other)) = (fields.entry(one), fields.entry(other)) {
            return fault(other.at, why);
        }
    }
    let of_rates = fields.entry("rate").or(fields.entry("arrival"));
    if let (LoadStages::Users(_), Some(of_rates)) = (&load.stages, of_rates) {
        let key = &of_rates.key;
        bail!(of_rates.at, "stages of users make a closed loop: leave '{key}' out");
    }
    let Some(arrival) = fields.entry("arrival") else {
        return Ok(());
    };
    let has_rate = fields.get("rate").or(fields.get("stages"));
    match (carries_rate, has_rate) {
        (true, Some(_)) => bail!(
            arrival.at,
            "this arrival process has its own rate: leave 'rate' and 'stages' out"
        ),
        (false, None) => {
            bail!(arrival.at, "an arrival process needs a rate: write 'rate', such as rate: 200/s")
        }
        _ => Ok(()),
    }
}

/// What stages are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StageUnit {
    PerS,
    Users,
}

/// A stage as the file says it.
struct StageDraft {
    from: f64,
    to: f64,
    unit: StageUnit,
    length: Nanos,
}

fn stages(node: &Node, rate: Option<Rate>) -> Read<LoadStages> {
    let Value::List(nodes) = &node.value else {
        return fault(
            node.at,
            "stages are a list: write [{ramp: 0 -> 200/s, for: 1m}, {hold: 5m}]",
        );
    };
    if nodes.is_empty() || nodes.len() > STAGES_MAX {
        bail!(node.at, "no stage, or too many: expected 1 to {STAGES_MAX}");
    }
    let mut now = rate.map(|rate| (rate.per_s(), StageUnit::PerS));
    let mut stages: Vec<StageDraft> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let stage = stage(node, &mut now)?;
        if stages.first().is_some_and(|first| first.unit != stage.unit) {
            bail!(node.at, "stages of rates and of users in one load: write all of one kind");
        }
        stages.push(stage);
    }
    let is_of_users = stages.first().is_some_and(|stage| stage.unit == StageUnit::Users);
    if is_of_users && stages.iter().all(|stage| stage.from.max(stage.to) < 1.0) {
        bail!(node.at, "no stage has a user: write one such as {{hold: 10 users, for: 1m}}");
    }
    Ok(if is_of_users {
        let of =
            |s: StageDraft| UserStage { from: s.from as u32, to: s.to as u32, length: s.length };
        LoadStages::Users(stages.into_iter().map(of).collect())
    } else {
        let of = |s: StageDraft| RateStage { from_per_s: s.from, to_per_s: s.to, length: s.length };
        LoadStages::Rates(stages.into_iter().map(of).collect())
    })
}

/// Reads a stage; `now` is what there is before it, and then what there is after it.
fn stage(node: &Node, now: &mut Option<(f64, StageUnit)>) -> Read<StageDraft> {
    let fields = Fields::read(node, schema::STAGE)?;
    let one = fields.one()?;
    let lasts = fields.read_key("for", duration)?;
    let need = |lasts: Option<Nanos>| match lasts {
        Some(length) => Ok(length),
        None => bail!(one.at, "'{}' needs a length: write 'for', such as for: 1m", one.key),
    };
    let constant = |(value, unit), length| StageDraft { from: value, to: value, unit, length };
    match &*one.key {
        "ramp" => {
            let (from, to, unit) = parsed(&one.value, "a ramp such as 0 -> 200/s", ramp)?;
            *now = Some((to, unit));
            Ok(StageDraft { from, to, unit, length: need(lasts)? })
        }
        "spike" => {
            let at = parsed(&one.value, "a rate such as 600/s, or 50 users,", amount)?;
            if at.0 == 0.0 {
                bail!(one.value.at, "a spike of nothing: write hold, or give a number above 0");
            }
            Ok(constant(at, need(lasts)?))
        }
        _ => match lasts {
            Some(length) => {
                let at = parsed(&one.value, "a rate such as 200/s, or 50 users,", amount)?;
                *now = Some(at);
                Ok(constant(at, length))
            }
            None => {
                let length = duration(&one.value)?;
                match *now {
                    Some(at) => Ok(constant(at, length)),
                    None => fault(
                        one.at,
                        "there is no rate before to hold: write {hold: 200/s, for: 5m}",
                    ),
                }
            }
        },
    }
}

/// `FROM -> TO`, where `FROM` may leave the unit out.
fn ramp(text: &str) -> Result<(f64, f64, StageUnit), ParseError> {
    let Some((from, to)) = text.split_once("->") else {
        let shown = quoted(text);
        return Err(error(format!("{shown} is no ramp: write two rates, such as 0 -> 200/s")));
    };
    let (to, unit) = amount(to)?;
    let (from, unit) = match (amount(from), unit) {
        (Ok((0.0, _)), unit) => (0.0, unit),
        (Ok((_, StageUnit::PerS)), StageUnit::Users) => (amount(&format!("{from} users"))?.0, unit),
        // "10 users -> 0"
        (Ok((from, unit)), _) if to == 0.0 => (from, unit),
        (from, unit) => match from? {
            (from, of) if of == unit => (from, unit),
            _ => {
                return Err(error(
                    "a ramp from users to a rate: write both of one kind".to_owned(),
                ));
            }
        },
    };
    if from == 0.0 && to == 0.0 {
        return Err(error(
            "a ramp from 0 to 0 offers nothing: write hold, or a rate above 0".to_owned(),
        ));
    }
    Ok((from, to, unit))
}

/// A rate or a number of users, which may be 0.
fn amount(text: &str) -> Result<(f64, StageUnit), ParseError> {
    let text = text.trim();
    if let Some(users) = text.strip_suffix("users").or(text.strip_suffix("user")) {
        let count = users.trim().parse::<u32>().ok().filter(|users| *users <= USERS_MAX);
        let wrong =
            || error(format!("{} is no number of users: expected 0 to {USERS_MAX}", quoted(text)));
        return Ok((f64::from(count.ok_or_else(wrong)?), StageUnit::Users));
    }
    let per_s = match text {
        "0" | "0/s" => 0.0,
        rate => parse_rate(rate)?.per_s(),
    };
    Ok((per_s, StageUnit::PerS))
}

/// Reads `fail_if`, whose steps are those of the plan.
pub(super) fn thresholds(node: &Node, plan: &SessionPlan) -> Read<Vec<Threshold>> {
    let all = one_or_more(node);
    if all.len() > THRESHOLDS_MAX {
        bail!(node.at, "too many thresholds: expected at most {THRESHOLDS_MAX}");
    }
    let of_plan = |text: &str| threshold(text, plan);
    all.iter().map(|node| parsed(node, "a threshold such as p99>200ms", of_plan)).collect()
}

fn threshold(text: &str, plan: &SessionPlan) -> Result<Threshold, ParseError> {
    let text = text.trim();
    if text.len() > THRESHOLD_MAX {
        return Err(error(format!(
            "{} is too long for a threshold: write STEP p99>200ms",
            quoted(text)
        )));
    }
    let threshold = Threshold::parse(text)?;
    check_part(&threshold, &[], Some(plan))?;
    Ok(threshold)
}

/// Refuses a threshold of a step, a session or a target that there is not.
///
/// # Errors
/// One line with the name that is nearest.
pub fn check_part(
    threshold: &Threshold,
    requests: &[HttpRequest],
    plan: Option<&SessionPlan>,
) -> Result<(), ParseError> {
    let Some(of) = threshold.of() else {
        return Ok(());
    };
    let names: Vec<String> = match plan {
        // A script names its requests, checks and metrics as it goes.
        Some(plan) if plan.script.is_some() => return Ok(()),
        Some(plan) => names(plan).collect(),
        None => {
            let name = |request: &HttpRequest| format!("{} {}", request.method, request.path);
            requests.iter().map(name).collect()
        }
    };
    if names.iter().any(|name| name == of) {
        Ok(())
    } else {
        let what = if plan.is_some() { "step" } else { "target" };
        let known = names.iter().map(String::as_str);
        Err(error(unknown(what, of, known)))
    }
}

/// The names of all steps that have figures of their own and of groups, with and without their
/// session, and of all sessions.
fn names(plan: &SessionPlan) -> impl Iterator<Item = String> + '_ {
    let steps = (0u32..).zip(&plan.requests);
    let steps = steps.filter(|(number, _)| !plan.is_unlisted(*number));
    let steps = steps.map(|(_, step)| (step.kind, &step.name));
    let groups = plan.groups.iter().map(|group| (group.kind, &group.name));
    let parts = steps.chain(groups).filter_map(|(kind, name)| {
        let kind = plan.kinds.get(usize::from(kind)).filter(|kind| kind.weight > 0)?;
        Some([name.clone(), format!("{}: {name}", kind.name)])
    });
    parts.flatten().chain(plan.kinds_of_load().map(|(_, kind)| kind.name.clone()))
}
