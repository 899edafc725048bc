//! What agents delivered, fetched and joined into one trial.

use super::lease::is_dead;
use super::{Asked, tell};
use crate::bus::{Bus, Stores, chain, json, parse};
use crate::parcel::unpack;
use crate::part::Part;
use crate::words::{
    COORDINATORS_INBOX, CoordinatorFacts, Delivered, LEASE_KEY, PlanFacts, SPEC, TrialKey, Verb,
    result_subject,
};
use crate::{Access, FleetError, host_name};
use async_nats::Request;
use bytes::Bytes;
use futures_util::StreamExt;
use knee_core::measure::Trial;
use knee_core::spec::{TrialSpec, WorkerRange};
use knee_core::trial::agents::{agent_lost, agent_measured};
use std::collections::BTreeMap;

/// The pieces of a result that JetStream has.
pub(super) async fn fetch_stored(
    stores: &Stores,
    key: &TrialKey,
    agent: &str,
    of: u32,
) -> Result<Vec<Bytes>, String> {
    let mut pieces = Vec::new();
    for number in 0..of {
        let subject = result_subject(key, agent, &number.to_string());
        let message = stores
            .results
            .get_last_raw_message_by_subject(&subject)
            .await;
        pieces.push(message.map_err(|e| chain(&e))?.payload);
    }
    Ok(pieces)
}

/// The pieces of a result that its agent keeps.
pub(super) async fn fetch_kept(
    asked: &Asked<'_>,
    key: &TrialKey,
    of: u32,
) -> Result<Vec<Bytes>, String> {
    let mut pieces = Vec::new();
    for number in 0..of as usize {
        let request = Request::new().payload(json(&(key, number)));
        let piece = asked.send(Verb::Result, request).await?;
        if piece.is_empty() {
            return Err("it does not keep it".to_owned());
        }
        pieces.push(piece);
    }
    Ok(pieces)
}

/// What an agent delivered, packed, or why it did not.
pub(super) type Fate = (String, WorkerRange, Result<Vec<Bytes>, String>);

/// One trial of all that was delivered.
///
/// # Errors
/// Nobody delivered anything.
pub(super) fn join(
    spec: &TrialSpec,
    fates: impl Iterator<Item = Fate>,
) -> Result<Trial, FleetError> {
    let mut whole: Option<Trial> = None;
    let mut parts: BTreeMap<u64, Part> = BTreeMap::new();
    let mut agents = Vec::new();
    for (agent, crew, fate) in fates {
        let read = |pieces: Vec<Bytes>| {
            let delivered = unpack::<Delivered>(&pieces);
            delivered.map_err(|e| format!("what it delivered cannot be read: {e}"))
        };
        // One at a time: a trial takes some megabytes.
        let delivered = match fate.and_then(read) {
            Ok(delivered) => delivered,
            Err(why) => {
                agents.push(agent_lost(&agent, crew, &why));
                continue;
            }
        };
        let mut trial = delivered.trial;
        trial.spec = spec.clone();
        let mut measured = agent_measured(&agent, crew, &trial);
        measured.begun_late_ns = Some(delivered.begun_late_ns);
        agents.push(measured);
        for part in delivered.parts {
            match parts.get_mut(&part.index()) {
                Some(sum) => sum.merge(part),
                None => {
                    parts.insert(part.index(), part);
                }
            }
        }
        match &mut whole {
            Some(whole) => whole.merge(trial),
            None => whole = Some(trial),
        }
    }
    let Some(mut trial) = whole else {
        let lost = agents
            .iter()
            .find_map(|a| Some((&a.agent, a.lost_because.as_ref()?)));
        let why = match lost {
            Some((agent, why)) => format!(": agent {agent}: {why}"),
            None => String::new(),
        };
        return Err(FleetError::Gone(format!(
            "no agent delivered anything{why}"
        )));
    };
    let intervals = parts.into_values().map(|part| part.whole().0.kept());
    trial.measurement.intervals = intervals.collect();
    trial.agents = agents;
    Ok(trial)
}

/// What is left of a run whose coordinator is gone.
#[derive(Debug)]
pub struct Collected {
    /// Its last trial.
    pub key: TrialKey,
    /// When the run began, as people read it.
    pub started_at: String,
    /// What the agents measured; those that have not delivered are lost in it.
    pub trial: Trial,
}

/// Collects the last trial of a run, or of the last run that left one.
///
/// # Errors
/// NATS is not there; there is no such run, or nothing of it.
pub fn collect(access: &Access, run: Option<&str>) -> Result<Collected, FleetError> {
    let bus = Bus::connect(access, "knee fleet", COORDINATORS_INBOX)?;
    let stores = bus.stores()?;
    bus.run(async {
        let plan = match run {
            Some(run) => read_plan(&stores, run).await?,
            None => last_plan(&stores).await?,
        };
        let key = plan.key.clone();
        let pieces = fetch_stored(&stores, &key, SPEC, plan.pieces)
            .await
            .map_err(|_| {
                FleetError::Gone(format!(
                    "nothing is left of run {}: its report was made, or it is older than a day",
                    key.run
                ))
            })?;
        let spec: TrialSpec = unpack(&pieces).map_err(|e| {
            FleetError::Gone(format!("the plan of run {} cannot be read: {e}", key.run))
        })?;
        let mut fates = Vec::new();
        for (agent, crew) in plan.agents {
            let fate = any_result(&bus, &stores, &key, &agent).await;
            fates.push((agent, crew, fate));
        }
        let trial = join(&spec, fates.into_iter())?;
        Ok(Collected {
            key,
            started_at: plan.started_at,
            trial,
        })
    })
}

/// A result, wherever it is.
async fn any_result(
    bus: &Bus,
    stores: &Stores,
    key: &TrialKey,
    agent: &str,
) -> Result<Vec<Bytes>, String> {
    let subject = result_subject(key, agent, "0");
    let first = stores
        .results
        .get_last_raw_message_by_subject(&subject)
        .await;
    let header = first
        .ok()
        .and_then(|m| Some(m.headers.get(crate::words::PIECE)?.to_string()));
    if let Some((_, of)) = header.as_deref().and_then(crate::parcel::parse_piece) {
        return fetch_stored(stores, key, agent, of as u32).await;
    }
    let asked = Asked {
        client: &bus.client,
        agent,
    };
    let mut pieces = Vec::new();
    loop {
        let request = Request::new().payload(json(&(key, pieces.len())));
        let piece = asked.send(Verb::Result, request).await.unwrap_or_default();
        match (piece.is_empty(), pieces.is_empty()) {
            (false, _) => pieces.push(piece),
            (true, false) => return Ok(pieces),
            (true, true) => return Err("it has not delivered".to_owned()),
        }
    }
}

async fn read_plan(stores: &Stores, run: &str) -> Result<PlanFacts, FleetError> {
    let held = stores.plans.get(run).await;
    let held = held.map_err(|e| FleetError::Gone(format!("no plans: {}", chain(&e))))?;
    held.as_deref()
        .and_then(parse::<PlanFacts>)
        .ok_or_else(|| FleetError::Gone(format!("there is no run {run} that anything is kept of")))
}

async fn last_plan(stores: &Stores) -> Result<PlanFacts, FleetError> {
    let none = || FleetError::Gone("there is no run that anything is kept of".to_owned());
    let mut keys = stores.plans.keys().await.map_err(|_| none())?;
    let mut plans = Vec::new();
    while let Some(Ok(run)) = keys.next().await {
        plans.extend(read_plan(stores, &run).await);
    }
    plans.sort_by(|a, b| a.started_at.cmp(&b.started_at));
    plans.pop().ok_or_else(none)
}

/// Ends the trial that runs, with what was measured: its coordinator reports it. Which run that is.
///
/// # Errors
/// NATS is not there; nothing runs.
pub fn stop(access: &Access) -> Result<String, FleetError> {
    let bus = Bus::connect(access, "knee fleet", COORDINATORS_INBOX)?;
    let stores = bus.stores()?;
    bus.run(async {
        let held = stores.coordinator.get(LEASE_KEY).await.ok().flatten();
        let Some(facts) = held.as_deref().and_then(parse::<CoordinatorFacts>) else {
            return Err(FleetError::Refused("nothing runs on this fleet".to_owned()));
        };
        let plan = read_plan(&stores, &facts.run).await?;
        let names = plan.agents.iter().map(|(agent, _)| agent.as_str());
        tell(&bus.client, names, Verb::Stop, &plan.key).await;
        Ok(facts.run)
    })
}

/// Deletes the results and plans that JetStream keeps.
///
/// # Errors
/// NATS is not there; a run is under way.
pub fn clear(access: &Access) -> Result<(), FleetError> {
    let bus = Bus::connect(access, "knee fleet", COORDINATORS_INBOX)?;
    let stores = bus.stores()?;
    bus.run(async {
        let held = stores.coordinator.get(LEASE_KEY).await.ok().flatten();
        let holder = held.as_deref().and_then(parse::<CoordinatorFacts>);
        // One that found JetStream full could not give its lease back.
        let lives = |holder: &CoordinatorFacts| !is_dead(holder, &host_name());
        if let Some(facts) = holder.filter(lives) {
            return Err(FleetError::Refused(format!(
                "run {} is under way: wait for its end, or end it with 'knee fleet stop'",
                facts.run
            )));
        }
        let failed = |why: String| FleetError::Gone(format!("nothing was deleted: {why}"));
        let plans = stores.plans.stream.purge().await;
        plans.map_err(|e| failed(chain(&e)))?;
        let results = stores.results.purge().await;
        results.map(drop).map_err(|e| failed(chain(&e)))
    })
}
