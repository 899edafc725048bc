//! What the tests run: knee, its server, the servers of others.

mod certificates;
pub mod http2_servers;
pub mod http_servers;
mod knee_server;
mod namespaces;
mod process;
mod program;
mod proxy;
mod pty;
mod station;
mod temp_path;
mod verdict;

pub use certificates::Certificates;
pub use knee_server::{KneeServer, connections};
pub use namespaces::{FAR, Link, NEAR};
pub use process::{Ended, STATE, knee, run, run_impatiently, run_load, run_with_input, signal};
pub use program::{curl, program};
pub use proxy::{LoggingProxy, ProxyAnswer};
pub use pty::OnTerminal;
pub use station::{Answer, Station};
pub use temp_path::TempPath;
pub use verdict::{
    as_of_a_file, backends, figure, measured, unless_disturbed, until_it_ends_with, until_valid,
};
