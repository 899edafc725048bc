//! Simulated servers in virtual time.
