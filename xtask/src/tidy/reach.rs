//! What can be reached. Links between pages lead somewhere, and each page of the book is in its
//! table of contents. Files that no `mod` reaches are not compiled, and rot.

use super::TidyViolation;
use super::code::{RustFile, find_word};
use crate::repo::RepoFile;
use std::collections::{BTreeSet, HashMap};

const SUMMARY: &str = "docs/src/SUMMARY.md";

/// Links that lead nowhere, and pages that no reader finds.
pub fn check_links(sources: &[RepoFile]) -> Vec<TidyViolation> {
    let files: HashMap<&str, &str> =
        sources.iter().map(|s| (s.path.as_str(), s.text.as_str())).collect();
    let mut broken = Vec::new();
    for page in sources.iter().filter(|s| s.path.ends_with(".md")) {
        for (line, link) in links(&page.text) {
            if let Some(remedy) = trouble(&files, &page.path, link) {
                broken.push(TidyViolation::at(&page.path, line, "dead link", remedy));
            }
        }
    }
    if let Some(summary) = files.get(SUMMARY) {
        let listed: Vec<String> =
            links(summary).iter().map(|(_, link)| resolved(SUMMARY, link)).collect();
        let is_page = |s: &&RepoFile| s.path.starts_with("docs/src/") && s.path.ends_with(".md");
        for page in sources.iter().filter(is_page) {
            if page.path != SUMMARY && !listed.contains(&page.path) {
                let remedy = format!("name it in {SUMMARY}");
                broken.push(TidyViolation::at(&page.path, 1, "lost page", remedy));
            }
        }
    }
    broken
}

/// The addresses of links and pictures in the text, but for code.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut is_code = false;
    for (i, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if is_code {
            continue;
        }
        for part in line.split('`').step_by(2) {
            let ends = part.split("](").skip(1);
            found.extend(ends.filter_map(|end| Some((i + 1, end.split_once(')')?.0))));
        }
    }
    found
}

/// What is wrong with a link.
fn trouble(files: &HashMap<&str, &str>, page: &str, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let path = match path {
        "" => page.to_owned(),
        path => resolved(page, path),
    };
    let Some(text) = files.get(path.as_str()) else {
        return Some(format!("there is no {path}"));
    };
    let has_anchor = anchor.is_empty() || headings(text).any(|slug| slug == anchor);
    (!has_anchor).then(|| format!("no heading of {path} has the anchor #{anchor}"))
}

/// A path beside a page, from the repository's root.
pub(super) fn resolved(page: &str, link: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The anchors that mdBook and GitHub give to headings.
fn headings(text: &str) -> impl Iterator<Item = String> {
    let mut is_code = false;
    text.lines().filter_map(move |line| {
        if line.starts_with("```") {
            is_code = !is_code;
        }
        let title = line.strip_prefix('#').filter(|_| !is_code)?;
        let title = title.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
            _ => None,
        });
        Some(kept.collect())
    })
}

/// Rust files that are no crate's root and that no `mod` reaches.
pub fn check_files(files: &[RustFile]) -> Vec<TidyViolation> {
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
    let remedy = "no `mod` reaches it: declare it or delete it";
    dead.map(|code| TidyViolation::at(&code.path, 1, "dead file", remedy)).collect()
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

    fn broken(pages: &[(&str, &str)]) -> Vec<String> {
        let source =
            |(path, text): &(&str, &str)| RepoFile { path: (*path).into(), text: (*text).into() };
        let sources: Vec<RepoFile> = pages.iter().map(source).collect();
        check_links(&sources).iter().map(|v| format!("{}: {}", v.path, v.rule)).collect()
    }

    #[test]
    fn links_lead_to_files_and_headings() {
        let pages = [
            ("README.md", "[a](docs/src/a.md#the-title-of-it) [b](https://example.com/)"),
            ("docs/src/a.md", "# The title, of it\n[up](../../README.md) [me](#the-title-of-it)"),
            ("docs/src/SUMMARY.md", "[a](a.md)"),
        ];
        assert!(broken(&pages).is_empty(), "{:?}", broken(&pages));
        for (text, expected) in [
            ("[a](b.md)", 1),
            ("[a](#nothing)", 1),
            ("[a](#title)", 0),
            ("`[a](b.md)`", 0),
            ("```\n[a](b.md)\n```", 0),
        ] {
            let page = format!("# Title\n{text}\n");
            assert_eq!(broken(&[("README.md", &page)]).len(), expected, "{text}");
        }
    }

    #[test]
    fn each_page_of_the_book_is_in_its_contents() {
        let pages = [("docs/src/SUMMARY.md", "[a](a.md)"), ("docs/src/a.md", "")];
        assert!(broken(&pages).is_empty());
        let pages = [("docs/src/SUMMARY.md", "# Contents"), ("docs/src/a.md", "")];
        assert_eq!(broken(&pages), ["docs/src/a.md: lost page"]);
    }

    fn dead(files: &[(&str, &str)]) -> Vec<String> {
        let code = |(path, text): &(&str, &str)| {
            RustFile::new(&RepoFile { path: (*path).into(), text: (*text).into() })
        };
        let files: Vec<RustFile> = files.iter().map(code).collect();
        check_files(&files).into_iter().map(|v| v.path).collect()
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
