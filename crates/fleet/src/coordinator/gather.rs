//! Which agents there are.

use super::{Asked, FleetOptions, Member};
use crate::bus::{Bus, Stores, chain, parse};
use crate::words::{AgentFacts, COORDINATORS_INBOX, CoordinatorFacts, LEASE_KEY, PROTOCOL};
use crate::{Access, FleetError, chrony};
use futures_util::StreamExt;
use futures_util::future::join_all;
use knee_core::measure::AgentClock;

/// An agent that holds a lease.
#[derive(Clone, Debug)]
pub struct Present {
    /// What it says of itself.
    pub facts: AgentFacts,
    /// Its clocks beside this host's; or why it does not answer.
    pub clock: Result<AgentClock, String>,
}

/// All agents, and who conducts.
///
/// # Errors
/// NATS is not there.
pub fn present(access: &Access) -> Result<(Vec<Present>, Option<CoordinatorFacts>), FleetError> {
    let bus = Bus::connect(access, "knee fleet", COORDINATORS_INBOX)?;
    let stores = bus.stores()?;
    let own_error_ns = chrony::error_ns_max();
    bus.run(async {
        let agents = leases(&stores).await?;
        let asked = agents.into_iter().map(|facts| async {
            let asked = Asked {
                client: &bus.client,
                agent: &facts.name,
            };
            let clock = asked.clock(8).await;
            let ahead = knee_engine::sys::clock::realtime_ahead_ns() as i64;
            let clock = clock.map(|read| read.told(ahead, own_error_ns));
            Present { facts, clock }
        });
        let held = stores.coordinator.get(LEASE_KEY).await.ok().flatten();
        let conducts = held.as_deref().and_then(parse::<CoordinatorFacts>);
        Ok((join_all(asked).await, conducts))
    })
}

/// Those who hold a lease, by name.
async fn leases(stores: &Stores) -> Result<Vec<AgentFacts>, FleetError> {
    let unreachable = |why: String| FleetError::Gone(format!("the agents cannot be listed: {why}"));
    let mut keys = stores
        .agents
        .keys()
        .await
        .map_err(|e| unreachable(chain(&e)))?;
    let mut agents = Vec::new();
    while let Some(key) = keys.next().await {
        let key = key.map_err(|e| unreachable(chain(&e)))?;
        let held = stores
            .agents
            .get(&key)
            .await
            .map_err(|e| unreachable(chain(&e)))?;
        let facts = held.as_deref().and_then(parse::<AgentFacts>);
        agents.extend(facts.map(|facts| AgentFacts { name: key, ..facts }));
    }
    agents.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(agents)
}

/// Those who are to take part: they answer, and are of this version.
pub(super) async fn find(
    bus: &Bus,
    stores: &Stores,
    options: &FleetOptions,
) -> Result<Vec<Member>, FleetError> {
    let all = leases(stores).await?;
    let place = &bus.place;
    if all.is_empty() {
        return Err(FleetError::Gone(format!(
            "no agents at {place}: start 'knee agent --nats {place}' on each machine"
        )));
    }
    let names: Vec<String> = all.iter().map(|facts| facts.name.clone()).collect();
    let chosen: Vec<AgentFacts> = all
        .into_iter()
        .filter(|facts| options.select.takes(facts))
        .collect();
    if chosen.is_empty() {
        return Err(FleetError::Refused(format!(
            "--agents takes none of the agents at {place}, which are {}",
            names.join(", ")
        )));
    }
    for facts in &chosen {
        if facts.version != options.version || facts.protocol != PROTOCOL {
            return Err(FleetError::Refused(format!(
                "agent {} is of knee {} (fleet protocol {}), this is {} ({PROTOCOL}): use one \
                 version on all machines",
                facts.name, facts.version, facts.protocol, options.version
            )));
        }
    }
    let asked = chosen.into_iter().map(|facts| async {
        let asked = Asked {
            client: &bus.client,
            agent: &facts.name,
        };
        (asked.clock(1).await, facts)
    });
    let mut members = Vec::new();
    for (clock, facts) in join_all(asked).await {
        match clock {
            Ok(clock) => members.push(Member {
                facts,
                clock,
                lost: None,
            }),
            Err(_) if options.allow_loss => {}
            Err(why) => {
                return Err(FleetError::Gone(format!(
                    "agent {} on {} has a lease, but {why}: see to it, leave it out with --agents, \
                     or wait 12 s for its lease to end",
                    facts.name, facts.host
                )));
            }
        }
    }
    if members.is_empty() {
        return Err(FleetError::Gone(format!("no agent at {place} answers")));
    }
    Ok(members)
}
