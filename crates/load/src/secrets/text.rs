//! Secrets in text, by the names that stand before them: in URLs, queries, forms, JSON, headers.

use super::names::{NameClass, SecretNames};
use std::ops::Range;

/// A secret in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundSecret {
    /// Where its value is.
    pub(super) at: Range<usize>,
    /// What it is called.
    pub(super) name: String,
}

impl FoundSecret {
    /// A secret at this place; `None` where its value is empty.
    pub(super) fn new(at: Range<usize>, name: &str) -> Option<FoundSecret> {
        (!at.is_empty()).then(|| FoundSecret { at, name: name.to_owned() })
    }
}

/// Digits of a number under a common word that is no secret, at most: `code=404`.
const PLAIN_DIGITS_MAX: usize = 4;

/// No name of a field is longer.
const NAME_BYTES_MAX: usize = 256;

/// What ends a value in any text.
const ENDS: &[char] = &['&', ';', '"', '\'', '<', '>', '#', '`', '\\'];

/// What user information in a URL is called.
pub(super) const USER_INFORMATION: &str = "user information";

/// What divides the pairs of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pairs {
    /// Signs and blanks of any text.
    Text,
    /// `&` and `#` alone, as in the query of a URL.
    Query,
    /// `&` alone, as in a form.
    Form,
}

/// All secrets of a text, in ascending order, apart from each other.
pub(super) fn secrets_of(names: &SecretNames, text: &str) -> Vec<FoundSecret> {
    let mut found = users(text);
    found.extend(pairs(names, text, Pairs::Text));
    found.extend(fields(names, text));
    found.extend(headers(names, text));
    found.extend(elements(names, text));
    apart(found)
}

/// The same of a URL: where the query and the fragment are, only `&` divides.
pub(super) fn secrets_of_url(names: &SecretNames, url: &str) -> Vec<FoundSecret> {
    let mut found = users(url);
    if let Some(query) = url.find(['?', '#']) {
        found.extend(shifted(pairs(names, &url[query..], Pairs::Query), query));
    }
    apart(found)
}

/// The same of a form.
pub(super) fn secrets_of_form(names: &SecretNames, form: &str) -> Vec<FoundSecret> {
    pairs(names, form, Pairs::Form)
}

/// Whether a body is pairs of a form and no other text.
pub(super) fn is_form(text: &str) -> bool {
    let is_pair = |pair: &str| {
        let name = pair.split('=').next().unwrap_or_default();
        !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || "{\"<:/".contains(c))
    };
    text.contains('=') && text.split('&').all(is_pair)
}

/// Every cookie of these.
pub(super) fn cookies(text: &str) -> Vec<FoundSecret> {
    let (mut found, mut from) = (Vec::new(), 0);
    for cookie in text.split(';') {
        let end = from + cookie.len();
        if let Some((name, _)) = cookie.split_once('=') {
            push(&mut found, from + name.len() + 1..end, name.trim());
        }
        from = end + 1;
    }
    found
}

/// Secrets in ascending order, with those that overlap made one.
fn apart(mut found: Vec<FoundSecret>) -> Vec<FoundSecret> {
    found.sort_by_key(|one| (one.at.start, one.at.end));
    let mut apart: Vec<FoundSecret> = Vec::with_capacity(found.len());
    for one in found {
        match apart.last_mut() {
            Some(last) if one.at.start < last.at.end => last.at.end = last.at.end.max(one.at.end),
            _ => apart.push(one),
        }
    }
    apart
}

fn shifted(found: Vec<FoundSecret>, by: usize) -> Vec<FoundSecret> {
    let shift = |one: FoundSecret| FoundSecret { at: one.at.start + by..one.at.end + by, ..one };
    found.into_iter().map(shift).collect()
}

fn push(found: &mut Vec<FoundSecret>, at: Range<usize>, name: &str) {
    found.extend(FoundSecret::new(at, name));
}

/// Whether a value under a name of this class is one.
fn is_secret(class: Option<NameClass>, value: &str) -> bool {
    let is_number = value.bytes().all(|b| b.is_ascii_digit()) && value.len() <= PLAIN_DIGITS_MAX;
    class.is_some_and(|class| class == NameClass::Strong || !is_number)
}

/// User information: what stands between `://` and `@` of a URL.
fn users(text: &str) -> Vec<FoundSecret> {
    let mut found = Vec::new();
    for (at, sign) in text.match_indices("://") {
        let from = at + sign.len();
        let ends = |c: char| c.is_whitespace() || "/?#\"'<>`…".contains(c);
        let end = text[from..].find(ends).map_or(text.len(), |end| from + end);
        if let Some(user) = text[from..end].rfind('@') {
            push(&mut found, from..from + user, USER_INFORMATION);
        } else if is_cut_user(&text[from..end]) && text[end..].starts_with('…') {
            push(&mut found, from..end, USER_INFORMATION);
        }
    }
    found
}

/// User information in a word that is an address or was to be one, whatever is wrong with it: what
/// stands before its last `@`, with a `:` in it or behind a scheme. A word of other text has none.
pub(super) fn user_of_address(word: &str) -> Option<FoundSecret> {
    let is_scheme = |text: &str| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        !text.is_empty() && text.chars().all(is_part)
    };
    let slashes = word.find('/').filter(|at| *at > 0);
    let scheme = slashes.filter(|at| is_scheme(word[..*at].trim_end_matches(':')));
    let slashes = if word.starts_with("//") { Some(0) } else { scheme };
    let begin = slashes.map_or(0, |at| word.len() - word[at..].trim_start_matches('/').len());
    let end = begin + word[begin..].rfind('@')?;
    let user = &word[begin..end];
    let is_text = |c: char| "\"'{}<>,;=".contains(c) || c.is_whitespace();
    let is_address = if scheme.is_some_and(|at| word[..at].ends_with(':')) {
        // Behind a host, the path may have an '@'.
        let rest = &word[begin..];
        !is_host(&rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())])
    } else {
        user.contains(':') && !user.starts_with(['/', '.', '@', '-']) && !user.contains(is_text)
    };
    FoundSecret::new(begin..end, USER_INFORMATION).filter(|_| is_address)
}

/// Whether this is a host, with a port or without.
fn is_host(authority: &str) -> bool {
    let port = authority.rsplit_once(':').map_or("", |(_, port)| port);
    let is_port = |b: u8| b.is_ascii_digit() || b == b']';
    !authority.contains('@') && (port.bytes().all(is_port) || authority.ends_with(']'))
}

/// Whether an authority that was cut may be user information: a port is a number.
fn is_cut_user(authority: &str) -> bool {
    let after = authority.rsplit_once(':').map(|(_, after)| after);
    after.is_some_and(|after| !after.bytes().all(|b| b.is_ascii_digit() || b == b']'))
}

/// `name=value`.
fn pairs(names: &SecretNames, text: &str, pairs: Pairs) -> Vec<FoundSecret> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(sign) = text[from..].find('=').map(|sign| from + sign) {
        let name = name_before(text, sign, pairs);
        from = sign + 1;
        let class = names.class(name);
        if class.is_none() {
            // Without a look at the value, which may go on for the whole text.
            continue;
        }
        let value = value_at(text, from, pairs);
        if is_secret(class, &text[value.clone()]) {
            from = value.end;
            push(&mut found, value, name);
        }
    }
    found
}

/// The name that ends at `end`.
fn name_before(text: &str, end: usize, pairs: Pairs) -> &str {
    let is_part = |c: char| match pairs {
        Pairs::Text => c.is_alphanumeric() || "-_.[]%$".contains(c),
        Pairs::Query | Pairs::Form => !"&?#;=".contains(c),
    };
    let begin = text[..end].rfind(|c| !is_part(c));
    &text[begin.map_or(0, |at| after(text, at))..end]
}

/// The value that begins at `begin`, without its quotes.
fn value_at(text: &str, begin: usize, pairs: Pairs) -> Range<usize> {
    let rest = &text[begin..];
    if let (Pairs::Text, Some(quote @ ('"' | '\''))) = (pairs, rest.chars().next()) {
        let end = rest[1..].find(quote).map_or(rest.len(), |end| end + 1);
        return begin + 1..begin + end;
    }
    let ends = |c: char| match pairs {
        Pairs::Text => c.is_whitespace() || c == '…' || ENDS.contains(&c),
        Pairs::Query => c == '&' || c == '#',
        Pairs::Form => c == '&',
    };
    let end = rest.find(ends).unwrap_or(rest.len());
    begin..begin + end
}

/// `"name": value` of JSON, also where the quotes are escaped.
fn fields(names: &SecretNames, text: &str) -> Vec<FoundSecret> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(open) = text[from..].find('"').map(|open| from + open) {
        let most = text.len().min(open + NAME_BYTES_MAX);
        let most = (most..=text.len()).find(|at| text.is_char_boundary(*at));
        let name = quoted_at(&text[..most.unwrap_or(text.len())], open);
        from = open + 1;
        let after = (name.end + quote_length(text, open)).min(text.len());
        if !text.is_char_boundary(after) {
            continue;
        }
        let Some(value) = text[after..].trim_start().strip_prefix(':') else {
            continue;
        };
        let value = text.len() - value.trim_start().len();
        let class = names.class(&text[name.clone()]);
        from = value;
        if class.is_some() {
            let value = json_value_at(text, value);
            if is_secret(class, &text[value.clone()]) {
                from = value.end;
                push(&mut found, value, &text[name]);
            }
        }
    }
    found
}

/// How many bytes the quote at `open` has, with the backslash that escapes it.
fn quote_length(text: &str, open: usize) -> usize {
    1 + usize::from(text[..open].ends_with('\\'))
}

/// What is between the quote at `open` and the one that closes it; without one, all that follows.
fn quoted_at(text: &str, open: usize) -> Range<usize> {
    let is_escaped = quote_length(text, open) == 2;
    let begin = open + 1;
    for (at, _) in text[begin..].match_indices('"') {
        let end = begin + at;
        let before = &text[begin..end];
        let backslashes = before.len() - before.trim_end_matches('\\').len();
        if is_escaped && backslashes == 1 {
            return begin..end - 1;
        }
        if !is_escaped && backslashes.is_multiple_of(2) {
            return begin..end;
        }
    }
    begin..text.len()
}

/// The value of JSON at `begin`: of a string what is between its quotes, of a list or object all.
fn json_value_at(text: &str, begin: usize) -> Range<usize> {
    let rest = &text[begin..];
    let (opens, closes) = match rest.chars().next() {
        Some('"') => return quoted_at(text, begin),
        Some('\\') if rest[1..].starts_with('"') => return quoted_at(text, begin + 1),
        Some('[') => ('[', ']'),
        Some('{') => ('{', '}'),
        _ => {
            let ends = |c: char| c.is_whitespace() || ",}]\\\"'".contains(c);
            let end = rest.find(ends).unwrap_or(rest.len());
            let is_word = matches!(&rest[..end], "true" | "false" | "null");
            return begin..begin + if is_word { 0 } else { end };
        }
    };
    let mut depth = 0;
    for (at, c) in rest.char_indices() {
        depth += i32::from(c == opens) - i32::from(c == closes);
        if depth == 0 {
            return begin..begin + at + 1;
        }
    }
    begin..text.len()
}

/// `Name: value` of a header, to the end of its line or the quote that it is in.
fn headers(names: &SecretNames, text: &str) -> Vec<FoundSecret> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(sign) = text[from..].find(':').map(|sign| from + sign) {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let name = &text[from..sign];
        let name = &name[name.rfind(|c| !is_part(c)).map_or(0, |at| after(name, at))..];
        from = sign + 1;
        let is_cookie = name.eq_ignore_ascii_case("cookie");
        let has_sign = name.contains('-') && !name.starts_with('-');
        let is_header = has_sign || is_cookie || name.eq_ignore_ascii_case("authorization");
        if !is_header || !names.is_secret(name) {
            continue;
        }
        let begin = text.len() - text[from..].trim_start_matches([' ', '\t']).len();
        let value = &text[begin..];
        let value = &value[..value.find(['\r', '\n', '"', '\'', '<', '`']).unwrap_or(value.len())];
        let first = value.split_once('=').map(|(first, _)| first);
        let has_pair = first.is_some_and(|first| !first.contains(char::is_whitespace));
        let is_told = value.starts_with('…') || (is_cookie && !has_pair);
        if !is_told {
            from = begin + value.len();
            push(&mut found, begin..from, name);
        }
    }
    found
}

/// Where the character at `at` ends.
fn after(text: &str, at: usize) -> usize {
    at + text[at..].chars().next().map_or(1, char::len_utf8)
}

/// `<name>value</name>` of XML.
fn elements(names: &SecretNames, text: &str) -> Vec<FoundSecret> {
    let mut found = Vec::new();
    for (open, _) in text.match_indices('<') {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
        let name = &text[open + 1..];
        let name = &name[..name.find(|c| !is_part(c)).unwrap_or(name.len())];
        let begin = open + 1 + name.len() + 1;
        if text[open + 1 + name.len()..].starts_with('>') && names.is_secret(name) {
            let end = text[begin..].find('<').map_or(text.len(), |end| begin + end);
            push(&mut found, begin..end, name);
        }
    }
    found
}

#[cfg(test)]
mod tests;
