//! Servers: those that tests, demos and calibration run against, and what monitoring asks.

pub mod exposition;
pub mod http;
pub mod ws;
