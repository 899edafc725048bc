//! Plain English in the documentation, in comments and in what a program prints: short sentences,
//! and none of the phrases that slow a reader down.

use super::TidyViolation;
use super::code::RustFile;
use crate::repo::RepoFile;

/// A sentence may have this many words.
const WORDS_MAX: usize = 25;

/// A phrase and what to write instead.
const PHRASES: [(&str, &str); 22] = [
    ("so long", "name the time"),
    ("so many", "name the number"),
    ("of which", "begin another sentence"),
    ("is told", "say who does what"),
    ("is said", "say who does what"),
    ("takes in", "accepts"),
    ("gives up", "name the time limit"),
    ("given up", "name the time limit"),
    ("knee's own", "built-in"),
    ("moment", "time"),
    ("moments", "times"),
    ("are told", "say who does what"),
    ("stands still", "stalled"),
    ("stood still", "stalled"),
    ("fares", "say what happens"),
    ("strikes", "say what happens"),
    ("of a worker", "turn the sentence around"),
    ("clumsiness", "delay"),
    ("far and away", "leave it out"),
    ("simply", "leave it out"),
    ("obviously", "leave it out"),
    ("as far as was seen", "name the range"),
];

/// Violations in a page that users read.
pub fn check_page(page: &RepoFile) -> Vec<TidyViolation> {
    let is_read = page.path == "README.md" || page.path.starts_with("docs/src/");
    // Help texts are judged where they stand.
    if !is_read || page.path.ends_with("reference/options.md") {
        return Vec::new();
    }
    violations(&page.path, blocks(&page.text))
}

/// Violations in the comments of a Rust file. Those of help texts are among them.
pub fn check_comments(code: &RustFile) -> Vec<TidyViolation> {
    violations(&code.path, blocks(&comments(code)))
}

fn violations(path: &str, blocks: Vec<(usize, String)>) -> Vec<TidyViolation> {
    let mut broken = Vec::new();
    let mut report = |line, rule, remedy: String| {
        broken.push(TidyViolation::at(path, line, rule, remedy));
    };
    for (line, text) in blocks {
        for sentence in sentences(&text) {
            let count = word_count(sentence);
            if count > WORDS_MAX {
                let start: String = sentence.chars().take(40).collect();
                let remedy = format!("{count} words, at most {WORDS_MAX}: '{start}…'");
                report(line, "long sentence", remedy);
            }
        }
        for (phrase, remedy) in phrases_in(&text) {
            report(line, "phrase", format!("'{phrase}': {remedy}"));
        }
    }
    broken
}

/// The file's lines with the text of comments alone. A comment behind code is an item of a list.
fn comments(code: &RustFile) -> String {
    let text_of = |(line, bare): (&String, &String)| {
        let text = |comment: &str| comment.trim_start_matches(['/', '!']).trim().to_owned();
        if line.trim_start().starts_with("//") {
            return text(line.trim_start());
        }
        let Some((before, comment)) = line.split_once("// ") else {
            return String::new();
        };
        let quotes = bare.chars().take(before.chars().count()).filter(|c| *c == '"').count();
        if quotes % 2 == 0 { format!("- {}", text(comment)) } else { String::new() }
    };
    code.lines.iter().zip(&code.bare).map(|of| text_of(of) + "\n").collect()
}

/// The phrases of [`PHRASES`] that a text has as whole words, and what to write instead.
fn phrases_in(text: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let text = text.to_lowercase();
    let is_there = move |phrase: &str| {
        let mut found = text.match_indices(phrase);
        found.any(|(at, _)| is_whole(&text, at, phrase.len()))
    };
    PHRASES.into_iter().filter(move |(phrase, _)| is_there(phrase))
}

fn is_whole(text: &str, at: usize, length: usize) -> bool {
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphabetic);
    !is_letter(text[..at].chars().next_back()) && !is_letter(text[at + length..].chars().next())
}

/// Paragraphs, items of lists, cells of tables and headings, each with the line it begins in and
/// without markup. Code in a line counts as a word, code blocks are left out.
fn blocks(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let (mut is_code, mut goes_on) = (false, false);
    for (i, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with("```") {
            (is_code, goes_on) = (!is_code, false);
            continue;
        }
        if is_code || line.is_empty() || line.starts_with("<!--") {
            goes_on = false;
            continue;
        }
        let line = plain(line);
        let is_numbered = line.split_once(". ").is_some_and(|(n, _)| n.parse::<u32>().is_ok());
        if line.starts_with('|') {
            found.extend(line.split('|').map(|cell| (i + 1, cell.to_owned())));
            goes_on = false;
        } else if line.starts_with('#') {
            found.push((i + 1, line));
            goes_on = false;
        } else if !goes_on || is_numbered || line.starts_with("- ") || line.starts_with("* ") {
            found.push((i + 1, line));
            goes_on = true;
        } else if let Some((_, block)) = found.last_mut() {
            block.push(' ');
            block.push_str(&line);
        }
    }
    found
}

/// Without the addresses of links, and with code in a line as one word.
fn plain(line: &str) -> String {
    let mut out = String::new();
    for (i, part) in line.split('`').enumerate() {
        match i % 2 {
            0 => out.push_str(part),
            _ => out.push_str("CODE"),
        }
    }
    while let Some(at) = out.find("](") {
        let end = out[at..].find(')').map_or(out.len(), |end| at + end + 1);
        out.replace_range(at..end, "]");
    }
    out
}

/// Words of a sentence; a sign alone is none.
fn word_count(sentence: &str) -> usize {
    sentence.split_whitespace().filter(|w| w.contains(char::is_alphanumeric)).count()
}

fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(". ").or_else(|| rest.find("? ")) {
        found.push(&rest[..=at]);
        rest = &rest[at + 2..];
    }
    found.push(rest);
    found
}

/// Phrases in the string literals of a product file.
pub fn check_literals(code: &RustFile) -> Vec<TidyViolation> {
    let mut broken = Vec::new();
    if !code.path.starts_with("crates/") || !code.path.contains("/src/") {
        return broken;
    }
    for (line, bare) in code.product_lines() {
        let written = &code.lines[line - 1];
        if written.trim_start().starts_with("//") {
            continue;
        }
        // What is inside of literals is blank in `bare`.
        let text = inside_literals(written, bare);
        broken.extend(phrases_in(&text).map(|(phrase, instead)| {
            let remedy = format!("'{phrase}' is hard to follow: {instead}");
            TidyViolation::at(&code.path, line, "language", remedy)
        }));
    }
    broken
}

fn inside_literals(line: &str, bare: &str) -> String {
    let bare = bare.chars().chain(std::iter::repeat(' '));
    line.chars()
        .zip(bare)
        .map(|(c, b)| if c == b { ' ' } else { c })
        .collect::<String>()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::tests::broken_by;

    #[test]
    fn a_long_sentence_is_found_and_two_short_ones_are_not() {
        let words = |n: usize| vec!["word"; n].join(" ");
        let long = format!("# Title\n\n{}\n{}.\n", words(20), words(6));
        assert_eq!(broken_by("docs/src/a.md", &long), ["3: long sentence"]);
        let short = format!("{}. {}.\n", words(25), words(25));
        assert!(broken_by("docs/src/a.md", &short).is_empty());
        let code = format!("```\n{}\n```\n| {} | {} |\n", words(40), words(20), words(20));
        assert!(broken_by("README.md", &code).is_empty());
        assert!(broken_by("ARCHITECTURE.md", &long).is_empty());
    }

    #[test]
    fn a_phrase_is_found_as_whole_words_and_not_in_code() {
        for (text, expected) in [
            ("The server waits so long that it ends.", 1),
            ("Welfares and momentum are other words.", 0),
            ("`so long` is code, as is\n```\nso many\n```", 0),
            ("At that moment it ends.", 1),
        ] {
            assert_eq!(broken_by("README.md", text).len(), expected, "{text}");
        }
    }

    #[test]
    fn comments_are_prose_too() {
        let long = ["so"; 26].join(" ");
        for (text, expected) in [
            ("/// So\n/// many.\nfn f() {}", &["1: phrase"][..]),
            ("f(); // at that moment", &["1: phrase"]),
            (&format!("f();\n// {long}."), &["2: long sentence"]),
            ("// `so many` is code", &[]),
            ("// ```\n// so many\n// ```", &[]),
            ("f(\"http:// so much\");", &[]),
        ] {
            assert_eq!(broken_by("crates/core/tests/x.rs", text), expected, "{text}");
        }
    }

    #[test]
    fn phrases_are_found_where_users_read_them() {
        for (what, path, text, found) in [
            ("a sentence", "crates/core/src/x.rs", "fn f() { g(\"it stood still\") }", 1),
            ("part of a word", "crates/core/src/x.rs", "fn f() { g(\"momentum\") }", 0),
            ("a name in code", "crates/core/src/x.rs", "fn moment() {}", 0),
            ("a comment", "crates/core/src/x.rs", "// so many\nfn f() {}", 0),
            (
                "a test",
                "crates/core/src/x.rs",
                "#[cfg(test)]\nmod t {\nconst A: &str = \"so long\";\n}",
                0,
            ),
        ] {
            let broken = broken_by(path, text);
            let language = broken.iter().filter(|v| v.contains("language")).count();
            assert_eq!(language, found, "{what}: {broken:?}");
        }
    }
}
