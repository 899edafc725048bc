//! Leases: one for each agent, its key in the bucket of agents, and one for the coordinator.
//! The holder renews its lease.
//!
//! An agent takes, renews and returns its lease by publishing only. So its login needs no
//! permission to read JetStream, which would let it send stored messages to any subject.
//!
//! A **lease** is what an agent or coordinator renews while it is there. A **worker range**
//! (`WorkerRange`) is the workers of one agent, of all that are numbered through.

use crate::bus::{Bus, NatsLink, Stores, chain, json, not_stored, parse};
use crate::is_dead;
use crate::protocol::{AGENTS, AgentFacts, CoordinatorFacts, FAREWELL, LEASE, LEASE_KEY, RENEW};
use async_nats::header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE;
use async_nats::jetstream::Context;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::kv::Store;
use async_nats::{Client, HeaderMap};
use bytes::Bytes;
use knee_engine::error::RunError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

/// A login that may read the lease of another agent gets it within this time.
const READ_PATIENCE: Duration = Duration::from_secs(2);
/// An expired lease is gone from the bucket within this time more.
const EXPIRY_SLACK: Duration = Duration::from_secs(2);
/// Time between two attempts to take a lease that is held.
const AGAIN: Duration = Duration::from_millis(500);

/// Store of the leases of agents.
#[derive(Clone, Debug)]
pub(crate) struct AgentLeases {
    stream: Context,
    link: Arc<NatsLink>,
}

impl AgentLeases {
    pub(crate) fn new(bus: &Bus) -> AgentLeases {
        AgentLeases { stream: bus.stream.clone(), link: bus.link.clone() }
    }

    /// Takes the lease under the agent's name; `false`: another agent has it.
    pub(crate) async fn take(&self, facts: &AgentFacts) -> Result<bool, RunError> {
        let since = Instant::now();
        let mut has_made_stores = false;
        loop {
            let Err(error) = self.put(facts, Some(0)).await else {
                return Ok(true);
            };
            match error.kind() {
                PublishErrorKind::WrongLastSequence => {}
                PublishErrorKind::StreamNotFound if !has_made_stores => {
                    has_made_stores = true;
                    self.make_stores().await?;
                    continue;
                }
                _ => return Err(self.refusal(&error)),
            }
            match timeout(READ_PATIENCE, self.holder(&facts.name)).await {
                Ok(Ok(Some(other))) if !is_dead(&other.host, other.pid) => return Ok(false),
                Ok(Ok(_)) => {
                    let put = self.put(facts, None).await;
                    return put.map(|()| true).map_err(|e| self.refusal(&e));
                }
                // This login may not read the holder. A lease that is not renewed expires.
                _ if since.elapsed() > LEASE + EXPIRY_SLACK => return Ok(false),
                _ => sleep(AGAIN).await,
            }
        }
    }

    /// Renews the lease with the current properties of the agent.
    pub(crate) async fn renew(&self, facts: &AgentFacts) {
        let _ = self.put(facts, None).await;
    }

    /// Gives the lease back.
    pub(crate) async fn give_back(&self, name: &str) {
        let mut headers = HeaderMap::new();
        headers.insert("KV-Operation", "DEL");
        let sent = self.stream.publish_with_headers(key(name), headers, Bytes::new());
        if let Ok(sent) = sent.await {
            let _ = sent.await;
        }
    }

    /// `after`: the sequence number of the key's last message; 0: there is none.
    async fn put(&self, facts: &AgentFacts, after: Option<u64>) -> Result<(), PublishError> {
        let mut headers = HeaderMap::new();
        if let Some(after) = after {
            let after = after.to_string();
            headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, after.as_str());
        }
        let sent = self.stream.publish_with_headers(key(&facts.name), headers, json(facts));
        sent.await?.await.map(drop)
    }

    /// The holder of a name; `None`: there is none, or its facts cannot be read.
    async fn holder(&self, name: &str) -> Result<Option<AgentFacts>, String> {
        let store = self.stream.get_key_value(AGENTS).await.map_err(|e| chain(&e))?;
        let held = store.get(name).await.map_err(|e| chain(&e))?;
        Ok(held.as_deref().and_then(parse::<AgentFacts>))
    }

    async fn make_stores(&self) -> Result<(), RunError> {
        let stores = Stores::open(&self.stream).await;
        stores.map(drop).map_err(|why| {
            RunError::FleetLost(format!(
                "JetStream is not available to this agent ({}): start nats-server with -js, or \
                 permit JetStream to this account. If agents have their own logins, run 'knee \
                 fleet ls' once with the coordinator's login to create the streams",
                self.link.refused().unwrap_or(why)
            ))
        })
    }

    fn refusal(&self, error: &PublishError) -> RunError {
        match self.link.refused() {
            Some(why) => RunError::NotPermitted(format!(
                "NATS refuses the lease of this agent ({why}): use the --name of this login"
            )),
            None => RunError::FleetLost(format!(
                "cannot take the lease of an agent: {}",
                not_stored(error)
            )),
        }
    }
}

fn key(name: &str) -> String {
    format!("$KV.{AGENTS}.{name}")
}

/// The coordinator's lease, which a task renews.
#[derive(Debug)]
pub(crate) struct CoordinatorLease {
    facts: CoordinatorFacts,
    shared: Arc<LeaseState>,
}

#[derive(Debug, Default)]
struct LeaseState {
    revision: AtomicU64,
    is_over: AtomicBool,
    lost: OnceLock<String>,
}

impl CoordinatorLease {
    /// Takes the lease.
    pub(crate) async fn take(
        stores: &Stores,
        facts: CoordinatorFacts,
    ) -> Result<CoordinatorLease, RunError> {
        let store = &stores.coordinator;
        let failed = |why: String| {
            RunError::FleetLost(format!("cannot take the coordinator's lease: {why}"))
        };
        let revision = match store.create(LEASE_KEY, json(&facts)).await {
            Ok(revision) => revision,
            Err(_) => {
                let held = store.get(LEASE_KEY).await.map_err(|e| failed(not_stored(&e)))?;
                let other = held.as_deref().and_then(parse::<CoordinatorFacts>);
                if let Some(other) = other.filter(|other| !is_dead(&other.host, other.pid)) {
                    return Err(refusal(&other));
                }
                store.put(LEASE_KEY, json(&facts)).await.map_err(|e| failed(not_stored(&e)))?
            }
        };
        let shared = Arc::new(LeaseState::default());
        shared.revision.store(revision, Ordering::Relaxed);
        Ok(CoordinatorLease { facts, shared })
    }

    /// Renews the lease until it is given back or lost.
    pub(crate) fn renewed(&self, store: Store) -> impl Future<Output = ()> + Send + 'static {
        let (shared, facts) = (self.shared.clone(), self.facts.clone());
        async move {
            let mut ticks = tokio::time::interval(RENEW);
            loop {
                ticks.tick().await;
                if shared.is_over.load(Ordering::Relaxed) {
                    return;
                }
                let revision = shared.revision.load(Ordering::Relaxed);
                let renewed = match store.update(LEASE_KEY, json(&facts), revision).await {
                    Ok(revision) => Some(revision),
                    // It expired while NATS was away: take it unless another coordinator has it.
                    Err(_) => store.create(LEASE_KEY, json(&facts)).await.ok(),
                };
                if let Some(revision) = renewed {
                    shared.revision.store(revision, Ordering::Relaxed);
                    continue;
                }
                let held = store.get(LEASE_KEY).await.ok().flatten();
                let holder = held.as_deref().and_then(parse::<CoordinatorFacts>);
                if let Some(other) = holder.filter(|other| *other != facts) {
                    let _ = shared.lost.set(refusal(&other).to_string());
                    return;
                }
            }
        }
    }

    /// Why the lease is lost, if it is.
    pub(crate) fn lost(&self) -> Option<String> {
        self.shared.lost.get().cloned()
    }

    pub(crate) async fn give_back(&self, stores: &Stores, client: &Client) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if self.lost().is_none() {
            let farewell = async {
                let _ = stores.coordinator.delete(LEASE_KEY).await;
                let _ = client.flush().await;
            };
            let _ = tokio::time::timeout(FAREWELL, farewell).await;
        }
    }
}

fn refusal(other: &CoordinatorFacts) -> RunError {
    RunError::NotPermitted(format!(
        "the fleet is in use: run {} by process {} on {} since {}. Wait for its end, or end it \
         with 'knee fleet stop'",
        other.run, other.pid, other.host, other.since
    ))
}
