//! Rules that the code does not keep yet: how often each crate may break them. The numbers of
//! `xtask/ratchet.txt` only fall.

use super::TidyViolation;
use super::code::{RustFile, find_word};
use super::prose::{WORDS_MAX, phrases_in, plain, sentences, word_count};
use crate::repo;
use crate::shell::write;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A rule and the places that break it.
struct Rule {
    /// Its name in the file.
    name: &'static str,
    remedy: &'static str,
    /// Files and their lines, from 1.
    places: fn(&[RustFile]) -> Vec<(&str, usize)>,
}

const RULES: &[Rule] = &[
    Rule {
        name: "comment-phrase",
        remedy: "say it in the words of the table in tidy/prose.rs",
        places: comment_phrases,
    },
    Rule {
        name: "comment-sentence",
        remedy: "write sentences of at most 25 words",
        places: comment_sentences,
    },
    Rule { name: "match-on-bool", remedy: "write `if`", places: matches_on_bool },
    Rule {
        name: "type-name-twice",
        remedy: "give each public type of the workspace a name of its own",
        places: types_twice,
    },
    Rule {
        name: "long-test-name",
        remedy: "name the behaviour in at most 60 characters",
        places: long_test_names,
    },
];

const TEST_NAME_MAX: usize = 60;
/// Places that a violation names.
const SHOWN_MAX: usize = 10;

type Counts = BTreeMap<(String, String), usize>;

fn file() -> PathBuf {
    repo::root().join("xtask/ratchet.txt")
}

/// Crates that break a rule more often than the file allows.
///
/// # Errors
/// The file cannot be read.
pub fn check(rust: &[RustFile]) -> Result<Vec<TidyViolation>, String> {
    let text = std::fs::read_to_string(file()).map_err(|e| format!("ratchet.txt: {e}"))?;
    Ok(exceeded(rust, &parse(&text)))
}

/// Lowers the numbers of the file to what is left.
///
/// # Errors
/// The file cannot be written.
pub fn lower(rust: &[RustFile]) -> Result<(), String> {
    let text = std::fs::read_to_string(file()).unwrap_or_default();
    let mut allowed = parse(&text);
    let counted = counts(rust);
    for (key, number) in &mut allowed {
        *number = (*number).min(counted.get(key).copied().unwrap_or(0));
    }
    let rows = allowed.iter().filter(|(_, number)| **number > 0);
    let rows = rows.map(|((rule, part), number)| format!("{rule} {part} {number}\n"));
    let lowered: String = rows.collect();
    if lowered == text {
        return Ok(());
    }
    println!("xtask/ratchet.txt is lower now: commit it");
    write(&file(), lowered)
}

/// Lines of a rule, a crate and a number.
fn parse(text: &str) -> Counts {
    let row = |line: &str| {
        let mut words = line.split(' ').map(str::to_owned);
        let key = (words.next()?, words.next()?);
        Some((key, words.next()?.parse().ok()?))
    };
    text.lines().filter_map(row).collect()
}

fn counts(rust: &[RustFile]) -> Counts {
    let mut counts = Counts::new();
    for rule in RULES {
        for (path, _) in (rule.places)(rust) {
            *counts.entry((rule.name.into(), part(path))).or_default() += 1;
        }
    }
    counts
}

fn exceeded(rust: &[RustFile], allowed: &Counts) -> Vec<TidyViolation> {
    let mut broken = Vec::new();
    for rule in RULES {
        let mut by_part: BTreeMap<String, Vec<(&str, usize)>> = BTreeMap::new();
        for (path, line) in (rule.places)(rust) {
            by_part.entry(part(path)).or_default().push((path, line));
        }
        for (part, places) in by_part {
            let allowed = allowed.get(&(rule.name.into(), part)).copied().unwrap_or(0);
            if places.len() <= allowed {
                continue;
            }
            let shown = places.iter().take(SHOWN_MAX);
            let shown: Vec<String> = shown.map(|(path, line)| format!("{path}:{line}")).collect();
            broken.push(TidyViolation {
                path: places[0].0.to_owned(),
                line: places[0].1,
                rule: rule.name,
                remedy: format!(
                    "{}: {} in this crate, {allowed} allowed: {} …",
                    rule.remedy,
                    places.len(),
                    shown.join(", ")
                ),
            });
        }
    }
    broken
}

/// The crate of a file.
fn part(path: &str) -> String {
    path.strip_prefix("crates/").unwrap_or(path).split('/').next().unwrap_or_default().to_owned()
}

/// Comments that go on over several lines, each with its first line.
fn comments(code: &RustFile) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (i, line) in code.lines.iter().enumerate() {
        let Some(text) = line.trim_start().strip_prefix("//") else {
            goes_on = false;
            let bare = code.bare.get(i).map_or("", String::as_str);
            let trailing = line.find("// ").filter(|at| {
                let before = bare.get(..*at).unwrap_or_default();
                before.matches('"').count() % 2 == 0
            });
            found.extend(trailing.map(|at| (i + 1, plain(&line[at + 3..]))));
            continue;
        };
        let text = plain(text.trim_start_matches(['/', '!']).trim());
        match found.last_mut().filter(|_| goes_on && !text.is_empty()) {
            Some((_, block)) => {
                block.push(' ');
                block.push_str(&text);
            }
            None => found.push((i + 1, text.clone())),
        }
        goes_on = !text.is_empty();
    }
    found
}

fn comment_phrases(rust: &[RustFile]) -> Vec<(&str, usize)> {
    let of = |code| {
        comments(code).into_iter().flat_map(|(line, text)| {
            let broken = phrases_in(&text).count();
            std::iter::repeat_n(line, broken)
        })
    };
    in_crates(rust, of)
}

fn comment_sentences(rust: &[RustFile]) -> Vec<(&str, usize)> {
    let of = |code| {
        comments(code).into_iter().flat_map(|(line, text)| {
            let long = sentences(&text).into_iter().filter(|s| word_count(s) > WORDS_MAX);
            std::iter::repeat_n(line, long.count())
        })
    };
    in_crates(rust, of)
}

/// Matches whose first arm is `true` or `false`.
fn matches_on_bool(rust: &[RustFile]) -> Vec<(&str, usize)> {
    in_crates(rust, |code| {
        let starts = code.bare.iter().enumerate().filter_map(|(i, line)| {
            let at = find_word(line, "match")?;
            is_on_bool(&code.bare[i..], at + "match".len()).then_some(i + 1)
        });
        starts.collect::<Vec<_>>()
    })
}

/// Whether the first arm of the match that begins at this column of the first line is a boolean.
fn is_on_bool(bare: &[String], column: usize) -> bool {
    let rest = bare.iter().enumerate().flat_map(|(i, line)| {
        let from = if i == 0 { column } else { 0 };
        line[from..].chars().chain(['\n'])
    });
    let mut depth = 0;
    let mut rest = rest.skip_while(move |c| {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            _ => {}
        }
        *c != '{' || depth > 0
    });
    rest.next();
    let arm: String = rest.skip_while(|c| c.is_whitespace()).take(6).collect();
    ["true", "false"].iter().any(|word| find_word(&arm, word) == Some(0))
}

/// Public types with a name that another one of the workspace has.
fn types_twice(rust: &[RustFile]) -> Vec<(&str, usize)> {
    let mut declared: BTreeMap<&str, Vec<(&str, usize)>> = BTreeMap::new();
    for code in rust.iter().filter(|code| is_in_crate(code)) {
        for (line, text) in code.product_lines() {
            if let Some(name) = public_type(text) {
                declared.entry(name).or_default().push((&code.path, line));
            }
        }
    }
    declared.into_values().filter(|places| places.len() > 1).flatten().collect()
}

/// The name that `pub struct Name`, `pub(crate) enum Name`, … declares.
fn public_type(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(scope) => scope.split_once(')')?.1,
        None => rest,
    };
    let rest = rest.trim_start();
    let kinds = ["struct ", "enum ", "trait ", "union ", "type "];
    let name = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?;
    name.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

fn long_test_names(rust: &[RustFile]) -> Vec<(&str, usize)> {
    in_crates(rust, |code| {
        let pairs = code.bare.windows(2).enumerate();
        let long = pairs.filter_map(|(i, lines)| {
            let name = lines[1].trim_start().strip_prefix("fn ")?.split('(').next()?;
            (lines[0].trim() == "#[test]" && name.len() > TEST_NAME_MAX).then_some(i + 2)
        });
        long.collect::<Vec<_>>()
    })
}

fn is_in_crate(code: &RustFile) -> bool {
    code.path.starts_with("crates/") || code.path.starts_with("xtask/")
}

/// Each file of a crate with these lines of it.
fn in_crates<'a, I: IntoIterator<Item = usize>>(
    rust: &'a [RustFile],
    lines: impl Fn(&'a RustFile) -> I,
) -> Vec<(&'a str, usize)> {
    let inside = rust.iter().filter(|code| is_in_crate(code));
    let places =
        inside.flat_map(|code| lines(code).into_iter().map(|line| (code.path.as_str(), line)));
    places.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::RepoFile;

    fn found(text: &str) -> Vec<String> {
        let code = |path: &str| RustFile::new(&RepoFile { path: path.into(), text: text.into() });
        let counts = counts(&[code("crates/core/src/x.rs")]);
        counts.into_iter().map(|((rule, part), number)| format!("{rule} {part} {number}")).collect()
    }

    #[test]
    fn each_rule_is_counted_by_crate() {
        let long = vec!["word"; 26].join(" ");
        for (text, expected) in [
            ("/// So\n/// many.\nfn f() {}", "comment-phrase core 1"),
            ("f(); // at that moment", "comment-phrase core 1"),
            (&format!("// {long}."), "comment-sentence core 1"),
            ("fn f() { match g(|| { 1 }) { true => 1, _ => 2 } }", "match-on-bool core 1"),
            ("fn f() {\n match x\n {\n  false if y => 1,\n } }", "match-on-bool core 1"),
            ("pub struct A;\npub(crate) enum A {}", "type-name-twice core 2"),
            (&format!("#[test]\nfn {}() {{}}", "x".repeat(61)), "long-test-name core 1"),
        ] {
            assert_eq!(found(text), [expected], "{text}");
        }
        for text in [
            "// `so many` is code",
            "f(\"http://so many\");",
            "fn f() { match x { Some(true) => 1, _ => 2 } }",
            "struct A;\nmod b { struct A; }",
            "pub struct A;\n#[cfg(test)]\nmod tests {\n pub struct A;\n}",
        ] {
            assert_eq!(found(text), [] as [&str; 0], "{text}");
        }
    }

    #[test]
    fn more_than_allowed_is_a_violation() {
        let code = RustFile::new(&RepoFile {
            path: "crates/core/src/x.rs".into(),
            text: "fn f() { match x { true => 1, _ => 2 } }".into(),
        });
        let rust = [code];
        assert!(exceeded(&rust, &parse("match-on-bool core 1\n")).is_empty());
        let broken = exceeded(&rust, &parse("match-on-bool engine 1\n"));
        assert_eq!(broken.len(), 1);
        assert_eq!(broken[0].rule, "match-on-bool");
    }
}
