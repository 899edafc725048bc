//! What the latency service is asked to be.

use knee_core::measure::Direction;
use knee_core::time::Nanos;
use std::net::{Ipv4Addr, SocketAddr};

/// What the latency service is asked to be.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyServerSpec {
    /// Where it takes control connections and flows (TCP) and probes (UDP); port 0 picks one that
    /// is free for both.
    pub listen: SocketAddr,
    /// What a client has to know; empty: nothing, which is permitted on a loopback address alone.
    pub token: String,
    /// The longest session that a client may ask for.
    pub session_max: Nanos,
    /// A session whose flows have carried so many bytes is ended; `None`: none is.
    pub bytes_max: Option<u64>,
    /// How many threads carry flows, at least 1.
    pub workers: u32,
    /// What is done to flows on purpose, in every session.
    pub faults: Vec<FlowFault>,
}

impl Default for LatencyServerSpec {
    /// On a loopback port of the kernel's choice, with one thread per processor.
    fn default() -> LatencyServerSpec {
        LatencyServerSpec {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            token: String::new(),
            session_max: Nanos::from_secs(3_600),
            bytes_max: None,
            workers: crate::sys::thread::cpu_count(),
            faults: Vec::new(),
        }
    }
}

/// What is done to a flow on purpose, to see what a client makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowFault {
    /// Which way the flow goes, as the client sees it.
    pub direction: Direction,
    /// Which of that direction's flows, from 0.
    pub number: u32,
    /// When, since the session began.
    pub at: Nanos,
    /// What.
    pub kind: FlowFaultKind,
}

/// Kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowFaultKind {
    /// The flow is reset.
    Reset,
    /// For so long nothing is sent or received over it.
    Stall(Nanos),
}
