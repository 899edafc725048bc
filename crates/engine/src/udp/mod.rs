//! Datagrams: those who send them, and the service that counts them.

pub mod send;
