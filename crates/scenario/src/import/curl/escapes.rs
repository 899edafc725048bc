//! The inside of `$'…'`, with the escapes of C.

use super::error;
use super::shell::open;
use crate::import::data::char_of_byte;
use knee_load::quantity::ParseError;

/// Reads the inside of `$'…'` into `word`, byte for byte as bash does; returns the text behind the
/// quote. The byte 0 ends the text, as no program is given more.
///
/// # Errors
/// No quote at the end, or an escape for what is no character.
pub(super) fn ansi_c<'a>(text: &'a str, word: &mut String) -> Result<&'a str, ParseError> {
    let mut bytes = Vec::new();
    let mut rest = text;
    let mut end = None;
    loop {
        let escaped = rest.strip_prefix('\\');
        if let Some((byte, behind)) = escaped.and_then(byte) {
            if byte == 0 {
                push_bytes(&std::mem::take(&mut bytes), word);
                end = end.or(Some(word.len()));
            }
            bytes.push(byte);
            rest = behind;
            continue;
        }
        push_bytes(&std::mem::take(&mut bytes), word);
        let c = rest.chars().next().ok_or_else(|| open('\''))?;
        rest = &rest[c.len_utf8()..];
        match escaped {
            Some(escaped) => rest = escape(escaped, word)?,
            None if c == '\'' => {
                word.truncate(end.unwrap_or(word.len()));
                return Ok(rest);
            }
            None => word.push(c),
        }
    }
}

/// A byte by its number, `x41` or `101`, and the text behind it.
fn byte(escaped: &str) -> Option<(u8, &str)> {
    let (digits, radix, digits_max) = match escaped.strip_prefix('x') {
        Some(hex) => (hex, 16, 2),
        None => (escaped, 8, 3),
    };
    let (code, rest) = number(digits, radix, digits_max)?;
    // As a byte has it: octal numbers go up to 511.
    Some((code as u8, rest))
}

/// Appends bytes: as the UTF-8 text that they are, and what is none as characters that stand for it.
fn push_bytes(bytes: &[u8], word: &mut String) {
    for chunk in bytes.utf8_chunks() {
        word.push_str(chunk.valid());
        word.extend(chunk.invalid().iter().copied().map(char_of_byte));
    }
}

/// Reads what stands behind a backslash into `word`; returns the text behind it.
fn escape<'a>(escaped: &'a str, word: &mut String) -> Result<&'a str, ParseError> {
    let kind = escaped.chars().next().ok_or_else(|| open('\''))?;
    let rest = &escaped[kind.len_utf8()..];
    let simple = match kind {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'a' => '\u{7}',
        'b' => '\u{8}',
        'e' | 'E' => '\u{1b}',
        'f' => '\u{c}',
        'v' => '\u{b}',
        '\'' | '"' | '\\' | '?' => kind,
        'u' | 'U' => {
            let digits_max = if kind == 'u' { 4 } else { 8 };
            if let Some((code, rest)) = number(rest, 16, digits_max) {
                let Some(c) = char::from_u32(code) else {
                    return error("an escape in $'…' is no character");
                };
                word.push(c);
                return Ok(rest);
            }
            word.push('\\');
            kind
        }
        'c' if rest.starts_with(|c: char| c.is_ascii_graphic() && c != '\'') => {
            let of = rest.as_bytes()[0];
            word.push(char::from(if of == b'?' { 0x7f } else { of & 0x1f }));
            return Ok(&rest[1..]);
        }
        other => {
            word.push('\\');
            other
        }
    };
    word.push(simple);
    Ok(rest)
}

/// The number that a text begins with, and the text behind it.
fn number(text: &str, radix: u32, digits_max: usize) -> Option<(u32, &str)> {
    let digits = text.chars().take(digits_max).take_while(|c| c.is_digit(radix)).count();
    let (digits, rest) = text.split_at(digits);
    Some((u32::from_str_radix(digits, radix).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::data::{bytes_of, has_bytes};

    #[test]
    fn escapes_are_those_of_bash() {
        for (inside, text) in [
            (r"M\xc3\xbcnchen, \303\244 \u00fc\U0001f600", "München, ä ü😀"),
            (r"\xc3\251\xc3\xa9", "éé"),
            (r"a\0b\xc3\xa9", "a"),
            (r"a\x00", "a"),
            (r"\400", ""),
            (r"\d+ \. \xg \ug \8 \é", r"\d+ \. \xg \ug \8 \é"),
            (r#"\'\"\\\?\n\101B\1\x4a1"#, "'\"\\?\nAB\u{1}J1"),
            (r"\ca\cZ\c[\c?", "\u{1}\u{1a}\u{1b}\u{7f}"),
        ] {
            let mut word = String::new();
            assert_eq!(ansi_c(&format!("{inside}' b"), &mut word).unwrap(), " b", "{inside}");
            assert_eq!(word, text, "{inside}");
        }
        for (inside, bytes) in [
            (r"\377", &b"\xff"[..]),
            (r"caf\xe9 \xe9\xc3", b"caf\xe9 \xe9\xc3"),
            (r"\xff\xc3\xa9\200a", b"\xff\xc3\xa9\x80a"),
            (r"\xc3a", b"\xc3a"),
            (r"\q\x4", b"\\q\x04"),
            (r"\cA\cz\x7f", b"\x01\x1a\x7f"),
        ] {
            let mut word = String::new();
            ansi_c(&format!("{inside}'"), &mut word).unwrap();
            assert_eq!(bytes_of(&word), bytes, "{inside}");
            assert_eq!(has_bytes(&word), std::str::from_utf8(bytes).is_err(), "{inside}");
        }
    }
}
