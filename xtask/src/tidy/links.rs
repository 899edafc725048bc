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
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let path = if path.is_empty() { page.path.clone() } else { resolved(&page.path, path) };
            let remedy = match files.get(path.as_str()) {
                None => format!("there is no {path}"),
                Some(text) if !anchor.is_empty() && !anchors(text).any(|a| a == anchor) => {
                    format!("no heading of {path} has the anchor #{anchor}")
                }
                Some(_) => continue,
            };
            broken.push(TidyViolation::at(&page.path, line, "dead link", remedy));
        }
    }
    if let Some(summary) = files.get(SUMMARY) {
        let listed: Vec<String> =
            links(summary).iter().map(|(_, link)| resolved(SUMMARY, link)).collect();
        for page in sources.iter().filter(|s| s.path.starts_with("docs/src/")) {
            let is_listed = page.path == SUMMARY || listed.contains(&page.path);
            if page.path.ends_with(".md") && !is_listed {
                let remedy = format!("name it in {SUMMARY}");
                broken.push(TidyViolation::at(&page.path, 1, "lost page", remedy));
            }
        }
    }
    broken
}

/// The lines outside fenced code, numbered from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().enumerate().filter_map(move |(i, line)| {
        is_code ^= line.trim_start().starts_with("```");
        (!is_code).then_some((i + 1, line))
    })
}

/// The addresses of links and pictures in the text, but for code.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut links = Vec::new();
    for (number, line) in prose(text) {
        for part in line.split('`').step_by(2) {
            let ends = part.split("](").skip(1);
            links.extend(ends.filter_map(|end| Some((number, end.split_once(')')?.0))));
        }
    }
    links
}

/// A path beside a page, from the repository's root.
fn resolved(page: &str, link: &str) -> String {
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
fn anchors(text: &str) -> impl Iterator<Item = String> {
    prose(text).filter(|(_, line)| line.starts_with('#')).map(|(_, line)| {
        let title = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        title.chars().filter(|c| c.is_alphanumeric() || *c == '-' || *c == '_').collect()
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
