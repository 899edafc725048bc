//! Files that no `mod` reaches are not compiled, and rot.

use super::TidyViolation;
use super::code::{RustFile, find_word};
use super::links::resolved;
use std::collections::{BTreeSet, HashMap};

/// Rust files that are no crate's root and that no `mod` reaches.
pub fn check(files: &[RustFile]) -> Vec<TidyViolation> {
    let by_path: HashMap<&str, &RustFile> = files.iter().map(|c| (c.path.as_str(), c)).collect();
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = by_path.keys().copied().filter(|p| is_root(p)).collect();
    while let Some(path) = open.pop() {
        if reached.insert(path) {
            for candidate in declared(by_path[path]) {
                open.extend(by_path.get_key_value(candidate.as_str()).map(|(path, _)| *path));
            }
        }
    }
    let dead = files.iter().filter(|code| !reached.contains(code.path.as_str()));
    dead.map(|code| TidyViolation {
        path: code.path.clone(),
        line: 1,
        rule: "dead file",
        remedy: "no `mod` reaches it: declare it or delete it".into(),
    })
    .collect()
}

fn is_root(path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let mut folders = folder.rsplit('/');
    match folders.next().unwrap_or(folder) {
        // A test of several files: `tests/NAME/main.rs`.
        _ if name == "main.rs" && folders.next() == Some("tests") => true,
        "src" => name == "lib.rs" || name == "main.rs",
        "bin" | "tests" | "benches" | "examples" | "fuzz_targets" => !path.contains("/src/tests/"),
        _ => name == "build.rs",
    }
}

/// Where the files may be that a file's `mod x;` lines declare.
fn declared(code: &RustFile) -> Vec<String> {
    let (folder, name) = code.path.rsplit_once('/').unwrap_or(("", &code.path));
    let stem = name.trim_end_matches(".rs");
    let inside = if is_root(&code.path) || stem == "mod" {
        folder.to_string()
    } else {
        format!("{folder}/{stem}")
    };
    let names = code.bare.iter().filter_map(|line| {
        let at = find_word(line, "mod")?;
        line[at + 3..].trim().strip_suffix(';')
    });
    let files = names.flat_map(|m| [format!("{inside}/{m}.rs"), format!("{inside}/{m}/mod.rs")]);
    files.chain(named_paths(code)).collect()
}

/// Files that `#[path = "…"]` names, relative to the folder of the file.
fn named_paths(code: &RustFile) -> impl Iterator<Item = String> {
    code.lines.iter().filter_map(|line| {
        let path = line.trim().strip_prefix("#[path = \"")?;
        Some(resolved(&code.path, path.strip_suffix("\"]")?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::RepoFile;

    fn dead(files: &[(&str, &str)]) -> Vec<String> {
        let code = |(path, text): &(&str, &str)| {
            RustFile::new(&RepoFile { path: (*path).into(), text: (*text).into() })
        };
        let files: Vec<RustFile> = files.iter().map(code).collect();
        check(&files).into_iter().map(|v| v.path).collect()
    }

    #[test]
    fn a_file_is_reached_through_its_parents() {
        let files = [
            ("a/src/lib.rs", "mod b;\npub mod c;"),
            ("a/src/b.rs", "mod d;"),
            ("a/src/b/d.rs", ""),
            ("a/src/c/mod.rs", "#[cfg(test)]\nmod tests;"),
            ("a/src/c/tests.rs", ""),
            ("a/tests/e.rs", "mod common;"),
            ("a/tests/common/mod.rs", ""),
            ("a/tests/f/main.rs", "mod g;"),
            ("a/tests/f/g.rs", ""),
            ("b/src/lib.rs", "#[path = \"../tests/help/mod.rs\"]\nmod help;"),
            ("b/tests/help/mod.rs", ""),
        ];
        assert!(dead(&files).is_empty());
        let mut orphan = files;
        orphan[1].1 = "// mod d;";
        assert_eq!(dead(&orphan), ["a/src/b/d.rs"]);
    }
}
