//! Small grammars that several formats share.

/// A name as a part of a JSON Pointer (RFC 6901 §3).
pub(super) fn pointer_part(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Whether a text is a token, as names of headers and cookies are (RFC 9110 §5.6.2).
pub(super) fn is_token(text: &str) -> bool {
    let is_sign = |b: u8| b"!#$%&'*+-.^_`|~".contains(&b);
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || is_sign(b))
}

/// Ascending statuses as ranges, both ends included.
pub(super) fn status_ranges(statuses: impl Iterator<Item = u16>) -> Vec<(u16, u16)> {
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for status in statuses {
        match ranges.last_mut() {
            Some((_, high)) if *high + 1 == status => *high = status,
            _ => ranges.push((status, status)),
        }
    }
    ranges
}
