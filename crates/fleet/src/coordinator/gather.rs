//! Finds the agents of a fleet, and selects those of an experiment.

use super::{AgentClient, FleetOptions, Member};
use crate::NatsAccess;
use crate::bus::{Bus, Stores, chain, parse};
use crate::clocks::chrony_error_ns_max;
use crate::protocol::{
    AGENTS, AgentFacts, COORDINATORS_INBOX, CoordinatorFacts, PROTOCOL, VERSION,
};
use futures_util::future::join_all;
use futures_util::{StreamExt, TryStreamExt};
use knee_engine::error::RunError;
use knee_load::measure::AgentClock;
use std::collections::BTreeSet;

/// An agent that holds a lease.
#[derive(Clone, Debug)]
pub struct AgentPresence {
    /// Properties of the agent.
    pub facts: AgentFacts,
    /// Its clock relative to this host's; or why it does not answer.
    pub clock: Result<AgentClock, String>,
}

/// All agents, and the coordinator that holds the lease.
///
/// # Errors
/// NATS is unreachable.
pub fn present(
    access: &NatsAccess,
) -> Result<(Vec<AgentPresence>, Option<CoordinatorFacts>), RunError> {
    let bus = Bus::connect(access, "knee fleet", COORDINATORS_INBOX)?;
    let stores = bus.stores()?;
    let own_error_ns = chrony_error_ns_max();
    bus.run(async {
        let agents = list_agents(&stores).await?;
        let presences = agents.into_iter().map(|facts| async {
            let clock = AgentClient::new(&bus.client, &facts.name).clock(8).await;
            let ahead = knee_engine::sys::clock::realtime_ahead_ns() as i64;
            let clock = clock.map(|estimate| estimate.for_report(ahead, own_error_ns));
            AgentPresence { facts, clock }
        });
        let coordinator = stores.conductor().await;
        Ok((join_all(presences).await, coordinator))
    })
}

/// Leases that are read at a time.
const READ_AT_ONCE: usize = 64;

/// Agents that hold a lease, by name.
async fn list_agents(stores: &Stores) -> Result<Vec<AgentFacts>, RunError> {
    let unreachable =
        |why: String| RunError::FleetLost(format!("the agents cannot be listed: {why}"));
    let bucket = format!("$KV.{AGENTS}.");
    // One answer of the server has all keys. Reading key by key misses one that is renewed
    // meanwhile, or returns it twice.
    let subjects = stores.agents.stream.info_with_subjects(format!("{bucket}>")).await;
    let subjects = subjects.map_err(|e| unreachable(chain(&e)))?;
    let subjects: BTreeSet<String> = subjects
        .map_ok(|(subject, _)| subject)
        .try_collect()
        .await
        .map_err(|e| unreachable(chain(&e)))?;
    let names = subjects.iter().filter_map(|subject| subject.strip_prefix(&bucket));
    let reads = names.map(|name| async move { (name, stores.agents.get(name).await) });
    let mut values = futures_util::stream::iter(reads).buffered(READ_AT_ONCE);
    let mut agents = Vec::new();
    while let Some((name, value)) = values.next().await {
        let value = value.map_err(|e| unreachable(chain(&e)))?;
        let facts = value.as_deref().and_then(parse::<AgentFacts>);
        agents.extend(facts.map(|facts| AgentFacts { name: name.to_owned(), ..facts }));
    }
    Ok(agents)
}

/// Names that a message lists.
const NAMES_SHOWN_MAX: usize = 12;

fn list_names(names: &[&str]) -> String {
    let shown = names[..names.len().min(NAMES_SHOWN_MAX)].join(", ");
    match names.len().saturating_sub(NAMES_SHOWN_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Agents that take part: they are selected, answer, and are of this version.
pub(super) async fn find_members(
    bus: &Bus,
    stores: &Stores,
    options: &FleetOptions,
) -> Result<Vec<Member>, RunError> {
    let agents = list_agents(stores).await?;
    let place = &bus.place;
    if agents.is_empty() {
        return Err(RunError::FleetLost(format!(
            "no agents at {place}: start 'knee agent --nats {place}' on each machine"
        )));
    }
    let (chosen, others): (Vec<AgentFacts>, Vec<_>) =
        agents.into_iter().partition(|facts| options.select.takes(facts));
    if chosen.is_empty() {
        let names: Vec<&str> = others.iter().map(|facts| facts.name.as_str()).collect();
        return Err(RunError::NotPermitted(format!(
            "--agents takes none of the agents at {place}, which are {}",
            list_names(&names)
        )));
    }
    for facts in &chosen {
        if facts.version != VERSION || facts.protocol != PROTOCOL {
            return Err(RunError::NotPermitted(format!(
                "agent {} is of knee {} (fleet protocol {}), this is {VERSION} ({PROTOCOL}): use \
                 one version on all machines",
                facts.name, facts.version, facts.protocol
            )));
        }
    }
    let readings = chosen.into_iter().map(|facts| async {
        let clock = AgentClient::new(&bus.client, &facts.name).clock(1).await;
        (clock, facts)
    });
    let mut members: Vec<Member> = Vec::new();
    for (clock, facts) in join_all(readings).await {
        match clock {
            Ok(clock) => members.push(Member { facts, clock, lost: None }),
            Err(_) if options.allow_loss => {}
            Err(why) => {
                return Err(RunError::FleetLost(format!(
                    "agent {} on {} has a lease, but {why}: restart it, exclude it with --agents, \
                     or wait 12 s for its lease to end",
                    facts.name, facts.host
                )));
            }
        }
    }
    if members.is_empty() {
        return Err(RunError::FleetLost(format!("no agent at {place} answers")));
    }
    let least = options.agents_min as usize;
    if members.len() < least {
        let names: Vec<&str> = members.iter().map(|member| member.facts.name.as_str()).collect();
        return Err(RunError::FleetLost(format!(
            "{} of the {least} agents of --agents-min at {place}: {}",
            members.len(),
            list_names(&names)
        )));
    }
    Ok(members)
}

/// A choice of agents. A name takes that agent. Of labels, those of one key are alternatives, and
/// one of each key has to fit: `zone=a,zone=b,disk=fast`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    names: Vec<String>,
    labels: Vec<(String, String)>,
}

impl Selector {
    /// Reads `zone=a,zone=b` or `loader1,loader2`.
    ///
    /// # Errors
    /// A part is empty.
    pub fn parse(text: &str) -> Result<Selector, String> {
        let mut selector = Selector::default();
        for part in text.split(',').map(str::trim) {
            match part.split_once('=') {
                None if !part.is_empty() => selector.names.push(part.to_owned()),
                Some((key, value)) if !key.is_empty() && !value.is_empty() => {
                    selector.labels.push((key.to_owned(), value.to_owned()));
                }
                _ => {
                    return Err(format!(
                        "'{text}' has a part that is neither a name nor a label: expected NAME or \
                         KEY=VALUE, with commas between them, such as zone=a,zone=b"
                    ));
                }
            }
        }
        Ok(selector)
    }

    /// Whether it selects this agent.
    pub fn takes(&self, agent: &AgentFacts) -> bool {
        if self.names.contains(&agent.name) {
            return true;
        }
        let has_alternative = |key: &str| {
            let mut wanted = self.labels.iter().filter(|(k, _)| k == key);
            wanted.any(|label| agent.labels.contains(label))
        };
        let by_labels = self.labels.iter().all(|(key, _)| has_alternative(key));
        by_labels && (self.names.is_empty() || !self.labels.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::facts_of_test;

    #[test]
    fn a_long_list_of_names_is_cut() {
        let names: Vec<String> = (1..=15).map(|number| format!("a{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(list_names(&names[..2]), "a1, a2");
        assert_eq!(list_names(&names[..12]), names[..12].join(", "));
        assert!(list_names(&names).ends_with("a11, a12 and 3 more"));
    }

    #[test]
    fn labels_of_one_key_are_alternatives() {
        let agent = |name: &str, labels: &[(&str, &str)]| {
            let mut facts = facts_of_test(name);
            let owned = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
            facts.labels = owned.collect();
            facts
        };
        let (a, b) = (agent("a", &[("zone", "a")]), agent("b", &[("zone", "b"), ("disk", "x")]));
        let takes = |text: &str| {
            let selector = Selector::parse(text).unwrap();
            (selector.takes(&a), selector.takes(&b))
        };
        assert_eq!(takes("zone=a,zone=b"), (true, true));
        assert_eq!(takes("zone=b"), (false, true));
        assert_eq!(takes("zone=a,zone=b,disk=x"), (false, true));
        assert_eq!(takes("a"), (true, false));
        assert_eq!(takes("a,disk=x"), (true, true));
        assert!(Selector::default().takes(&a));
        for wrong in ["", "=a", "zone=", "a,,b"] {
            assert!(Selector::parse(wrong).is_err(), "{wrong}");
        }
    }
}
