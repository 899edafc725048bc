//! Lines, functions and files of a size that a person can take in. Each public type of the
//! workspace has a name of its own, and that of a test is short.

use super::TidyViolation;
use super::code::{RustFile, block_end, find_word};
use crate::repo::RepoFile;
use std::collections::BTreeMap;

const LINE_CHARS_MAX: usize = 100;
const FUNCTION_LINES_MAX: usize = 70;
/// A test that is a table of cases is data for the most part.
const TEST_LINES_MAX: usize = 120;
const FILE_LINES_MAX: usize = 500;
const FILE_LINES_WITH_TESTS_MAX: usize = 700;

/// Violations of size in a Rust file.
pub fn check_sizes(code: &RustFile) -> Vec<TidyViolation> {
    let mut broken = Vec::new();
    let mut report = |line, rule, remedy: String| {
        broken.push(TidyViolation::at(&code.path, line, rule, remedy));
    };
    for (i, line) in code.lines.iter().enumerate() {
        if line.chars().count() > LINE_CHARS_MAX && !is_one_literal(line, &code.bare[i]) {
            report(i + 1, "line length", fit_columns());
        }
    }
    for (line, length) in functions(code) {
        let max = if code.test[line - 1] { TEST_LINES_MAX } else { FUNCTION_LINES_MAX };
        if length > max {
            let remedy = format!("{length} lines: split it so that it fits {max}");
            report(line, "function length", remedy);
        }
    }
    let product = code.test.iter().filter(|test| !**test).count();
    if product > FILE_LINES_MAX {
        let remedy = format!("{product} lines: one noun per file, at most {FILE_LINES_MAX}");
        report(1, "file length", remedy);
    } else if code.lines.len() > FILE_LINES_WITH_TESTS_MAX {
        let max = FILE_LINES_WITH_TESTS_MAX;
        let remedy = format!("{} lines with tests: move some to reach {max}", code.lines.len());
        report(1, "file length", remedy);
    }
    broken
}

/// Lines too long in a file that is not Rust.
pub fn check_lines(source: &RepoFile) -> Vec<TidyViolation> {
    let long = |line: &&str| line.chars().count() > LINE_CHARS_MAX;
    let numbered = source.text.lines().enumerate().filter(|(_, line)| long(line));
    numbered
        .map(|(i, _)| TidyViolation::at(&source.path, i + 1, "line length", fit_columns()))
        .collect()
}

fn fit_columns() -> String {
    format!("fit {LINE_CHARS_MAX} columns")
}

/// Whether a long line is one literal without a blank to break it at, such as an address.
fn is_one_literal(line: &str, bare: &str) -> bool {
    let literal = line.trim().trim_end_matches([',', ';', ')']).trim_matches('"');
    !literal.contains(char::is_whitespace) && bare.contains('"')
}

/// The first line (from 1) and the number of lines of each function with a body.
fn functions(code: &RustFile) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (i, line) in code.bare.iter().enumerate() {
        let Some(at) = find_word(line, "fn") else {
            continue;
        };
        let named =
            line[at + 2..].trim_start().starts_with(|c: char| c.is_alphabetic() || c == '_');
        if !named {
            continue; // the type of a function
        }
        if let Some(end) = block_end(&code.bare, i, at) {
            found.push((i + 1, end - i + 1));
        }
    }
    found
}

const TEST_NAME_MAX: usize = 60;

/// Violations in all files together.
pub fn check_names(rust: &[RustFile]) -> Vec<TidyViolation> {
    let mut broken: Vec<TidyViolation> = rust.iter().flat_map(long_test_names).collect();
    let mut declared: BTreeMap<&str, Vec<(&RustFile, usize)>> = BTreeMap::new();
    for code in rust {
        for (line, text) in code.product_lines() {
            if let Some(name) = public_type(text) {
                declared.entry(name).or_default().push((code, line));
            }
        }
    }
    for (name, places) in declared.iter().filter(|(_, places)| places.len() > 1) {
        let (first, line) = places[0];
        broken.extend(places[1..].iter().map(|(code, at)| {
            let first = &first.path;
            let remedy =
                format!("{name} is a type in {first}:{line}: name this one for what it is");
            TidyViolation::at(&code.path, *at, "type name", remedy)
        }));
    }
    broken
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

fn long_test_names(code: &RustFile) -> Vec<TidyViolation> {
    let pairs = code.bare.windows(2).enumerate();
    let long = pairs.filter_map(|(i, lines)| {
        let name = lines[1].trim_start().strip_prefix("fn ")?.split('(').next()?;
        let remedy = || format!("name the behaviour in at most {TEST_NAME_MAX} characters");
        (lines[0].trim() == "#[test]" && name.len() > TEST_NAME_MAX)
            .then(|| TidyViolation::at(&code.path, i + 2, "test name", remedy()))
    });
    long.collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::broken_by;

    fn shape(text: &str) -> Vec<String> {
        let mut found = broken_by("crates/engine/src/lib.rs", text);
        found.sort();
        found
    }

    #[test]
    fn a_line_fits_100_columns() {
        assert_eq!(shape(&format!("// {}", "x".repeat(98))), ["1: line length"]);
        assert!(shape(&format!("// {}", "x".repeat(97))).is_empty());
        assert!(shape(&format!("const A: &str =\n    \"{}\";", "x".repeat(120))).is_empty());
        assert_eq!(shape(&format!("f(\"{}\");", "x y ".repeat(30))), ["1: line length"]);
        let c = broken_by("bench/x.c", &"x".repeat(101));
        assert_eq!(c, ["1: line length"]);
    }

    #[test]
    fn a_function_fits_a_screen() {
        let of = |lines: usize| format!("fn f(\n) {{\n{}}}\n", "    g();\n".repeat(lines - 3));
        assert!(shape(&of(70)).is_empty());
        assert_eq!(shape(&of(71)), ["1: function length"]);
        assert!(broken_by("crates/engine/tests/a.rs", &of(120)).is_empty());
        assert_eq!(broken_by("crates/engine/tests/a.rs", &of(121)), ["1: function length"]);
        let array = format!("fn f(x: [u8; 2]) {{\n{}}}\n", "    g();\n".repeat(70));
        assert_eq!(shape(&array), ["1: function length"]);
        assert!(shape(&format!("type F = fn(u8);\n{}", "// x.\n".repeat(80))).is_empty());
        assert!(shape(&format!("fn f(); // declared\n{}", "// x.\n".repeat(80))).is_empty());
    }

    #[test]
    fn a_file_has_one_noun() {
        let of = |lines: usize, tests: usize| {
            let test = "// t.\n".repeat(tests.saturating_sub(3));
            format!("{}#[cfg(test)]\nmod tests {{\n{test}}}\n", "// x.\n".repeat(lines))
        };
        assert!(shape(&of(500, 200)).is_empty());
        assert_eq!(shape(&of(501, 10)), ["1: file length"]);
        assert_eq!(shape(&of(300, 401)), ["1: file length"]);
    }

    #[test]
    fn a_public_type_has_a_name_of_its_own() {
        for (text, expected) in [
            ("pub struct A;\npub(crate) enum A {}", &["2: type name"][..]),
            ("pub struct A;\npub struct B;", &[]),
            ("struct A;\nmod b { struct A; }", &[]),
            ("pub struct A;\n#[cfg(test)]\nmod tests {\n pub struct A;\n}", &[]),
        ] {
            assert_eq!(broken_by("crates/engine/src/lib.rs", text), expected, "{text}");
        }
    }

    #[test]
    fn a_test_has_a_short_name() {
        let of = |length| format!("#[test]\nfn {}() {{}}", "x".repeat(length));
        assert_eq!(broken_by("crates/core/tests/x.rs", &of(61)), ["2: test name"]);
        assert!(broken_by("crates/core/tests/x.rs", &of(60)).is_empty());
    }
}
