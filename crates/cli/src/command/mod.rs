//! One file or folder per command; those whose output is packaged share one.

#[cfg(feature = "fleet")]
pub mod agent;
pub mod analyze;
pub mod compare;
mod compare_argv;
mod compare_live;
mod demo;
pub mod explain;
#[cfg(feature = "fleet")]
pub mod fleet;
mod guarded;
mod help_topics;
pub mod history;
mod http_runner;
pub mod import;
mod laboratory;
pub mod latency;
pub mod observe;
pub mod overload;
pub mod packaging;
pub mod raw;
pub mod recover;
pub mod report;
pub mod run;
pub mod scenario;
pub mod serve;
mod service;
pub mod sweep;
pub mod throttle;
pub mod tour;
mod trigger;
pub mod udp;

#[cfg(test)]
mod tests;
