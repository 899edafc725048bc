//! knee-core decides: what to send when, when to stop, and what the numbers mean.
//!
//! Nothing here opens a socket, reads a clock, starts a thread or prints. Time and randomness come
//! in as arguments, so a seed replays a run and every test of timing runs in virtual time.
//!
//! [`throttle`] is of use by itself: it holds a rate of operations of whatever kind.
//!
//! A server with one worker and exponential service times of 1 ms, at 500/s with Poisson arrivals,
//! is the queue M/M/1. Its response times are exponential with a mean of 1/(1,000/s − 500/s), so
//! their 99th percentile is 2 ms · ln 100 = 9.2 ms. That is what a simulated trial reports:
//!
//! ```
//! use knee_core::trial::assess::assess;
//! use knee_core::law::Law;
//! use knee_core::sim::{World, simulate};
//! use knee_core::spec::*;
//! use knee_core::time::Nanos;
//!
//! # fn main() -> Result<(), ParseError> {
//! let url = Url::parse("http://127.0.0.1:8080/")?;
//! let get = HttpRequest::new("GET", &url, Vec::new(), Vec::new(), 1)?;
//! let rate = parse_rate("500/s")?;
//! let spec = TrialSpec {
//!     label: format!("rate={}/s", rate.per_s()),
//!     level: Level::RatePerS(rate.per_s()),
//!     load: Load::Open(OpenLoad {
//!         rate,
//!         arrival: ArrivalLaw::Poisson,
//!         connections_max: 1_000,
//!         in_flight_max: None,
//!     }),
//!     target: HttpTarget::new(url.endpoint().clone(), vec![get], Pick::InOrder, true)?,
//!     warmup: Nanos::from_secs(1),
//!     duration: Nanos::from_secs(60),
//!     operations_max: None,
//!     timeout: Nanos::from_secs(10),
//!     connect_timeout: Nanos::from_secs(5),
//!     interval: Nanos::from_millis(100),
//!     seed: 1,
//!     engine: EngineOptions {
//!         workers: 1,
//!         backend: BackendChoice::Auto,
//!         wait: WaitPolicy::Hybrid,
//!         ..EngineOptions::default()
//!     },
//! };
//! let service = Law::Exp(Nanos::from_millis(1));
//! let simulated = simulate(&spec, &World::station(1, service));
//!
//! let report = assess(&simulated.trial);
//! let p99_ms = report.response_time_ns.p99.expect("enough operations") as f64 / 1e6;
//! assert!((p99_ms / 9.21 - 1.0).abs() < 0.1, "{p99_ms} ms");
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

pub mod arrival;
pub mod both_ends;
pub mod compare;
pub mod consistency;
pub mod date;
pub mod digits;
pub mod driver;
pub mod experiment;
pub mod finding;
pub mod import;
pub mod law;
pub mod measure;
mod percent;
pub mod polling;
pub mod pool;
pub mod quantity;
pub mod report;
pub mod rng;
pub mod scenario;
pub mod secrets;
pub mod session;
pub mod shown;
pub mod sim;
pub mod spec;
pub mod stats;
pub mod threshold;
pub mod throttle;
pub mod time;
pub mod trial;
pub mod words;
