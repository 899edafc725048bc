//! What a program prints is plain English, as its documentation is: see [`super::prose`].

use super::TidyViolation;
use super::code::RustFile;
use super::prose::phrases_in;

/// Phrases in the string literals of a product file.
pub fn check(code: &RustFile) -> Vec<TidyViolation> {
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
        broken.extend(phrases_in(&text).map(|(phrase, instead)| TidyViolation {
            path: code.path.clone(),
            line,
            rule: "language",
            remedy: format!("'{phrase}' is hard to follow: {instead}"),
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
