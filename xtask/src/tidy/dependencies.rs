//! Which crate may depend on which.

use super::TidyViolation;
use super::calls::PURE;
use serde_json::Value;

/// Packages that act on the machine, which pure crates must not use.
const ACTING: [&str; 11] = [
    "async-nats",
    "clap",
    "io-uring",
    "libc",
    "mio",
    "nix",
    "rusqlite",
    "rustix",
    "rustls",
    "socket2",
    "tokio",
];

/// The crates of the workspace that each may use, and those that its tests may use as well.
const MAY_USE: &[(&str, &[&str], &[&str])] = &[
    ("knee-load", &[], &[]),
    ("knee-sim", &["knee-load"], &[]),
    ("knee-core", &["knee-load"], &["knee-sim", "knee-scenario"]),
    ("knee-scenario", &["knee-load", "knee-core"], &[]),
    ("knee-script", &["knee-load"], &[]),
    ("knee-engine", &["knee-load", "knee-script"], &["knee-core", "knee-scenario", "knee-serve"]),
    ("knee-serve", &["knee-load", "knee-engine"], &[]),
    ("knee-render", &["knee-load", "knee-core"], &["knee-sim"]),
    ("knee-fleet", &["knee-load", "knee-core", "knee-engine"], &[]),
    (
        "knee",
        &[
            "knee-load",
            "knee-core",
            "knee-scenario",
            "knee-script",
            "knee-engine",
            "knee-serve",
            "knee-fleet",
            "knee-render",
        ],
        &["knee-sim"],
    ),
    ("xtask", &[], &[]),
];

/// Dependencies that a crate must not have, by what `cargo metadata --no-deps` says.
pub fn check(metadata: &Value) -> Vec<TidyViolation> {
    let mut broken = Vec::new();
    let listed = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for package in listed(&metadata["packages"]) {
        let user = package["name"].as_str().unwrap_or_default();
        let path = format!("crates/{}/", user.trim_start_matches("knee-"));
        let row = MAY_USE.iter().find(|(name, ..)| *name == user);
        let (may_use, tests_may): (&[&str], &[&str]) =
            row.map_or((&[], &[]), |(_, may_use, tests_may)| (*may_use, *tests_may));
        for dependency in listed(&package["dependencies"]) {
            let name = dependency["name"].as_str().unwrap_or_default();
            let is_for_tests = dependency["kind"] == "dev";
            let is_ours = name == "knee" || name.starts_with("knee-");
            let is_permitted = may_use.contains(&name) || is_for_tests && tests_may.contains(&name);
            let acts = PURE.contains(&path.as_str()) && !is_for_tests && ACTING.contains(&name);
            if is_ours && !is_permitted {
                let remedy = format!("{user} must not use {name}; it may use {may_use:?}");
                broken.push(TidyViolation::at(&path, 0, "dependency", remedy));
            } else if acts {
                let remedy = format!("{user} is pure: what needs {name} belongs to the engine");
                broken.push(TidyViolation::at(&path, 0, "dependency", remedy));
            }
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn crates_use_only_what_is_below_them() {
        for (what, user, used, kind, broken) in [
            ("core uses no engine", "knee-core", "knee-engine", None, 1),
            ("engine uses load", "knee-engine", "knee-load", None, 0),
            ("and not core", "knee-engine", "knee-core", None, 1),
            ("but in tests", "knee-engine", "knee-core", Some("dev"), 0),
            ("engine and render never meet", "knee-engine", "knee-render", None, 1),
            ("nor the other way", "knee-render", "knee-engine", None, 1),
            ("not even in tests", "knee-render", "knee-engine", Some("dev"), 1),
            ("nobody uses the cli", "knee-engine", "knee", None, 1),
            ("a new crate has to be listed", "knee-new", "knee-load", None, 1),
            ("core does not act", "knee-core", "tokio", None, 1),
            ("core may serialise", "knee-core", "serde", None, 0),
            ("its tests may act", "knee-core", "libc", Some("dev"), 0),
            ("the engine acts", "knee-engine", "libc", None, 0),
        ] {
            let dependencies = json!([{"name": used, "kind": kind}]);
            let metadata = json!({"packages": [{"name": user, "dependencies": dependencies}]});
            assert_eq!(check(&metadata).len(), broken, "{what}: {:?}", check(&metadata));
        }
    }
}
