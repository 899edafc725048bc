//! JSON as one line that YAML takes as well, and bodies in the form that is easiest to change.

use super::ImportedText;
use knee_load::percent;
use std::collections::HashSet;

/// The deepest nesting: a scenario's own levels come on top.
const DEPTH_MAX: usize = 40;
/// The longest name in an object: YAML permits no longer one on a line.
const NAME_MAX: usize = 500;

/// The same document with a blank behind each sign, as YAML needs it; `None` where a scenario would
/// send other bytes.
pub(super) fn one_line(text: &str) -> Option<String> {
    serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
    // YAML has DEL in no text.
    if !text.starts_with(['{', '[']) || text.contains('\u{7f}') {
        return None;
    }
    if text.chars().any(|c| matches!(c, '\u{80}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}'))
    {
        return None;
    }
    let mut line = String::with_capacity(text.len());
    // The names so far in each object that is open; nothing for a list.
    let mut open: Vec<Option<HashSet<&str>>> = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '"' => {
                let length = string_length(rest)?;
                if rest[length..].starts_with(':')
                    && let Some(Some(names)) = open.last_mut()
                    && (length > NAME_MAX || !names.insert(&rest[..length]))
                {
                    return None;
                }
                length
            }
            '{' | '[' => {
                open.push((c == '{').then(HashSet::new));
                if open.len() > DEPTH_MAX {
                    return None;
                }
                1
            }
            '}' | ']' => {
                open.pop();
                1
            }
            // Blanks are not sent, and an exponent has a small letter.
            ' ' | '\t' | '\n' | '\r' | 'E' => return None,
            c => c.len_utf8(),
        };
        let (part, after) = rest.split_at(length);
        match part {
            // Without the blanks a plain value would go on.
            ":" | "," => line.extend([part, " "]),
            part => line.push_str(part),
        }
        rest = after;
    }
    Some(line)
}

/// JSON on one line as it stands in a scenario. `${` begins a value in texts, and is doubled there;
/// names have no values.
pub(super) fn without_values(json: &str) -> String {
    let mut is_escaped = false;
    let is_quote = |c: char| {
        let is_quote = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_quote
    };
    // Texts and names, and what stands between them.
    let pieces: Vec<&str> = json.split(is_quote).collect();
    let piece = |(at, piece): (usize, &&str)| match pieces.get(at + 1) {
        Some(next) if next.starts_with(':') => (*piece).to_owned(),
        _ => piece.replace("${", "$${"),
    };
    pieces.iter().enumerate().map(piece).collect::<Vec<_>>().join("\"")
}

/// How long the string is that `text` begins with; `None` where it is sent with other escapes.
fn string_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 1;
    loop {
        match bytes.get(at)? {
            b'\\' if b"\"\\nrt".contains(bytes.get(at + 1)?) => at += 2,
            b'\\' => return None,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// Names and values of form data; `None` where a map cannot have them, or a scenario would send other
/// bytes.
pub(super) fn form(body: &str) -> Option<Vec<(String, ImportedText)>> {
    let mut names = HashSet::new();
    let pairs = body.split('&').map(|pair| {
        let (name, value) = pair.split_once('=')?;
        let (name, value) = (percent::form_decoded(name)?, percent::form_decoded(value)?);
        let is_same = format!("{}={}", percent::form(&name), percent::form(&value)) == pair;
        let is_plain = is_same && !name.is_empty() && !name.chars().any(char::is_control);
        (is_plain && names.insert(name.clone())).then_some((name, value.into()))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_become_one_line() {
        for (text, line) in [
            ("{}", Some("{}")),
            ("[1,2]", Some("[1, 2]")),
            ("[1, 2]", None),
            ("[1,2]\n", None),
            (" [1,2]", None),
            ("{\"a b\":{\"c\":[true]}}", Some("{\"a b\": {\"c\": [true]}}")),
            ("{\"a\" :1}", None),
            ("[1.50,1e3]", Some("[1.50, 1e3]")),
            ("[1E3]", None),
            (r#"{"a":"x \" , {\\"}"#, Some(r#"{"a": "x \" , {\\"}"#)),
            (r#"["\/"]"#, None),
            (r#"["\u00e4"]"#, None),
            (r#"[{"a":1},{"a":2}]"#, Some(r#"[{"a": 1}, {"a": 2}]"#)),
            (r#"{"a":1,"a":2}"#, None),
            (r#"{"a":"\ud83d\ude00"}"#, None),
            ("{", None),
            ("1", None),
            ("\"a\"", None),
            ("", None),
        ] {
            assert_eq!(one_line(text).as_deref(), line, "{text}");
        }
        let deep = "[".repeat(50) + &"]".repeat(50);
        assert_eq!(one_line(&deep), None);
    }
}
