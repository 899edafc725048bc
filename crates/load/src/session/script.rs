//! Users that a script in JavaScript describes: what a run needs to know of it.

use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Rows of the report that requests of a script have, by their names; the last one is for all
/// further names.
pub const SCRIPT_ROWS: usize = 100;

/// A script with its modules, the files that it opens, and its limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScriptPlan {
    /// The path of the script among `files`.
    pub main: String,
    /// The script, its modules, and the files that it opens, by their paths from its folder.
    pub files: BTreeMap<String, Vec<u8>>,
    /// `__ENV`.
    pub env: BTreeMap<String, String>,
    /// The exported function of each kind of session, by its number.
    pub functions: Vec<String>,
    /// `exec.scenario` of each kind of session, by its number: name and executor.
    pub scenarios: Vec<(String, String)>,
    /// What `options` says, as JSON.
    pub options: String,
    /// Names of requests that are known before the load.
    pub rows: Vec<String>,
    /// Most memory of one user, in bytes.
    pub memory_max: u64,
    /// Most processor time of a user between two requests.
    pub time_max: Nanos,
    /// Most bytes of a response's body that a user reads.
    pub body_max: u64,
    /// Most requests of a user under way at once, and most to one server.
    pub batch: (u32, u32),
    /// Iterations that each user has, where that is said.
    pub iterations_each: Option<u64>,
    /// The longest that `setup` and `teardown` may take.
    pub around_max: (Nanos, Nanos),
    /// Cookies are kept from one iteration to the next.
    pub keeps_cookies: bool,
    /// Whether a user ever has several requests under way.
    pub is_parallel: bool,
}
