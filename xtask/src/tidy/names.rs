//! Names: each public type of the workspace has one of its own, and that of a test is short.

use super::TidyViolation;
use super::code::RustFile;
use std::collections::BTreeMap;

const TEST_NAME_MAX: usize = 60;

/// Violations in all files together.
pub fn check(rust: &[RustFile]) -> Vec<TidyViolation> {
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
        broken.extend(places[1..].iter().map(|(code, at)| TidyViolation {
            path: code.path.clone(),
            line: *at,
            rule: "type name",
            remedy: format!(
                "{name} is a type in {}:{line}: name this one for what it is",
                first.path
            ),
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
        (lines[0].trim() == "#[test]" && name.len() > TEST_NAME_MAX).then(|| TidyViolation {
            path: code.path.clone(),
            line: i + 2,
            rule: "test name",
            remedy: format!("name the behaviour in at most {TEST_NAME_MAX} characters"),
        })
    });
    long.collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::broken_by;

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
