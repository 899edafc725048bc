//! A Rust file as tokens: enough to know which words are code, and which code is for tests alone.

use crate::repo::RepoFile;
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A scanned file.
pub struct RustFile {
    /// Path from the repository's root.
    pub path: String,
    /// Names, literals, delimiters and single characters of punctuation. No comments.
    pub tokens: Vec<Token>,
}

/// A token of a file.
pub struct Token {
    pub text: String,
    /// Counted from 1.
    pub line: usize,
    /// Whether it belongs to test code.
    pub is_test: bool,
}

impl RustFile {
    /// Scans a file. One that is not Rust has no tokens.
    pub fn new(source: &RepoFile) -> Self {
        let path = source.path.clone();
        let is_test_file = ["/tests/", "/benches/"].iter().any(|folder| path.contains(folder))
            || ["/tests.rs", "_tests.rs"].iter().any(|end| path.ends_with(end));
        let mut tokens = Vec::new();
        if let Ok(stream) = source.text.parse() {
            scan(stream, is_test_file, &mut tokens);
        }
        RustFile { path, tokens }
    }

    /// Where these tokens stand one after another, such as `Instant::now`.
    pub fn find(&self, words: &str) -> impl Iterator<Item = usize> {
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let mut wanted: Vec<String> = Vec::new();
        let mut was_name = false;
        for c in words.chars() {
            match wanted.last_mut() {
                _ if c == ' ' => {}
                Some(name) if was_name && is_name(c) => name.push(c),
                _ => wanted.push(c.to_string()),
            }
            was_name = is_name(c);
        }
        (0..self.tokens.len()).filter(move |at| {
            let mut tokens = self.tokens[*at..].iter();
            wanted.iter().all(|text| tokens.next().is_some_and(|token| token.text == *text))
        })
    }
}

/// Appends the tokens of a stream. What follows `#[cfg(test)]`, to its `;` or `}`, is for tests.
fn scan(stream: TokenStream, is_test: bool, tokens: &mut Vec<Token>) {
    let mut is_for_tests = false;
    for tree in stream {
        let is_test = is_test || is_for_tests;
        let mut add = |text: String, line| tokens.push(Token { text, line, is_test });
        let (begin, end) = (tree.span().start().line, tree.span().end().line);
        match tree {
            TokenTree::Group(group) => {
                let [open, close] = match group.delimiter() {
                    Delimiter::Parenthesis => ["(", ")"],
                    Delimiter::Brace => ["{", "}"],
                    Delimiter::Bracket => ["[", "]"],
                    Delimiter::None => ["", ""],
                };
                add(open.to_owned(), begin);
                scan(group.stream(), is_test, tokens);
                tokens.push(Token { text: close.to_owned(), line: end, is_test });
                if group.delimiter() == Delimiter::Brace {
                    is_for_tests = false;
                }
                is_for_tests |= group.delimiter() == Delimiter::Bracket
                    && group.stream().to_string().replace(' ', "") == "cfg(test)";
            }
            other => {
                let text = other.to_string();
                is_for_tests &= text != ";";
                add(text, begin);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_with(text: &str, words: &str) -> Vec<usize> {
        let source = RepoFile { path: "crates/core/src/x.rs".into(), text: text.into() };
        let code = RustFile::new(&source);
        code.find(words).map(|at| code.tokens[at].line).collect()
    }

    #[test]
    fn words_are_found_whole_and_only_in_code() {
        for (what, text, words, lines) in [
            ("a comment is no code", "// b\nb", "b", vec![2]),
            ("nor is a nested one", "/* b /* b */ b */ b", "b", vec![1]),
            ("nor a string", "f(\"a\\\"b\", r#\"b\"#, b)", "b", vec![1]),
            ("nor a part of a name", "x unsafe_code\nunsafe", "unsafe", vec![2]),
            ("nor of a macro's", "eprintln!()", "println!", vec![]),
            ("a call", "a.sort_by(b);\na.sort()", ".sort(", vec![2]),
            ("a path over lines", "Instant::\nnow()", "Instant::now", vec![1]),
        ] {
            assert_eq!(lines_with(text, words), lines, "{what}");
        }
    }

    #[test]
    fn test_code_is_marked() {
        let text = "a;\n#[cfg(test)]\n#[b]\nmod tests {\n c\n}\nd;\n#[cfg(test)]\nuse e;\nf";
        let code = RustFile::new(&RepoFile { path: "x.rs".into(), text: text.into() });
        let tests: Vec<&str> =
            code.tokens.iter().filter(|t| t.is_test).map(|t| t.text.as_str()).collect();
        assert_eq!(tests.concat(), "#[b]modtests{c}usee;");
        let code = RustFile::new(&RepoFile { path: "a/tests.rs".into(), text: "a".into() });
        assert!(code.tokens[0].is_test);
    }
}
