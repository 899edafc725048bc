//! The lease of the coordinator: one at a time.

use crate::bus::{Stores, json, not_stored, parse};
use crate::protocol::{CoordinatorFacts, FAREWELL, LEASE_KEY, RENEW};
use crate::{FleetError, is_dead};
use async_nats::Client;
use async_nats::jetstream::kv::Store;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The coordinator's lease, which a task renews.
#[derive(Debug)]
pub(super) struct CoordinatorLease {
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
    pub(super) async fn take(
        stores: &Stores,
        facts: CoordinatorFacts,
    ) -> Result<CoordinatorLease, FleetError> {
        let store = &stores.coordinator;
        let none = |why: String| FleetError::Gone(format!("no lease for a coordinator: {why}"));
        let revision = match store.create(LEASE_KEY, json(&facts)).await {
            Ok(revision) => revision,
            Err(_) => {
                let held = store.get(LEASE_KEY).await.map_err(|e| none(not_stored(&e)))?;
                let other = held.as_deref().and_then(parse::<CoordinatorFacts>);
                if let Some(other) = other.filter(|other| !is_dead(&other.host, other.pid)) {
                    return Err(refusal(&other));
                }
                store.put(LEASE_KEY, json(&facts)).await.map_err(|e| none(not_stored(&e)))?
            }
        };
        let shared = Arc::new(LeaseState::default());
        shared.revision.store(revision, Ordering::Relaxed);
        Ok(CoordinatorLease { facts, shared })
    }

    /// Renews the lease until it is given back or lost.
    pub(super) fn renewed(&self, store: Store) -> impl Future<Output = ()> + Send + 'static {
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
                    // It ended while NATS was away: take it again unless somebody has it.
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
    pub(super) fn lost(&self) -> Option<String> {
        self.shared.lost.get().cloned()
    }

    pub(super) async fn give_back(&self, stores: &Stores, client: &Client) {
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

fn refusal(other: &CoordinatorFacts) -> FleetError {
    FleetError::Refused(format!(
        "the fleet is in use: {} (process {}) conducts run {} since {}. Wait for its end, or end \
         it with 'knee fleet stop'",
        other.host, other.pid, other.run, other.since
    ))
}
