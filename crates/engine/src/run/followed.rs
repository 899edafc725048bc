//! How many of the connections an observer is to follow.

use super::connections_of;
use knee_load::spec::{ConnectScheme, Load, TrialSpec};
use knee_load::time::Nanos;

/// Followed connections, about, of those that may be open.
const FOLLOWED: u32 = 8;

/// Operations per second up to which all connections of an open loop are followed: its load does
/// not determine how many are open. At 20 µs each, two connections can carry them.
const FOLLOWED_PER_S: f64 = 20_000.0;

/// Followed connects of an overload per second, about.
const FOLLOWED_CONNECTS_PER_S: f64 = 1_000.0;

/// Stands for the unknown rate of connects that a server accepts.
const TAKEN_PER_S: f64 = 4_000.0;

/// One of how many connections an observer is to follow; `None` where none can be.
pub(super) fn one_of(spec: &TrialSpec) -> Option<u16> {
    let keep_alive = spec.target.keep_alive;
    // From several addresses the same ports are in use at the same time.
    if spec.target.route.sources.len() > 1 {
        return None;
    }
    let connections = connections_of(spec);
    Some(one_of_connections(&spec.load, connections, spec.connect_timeout, keep_alive))
}

/// Where each carries one operation only, as many as are open tells nothing of how many there will
/// be. An open loop opens only as many as it needs, whatever it may.
fn one_of_connections(
    load: &Load,
    connections_max: u32,
    connect_timeout: Nanos,
    keep_alive: bool,
) -> u16 {
    let of = match load {
        Load::Overload(load) => {
            let given_up_per_s = f64::from(connections_max) / connect_timeout.as_secs_f64();
            let connects_per_s = match &load.scheme {
                ConnectScheme::Scheduled { rate, .. } => rate.per_s(),
                ConnectScheme::SClients { .. } => given_up_per_s + TAKEN_PER_S,
                ConnectScheme::Simple { .. } => TAKEN_PER_S,
            };
            (connects_per_s / FOLLOWED_CONNECTS_PER_S) as u32
        }
        _ if !keep_alive => FOLLOWED,
        Load::Closed { .. } => connections_max / FOLLOWED,
        Load::Open(open) => {
            let by_rate = (open.peak_per_s() / FOLLOWED_PER_S).ceil();
            (connections_max / FOLLOWED).min(by_rate as u32)
        }
    };
    let of = of.max(1);
    u16::try_from(of.next_power_of_two()).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_load::arrival::ArrivalLaw;
    use knee_load::spec::{CloseKind, OpenLoad, OverloadLoad, Pause, parse_rate};

    const PATIENCE: Nanos = Nanos::from_millis(500);

    #[test]
    fn open_loop_is_followed_by_its_rate() {
        let followed = |rate: &str, connections_max, keep_alive| {
            let open = OpenLoad {
                rate: parse_rate(rate).unwrap(),
                arrival: ArrivalLaw::Constant,
                connections_max,
                in_flight_max: None,
            };
            one_of_connections(&Load::Open(open), connections_max, PATIENCE, keep_alive)
        };
        assert_eq!(followed("1000/s", 10_000, true), 1);
        assert_eq!(followed("20000/s", 10_000, true), 1);
        assert_eq!(followed("50000/s", 10_000, true), 4);
        assert_eq!(followed("50000/s", 16, true), 2, "-c 16");
        assert_eq!(followed("1000/s", 10_000, false), 8);
        let closed = Load::Closed { vusers: 256, pause: Pause::NONE, stages: Vec::new() };
        assert_eq!(one_of_connections(&closed, 256, PATIENCE, true), 32);
        let shared = one_of_connections(&closed, 1, PATIENCE, true);
        assert_eq!(shared, 1, "HTTP/2 over -c 1");
    }

    #[test]
    fn an_overload_is_followed_by_its_connects() {
        let followed = |scheme: ConnectScheme| {
            let connecting = scheme.connecting_max();
            let load = Load::Overload(OverloadLoad { scheme, close: CloseKind::Fin });
            one_of_connections(&load, connecting, PATIENCE, true)
        };
        let at = |rate| ConnectScheme::Scheduled {
            rate: parse_rate(rate).unwrap(),
            arrival: ArrivalLaw::Constant,
            descriptors: 10_000,
        };
        let s_clients = |descriptors| ConnectScheme::SClients { sclients: 1, descriptors };
        assert_eq!(followed(at("100/s")), 1);
        assert_eq!(followed(at("50000/s")), 64);
        assert_eq!(followed(s_clients(2)), 4);
        assert_eq!(followed(s_clients(14_000)), 32);
        assert_eq!(followed(ConnectScheme::Simple { clients: 9 }), 4);
    }
}
