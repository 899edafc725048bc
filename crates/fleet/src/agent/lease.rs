//! The lease of an agent: its key in the bucket of agents, renewed while it is there.
//!
//! It is taken, renewed and given back by publishing alone. An agent's login needs no right to read
//! JetStream, which would let it have a stored message sent to any subject.

use crate::bus::{Bus, NatsLink, Stores, chain, json, not_stored, parse};
use crate::protocol::{AGENTS, AgentFacts, LEASE};
use crate::{FleetError, is_dead};
use async_nats::HeaderMap;
use async_nats::header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE;
use async_nats::jetstream::Context;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use bytes::Bytes;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

/// A login that may read the lease of another agent gets it within this time.
const READ_PATIENCE: Duration = Duration::from_secs(2);
/// An expired lease is gone from the bucket within this time more.
const EXPIRY_SLACK: Duration = Duration::from_secs(2);
/// Time between two attempts to take a lease that somebody has.
const AGAIN: Duration = Duration::from_millis(500);

/// Store of the leases of agents.
#[derive(Clone, Debug)]
pub(super) struct AgentLeases {
    stream: Context,
    link: Arc<NatsLink>,
}

impl AgentLeases {
    pub(super) fn of(bus: &Bus) -> AgentLeases {
        AgentLeases { stream: bus.stream.clone(), link: bus.link.clone() }
    }

    /// Takes the lease under the agent's name; `false`: another agent has it.
    pub(super) async fn take(&self, facts: &AgentFacts) -> Result<bool, FleetError> {
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
                    return self
                        .put(facts, None)
                        .await
                        .map(|()| true)
                        .map_err(|e| self.refusal(&e));
                }
                // It may not read who has it. A lease that nobody renews ends by itself.
                _ if since.elapsed() > LEASE + EXPIRY_SLACK => return Ok(false),
                _ => sleep(AGAIN).await,
            }
        }
    }

    /// Renews the lease with the current properties of the agent.
    pub(super) async fn renew(&self, facts: &AgentFacts) {
        let _ = self.put(facts, None).await;
    }

    /// Gives the lease back.
    pub(super) async fn give_back(&self, name: &str) {
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

    /// Who has it; `None`: nobody, or somebody who cannot be made out.
    async fn holder(&self, name: &str) -> Result<Option<AgentFacts>, String> {
        let store = self.stream.get_key_value(AGENTS).await.map_err(|e| chain(&e))?;
        let held = store.get(name).await.map_err(|e| chain(&e))?;
        Ok(held.as_deref().and_then(parse::<AgentFacts>))
    }

    async fn make_stores(&self) -> Result<(), FleetError> {
        let made = Stores::open(&self.stream).await;
        made.map(drop).map_err(|why| {
            FleetError::Gone(format!(
                "NATS has no JetStream for this agent ({}): start it with -js, or permit it to \
                 this account. Where agents have logins of their own, run 'knee fleet ls' once \
                 with the coordinator's login, which makes the streams",
                self.link.refused().unwrap_or(why)
            ))
        })
    }

    fn refusal(&self, error: &PublishError) -> FleetError {
        match self.link.refused() {
            Some(why) => FleetError::Refused(format!(
                "NATS refuses the lease of this agent ({why}): give the --name that this login \
                 is for"
            )),
            None => FleetError::Gone(format!("no lease for an agent: {}", not_stored(error))),
        }
    }
}

fn key(name: &str) -> String {
    format!("$KV.{AGENTS}.{name}")
}
