//! Texts as YAML has them: plain where they can be, in quotes else.

/// A text that YAML reads as this text.
pub(super) fn quoted(text: &str) -> String {
    let is_url = ["http://", "https://"].iter().find_map(|s| text.strip_prefix(s));
    let is_path = text.starts_with('/') && text.bytes().all(is_path_byte);
    if is_plain(text) || is_path || is_url.is_some_and(is_authority) {
        text.to_owned()
    } else {
        in_quotes(text)
    }
}

/// A key or a name.
pub(super) fn key(name: &str) -> String {
    if is_plain(name) { name.to_owned() } else { in_quotes(name) }
}

fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 10] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan"];
    let is_word_byte = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(is_word_byte)
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
}

fn is_path_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"/-_.~?=&%+;@".contains(&byte)
}

fn is_authority(text: &str) -> bool {
    let is_fine = |b: u8| b.is_ascii_alphanumeric() || b"-.:".contains(&b);
    !text.is_empty() && !text.ends_with(':') && text.bytes().all(is_fine)
}

/// A text in double quotes.
pub(super) fn in_quotes(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                quoted.push_str(&format!("\\u{:04x}", c as u32));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
