//! Bodies in the form that is easiest to change.

use super::collect::FORM;
use super::json_text::one_line;
use super::{ImportedBody, ImportedText};
use knee_load::percent;
use std::collections::HashSet;

/// A request's headers.
type Headers = Vec<(String, ImportedText)>;

/// The body by its type, and the headers that it then needs.
pub(super) fn content(mut headers: Headers, body: String) -> (Headers, ImportedBody) {
    const JSON: &str = "application/json";
    if body.is_empty() {
        return (headers, ImportedBody::None);
    }
    let is_type = |header: &&(String, ImportedText)| header.0.eq_ignore_ascii_case("content-type");
    let given = headers.iter().find(is_type).and_then(|(_, value)| value.literal());
    let media = given.map_or("", |value| value.split(';').next().unwrap_or_default());
    let media = media.trim().to_ascii_lowercase();
    let content = match media.as_str() {
        media if media == JSON || media.ends_with("+json") => {
            one_line(&body).map(ImportedBody::Json)
        }
        FORM => form(&body).map(ImportedBody::Form),
        _ => None,
    };
    let implied = match &content {
        Some(ImportedBody::Json(_)) => JSON,
        Some(ImportedBody::Form(_)) => FORM,
        _ => "",
    };
    headers.retain(|(name, value)| {
        let is_implied = value.literal().is_some_and(|value| value.eq_ignore_ascii_case(implied));
        !(name.eq_ignore_ascii_case("content-type") && is_implied)
    });
    (headers, content.unwrap_or_else(|| ImportedBody::Text(body.into())))
}

/// Names and values of form data; `None` where a map cannot have them.
fn form(body: &str) -> Option<Vec<(String, ImportedText)>> {
    let mut names = HashSet::new();
    let pairs = body.split('&').map(|pair| {
        let (name, value) = pair.split_once('=')?;
        let (name, value) = (decoded(name)?, decoded(value)?);
        let is_plain = !name.is_empty() && !name.chars().any(char::is_control);
        (is_plain && names.insert(name.clone())).then_some((name, value.into()))
    });
    pairs.collect()
}

/// The text of a name or a value; `None` where a `%` begins no code.
fn decoded(text: &str) -> Option<String> {
    let is_code = |rest: &str| rest.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    text.split('%').skip(1).all(is_code).then(|| percent::form_decoded(text))?
}
