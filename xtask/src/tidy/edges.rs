//! Which module of core may use which: arrival -> throttle -> driver; measure -> analysis; both ->
//! experiment.

use super::Violation;
use super::code::{Code, find_word};

/// Modules of core and what they must not use. Tests may use anything.
const MUST_NOT_USE: [(&[&str], &[&str]); 9] = [
    (
        &["time", "rng"],
        &[
            "spec",
            "arrival",
            "throttle",
            "driver",
            "measure",
            "analysis",
            "experiment",
            "report",
            "sim",
        ],
    ),
    (
        &["spec"],
        &[
            "throttle",
            "driver",
            "measure",
            "analysis",
            "experiment",
            "report",
            "sim",
        ],
    ),
    (
        &["arrival"],
        &[
            "throttle",
            "driver",
            "measure",
            "analysis",
            "experiment",
            "report",
            "sim",
        ],
    ),
    (
        &["throttle"],
        &[
            "driver",
            "measure",
            "analysis",
            "experiment",
            "report",
            "sim",
        ],
    ),
    (&["driver"], &["analysis", "experiment", "report", "sim"]),
    (&["measure"], &["analysis", "experiment", "sim"]),
    (&["analysis"], &["driver", "experiment", "sim"]),
    (&["report"], &["driver", "analysis", "experiment", "sim"]),
    (&["experiment"], &["sim"]),
];

const CORE: &str = "crates/core/src/";

/// Back edges in a file of core.
pub fn check(code: &Code) -> Vec<Violation> {
    let Some(inside) = code.path.strip_prefix(CORE) else {
        return Vec::new();
    };
    let parts: Vec<&str> = inside.trim_end_matches(".rs").split('/').collect();
    let depth = parts.iter().filter(|part| **part != "mod").count();
    let module = parts[0];
    let Some((_, banned)) = MUST_NOT_USE.iter().find(|(of, _)| of.contains(&module)) else {
        return Vec::new();
    };
    let mut broken = Vec::new();
    for (line, text) in used_modules(code, depth) {
        for used in banned.iter().filter(|name| **name == text) {
            let remedy = format!("{module} must not use {used}: move what both need below them");
            broken.push(Violation {
                path: code.path.clone(),
                line,
                rule: "back edge",
                remedy,
            });
        }
    }
    broken
}

/// The modules of core that a file names outside its tests: after `crate::`, or after as many
/// `super::` as it is deep.
fn used_modules(code: &Code, depth: usize) -> Vec<(usize, String)> {
    let supers = "super::".repeat(depth);
    let mut used = Vec::new();
    let lines: Vec<(usize, &str)> = code.product_lines().collect();
    for (at, (line, text)) in lines.iter().enumerate() {
        for prefix in ["crate::", &supers] {
            let mut rest = *text;
            while let Some(found) = find_word(rest, prefix) {
                rest = &rest[found + prefix.len()..];
                if let Some(group) = rest.strip_prefix('{') {
                    let later: Vec<&str> = lines[at + 1..].iter().map(|(_, t)| *t).collect();
                    let text = format!("{group}\n{}", later.join("\n"));
                    used.extend(group_heads(&text).into_iter().map(|name| (*line, name)));
                } else {
                    used.push((*line, first_name(rest)));
                }
            }
        }
    }
    used
}

/// `a`, `b` of `a::{x, y}, b}`: what a use group names at its outermost level.
fn group_heads(group: &str) -> Vec<String> {
    let (mut heads, mut depth, mut fresh) = (Vec::new(), 0, true);
    for (i, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => fresh = true,
            c if fresh && !c.is_whitespace() => {
                heads.push(first_name(&group[i..]));
                fresh = false;
            }
            _ => {}
        }
    }
    heads
}

fn first_name(text: &str) -> String {
    text.chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::broken_by;

    #[test]
    fn a_back_edge_is_found_however_it_is_written() {
        for (what, file, text, broken) in [
            (
                "arrival -> driver",
                "arrival/mod.rs",
                "use crate::driver::Action;",
                1,
            ),
            (
                "driver -> arrival",
                "driver/mod.rs",
                "use crate::arrival::Constant;",
                0,
            ),
            (
                "measure -> analysis",
                "measure/trial.rs",
                "use crate::analysis::knee;",
                1,
            ),
            (
                "analysis -> measure",
                "analysis/mod.rs",
                "use crate::measure::Trial;",
                0,
            ),
            (
                "analysis -> experiment",
                "analysis/mod.rs",
                "use crate::experiment::Sweep;",
                1,
            ),
            (
                "sim -> experiment",
                "sim/mod.rs",
                "use crate::experiment::Sweep;",
                0,
            ),
            (
                "in a group",
                "arrival/mod.rs",
                "use crate::{driver, time};",
                1,
            ),
            (
                "in a group over lines",
                "arrival/mod.rs",
                "use crate::{\n  time,\n  driver,\n};",
                1,
            ),
            (
                "a part of a group's part",
                "arrival/mod.rs",
                "use crate::{time::{driver}};",
                0,
            ),
            (
                "in an expression",
                "arrival/mod.rs",
                "fn f() { crate::driver::g() }",
                1,
            ),
            (
                "through super",
                "arrival/mod.rs",
                "use super::driver::Action;",
                1,
            ),
            (
                "through two",
                "arrival/poisson.rs",
                "use super::super::driver::Action;",
                1,
            ),
            (
                "a child of that name",
                "arrival/mod.rs",
                "use self::driver::X;",
                0,
            ),
            (
                "a sibling of that name",
                "arrival/poisson.rs",
                "use super::driver::X;",
                0,
            ),
            (
                "a test may",
                "arrival/mod.rs",
                "#[cfg(test)]\nmod tests {\nuse crate::driver;\n}",
                0,
            ),
        ] {
            let found = broken_by(&format!("crates/core/src/{file}"), text);
            let edges = found.iter().filter(|v| v.contains("back edge")).count();
            assert_eq!(edges, broken, "{what}: {found:?}");
        }
    }
}
