//! Reference servers: what tests, demos and calibration run against.

pub mod http;
pub mod qotd;
pub mod sink;
pub mod udp;
