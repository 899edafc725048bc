//! Source files of editions, in the words that the parser of `proto3` knows.

use super::descriptor::EDITIONS;
use knee_load::quantity::ParseError;
use std::ops::Range;

/// A source file of an edition.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EditionSource {
    /// Number of the edition.
    pub(super) edition: i32,
    /// The text as one of `proto3`. Its features are options still; each line is where it was.
    pub(super) text: String,
}

/// Reads the text of a file; `None` where it is of no edition.
///
/// # Errors
/// An unknown edition.
pub(super) fn edition_source(source: &str) -> Result<Option<EditionSource>, ParseError> {
    let tokens = tokens(source);
    let word = |at: usize| tokens.get(at).map_or("", |range| &source[range.clone()]);
    if (word(0), word(1), word(3)) != ("edition", "=", ";") {
        return Ok(None);
    }
    let name = word(2).trim_matches(['"', '\'']);
    let Some((_, edition)) = EDITIONS.iter().find(|(known, _)| *known == name) else {
        let wrong = format!("unknown edition '{name}': the editions 2023 and 2024 are read");
        return Err(ParseError(wrong));
    };
    let mut text = String::with_capacity(source.len() + 2);
    let mut copied = 0;
    let mut replace = |range: Range<usize>, with: &str| {
        text.push_str(&source[copied..range.start]);
        text.push_str(with);
        copied = range.end;
    };
    replace(tokens[0].clone(), "syntax");
    replace(tokens[2].clone(), "\"proto3\"");
    let mut at = 4;
    while at < tokens.len() {
        let begins = matches!(word(at - 1), ";" | "{" | "}");
        let end = match (word(at), word(at + 1)) {
            // Names without quotes, which only the compiler checks.
            ("reserved", name) if begins && is_identifier(name) => statement_end(at, word),
            ("import", "option") if begins => statement_end(at, word),
            ("export" | "local", "message" | "enum") if begins && is_identifier(word(at + 2)) => at,
            // proto3 has no default values, and none is sent.
            ("default", "=") if matches!(word(at - 1), "[" | ",") => {
                replace(tokens[at].clone(), "feature");
                at += 1;
                continue;
            }
            _ => {
                at += 1;
                continue;
            }
        };
        let last = end.min(tokens.len() - 1);
        let range = tokens[at].start..tokens[last].end;
        let blank = |c: char| if c == '\n' { '\n' } else { ' ' };
        let blanks: String = source[range.clone()].chars().map(blank).collect();
        replace(range, &blanks);
        at = last + 1;
    }
    text.push_str(&source[copied..]);
    Ok(Some(EditionSource { edition: *edition, text }))
}

/// The token that ends the statement of another.
fn statement_end<'a>(mut at: usize, word: impl Fn(usize) -> &'a str) -> usize {
    while !matches!(word(at), ";" | "") {
        at += 1;
    }
    at
}

fn is_identifier(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// Where the words, texts in quotes and other characters of a source are, comments left out.
fn tokens(source: &str) -> Vec<Range<usize>> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = source[at..].chars().next() {
        let rest = &source[at..];
        let after = |end: &str, from: usize| {
            rest[from..].find(end).map_or(rest.len(), |found| from + found + end.len())
        };
        let length = if rest.starts_with("//") || first == '#' {
            after("\n", 0)
        } else if rest.starts_with("/*") {
            after("*/", 2)
        } else if matches!(first, '"' | '\'') {
            quoted_length(rest, first)
        } else if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let is_comment = first == '#' || rest.starts_with("//") || rest.starts_with("/*");
        if !is_comment && !first.is_whitespace() {
            tokens.push(at..at + length);
        }
        at += length;
    }
    tokens
}

/// Length of a text with its quotes.
fn quoted_length(rest: &str, quote: char) -> usize {
    let mut is_escaped = true;
    for (at, c) in rest.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}
