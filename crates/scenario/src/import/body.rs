//! Bodies in the form that is easiest to change, as a step has them.

use super::json_text::{form, one_line, without_values};
use super::text::ImportedText;
use super::yaml::{YamlMap, YamlValue};

/// The type of a form.
pub(super) const FORM: &str = "application/x-www-form-urlencoded";

/// A header's name and value.
pub(super) type Header = (String, ImportedText);

/// The key of a body in a step, and its value.
pub(super) type Content = (&'static str, YamlValue);

/// The body by its type, without the header that then says nothing more.
pub(super) fn of_type(headers: &mut Vec<Header>, body: String) -> Option<Content> {
    const JSON: &str = "application/json";
    if body.is_empty() {
        return None;
    }
    let is_type = |header: &&Header| header.0.eq_ignore_ascii_case("content-type");
    let given = headers.iter().find(is_type).and_then(|(_, value)| value.literal());
    let media = given.map_or("", |value| value.split(';').next().unwrap_or_default());
    let media = media.trim().to_ascii_lowercase();
    let (content, implied) = if media == JSON || media.ends_with("+json") {
        let json = one_line(&body).map(|json| YamlValue::Plain(without_values(&json)));
        (json.map(|json| ("json", json)), JSON)
    } else if media == FORM {
        let pair = |(name, value)| (name, YamlValue::Template(value));
        let form = form(&body).map(|pairs| pairs.into_iter().map(pair).collect());
        (form.map(|pairs| ("form", YamlValue::Line(pairs))), FORM)
    } else {
        (None, "")
    };
    let Some(content) = content else {
        return Some(("body", YamlValue::Template(body.into())));
    };
    headers.retain(|(name, value)| {
        let is_implied = value.literal().is_some_and(|value| value.eq_ignore_ascii_case(implied));
        !(name.eq_ignore_ascii_case("content-type") && is_implied)
    });
    Some(content)
}

/// A part of a multipart body: text, or else the name of a file.
pub(super) fn part(
    content: Result<ImportedText, String>,
    media: Option<&str>,
    filename: Option<&str>,
) -> YamlValue {
    let mut line = match content {
        Ok(text) if media.is_none() && filename.is_none() => return YamlValue::Template(text),
        Ok(text) => vec![("text".to_owned(), YamlValue::Template(text))],
        Err(file) => vec![("file".to_owned(), YamlValue::Quoted(file))],
    };
    for (key, value) in [("type", media), ("filename", filename)] {
        line.extend(value.map(|value| (key.to_owned(), YamlValue::Quoted(value.to_owned()))));
    }
    YamlValue::Line(line)
}

/// A body of parts with their names, which may stand there several times; `None` without any.
pub(super) fn multipart(parts: impl Iterator<Item = (String, YamlValue)>) -> Option<Content> {
    let mut map: YamlMap = Vec::new();
    for (name, value) in parts {
        match map.iter_mut().find(|(other, _)| *other == name) {
            None => map.push((name, value)),
            Some((_, YamlValue::Row(list))) => list.push(value),
            Some((_, first)) => *first = YamlValue::Row(vec![first.clone(), value]),
        }
    }
    (!map.is_empty()).then_some(("multipart", YamlValue::Map(map)))
}
