//! What the kernel knows: the host, counters, processor time.
//!
//! Its limits and settings let the crate `knee-core` say, before a load, what an overload will run
//! out of.

pub(crate) mod counters;
pub(crate) mod drops;
pub(crate) mod firewall;
pub(crate) mod freed;
pub(crate) mod host;
pub(crate) mod legacy;
mod qdisc;
pub(crate) mod timestamps;
