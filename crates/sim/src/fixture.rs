//! Specs for tests that depend on load and time alone.

use knee_load::experiment::latency::{FlowSockets, LatencyTrialSpec, ProbeSpec, ScenarioEnd};
use knee_load::spec::{Endpoint, EngineOptions, Level, Load, Pick, Target, TrialSpec};
use knee_load::time::Nanos;

/// A trial of this load over a window of this length: no warm-up, timeouts of 60 s.
pub fn trial(load: Load, duration: Nanos) -> TrialSpec {
    let level = load.level();
    TrialSpec {
        label: "test".to_owned(),
        level,
        load,
        target: Target {
            further: Vec::new(),
            endpoint: Endpoint::Unix { path: "/test".to_owned() },
            requests: Vec::new(),
            pick: Pick::InOrder,
            keep_alive: true,
            protocol: Default::default(),
            connections_max: None,
            tls: None,
            proxy: None,
            route: Default::default(),
            sessions: None,
            recording: None,
            stream_bounds: None,
        },
        warmup: Nanos::ZERO,
        duration,
        operations_max: None,
        timeout: Nanos::from_secs(60),
        retry: None,
        sentinel: None,
        connect_timeout: Nanos::from_secs(60),
        interval: Nanos::from_secs(1),
        seed: 1,
        engine: EngineOptions::default(),
    }
}

/// A scenario of these flows for this duration: a ping every 10 ms, intervals of 100 ms.
pub fn flows(up: u32, down: u32, duration: Nanos) -> LatencyTrialSpec {
    LatencyTrialSpec {
        label: format!("{up} up, {down} down"),
        level: Level::Flows { up, down },
        service: "127.0.0.1:7008".to_owned(),
        token: String::new(),
        up,
        down,
        end: ScenarioEnd::After(duration),
        bytes_max: None,
        sockets: FlowSockets::default(),
        probes: ProbeSpec {
            every: Nanos::from_millis(10),
            udp: true,
            timeout: Nanos::from_secs(1),
        },
        interval: Nanos::from_millis(100),
        seed: 1,
        engine: EngineOptions::default(),
    }
}
