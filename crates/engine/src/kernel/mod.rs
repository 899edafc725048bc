//! What the kernel knows: the host, counters, processor time.

pub mod counters;
pub mod host;
pub mod limits;
pub mod sysctl;
