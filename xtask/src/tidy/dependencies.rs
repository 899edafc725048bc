//! Which crate may depend on which, and which part of a crate uses which. The parts form layers, so
//! no part may use one that uses it, by whatever detour. No experiment's folder may use that of
//! another.
//!
//! A part is what lies directly under `src`. Below the folders in [`ROOMS`], each folder is a part
//! of its own, and the files beside them form one.

use super::TidyViolation;
use super::code::{RustFile, find_word, is_pure};
use crate::repo::RepoFile;
use std::collections::{BTreeMap, BTreeSet};

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
    ("crates/script", &["knee-load"], &[]),
    ("crates/engine", &["knee-load", "knee-script"], &["knee-core", "knee-scenario"]),
    ("crates/render", &["knee-load", "knee-core"], &["knee-sim"]),
    ("crates/fleet", &["knee-load", "knee-core", "knee-engine"], &[]),
    (
        "crates/cli",
        &[
            "knee-load",
            "knee-core",
            "knee-scenario",
            "knee-script",
            "knee-engine",
            "knee-fleet",
            "knee-render",
        ],
        &["knee-sim"],
    ),
    ("xtask", &[], &[]),
];

/// Violations in a Cargo.toml.
pub fn check_manifest(manifest: &RepoFile) -> Vec<TidyViolation> {
    let folder = manifest.path.trim_end_matches("/Cargo.toml");
    let Some((_, may_use, tests_may)) = MAY_USE.iter().find(|(name, ..)| *name == folder) else {
        return Vec::new();
    };
    let mut broken = Vec::new();
    let mut break_rule = |line, remedy: String| {
        broken.push(TidyViolation::at(&manifest.path, line, "dependency", remedy));
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

/// The crates whose parts form layers.
const CRATES: [&str; 7] = ["load", "core", "scenario", "engine", "render", "fleet", "cli"];
/// Folders of folders that do not know of each other.
const ROOMS: [&str; 2] = ["experiment", "document"];

/// From one part to another, and the first line that says so.
type Edges = BTreeMap<(String, String), (String, usize)>;

/// Circles and forbidden neighbours in all crates.
pub fn check_parts(rust: &[RustFile]) -> Vec<TidyViolation> {
    CRATES
        .into_iter()
        .flat_map(|name| {
            let src = format!("crates/{name}/src/");
            let inside: Vec<&RustFile> = rust.iter().filter(|c| c.path.starts_with(&src)).collect();
            broken(&edges(&inside, &src))
        })
        .collect()
}

fn broken(edges: &Edges) -> Vec<TidyViolation> {
    let mut broken = Vec::new();
    for ((from, to), (path, line)) in edges {
        let room = |part: &str| part.split_once('/').map(|(rooms, _)| rooms.to_owned());
        let (rule, remedy) = if room(from).is_some() && room(from) == room(to) {
            ("neighbour", format!("{from} must not use {to}"))
        } else if reaches(edges, to, from) {
            ("circle", format!("{from} uses {to}, which uses {from}"))
        } else {
            continue;
        };
        let remedy = format!("{remedy}: move what both need below them");
        broken.push(TidyViolation::at(path, *line, rule, remedy));
    }
    broken
}

/// Whether a part uses another one, itself or through others.
fn reaches(edges: &Edges, from: &str, to: &str) -> bool {
    let mut seen = BTreeSet::from([from]);
    let mut open = vec![from];
    while let Some(part) = open.pop() {
        for (_, next) in edges.keys().filter(|(of, _)| of == part) {
            if next == to {
                return true;
            }
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    false
}

fn edges(inside: &[&RustFile], src: &str) -> Edges {
    let modules: BTreeMap<Vec<&str>, &RustFile> =
        inside.iter().map(|code| (module(code, src), *code)).collect();
    let rooms: BTreeSet<String> = modules
        .keys()
        .filter(|m| m.len() > 2 && ROOMS.contains(&m[0]))
        .map(|m| format!("{}/{}", m[0], m[1]))
        .collect();
    let part = |path: &[&str]| -> String {
        let room = path.iter().take(2).copied().collect::<Vec<_>>().join("/");
        if rooms.contains(&room) { room } else { path[0].to_owned() }
    };
    let mut edges = Edges::new();
    for (module, code) in &modules {
        if module.is_empty() || is_for_tests(&modules, module) {
            continue;
        }
        for (line, used) in used_modules(code, module.len()) {
            let used: Vec<&str> = used.iter().map(String::as_str).collect();
            if !modules.keys().any(|m| m.first() == used.first()) {
                continue;
            }
            let (from, to) = (part(module), part(&used));
            if from != to {
                let place = (code.path.clone(), line);
                edges.entry((from, to)).or_insert(place);
            }
        }
    }
    edges
}

/// `a`, `b` of `src/a/b.rs` and of `src/a/b/mod.rs`; nothing of a crate's root.
fn module<'a>(code: &'a RustFile, src: &str) -> Vec<&'a str> {
    let inside = code.path[src.len()..].trim_end_matches(".rs");
    let parts = inside.split('/').filter(|part| *part != "mod");
    match inside {
        "lib" | "main" => Vec::new(),
        _ => parts.collect(),
    }
}

/// Whether it, or what it lies in, is declared under `#[cfg(test)]`.
fn is_for_tests(modules: &BTreeMap<Vec<&str>, &RustFile>, module: &[&str]) -> bool {
    (1..=module.len()).any(|n| {
        let declared = format!("mod {};", module[n - 1]);
        modules.get(&module[..n - 1]).is_some_and(|parent| {
            let mut pairs = parent.bare.windows(2);
            pairs.any(|two| two[0] == "#[cfg(test)]" && find_word(&two[1], &declared).is_some())
        })
    })
}

/// The parts of the crate that a file names outside its tests, up to two names deep. They stand
/// after `crate::`, or after one `super::` for each level of depth.
fn used_modules(code: &RustFile, depth: usize) -> Vec<(usize, Vec<String>)> {
    let supers = "super::".repeat(depth);
    let mut used = Vec::new();
    let lines: Vec<(usize, &str)> = code.product_lines().collect();
    for (at, (line, text)) in lines.iter().enumerate() {
        for prefix in ["crate::", &supers] {
            let mut rest = *text;
            while let Some(found) = find_word(rest, prefix) {
                rest = &rest[found + prefix.len()..];
                let later: Vec<&str> = lines[at + 1..].iter().map(|(_, t)| *t).collect();
                let whole = format!("{rest}\n{}", later.join("\n"));
                used.extend(heads(&whole, 2).into_iter().map(|names| (*line, names)));
            }
        }
    }
    used
}

/// The first names of each path of `a::b::{x, y}` or of `{a::{x, y}, b}`, at most `depth` of each.
fn heads(text: &str, depth: usize) -> Vec<Vec<String>> {
    if depth == 0 {
        return vec![Vec::new()];
    }
    let text = text.trim_start();
    if let Some(group) = text.strip_prefix('{') {
        return members(group).flat_map(|member| heads(member, depth)).collect();
    }
    let name: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    let after = &text[name.len()..];
    let later = match after.strip_prefix("::") {
        Some(rest) => heads(rest, depth - 1),
        None => vec![Vec::new()],
    };
    let begin = |names: Vec<String>| [name.clone()].into_iter().chain(names).collect();
    later.into_iter().map(begin).collect()
}

/// What a group holds at its outermost level, from behind its `{`.
fn members(group: &str) -> impl Iterator<Item = &str> {
    let (mut all, mut depth, mut from) = (Vec::new(), 0, 0);
    for (i, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                all.push(&group[from..i]);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                all.push(&group[from..i]);
                from = i + 1;
            }
            _ => {}
        }
    }
    all.into_iter().filter(|member| !member.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::tests::broken_by;
    use super::*;
    use crate::repo::RepoFile;

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

    fn broken_parts(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<RepoFile> = files
            .iter()
            .map(|(path, text)| RepoFile {
                path: format!("crates/core/src/{path}"),
                text: (*text).into(),
            })
            .collect();
        let rust: Vec<RustFile> = sources.iter().map(RustFile::new).collect();
        check_parts(&rust).iter().map(|v| format!("{}: {}", v.rule, v.remedy)).collect()
    }

    #[test]
    fn a_circle_is_found_however_it_is_written() {
        for (what, text, circle) in [
            ("plain", "use crate::driver::Action;", true),
            ("in a group", "use crate::{driver, time};", true),
            ("in a group over lines", "use crate::{\n  time,\n  driver,\n};", true),
            ("a part of a group's part", "use crate::{time::{driver}};", false),
            ("in an expression", "fn f() { crate::driver::g() }", true),
            ("through super", "use super::driver::Action;", true),
            ("a child of that name", "use self::driver::X;", false),
            ("a test may", "#[cfg(test)]\nmod tests {\nuse crate::driver;\n}", false),
        ] {
            let found = broken_parts(&[
                ("arrival/mod.rs", text),
                ("driver/mod.rs", "use crate::arrival::Constant;"),
                ("time.rs", ""),
            ]);
            assert_eq!(!found.is_empty(), circle, "{what}: {found:?}");
        }
    }

    #[test]
    fn a_detour_is_a_circle_and_a_layer_is_none() {
        let files = [
            ("a.rs", "use crate::b::X;"),
            ("b.rs", "use crate::c::X;"),
            ("c.rs", "use crate::a::X;"),
        ];
        assert_eq!(broken_parts(&files).len(), 3);
        assert_eq!(broken_parts(&files[..2]).len(), 0);
    }

    #[test]
    fn experiments_do_not_know_of_each_other() {
        let files = [
            ("experiment/mod.rs", "pub trait Experiment {}"),
            ("experiment/udp/mod.rs", "use crate::experiment::sweep::Sweep;"),
            ("experiment/udp/spec.rs", "use crate::experiment::Experiment;"),
            ("experiment/sweep/spec.rs", ""),
        ];
        let found = broken_parts(&files);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("neighbour: experiment/udp"), "{found:?}");
    }

    #[test]
    fn what_is_for_tests_alone_may_use_anything() {
        let files = [
            ("a/mod.rs", "#[cfg(test)]\nmod fake;\nmod real;"),
            ("a/fake.rs", "use crate::b::X;"),
            ("b.rs", "use crate::a::X;"),
        ];
        assert_eq!(broken_parts(&files).len(), 0);
        let real = [("a/mod.rs", "mod fake;"), files[1], files[2]];
        assert_eq!(broken_parts(&real).len(), 2);
    }
}
