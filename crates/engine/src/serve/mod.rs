//! Servers: those that tests, demos and calibration run against, and what monitoring asks.

pub mod bulk;
pub mod exposition;
pub mod http;
mod port;
pub mod qotd;
pub mod sink;
pub mod udp;
