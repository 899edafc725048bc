//! What the kernel knows: the host, counters, processor time.

pub(crate) mod counters;
pub(crate) mod drops;
pub(crate) mod firewall;
pub(crate) mod freed;
pub(crate) mod host;
pub(crate) mod legacy;
mod qdisc;
pub(crate) mod timestamps;
