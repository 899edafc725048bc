//! Fetches the results of agents and joins them into one trial.

use super::{AgentClient, notify_agents};
use crate::bus::{Bus, Stores, chain, json, parse};
use crate::interval_share::IntervalShare;
use crate::parcel::unpack;
use crate::protocol::{
    COORDINATORS_INBOX, CoordinatorFacts, DeliveredPart, PlanFacts, SPEC, TrialKey, Verb,
    result_subject,
};
use crate::{NatsAccess, is_dead};
use async_nats::Request;
use bytes::Bytes;
use futures_util::StreamExt;
use knee_core::trial::agents::{agent_lost, agent_measured};
use knee_engine::error::RunError;
use knee_load::measure::{AgentMeasured, Trial};
use knee_load::spec::{TrialSpec, WorkerRange};
use std::collections::BTreeMap;

/// Fetches the pieces of a result from JetStream.
pub(super) async fn fetch_stored(
    stores: &Stores,
    key: &TrialKey,
    agent: &str,
    count: u32,
) -> Result<Vec<Bytes>, String> {
    let mut pieces = Vec::new();
    for number in 0..count {
        let subject = result_subject(key, agent, &number.to_string());
        let message = stores.results.get_last_raw_message_by_subject(&subject);
        pieces.push(message.await.map_err(|e| chain(&e))?.payload);
    }
    Ok(pieces)
}

/// Fetches the pieces of a result from its agent.
pub(super) async fn fetch_kept(
    client: &AgentClient<'_>,
    key: &TrialKey,
    count: u32,
) -> Result<Vec<Bytes>, String> {
    let mut pieces = Vec::new();
    for number in 0..count as usize {
        let request = Request::new().payload(json(&(key, number)));
        let piece = client.send(Verb::Result, request).await?;
        if piece.is_empty() {
            return Err("it no longer has the result".to_owned());
        }
        pieces.push(piece);
    }
    Ok(pieces)
}

/// A trial that is joined from the results of agents as they come: a result takes some megabytes
/// once it is unpacked.
#[derive(Default)]
pub(super) struct JoinedTrial {
    trial: Option<Trial>,
    /// Intervals by their index.
    parts: BTreeMap<u64, IntervalShare>,
    agents: Vec<AgentMeasured>,
}

impl JoinedTrial {
    /// Adds the packed result of an agent.
    ///
    /// # Errors
    /// The result cannot be read; nothing is added.
    pub(super) fn add(
        &mut self,
        spec: &TrialSpec,
        agent: &str,
        crew: WorkerRange,
        pieces: &[Bytes],
    ) -> Result<(), String> {
        let DeliveredPart { mut trial, parts, begun_late_ns, .. } =
            unpack(pieces).map_err(|e| format!("its result cannot be read: {e}"))?;
        trial.spec = spec.clone();
        let mut measured = agent_measured(agent, crew, &trial);
        measured.begun_late_ns = Some(begun_late_ns);
        self.agents.push(measured);
        for part in parts {
            match self.parts.get_mut(&part.index()) {
                Some(sum) => sum.merge(part),
                None => {
                    self.parts.insert(part.index(), part);
                }
            }
        }
        match &mut self.trial {
            Some(sum) => sum.merge(trial),
            None => self.trial = Some(trial),
        }
        Ok(())
    }

    /// Adds an agent without a result, and the reason.
    pub(super) fn add_lost(&mut self, agent: &str, crew: WorkerRange, why: &str) {
        self.agents.push(agent_lost(agent, crew, why));
    }

    /// The trial, with its agents in the order of their names.
    ///
    /// # Errors
    /// No agent delivered a result.
    pub(super) fn finish(mut self) -> Result<Trial, RunError> {
        self.agents.sort_by(|a, b| a.agent.cmp(&b.agent));
        let Some(mut trial) = self.trial else {
            let lost = self.agents.iter().find_map(|a| Some((&a.agent, a.lost_because.as_ref()?)));
            let why = lost.map(|(agent, why)| format!(": agent {agent}: {why}"));
            let why = why.unwrap_or_default();
            return Err(RunError::FleetLost(format!("no agent delivered a result{why}")));
        };
        let intervals = self.parts.into_values().map(|part| part.into_interval().0.kept());
        trial.measurement.intervals = intervals.collect();
        trial.agents = self.agents;
        Ok(trial)
    }
}

/// The last trial of a run whose coordinator is gone.
#[derive(Debug)]
pub struct CollectedTrial {
    /// Key of the trial.
    pub key: TrialKey,
    /// Begin of the run, as text.
    pub started_at: String,
    /// Joined results; agents that have not delivered count as lost.
    pub trial: Trial,
}

/// Collects the last trial of a run, or of the last run that left one.
///
/// # Errors
/// NATS is unreachable, or nothing is stored for this run.
pub fn collect(access: &NatsAccess, run: Option<&str>) -> Result<CollectedTrial, RunError> {
    let bus = Bus::connect(access, "knee fleet", COORDINATORS_INBOX)?;
    let stores = bus.stores()?;
    bus.run(async {
        let plan = match run {
            Some(run) => read_plan(&stores, run).await?,
            None => last_plan(&stores).await?,
        };
        let key = plan.key.clone();
        let pieces = fetch_stored(&stores, &key, SPEC, plan.pieces).await.map_err(|_| {
            RunError::FleetLost(format!(
                "nothing is left of run {}: its report was made, or it is older than a day",
                key.run
            ))
        })?;
        let spec: TrialSpec = unpack(&pieces).map_err(|e| {
            RunError::FleetLost(format!("the plan of run {} cannot be read: {e}", key.run))
        })?;
        let mut joined = JoinedTrial::default();
        for (agent, crew) in plan.agents {
            let pieces = fetch_result(&bus, &stores, &key, &agent).await;
            let added = pieces.and_then(|pieces| joined.add(&spec, &agent, crew, &pieces));
            added.unwrap_or_else(|why| joined.add_lost(&agent, crew, &why));
        }
        let trial = joined.finish()?;
        Ok(CollectedTrial { key, started_at: plan.started_at, trial })
    })
}

/// Fetches a result from JetStream, or else from its agent.
async fn fetch_result(
    bus: &Bus,
    stores: &Stores,
    key: &TrialKey,
    agent: &str,
) -> Result<Vec<Bytes>, String> {
    let subject = result_subject(key, agent, "0");
    let first = stores.results.get_last_raw_message_by_subject(&subject);
    let header =
        first.await.ok().and_then(|m| Some(m.headers.get(crate::protocol::PIECE)?.to_string()));
    if let Some((_, count)) = header.as_deref().and_then(crate::parcel::parse_piece) {
        return fetch_stored(stores, key, agent, count as u32).await;
    }
    let client = AgentClient::new(&bus.client, agent);
    let mut pieces = Vec::new();
    loop {
        let request = Request::new().payload(json(&(key, pieces.len())));
        let piece = client.send(Verb::Result, request).await.unwrap_or_default();
        match (piece.is_empty(), pieces.is_empty()) {
            (false, _) => pieces.push(piece),
            (true, false) => return Ok(pieces),
            (true, true) => return Err("it has not delivered".to_owned()),
        }
    }
}

async fn read_plan(stores: &Stores, run: &str) -> Result<PlanFacts, RunError> {
    let plan = stores.plans.get(run).await;
    let plan =
        plan.map_err(|e| RunError::FleetLost(format!("cannot read plans: {}", chain(&e))))?;
    plan.as_deref()
        .and_then(parse::<PlanFacts>)
        .ok_or_else(|| RunError::FleetLost(format!("nothing is stored for run {run}")))
}

async fn last_plan(stores: &Stores) -> Result<PlanFacts, RunError> {
    let none = || RunError::FleetLost("no run is stored".to_owned());
    let mut keys = stores.plans.keys().await.map_err(|_| none())?;
    let mut plans = Vec::new();
    while let Some(Ok(run)) = keys.next().await {
        plans.extend(read_plan(stores, &run).await);
    }
    plans.into_iter().max_by(|a, b| a.started_at.cmp(&b.started_at)).ok_or_else(none)
}

/// Ends the trial that runs early; its coordinator reports it. Returns the run.
///
/// # Errors
/// NATS is unreachable, or no run is in progress.
pub fn stop(access: &NatsAccess) -> Result<String, RunError> {
    let bus = Bus::connect(access, "knee fleet", COORDINATORS_INBOX)?;
    let stores = bus.stores()?;
    bus.run(async {
        let Some(facts) = stores.conductor().await else {
            return Err(RunError::NotPermitted("no run is in progress on this fleet".to_owned()));
        };
        let plan = read_plan(&stores, &facts.run).await?;
        let names = plan.agents.iter().map(|(agent, _)| agent.as_str());
        notify_agents(&bus.client, names, Verb::Stop, &plan.key).await;
        Ok(facts.run)
    })
}

/// Deletes the results and plans that JetStream keeps.
///
/// # Errors
/// NATS is unreachable, or a run is in progress.
pub fn clear(access: &NatsAccess) -> Result<(), RunError> {
    let bus = Bus::connect(access, "knee fleet", COORDINATORS_INBOX)?;
    let stores = bus.stores()?;
    bus.run(async {
        // A coordinator that found JetStream full could not give its lease back.
        let is_alive = |holder: &CoordinatorFacts| !is_dead(&holder.host, holder.pid);
        if let Some(facts) = stores.conductor().await.filter(is_alive) {
            return Err(RunError::NotPermitted(format!(
                "run {} is in progress: wait for its end, or end it with 'knee fleet stop'",
                facts.run
            )));
        }
        let failed = |why: String| RunError::FleetLost(format!("nothing was deleted: {why}"));
        stores.plans.stream.purge().await.map_err(|e| failed(chain(&e)))?;
        stores.results.purge().await.map(drop).map_err(|e| failed(chain(&e)))
    })
}
