//! The right to conduct: one coordinator at a time.

use crate::FleetError;
use crate::bus::{Stores, json, not_stored, parse};
use crate::words::{CoordinatorFacts, FAREWELL, LEASE_KEY, RENEW};
use async_nats::Client;
use async_nats::jetstream::kv::Store;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// A lease that is renewed beside.
#[derive(Debug)]
pub(super) struct Lease {
    facts: CoordinatorFacts,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    revision: AtomicU64,
    is_over: AtomicBool,
    lost: OnceLock<String>,
}

impl Lease {
    /// Takes it.
    pub(super) async fn take(
        stores: &Stores,
        facts: CoordinatorFacts,
    ) -> Result<Lease, FleetError> {
        let store = &stores.coordinator;
        let revision = match store.create(LEASE_KEY, json(&facts)).await {
            Ok(revision) => revision,
            Err(_) => {
                let held = store.get(LEASE_KEY).await.map_err(|e| {
                    FleetError::Gone(format!("no lease for a coordinator: {}", not_stored(&e)))
                })?;
                match held.as_deref().and_then(parse::<CoordinatorFacts>) {
                    Some(other) if !is_dead(&other, &facts.host) => return Err(refusal(&other)),
                    _ => store.put(LEASE_KEY, json(&facts)).await.map_err(|e| {
                        let why = not_stored(&e);
                        FleetError::Gone(format!("no lease for a coordinator: {why}"))
                    })?,
                }
            }
        };
        let shared = Arc::new(Shared::default());
        shared.revision.store(revision, Ordering::Relaxed);
        Ok(Lease { facts, shared })
    }

    /// What keeps it, until it is given back or lost.
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
                    // It ended while NATS was away: it is ours again unless somebody has it.
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

    /// Why it is lost, if it is.
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

/// A coordinator of this host that died without giving it back.
pub(super) fn is_dead(other: &CoordinatorFacts, host: &str) -> bool {
    other.host == host && !Path::new(&format!("/proc/{}", other.pid)).exists()
}

fn refusal(other: &CoordinatorFacts) -> FleetError {
    FleetError::Refused(format!(
        "the fleet is in use: {} (process {}) conducts run {} since {}. Wait for its end, or end \
         it with 'knee fleet stop'",
        other.host, other.pid, other.run, other.since
    ))
}
