//! A Rust file with its comments and literals blanked, and its test code marked.
//!
//! Tokens, not a tree: enough to know that a word is code.

use crate::repo::RepoFile;
use proc_macro2::{TokenStream, TokenTree};

/// A scanned file.
pub struct RustFile {
    /// Path from the repository's root.
    pub path: String,
    /// The lines as written.
    pub lines: Vec<String>,
    /// The same lines with comments and what is inside literals replaced by blanks.
    pub bare: Vec<String>,
    /// Whether each line belongs to test code.
    pub test: Vec<bool>,
}

impl RustFile {
    /// Scans a file.
    pub fn new(source: &RepoFile) -> Self {
        let bare: Vec<String> = blank(&source.text).lines().map(Into::into).collect();
        let test =
            if is_test_file(&source.path) { vec![true; bare.len()] } else { test_lines(&bare) };
        let lines = source.text.lines().map(Into::into).collect();
        RustFile { path: source.path.clone(), lines, bare, test }
    }

    /// Bare lines outside tests, each with its number from 1.
    pub fn product_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let numbered = self.bare.iter().enumerate();
        numbered.filter(|(i, _)| !self.test[*i]).map(|(i, line)| (i + 1, line.as_str()))
    }
}

/// Whether a path lies in a crate that only decides: no clock, socket, thread or output.
pub fn is_pure(path: &str) -> bool {
    ["crates/load", "crates/core", "crates/scenario", "crates/sim"]
        .iter()
        .any(|folder| path.strip_prefix(folder).is_some_and(|r| r.is_empty() || r.starts_with('/')))
}

/// Where `word` stands in `text` as a whole: not as a part of a longer name.
pub fn find_word(text: &str, word: &str) -> Option<usize> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let first_is_name = word.starts_with(is_name);
    let last_is_name = word.ends_with(is_name);
    text.match_indices(word).map(|(at, _)| at).find(|&at| {
        let begins = !first_is_name || !text[..at].ends_with(is_name);
        let ends = !last_is_name || !text[at + word.len()..].starts_with(is_name);
        begins && ends
    })
}

/// The line (from 0) on which the first block on or after `from` (from 0) closes, beginning at
/// `column`. Nothing where a `;` comes first.
pub fn block_end(bare: &[String], from: usize, column: usize) -> Option<usize> {
    let (mut braces, mut inner) = (0, 0);
    for (i, line) in bare.iter().enumerate().skip(from) {
        let start = if i == from { column } else { 0 };
        for c in line[start..].chars() {
            match c {
                '(' | '[' => inner += 1,
                ')' | ']' => inner -= 1,
                '{' => braces += 1,
                '}' => braces -= 1,
                ';' if braces == 0 && inner == 0 => return None,
                _ => {}
            }
            if c == '}' && braces == 0 {
                return Some(i);
            }
        }
    }
    None
}

fn is_test_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name == "tests.rs" || path.contains("/tests/") || path.contains("/benches/")
}

fn test_lines(bare: &[String]) -> Vec<bool> {
    let mut test = vec![false; bare.len()];
    for (i, line) in bare.iter().enumerate() {
        if let Some(at) = line.find("#[cfg(test)]") {
            let end = block_end(bare, i, at + "#[cfg(test)]".len()).unwrap_or(i);
            test[i..=end].fill(true);
        }
    }
    test
}

/// The text with comments and the insides of literals replaced by blanks, character by character.
fn blank(text: &str) -> String {
    let Ok(tokens) = text.parse::<TokenStream>() else {
        return text.to_string();
    };
    let bytes = text.as_bytes();
    let mut out: Vec<u8> = bytes.iter().map(|b| if *b == b'\n' { b'\n' } else { b' ' }).collect();
    keep_code(tokens, bytes, &mut out);
    let blanked = |(i, c): (usize, char)| if out[i] == bytes[i] { c } else { char::from(out[i]) };
    text.char_indices().map(blanked).collect()
}

/// Copies tokens from `text` to `out`; of a literal in quotes these alone.
fn keep_code(tokens: TokenStream, text: &[u8], out: &mut [u8]) {
    for token in tokens {
        let at = token.span().byte_range();
        let written = &text[at.clone()];
        // Comments that document are tokens too.
        if written.starts_with(b"//") || written.starts_with(b"/*") {
            continue;
        }
        match token {
            TokenTree::Group(group) => {
                out[at.start] = text[at.start];
                out[at.end - 1] = text[at.end - 1];
                keep_code(group.stream(), text, out);
            }
            TokenTree::Literal(_) if b"\"'#".contains(&text[at.end - 1]) => {
                out[at.start] = b'"';
                out[at.end - 1] = b'"';
            }
            _ => out[at].copy_from_slice(written),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(text: &str) -> RustFile {
        RustFile::new(&RepoFile { path: "crates/core/src/x.rs".into(), text: text.into() })
    }

    #[test]
    fn comments_and_literals_are_blanked() {
        for (what, text, bare) in [
            ("a comment ends with its line", "a // b\nc", "a     \nc"),
            ("block comments nest", "a /* b /* c */ d */ e", "a                   e"),
            ("a string keeps its quotes", "f(\"ab\")", "f(\"  \")"),
            ("an escaped quote ends nothing", r#"f("a\"b")"#, "f(\"    \")"),
            ("a raw string ends at its hashes", "f(r#\"a\"b\"#)", "f(\"      \")"),
            ("a raw name is code", "r#fn x", "r#fn x"),
            ("a character", "f('x', '\"', '\\'')", "f(\" \", \" \", \"  \")"),
            ("a lifetime is code", "fn f<'a>(x: &'a str)", "fn f<'a>(x: &'a str)"),
            ("a slash in a string is no comment", "f(\"//\") g", "f(\"  \") g"),
        ] {
            assert_eq!(blank(text), bare, "{what}");
        }
    }

    #[test]
    fn a_word_is_found_whole() {
        assert_eq!(find_word("x unsafe_code unsafe", "unsafe"), Some(14));
        assert_eq!(find_word("eprintln!()", "println!"), None);
        assert_eq!(find_word("a.sort_by(b)", ".sort"), None);
    }

    #[test]
    fn test_code_is_marked() {
        let code = scan("fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n");
        assert_eq!(code.test, [false, true, true, true, true, false]);
        let code = scan("#[cfg(test)]\nmod tests;\nfn c() {}\n");
        assert_eq!(code.test, [true, false, false]);
    }
}
