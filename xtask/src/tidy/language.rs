//! What a program prints is plain English, as its documentation is: see [`super::prose`].

use super::TidyViolation;
use super::code::RustFile;
use super::prose::phrases_in;

/// Phrases in what a program prints: in its string literals, and in the documentation of options,
/// which is their help.
pub fn check(code: &RustFile) -> Vec<TidyViolation> {
    let is_product = code.path.starts_with("crates/") && code.path.contains("/src/");
    if !is_product {
        return Vec::new();
    }
    let is_help = code.path.starts_with("crates/cli/")
        && code.lines.iter().any(|line| line.contains("#[derive(Args"));
    let mut broken = Vec::new();
    for (i, line) in code.lines.iter().enumerate().filter(|(i, _)| !code.test[*i]) {
        let trimmed = line.trim_start();
        let is_shown =
            if trimmed.starts_with("//") { is_help && trimmed.starts_with("///") } else { true };
        if is_shown {
            // Of code only what is inside of literals, which is blank in `bare`.
            let text: String = if trimmed.starts_with("//") {
                line.clone()
            } else {
                inside_literals(line, &code.bare[i])
            };
            broken.extend(phrases_in(&text).map(|(phrase, instead)| TidyViolation {
                path: code.path.clone(),
                line: i + 1,
                rule: "language",
                remedy: format!("'{phrase}' is hard to follow: {instead}"),
            }));
        }
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
        let help = "#[derive(Args)]\nstruct A {\n    /// Waits so long\n    a: u8,\n}\n";
        for (what, path, text, found) in [
            ("a sentence", "crates/core/src/x.rs", "fn f() { g(\"it stood still\") }", 1),
            ("part of a word", "crates/core/src/x.rs", "fn f() { g(\"momentum\") }", 0),
            ("a name in code", "crates/core/src/x.rs", "fn moment() {}", 0),
            ("a comment", "crates/core/src/x.rs", "// so many\nfn f() {}", 0),
            ("help", "crates/cli/src/x.rs", help, 1),
            ("the same elsewhere", "crates/core/src/x.rs", help, 0),
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
