//! What an agent's operator permits, so that a stolen credential is no weapon.

use knee_engine::error::RunError;
use knee_load::spec::{
    ConnectScheme, Endpoint, GivenAddresses, Load, OverloadLoad, Proxy, Target, TrialSpec,
    WorkerRange,
};
use std::fmt;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Targets that an agent loads, and its highest rate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Permit {
    /// Networks whose hosts it may load. Loopback is always permitted.
    pub targets: Vec<Cidr>,
    /// Most operations per second; `None`: no limit.
    pub rate_max: Option<f64>,
}

/// A network: an address and how many of its first bits count (RFC 4632).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    address: IpAddr,
    bits: u8,
}

impl Cidr {
    /// Reads `10.0.0.0/8`, `fd00::/8` or one address.
    ///
    /// # Errors
    /// It is neither.
    pub fn parse(text: &str) -> Result<Cidr, String> {
        let wrong = || {
            format!(
                "'{text}' is no network: expected ADDRESS/BITS, such as 10.0.0.0/8, or an address"
            )
        };
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Some(most), |bits| bits.parse().ok());
        let bits = bits.filter(|&b: &u8| b <= most).ok_or_else(wrong)?;
        Ok(Cidr { address, bits })
    }

    /// Whether an address lies in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        let same = |network: u128, address: u128, width: u32| {
            let rest = width - u32::from(self.bits);
            rest >= width || network >> rest == address >> rest
        };
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                same(u32::from(network).into(), u32::from(address).into(), 32)
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => same(network.into(), address.into(), 128),
            _ => false,
        }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl Permit {
    fn permits(&self, address: IpAddr) -> bool {
        address.to_canonical().is_loopback() || self.targets.iter().any(|net| net.contains(address))
    }

    /// Checks one address of a host. A host may be loaded if all its addresses may.
    ///
    /// # Errors
    /// It may not be loaded: one line that says which option permits it.
    pub fn check_address(&self, host: &str, address: IpAddr) -> Result<(), String> {
        if self.permits(address) {
            return Ok(());
        }
        let address = address.to_canonical();
        Err(format!("may not load {address} ({host}): start it with --allow-target {address}"))
    }

    /// Checks whether a crew may make its part of a trial. The target's name is looked up once: the
    /// addresses that were permitted are loaded, whatever a name server says later.
    pub(crate) fn check(&self, spec: &mut TrialSpec, crew: WorkerRange) -> Result<(), RunError> {
        if let (Some(max), Some(per_s)) = (self.rate_max, least_per_s(spec)) {
            let asked = per_s * crew.weight();
            if asked > max * (1.0 + RATE_GRAIN) {
                return Err(RunError::NotPermitted(format!(
                    "its share is {asked:.0} operations per second, and its --rate-max is {max:.0}"
                )));
            }
        }
        self.pin(&mut spec.target)
    }

    /// Gives the names of the target's servers, and of their proxies, the addresses that they have
    /// now, if all of these are permitted.
    pub(crate) fn pin(&self, target: &mut Target) -> Result<(), RunError> {
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
                let checked = self.check_address(&host, *address);
                checked.map_err(|why| RunError::NotPermitted(format!("it {why}")))?;
            }
            if host.parse::<IpAddr>().is_err() && !host.contains('%') {
                target.route.given.push(GivenAddresses { host, port, addresses, expires: false });
            }
        }
        Ok(())
    }
}

/// A share of a rate may exceed a limit by this, through rounding.
const RATE_GRAIN: f64 = 1e-9;

/// Operations per second that a load has at its highest, whatever the target does; `None` where
/// that depends on the target.
pub fn least_per_s(spec: &TrialSpec) -> Option<f64> {
    if let Some((rate, arrival)) = spec.load.schedule() {
        return Some(arrival.peak_per_s(rate));
    }
    match &spec.load {
        Load::Overload(OverloadLoad {
            scheme: ConnectScheme::SClients { descriptors, .. },
            ..
        }) => Some(f64::from(*descriptors) / spec.connect_timeout.as_secs_f64().max(1e-9)),
        _ => None,
    }
}

/// Keeps what an agent does beside the operations of a trial within its limit.
///
/// Questions about a target connect to it, and so does the preparation of a trial.
#[derive(Debug)]
pub(crate) struct Spacing {
    /// Time between two operations; `None`: there is no limit.
    gap: Option<Duration>,
    next: Mutex<Instant>,
}

impl Spacing {
    pub(crate) fn of(rate_max: Option<f64>) -> Spacing {
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

    /// Has the next operation wait for the time of `operations` more.
    pub(crate) fn charge(&self, operations: u32) {
        self.reserve(operations, Instant::now(), Duration::MAX);
    }

    fn reserve(&self, operations: u32, now: Instant, patience: Duration) -> Option<Duration> {
        let Some(gap) = self.gap else {
            return Some(Duration::ZERO);
        };
        let next = self.next.lock();
        let mut next = next.unwrap_or_else(std::sync::PoisonError::into_inner);
        let wait = next.saturating_duration_since(now);
        if wait > patience {
            return None;
        }
        let taken = gap.saturating_mul(operations);
        *next = (now + wait).checked_add(taken).unwrap_or(*next);
        Some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_the_addresses_that_begin_as_it_does() {
        let holds =
            |net: &str, address: &str| Cidr::parse(net).unwrap().contains(address.parse().unwrap());
        assert!(holds("10.0.0.0/8", "10.200.3.4"));
        assert!(!holds("10.0.0.0/8", "11.0.0.1"));
        assert!(holds("10.1.2.3", "10.1.2.3"));
        assert!(!holds("10.1.2.3", "10.1.2.4"));
        assert!(holds("0.0.0.0/0", "8.8.8.8"));
        assert!(!holds("0.0.0.0/0", "fd00::1"));
        assert!(holds("::/0", "fd00::1"));
        assert!(holds("fd00::/8", "fd12::1"));
        assert!(!holds("fd00::/8", "fe80::1"));
        // The same host by its address within IPv6.
        assert!(holds("10.0.0.0/8", "::ffff:10.1.1.1"));
        for wrong in ["", "10.0.0.0/33", "::/129", "10.0.0.0/", "here/8", "10.0.0/8"] {
            assert!(Cidr::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn connects_beside_trials_are_spaced_by_the_limit() {
        let spacing = Spacing::of(Some(10.0));
        let now = Instant::now() + Duration::from_secs(1);
        let second = Duration::from_secs(1);
        let gap = Duration::from_millis(100);
        let reserve = |operations| spacing.reserve(operations, now, second);
        assert_eq!(reserve(1), Some(Duration::ZERO));
        assert_eq!(reserve(9), Some(gap));
        assert_eq!(reserve(1), Some(second));
        assert_eq!(reserve(1), None, "beyond its patience");
        let free = Spacing::of(None);
        assert_eq!(free.reserve(1_000, now, Duration::ZERO), Some(Duration::ZERO));
        assert_eq!(free.reserve(1, now, Duration::ZERO), Some(Duration::ZERO));
    }

    #[test]
    fn loopback_needs_no_permission_and_all_else_does() {
        let permit = Permit::default();
        assert!(permit.permits("127.9.9.9".parse().unwrap()));
        assert!(permit.permits("::1".parse().unwrap()));
        assert!(!permit.permits("10.0.0.1".parse().unwrap()));
        assert!(!permit.permits("::ffff:10.0.0.1".parse().unwrap()));
    }
}
