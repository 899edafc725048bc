//! JSON as one line that YAML takes as well.

use std::collections::HashSet;

/// The deepest nesting: a scenario's own levels come on top.
const DEPTH_MAX: usize = 40;
/// The longest name in an object: YAML permits no longer one on a line.
const NAME_MAX: usize = 500;

/// The same document without blanks between its parts; `None` where it is no JSON, or where YAML
/// would read it otherwise.
pub(super) fn one_line(text: &str) -> Option<String> {
    serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
    let text = text.trim();
    // YAML knows no pairs of surrogates, and DEL in no text.
    if !text.starts_with(['{', '[']) || text.contains("\\u") || text.contains('\u{7f}') {
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
                let after = rest[length..].trim_start();
                if after.starts_with(':')
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
            c => c.len_utf8(),
        };
        let (part, after) = rest.split_at(length);
        match part {
            // Without the blanks a plain value would go on.
            ":" | "," => line.extend([part, " "]),
            part if part.trim().is_empty() => {}
            part => line.push_str(part),
        }
        rest = after;
    }
    Some(line)
}

/// How long the string is that `text` begins with.
fn string_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 1;
    loop {
        match bytes.get(at)? {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_become_one_line() {
        for (text, line) in [
            ("{}", Some("{}")),
            (" [1 , 2]\n", Some("[1, 2]")),
            ("{\n \"a b\" : { \"c\":[ true ] } }", Some("{\"a b\": {\"c\": [true]}}")),
            (r#"{"a":"x \" , {\\"}"#, Some(r#"{"a": "x \" , {\\"}"#)),
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
