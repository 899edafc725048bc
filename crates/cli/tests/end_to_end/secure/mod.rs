//! knee over TLS against nginx, and what keeps it from one.

mod nginx;
mod refusals;
