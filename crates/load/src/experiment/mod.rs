//! What the experiments that the engine carries out ask for, and what they measure.

pub mod latency;
pub mod overload;
pub mod throttle;
pub mod udp;
