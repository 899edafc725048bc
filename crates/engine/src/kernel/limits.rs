//! What this process may use, checked before any load is sent.

use crate::error::RunError;
use crate::sys::thread::OpenFilesLimit;

/// Descriptors that the process needs besides its connections.
const SPARE_FILES: u64 = 64;

/// Raises the limit of open files as far as permitted and checks that `connections` fit.
///
/// # Errors
/// [`RunError::NotPermitted`] with the remedy.
pub(crate) fn ensure_files(connections: u64) -> Result<(), RunError> {
    let permitted = connections_permitted();
    if connections <= permitted {
        return Ok(());
    }
    Err(RunError::NotPermitted(format!(
        "{connections} connections need {} open files, but this process may have only {}: \
         raise the limit (`ulimit -n {}`) or ask for at most {permitted} connections",
        connections + SPARE_FILES,
        permitted + SPARE_FILES,
        connections + SPARE_FILES,
    )))
}

/// How many connections this process may have open, with the limit raised as far as permitted.
pub(crate) fn connections_permitted() -> u64 {
    let limit = OpenFilesLimit::raise().or_else(|_| OpenFilesLimit::now());
    limit.map_or(1024, |l| l.soft).saturating_sub(SPARE_FILES)
}
