//! Servers: those that tests, demos and calibration run against, and what monitoring asks.

mod connection_slab;
pub mod dns;
pub mod exposition;
pub mod http;
pub mod ws;
