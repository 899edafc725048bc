//! What the kernel knows: the host, counters, processor time.

pub mod counters;
pub mod drops;
pub mod firewall;
pub mod freed;
pub mod host;
pub mod legacy;
pub mod limits;
mod qdisc;
pub mod sysctl;
pub mod timestamps;
