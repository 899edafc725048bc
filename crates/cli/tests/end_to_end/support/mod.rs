//! What the tests run: knee, its server, the servers of others.

pub mod http_servers;
mod knee_server;
mod process;
mod temp_path;
mod verdict;

pub use knee_server::KneeServer;
pub use process::{Ended, knee, run, run_impatiently, run_load, run_with_input, signal};
pub use temp_path::TempPath;
pub use verdict::{backends, measured, until_valid};
