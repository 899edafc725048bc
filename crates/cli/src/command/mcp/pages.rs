//! A part of a large JSON document, small enough for the context of a model.

use serde_json::{Map, Value, json};

/// Most bytes of a page, about.
const PAGE_BYTES: usize = 8_000;

/// Most bytes of a value within a page; of a larger one only its size is shown.
const VALUE_BYTES: usize = 600;

/// The value at a JSON Pointer (RFC 6901): whole where it is small, otherwise its members from
/// number `offset` on, as many as fit.
///
/// # Errors
/// Nothing is there: one line that says what is.
pub(super) fn page(document: &Value, pointer: &str, offset: usize) -> Result<Value, String> {
    let value = document.pointer(pointer).ok_or_else(|| nothing_at(document, pointer))?;
    let bytes = size(value);
    let mut page = Map::new();
    page.insert("pointer".to_owned(), pointer.into());
    let members = match value {
        _ if bytes <= PAGE_BYTES && offset == 0 => {
            page.insert("value".to_owned(), value.clone());
            return Ok(page.into());
        }
        Value::Object(members) => {
            let (taken, next) = fit(members.iter(), offset, |(name, value)| {
                (name.len() + size(value).min(VALUE_BYTES), (name.clone(), shortened(value)))
            });
            page.insert("value".to_owned(), taken.into_iter().collect::<Map<_, _>>().into());
            (members.len(), next)
        }
        Value::Array(items) => {
            let (taken, next) = fit(items.iter(), offset, |item| {
                let is_whole = size(item) <= PAGE_BYTES / 2;
                let item = if is_whole { item.clone() } else { shortened(item) };
                (size(&item), item)
            });
            page.insert("value".to_owned(), taken.into());
            (items.len(), next)
        }
        Value::String(text) => {
            let (taken, next) = fit(text.chars(), offset, |c| (c.len_utf8(), c));
            page.insert("value".to_owned(), taken.into_iter().collect::<String>().into());
            (text.chars().count(), next)
        }
        other => {
            page.insert("value".to_owned(), other.clone());
            (1, None)
        }
    };
    page.insert("offset".to_owned(), offset.into());
    page.insert("length".to_owned(), members.0.into());
    if let Some(next) = members.1 {
        page.insert("next_offset".to_owned(), next.into());
    }
    Ok(page.into())
}

/// The members from `offset` on that fit into a page, at least one, and the number of the next.
fn fit<I, T>(
    members: impl Iterator<Item = I>,
    offset: usize,
    shown: impl Fn(I) -> (usize, T),
) -> (Vec<T>, Option<usize>) {
    let (mut taken, mut room) = (Vec::new(), PAGE_BYTES);
    for (number, member) in members.enumerate().skip(offset) {
        let (bytes, member) = shown(member);
        if bytes > room && !taken.is_empty() {
            return (taken, Some(number));
        }
        room = room.saturating_sub(bytes);
        taken.push(member);
    }
    (taken, None)
}

/// The value, or what it is where it is large.
fn shortened(value: &Value) -> Value {
    let bytes = size(value);
    if bytes <= VALUE_BYTES {
        return value.clone();
    }
    let what = match value {
        Value::Object(members) => format!("object of {} members", members.len()),
        Value::Array(items) => format!("array of {} items", items.len()),
        _ => "text".to_owned(),
    };
    json!({ "omitted": format!("{what}, {bytes} bytes: ask for its pointer") })
}

/// Bytes as compact JSON.
fn size(value: &Value) -> usize {
    value.to_string().len()
}

/// Names the longest part of the pointer that leads somewhere, and what is there.
fn nothing_at(document: &Value, pointer: &str) -> String {
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return format!("invalid pointer '{pointer}': expected one such as /trials/0");
    }
    let ends = pointer.rmatch_indices('/').map(|(at, _)| &pointer[..at]);
    let parent = ends.into_iter().find(|part| document.pointer(part).is_some()).unwrap_or_default();
    let there = match document.pointer(parent) {
        Some(Value::Object(members)) => {
            members.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
        }
        Some(Value::Array(items)) => format!("an array of {} items", items.len()),
        _ => "a value without members".to_owned(),
    };
    format!("invalid pointer '{pointer}': '{parent}' has {there}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_values_are_whole() {
        let document = json!({"a": [1, {"b": 2}], "c/d": 3});
        assert_eq!(page(&document, "", 0).unwrap()["value"], document);
        assert_eq!(page(&document, "/a/1/b", 0).unwrap()["value"], 2);
        assert_eq!(page(&document, "/c~1d", 0).unwrap()["value"], 3);
    }

    /// Pages of any document are bounded, and together have all of its members once.
    #[test]
    fn pages_have_all_members_once() {
        let items: Vec<Value> = (0..2_000).map(|n| json!({"number": n})).collect();
        let text = "x".repeat(100_000);
        let document = json!({"items": items, "text": text});
        let (mut offset, mut seen) = (0, Vec::new());
        loop {
            let page = page(&document, "/items", offset).unwrap();
            assert!(size(&page) < PAGE_BYTES * 2, "{}", size(&page));
            seen.extend(page["value"].as_array().unwrap().iter().cloned());
            match page["next_offset"].as_u64() {
                Some(next) => offset = next as usize,
                None => break,
            }
        }
        assert_eq!(Value::from(seen), document["items"]);
        let outline = page(&document, "", 0).unwrap();
        assert!(size(&outline) < 1_000, "{outline}");
        let omitted = outline["value"]["items"]["omitted"].as_str().unwrap();
        assert!(omitted.starts_with("array of 2000 items, "), "{omitted}");
        let cut = page(&document, "/text", 99_990).unwrap();
        assert_eq!((&cut["value"], &cut["next_offset"]), (&json!("xxxxxxxxxx"), &Value::Null));
    }

    #[test]
    fn missing_places_are_named() {
        let document = json!({"trials": [{"label": "a"}]});
        for (pointer, expected) in [
            ("trials", "invalid pointer 'trials': expected one such as /trials/0"),
            ("/trails/0", "invalid pointer '/trails/0': '' has trials"),
            ("/trials/7", "invalid pointer '/trials/7': '/trials' has an array of 1 items"),
            ("/trials/0/x", "invalid pointer '/trials/0/x': '/trials/0' has label"),
        ] {
            assert_eq!(page(&document, pointer, 0).unwrap_err(), expected);
        }
    }
}
