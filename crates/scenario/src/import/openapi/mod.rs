//! The description of an API: OpenAPI 3, and Swagger 2 as far as it is alike.

mod values;

use super::collect::{Collector, SourceRequest};
use super::{Imported, ImportedBody, ImportedPart, ImportedText, as_text, error, yaml};
use knee_load::percent;
use knee_load::quantity::ParseError;
use knee_load::spec::Url;
use serde_json::Value;
use values::ValueMaker;

/// The operations of a path, in the order in which they become steps.
const METHODS: [&str; 7] = ["get", "head", "options", "post", "put", "patch", "delete"];
/// How deep a schema is followed.
const DEPTH_MAX: usize = 12;

/// Imports each operation as a step. `target` takes the place of the servers that it names.
///
/// # Errors
/// One line: neither JSON nor YAML, no paths, no server.
pub fn openapi(bytes: &[u8], target: Option<&str>) -> Result<Imported, ParseError> {
    let text = as_text(bytes, "the file")?;
    let root: Value = if text.trim_start().starts_with('{') {
        serde_json::from_str(text).map_err(|e| super::wrong(format!("the file is no JSON: {e}")))?
    } else {
        yaml::parse(text)?
    };
    let Some(paths) = root.get("paths").and_then(Value::as_object) else {
        return error("the file is no OpenAPI description: it has no paths");
    };
    let description = ApiDescription { root: &root };
    let server = match target {
        Some(target) => target.trim_end_matches('/').to_owned(),
        None => description.server()?,
    };
    let mut all = Collector::default();
    all.set_target(Url::parse(&server)?);
    all.remark(
        "Values are the examples and defaults of the description, or made up by their types.",
    );
    for (path, item) in paths {
        let item = description.resolved(item);
        for method in METHODS {
            if let Some(operation) = item.get(method).filter(|_| all.has_room()) {
                let step = ApiOperation {
                    description: &description,
                    path,
                    method,
                    shared: item.get("parameters"),
                    operation,
                };
                let draft = step.draft(&server, &mut all);
                all.request(draft);
            }
        }
    }
    description.security(&mut all);
    all.finish("the description has no operation that a scenario can have")
}

struct ApiDescription<'a> {
    root: &'a Value,
}

impl<'a> ApiDescription<'a> {
    /// The server with its base path.
    fn server(&self) -> Result<String, ParseError> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let first = self.root.pointer("/servers/0");
        if let Some(url) = first.and_then(|server| server.get("url")).and_then(text) {
            let url = self.with_variables(url, first);
            if url.contains("://") {
                return Ok(url.trim_end_matches('/').to_owned());
            }
        }
        let Some(host) = self.root.get("host").and_then(text) else {
            return error("the description names no server: give --target URL");
        };
        let base = self.root.get("basePath").and_then(text).unwrap_or_default();
        let scheme = self.root.pointer("/schemes/0").and_then(text);
        let scheme = scheme.unwrap_or_else(|| "https".to_owned());
        Ok(format!("{scheme}://{host}{}", base.trim_end_matches('/')))
    }

    fn with_variables(&self, mut url: String, server: Option<&Value>) -> String {
        let variables = server.and_then(|s| s.get("variables")).and_then(Value::as_object);
        for (name, variable) in variables.into_iter().flatten() {
            let value = variable.get("default").map(plain).unwrap_or_default();
            url = url.replace(&format!("{{{name}}}"), &value);
        }
        url
    }

    /// What a reference within the file refers to.
    fn resolved(&self, mut value: &'a Value) -> &'a Value {
        for _ in 0..DEPTH_MAX {
            let reference = value.get("$ref").and_then(Value::as_str);
            let Some(pointer) = reference.and_then(|r| r.strip_prefix('#')) else {
                return value;
            };
            match self.root.pointer(pointer) {
                Some(referred) => value = referred,
                None => return &Value::Null,
            }
        }
        &Value::Null
    }

    fn security(&self, all: &mut Collector) {
        let schemes = self
            .root
            .pointer("/components/securitySchemes")
            .or_else(|| self.root.get("securityDefinitions"));
        for (name, scheme) in schemes.and_then(Value::as_object).into_iter().flatten() {
            let kind = scheme.get("type").and_then(Value::as_str).unwrap_or("?");
            all.leave_out(format!("security '{name}' ({kind}): write its header into 'defaults'"));
        }
    }

    /// The example of a parameter or of a kind of content.
    fn example(&self, of: &'a Value) -> Option<Value> {
        let first = of.get("examples").and_then(Value::as_object);
        let first = first.and_then(|examples| examples.values().next());
        let first = first.and_then(|example| self.resolved(example).get("value"));
        of.get("example").or(first).cloned()
    }
}

/// A value as a part of a URL or of a header.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

struct ApiOperation<'a> {
    description: &'a ApiDescription<'a>,
    path: &'a str,
    method: &'a str,
    /// The parameters of all operations of its path.
    shared: Option<&'a Value>,
    operation: &'a Value,
}

impl<'a> ApiOperation<'a> {
    fn draft(&self, server: &str, all: &mut Collector) -> SourceRequest {
        let name = self.operation.get("operationId").and_then(Value::as_str);
        let mut draft = SourceRequest {
            method: self.method.to_ascii_uppercase(),
            name: name.map(str::to_owned),
            // One operation that fails says nothing about the next.
            goes_on: true,
            ..SourceRequest::default()
        };
        let (mut path, mut query, mut form) = (self.path.to_owned(), Vec::new(), Vec::new());
        for parameter in self.parameters() {
            let text = |key: &str| parameter.get(key).and_then(Value::as_str).unwrap_or_default();
            let (name, place) = (text("name"), text("in"));
            let is_required = parameter.get("required") == Some(&Value::Bool(true));
            let value = self.value(parameter, all);
            match place {
                "path" => {
                    let value = in_path(parameter, name, &value);
                    path = path.replace(&format!("{{{name}}}"), &value);
                }
                "body" => self.json(value.clone(), &mut draft),
                _ if !is_required => {}
                "query" => query.extend(pairs(parameter, name, &value)),
                "formData" => form.extend(pairs(parameter, name, &value)),
                "header" => draft.header(name, plain(&value)),
                "cookie" => draft.header("Cookie", format!("{name}={}", plain(&value))),
                _ => {}
            }
        }
        let sign = if query.is_empty() { "" } else { "?" };
        draft.url = format!("{server}{path}{sign}{}", query.join("&")).into();
        if !form.is_empty() {
            draft.form(&form);
        }
        self.body(&mut draft, all);
        draft
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
        for shared in list(self.shared) {
            if !all.iter().any(|own| same(own, shared)) {
                all.push(shared);
            }
        }
        all
    }

    fn value(&self, parameter: &'a Value, all: &mut Collector) -> Value {
        if let Some(example) = self.description.example(parameter) {
            return example;
        }
        let schema = parameter.get("schema").unwrap_or(parameter);
        let mut maker = ValueMaker::new(self.description);
        let value = maker.made(schema, 0);
        for said in maker.said {
            all.leave_out(format!("{} {}: {said}", self.method.to_ascii_uppercase(), self.path));
        }
        value
    }

    fn json(&self, value: Value, draft: &mut SourceRequest) {
        draft.body = value.to_string().into_bytes();
        draft.header("Content-Type", "application/json");
    }

    /// The body of OpenAPI 3.
    fn body(&self, draft: &mut SourceRequest, all: &mut Collector) {
        let Some(body) = self.operation.get("requestBody") else {
            return;
        };
        let body = self.description.resolved(body);
        let Some(content) = body.get("content").and_then(Value::as_object) else {
            return;
        };
        let is_json = |media: &str| media.contains("json");
        let is_form = |media: &str| media == "application/x-www-form-urlencoded";
        let find = |is_it: &dyn Fn(&str) -> bool| content.iter().find(|(media, _)| is_it(media));
        if let Some((_, content)) = find(&is_json) {
            self.json(self.value(content, all), draft);
        } else if let Some((_, content)) = find(&is_form) {
            let value = self.value(content, all);
            let pairs = value.as_object().into_iter().flatten();
            let pairs = pairs.map(|(name, value)| percent::pair(name, &plain(value)));
            draft.form(&pairs.collect::<Vec<_>>());
        } else if let Some((_, content)) = find(&|media| media == "multipart/form-data") {
            let parts = self.parts(content, all);
            draft.content = ImportedBody::Multipart(parts);
        } else if let Some((media, content)) = content.iter().next() {
            match self.description.example(content) {
                Some(Value::String(text)) => {
                    draft.body = text.into_bytes();
                    draft.header("Content-Type", media.as_str());
                }
                _ => all.leave_out(format!(
                    "the body of {} {}, of type {media}",
                    draft.method, self.path
                )),
            }
        }
    }

    /// The parts of a form; those of bytes are files.
    fn parts(&self, content: &'a Value, all: &mut Collector) -> Vec<(String, ImportedPart)> {
        let schema = content.get("schema").map(|schema| self.description.resolved(schema));
        let value = self.value(content, all);
        let is_file = |name: &str| {
            let properties = schema.and_then(|schema| schema.get("properties")?.get(name));
            let property = properties.map(|property| self.description.resolved(property));
            property.and_then(|property| property.get("format")?.as_str()) == Some("binary")
        };
        let part = |(name, value): (&String, &Value)| {
            let content = if is_file(name) {
                all.remark(format!("Put a file {name}.bin beside the scenario: a form sends it."));
                Err(format!("{name}.bin"))
            } else {
                Ok(ImportedText::from(plain(value)))
            };
            (name.clone(), ImportedPart { content, media: None, filename: None })
        };
        value.as_object().into_iter().flatten().map(part).collect()
    }
}

/// How a parameter joins the values of a list: `None` where each has a pair of its own.
fn joined_by(parameter: &Value) -> Option<&'static str> {
    let text = |key: &str| parameter.get(key).and_then(Value::as_str);
    let explodes = parameter.get("explode").and_then(Value::as_bool);
    match (text("collectionFormat"), text("style")) {
        (Some("multi"), _) => None,
        (Some("ssv"), _) | (_, Some("spaceDelimited")) => Some("%20"),
        (Some("tsv"), _) => Some("%09"),
        (Some("pipes"), _) | (_, Some("pipeDelimited")) => Some("|"),
        (Some(_), _) => Some(","),
        // That of version 2 has its type beside its name.
        (None, None) if parameter.get("schema").is_none() => Some(","),
        (None, _) if explodes == Some(false) => Some(","),
        (None, _) => None,
    }
}

/// The pairs of a query or a form.
fn pairs(parameter: &Value, name: &str, value: &Value) -> Vec<String> {
    let is_deep = parameter.get("style").and_then(Value::as_str) == Some("deepObject");
    match (value, joined_by(parameter)) {
        (Value::Array(values), None) => {
            values.iter().map(|value| percent::pair(name, &plain(value))).collect()
        }
        (Value::Array(values), Some(sign)) => {
            let values = values.iter().map(|v| percent::component(plain(v).as_bytes()).to_string());
            let values: Vec<String> = values.collect();
            vec![format!("{}={}", percent::component(name.as_bytes()), values.join(sign))]
        }
        (Value::Object(fields), None) if is_deep => {
            let pair = |(key, value): (&String, &Value)| {
                percent::pair(&format!("{name}[{key}]"), &plain(value))
            };
            fields.iter().map(pair).collect()
        }
        (Value::Object(fields), None) => {
            fields.iter().map(|(key, value)| percent::pair(key, &plain(value))).collect()
        }
        _ => vec![percent::pair(name, &plain(value))],
    }
}

/// A parameter in a path, by its style (RFC 6570).
fn in_path(parameter: &Value, name: &str, value: &Value) -> String {
    let component = |value: &Value| percent::component(plain(value).as_bytes()).to_string();
    let values: Vec<String> = match value {
        Value::Array(values) => values.iter().map(component).collect(),
        value => vec![component(value)],
    };
    let explodes = parameter.get("explode") == Some(&Value::Bool(true));
    match (parameter.get("style").and_then(Value::as_str), explodes) {
        (Some("label"), false) => format!(".{}", values.join(",")),
        (Some("label"), true) => format!(".{}", values.join(".")),
        (Some("matrix"), false) => format!(";{name}={}", values.join(",")),
        (Some("matrix"), true) => values.iter().map(|value| format!(";{name}={value}")).collect(),
        _ => values.join(","),
    }
}
