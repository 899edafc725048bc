//! Parameters in their places, by style and explode.

use super::plain;
use knee_load::percent;
use serde_json::Value;

/// How a list or an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ApiStyle<'a> {
    pub(super) style: &'a str,
    pub(super) explode: bool,
    /// Whether reserved characters stay as they are.
    pub(super) allow_reserved: bool,
}

impl<'a> ApiStyle<'a> {
    /// The style of a parameter, or of the encoding of a form's field.
    pub(super) fn of(parameter: &'a Value, place: &str) -> ApiStyle<'a> {
        let text = |key: &str| parameter.get(key).and_then(Value::as_str);
        let flag = |key: &str| parameter.get(key).and_then(Value::as_bool);
        // Swagger 2 has its own words.
        let swagger = match text("collectionFormat") {
            Some("multi") => Some(("form", true)),
            Some("ssv") => Some(("spaceDelimited", false)),
            Some("tsv") => Some(("tabDelimited", false)),
            Some("pipes") => Some(("pipeDelimited", false)),
            Some(_) => Some(("form", false)),
            None if parameter.get("schema").is_none() && text("type").is_some() => {
                Some(("form", false))
            }
            None => None,
        };
        let usual = if matches!(place, "query" | "cookie") { "form" } else { "simple" };
        let (style, explode) = match swagger {
            Some((style, explode)) if usual == "form" => (style, explode),
            _ => {
                let style = text("style").unwrap_or(usual);
                (style, flag("explode").unwrap_or(style == "form"))
            }
        };
        ApiStyle { style, explode, allow_reserved: flag("allowReserved") == Some(true) }
    }

    fn encoded(self, text: &str) -> String {
        if self.allow_reserved { percent::url(text) } else { percent::component(text.as_bytes()) }
    }

    /// Names and values of a query or a form, encoded.
    pub(super) fn pairs(self, name: &str, value: &Value) -> Vec<String> {
        let pair = |name: &str, value: String| {
            format!("{}={}", percent::component(name.as_bytes()), value)
        };
        let between = match self.style {
            "spaceDelimited" => "%20",
            "pipeDelimited" => "%7C",
            "tabDelimited" => "%09",
            _ => ",",
        };
        let one = |value: &Value| self.encoded(&plain(value));
        match value {
            Value::Array(values) if self.explode => {
                values.iter().map(|value| pair(name, one(value))).collect()
            }
            Value::Array(values) => {
                let values: Vec<String> = values.iter().map(one).collect();
                vec![pair(name, values.join(between))]
            }
            Value::Object(fields) if self.style == "deepObject" => {
                let field =
                    |(key, value): (&String, &Value)| pair(&format!("{name}[{key}]"), one(value));
                fields.iter().map(field).collect()
            }
            Value::Object(fields) if self.explode => {
                fields.iter().map(|(key, value)| pair(key, one(value))).collect()
            }
            Value::Object(fields) => {
                let field = |(key, value): (&String, &Value)| {
                    format!("{}{between}{}", self.encoded(key), one(value))
                };
                let fields: Vec<String> = fields.iter().map(field).collect();
                vec![pair(name, fields.join(between))]
            }
            value => vec![pair(name, one(value))],
        }
    }

    /// The text in a path or in a header.
    pub(super) fn text(self, name: &str, value: &Value, is_path: bool) -> String {
        let encode = |text: String| {
            if is_path { percent::component(text.as_bytes()) } else { text }
        };
        let one = |value: &Value| encode(plain(value));
        let (begin, between, is_matrix) = match self.style {
            "label" => (".", if self.explode { "." } else { "," }, false),
            "matrix" => (";", if self.explode { ";" } else { "," }, true),
            _ => ("", ",", false),
        };
        let named = |text: String| if is_matrix { format!("{name}={text}") } else { text };
        let joined = |texts: Vec<String>| texts.join(between);
        let inside = match value {
            Value::Array(values) if is_matrix && self.explode => {
                joined(values.iter().map(|value| named(one(value))).collect())
            }
            Value::Array(values) => named(joined(values.iter().map(one).collect())),
            Value::Object(fields) => {
                let sign = if self.explode { "=" } else { "," };
                let field = |(key, value): (&String, &Value)| {
                    format!("{}{sign}{}", encode(key.clone()), one(value))
                };
                let fields = joined(fields.iter().map(field).collect());
                if self.explode { fields } else { named(fields) }
            }
            value => named(one(value)),
        };
        format!("{begin}{inside}")
    }
}
