//! What this machine permits, as far as defaults depend on it.

/// What this machine permits; a value, so that defaults can be tested.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Processors that this process may use.
    pub cpus: u32,
    /// Connections that the descriptors permit, up to 10,000: more are opened only where asked for.
    pub connections: u32,
}

impl Machine {
    /// The machine that this runs on.
    pub fn this() -> Machine {
        Machine {
            cpus: knee_engine::cpus(),
            connections: knee_engine::connections_permitted().clamp(1, 10_000),
        }
    }
}
