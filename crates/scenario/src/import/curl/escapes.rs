//! The inside of `$'…'`, with the escapes of C.

use super::wrong;
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
    loop {
        let c = rest.chars().next().ok_or_else(|| open('\''))?;
        rest = &rest[c.len_utf8()..];
        match c {
            '\'' => break,
            '\\' => rest = escape(rest, &mut bytes)?,
            c => push(c, &mut bytes),
        }
    }
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    // What is no text becomes characters that stand for it.
    for chunk in text.utf8_chunks() {
        word.push_str(chunk.valid());
        word.extend(chunk.invalid().iter().copied().map(char_of_byte));
    }
    Ok(rest)
}

fn push(c: char, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Reads what stands behind a backslash; returns the text behind it.
fn escape<'a>(escaped: &'a str, bytes: &mut Vec<u8>) -> Result<&'a str, ParseError> {
    let kind = escaped.chars().next().ok_or_else(|| open('\''))?;
    let rest = &escaped[kind.len_utf8()..];
    let code = match kind {
        'x' => number(rest, 16, 2),
        'u' => number(rest, 16, 4),
        'U' => number(rest, 16, 8),
        _ => number(escaped, 8, 3),
    };
    if let Some((code, behind)) = code {
        if matches!(kind, 'u' | 'U') {
            let c = char::from_u32(code);
            push(c.ok_or_else(|| wrong("an escape in $'…' is no character"))?, bytes);
        } else {
            // As a byte has it: octal numbers go up to 511.
            bytes.push(code as u8);
        }
        return Ok(behind);
    }
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
        'c' if rest.starts_with(|c: char| c.is_ascii_graphic() && c != '\'') => {
            let of = rest.as_bytes()[0];
            bytes.push(if of == b'?' { 0x7f } else { of & 0x1f });
            return Ok(&rest[1..]);
        }
        other => {
            bytes.push(b'\\');
            other
        }
    };
    push(simple, bytes);
    Ok(rest)
}

/// The number that a text begins with, and the text behind it.
fn number(text: &str, radix: u32, digits_max: usize) -> Option<(u32, &str)> {
    let digits = text.chars().take(digits_max).take_while(|c| c.is_digit(radix)).count();
    let (digits, rest) = text.split_at(digits);
    Some((u32::from_str_radix(digits, radix).ok()?, rest))
}

/// The error of a quote or a bracket without its end.
pub(super) fn open(sign: char) -> ParseError {
    let kind = if matches!(sign, '(' | '{') { "bracket" } else { "quote" };
    wrong(format!("the {kind} {sign} is not closed"))
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
