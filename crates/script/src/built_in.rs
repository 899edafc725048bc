//! Built-in modules.

/// The module that makes what every script has.
pub(crate) const CORE: &str = "knee:core";

/// Built-in modules, by their names.
pub(crate) const BUILT_IN: [(&str, &str); 14] = [
    (CORE, include_str!("js/core.js")),
    ("k6", include_str!("js/k6.js")),
    ("k6/http", include_str!("js/http.js")),
    ("k6/data", include_str!("js/data.js")),
    ("k6/execution", include_str!("js/execution.js")),
    ("k6/metrics", include_str!("js/metrics.js")),
    ("k6/encoding", include_str!("js/encoding.js")),
    ("k6/crypto", include_str!("js/crypto.js")),
    ("k6/html", include_str!("js/html.js")),
    ("k6/experimental/webcrypto", include_str!("js/subtle.js")),
    ("k6/options", "export default {};"),
    ("k6/timers", include_str!("js/timers.js")),
    ("k6-utils", include_str!("js/utils.js")),
    ("k6-summary", include_str!("js/summary.js")),
];

/// Whether a file in a stack trace is a built-in module.
pub(crate) fn is_built_in(file: &str) -> bool {
    file.starts_with("knee:") || BUILT_IN.iter().any(|(name, _)| *name == file)
}
