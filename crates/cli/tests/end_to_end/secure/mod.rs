//! knee over TLS against nginx, and what keeps it from one.

mod early_data;
mod ends;
mod nginx;
mod refusals;
