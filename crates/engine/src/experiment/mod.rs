//! What each experiment does beyond the loads of operations that `run` makes: its client, and the
//! service at the other end.

pub mod latency;
pub mod throttle;
pub mod udp;
