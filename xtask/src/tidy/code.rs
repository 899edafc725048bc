//! A Rust file with its comments and literals blanked, and its test code marked.
//!
//! A scanner, not a parser: enough to know that a word is code.

use crate::repo::RepoFile;

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
        let bare_text = blank(&source.text);
        let bare: Vec<String> = bare_text.lines().map(Into::into).collect();
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

/// The text with comments and the insides of literals replaced by blanks, line by line.
fn blank(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut i = 0;
    while i < chars.len() {
        let end = match (chars[i], chars.get(i + 1)) {
            ('/', Some('/')) => line_end(&chars, i),
            ('/', Some('*')) => comment_end(&chars, i),
            ('"', _) => string_end(&chars, i),
            ('r', Some('"' | '#')) if !after_name(&chars, i) => raw_string_end(&chars, i),
            ('\'', _) => char_end(&chars, i),
            _ => i + 1,
        };
        if end == i + 1 {
            out.push(chars[i]);
        } else {
            let quote = if chars[i] == '/' { ' ' } else { '"' };
            for (k, c) in chars[i..end].iter().enumerate() {
                let edge = k == 0 || k + 1 == end - i;
                out.push(if *c == '\n' {
                    '\n'
                } else if edge {
                    quote
                } else {
                    ' '
                });
            }
        }
        i = end;
    }
    out
}

/// Whether the character before `i` continues a name (`br"…"` is a literal, `var"` is not Rust).
fn after_name(chars: &[char], i: usize) -> bool {
    i > 0 && chars[i - 1] != 'b' && (chars[i - 1].is_alphanumeric() || chars[i - 1] == '_')
}

fn line_end(chars: &[char], i: usize) -> usize {
    let rest = &chars[i..];
    i + rest.iter().position(|c| *c == '\n').unwrap_or(rest.len())
}

fn comment_end(chars: &[char], i: usize) -> usize {
    let (mut depth, mut k) = (0, i);
    while k + 1 < chars.len() {
        match (chars[k], chars[k + 1]) {
            ('/', '*') => (depth, k) = (depth + 1, k + 2),
            ('*', '/') => (depth, k) = (depth - 1, k + 2),
            _ => k += 1,
        }
        if depth == 0 {
            return k;
        }
    }
    chars.len()
}

fn string_end(chars: &[char], i: usize) -> usize {
    let mut k = i + 1;
    while k < chars.len() && chars[k] != '"' {
        k += if chars[k] == '\\' { 2 } else { 1 };
    }
    (k + 1).min(chars.len())
}

/// `i` where no raw string begins there after all (`r#name`), so that one character is taken.
fn raw_string_end(chars: &[char], i: usize) -> usize {
    let hashes = chars[i + 1..].iter().take_while(|c| **c == '#').count();
    let open = i + 1 + hashes;
    if chars.get(open) != Some(&'"') {
        return i + 1;
    }
    let closes = |k: &usize| {
        chars[*k] == '"' && chars[k + 1..].iter().take_while(|c| **c == '#').count() >= hashes
    };
    (open + 1..chars.len()).find(closes).map_or(chars.len(), |k| k + 1 + hashes)
}

/// The end of a character literal, or of the tick alone where a lifetime begins.
fn char_end(chars: &[char], i: usize) -> usize {
    if chars.get(i + 1) == Some(&'\\') {
        let rest = chars[i + 3..].iter().position(|c| *c == '\'');
        return rest.map_or(chars.len(), |k| i + 4 + k);
    }
    if chars.get(i + 2) == Some(&'\'') { i + 3 } else { i + 1 }
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
