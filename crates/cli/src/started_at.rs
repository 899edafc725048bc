//! The time of a report.

use knee_load::time;
use std::time::{SystemTime, UNIX_EPOCH};

/// Now, as RFC 3339 in UTC, to the second.
pub fn now() -> String {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    let ns = since_1970.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    time::rfc3339(ns)
}
