//! What this machine permits, as far as arguments depend on it.

use crate::failure::Failure;

/// What this machine permits; a value, so that what depends on it can be tested.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Processors that this process may use.
    pub cpus: u32,
    /// Connections that the descriptors permit.
    pub connections_permitted: u32,
}

/// More connections are opened only where asked for.
const CONNECTIONS_DEFAULT: u32 = 10_000;

impl Machine {
    /// The machine that this runs on.
    pub fn this() -> Machine {
        Machine {
            cpus: knee_engine::cpus(),
            connections_permitted: knee_engine::connections_permitted().max(1),
        }
    }

    /// The most connections that are opened unasked.
    pub fn connections_default(&self) -> u32 {
        self.connections_permitted.min(CONNECTIONS_DEFAULT)
    }

    /// Refuses more connections than the descriptors permit, in the name of an argument.
    pub fn check_connections(&self, argument: &str, connections: u32) -> Result<(), Failure> {
        let permitted = self.connections_permitted;
        if connections <= permitted {
            return Ok(());
        }
        let wrong = format!(
            "{connections} are more than the {permitted} that this process may have open: \
             raise the limit (ulimit -n) or ask for fewer"
        );
        Err(Failure::argument(argument, wrong))
    }
}
