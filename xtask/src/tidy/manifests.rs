//! Which crate may depend on which.

use super::TidyViolation;
use super::code::is_pure;
use crate::repo::RepoFile;

/// What acts on the machine has no place in a pure crate.
const ACTING: [&str; 14] = [
    "async-std",
    "clap",
    "crossbeam",
    "indicatif",
    "io-uring",
    "libc",
    "mio",
    "nix",
    "rayon",
    "rusqlite",
    "rustix",
    "rustls",
    "socket2",
    "tokio",
];

/// The crates of the workspace that each may use, and those that its tests may use as well.
const MAY_USE: &[(&str, &[&str], &[&str])] = &[
    ("crates/load", &[], &[]),
    ("crates/sim", &["knee-load"], &[]),
    ("crates/core", &["knee-load"], &["knee-sim", "knee-scenario"]),
    ("crates/scenario", &["knee-load", "knee-core"], &[]),
    ("crates/engine", &["knee-load"], &["knee-core", "knee-scenario"]),
    ("crates/render", &["knee-load", "knee-core"], &["knee-sim"]),
    ("crates/fleet", &["knee-load", "knee-core", "knee-engine"], &[]),
    (
        "crates/cli",
        &["knee-load", "knee-core", "knee-scenario", "knee-engine", "knee-fleet", "knee-render"],
        &["knee-sim"],
    ),
    ("xtask", &[], &[]),
];

/// Violations in a Cargo.toml.
pub fn check(manifest: &RepoFile) -> Vec<TidyViolation> {
    let folder = manifest.path.trim_end_matches("/Cargo.toml");
    let Some((_, may_use, tests_may)) = MAY_USE.iter().find(|(name, ..)| *name == folder) else {
        return Vec::new();
    };
    let mut broken = Vec::new();
    let mut break_rule = |line, remedy| {
        broken.push(TidyViolation {
            path: manifest.path.clone(),
            line,
            rule: "dependency",
            remedy,
        });
    };
    for Dependency { line, name, dev } in dependencies(&manifest.text) {
        let own = name == "knee" || name.starts_with("knee-");
        let permitted =
            may_use.contains(&name.as_str()) || dev && tests_may.contains(&name.as_str());
        if own && !permitted {
            let uses = if may_use.is_empty() {
                "no crate of this workspace".into()
            } else {
                may_use.join(", ")
            };
            let remedy = format!("{folder} may use {uses}, not {name}");
            break_rule(line, remedy);
        }
        if is_pure(folder) && !dev && ACTING.contains(&name.as_str()) {
            let remedy = format!("{folder} is pure: what needs {name} belongs to the engine");
            break_rule(line, remedy);
        }
    }
    broken
}

struct Dependency {
    line: usize,
    name: String,
    dev: bool,
}

fn dependencies(manifest: &str) -> Vec<Dependency> {
    let mut found = Vec::new();
    let mut section = "";
    for (i, text) in manifest.lines().map(str::trim).enumerate() {
        let dependency = |name: &str, section: &str| Dependency {
            line: i + 1,
            name: name.trim_matches('"').into(),
            dev: section.ends_with("dev-dependencies"),
        };
        if let Some(header) = text.strip_prefix('[') {
            section = header.trim_end_matches(']');
            if let Some((table, name)) = section.rsplit_once("dependencies.") {
                found.push(dependency(name, &format!("{table}dependencies")));
            }
        } else if section.ends_with("dependencies") && !text.starts_with('#') {
            let name = text.split(['.', '=', ' ']).next().unwrap_or_default();
            if !name.is_empty() {
                found.push(dependency(name, section));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::tests::broken_by;

    #[test]
    fn crates_use_only_what_is_below_them() {
        for (what, folder, text, broken) in [
            (
                "core uses no crate of ours",
                "core",
                "[dependencies]\nknee-engine.workspace = true",
                1,
            ),
            ("engine uses load", "engine", "[dependencies]\nknee-load.workspace = true", 0),
            ("and not core", "engine", "[dependencies]\nknee-core.workspace = true", 1),
            ("but in tests", "engine", "[dev-dependencies]\nknee-core.workspace = true", 0),
            ("engine and render never meet", "engine", "[dependencies]\nknee-render = \"1\"", 1),
            ("nor the other way", "render", "[dependencies]\nknee-engine = { path = \"x\" }", 1),
            ("not even in tests", "render", "[dev-dependencies]\nknee-engine = \"1\"", 1),
            ("nobody uses the cli", "engine", "[dependencies.knee]\npath = \"../cli\"", 1),
            ("core does not act", "core", "[dependencies]\ntokio = \"1\"", 1),
            ("nor on one platform", "core", "[target.'cfg(unix)'.dependencies]\nlibc = \"0\"", 1),
            ("core may serialise", "core", "[dependencies]\nserde = \"1\"\n# libc = 1", 0),
            ("its tests may act", "core", "[dev-dependencies]\nlibc = \"0\"", 0),
            (
                "a package of that name is not a dependency",
                "core",
                "[package]\nname = \"knee-core\"",
                0,
            ),
        ] {
            let found = broken_by(&format!("crates/{folder}/Cargo.toml"), text);
            assert_eq!(found.len(), broken, "{what}: {found:?}");
        }
    }
}
