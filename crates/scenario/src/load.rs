//! How many users come: `load` and `fail_if`.

use super::fault::{Read, bail, fault, unknown};
use super::fields::{Fields, duration, one_or_more, parsed, text, whole};
use super::schema;
use super::stages::RateStage;
use super::tree::{Node, Value};
use knee_core::threshold::Threshold;
use knee_load::arrival::AskedArrival;
use knee_load::quantity::parse::{error, quoted};
use knee_load::quantity::{ParseError, Rate, parse_duration, parse_rate};
use knee_load::session::SessionPlan;
use knee_load::spec::HttpRequest;
use knee_load::time::Nanos;
use std::collections::HashSet;

/// The load that a scenario file asks for. The command line wins over it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScenarioLoad {
    /// Sessions that begin per second: an open loop.
    pub rate: Option<Rate>,
    /// Their arrival process.
    pub arrival: Option<AskedArrival>,
    /// Rates one after another, in the place of `rate`.
    pub stages: Vec<RateStage>,
    /// Users, each with one session after another: a closed loop.
    pub vusers: Option<u32>,
    /// Measured time.
    pub duration: Option<Nanos>,
    /// Warm-up time.
    pub warmup: Option<Nanos>,
}

/// The most thresholds, and the bytes of the longest.
const THRESHOLDS_MAX: usize = 1_000;
const THRESHOLD_MAX: usize = 1_000;
/// The most stages.
const STAGES_MAX: usize = 1_000;

/// Reads `load`.
pub(super) fn read(node: &Node) -> Read<ScenarioLoad> {
    let fields = Fields::read(node, schema::LOAD)?;
    let rate = |node| parsed(node, "a rate such as 200/s", parse_rate);
    let warmup = |node| parsed(node, "a length of time, such as 5s,", parse_duration);
    let mut load = ScenarioLoad {
        rate: fields.read_key("rate", rate)?,
        arrival: fields.read_key("arrival", arrival)?,
        stages: Vec::new(),
        vusers: fields.read_key("vusers", vusers)?,
        duration: fields.read_key("duration", duration)?,
        warmup: fields.read_key("warmup", warmup)?,
    };
    let stages = fields.read_key("stages", |node| stages(node, load.rate))?;
    load.stages = stages.unwrap_or_default();
    refuse_contradictions(&fields, &load)?;
    Ok(load)
}

fn vusers(node: &Node) -> Read<u32> {
    let vusers = whole(node, [1, 1_000_000])?;
    Ok(u32::try_from(vusers).unwrap_or(u32::MAX))
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
        ("vusers", "stages", "users make a closed loop, stages are of rates: leave one out"),
        ("stages", "duration", "the stages say how long the run is: leave 'duration' out"),
    ];
    for (one, other, why) in refused {
        if let (Some(_), Some(other)) = (fields.entry(one), fields.entry(other)) {
            return fault(other.at, why);
        }
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

fn stages(node: &Node, rate: Option<Rate>) -> Read<Vec<RateStage>> {
    let Value::List(nodes) = &node.value else {
        return fault(
            node.at,
            "stages are a list: write [{ramp: 0 -> 200/s, for: 1m}, {hold: 5m}]",
        );
    };
    if nodes.is_empty() || nodes.len() > STAGES_MAX {
        bail!(node.at, "no stage, or too many: expected 1 to {STAGES_MAX}");
    }
    let mut now = rate.map(Rate::per_s);
    let mut stages = Vec::with_capacity(nodes.len());
    for node in nodes {
        stages.push(stage(node, &mut now)?);
    }
    Ok(stages)
}

/// Reads a stage; `now` is the rate before it, and then the one after it.
fn stage(node: &Node, now: &mut Option<f64>) -> Read<RateStage> {
    let fields = Fields::read(node, schema::STAGE)?;
    let one = fields.one()?;
    let lasts = fields.read_key("for", duration)?;
    let need = |lasts: Option<Nanos>| match lasts {
        Some(length) => Ok(length),
        None => bail!(one.at, "'{}' needs a length: write 'for', such as for: 1m", one.key),
    };
    let constant = |per_s: f64, length| RateStage { from_per_s: per_s, to_per_s: per_s, length };
    match &*one.key {
        "ramp" => {
            let (from_per_s, to_per_s) = parsed(&one.value, "a ramp such as 0 -> 200/s", ramp)?;
            *now = Some(to_per_s);
            let length = need(lasts)?;
            Ok(RateStage { from_per_s, to_per_s, length })
        }
        "spike" => {
            let per_s = parsed(&one.value, "a rate such as 600/s", parse_rate)?.per_s();
            Ok(constant(per_s, need(lasts)?))
        }
        _ => match lasts {
            Some(length) => {
                let per_s = parsed(&one.value, "a rate such as 200/s", per_s)?;
                *now = Some(per_s);
                Ok(constant(per_s, length))
            }
            None => {
                let length = duration(&one.value)?;
                match *now {
                    Some(per_s) => Ok(constant(per_s, length)),
                    None => fault(
                        one.at,
                        "there is no rate before to hold: write {hold: 200/s, for: 5m}",
                    ),
                }
            }
        },
    }
}

/// `FROM -> TO`.
fn ramp(text: &str) -> Result<(f64, f64), ParseError> {
    let Some((from, to)) = text.split_once("->") else {
        let shown = quoted(text);
        return Err(error(format!("{shown} is no ramp: write two rates, such as 0 -> 200/s")));
    };
    let ends = (per_s(from)?, per_s(to)?);
    match ends {
        (0.0, 0.0) => Err(error(
            "a ramp from 0 to 0 offers nothing: write hold, or a rate above 0".to_owned(),
        )),
        ends => Ok(ends),
    }
}

/// A rate that may be 0.
fn per_s(text: &str) -> Result<f64, ParseError> {
    match text.trim() {
        "0" | "0/s" => Ok(0.0),
        rate => parse_rate(rate).map(Rate::per_s),
    }
}

/// Reads `fail_if`, whose steps are those of the plan.
pub(super) fn thresholds(node: &Node, plan: &SessionPlan) -> Read<Vec<Threshold>> {
    let all = one_or_more(node);
    if all.len() > THRESHOLDS_MAX {
        bail!(node.at, "too many thresholds: expected at most {THRESHOLDS_MAX}");
    }
    all.iter()
        .map(|node| {
            let scalar = text(node, "a threshold such as p99>200ms")?;
            threshold(&scalar.text, plan).or_else(|wrong| fault(node.at, wrong.0))
        })
        .collect()
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

/// The names of all steps that have figures of their own, with and without their session, and of
/// all sessions.
fn names(plan: &SessionPlan) -> impl Iterator<Item = String> + '_ {
    let redirected: HashSet<u32> = plan.requests.iter().filter_map(|r| r.redirected).collect();
    let steps = (0u32..).zip(&plan.requests);
    let steps = steps.filter(move |(number, _)| !redirected.contains(number));
    let steps = steps.flat_map(|(_, step)| {
        let kind = plan.kinds.get(usize::from(step.kind));
        let whole = kind.map(|kind| format!("{}: {}", kind.name, step.name));
        std::iter::once(step.name.clone()).chain(whole)
    });
    steps.chain(plan.kinds.iter().map(|kind| kind.name.clone()))
}
