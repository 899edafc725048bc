//! One file per command.

pub mod analyze;
mod demo;
mod http_stand;
mod laboratory;
pub mod observe;
pub mod overload;
mod progress;
pub mod report;
pub mod run;
pub mod serve;
pub mod started_at;
pub mod sweep;
pub mod throttle;
pub mod udp;

#[cfg(test)]
mod refused;
#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;
