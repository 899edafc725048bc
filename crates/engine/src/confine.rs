//! Limits that somebody else sets to this process: the hosts that it may load, how fast, and the
//! files that it may read.

use crate::error::RunError;
use crate::permit::Permit;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Limits of a process. Without them it may do what its user may.
pub struct Confinement {
    /// Hosts that may be loaded, and operations that may start per second.
    pub permit: Permit,
    /// The folder, without links, below which files may be read.
    pub folder: PathBuf,
}

static CONFINEMENT: OnceLock<Confinement> = OnceLock::new();

/// Confines this process until it ends. Only the first call has an effect.
pub fn confine(to: Confinement) {
    let _ = CONFINEMENT.set(to);
}

/// Whether this process has limits.
pub(crate) fn is_confined() -> bool {
    CONFINEMENT.get().is_some()
}

/// Passes the addresses of a host on if all of them are permitted.
///
/// # Errors
/// [`RunError::NotPermitted`]: one of them is not.
pub(crate) fn permitted(
    host: &str,
    addresses: Vec<SocketAddr>,
) -> Result<Vec<SocketAddr>, RunError> {
    if let Some(confinement) = CONFINEMENT.get() {
        for address in &addresses {
            let checked = confinement.permit.check_address(host, address.ip());
            checked.map_err(RunError::NotPermitted)?;
        }
    }
    Ok(addresses)
}

/// Refuses a Unix socket: it belongs to no network.
///
/// # Errors
/// [`RunError::NotPermitted`] in a process with limits.
pub(crate) fn permit_unix_socket(path: &str) -> Result<(), RunError> {
    match CONFINEMENT.get() {
        Some(_) => Err(RunError::NotPermitted(format!("may not load the Unix socket {path}"))),
        None => Ok(()),
    }
}

/// Most operations that this process may start per second.
pub(crate) fn rate_max() -> Option<f64> {
    CONFINEMENT.get()?.permit.rate_max
}

/// The folder below which input files may be read.
pub(crate) fn folder() -> Option<&'static Path> {
    CONFINEMENT.get().map(|confinement| &*confinement.folder)
}
