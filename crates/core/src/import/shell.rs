//! A command line as a shell takes it apart.

use super::error;
use crate::quantity::ParseError;

/// The words of a line, and what of it is another command.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) words: Vec<String>,
    /// What begins with `|`, `;`, `&`, `>` or `<`.
    pub(super) rest: Option<String>,
}

/// Takes quotes of all kinds (`'…'`, `"…"`, `$'…'`), backslashes and continued lines away.
/// Variables and commands in quotes are not replaced.
///
/// # Errors
/// Quotes that are not closed.
pub(super) fn split(line: &str) -> Result<Words, ParseError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        match c {
            ' ' | '\t' | '\r' | '\n' => {
                words.extend(word.take());
                rest = after;
            }
            '|' | ';' | '&' | '>' | '<' => {
                words.extend(word.take());
                let rest = Some(rest.trim().to_owned());
                return Ok(Words { words, rest });
            }
            '\\' => {
                rest = after;
                let escaped = rest.strip_prefix("\r\n").or(rest.strip_prefix('\n'));
                if let Some(after) = escaped {
                    rest = after;
                } else if let Some(next) = rest.chars().next() {
                    word.get_or_insert_default().push(next);
                    rest = &rest[next.len_utf8()..];
                }
            }
            '\'' => {
                let end = after.find('\'').ok_or_else(|| open('\''))?;
                word.get_or_insert_default().push_str(&after[..end]);
                rest = &after[end + 1..];
            }
            '"' => rest = double(after, word.get_or_insert_default())?,
            '$' if after.starts_with('\'') => {
                rest = ansi_c(&after[1..], word.get_or_insert_default())?;
            }
            c => {
                word.get_or_insert_default().push(c);
                rest = after;
            }
        }
    }
    words.extend(word);
    Ok(Words { words, rest: None })
}

fn open(quote: char) -> ParseError {
    super::wrong(format!("the quote {quote} is not closed"))
}

/// What follows `"`, up to its end.
fn double<'a>(text: &'a str, word: &mut String) -> Result<&'a str, ParseError> {
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok(&text[at + 1..]),
            '\\' => match chars.next() {
                Some((_, '\n')) => {}
                Some((_, c @ ('"' | '\\' | '$' | '`'))) => word.push(c),
                Some((_, c)) => word.extend(['\\', c]),
                None => return Err(open('"')),
            },
            c => word.push(c),
        }
    }
    Err(open('"'))
}

/// What follows `$'`, up to its end: escapes as in C.
fn ansi_c<'a>(text: &'a str, word: &mut String) -> Result<&'a str, ParseError> {
    let mut rest = text;
    loop {
        let Some(c) = rest.chars().next() else {
            return Err(open('\''));
        };
        rest = &rest[c.len_utf8()..];
        match c {
            '\'' => return Ok(rest),
            '\\' => {
                let Some(kind) = rest.chars().next() else {
                    return Err(open('\''));
                };
                rest = &rest[kind.len_utf8()..];
                rest = escape(kind, rest, word)?;
            }
            c => word.push(c),
        }
    }
}

/// One escape; what follows it.
fn escape<'a>(kind: char, rest: &'a str, word: &mut String) -> Result<&'a str, ParseError> {
    let simple = match kind {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'a' => '\u{7}',
        'b' => '\u{8}',
        'e' | 'E' => '\u{1b}',
        'f' => '\u{c}',
        'v' => '\u{b}',
        'x' => return coded(rest, 2, 16, word),
        'u' => return coded(rest, 4, 16, word),
        'U' => return coded(rest, 8, 16, word),
        '0'..='7' => {
            let digits = rest.chars().take(2).take_while(|c| c.is_digit(8)).count();
            let octal = format!("{kind}{}", &rest[..digits]);
            return coded(&octal, 3, 8, word).map(|_| &rest[digits..]);
        }
        other => other,
    };
    word.push(simple);
    Ok(rest)
}

/// A character by its number in the digits that `rest` begins with.
fn coded<'a>(
    rest: &'a str,
    digits_max: usize,
    radix: u32,
    word: &mut String,
) -> Result<&'a str, ParseError> {
    let is_digit = |c: &char| c.is_digit(radix);
    let digits: String = rest.chars().take(digits_max).take_while(is_digit).collect();
    let code = u32::from_str_radix(&digits, radix).ok();
    match code.and_then(char::from_u32) {
        Some(c) => word.push(c),
        None => return error("an escape in $'…' is no character"),
    }
    Ok(&rest[digits.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_apart_as_by_a_shell() {
        for (line, words) in [
            ("", &[][..]),
            (
                "curl  'a b'\\\n -H\t\"c \\\"d\\\" \\n $x\"",
                &["curl", "a b", "-H", "c \"d\" \\n $x"],
            ),
            (
                r"a\ b''c '' $'it\'s\n\u0041\x42\\\u00fc'",
                &["a bc", "", "it's\nAB\\ü"],
            ),
            ("$x $", &["$x", "$"]),
            ("a \\\r\n b", &["a", "b"]),
        ] {
            let split = split(line).unwrap();
            assert_eq!(
                (split.words, split.rest),
                (words.iter().map(|w| w.to_string()).collect(), None),
                "{line}"
            );
        }
        let piped = split("curl 'a|b' | jq .").unwrap();
        assert_eq!(piped.words, ["curl", "a|b"]);
        assert_eq!(piped.rest.as_deref(), Some("| jq ."));
    }

    #[test]
    fn quotes_that_are_open_are_told() {
        for line in ["'a", "\"a", "\"a\\", "$'a", "$'a\\", r"$'\ud800'"] {
            assert!(split(line).is_err(), "{line}");
        }
    }
}
