//! Operations: parameters in their places, by style and explode, bodies and the statuses that are
//! expected.

use super::schema::ValueMaker;
use super::{ApiDescription, plain};
use crate::import::ImportedText;
use crate::import::body::{FORM, multipart, part};
use crate::import::builder::{ScenarioBuilder, StepRequest};
use crate::import::grammar::pointer_part;
use crate::import::yaml::YamlValue;
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
    /// The step, with values for all that it needs. `base` is the path of the server.
    pub(super) fn draft(
        &self,
        base: &str,
        all: &mut ScenarioBuilder,
        schemes: &mut HashSet<String>,
    ) -> StepRequest {
        let name = self.operation.get("operationId").and_then(Value::as_str);
        let mut draft = StepRequest {
            method: self.method.to_ascii_uppercase(),
            name: name.map(str::to_owned),
            // One operation that fails says nothing about the next.
            goes_on: true,
            ..StepRequest::default()
        };
        if self.operation.get("servers").or(self.item.get("servers")).is_some() {
            all.leave_out(format!("{}: servers of its own", self.method_and_path()));
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
            all.leave_out(format!(
                "{}: the value of {{{name}}} is not described",
                self.method_and_path()
            ));
        }
        let sign = if query.is_empty() { "" } else { "?" };
        draft.url = format!("{base}{path}{sign}{}", query.join("&")).into();
        self.form_data(form, &mut draft);
        self.body(&mut draft, all);
        self.description.authorize(self.operation, &mut draft, schemes, all);
        self.headers(headers, &mut draft, all);
        draft.expect_status(self.statuses());
        draft
    }

    /// Adds the parameters that are headers, before the headers of the body and of the credentials.
    /// Those take the place of parameters with their names.
    fn headers(
        &self,
        parameters: Vec<(&str, String)>,
        draft: &mut StepRequest,
        all: &mut ScenarioBuilder,
    ) {
        let is_swagger = self.description.root.get("swagger").is_some();
        let others = std::mem::take(&mut draft.headers);
        let has_parts = draft.content.is_some();
        for (name, value) in parameters {
            let lower = name.to_ascii_lowercase();
            let is_given = others.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
            match lower.as_str() {
                _ if is_given => {}
                "content-type" if has_parts => {}
                "authorization" => {
                    let value = ImportedText::value("env(AUTHORIZATION)");
                    let template = value.template();
                    all.remark(format!("Header {template}: set it to the value of Authorization."));
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

    fn method_and_path(&self) -> String {
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
    fn value(&self, of: &'a Value, all: &mut ScenarioBuilder) -> Value {
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

    fn json(&self, media: &str, value: Value, draft: &mut StepRequest) {
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
    fn form_data(&self, form: Vec<(&'a str, &'a Value, Value)>, draft: &mut StepRequest) {
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
            return send_form(pairs, draft);
        }
        draft.content = multipart(form.iter().map(|(name, parameter, value)| {
            ((*name).to_owned(), form_part(name, value, is_file(parameter), None))
        }));
    }

    /// The body of OpenAPI 3.
    fn body(&self, draft: &mut StepRequest, all: &mut ScenarioBuilder) {
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
            send_form(pairs, draft);
        } else if media.starts_with("multipart/form-data") {
            self.multipart(content, draft, all);
        } else {
            self.text(media, content, draft, all);
        }
    }

    fn fields(&self, content: &'a Value, all: &mut ScenarioBuilder) -> Map<String, Value> {
        match self.value(content, all) {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }

    fn multipart(&self, content: &'a Value, draft: &mut StepRequest, all: &mut ScenarioBuilder) {
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
                all.leave_out(format!(
                    "the file '{name}' of {}: a text in its place",
                    self.method_and_path()
                ));
            }
            let values = match value {
                Value::Array(values) => values,
                value => vec![value],
            };
            let part = |value| (name.clone(), form_part(&name, value, is_file, media));
            parts.extend(values.iter().map(part));
        }
        draft.content = multipart(parts.into_iter());
    }

    /// A body of any other type: its example, or a text.
    fn text(
        &self,
        media: &str,
        content: &'a Value,
        draft: &mut StepRequest,
        all: &mut ScenarioBuilder,
    ) {
        let value = match self.description.example(content) {
            Some(value) => Some(value),
            None if media.starts_with("text/") => Some(self.value(content, all)),
            None if media.starts_with("image/") || media == "application/octet-stream" => {
                all.leave_out(format!(
                    "the body of {}: a text in its place",
                    self.method_and_path()
                ));
                Some("text".into())
            }
            None => None,
        };
        match value {
            Some(Value::String(text)) => {
                draft.body = text.into_bytes();
                draft.header("Content-Type", media);
            }
            _ => all.leave_out(format!("the body of {}, of type {media}", self.method_and_path())),
        }
    }
}

/// Sends pairs of a form: `a=1`, percent-encoded.
fn send_form(pairs: impl Iterator<Item = String>, draft: &mut StepRequest) {
    draft.body = pairs.collect::<Vec<_>>().join("&").into_bytes();
    draft.header("Content-Type", FORM);
}

/// A part of a form: an object as JSON, a file as a text with its name.
fn form_part(name: &str, value: &Value, is_file: bool, media: Option<&str>) -> YamlValue {
    let is_json = matches!(value, Value::Object(_) | Value::Array(_));
    let usual = match (is_file, is_json) {
        (true, _) => Some("application/octet-stream"),
        (false, true) => Some("application/json"),
        _ => None,
    };
    let text = if is_json { value.to_string() } else { plain(value) };
    let filename = is_file.then(|| format!("{name}.bin"));
    part(Ok(text.into()), media.or(usual), filename.as_deref())
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

    /// Names and values of a query or a form, encoded.
    pub(super) fn pairs(self, name: &str, value: &Value) -> Vec<String> {
        let between = match self.style {
            "spaceDelimited" => "%20",
            "pipeDelimited" => "%7C",
            "tabDelimited" => "%09",
            _ => ",",
        };
        let encode = |text: &str| {
            if self.allow_reserved {
                // Here a URL would end.
                percent::url(text).replace('#', "%23")
            } else {
                percent::component(text.as_bytes())
            }
        };
        let name = percent::component(name.as_bytes());
        let piece = |(key, text): (Option<String>, String)| match key {
            None => format!("{name}={text}"),
            Some(key) if self.style == "deepObject" => format!("{name}%5B{key}%5D={text}"),
            Some(key) => format!("{key}={text}"),
        };
        self.pieces(value, between, encode).into_iter().map(piece).collect()
    }

    /// The text in a path or in a header.
    pub(super) fn text(self, name: &str, value: &Value, is_path: bool) -> String {
        let encode = |text: &str| {
            if is_path { percent::component(text.as_bytes()) } else { text.to_owned() }
        };
        let piece = |(key, text): (Option<String>, String)| match key {
            Some(key) => format!("{key}={text}"),
            None if self.style == "matrix" => format!("{name}={text}"),
            None => text,
        };
        let pieces = self.pieces(value, ",", encode).into_iter().map(piece);
        let (begin, between) = match self.style {
            "label" => (".", "."),
            "matrix" => (";", ";"),
            _ => ("", ","),
        };
        format!("{begin}{}", pieces.collect::<Vec<_>>().join(between))
    }

    /// The pieces of a value, each with its key where it has one: a list or an object that does not
    /// explode is one piece, with signs between its own.
    fn pieces(
        self,
        value: &Value,
        between: &str,
        encode: impl Fn(&str) -> String,
    ) -> Vec<(Option<String>, String)> {
        let one = |value: &Value| encode(&plain(value));
        let is_deep = self.style == "deepObject";
        match value {
            Value::Array(list) if !self.explode => {
                vec![(None, list.iter().map(one).collect::<Vec<_>>().join(between))]
            }
            Value::Array(list) => list.iter().map(|value| (None, one(value))).collect(),
            Value::Object(fields) if !self.explode && !is_deep => {
                let fields = fields.iter().flat_map(|(key, value)| [encode(key), one(value)]);
                vec![(None, fields.collect::<Vec<_>>().join(between))]
            }
            Value::Object(fields) => {
                fields.iter().map(|(key, value)| (Some(encode(key)), one(value))).collect()
            }
            value => vec![(None, one(value))],
        }
    }
}
