//! Hosts that may be loaded, and how fast: limits that the operator of an agent sets, or whoever
//! confines this process.

use knee_load::spec::{ConnectScheme, Load, OverloadLoad, TrialSpec};
use std::fmt;
use std::net::IpAddr;

/// Targets that may be loaded, and the highest rate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Permit {
    /// Networks whose hosts may be loaded. Loopback is always permitted.
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
    /// The text is neither.
    pub fn parse(text: &str) -> Result<Cidr, String> {
        let message = || {
            format!(
                "invalid network '{text}': expected an address, or ADDRESS/BITS such as 10.0.0.0/8"
            )
        };
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| message())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Some(most), |bits| bits.parse().ok());
        let bits = bits.filter(|&b: &u8| b <= most).ok_or_else(message)?;
        Ok(Cidr { address, bits })
    }

    /// Whether the network contains an address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let has_prefix = |network: u128, address: u128, width: u32| {
            let rest = width - u32::from(self.bits);
            rest >= width || network >> rest == address >> rest
        };
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                has_prefix(u32::from(network).into(), u32::from(address).into(), 32)
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                has_prefix(network.into(), address.into(), 128)
            }
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
    /// The address is not permitted; the message names the option that permits it.
    pub fn check_address(&self, host: &str, address: IpAddr) -> Result<(), String> {
        if self.permits(address) {
            return Ok(());
        }
        let address = address.to_canonical();
        Err(format!("may not load {address} ({host}): start it with --allow-target {address}"))
    }
}

/// Highest rate of a load in operations per second; `None` if it depends on the target.
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
    fn loopback_needs_no_permission_and_all_else_does() {
        let permit = Permit::default();
        assert!(permit.permits("127.9.9.9".parse().unwrap()));
        assert!(permit.permits("::1".parse().unwrap()));
        assert!(!permit.permits("10.0.0.1".parse().unwrap()));
        assert!(!permit.permits("::ffff:10.0.0.1".parse().unwrap()));
    }
}
