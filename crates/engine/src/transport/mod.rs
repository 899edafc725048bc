//! The protocols that carry the load.

pub mod http1;
