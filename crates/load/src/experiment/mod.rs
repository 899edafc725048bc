//! What the experiments that the engine carries out ask for, and what they measure.

pub mod latency;
pub mod throttle;
pub mod udp;

use crate::spec::CloseKind;
use crate::time::Nanos;

/// What this host, and the server's where it is known, permit.
#[derive(Clone, Debug, PartialEq)]
pub struct PreflightFacts {
    /// The first and the last local port (net.ipv4.ip_local_port_range).
    pub port_range: (u16, u16),
    /// Local addresses that connections come from, at least 1: each has these ports to itself.
    pub sources: u32,
    /// Whether a port in TIME_WAIT is used again after a second (net.ipv4.tcp_tw_reuse: 1, or 2
    /// and the target is on loopback).
    pub tw_reuse: bool,
    /// How connections are closed; `None` over datagrams.
    pub close: Option<CloseKind>,
    /// Whether this side closes first where the close is orderly: the server keeps connections.
    pub closes_first: bool,
    /// How often an unanswered SYN is sent again (net.ipv4.tcp_syn_retries); 0 over datagrams.
    pub syn_retries: u32,
    /// Open files that this process may have at the most (the hard limit).
    pub files_hard: u64,
    /// For how long a port stays in TIME_WAIT: 60 s on Linux.
    pub time_wait: Nanos,
    /// What the server serves per second, where that is known.
    pub served_per_s: Option<f64>,
    /// The settings of the server's host; `None` where it is another one, and over datagrams.
    pub server: Option<ServerFacts>,
}

impl PreflightFacts {
    /// The same for requests in datagrams: no handshake is answered or sent again, and no port
    /// stays in TIME_WAIT.
    pub fn of_datagrams(self) -> PreflightFacts {
        PreflightFacts { close: None, syn_retries: 0, server: None, ..self }
    }
}

/// What the server's host does with connections.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerFacts {
    /// The longest accept queue of any socket (net.core.somaxconn).
    pub somaxconn: u32,
    /// The accept queue that is wanted, where that is known.
    pub backlog: Option<u32>,
    /// Half-open connections of a socket (net.ipv4.tcp_max_syn_backlog).
    pub tcp_max_syn_backlog: u32,
    /// 0: none; 1: when the queue of requests is full; 2: always (net.ipv4.tcp_syncookies).
    pub syncookies: u32,
    /// Whether what finds the accept queue full is reset (net.ipv4.tcp_abort_on_overflow).
    pub abort_on_overflow: bool,
    /// How often a SYN-ACK is sent again (net.ipv4.tcp_synack_retries).
    pub synack_retries: u32,
}
