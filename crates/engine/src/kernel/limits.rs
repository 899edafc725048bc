//! Limits of this process, checked before any load is sent.

use crate::error::RunError;
use crate::sys::thread::raise_open_files;

/// Open files beside connections: standard streams, output files, the history, and those of each
/// worker's backend.
pub const RESERVED_FILES: u64 = 64;

/// Limit and use of open files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFiles {
    /// Most open files.
    pub limit: u64,
    /// Files per connection: 2 if a server in this process has the other end.
    pub per_connection: u64,
}

impl OpenFiles {
    /// Limit of this process, with the soft limit raised to the hard one if permitted.
    pub fn of_this_process() -> OpenFiles {
        OpenFiles { limit: raise_open_files(), per_connection: 1 }
    }

    /// Connections that fit.
    pub fn connections(self) -> u64 {
        self.limit.saturating_sub(RESERVED_FILES) / self.per_connection
    }

    /// Why these connections do not fit, and what to do; `None` if they fit.
    pub fn refusal(self, connections: u64) -> Option<String> {
        let permitted = self.connections();
        if connections <= permitted {
            return None;
        }
        let needed = connections.saturating_mul(self.per_connection) + RESERVED_FILES;
        let limit = self.limit;
        let fewer = if permitted == 0 {
            String::new()
        } else {
            format!(", or ask for at most {permitted}")
        };
        Some(format!(
            "{connections} connections need {needed} open files ({RESERVED_FILES} are for knee \
         itself), and the limit is {limit}: raise the limit (ulimit -n \
             {needed}){fewer}"
        ))
    }
}

/// Raises the limit of open files as far as permitted and checks that `connections` fit.
///
/// # Errors
/// [`RunError::NotPermitted`] with the remedy.
pub(crate) fn ensure_files(connections: u64) -> Result<(), RunError> {
    match OpenFiles::of_this_process().refusal(connections) {
        None => Ok(()),
        Some(line) => Err(RunError::NotPermitted(line)),
    }
}

/// Connections that this process may have open at once, with the limit raised as far as permitted.
pub fn connections_permitted() -> u32 {
    u32::try_from(OpenFiles::of_this_process().connections()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(limit: u64, per_connection: u64, connections: u64) -> Option<String> {
        let files = OpenFiles { limit, per_connection };
        files.refusal(connections)
    }

    #[test]
    fn as_many_connections_fit_as_the_reserve_leaves() {
        assert_eq!(refusal(264, 1, 200), None);
        let expected = "200 connections need 264 open files (64 are for knee \
         itself), \
                        and the limit is 263: raise the limit (ulimit -n 264), or ask for at most \
                        199";
        assert_eq!(refusal(263, 1, 200).as_deref(), Some(expected));
    }

    #[test]
    fn limit_within_the_reserve_leaves_nothing_to_ask_for() {
        for limit in [0, 20, 64] {
            let line = refusal(limit, 1, 200).unwrap();
            assert!(line.contains(&format!("the limit is {limit}: ")), "{line}");
            assert!(line.ends_with("(ulimit -n 264)"), "{line}");
        }
    }

    #[test]
    fn server_in_this_process_needs_as_many_again() {
        assert_eq!(refusal(464, 2, 200), None);
        assert!(refusal(463, 2, 200).is_some_and(|line| line.contains("need 464 open files")));
    }
}
