//! Escaping of a value for its place in a request.

use super::origin::{Origin, resolve};
use super::template::Escape;
use crate::percent::COMPONENT;
use percent_encoding::{AsciiSet, CONTROLS, percent_encode};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The base of the URL that a value leads to, and where that is.
pub(super) struct Place<'a> {
    /// The server and the path of the request before.
    pub(super) before: (u16, &'a [u8]),
    pub(super) origins: &'a [Origin],
    /// The server of the request.
    pub(super) server: u16,
}

/// Why a place cannot have a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnfitReason {
    /// A header is one line of text.
    Control,
    /// `;` would end the value of a cookie.
    Semicolon,
    /// A URL has at least one character.
    Empty,
    /// All requests of a scenario go to its targets.
    Elsewhere,
    /// Steps are repeated a whole number of times.
    NoCount,
    /// Steps are repeated for each element of a JSON array.
    NoArray,
    /// What is put together has over 16 MiB.
    TooLong,
}

/// Makes what lies in `out` from `from` on fit for its place.
///
/// # Errors
/// The place cannot have the value, which stays as it is in `out`.
pub(super) fn escape(
    out: &mut Vec<u8>,
    from: usize,
    escape: Escape,
    place: &mut Place<'_>,
) -> Result<(), UnfitReason> {
    match escape {
        Escape::None => {}
        Escape::Component | Escape::Form => encode(out, from, COMPONENT),
        Escape::Segment => match &out[from..] {
            b"." => replace(out, from, b"%2E"),
            b".." => replace(out, from, b"%2E%2E"),
            _ => encode(out, from, COMPONENT),
        },
        Escape::UrlPiece => encode(out, from, NOT_OF_REQUEST_LINES),
        Escape::Link => lead(out, from, place)?,
        Escape::Header => check_line(&out[from..])?,
        Escape::Cookie => {
            check_line(&out[from..])?;
            if out[from..].contains(&b';') {
                return Err(UnfitReason::Semicolon);
            }
        }
        Escape::Json => escape_json(out, from),
        Escape::JsonValue => {
            if !is_bare_json(&out[from..]) {
                out.insert(from, b'"');
                escape_json(out, from + 1);
                out.push(b'"');
            }
        }
    }
    Ok(())
}

fn replace(out: &mut Vec<u8>, from: usize, by: &[u8]) {
    out.truncate(from);
    out.extend_from_slice(by);
}

/// Refuses control characters in a header (RFC 9110 §5.5).
fn check_line(value: &[u8]) -> Result<(), UnfitReason> {
    if value.iter().any(is_control) {
        return Err(UnfitReason::Control);
    }
    Ok(())
}

/// Whether a byte would end the line of a header, or has no place in it.
pub(super) fn is_control(byte: &u8) -> bool {
    byte.is_ascii_control() && *byte != b'\t'
}

/// Percent-encodes the bytes of a path with its query that no request line may have.
pub fn encode_path(path: &mut Vec<u8>) {
    encode(path, 0, NOT_OF_REQUEST_LINES);
}

/// Puts the path that a URL leads to in its place.
fn lead(out: &mut Vec<u8>, from: usize, place: &mut Place<'_>) -> Result<(), UnfitReason> {
    if out.len() == from {
        return Err(UnfitReason::Empty);
    }
    let mut path = Vec::new();
    let server = resolve(place.origins, place.before, &out[from..], &mut path);
    place.server = server.ok_or(UnfitReason::Elsewhere)?;
    replace(out, from, &path);
    encode(out, from, NOT_OF_REQUEST_LINES);
    Ok(())
}

/// Whether a text is a number, `true`, `false` or `null` of JSON (RFC 8259 §3, §6).
pub fn is_bare_json(text: &[u8]) -> bool {
    if matches!(text, b"true" | b"false" | b"null") {
        return true;
    }
    let rest = text.strip_prefix(b"-").unwrap_or(text);
    let digits = |text: &[u8]| text.iter().take_while(|b| b.is_ascii_digit()).count();
    let whole = digits(rest);
    if whole == 0 || whole > 1 && rest[0] == b'0' {
        return false;
    }
    let mut rest = &rest[whole..];
    if let Some(fraction) = rest.strip_prefix(b".") {
        let count = digits(fraction);
        if count == 0 {
            return false;
        }
        rest = &fraction[count..];
    }
    if let [b'e' | b'E', power @ ..] = rest {
        let power = power.strip_prefix(b"-").unwrap_or(power.strip_prefix(b"+").unwrap_or(power));
        return !power.is_empty() && digits(power) == power.len();
    }
    rest.is_empty()
}

/// What no path with its query has as it is.
const NOT_OF_REQUEST_LINES: &AsciiSet =
    &CONTROLS.add(b' ').add(b'#').add(b'"').add(b'<').add(b'>').add(b'\\').add(b'^').add(b'`');

/// Percent-encodes what lies in `out` from `from` on.
pub(super) fn encode(out: &mut Vec<u8>, from: usize, set: &'static AsciiSet) {
    let encoded = Cow::from(percent_encode(&out[from..], set));
    // Each encoded byte becomes three.
    if encoded.len() > out.len() - from {
        let encoded = encoded.into_owned();
        replace(out, from, encoded.as_bytes());
    }
}

fn escape_json(out: &mut Vec<u8>, from: usize) {
    let is_plain = |byte: &u8| *byte >= 0x20 && !matches!(byte, b'"' | b'\\');
    if out[from..].iter().all(is_plain) {
        return;
    }
    for byte in out.split_off(from) {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..0x20 => {
                out.extend_from_slice(b"\\u00");
                put_hex(&[byte], out);
            }
            _ => out.push(byte),
        }
    }
}

pub(super) fn put_hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(value: &str, how: Escape) -> Result<String, UnfitReason> {
        let origins = [Origin::new(false, "h:81")];
        let mut place = Place { before: (0, b"/a/b?c=d"), origins: &origins, server: 0 };
        let mut out = b"/".to_vec();
        out.extend_from_slice(value.as_bytes());
        let is_fit = escape(&mut out, 1, how, &mut place);
        let text = String::from_utf8(out.split_off(1)).unwrap();
        if is_fit.is_err() {
            assert_eq!(text, value, "a refused value stays");
        }
        is_fit.map(|()| text)
    }

    #[test]
    fn values_are_made_fit_for_their_place() {
        let value = "a b/\"?&=;\u{e4}";
        let encoded = "a%20b%2F%22%3F%26%3D%3B%C3%A4";
        for (how, want) in [
            (Escape::None, value),
            (Escape::Component, encoded),
            (Escape::Segment, encoded),
            (Escape::Form, encoded),
            (Escape::UrlPiece, "a%20b/%22?&=;%C3%A4"),
            (Escape::Header, value),
            (Escape::Json, "a b/\\\"?&=;\u{e4}"),
            (Escape::JsonValue, "\"a b/\\\"?&=;\u{e4}\""),
        ] {
            assert_eq!(fit(value, how).as_deref(), Ok(want), "{how:?}");
        }
        for (value, segment, component) in [
            (".", "%2E", "."),
            ("..", "%2E%2E", ".."),
            ("...", "...", "..."),
            ("../x", "..%2Fx", "..%2Fx"),
            ("a.b", "a.b", "a.b"),
            ("50%", "50%25", "50%25"),
            ("plus+plus", "plus%2Bplus", "plus%2Bplus"),
        ] {
            assert_eq!(fit(value, Escape::Segment).as_deref(), Ok(segment));
            assert_eq!(fit(value, Escape::Component).as_deref(), Ok(component));
        }
        assert_eq!(fit("/x?y=%20&z", Escape::UrlPiece).unwrap(), "/x?y=%20&z");
    }

    #[test]
    fn a_header_refuses_what_would_end_its_line() {
        for value in ["a\r\nb", "a\r", "\nb", "a\0b", "\u{7f}"] {
            for how in [Escape::Header, Escape::Cookie] {
                assert_eq!(fit(value, how), Err(UnfitReason::Control), "{value:?}");
            }
        }
        for value in ["", "a\tb", "a b \u{e4}", "%0D%0A", "a=b"] {
            for how in [Escape::Header, Escape::Cookie] {
                assert_eq!(fit(value, how).as_deref(), Ok(value));
            }
        }
        assert_eq!(fit("a; b", Escape::Cookie), Err(UnfitReason::Semicolon));
        assert_eq!(fit("a; b", Escape::Header).as_deref(), Ok("a; b"));
    }

    #[test]
    fn a_link_is_a_url_of_the_target() {
        for (link, want) in [
            ("/x?y=%20 z#w", Ok("/x?y=%20%20z")),
            ("http://h:81/x", Ok("/x")),
            ("?page=2", Ok("/a/b?page=2")),
            ("../x", Ok("/x")),
            ("", Err(UnfitReason::Empty)),
            ("https://h:81/x", Err(UnfitReason::Elsewhere)),
            ("//other/x", Err(UnfitReason::Elsewhere)),
            ("mailto:a@b", Err(UnfitReason::Elsewhere)),
        ] {
            assert_eq!(fit(link, Escape::Link).as_deref(), want.as_deref(), "{link}");
        }
    }

    #[test]
    fn a_bare_value_is_one_that_json_reads_as_no_text() {
        for text in ["0", "-0", "7", "10.25", "-1e9", "2E+3", "1.0e-7", "true", "false", "null"] {
            assert!(is_bare_json(text.as_bytes()), "{text}");
            assert!(serde_json::from_str::<serde_json::Value>(text).is_ok());
        }
        for text in [
            "", "-", "007", "1.", ".5", "+1", "1e", "1e+", "0x10", "1 ", " 1", "1,2", "{}", "True",
            "NaN", "1.5.2", "--1", "1}", "٣",
        ] {
            assert!(!is_bare_json(text.as_bytes()), "{text}");
        }
    }
}
