//! Percent-encoding (RFC 3986 §2.1).

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use std::borrow::Cow;

/// What a component of a URL encodes: all but unreserved characters (RFC 3986 §2.3).
pub(crate) const COMPONENT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What `application/x-www-form-urlencoded` encodes; a blank becomes `+`.
const FORM: &AsciiSet = &NON_ALPHANUMERIC.remove(b'*').remove(b'-').remove(b'.').remove(b'_');

/// What no URL has as it is: blanks, controls, and all beyond ASCII.
const NOT_OF_URLS: &AsciiSet = &CONTROLS.add(b' ');

/// Bytes as a component of a URL, such as a name or a value of its query.
pub fn component(bytes: &[u8]) -> String {
    percent_encode(bytes, COMPONENT).to_string()
}

/// A name and a value as a pair of a query or a form.
pub fn pair(name: &str, value: &str) -> String {
    format!("{}={}", component(name.as_bytes()), component(value.as_bytes()))
}

/// Text as a name or a value of `application/x-www-form-urlencoded`.
pub fn form(text: &str) -> String {
    let encoded = percent_encode(text.as_bytes(), FORM).to_string();
    encoded.replace("%20", "+")
}

/// A URL in which only characters that no URL has are encoded.
pub fn url(text: &str) -> String {
    url_of_bytes(text.as_bytes())
}

/// The same of bytes, which may be no text.
pub fn url_of_bytes(bytes: &[u8]) -> String {
    percent_encode(bytes, NOT_OF_URLS).to_string()
}

/// The text of a name or value in a form or query, where `+` is a blank; `None` if it is not UTF-8.
pub fn form_decoded(text: &str) -> Option<String> {
    let text = text.replace('+', " ");
    let decoded = percent_decode_str(&text).decode_utf8();
    decoded.ok().map(Cow::into_owned)
}

/// The text of a component of a URL; bytes that are not UTF-8 are replaced.
pub fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}
