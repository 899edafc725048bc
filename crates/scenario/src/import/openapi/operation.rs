//! Operations: parameters in their places, by style and explode, bodies and the statuses that are
//! expected.

use super::schema::ValueMaker;
use super::{ApiDescription, plain};
use crate::import::collect::{Collector, FORM, SourceRequest};
use crate::import::grammar::pointer_part;
use crate::import::{ImportedBody, ImportedPart, ImportedText};
use knee_load::percent;
use serde_json::{Map, Value};
use std::collections::HashSet;

/// An operation of a path.
pub(super) struct ApiOperation<'a> {
    pub(super) description: &'a ApiDescription<'a>,
    pub(super) path: &'a str,
    pub(super) method: &'a str,
    /// What all operations of its path have.
    pub(super) item: &'a Value,
    pub(super) operation: &'a Value,
}

impl<'a> ApiOperation<'a> {
    /// The step, with values for all that it needs.
    pub(super) fn draft(
        &self,
        server: &str,
        all: &mut Collector,
        schemes: &mut HashSet<String>,
    ) -> SourceRequest {
        let name = self.operation.get("operationId").and_then(Value::as_str);
        let mut draft = SourceRequest {
            method: self.method.to_ascii_uppercase(),
            name: name.map(str::to_owned),
            // One operation that fails says nothing about the next.
            goes_on: true,
            ..SourceRequest::default()
        };
        if self.operation.get("servers").or(self.item.get("servers")).is_some() {
            all.leave_out(format!("{}: servers of its own", self.told()));
        }
        let mut path = self.path.to_owned();
        let (mut query, mut form, mut headers) = (Vec::new(), Vec::new(), Vec::new());
        let mut optional = 0_usize;
        for parameter in self.parameters() {
            let text = |key: &str| parameter.get(key).and_then(Value::as_str).unwrap_or_default();
            let (name, place) = (text("name"), text("in"));
            let is_required = parameter.get("required") == Some(&Value::Bool(true));
            if !is_required && !matches!(place, "path" | "body" | "formData") {
                optional += 1;
                continue;
            }
            if let Some(reference) = parameter.get("$ref").and_then(Value::as_str) {
                all.leave_out(format!("parameter {reference}: it is in another place"));
                continue;
            }
            let value = self.value(parameter, all);
            let style = ApiStyle::of(parameter, if place == "formData" { "query" } else { place });
            match place {
                "path" => {
                    let value = style.text(name, &value, true);
                    path = path.replace(&format!("{{{name}}}"), &value);
                }
                "body" => self.json("application/json", value, &mut draft),
                "query" => query.extend(style.pairs(name, &value)),
                "formData" => form.push((name, parameter, value)),
                "header" => headers.push((name, style.text(name, &value, false))),
                "cookie" => draft.header("Cookie", style.pairs(name, &value).join("; ")),
                other => all.leave_out(format!("parameter '{name}' in {other}")),
            }
        }
        if optional > 0 {
            all.leave_out("optional parameters of an operation");
        }
        if let Some((_, rest)) = path.split_once('{') {
            let name = rest.split('}').next().unwrap_or_default().to_owned();
            all.leave_out(format!("{}: the value of {{{name}}} is not described", self.told()));
        }
        let sign = if query.is_empty() { "" } else { "?" };
        draft.url = format!("{server}{path}{sign}{}", query.join("&")).into();
        self.form_data(form, &mut draft);
        self.body(&mut draft, all);
        self.description.authorize(self.operation, &mut draft, schemes, all);
        self.headers(headers, &mut draft, all);
        draft.expect.status = self.statuses();
        draft
    }

    /// Adds the parameters that are headers, before the headers of the body and of the credentials.
    /// Those take the place of parameters with their names.
    fn headers(
        &self,
        parameters: Vec<(&str, String)>,
        draft: &mut SourceRequest,
        all: &mut Collector,
    ) {
        let is_swagger = self.description.root.get("swagger").is_some();
        let others = std::mem::take(&mut draft.headers);
        let has_parts = draft.content != ImportedBody::None;
        for (name, value) in parameters {
            let lower = name.to_ascii_lowercase();
            let is_given = others.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
            match lower.as_str() {
                _ if is_given => {}
                "content-type" if has_parts => {}
                "authorization" => {
                    let value = ImportedText::value("env(AUTHORIZATION)");
                    let told = value.template();
                    all.remark(format!("Header {told}: set it to the value of Authorization."));
                    draft.header(name, value);
                }
                "accept" | "content-type" if !is_swagger => {
                    all.leave_out(format!("parameter '{name}' in header: OpenAPI 3 ignores it"));
                }
                _ => draft.header(name, value),
            }
        }
        draft.headers.extend(others);
    }

    fn told(&self) -> String {
        format!("{} {}", self.method.to_ascii_uppercase(), self.path)
    }

    /// Its own parameters, and those of its path that it does not have itself.
    fn parameters(&self) -> Vec<&'a Value> {
        let list = |value: Option<&'a Value>| {
            let list = value.and_then(Value::as_array).into_iter().flatten();
            list.map(|one| self.description.resolved(one))
        };
        let mut all: Vec<&Value> = list(self.operation.get("parameters")).collect();
        let same =
            |a: &Value, b: &Value| a.get("name") == b.get("name") && a.get("in") == b.get("in");
        for shared in list(self.item.get("parameters")) {
            if !all.iter().any(|own| same(own, shared)) {
                all.push(shared);
            }
        }
        all
    }

    /// The value of a parameter or of a kind of content.
    fn value(&self, of: &'a Value, all: &mut Collector) -> Value {
        if let Some(example) = self.description.example(of) {
            return example;
        }
        // The value of a parameter may be a document.
        let content = of.get("content").and_then(Value::as_object);
        if let Some((media, content)) = content.and_then(|content| content.iter().next()) {
            let value = self.value(content, all);
            let is_json = media.contains("json");
            return if is_json { Value::String(value.to_string()) } else { value };
        }
        let schema = of.get("schema").unwrap_or(of);
        ValueMaker::new(self.description, all).made(schema)
    }

    fn json(&self, media: &str, value: Value, draft: &mut SourceRequest) {
        draft.body = value.to_string().into_bytes();
        draft.header("Content-Type", media);
    }

    /// The statuses of success that the description names.
    fn statuses(&self) -> Vec<String> {
        let responses = self.operation.get("responses").and_then(Value::as_object);
        let codes = responses.into_iter().flatten().map(|(code, _)| code.to_ascii_lowercase());
        let is_success = |code: &String| {
            let bytes = code.as_bytes();
            let is_code = bytes.len() == 3 && matches!(bytes.first(), Some(b'2' | b'3'));
            is_code && (code.ends_with("xx") || bytes.iter().all(u8::is_ascii_digit))
        };
        codes.filter(is_success).collect()
    }

    /// The form of Swagger 2.
    fn form_data(&self, form: Vec<(&'a str, &'a Value, Value)>, draft: &mut SourceRequest) {
        if form.is_empty() {
            return;
        }
        let kinds = self.operation.get("consumes").or(self.description.root.get("consumes"));
        let first =
            kinds.and_then(Value::as_array).and_then(|kinds| kinds.iter().find_map(Value::as_str));
        let is_file = |parameter: &Value| parameter.get("type") == Some(&"file".into());
        let is_multipart = first == Some("multipart/form-data")
            || form.iter().any(|(_, parameter, _)| is_file(parameter));
        if !is_multipart {
            let pairs = form.iter().flat_map(|(name, parameter, value)| {
                ApiStyle::of(parameter, "query").pairs(name, value)
            });
            return draft.form(&pairs.collect::<Vec<_>>());
        }
        let parts = form.iter().map(|(name, parameter, value)| {
            ((*name).to_owned(), part(name, value, is_file(parameter), None))
        });
        draft.content = ImportedBody::Multipart(parts.collect());
    }

    /// The body of OpenAPI 3.
    fn body(&self, draft: &mut SourceRequest, all: &mut Collector) {
        let Some(body) = self.operation.get("requestBody") else {
            return;
        };
        let body = self.description.resolved(body);
        let Some(contents) = body.get("content").and_then(Value::as_object) else {
            return;
        };
        let is_form = |media: &str| media == FORM;
        let is_multipart = |media: &str| media.starts_with("multipart/");
        let is_json = |media: &str| media.contains("json") || media == "*/*";
        let find = |is_it: &dyn Fn(&str) -> bool| {
            contents.iter().find(|(media, _)| is_it(&media.to_ascii_lowercase()))
        };
        let first = find(&is_json).or_else(|| find(&is_form)).or_else(|| find(&is_multipart));
        let Some((media, content)) = first.or_else(|| contents.iter().next()) else {
            return;
        };
        if contents.len() > 1 {
            all.remark("Of several kinds of bodies, steps have one: JSON where there is some.");
        }
        if is_json(media) {
            let media = if media.contains('*') { "application/json" } else { media };
            self.json(media, self.value(content, all), draft);
        } else if is_form(media) {
            let fields = self.fields(content, all);
            let encoding =
                |name: &str| content.pointer(&format!("/encoding/{}", pointer_part(name)));
            let pairs = fields.iter().flat_map(|(name, value)| {
                let style = ApiStyle::of(encoding(name).unwrap_or(&Value::Null), "query");
                style.pairs(name, value)
            });
            draft.form(&pairs.collect::<Vec<_>>());
        } else if media.starts_with("multipart/form-data") {
            self.multipart(content, draft, all);
        } else {
            self.text(media, content, draft, all);
        }
    }

    fn fields(&self, content: &'a Value, all: &mut Collector) -> Map<String, Value> {
        match self.value(content, all) {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }

    fn multipart(&self, content: &'a Value, draft: &mut SourceRequest, all: &mut Collector) {
        let mut parts = Vec::new();
        for (name, value) in self.fields(content, all) {
            let schema = content.get("schema");
            let property =
                schema.and_then(|s| ValueMaker::new(self.description, all).property(s, &name));
            let items = property.and_then(|p| p.get("items"));
            let one = items.map(|items| self.description.resolved(items)).or(property);
            let text = |key: &str| one.and_then(|one| one.get(key)).and_then(Value::as_str);
            let is_file = text("format") == Some("binary") || text("contentMediaType").is_some();
            let media = content.pointer(&format!("/encoding/{}/contentType", pointer_part(&name)));
            let media = media.and_then(Value::as_str).or(text("contentMediaType"));
            let media = media.and_then(|media| media.split(',').next());
            if is_file {
                all.leave_out(format!("the file '{name}' of {}: a text in its place", self.told()));
            }
            let values = match value {
                Value::Array(values) => values,
                value => vec![value],
            };
            parts.extend(
                values.iter().map(|value| (name.clone(), part(&name, value, is_file, media))),
            );
        }
        if !parts.is_empty() {
            draft.content = ImportedBody::Multipart(parts);
        }
    }

    /// A body of any other type: its example, or a text.
    fn text(
        &self,
        media: &str,
        content: &'a Value,
        draft: &mut SourceRequest,
        all: &mut Collector,
    ) {
        let value = match self.description.example(content) {
            Some(value) => Some(value),
            None if media.starts_with("text/") => Some(self.value(content, all)),
            None if media.starts_with("image/") || media == "application/octet-stream" => {
                all.leave_out(format!("the body of {}: a text in its place", self.told()));
                Some("text".into())
            }
            None => None,
        };
        match value {
            Some(Value::String(text)) => {
                draft.body = text.into_bytes();
                draft.header("Content-Type", media);
            }
            _ => all.leave_out(format!("the body of {}, of type {media}", self.told())),
        }
    }
}

/// A part of a form: an object as JSON, a file as a text with its name.
fn part(name: &str, value: &Value, is_file: bool, media: Option<&str>) -> ImportedPart {
    let is_json = matches!(value, Value::Object(_) | Value::Array(_));
    let usual = match (is_file, is_json) {
        (true, _) => Some("application/octet-stream"),
        (false, true) => Some("application/json"),
        _ => None,
    };
    let text = if is_json { value.to_string() } else { plain(value) };
    ImportedPart {
        content: Ok(ImportedText::from(text)),
        media: media.or(usual).map(str::to_owned),
        filename: is_file.then(|| format!("{name}.bin")),
    }
}

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
        if self.allow_reserved {
            // Here a URL would end.
            percent::url(text).replace('#', "%23")
        } else {
            percent::component(text.as_bytes())
        }
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
