//! What this machine permits, as far as defaults depend on it.

use knee_engine::sys::OpenFilesLimit;

/// What this machine permits; a value, so that defaults can be tested.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Processors that this process may use.
    pub cpus: u32,
    /// Connections that the descriptors permit, up to [`CONNECTIONS_MAX`].
    pub connections: u32,
}

/// More connections than this are opened only where asked for.
const CONNECTIONS_MAX: u64 = 10_000;

/// Descriptors left for everything but connections: files, event queues, standard streams.
const DESCRIPTORS_KEPT: u64 = 64;

impl Machine {
    /// The machine that this runs on. Raises this process's limit of descriptors as far as it may.
    pub fn this() -> Machine {
        let limit = OpenFilesLimit::raise().or_else(|_| OpenFilesLimit::now());
        let descriptors = limit.map_or(1024, |limit| limit.soft);
        let connections = descriptors.saturating_sub(DESCRIPTORS_KEPT);
        Machine {
            cpus: knee_engine::cpus(),
            connections: connections.clamp(1, CONNECTIONS_MAX) as u32,
        }
    }
}
