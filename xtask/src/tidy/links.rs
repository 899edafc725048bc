//! Links between pages lead somewhere, and each page of the book is in its table of contents.

use super::TidyViolation;
use crate::repo::RepoFile;
use std::collections::HashMap;

const SUMMARY: &str = "docs/src/SUMMARY.md";

/// Links that lead nowhere, and pages that no reader finds.
pub fn check(sources: &[RepoFile]) -> Vec<TidyViolation> {
    let files: HashMap<&str, &str> =
        sources.iter().map(|s| (s.path.as_str(), s.text.as_str())).collect();
    let mut broken = Vec::new();
    for page in sources.iter().filter(|s| s.path.ends_with(".md")) {
        for (line, link) in links(&page.text) {
            if let Some(remedy) = trouble(&files, &page.path, link) {
                broken.push(TidyViolation {
                    path: page.path.clone(),
                    line,
                    rule: "dead link",
                    remedy,
                });
            }
        }
    }
    if let Some(summary) = files.get(SUMMARY) {
        let listed: Vec<String> =
            links(summary).iter().map(|(_, link)| resolved(SUMMARY, link)).collect();
        let is_page = |s: &&RepoFile| s.path.starts_with("docs/src/") && s.path.ends_with(".md");
        for page in sources.iter().filter(is_page) {
            if page.path != SUMMARY && !listed.contains(&page.path) {
                broken.push(TidyViolation {
                    path: page.path.clone(),
                    line: 1,
                    rule: "lost page",
                    remedy: format!("name it in {SUMMARY}"),
                });
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

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(pages: &[(&str, &str)]) -> Vec<String> {
        let source =
            |(path, text): &(&str, &str)| RepoFile { path: (*path).into(), text: (*text).into() };
        let sources: Vec<RepoFile> = pages.iter().map(source).collect();
        check(&sources).iter().map(|v| format!("{}: {}", v.path, v.rule)).collect()
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
}
