//! Limits that an agent's operator sets, so that stolen credentials cannot be used for an attack.

use knee_engine::error::RunError;
use knee_engine::permit::{Permit, least_per_s};
use knee_load::spec::{Endpoint, GivenAddresses, Proxy, Target, TrialSpec, WorkerRange};
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Checks whether a crew may make its part of a trial. The target's name is looked up once: the
/// addresses that were permitted are loaded, whatever a name server says later.
pub(crate) fn check(
    permit: &Permit,
    spec: &mut TrialSpec,
    crew: WorkerRange,
) -> Result<(), RunError> {
    if let (Some(max), Some(per_s)) = (permit.rate_max, least_per_s(spec)) {
        let share = per_s * crew.weight();
        if share > max * (1.0 + RATE_GRAIN) {
            return Err(RunError::NotPermitted(format!(
                "its share is {share:.0} operations per second, and its --rate-max is {max:.0}"
            )));
        }
    }
    pin(permit, &mut spec.target)
}

/// Gives the names of the target's servers, and of their proxies, the addresses that they have
/// now, if all of these are permitted.
pub(crate) fn pin(permit: &Permit, target: &mut Target) -> Result<(), RunError> {
    let proxies = target.proxies().into_iter().map(Proxy::endpoint);
    let further = target.further.iter().map(|server| server.endpoint.clone());
    let places: Vec<Endpoint> =
        std::iter::once(target.endpoint.clone()).chain(further).chain(proxies).collect();
    for place in places {
        let Endpoint::Tcp { host, port } = place else {
            continue;
        };
        let addresses: Vec<IpAddr> = match target.route.given_for(&host, port) {
            Some(given) => given.addresses.clone(),
            None => (host.as_str(), port)
                .to_socket_addrs()
                .map_err(|e| {
                    let why = knee_engine::error::reason(&e);
                    RunError::Unreachable(format!("{host}: {why}"))
                })?
                .map(|address| address.ip())
                .collect(),
        };
        for address in &addresses {
            let checked = permit.check_address(&host, *address);
            checked.map_err(|why| RunError::NotPermitted(format!("it {why}")))?;
        }
        if host.parse::<IpAddr>().is_err() && !host.contains('%') {
            target.route.given.push(GivenAddresses { host, port, addresses, expires: false });
        }
    }
    Ok(())
}

/// A share of a rate may exceed a limit by this, through rounding.
const RATE_GRAIN: f64 = 1e-9;

/// Limits the connects of an agent outside of trials: questions about a target connect to it, and
/// so does the preparation of a trial.
#[derive(Debug)]
pub(crate) struct Spacing {
    /// Time between two operations; `None`: there is no limit.
    gap: Option<Duration>,
    next: Mutex<Instant>,
}

impl Spacing {
    pub(crate) fn new(rate_max: Option<f64>) -> Spacing {
        let gap = |per_s| Duration::try_from_secs_f64(1.0 / per_s).unwrap_or(Duration::MAX);
        Spacing { gap: rate_max.map(gap), next: Mutex::new(Instant::now()) }
    }

    /// Waits until the next operation may start, if that is within `patience`; whether it may.
    pub(crate) fn wait(&self, patience: Duration) -> bool {
        let Some(wait) = self.reserve(1, Instant::now(), patience) else {
            return false;
        };
        std::thread::sleep(wait);
        true
    }

    /// Delays the next operation by the time of `operations`.
    pub(crate) fn charge(&self, operations: u32) {
        self.reserve(operations, Instant::now(), Duration::MAX);
    }

    fn reserve(&self, operations: u32, now: Instant, patience: Duration) -> Option<Duration> {
        let Some(gap) = self.gap else {
            return Some(Duration::ZERO);
        };
        let mut next = self.next.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let wait = next.saturating_duration_since(now);
        if wait > patience {
            return None;
        }
        let charged = gap.saturating_mul(operations);
        *next = (now + wait).checked_add(charged).unwrap_or(*next);
        Some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connects_beside_trials_are_spaced_by_the_limit() {
        let spacing = Spacing::new(Some(10.0));
        let now = Instant::now() + Duration::from_secs(1);
        let second = Duration::from_secs(1);
        let gap = Duration::from_millis(100);
        let reserve = |operations| spacing.reserve(operations, now, second);
        assert_eq!(reserve(1), Some(Duration::ZERO));
        assert_eq!(reserve(9), Some(gap));
        assert_eq!(reserve(1), Some(second));
        assert_eq!(reserve(1), None, "beyond its patience");
        let free = Spacing::new(None);
        assert_eq!(free.reserve(1_000, now, Duration::ZERO), Some(Duration::ZERO));
        assert_eq!(free.reserve(1, now, Duration::ZERO), Some(Duration::ZERO));
    }
}
