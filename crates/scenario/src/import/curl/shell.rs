//! A command line as a shell splits it.

use super::{error, wrong};
use knee_load::quantity::ParseError;

/// The words of a line, and the other commands that follow.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SplitLine {
    pub(super) words: Vec<String>,
    /// What begins with `|`, `;`, `&`, `>` or `<`.
    pub(super) rest: Option<String>,
}

/// The shell that a line is quoted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shell {
    /// A POSIX shell, with `$'…'` of bash.
    Posix,
    /// The command prompt of Windows, whose lines browsers copy with `^` before each sign.
    WindowsCommandPrompt,
}

impl Shell {
    /// The shell of a line: no other shell has `^"`, or `^` at the end of a line.
    pub(super) fn of(line: &str) -> Shell {
        let continues = |line: &str| line.trim_end().ends_with(" ^");
        if line.contains(" ^\"") || line.lines().any(continues) {
            Shell::WindowsCommandPrompt
        } else {
            Shell::Posix
        }
    }

    /// Splits a line at blanks, and removes quotes and continued lines. Variables and commands in
    /// quotes are not replaced.
    ///
    /// # Errors
    /// Quotes that are not closed.
    pub(super) fn split(self, line: &str) -> Result<SplitLine, ParseError> {
        match self {
            Shell::Posix => split(line),
            Shell::WindowsCommandPrompt => {
                Ok(SplitLine { words: windows_words(&without_carets(line)), rest: None })
            }
        }
    }
}

/// The line without the carets of the command prompt. A caret makes the next character literal; at
/// the end of a line it continues the line. Between plain quotes a caret stands for itself.
fn without_carets(line: &str) -> String {
    let line = line.replace("\r\n", "\n");
    let mut plain = String::with_capacity(line.len());
    let mut chars = line.chars();
    let mut is_quoted = false;
    while let Some(c) = chars.next() {
        match c {
            '^' if !is_quoted => match chars.next() {
                Some('\n') => plain.extend(chars.next()),
                next => plain.extend(next),
            },
            c => {
                is_quoted ^= c == '"';
                plain.push(c);
            }
        }
    }
    plain
}

/// The words of a line by the rules of the C runtime of Windows. Blanks divide outside of quotes,
/// and backslashes escape only before a quote.
fn windows_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut is_quoted = false;
    let mut backslashes = 0usize;
    for c in line.chars() {
        if c == '\\' {
            backslashes += 1;
            word.get_or_insert_default().push(c);
            continue;
        }
        let before = std::mem::take(&mut backslashes);
        match c {
            '"' => {
                let word = word.get_or_insert_default();
                let kept = word.len() - before.div_ceil(2);
                word.truncate(kept);
                if before % 2 == 1 {
                    word.push('"');
                } else {
                    is_quoted = !is_quoted;
                }
            }
            ' ' | '\t' | '\n' if !is_quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Splits a line of a POSIX shell: quotes of all kinds (`'…'`, `"…"`, `$'…'`) and backslashes.
fn split(line: &str) -> Result<SplitLine, ParseError> {
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
            '#' if word.is_none() => rest = after.find('\n').map_or("", |end| &after[end..]),
            '|' | ';' | '&' | '>' | '<' => {
                words.extend(word.take());
                let rest = Some(rest.trim().to_owned());
                return Ok(SplitLine { words, rest });
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
    Ok(SplitLine { words, rest: None })
}

fn open(quote: char) -> ParseError {
    wrong(format!("the quote {quote} is not closed"))
}

/// Reads the inside of `"…"` into `word`; returns the text behind it.
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

/// Reads the inside of `$'…'` into `word`, with the escapes of C; returns the text behind it.
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

/// Reads one escape into `word`; returns the text behind it.
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

/// Reads a character by its number into `word`; returns the text behind the digits.
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
    fn lines_are_split_as_a_shell_does() {
        for (line, words) in [
            ("", &[][..]),
            (
                "curl  'a b'\\\n -H\t\"c \\\"d\\\" \\n $x\"",
                &["curl", "a b", "-H", "c \"d\" \\n $x"],
            ),
            (r"a\ b''c '' $'it\'s\n\u0041\x42\\\u00fc'", &["a bc", "", "it's\nAB\\ü"]),
            ("$x $", &["$x", "$"]),
            ("a \\\r\n b", &["a", "b"]),
            ("a b#c # d e\n f", &["a", "b#c", "f"]),
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
    fn lines_of_the_windows_command_prompt_are_split() {
        for (line, words) in [
            (
                "curl ^\"http://h/a^&b^\" ^\n  -H ^\"a: \\^\"b\\^\" ^%^41^\"",
                &["curl", "http://h/a&b", "-H", "a: \"b\" %41"][..],
            ),
            (
                "curl \"http://h/?a^b\" ^\r\n -d \"{\\\"c\\\": \\\\\" -s",
                &["curl", "http://h/?a^b", "-d", "{\"c\": \\", "-s"],
            ),
            ("curl ^\"a^\n\nb^\" c:\\d", &["curl", "a\nb", "c:\\d"]),
        ] {
            let shell = Shell::of(line);
            assert_eq!(shell, Shell::WindowsCommandPrompt, "{line}");
            assert_eq!(shell.split(line).unwrap().words, words, "{line}");
        }
    }

    #[test]
    fn open_quotes_are_refused() {
        for line in ["'a", "\"a", "\"a\\", "$'a", "$'a\\", r"$'\ud800'"] {
            assert!(split(line).is_err(), "{line}");
        }
    }
}
