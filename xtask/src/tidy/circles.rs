//! Which part of a crate uses which, and which file of a part which. The parts form layers: none
//! uses one that uses it, by whatever detour. So do the files of a part, but for a module and those
//! below it. No experiment's folder uses that of another. Each file is declared by the one above it.
//!
//! A part is what lies directly under `src`. Below the folders in [`ROOMS`], each folder is a part
//! of its own, and the files beside them form one.

use super::TidyViolation;
use super::code::{RustFile, Token};
use std::collections::{BTreeMap, BTreeSet};

/// The crates whose parts form layers.
const CRATES: [&str; 10] =
    ["load", "core", "scenario", "script", "engine", "serve", "render", "fleet", "cli", "sim"];
/// Folders of folders that do not know of each other.
const ROOMS: [&str; 2] = ["experiment", "document"];

/// The files of a crate by their modules; its root has the empty one.
type Modules<'a> = BTreeMap<Vec<&'a str>, &'a RustFile>;

/// From one part or file to another, and the first line that says so.
type Edges = BTreeMap<(String, String), (String, usize)>;

/// Circles, forbidden neighbours and undeclared files in all crates.
pub fn check(rust: &[RustFile]) -> Vec<TidyViolation> {
    let mut broken = Vec::new();
    for name in CRATES {
        let src = format!("crates/{name}/src/");
        let inside = rust.iter().filter_map(|code| Some((code.path.strip_prefix(&src)?, code)));
        let modules: Modules<'_> = inside
            .map(|(path, code)| {
                let parts = path.trim_end_matches(".rs").split('/');
                (parts.filter(|part| !["mod", "lib", "main"].contains(part)).collect(), code)
            })
            .collect();
        let (parts, files) = edges(&modules);
        check_neighbours(&parts, &mut broken);
        check_circles(&parts, &mut broken);
        check_circles(&files, &mut broken);
        for (module, code) in &modules {
            let Some((name, parent)) = module.split_last() else { continue };
            let parent = modules.get(parent).copied();
            let is_declared = parent.is_some_and(|parent| declaration(parent, name).is_some());
            if !is_declared {
                let remedy = "no `mod` declares it: declare it or delete it";
                broken.push(TidyViolation::at(&code.path, 1, "dead file", remedy));
            }
        }
    }
    broken
}

/// The token that ends `mod name;` in a file.
fn declaration<'a>(code: &'a RustFile, name: &str) -> Option<&'a Token> {
    let last = code.find(&format!("mod {name};")).next()? + 2;
    code.tokens.get(last)
}

fn check_neighbours(parts: &Edges, broken: &mut Vec<TidyViolation>) {
    for ((from, to), (path, line)) in parts {
        let room = |part: &str| part.split_once('/').map(|(room, _)| room.to_owned());
        if room(from).is_some() && room(from) == room(to) {
            let remedy = format!("{from} must not use {to}: move what both need below them");
            broken.push(TidyViolation::at(path, *line, "neighbour", remedy));
        }
    }
}

fn check_circles(edges: &Edges, broken: &mut Vec<TidyViolation>) {
    let mut used: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (from, to) in edges.keys() {
        used.entry(from).or_default().push(to);
    }
    for ((from, to), (path, line)) in edges {
        let mut seen = BTreeSet::new();
        let mut open = vec![to.as_str()];
        while let Some(next) = open.pop() {
            if seen.insert(next) {
                open.extend(used.get(next).into_iter().flatten());
            }
        }
        if seen.contains(from.as_str()) {
            let remedy =
                format!("{from} uses {to}, which uses {from}: move what both need below them");
            broken.push(TidyViolation::at(path, *line, "circle", remedy));
        }
    }
}

/// Which part of a crate uses which, and which file which.
fn edges(modules: &Modules<'_>) -> (Edges, Edges) {
    let is_room = |module: &&[&str]| module.len() > 2 && ROOMS.contains(&module[0]);
    let rooms = modules.keys().map(Vec::as_slice).filter(is_room).map(|module| &module[..2]);
    let rooms: BTreeSet<&[&str]> = rooms.collect();
    let part = |module: &[&str]| match module.get(..2) {
        Some(room) if rooms.contains(room) => room.join("/"),
        _ => module[0].to_owned(),
    };
    let (mut parts, mut files) = (Edges::new(), Edges::new());
    for (module, code) in modules {
        // What is for tests alone, or lies in such a module, may use anything.
        let is_for_tests = (1..=module.len()).any(|n| {
            let parent = modules.get(&module[..n - 1]);
            let end = parent.and_then(|parent| declaration(parent, module[n - 1]));
            end.is_some_and(|end| end.is_test)
        });
        if module.is_empty() || is_for_tests {
            continue;
        }
        for (line, path) in used_paths(&code.tokens, module) {
            // The longest part of a path that is a module.
            let lengths = (1..=path.len()).rev();
            let Some(used) = lengths.map(|n| &path[..n]).find(|path| modules.contains_key(*path))
            else {
                continue;
            };
            let place = (code.path.clone(), line);
            let is_above_or_below = module.starts_with(used) || used.starts_with(module);
            if part(module) != part(used) {
                parts.entry((part(module), part(used))).or_insert(place);
            } else if !is_above_or_below {
                files.entry((module.join("::"), used.join("::"))).or_insert(place);
            }
        }
    }
    (parts, files)
}

/// The paths in the crate that a file names outside its tests: what stands after `crate::`, and
/// after `super::`.
fn used_paths<'a>(tokens: &'a [Token], module: &[&'a str]) -> Vec<(usize, Vec<&'a str>)> {
    let texts: Vec<&str> = tokens.iter().map(|token| token.text.as_str()).collect();
    let mut used = Vec::new();
    let begins = |token: &Token| !token.is_test && ["crate", "super"].contains(&&*token.text);
    for (at, token) in tokens.iter().enumerate().filter(|(_, token)| begins(token)) {
        let is_continued = at > 0 && texts[at - 1] == ":";
        let supers =
            texts[at..].chunks(3).take_while(|chunk| *chunk == ["super", ":", ":"]).count();
        let (base, rest) = match texts[at..] {
            ["crate", ":", ":", ..] => (&module[..0], &texts[at + 3..]),
            _ if supers > 0 && supers <= module.len() && !is_continued => {
                (&module[..module.len() - supers], &texts[at + 3 * supers..])
            }
            _ => continue,
        };
        let paths = paths(rest).into_iter().map(|path| [base, &path[..]].concat());
        used.extend(paths.map(|path| (token.line, path)));
    }
    used
}

/// The names of each path of `a::b::{x, y}` or of `{a::{x, y}, b}`.
fn paths<'a>(tokens: &[&'a str]) -> Vec<Vec<&'a str>> {
    let Some((&first, rest)) = tokens.split_first() else {
        return vec![Vec::new()];
    };
    if first != "{" {
        let later = match rest {
            [":", ":", rest @ ..] => paths(rest),
            _ => vec![Vec::new()],
        };
        return later.into_iter().map(|names| [vec![first], names].concat()).collect();
    }
    let mut members = Vec::new();
    let (mut braces, mut is_begin) = (0, true);
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "{" => braces += 1,
            "}" => braces -= 1,
            _ if is_begin => members.extend(paths(&tokens[at..])),
            _ => {}
        }
        if braces == 0 {
            break;
        }
        is_begin = braces == 1 && matches!(*token, "{" | ",");
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::RepoFile;

    /// What is broken in a crate of these files and a root that declares those without a folder.
    fn broken(files: &[(&str, &str)]) -> Vec<String> {
        let file = |path: &str, text: &str| {
            let path = format!("crates/core/src/{path}");
            RustFile::new(&RepoFile { path, text: text.into() })
        };
        let modules: BTreeSet<&str> =
            files.iter().filter_map(|(path, _)| path.split(['/', '.']).next()).collect();
        let root: String = modules.iter().map(|module| format!("mod {module};")).collect();
        let mut rust: Vec<RustFile> = files.iter().map(|(path, text)| file(path, text)).collect();
        rust.push(file("lib.rs", &root));
        check(&rust).iter().map(|v| format!("{}: {}", v.rule, v.remedy)).collect()
    }

    #[test]
    fn a_circle_is_found_however_it_is_written() {
        for (what, text, is_circle) in [
            ("plain", "use crate::driver::Action;", true),
            ("in a group", "use crate::{driver, time};", true),
            ("in a group over lines", "use crate::{\n  time::{A, B},\n  driver,\n};", true),
            ("a part of a group's part", "use crate::{time::{driver}};", false),
            ("in an expression", "fn f() { crate::driver::g() }", true),
            ("in a macro", "fn f() { g!(crate::driver::g()) }", true),
            ("through super", "use super::driver::Action;", true),
            ("a child of that name", "use self::driver::X;", false),
            ("a test may", "#[cfg(test)]\nmod tests {\nuse crate::driver;\n}", false),
        ] {
            let broken = broken(&[
                ("arrival/mod.rs", text),
                ("driver/mod.rs", "use crate::arrival::Constant;"),
                ("time.rs", ""),
            ]);
            assert_eq!(!broken.is_empty(), is_circle, "{what}: {broken:?}");
        }
    }

    #[test]
    fn a_detour_is_a_circle_and_a_layer_is_none() {
        let files = [
            ("a.rs", "use crate::b::X;"),
            ("b.rs", "use crate::c::X;"),
            ("c.rs", "use crate::a::X;"),
        ];
        assert_eq!(broken(&files).len(), 3);
        assert_eq!(broken(&files[..2]).len(), 0);
    }

    #[test]
    fn experiments_do_not_know_of_each_other() {
        let broken = broken(&[
            ("experiment/mod.rs", "mod udp;\nmod sweep;\npub trait Experiment {}"),
            ("experiment/udp/mod.rs", "mod spec;\nuse crate::experiment::sweep::Sweep;"),
            ("experiment/udp/spec.rs", "use crate::experiment::Experiment;"),
            ("experiment/sweep/mod.rs", "mod spec;"),
            ("experiment/sweep/spec.rs", ""),
        ]);
        assert_eq!(broken.len(), 1, "{broken:?}");
        assert!(broken[0].starts_with("neighbour: experiment/udp"), "{broken:?}");
    }

    #[test]
    fn what_is_for_tests_alone_may_use_anything() {
        let files = [
            ("a/mod.rs", "#[cfg(test)]\nmod fake;\nmod real;"),
            ("a/fake.rs", "use crate::b::X;"),
            ("a/real.rs", ""),
            ("b.rs", "use crate::a::X;"),
        ];
        assert_eq!(broken(&files), [""; 0]);
        let real = [("a/mod.rs", "mod fake;\nmod real;"), files[1], files[2], files[3]];
        assert_eq!(broken(&real).len(), 2);
    }

    #[test]
    fn files_of_a_part_form_layers_too() {
        let files = [
            ("a/mod.rs", "mod b;\nmod c;\nuse b::X;"),
            ("a/b.rs", "use super::c::Y;\nuse super::Z;"),
            ("a/c.rs", "use crate::a::b::X;"),
        ];
        assert_eq!(broken(&files).len(), 2, "{:?}", broken(&files));
        let layered = [files[0], files[1], ("a/c.rs", "use super::Z;")];
        assert_eq!(broken(&layered), [""; 0]);
    }

    #[test]
    fn a_file_is_declared_by_the_one_above_it() {
        let dead = broken(&[("b.rs", "// mod d;"), ("b/d.rs", ""), ("c/mod.rs", "mod e;")]);
        assert_eq!(dead.len(), 1, "{dead:?}");
        assert!(dead[0].starts_with("dead file"));
    }
}
