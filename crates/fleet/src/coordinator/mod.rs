//! The coordinator: has each trial made by all agents together.
//!
//! One at a time works (`leases`). `gather` finds the agents. `trial` assigns workers, reads
//! clocks, announces the start, shows snapshots, and waits for results or silence. `collect` joins
//! the results.

mod collect;
mod gather;
#[cfg(test)]
mod tests;
mod trial;

pub use collect::{CollectedTrial, clear, collect, stop};
pub use gather::{AgentPresence, Selector, present};

use super::leases::CoordinatorLease;
use crate::bus::{Bus, Stores, chain, json, now_ns, parse};
use crate::clocks::{ClockEstimate, best_estimate};
use crate::protocol::{
    AgentAnswer, AgentFacts, COORDINATORS_INBOX, ClockReading, CoordinatorFacts, TargetAddress,
    TargetGreeting, TrialKey, Verb, agent_subject,
};
use crate::{NatsAccess, Patience, host_name};
use async_nats::{Client, Request};
use futures_util::future::join_all;
use knee_engine::error::RunError;
use knee_engine::observe::Vantage;
use knee_load::measure::{IntervalWatcher, Trial};
use knee_load::spec::{HttpVersion, Target, TrialSpec};
use knee_load::time::Nanos;
use serde::de::DeserializeOwned;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Time limit of a question about a target, beyond the time that the question takes itself.
const QUESTION_PATIENCE: Duration = Duration::from_secs(5);

/// Readings of a clock without an answer after which the agent counts as lost.
const READINGS_LOST_MAX: usize = 3;

/// Options of a fleet.
#[derive(Clone, Debug)]
pub struct FleetOptions {
    /// Address and credentials of NATS.
    pub access: NatsAccess,
    /// Selection of agents.
    pub select: Selector,
    /// Least number of agents that an experiment begins with.
    pub agents_min: u32,
    /// Time to wait for NATS and for these agents.
    pub patience: Patience,
    /// Whether an experiment continues without an agent that is lost between trials.
    pub allow_loss: bool,
    /// Worker threads of each agent; `None`: as many as it has cores and the load has use for.
    pub threads: Option<u32>,
    /// Begin of the run, as text.
    pub started_at: String,
}

/// The agents of an experiment, and the lease that permits running its trials on them.
#[derive(Debug)]
pub struct Fleet {
    bus: Bus,
    stores: Stores,
    options: FleetOptions,
    run: String,
    /// Number of trials so far.
    trials: u32,
    members: Vec<Member>,
    lease: CoordinatorLease,
}

/// An agent of the experiment.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) facts: AgentFacts,
    pub(crate) clock: ClockEstimate,
    /// Why it is lost, if it is.
    pub(crate) lost: Option<String>,
}

impl Fleet {
    /// Connects, takes the coordinator's lease, and finds the agents.
    ///
    /// # Errors
    /// NATS is unreachable; another coordinator holds the lease; no agent is selected, or a
    /// selected one has another version or does not answer.
    pub fn gather(options: FleetOptions) -> Result<Fleet, RunError> {
        let (bus, stores, members) = options.patience.retry(|| {
            let bus = Bus::connect(&options.access, "knee", COORDINATORS_INBOX)?;
            let stores = bus.stores()?;
            let members = bus.run(gather::find_members(&bus, &stores, &options))?;
            Ok((bus, stores, members))
        })?;
        let run = random_name();
        let facts = CoordinatorFacts {
            run: run.clone(),
            host: host_name(),
            pid: std::process::id(),
            since: options.started_at.clone(),
        };
        let lease = bus.run(CoordinatorLease::take(&stores, facts))?;
        bus.spawn(lease.renewed(stores.coordinator.clone()));
        Ok(Fleet { bus, stores, options, run, trials: 0, members, lease })
    }

    /// Agents of the experiment.
    pub fn agents(&self) -> impl Iterator<Item = &AgentFacts> {
        self.members.iter().map(|member| &member.facts)
    }

    /// Address of NATS, without secrets.
    pub fn place(&self) -> &str {
        &self.bus.place
    }

    /// The target's address, and its version of HTTP, as the first agent sees them.
    ///
    /// # Errors
    /// The target or the agent does not answer, or the answer is invalid.
    pub fn greet(
        &self,
        target: &Target,
        patience: Nanos,
    ) -> Result<(String, HttpVersion), RunError> {
        let limit = Duration::from_nanos(patience.0) + QUESTION_PATIENCE;
        let TargetGreeting { address, version } =
            self.ask_first(Verb::Greet, json(&(target, patience)), limit)?;
        Ok((address, version))
    }

    /// Address of the target of an overload, and whether it answers, as the first agent sees it.
    ///
    /// # Errors
    /// The target refuses, its host does not exist, the agent does not answer, or a source is not
    /// an address of the agent's host.
    pub fn aim(&self, target: &Target) -> Result<(SocketAddr, bool), RunError> {
        let TargetAddress { address, answers } =
            self.ask_first(Verb::Aim, json(target), 2 * QUESTION_PATIENCE)?;
        Ok((address, answers))
    }

    fn ask_first<A: DeserializeOwned>(
        &self,
        verb: Verb,
        question: bytes::Bytes,
        limit: Duration,
    ) -> Result<A, RunError> {
        let Some(first) = self.members.first() else {
            return Err(RunError::FleetLost("there is no agent".to_owned()));
        };
        let agent = first.facts.name.as_str();
        let client = AgentClient::new(&self.bus.client, agent);
        let answer: Result<Result<A, AgentAnswer>, String> =
            self.bus.run(client.ask(verb, question, limit));
        let message = |why: &str| format!("agent {agent}: {why}");
        match answer {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(AgentAnswer::No(why))) => Err(RunError::NotPermitted(message(&why))),
            Ok(Err(AgentAnswer::Unreachable(why))) => Err(RunError::Unreachable(message(&why))),
            Ok(Err(AgentAnswer::Yes)) => Err(RunError::FleetLost(message("no answer"))),
            Err(why) => Err(RunError::FleetLost(message(&why))),
        }
    }

    /// Runs a trial on all agents, with the server's side watched from `vantage`. If losses are
    /// permitted, agents that are lost before any load are left out.
    ///
    /// # Errors
    /// Before any load: an agent refuses, cannot reach the target, or is lost. Afterwards: no agent
    /// delivered a result.
    pub fn run(
        &mut self,
        spec: &TrialSpec,
        mut vantage: Option<&mut Vantage>,
        watch: &mut dyn IntervalWatcher,
        stop: &AtomicBool,
    ) -> Result<Trial, RunError> {
        loop {
            self.remove_lost_members()?;
            if let Some(why) = self.lease.lost() {
                return Err(RunError::FleetLost(why));
            }
            let key = TrialKey { run: self.run.clone(), trial: self.trials };
            self.trials += 1;
            let fleet_trial = trial::FleetTrial {
                bus: &self.bus,
                stores: &self.stores,
                options: &self.options,
                key,
                spec,
                vantage: vantage.as_deref_mut(),
            };
            let result = self.bus.run(fleet_trial.run(&mut self.members, watch, stop));
            let lost = self.members.iter().filter(|member| member.lost.is_some()).count();
            // If no agent delivered, all are lost and the run ends.
            let is_repeated = result.is_err() && (1..self.members.len()).contains(&lost);
            if !is_repeated {
                return result;
            }
        }
    }

    /// Removes lost agents if losses are permitted.
    fn remove_lost_members(&mut self) -> Result<(), RunError> {
        let mut members = self.members.iter();
        let lost = members.find_map(|m| Some((m, m.lost.as_ref()?)));
        if let Some((member, why)) = lost {
            if !self.options.allow_loss {
                return Err(RunError::FleetLost(format!(
                    "agent {} is lost: {why}. To go on with the others: --allow-loss",
                    member.facts.name
                )));
            }
            self.members.retain(|member| member.lost.is_none());
        }
        if self.members.is_empty() {
            return Err(RunError::FleetLost("every agent is lost".to_owned()));
        }
        Ok(())
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.bus.run(self.lease.give_back(&self.stores, &self.bus.client));
    }
}

/// Eight random letters.
fn random_name() -> String {
    let mut bits = RandomState::new().hash_one(now_ns());
    let letters = std::iter::repeat_with(|| {
        let letter = (bits % 26) as u8;
        bits /= 26;
        char::from(b'a' + letter)
    });
    letters.take(8).collect()
}

/// Sends a request about a trial to agents, without waiting for all answers.
pub(crate) async fn notify_agents(
    client: &Client,
    agents: impl Iterator<Item = &str>,
    verb: Verb,
    key: &TrialKey,
) {
    let requests = agents.map(|agent| async move {
        let client = AgentClient::new(client, agent);
        let limit = Duration::from_secs(2);
        let _: Result<AgentAnswer, String> = client.ask(verb, json(key), limit).await;
    });
    join_all(requests).await;
}

/// A client of one agent.
pub(crate) struct AgentClient<'a> {
    pub(crate) client: &'a Client,
    pub(crate) agent: &'a str,
}

impl<'a> AgentClient<'a> {
    pub(crate) fn new(client: &'a Client, agent: &'a str) -> AgentClient<'a> {
        AgentClient { client, agent }
    }

    /// Sends a request and parses the answer.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        verb: Verb,
        payload: bytes::Bytes,
        limit: Duration,
    ) -> Result<T, String> {
        let request = Request::new().payload(payload).timeout(Some(limit));
        let answer = self.send(verb, request).await?;
        parse(&answer).ok_or_else(|| "its answer cannot be read".to_owned())
    }

    /// Sends a request and returns the answer.
    pub(crate) async fn send(&self, verb: Verb, request: Request) -> Result<bytes::Bytes, String> {
        let subject = agent_subject(self.agent, verb);
        match self.client.send_request(subject, request).await {
            Ok(message) => Ok(message.payload),
            Err(e) => Err(match e.kind() {
                async_nats::RequestErrorKind::NoResponders => "it is gone".to_owned(),
                async_nats::RequestErrorKind::TimedOut => "it does not answer".to_owned(),
                _ => chain(&e),
            }),
        }
    }

    /// Reads the agent's clock from the best of several readings, some of which may get lost on a
    /// busy host.
    pub(crate) async fn clock(&self, readings: usize) -> Result<ClockEstimate, String> {
        let mut exchanges = Vec::new();
        let mut lost = 0;
        for _ in 0..readings {
            let sent_ns = now_ns();
            let limit = Duration::from_secs(2);
            match self.ask::<ClockReading>(Verb::Clock, bytes::Bytes::new(), limit).await {
                Ok(reading) => exchanges.push((sent_ns, now_ns(), reading)),
                Err(why) => {
                    lost += 1;
                    if lost == READINGS_LOST_MAX.min(readings) {
                        return Err(why);
                    }
                }
            }
        }
        best_estimate(&exchanges).ok_or_else(|| "it has no clock".to_owned())
    }
}
